from __future__ import annotations

from pathlib import Path

import pytest

from lore.store import files

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
//box/share /mnt/with\\040space cifs rw 0 0
host /mnt/host 9p rw 0 0
me@there: /mnt/there fuse.sshfs rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
broken line
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lore", ""),
        ("/home/me/.lore/memory.db", "nfs4"),
        ("/home", "nfs4"),
        ("/homestead/me", ""),
        ("/home/local/lore", ""),
        ("/mnt/with space/lore", "cifs"),
        ("/mnt/host/lore", "9p"),
        ("/mnt/there/lore", "fuse.sshfs"),
    ],
)
def test_a_shared_file_system_is_recognized_by_its_mount(
    tmp_path: Path, path: str, expected: str
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert files.shared_file_system(Path(path), mounts) == expected


def test_without_a_mount_list_no_file_system_is_shared(tmp_path: Path) -> None:
    assert files.shared_file_system(tmp_path, tmp_path / "missing") == ""
