from __future__ import annotations

import errno
from pathlib import Path

import apsw
import pytest

from lore.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreReadOnly
from lore.store.sqlite.failures import translated

ERRORS = {
    apsw.BusyError: StoreBusy,
    apsw.LockedError: StoreBusy,
    apsw.ProtocolError: StoreBusy,
    apsw.FullError: StoreFull,
    apsw.ReadOnlyError: StoreReadOnly,
    apsw.CantOpenError: StoreReadOnly,
    apsw.PermissionsError: StoreReadOnly,
    apsw.AuthError: StoreReadOnly,
    apsw.CorruptError: StoreDamaged,
    apsw.NotADBError: StoreDamaged,
}


def all_errors() -> list[type[apsw.Error]]:
    return [
        kind
        for kind in vars(apsw).values()
        if isinstance(kind, type) and issubclass(kind, apsw.Error)
    ]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_of_sqlite_has_its_translation(tmp_path: Path, kind: type[apsw.Error]) -> None:
    told = translated(kind("something"), tmp_path / "memory.db")
    assert type(told) is ERRORS.get(kind, StoreError)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_an_io_error_for_want_of_space_is_a_full_disk(tmp_path: Path, number: int) -> None:
    told = translated(apsw.IOError("x"), tmp_path / "memory.db", number)
    assert isinstance(told, StoreFull)
