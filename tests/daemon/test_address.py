from __future__ import annotations

import os
from pathlib import Path

import pytest

from lore.bridges.address import SERVER_FILE
from lore.daemon import address, lock
from lore.daemon.address import Address
from tests.fakes import NOON

HERE = Address("127.0.0.1", 3207, os.getpid(), "0.1.0", hook_ms=250)


def test_an_address_is_told_to_the_owner_only_and_taken_back(tmp_path: Path):
    address.write(tmp_path, HERE)
    assert (tmp_path / SERVER_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [SERVER_FILE]
    address.remove(tmp_path)
    assert not (tmp_path / SERVER_FILE).exists()
    address.remove(tmp_path)


def test_an_address_holds_only_while_its_daemon_has_the_lock(tmp_path: Path):
    address.write(tmp_path, HERE)
    assert address.find(tmp_path) is None
    held = lock.take(tmp_path, now=NOON, version="0.1.0")
    assert address.find(tmp_path) == HERE
    address.write(tmp_path, Address("127.0.0.1", 3207, 1, "0.1.0"))
    assert address.find(tmp_path) is None
    held.release()


def test_what_another_daemon_has_written_stays(tmp_path: Path):
    address.write(tmp_path, Address("127.0.0.1", 3207, 1, "0.1.0"))
    address.remove(tmp_path)
    assert (tmp_path / SERVER_FILE).exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"host": 1}', '{"port": "x"}', "null"])
def test_what_cannot_be_an_address_is_none(tmp_path: Path, content: str):
    (tmp_path / SERVER_FILE).write_text(content)
    held = lock.take(tmp_path, now=NOON, version="0.1.0")
    assert address.find(tmp_path) is None
    held.release()


def test_an_address_of_six_is_spelt_for_a_browser():
    assert Address("::1", 80, 1, "").url == "http://[::1]:80"
