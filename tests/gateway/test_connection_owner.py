from __future__ import annotations

import errno
import http.client
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lore.gateway import connection_owner
from lore.http.server import CONNECTION_STATE
from tests.gateway.gateway_server import HELLO, proxied
from tests.upstream import Upstream, running_upstream

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("192.168.1.4", False),
        ("::ffff:192.168.1.4", False),
        ("fe80::1", False),
        ("testclient", False),
        ("", False),
    ],
)
def test_loopback_addresses_are_recognized(address: str, loopback: bool):
    assert connection_owner.is_loopback(address) is loopback


def test_connection_state_has_the_same_key_in_server_and_gateway():
    assert connection_owner.CONNECTION == CONNECTION_STATE


def other(_client: Any, _server: Any) -> int:
    return os.geteuid() + 1


def unknown(_client: Any, _server: Any) -> None:
    return None


@pytest.mark.parametrize("owner", [other, unknown])
def test_other_users_of_the_machine_need_a_key(tmp_path: Path, up: Upstream, owner: Any):
    with proxied(tmp_path, up.url, owner=owner) as gateway:
        came = len(up.requests)
        got = gateway.ask("/v1/messages", HELLO, {"x-api-key": "k"})
        assert got.status == 401
        assert got.json["error"]["type"] == "authentication_error"
        for key in ("", "wrong", "lore_0123456789_x"):
            assert gateway.ask("/v1/messages", HELLO, {"x-lore-key": key}).status == 401
        assert len(up.requests) == came
        reader, _ = gateway.served.memory.access.create_key("reader", scopes=["read"])
        assert gateway.ask("/v1/messages", HELLO, {"x-lore-key": reader}).status == 403
        assert len(up.requests) == came
        assert gateway.ask("/v1/messages", HELLO, {"x-lore-key": gateway.served.key}).status == 200
        assert not up.requests[-1].header("x-lore-key")


def test_wrong_key_is_refused_even_from_the_own_user(tmp_path: Path, up: Upstream):
    with proxied(tmp_path, up.url) as gateway:
        came = len(up.requests)
        assert gateway.ask("/v1/messages", HELLO, {"x-lore-key": "wrong"}).status == 401
        assert len(up.requests) == came


def test_owner_is_looked_up_once_per_connection(tmp_path: Path, up: Upstream):
    looked: list[Any] = []

    def owner(client: Any, server: Any) -> int:
        looked.append((client, server))
        return os.geteuid()

    with proxied(tmp_path, up.url, owner=owner) as gateway:
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", gateway.served.port, timeout=30)
            for _ in range(3):
                connection.request("GET", "/v1/models", headers={"x-api-key": "k"})
                answer = connection.getresponse()
                assert (answer.status, bool(answer.read())) == (200, True)
            connection.close()
    assert len(looked) == 2


def test_failed_owner_lookup_returns_503_and_is_retried(tmp_path: Path, up: Upstream):
    looked: list[Any] = []

    def owner(client: Any, server: Any) -> int:
        looked.append((client, server))
        if len(looked) == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return os.geteuid()

    with proxied(tmp_path, up.url, owner=owner) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.served.port, timeout=30)
        for status in (503, 200, 200):
            connection.request("GET", "/v1/models", headers={"x-api-key": "k"})
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (status, True)
        connection.close()
    assert len(looked) == 2


@LINUX
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_process_of_another_user_is_refused(tmp_path: Path):
    ask = (
        "import encodings.idna, os, socket, sys\n"
        "os.setuid(12345)\n"
        "client = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "client.sendall(b'GET /v1/models HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n')\n"
        "print(client.recv(12).decode())\n"
    )
    with running_upstream() as up, proxied(tmp_path, up.url) as gateway:
        done = subprocess.run(
            [sys.executable, "-I", "-c", ask, str(gateway.served.port)],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert done.stdout.strip() == "HTTP/1.1 401"
        assert not up.requests


def test_requests_from_other_machines_need_a_key(tmp_path: Path, up: Upstream):
    address = _own_address()
    with (
        proxied(tmp_path, up.url, host="0.0.0.0") as gateway,
        socket.create_connection((address, gateway.served.port), 30) as client,
    ):
        client.sendall(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 401")


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        address: str = probe.getsockname()[0]
    if connection_owner.is_loopback(address):
        pytest.skip("this machine has no address but loopback")
    return address
