"""`lore gateway`, and agents that `lore run` lets talk through it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore.daemon import status_file
from lore.proxy.address import Address, find_address
from tests.cli.conftest import PROGRAM, Lore, environment, run_process
from tests.gateway.faulty_upstream import HEAD, LAST, Peer, chunk, faulty
from tests.gateway.gateway_server import HELLO
from tests.homes import keep_handshake
from tests.upstream import Upstream, running_upstream
from tests.waiting import PATIENCE_S, eventually

TELL = f"""#!{sys.executable}
import json, os, sys
print(json.dumps({{"words": sys.argv[1:], "environ": dict(os.environ)}}))
"""
ASK = f"""#!{sys.executable}
import json, os, urllib.request
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
    {json.dumps(HELLO).encode()!r},
    dict(line.split(": ", 1) for line in os.environ["ANTHROPIC_CUSTOM_HEADERS"].splitlines()),
)
print(urllib.request.urlopen(request).read().decode())
"""


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """Return a folder with programs that are called like agents and tell how they are run."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("claude", "codex", "opencode"):
        (folder / name).write_text(TELL)
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Address, Upstream]]:
    """Run a daemon whose gateway leads to a scripted upstream."""
    home = tmp_path_factory.mktemp("home")
    with running_upstream() as up, running(home, up.url):
        found = find_address(str(home))
        assert found
        yield home, found, up


class running:  # noqa: N801 - reads as what it is: a block in which a daemon runs
    """A daemon as a process of its own."""

    def __init__(self, home: Path, url: str) -> None:
        (home / "config.toml").write_text(
            f'[gateway]\nanthropic_url = "{url}"\nopenai_url = "{url}"\nrecall = "off"\n'
            "[server]\nport = 0\n"
        )
        keep_handshake(home)
        self.process = subprocess.Popen([*PROGRAM, "up"], env=environment(home))
        eventually(lambda: find_address(str(home)))

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)


def run(home: Path, agents: Path, *words: str, **env: str) -> dict[str, Any]:
    path = os.pathsep.join([str(agents), os.environ["PATH"]])
    done = run_process("run", *words, home=home, env={"PATH": path, **env}, cwd=agents)
    assert done.code == 0, done.err
    told: dict[str, Any] = {**json.loads(done.out), "err": done.err}
    return told


def test_gateway_without_a_daemon_says_how_to_start_one(lore: Lore):
    assert "'lore up --detach' starts it" in lore("gateway").works().out
    told = json.loads(lore("gateway", "--json").works().out)
    assert (told["on"], told["running"], told["url"]) == (True, False, "http://127.0.0.1:3207")
    assert told["clients"]["openai"] == {"OPENAI_BASE_URL": "http://127.0.0.1:3207/v1"}


@pytest.mark.parametrize(
    ("host", "url", "needs_key"),
    [
        ("::1", "http://[::1]:3207", False),
        ("localhost", "http://localhost:3207", False),
        ("0.0.0.0", "http://0.0.0.0:3207", True),
    ],
)
def test_a_stopped_gateway_is_shown_with_its_configured_address(lore: Lore, host, url, needs_key):
    told = json.loads(lore("gateway", "--json", env={"LORE_SERVER_HOST": host}).works().out)
    assert (told["url"], told["needs_key"]) == (url, needs_key)


def test_a_disabled_gateway_says_how_to_turn_it_on(lore: Lore):
    off = {"LORE_GATEWAY_ON": "false"}
    assert "lore config gateway.on true" in lore("gateway", env=off).works().out
    assert not json.loads(lore("gateway", "--json", env=off).works().out)["on"]


def test_gateway_shows_the_address_in_use(daemon: tuple[Path, Address, Upstream]):
    home, found, up = daemon
    told = json.loads(run_process("gateway", "--json", home=home).out)
    assert told["running"]
    assert told["url"] == f"http://127.0.0.1:{found.port}"
    assert told["upstreams"]["anthropic"] == up.url


