"""The server as a process: started by its command, stopped gently, killed, full, backed up."""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lore.proxy.address import API_PREFIX
from lore.server.home_backup import back_up
from lore.server.registry import Registry
from tests.cli.conftest import run_process
from tests.waiting import eventually

STORE, FRAGMENTS = f"{API_PREFIX}/tools/store", f"{API_PREFIX}/fragments?limit=500"


@dataclass(frozen=True)
class Running:
    """A server that runs as a process."""

    process: subprocess.Popen[str]
    port: int
    operator: str

    def ask(self, method: str, path: str, key: str, tree: object = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        try:
            body = None if tree is None else json.dumps(tree)
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=60).close()
        except OSError:
            return False
        return True

    def in_flight(self) -> int:
        """Return how many requests are being answered, beside this one."""
        status, figures = self.ask("GET", "/status", self.operator)
        assert status == 200
        return int(figures["in_flight"]) - 1

    def texts(self, key: str) -> set[str]:
        status, page = self.ask("GET", FRAGMENTS, key)
        assert status == 200
        return {item["content"] for item in page["items"]}


@contextmanager
def running(data: Path, *, most_bytes: int | None = None, url: str = "") -> Iterator[Running]:
    """Run 'lore serve' on a folder, or on a database; no file of it may outgrow `most_bytes`."""

    def limit() -> None:
        if most_bytes is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    command = [sys.executable, "-m", "lore.cli", "serve", "--port", "0", "--data", str(data)]
    environ = {**os.environ, "LORE_EMBED_PROVIDER": "none", "LORE_HOME": str(data.parent / "none"),
               "LORE_STORE_URL": url}  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ,
        preexec_fn=limit,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.search(r":(\d+);", line)
            assert found, line
            with Registry.open(data, create=False) as registry:
                operator, _ = registry.create_key("operator", scopes=("read",))
            yield Running(process, int(found[1]), operator)
        finally:
            process.kill()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "server"


@pytest.fixture
def ann(data: Path) -> str:
    with Registry.open(data) as registry:
        registry.add_owner("ann")
        key, _ = registry.create_key("laptop", owner="ann", scopes=("admin",))
    return key


def test_a_server_that_starts_does_not_load_the_mcp_sdk():
    imported = "import lore.server.owner_server, sys; print('mcp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", imported], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_a_stop_lets_work_finish_and_everything_is_there_again(data: Path, ann: str):
    with running(data) as server:
        for i in range(5):
            assert server.ask("POST", STORE, ann, {"content": f"number {i}"})[0] == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    with running(data) as server:
        assert server.texts(ann) == {f"number {i}" for i in range(5)}


def test_a_request_in_progress_finishes_before_the_server_stops(data: Path, ann: str):
    body = json.dumps({"content": "It was half said when the server had to stop."}).encode()
    head = (
        f"POST {STORE} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {ann}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with running(data) as server:
        assert server.ask("GET", "/status", ann)[0] == 200  # the memory is open
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(head.encode() + body[:20])
            eventually(lambda: server.in_flight() >= 1)
            server.process.send_signal(signal.SIGTERM)
            eventually(lambda: not server.listens())
            client.sendall(body[20:])
            assert client.recv(4_096).startswith(b"HTTP/1.1 200")
        assert server.process.wait(60) == 0
    with running(data) as server:
        assert server.texts(ann) == {"It was half said when the server had to stop."}


def test_a_kill_loses_nothing_that_was_answered(data: Path, ann: str):
    for i in range(3):
        with running(data) as server:
            assert server.ask("POST", STORE, ann, {"content": f"number {i}"})[0] == 200
            server.process.kill()
            server.process.wait(60)
    with running(data) as server:
        assert server.texts(ann) == {f"number {i}" for i in range(3)}


def test_a_full_disk_is_said_and_reads_go_on(data: Path, ann: str):
    with running(data) as server:
        assert server.ask("POST", STORE, ann, {"content": "before the disk was full"})[0] == 200
    with running(data, most_bytes=1_200_000) as server:
        answers = [server.ask("POST", STORE, ann, {"content": f"{i} {'x' * 60_000}"})
                   for i in range(40)]  # fmt: skip
        refused = [answer for status, answer in answers if status != 200]
        assert refused
        assert {answer["status"] for answer in refused} <= {503, 507}
        assert all(answer["detail"] for answer in refused)
        assert "before the disk was full" in server.texts(ann)
    stored = {f"{i} {'x' * 60_000}" for i, (status, _) in enumerate(answers) if status == 200}
    with running(data) as server:
        assert stored <= server.texts(ann)


def test_keys_are_made_and_revoked_beside_a_running_server(data: Path, ann: str):
    with running(data) as server:
        made = run_process("owner", "add", "ben", "--data", str(data))
        assert made.code == 0, made.err
        key = run_process("key", "create", "k", "--owner", "ben", "--data", str(data)).out.strip()
        assert server.ask("GET", "/status", key)[0] == 200
        assert run_process("key", "revoke", "k", "--data", str(data)).code == 0
        assert server.ask("GET", "/status", key)[0] == 401
        removed = run_process("owner", "remove", "ann", "--yes", "--data", str(data))
        assert "within a minute" in removed.out
        assert server.ask("GET", "/status", ann)[0] == 401


def test_a_second_server_of_a_home_is_refused(data: Path, ann: str):
    with running(data):
        again = run_process("serve", "--port", "0", "--data", str(data))
        assert again.code == 12
        assert "running already" in again.err


def test_a_backup_of_a_running_server_serves_like_the_original(data: Path, ann: str, tmp_path):
    copy = tmp_path / "copy"
    with running(data) as server:
        server.ask("POST", STORE, ann, {"content": "The harbor gate opens at six."})
        done = run_process("backup", str(copy), "--data", str(data))
        assert done.code == 0, done.err
        assert "1 owner" in done.out
        assert run_process("backup", str(copy), "--data", str(data)).code == 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in copy.rglob("*"))
    with running(copy) as server:
        assert server.texts(ann) == {"The harbor gate opens at six."}


def test_a_backup_does_not_replace_a_file(data: Path, tmp_path: Path):
    from lore.errors import InvalidInput

    (tmp_path / "notes.txt").write_text("mine")
    with Registry.open(data) as registry, pytest.raises(InvalidInput, match="is a file"):
        back_up(registry, tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_backup_that_fails_leaves_nothing(data: Path, ann: str, tmp_path: Path):
    from lore.errors import StoreError

    folder = data / "owners" / ("0" * 64)
    folder.mkdir(parents=True)
    (folder / "memory.db").write_bytes(b"no database at all" * 300)
    with Registry.open(data) as registry, pytest.raises(StoreError):
        back_up(registry, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
