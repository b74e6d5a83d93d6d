from pathlib import Path

import pytest

from lore.embed.whole_file import whole_file


def test_a_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    with whole_file(path) as opened:
        opened.write(b"content")
        assert not path.exists()
    assert path.read_bytes() == b"content"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]
    assert path.parent.parent.stat().st_mode & 0o777 == 0o700


def test_a_failure_leaves_the_old_file_and_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError), whole_file(path) as opened:
        opened.writelines([b"half", None])  # type: ignore[list-item]  # what fails midway
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