def test_claude_code_uses_the_gateway_and_sends_its_project(
    daemon: tuple[Path, Address, Upstream], agents: Path
):
    home, _, _ = daemon
    told = run(home, agents, "claude", "-p", "hello", "--no-gateway")
    assert told["words"][-3:] == ["-p", "hello", "--no-gateway"]
    assert told["environ"]["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    assert told["environ"]["ANTHROPIC_CUSTOM_HEADERS"] == f"x-lore-project: {agents}"


def test_custom_headers_of_the_user_are_kept(daemon: tuple[Path, Address, Upstream], agents: Path):
    home, _, _ = daemon
    told = run(home, agents, "claude", ANTHROPIC_CUSTOM_HEADERS="x-team: blue\nx-lore-project: /x")
    assert told["environ"]["ANTHROPIC_CUSTOM_HEADERS"].splitlines() == [
        "x-team: blue",
        f"x-lore-project: {agents}",
    ]


def test_a_base_url_of_the_user_is_kept(daemon: tuple[Path, Address, Upstream], agents: Path):
    home, _, _ = daemon
    told = run(home, agents, "claude", ANTHROPIC_BASE_URL="https://proxy.example")
    assert told["environ"]["ANTHROPIC_BASE_URL"] == "https://proxy.example"
    assert "does not use the gateway" in told["err"]


def test_codex_and_opencode_use_the_gateway(daemon: tuple[Path, Address, Upstream], agents: Path):
    home, _, _ = daemon
    words = " ".join(run(home, agents, "codex")["words"])
    assert re.search(r'openai_base_url="http://127\.0\.0\.1:\d+/v1"', words)
    told = json.loads(run(home, agents, "opencode")["environ"]["OPENCODE_CONFIG_CONTENT"])
    options = {name: given["options"] for name, given in told["provider"].items()}
    url = options["openai"]["baseURL"].removesuffix("/v1")
    assert {name: given["baseURL"] for name, given in options.items()} == {
        "anthropic": f"{url}/v1",
        "openai": f"{url}/v1",
        "google": f"{url}/v1beta",
    }
    assert options["anthropic"]["headers"] == {"x-lore-project": str(agents)}


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
def test_an_agent_can_run_without_the_gateway(
    daemon: tuple[Path, Address, Upstream], agents: Path, agent: str
):
    home, found, _ = daemon
    for told in (
        run(home, agents, "--no-gateway", agent),
        run(home, agents, agent, LORE_GATEWAY_ON="false"),
    ):
        assert "http://127.0.0.1:" not in json.dumps(told["words"])
        assert "ANTHROPIC_BASE_URL" not in told["environ"]
        assert f":{found.port}" not in json.dumps(told)


def test_without_a_daemon_an_agent_runs_without_the_gateway(tmp_path: Path, agents: Path):
    told = run(tmp_path / "home", agents, "claude", LORE_MCP_START="false")
    assert "ANTHROPIC_BASE_URL" not in told["environ"]
    assert "does not use the gateway" in told["err"]


def test_requests_of_an_agent_reach_its_model(daemon: tuple[Path, Address, Upstream], agents: Path):
    home, _, up = daemon
    (agents / "claude").write_text(ASK)
    path = os.pathsep.join([str(agents), os.environ["PATH"]])
    done = run_process("run", "claude", home=home, env={"PATH": path}, cwd=agents)
    assert "Understood." in done.out, done.err
    assert up.model_requests[-1].json == HELLO
    assert not up.rejected


ASK_ON = f"""#!{sys.executable}
import json, os, sys, urllib.request
for _ in sys.stdin:
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        {json.dumps(HELLO).encode()!r},
        dict(line.split(": ", 1) for line in os.environ["ANTHROPIC_CUSTOM_HEADERS"].splitlines()),
    )
    with urllib.request.urlopen(request) as answer:
        print(answer.headers.get("x-lore-degraded", "memory"), answer.read().decode(), flush=True)
"""


class talking:  # noqa: N801 - reads as what it is: a block in which an agent talks
    """An agent that `lore run` has started; it asks its model for every line that it reads."""

    def __init__(self, home: Path, agents: Path, **env: str) -> None:
        (agents / "claude").write_text(ASK_ON)
        path = os.pathsep.join([str(agents), os.environ["PATH"]])
        self.process = subprocess.Popen(
            [*PROGRAM, "run", "claude"],
            env=environment(home, PATH=path, **env),
            cwd=agents,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self) -> str:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def __enter__(self) -> talking:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=60)


