"""A memory that cannot be opened: agents still reach their models, and it comes back by itself."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lore.daemon import daemon_lock
from lore.proxy.address import KEY_FILE
from tests.cli.conftest import Outcome, environment, run_process
from tests.gateway.gateway_server import HELLO
from tests.homes import keep_handshake
from tests.http_api.live_server import Reply
from tests.upstream import Upstream, running_upstream
from tests.waiting import PATIENCE_S, eventually

FACT = "the heron nests at the quay"

PROVIDER = {"content-type": "application/json", "x-api-key": "sk-ant-of-the-client"}

STRANGER = 65_534
"""The user that owns nothing."""

ASKING = """
import encodings.idna, http.client, os, sys
os.setuid(int(sys.argv[2]))
line = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
line.request("POST", "/v1/messages", b"{}", {"content-type": "application/json"})
print(line.getresponse().status)
"""


@dataclass(frozen=True)
class Place:
    """A home and its daemon, before a scripted upstream."""

    home: Path
    port: int
    up: Upstream
    changes: Mapping[str, str]

    def lore(self, *arguments: str, **changes: str) -> Outcome:
        """Run a command."""
        urls = {f"LORE_GATEWAY_{name}_URL": self.up.url for name in ("ANTHROPIC", "OPENAI")}
        env = {**urls, "LORE_SERVER_PORT": str(self.port), **self.changes, **changes}
        return run_process(*arguments, home=self.home, env=env)

    def ask(
        self, method: str, path: str, body: Any = None, where: str = "127.0.0.1", **headers: str
    ) -> Reply:
        """Ask the server, as a client does."""
        line = http.client.HTTPConnection(where, self.port, timeout=PATIENCE_S)
        spelt = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            given = None if body is None else json.dumps(body).encode()
            line.request(method, path, given, spelt)
            told = line.getresponse()
            names = {name.lower(): value for name, value in told.getheaders()}
            return Reply(told.status, names, told.read())
        finally:
            line.close()

    def hello(self, **headers: str) -> Reply:
        """Ask a model for something."""
        return self.ask("POST", "/v1/messages", HELLO, **PROVIDER, **headers)

    def state(self) -> str:
        """Return what the daemon says that it does."""
        return str(json.loads(self.lore("status", "--json").works().out)["state"])

    @property
    def key(self) -> str:
        return (self.home / KEY_FILE).read_text().strip()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def make_place(home: Path, up: Upstream, **changes: str) -> Place:
    place = Place(home, free_port(), up, changes)
    place.lore("remember", FACT, "--everywhere").works()
    keep_handshake(home)
    return place


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served


@pytest.fixture
def place(tmp_path: Path, up: Upstream) -> Iterator[Place]:
    made = make_place(tmp_path / "home", up)
    yield made
    made.lore("down", "--force")


def damage(home: Path) -> Path:
    """Overwrite the beginning of a database; return a good copy of it."""
    good = home.parent / "good.db"
    shutil.copyfile(home / "memory.db", good)
    with (home / "memory.db").open("r+b") as file:
        file.write(b"\xa5" * 16_384)
    return good


def test_with_a_damaged_memory_requests_pass_and_the_mended_one_comes_back(place: Place):
    good = damage(place.home)
    started = place.lore("up", "--detach").works()
    assert "without memory" in started.out
    assert "damaged" in started.err
    assert "lore doctor" in started.err
    before = len(place.up.requests)
    answered = place.hello()
    assert answered.status == 200
    assert answered.headers["x-lore-degraded"] == "StoreDamaged"
    assert answered.json["content"][0]["text"] == "Understood."
    (asked,) = place.up.requests[before:]
    assert json.loads(asked.body) == HELLO
    assert asked.header("x-api-key") == PROVIDER["x-api-key"]
    assert place.ask("GET", "/v1/models", x_api_key="k").headers["x-lore-degraded"]
    assert place.state() == "passing"
    assert "damaged" in place.lore("status").works().out
    assert "broken" in place.lore("doctor").out
    pid = daemon_lock.find_holder(place.home)
    good.replace(place.home / "memory.db")
    eventually(lambda: "x-lore-degraded" not in place.hello().headers, every_s=0.5)
    told = place.ask("GET", "/api/v1/stats", x_lore_key=place.key)
    assert told.status == 200, told
    assert FACT in place.lore("search", "heron").works().out
    assert pid == daemon_lock.find_holder(place.home)
    assert "stopped" in place.lore("down").works().out


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/api/v1/stats"), ("POST", "/mcp"), ("GET", "/metrics"),
     ("POST", "/api/v1/hooks/UserPromptSubmit"), ("GET", "/sse"), ("GET", "/login")],
)  # fmt: skip
@pytest.mark.parametrize("with_key", [True, False])
def test_every_other_door_says_what_is_wrong(passing: Place, method: str, path: str, with_key):
    known = {"x_lore_key": passing.key} if with_key else {}
    told = passing.ask(method, path, {} if method == "POST" else None, **known)
    assert told.status == 503
    assert told.headers["content-type"] == "application/problem+json"
    if with_key:
        assert told.json["code"] == "StoreDamaged"
        assert "lore doctor" in told.json["hint"]
    elif path != "/login":
        assert str(passing.home) not in told.body.decode()


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory, up: Upstream) -> Iterator[Place]:
    made = make_place(tmp_path_factory.mktemp("passing") / "home", up, LORE_SERVER_HOST="0.0.0.0")
    made.lore("up", "--detach").works()
    made.lore("down").works()
    damage(made.home)
    made.lore("up", "--detach").works()
    yield made
    made.lore("down", "--force")


def test_the_server_itself_is_well(passing: Place):
    assert passing.ask("GET", "/health").status == 200
    assert passing.lore("hook", "UserPromptSubmit").works().out == ""


def test_a_foreign_host_and_a_page_in_a_browser_stay_outside(passing: Place):
    assert (
        passing.ask("POST", "/v1/messages", HELLO, **PROVIDER, origin="http://evil.example").status
        == 403
    )
    line = http.client.HTTPConnection("127.0.0.1", passing.port, timeout=30)
    line.request("POST", "/v1/messages", b"{}", {"host": "evil.example"})
    assert line.getresponse().status == 403
    line.close()


def own_address() -> str:
    """Return an address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        try:
            found.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no network")
        return str(found.getsockname()[0])


