from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from lore.daemon.degraded_mode import DegradedServer, file_state, open_error, open_writable
from lore.errors import LoreError, StoreDamaged, StoreError, StoreFull, StoreReadOnly
from lore.settings import Settings, load


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    found = load({"LORE_EMBED_PROVIDER": "none"}, home=tmp_path / "home").settings
    return replace(found, server_port=0)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EROFS, StoreReadOnly),
        (errno.EACCES, StoreReadOnly),
        (errno.EIO, StoreError),
    ],
)
def test_an_os_error_becomes_a_store_error(number: int, kind: type[LoreError]):
    told = open_error(OSError(number, os.strerror(number)), Path("/code/memory.db"))
    assert type(told) is kind
    assert "lore doctor" in told.hint


def test_an_own_error_is_kept():
    error = StoreDamaged("It is damaged.")
    assert open_error(error, Path("memory.db")) is error


def test_a_sound_memory_opens_for_writing(settings: Settings):
    with open_writable(settings) as memory:
        assert memory.maintenance.stats().messages == 0


def test_a_restored_file_changes_the_file_state(tmp_path: Path):
    path = tmp_path / "memory.db"
    missing = file_state(path)
    path.write_bytes(b"bad")
    bad = file_state(path)
    (tmp_path / "good.db").write_bytes(b"good")
    (tmp_path / "good.db").replace(path)
    assert len({missing, bad, file_state(path)}) == 3
    assert file_state(path) == file_state(path)


def test_the_degraded_server_stops_on_request_or_without_its_lock(settings: Settings):
    settings.home.mkdir()
    why, told = StoreDamaged("It is damaged."), list[str]()
    assert DegradedServer(settings, why).run(lambda _s: True, lambda: True, told.append) is None
    assert DegradedServer(settings, why).run(lambda _s: False, lambda: False, told.append) is None
    assert all(one.startswith("It is damaged. ") for one in told)
    assert len(told) == 2


def test_without_a_port_the_error_of_the_memory_is_raised(settings: Settings):
    settings.home.mkdir()
    why = StoreDamaged("It is damaged.")
    with pytest.raises(StoreDamaged):
        DegradedServer(replace(settings, server_host="192.0.2.7"), why).run(
            lambda _s: True, lambda: True, lambda _told: None
        )
