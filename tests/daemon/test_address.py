from __future__ import annotations

import os
from pathlib import Path

import pytest

from lore.daemon import daemon_lock, server_address
from lore.daemon.server_address import PORT_FILE, ServerAddress
from lore.proxy.address import KEY_FILE, SERVER_FILE, find_address
from tests.fakes import NOON

HERE = ServerAddress("127.0.0.1", 3207, os.getpid(), "0.1.0", hook_ms=250, greeting="m")


def test_the_address_file_is_private_and_can_be_removed(tmp_path: Path):
    server_address.write(tmp_path, HERE)
    assert (tmp_path / SERVER_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [SERVER_FILE]
    server_address.remove(tmp_path)
    assert not (tmp_path / SERVER_FILE).exists()
    server_address.remove(tmp_path)


def test_an_address_is_found_only_while_its_daemon_has_the_lock(tmp_path: Path):
    (tmp_path / KEY_FILE).write_text("k" * 50)
    server_address.write(tmp_path, HERE)
    assert find_address(str(tmp_path)) is None
    held = daemon_lock.take_lock(tmp_path, now=NOON, version="0.1.0")
    found = find_address(str(tmp_path))
    assert found
    told = (found.url, found.hook_s, found.handshake_mark)
    assert told == (HERE.url, HERE.hook_ms / 1000, HERE.greeting)
    server_address.write(tmp_path, ServerAddress("127.0.0.1", 3207, 1, "0.1.0"))
    assert find_address(str(tmp_path)) is None
    held.release()


def test_the_address_of_another_daemon_is_kept(tmp_path: Path):
    server_address.write(tmp_path, ServerAddress("127.0.0.1", 3207, 1, "0.1.0"))
    server_address.remove(tmp_path)
    assert (tmp_path / SERVER_FILE).exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"host": 1}', '{"port": "x"}', "null"])
def test_an_invalid_address_file_is_left_in_place(tmp_path: Path, content: str):
    (tmp_path / SERVER_FILE).write_text(content)
    server_address.remove(tmp_path)
    assert (tmp_path / SERVER_FILE).exists()


def test_the_last_port_is_stored(tmp_path: Path):
    assert server_address.find_last_port(tmp_path, 3207) is None
    server_address.store_port(tmp_path, 3207, 4711)
    assert server_address.find_last_port(tmp_path, 3207) == 4711
    assert server_address.find_last_port(tmp_path, 3208) is None
    assert [path.name for path in tmp_path.iterdir()] == [PORT_FILE]
    server_address.store_port(tmp_path / "gone", 3207, 4711)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"4711", b"3207 0", b"3207 -1", b"3207 65536", b"9" * 99, b"\xff"]
)
def test_an_invalid_port_file_is_ignored(tmp_path: Path, content: bytes):
    (tmp_path / PORT_FILE).write_bytes(content)
    assert server_address.find_last_port(tmp_path, 3207) is None


def test_an_ipv6_address_is_a_valid_url():
    assert ServerAddress("::1", 80, 1, "").url == "http://[::1]:80"
