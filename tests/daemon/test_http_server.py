from __future__ import annotations

import gc
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lore.daemon import log_file
from lore.daemon.http_server import HttpServer
from lore.embed.embedder import NoEmbedder
from lore.http.server import bind
from lore.memory import Memory
from lore.proxy.address import SERVER_FILE
from lore.settings import load
from tests.fakes import FakeEmbedder


class Announcement:
    """What the server announced."""

    def __init__(self) -> None:
        self.url, self.notice = "", ""

    def __call__(self, url: str, notice: str) -> None:
        self.url, self.notice = url, notice


@contextmanager
def memory_at(home: Path, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[Memory]:
    settings = replace(load({}, home=home).settings, server_host=host, server_port=port)
    with Memory.open(config=settings, embedder=NoEmbedder()) as memory:
        yield memory


def status_at(url: str, path: str = "/health") -> int:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


@dataclass(frozen=True)
class OpenServer:
    """An open server and a client of it."""

    memory: Memory
    url: str
    key: str

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=30)
        spelt = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, spelt)
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture(scope="module")
def open_server(tmp_path_factory) -> Iterator[OpenServer]:
    home, told = tmp_path_factory.mktemp("home"), Announcement()
    with memory_at(home) as memory:
        server = HttpServer(memory, told)
        server.open()
        yield OpenServer(memory, told.url, (home / "access.key").read_text().strip())
        assert server.close()


def test_the_address_is_announced_and_removed_at_the_end(tmp_path: Path):
    told = Announcement()
    with memory_at(tmp_path) as memory:
        server = HttpServer(memory, told)
        server.open()
        assert told.notice == ""
        assert status_at(told.url) == 200
        assert status_at(told.url, "/api/v1/stats") == 401
        said = json.loads((tmp_path / SERVER_FILE).read_bytes())
        assert told.url == f"http://{said['host']}:{said['port']}"
        assert server.close()
        assert not (tmp_path / SERVER_FILE).exists()
        with pytest.raises(ConnectionRefusedError):
            status_at(told.url)


def test_the_server_listens_after_warm_up(tmp_path: Path):
    settings = replace(load({}, home=tmp_path).settings, server_port=0)
    embedder = FakeEmbedder(before=lambda _texts: time.sleep(0.5))
    with Memory.open(config=settings, embedder=embedder) as memory:
        server = HttpServer(memory, Announcement())
        server.open()
        assert embedder.asked
        assert memory.budget.load_prices()
        assert server.close()


def test_a_taken_port_is_reported_and_replaced(tmp_path: Path):
    told = Announcement()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with memory_at(tmp_path, port=port) as memory:
            server = HttpServer(memory, told)
            server.open()
            assert f"Port {port} was taken" in told.notice
            assert status_at(told.url) == 200
            assert server.close()


def test_a_replacement_port_is_used_again(tmp_path: Path):
    urls = []
    with socket.create_server(("127.0.0.1", 0)) as other:
        for _ in range(3):
            told = Announcement()
            with memory_at(tmp_path, port=other.getsockname()[1]) as memory:
                server = HttpServer(memory, told)
                server.open()
                assert server.close()
            urls.append(told.url)
        assert len(set(urls)) == 1
        last = int(urls[0].rpartition(":")[2])
        with socket.create_server(("127.0.0.1", last)):
            bound, was_free = bind("127.0.0.1", other.getsockname()[1], last)
            assert bound.getsockname()[1] not in (other.getsockname()[1], last)
            assert not was_free
            bound.close()
        wanted = other.getsockname()[1]
    bound, was_free = bind("127.0.0.1", wanted, last)
    assert (bound.getsockname()[1], was_free) == (last, False)
    bound.close()


@pytest.mark.parametrize("host", ["192.0.2.7", "no.such.host.invalid", "x" * 300, "300.1.1.1"])
def test_a_failed_server_is_reported_and_stops_nothing_else(tmp_path: Path, host: str):
    told = Announcement()
    with memory_at(tmp_path, host=host) as memory:
        server = HttpServer(memory, told)
        server.open()
        assert told.url == ""
        assert told.notice.startswith("The server does not run: ")
        assert not (tmp_path / SERVER_FILE).exists()
        assert memory.maintenance.stats().messages == 0
        assert server.close()


