from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager

import pytest

from lore.proxy.address import KEY_FILE, LOCK_FILE, SERVER_FILE, find_address, resolve_home

SERVER = {"host": "127.0.0.1", "port": 4711, "pid": 4242}


@contextmanager
def running(home, *, server=None, key="k_1-Z", holder="4242\n2026-11-01\n0.1.0\n"):
    """Leave what a daemon leaves in its home, and hold its lock."""
    told = SERVER if server is None else server
    (home / SERVER_FILE).write_text(told if isinstance(told, str) else json.dumps(told))
    (home / KEY_FILE).write_text(f"{key}\n")
    (home / LOCK_FILE).write_text(holder)
    file = os.open(home / LOCK_FILE, os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(file)


def test_the_address_is_what_the_running_daemon_said(tmp_path):
    with running(tmp_path):
        found = find_address(str(tmp_path))
    assert found is not None
    assert (found.host, found.port, found.key) == ("127.0.0.1", 4711, "k_1-Z")


def test_a_daemon_says_how_long_hooks_may_take(tmp_path):
    with running(tmp_path, server={**SERVER, "hook_ms": 250}):
        found = find_address(str(tmp_path))
    assert found is not None
    assert found.hook_s == 0.25


def test_what_a_dead_daemon_left_is_not_believed(tmp_path):
    with running(tmp_path):
        pass
    assert find_address(str(tmp_path)) is None


@pytest.mark.parametrize("holder", ["4243\n", "", "\n", "x\n", "-4242\n", "42424\n"])
def test_what_a_killed_daemon_left_is_not_believed_while_the_next_one_starts(tmp_path, holder):
    with running(tmp_path, holder=holder):
        assert find_address(str(tmp_path)) is None


def test_an_address_is_true_as_long_as_its_home_says_so(tmp_path):
    with running(tmp_path):
        found = find_address(str(tmp_path))
        assert found is not None
        assert found.is_current()
        (tmp_path / SERVER_FILE).write_text(json.dumps({**SERVER, "port": 4712}))
        assert not found.is_current()
        (tmp_path / SERVER_FILE).write_text(json.dumps(SERVER))
        assert found.is_current()
    assert not found.is_current()


def test_a_home_without_anything_has_no_address(tmp_path):
    assert find_address(str(tmp_path / "none")) is None


@pytest.mark.parametrize(
    "server",
    ["", "{", "[]", "7", {"host": "127.0.0.1"}, {**SERVER, "host": 1}, {**SERVER, "port": "2"},
     {"host": "127.0.0.1", "port": 4711}, {**SERVER, "pid": "4242"}],
)  # fmt: skip
def test_an_address_that_cannot_be_read_is_none(tmp_path, server):
    with running(tmp_path, server=server):
        assert find_address(str(tmp_path)) is None


@pytest.mark.parametrize("key", ["", "two words", "tab\tbed", "é"])
def test_a_key_that_cannot_stand_in_a_header_is_none(tmp_path, key):
    with running(tmp_path, key=key):
        assert find_address(str(tmp_path)) is None


def test_the_home_that_is_given_comes_before_the_usual_one(tmp_path):
    assert resolve_home(str(tmp_path), "/code/other") == str(tmp_path)
    assert resolve_home("", "/code/other") == "/code/other"
    assert resolve_home("", "").endswith("/.lore")