def test_an_agent_goes_on_when_its_daemon_is_killed(tmp_path: Path, agents: Path):
    home = tmp_path / "home"
    home.mkdir()
    with running_upstream() as up:
        with running(home, up.url) as daemon, talking(home, agents) as agent:
            assert "Understood." in agent.ask()
            first = find_address(str(home))
            daemon.kill()
            daemon.wait(60)
            for _ in range(3):
                answer = agent.ask()
                assert "Understood." in answer
                assert answer.startswith("memory")
            assert find_address(str(home)) is not None
            assert first is not None
            stopped = run_process("down", home=home)
            assert "1 agent" in stopped.err
            assert "An agent uses the gateway" not in stopped.err
            answer = agent.ask()  # the user has stopped Lore: the agent goes on without it
            assert "Understood." in answer
            assert answer.startswith("DaemonError")
            assert find_address(str(home)) is None
        assert not up.rejected
    eventually(lambda: not list(home.glob("relay-*")))


def test_stopping_warns_of_agents_that_need_the_gateway(tmp_path: Path):
    with running_upstream() as up, running(tmp_path, up.url) as daemon:
        found = find_address(str(tmp_path))
        assert found
        request = urllib.request.Request(
            f"http://127.0.0.1:{found.port}/v1/messages", json.dumps(HELLO).encode()
        )
        request.add_header("x-api-key", "of a client")
        urllib.request.urlopen(request).close()
        eventually(lambda: status_file.read(tmp_path).last_direct_at)
        assert "An agent uses the gateway" in run_process("down", home=tmp_path).works().err
        daemon.wait(60)
        assert run_process("down", home=tmp_path).works().err == ""


def test_a_request_under_way_waits_for_the_next_daemon(tmp_path: Path, agents: Path):
    home = tmp_path / "home"
    home.mkdir()
    received = list[bytes]()
    may_answer = threading.Event()

    def answer(peer: Peer) -> None:
        received.append(peer.request)
        if may_answer.wait(PATIENCE_S if len(received) == 1 else 0) or len(received) > 1:
            body = b'{"content": [{"type": "text", "text": "Understood."}]}'
            peer.send(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
                b"content-length: %d\r\n\r\n" % len(body) + body
            )

    with faulty(answer) as up, running(home, up.url) as daemon, talking(home, agents) as agent:
        answers = list[str]()
        asking = threading.Thread(target=lambda: answers.append(agent.ask()))
        asking.start()
        eventually(lambda: received)
        daemon.kill()
        daemon.wait(60)
        asking.join(60)
        assert "Understood." in answers[0]
        may_answer.set()
        run_process("down", home=home)


def test_an_agent_goes_on_when_no_daemon_can_be_started(tmp_path: Path, agents: Path):
    home = tmp_path / "home"
    home.mkdir()
    with running_upstream() as up, running(home, up.url) as daemon:
        with talking(home, agents) as agent:
            assert agent.ask().startswith("memory")
            config = home / "config.toml"
            config.write_text(config.read_text() + "[mcp]\nstart = false\n")
            daemon.kill()
            daemon.wait(60)
            assert "Understood." in agent.ask()
        assert not up.rejected


def test_a_stopping_daemon_ends_its_streams(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    left: list[bool] = []

    def talk(peer: Peer) -> None:
        peer.send(HEAD + chunk(b"data: 1\n\n"))
        left.append(peer.wait_until_left())

    body = json.dumps(HELLO).encode()
    with faulty(talk) as up, running(home, up.url) as process:
        found = find_address(str(home))
        assert found
        with socket.create_connection((found.host, found.port), 30) as client:
            client.sendall(
                b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: "
                + str(len(body)).encode()
                + b"\r\n\r\n"
                + body
            )
            received = b""
            while b"data: 1" not in received:
                received += client.recv(65_536)
            process.send_signal(signal.SIGTERM)
            while more := client.recv(65_536):
                received += more
            assert not received.endswith(LAST)
        assert process.wait(60) == 0
        assert eventually(lambda: left) == [True]