def test_a_wildcard_address_is_announced_as_loopback(tmp_path: Path):
    told = Announcement()
    with memory_at(tmp_path, host="0.0.0.0") as memory:
        server = HttpServer(memory, told)
        server.open()
        assert told.url.startswith("http://127.0.0.1:")
        assert status_at(told.url) == 200
        assert server.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_open_mcp_stream_does_not_delay_the_shutdown(tmp_path: Path):
    told = Announcement()
    with memory_at(tmp_path) as memory:
        server = HttpServer(memory, told)
        server.open()
        host, port = told.url.removeprefix("http://").split(":")
        key = (tmp_path / "access.key").read_text().strip()
        with socket.create_connection((host, int(port)), 10) as stream:
            head = f"GET /sse HTTP/1.1\r\nhost: localhost\r\nx-lore-key: {key}\r\n\r\n"
            stream.sendall(head.encode())
            assert stream.recv(100).startswith(b"HTTP/1.1 200")
            assert server.close()
    gc.collect()  # the SDK leaves the ends of a stream that is cut off to the collector


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages/", "/messages/x", "/mcp/"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_mcp_needs_the_read_scope(open_server: OpenServer, method: str, path: str):
    pusher, _ = open_server.memory.access.create_key("pusher", scopes=["push", "write"])
    assert open_server.ask(method, path) == 401
    assert open_server.ask(method, path, host="evil.example", x_lore_key=open_server.key) == 403
    if path != "/mcp/":
        assert open_server.ask(method, path, x_lore_key=pusher) in (403, 405)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"[" * 100_000, b"null", b'{"jsonrpc": "2.0"}', b'{"id": 1}', b"\xff\xfe",
     b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall",'
     b' "arguments": {"query": 5}}}'],
)  # fmt: skip
def test_no_body_breaks_mcp(open_server: OpenServer, body: bytes):
    kinds = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    assert open_server.ask("POST", "/mcp", body, x_lore_key=open_server.key, **kinds) < 500


def test_a_server_that_never_opened_can_be_closed(tmp_path: Path):
    with memory_at(tmp_path) as memory:
        assert HttpServer(memory, Announcement()).close()


def test_mcp_messages_are_not_logged(open_server: OpenServer, tmp_path: Path):
    known = {"authorization": f"Bearer {open_server.key}", "content_type": "application/json"}
    both = {**known, "accept": "application/json, text/event-stream"}
    canary = "heron-7731"
    close = log_file.open_log(tmp_path, echo=False)
    try:
        open_server.ask("POST", f"/messages/?session_id={canary}%0A2026", b"{}", **known)
        open_server.ask("POST", f"/messages/?session_id={'0' * 32}", canary.encode(), **known)
        for params in ({"name": canary}, {"name": "recall", "arguments": canary}, [canary], canary):
            body = {"jsonrpc": "2.0", "id": canary, "method": "tools/call", "params": params}
            for version in ("2025-06-18", "2026-07-28", canary):
                told = {**both, "mcp_protocol_version": version, "mcp_method": canary}
                open_server.ask("POST", "/mcp", json.dumps(body).encode(), **told)
                body.pop("id", None)
    finally:
        close()
    said = (tmp_path / log_file.LOG_FILE).read_text()
    assert "mcp.server" in said
    assert canary not in said
    assert open_server.key not in said
    assert all(line.startswith("20") and "Z " in line[:22] for line in said.splitlines())


ASKED = """
import json, sys, time
from dataclasses import replace
from pathlib import Path
from lore.daemon.http_server import HttpServer
from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from lore.settings import load
import urllib.request

home, told = Path(sys.argv[1]), []
settings = replace(load({}, home=home).settings, server_port=0)
with Memory.open(config=settings, embedder=NoEmbedder()) as memory:
    server = HttpServer(memory, lambda url, _notice: told.append(url))
    server.open()
    while not told:  # a slow start is not waited for
        time.sleep(0.05)
    key = (home / "access.key").read_text().strip()
    known = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
    get = urllib.request.Request(f"{told[-1]}/api/v1/stats", headers=known)
    urllib.request.urlopen(get).read()
    before = "mcp" in sys.modules
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    known["content-type"] = "application/json"
    ask = urllib.request.Request(f"{told[-1]}/mcp", body, known)
    answers = [json.load(urllib.request.urlopen(ask)) for _ in range(2)]
    print(before, "mcp" in sys.modules, *(len(a["result"]["tools"]) > 5 for a in answers))
    print(server.close())
"""


def test_the_mcp_sdk_is_loaded_on_first_use(tmp_path: Path):
    for loaded in ("True", "False"):  # the first start keeps a greeting for all that follow
        done = subprocess.run(
            [sys.executable, "-c", ASKED, str(tmp_path)],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.stdout.split() == [loaded, "True", "True", "True", "True"], done.stderr
