"""Access by the command line: keys, and the address that logs a browser in."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.daemon import daemon_lock
from lore.errors import DaemonError, InvalidInput, NotFound
from lore.http import explorer_build
from lore.proxy.address import SERVER_FILE, find_address
from tests.cli.conftest import Lore, run_process
from tests.homes import keep_handshake


@pytest.fixture
def lore(tmp_path: Path) -> Lore:
    return Lore(tmp_path / "home")


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Path]:
    """A home whose daemon runs."""
    home = tmp_path / "home"
    env = {"HOME": str(tmp_path), "LORE_SERVER_PORT": "0"}
    keep_handshake(home)
    run_process("up", "--detach", home=home, env=env).works()
    yield home
    holder = daemon_lock.find_holder(home)
    if holder is not None:
        os.kill(holder.pid, signal.SIGKILL)


def ask(home: Path, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    found = find_address(str(home))
    assert found
    connection = http.client.HTTPConnection(found.host, found.port, timeout=30)
    connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def test_key_create_list_and_revoke(lore: Lore):
    made = lore("key", "create", "ci", "--scope", "push", "--scope", "read").works()
    key = made.out.strip()
    assert key.startswith("lore_")
    assert "read, push" in made.err
    listed = lore("key", "list").works().out
    assert "ci" in listed
    assert key not in listed
    assert key.encode() not in b"".join(
        path.read_bytes() for path in lore.home.iterdir() if path.is_file()
    )
    (record,) = json.loads(lore("key", "list", "--json").works().out)
    assert record["prefix"] in key
    assert record["scopes"] == ["read", "push"]
    assert "is revoked" in lore("key", "revoke", "ci").works().out
    assert "revoked" in lore("key", "list").works().out


def test_wrong_use_of_keys_is_refused(lore: Lore):
    lore("key", "create", "one").works()
    lore("key", "create", "one", "--days", "0").works()
    lore("key", "create", "x", "--scope", "everything").fails_with(InvalidInput.exit_code)
    lore("key", "create", " ").fails_with(InvalidInput.exit_code)
    lore("key", "create", "x", "--days", "1e300").fails_with(InvalidInput.exit_code)
    lore("key", "revoke", "nobody").fails_with(NotFound.exit_code)
    assert "expired" in lore("key", "list").works().out
    lore("key", "revoke", "one").fails_with(InvalidInput.exit_code)


def test_open_without_a_server_says_how_to_start_one(lore: Lore):
    outcome = lore("open", "--print").fails_with(DaemonError.exit_code)
    assert "lore up" in outcome.err


def test_a_browser_is_logged_in_and_a_key_is_revoked_while_the_daemon_runs(up: Path):
    url = run_process("open", "--print", home=up).works().out.strip()
    path = "/" + url.split("/", 3)[3]
    logged_in = ask(up, "GET", path)
    assert logged_in.status == 303
    cookie = (logged_in.getheader("set-cookie") or "").split(";")[0]
    assert ask(up, "GET", "/api/v1/stats", cookie=cookie).status == 200
    assert ask(up, "GET", path).status == 401
    key = run_process("key", "create", "k", home=up).works().out.strip()
    assert ask(up, "GET", "/api/v1/stats", x_lore_key=key).status == 200
    run_process("key", "revoke", "k", home=up).works()
    assert ask(up, "GET", "/api/v1/stats", x_lore_key=key).status == 401
    told = json.loads(run_process("status", "--json", home=up).works().out)
    found = find_address(str(up))
    assert found
    assert told["server"] == found.url
    assert found.url in run_process("status", home=up).works().out
    logged = run_process("logs", home=up).works().out
    assert key not in logged
    assert path not in logged


def test_open_says_how_to_build_pages_that_are_not_built(up: Path, tmp_path: Path):
    told = run_process("open", "--print", home=up).works().err
    assert ("python explorer/build.py" in told) is not explorer_build.is_built()
    assert not explorer_build.is_built(tmp_path)


def test_open_leads_to_a_page_or_an_item(up: Path):
    id_ = run_process("remember", "The port is 8080", home=up).works().out.strip()

    def leads_to(target: str) -> str:
        url = run_process("open", target, "--print", home=up).works().out.strip()
        reply = ask(up, "GET", url.split("/", 3)[3].join(("/", "")))
        assert reply.status == 303
        return str(reply.getheader("location"))

    assert leads_to("graph") == "/graph"
    assert leads_to(id_[:13]) == f"/fragments/{id_}"
    assert leads_to("/search?q=port") == "/search?q=port"
    assert leads_to("//evil.example") == "/"
    missing = run_process("open", "0123abcd", "--print", home=up)
    missing.fails_with(NotFound.exit_code)
    assert "Pages: search" in missing.err


def test_a_daemon_stops_with_connections_open_and_leaves_no_address(up: Path):
    found = find_address(str(up))
    assert found
    idle = [socket.create_connection((found.host, found.port), 10) for _ in range(5)]
    key = (up / "access.key").read_text().strip()
    for client in idle[1:]:
        client.sendall(f"GET /api/v1/stats HTTP/1.1\r\nhost: x\r\nx-lore-key: {key}\r\n".encode())
    assert "has stopped" in run_process("down", home=up).works().out
    assert not (up / SERVER_FILE).exists()
    for client in idle:
        client.close()


def test_the_address_of_a_killed_daemon_is_ignored(up: Path):
    holder = daemon_lock.find_holder(up)
    assert holder
    os.kill(holder.pid, signal.SIGKILL)
    lore = Lore(up)
    while daemon_lock.find_holder(up) is not None:
        pass
    assert (up / SERVER_FILE).exists()
    lore("open", "--print").fails_with(DaemonError.exit_code)
    assert json.loads(lore("status", "--json").works().out)["server"] == ""