def test_from_another_machine_no_key_that_cannot_be_checked_lets_in(passing: Place):
    there = own_address()
    for headers in ({}, {"x_lore_key": "lore_rw_0123456789"}):
        told = passing.ask(
            "POST", "/v1/messages", HELLO, there, **PROVIDER, **headers, host="localhost"
        )
        assert told.status in (401, 503), told
    known = {"x_lore_key": passing.key, "host": "localhost"}
    assert passing.ask("POST", "/v1/messages", HELLO, there, **PROVIDER, **known).status == 200


def test_another_user_of_the_machine_stays_outside(passing: Place):
    if os.geteuid():
        pytest.skip("to be another user needs root")
    done = subprocess.run(
        [sys.executable, "-S", "-c", ASKING, str(passing.port), str(STRANGER)],
        capture_output=True, text=True, timeout=60, check=False, cwd="/",
    )  # fmt: skip
    assert done.stdout == "401\n", done.stderr


def test_without_a_ledger_the_budget_is_counted_in_the_process(place: Place):
    damage(place.home)
    place.lore("up", "--detach", LORE_DAILY_BUDGET="0.000001").works()
    assert place.hello().status == 200
    eventually(lambda: place.hello().status == 402, every_s=0.2)
    assert place.hello().headers["x-lore-degraded"] == "StoreDamaged"


def test_it_can_be_stopped_and_killed_and_started_again(place: Place):
    good = damage(place.home)
    place.lore("up", "--detach").works()
    assert place.lore("up").code == 12
    assert "already" in place.lore("up", "--detach").works().out
    place.lore("down").works()
    assert place.state() == "stopped"
    place.lore("up", "--detach").works()
    holder = daemon_lock.find_holder(place.home)
    assert holder
    os.kill(holder.pid, signal.SIGKILL)
    eventually(lambda: daemon_lock.find_holder(place.home) is None)
    place.lore("up", "--detach").works()
    assert place.hello().headers["x-lore-degraded"]
    place.lore("down").works()
    good.replace(place.home / "memory.db")
    assert "without" not in place.lore("up", "--detach").works().out
    assert "x-lore-degraded" not in place.hello().headers


def test_in_the_foreground_it_says_so_and_stops_by_signal(place: Place):
    damage(place.home)
    env = environment(place.home, LORE_SERVER_PORT=str(place.port))
    with subprocess.Popen(
        [sys.executable, "-m", "lore.cli", "up"],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stderr
        assert "without memory" in process.stdout.readline()
        assert "damaged" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_without_the_gateway_a_damaged_memory_stops_the_start(place: Place):
    damage(place.home)
    place.lore("up", LORE_GATEWAY_ON="false").fails_with(7)


def fill(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"\0" * 4096)
        except OSError:
            return


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


@pytest.mark.parametrize("used_before", [True, False])
@pytest.mark.parametrize("harm", ["full", "read only"])
def test_on_a_disk_that_takes_nothing_requests_pass_until_it_does(
    disk: Path, up: Upstream, harm: str, used_before: bool
):
    place = make_place(disk / "home", up)
    if used_before:
        place.lore("up", "--detach").works()
        place.lore("down").works()
    if harm == "full":
        fill(disk)
    else:
        remount(disk, "ro")
    try:
        assert "without memory" in place.lore("up", "--detach").works().out
        assert place.lore("up").code == 12
        answered = place.hello()
        assert answered.status == 200
        assert answered.headers["x-lore-degraded"] == (
            "StoreFull" if harm == "full" else "StoreReadOnly"
        )
        assert place.ask("GET", "/api/v1/stats").status == 503
        assert place.state() == "passing"
        if harm == "full":
            (disk / "ballast").unlink()
        else:
            remount(disk, "rw")
        eventually(lambda: "x-lore-degraded" not in place.hello().headers, every_s=0.5)
        assert place.state() != "passing"
    finally:
        place.lore("down", "--force").works()
