from __future__ import annotations

import os
from pathlib import Path

import pytest

from lore.errors import StoreError
from lore.store.sqlite import Connection, copying


def test_a_copy_that_cannot_be_written_leaves_nothing(tmp_path: Path, db: Connection) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "full").touch()
    with pytest.raises(StoreError, match="could not be written"):
        copying.copy_database(db, target)
    assert not list(tmp_path.glob("*.part-*"))


def test_only_files_of_processes_that_are_gone_are_left_overs(tmp_path: Path) -> None:
    gone = 99_999_999
    names = [
        f"a.db.part-{gone}", f"m.db.restored-{gone}-wal", f"a.db.part-{os.getpid()}",
        "a.part-x", "memory.db",
    ]  # fmt: skip
    for name in names:
        (tmp_path / name).touch()
    assert [path.name for path in copying.unfinished(tmp_path)] == names[:2]
