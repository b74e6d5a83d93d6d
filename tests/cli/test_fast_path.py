from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from mcp.client.stdio import stdio_client

from lore import __version__
from lore.cli import fast_path
from lore.daemon import daemon_lock
from lore.daemon import process as background
from lore.mcp import handshake_builder
from lore.memory import Memory
from lore.proxy import address, cached_handshake
from lore.proxy.cached_handshake import HANDSHAKE_FILE
from lore.proxy.hook_client import START_LOCK_FILE
from lore.settings import load
from mcp import Client, StdioServerParameters
from tests.cli.conftest import environment
from tests.fakes import NOON

INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}  # fmt: skip


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "home"
    with Memory.open(path) as memory:
        memory.store("Deploys go through ops/deploy.sh")
    yield path
    background.stop(path, force=True)


def daemon_environment(home, **more):
    return environment(
        home, LORE_EMBED_PROVIDER="none", LORE_SERVER_PORT="0", HOME=str(home.parent), **more
    )


def command(home):
    return [sys.executable, "-m", "lore.cli", "--home", str(home), "mcp"]


@contextmanager
def running_proxy(home, **more):
    process = subprocess.Popen(
        command(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=daemon_environment(home, **more),
    )  # fmt: skip
    with process:
        yield process


def holder_of(home):
    holder = daemon_lock.find_holder(home)
    assert holder
    return holder.pid


def ask(process, message):
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def recall(id_):
    params = {"name": "recall", "arguments": {"query": "how do we deploy?"}}
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_is_served_over_standard_streams(home, mode):
    program, *arguments = command(home)
    parameters = StdioServerParameters(
        command=program, args=arguments, env=daemon_environment(home)
    )

    async def run():
        async with Client(stdio_client(parameters), mode=mode) as client:
            return await client.call_tool("recall", {"query": "how do we deploy?"})

    assert "ops/deploy.sh" in asyncio.run(run()).content[0].text
    assert daemon_lock.find_holder(home)


def test_a_killed_daemon_is_restarted(home):
    with running_proxy(home) as process:
        assert "result" in ask(process, INITIALIZE)
        first = holder_of(home)
        os.kill(first, signal.SIGKILL)
        while daemon_lock.find_holder(home):
            pass
        answer = ask(process, recall(2))
        assert "ops/deploy.sh" in answer["result"]["content"][0]["text"]
        assert holder_of(home) != first


def test_one_of_many_concurrent_agents_starts_the_daemon(home):
    with ExitStack() as stack:
        processes = [stack.enter_context(running_proxy(home)) for _ in range(4)]
        for process in processes:
            assert "result" in ask(process, INITIALIZE)
        told = b"".join(process.communicate(timeout=60)[1] for process in processes)
    assert told.count(b"Lore is") == 1, told


def test_a_waiting_process_starts_the_daemon_within_its_remaining_time(home):
    turn = os.open(home / START_LOCK_FILE, os.O_WRONLY | os.O_CREAT, 0o600)
    fcntl.flock(turn, fcntl.LOCK_EX)
    paused: list[float] = []
    told: list[tuple[str, float]] = []

    def pause(seconds):
        assert not told
        paused.append(time.monotonic())
        time.sleep(seconds)
        if len(paused) == 3:
            os.close(turn)  # as the end of the one that started it

    begun = time.monotonic()
    assert fast_path.start_daemon(str(home), lambda *given: told.append(given), pause) is None
    assert len(paused) == 3
    [(started, until)] = told
    assert started == str(home)
    assert begun + fast_path._WHOLE_S <= until <= paused[0] + fast_path._WHOLE_S


def test_a_process_past_its_deadline_starts_no_daemon(home):
    assert fast_path.start_daemon_process(str(home), time.monotonic()) is None
    assert daemon_lock.find_holder(home) is None


def test_a_pipe_in_place_of_the_start_lock_does_not_block(home):
    told: list[object] = []
    os.mkfifo(home / START_LOCK_FILE)
    assert fast_path.start_daemon(str(home), lambda *given: told.append(given)) is None
    assert len(told) == 1


def test_mcp_serves_by_itself_if_no_daemon_may_be_started(home):
    with running_proxy(home, LORE_MCP_START="false") as process:
        assert ask(process, INITIALIZE)["result"]["serverInfo"]["name"] == "lore"
        answer = ask(process, recall(2))
        assert "ops/deploy.sh" in answer["result"]["content"][0]["text"]
    assert daemon_lock.find_holder(home) is None


def write_file_as_home(home):
    home.write_text("a file")


def write_invalid_settings(home):
    home.mkdir()
    (home / "config.toml").write_text("no toml")


def overwrite(home):
    home.mkdir()
    (home / "memory.db").write_bytes(b"no database" * 1_000)


@pytest.mark.parametrize("spoil", [write_file_as_home, write_invalid_settings])
def test_mcp_reports_once_why_the_home_cannot_be_opened(tmp_path, spoil):
    spoilt = tmp_path / "home"
    spoil(spoilt)
    with subprocess.Popen(
        command(spoilt), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(None, HOME=str(tmp_path)),
    ) as process:  # fmt: skip
        answer = ask(process, INITIALIZE)
        _, told = process.communicate()
    assert answer["id"] == 1
    assert answer["error"]["message"]
    assert process.returncode > 0
    assert b"Traceback" not in told
    assert told.startswith(b"lore: ")
    assert told.count(b"lore: ") == 1


def test_the_first_call_reports_a_damaged_memory(tmp_path):
    spoilt = tmp_path / "home"
    overwrite(spoilt)
    call = {"name": "recall", "arguments": {"query": "x"}}
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    with subprocess.Popen(
        command(spoilt), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(None, HOME=str(tmp_path)),
    ) as process:  # fmt: skip
        ask(process, INITIALIZE)
        answer = ask(process, asked)
        _, told = process.communicate()
    background.stop(spoilt, force=True)
    assert "is damaged" in answer["error"]["message"]
    assert b"Traceback" not in told
    assert b"without memory" in told


@pytest.mark.parametrize("words", [("mcp",), ("hook", "SessionStart"), ("status",)])
def test_an_empty_home_variable_gives_no_home(words):
    done = subprocess.run(
        [sys.executable, "-m", "lore.cli", *words], capture_output=True, input=b"{}",
        env=environment(None, HOME=""), check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode == 0) is (words[0] == "hook")
    assert not os.path.lexists("/.lore")


LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


def cache_handshake(home, **changes):
    settings = replace(load({}, home=home).settings, **changes)
    return handshake_builder.ensure_saved(settings)


def tools(process):
    answer = ask(process, {"jsonrpc": "2.0", "id": 5, "method": "tools/list"})
    return {tool["name"] for tool in answer["result"]["tools"]}


def test_mcp_answers_the_handshake_before_the_daemon_runs(home):
    cache_handshake(home)
    held = daemon_lock.take_lock(home, now=NOON, version="test")  # so that none can be there
    with running_proxy(home) as process:
        assert ask(process, INITIALIZE)["result"]["serverInfo"]["name"] == "lore"
        for method in LISTS:
            assert ask(process, {"jsonrpc": "2.0", "id": method, "method": method})["result"]
        held.release()
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stdout.read() == b""


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_accepts_the_cached_handshake(home, mode):
    cache_handshake(home)
    program, *arguments = command(home)
    parameters = StdioServerParameters(
        command=program, args=arguments, env=daemon_environment(home)
    )

    async def run():
        async with Client(stdio_client(parameters), mode=mode) as client:
            listed = await client.list_tools()
            found = await client.call_tool("recall", {"query": "how do we deploy?"})
            return {tool.name for tool in listed.tools}, found

    names, found = asyncio.run(run())
    assert "recall" in names
    assert "ops/deploy.sh" in found.content[0].text


def test_a_handshake_of_other_settings_is_not_used(home):
    cache_handshake(home, mcp_aliases=True)
    with running_proxy(home) as process:
        ask(process, INITIALIZE)
        assert "query_memory" not in tools(process)


def test_the_handshake_of_the_running_daemon_is_used(home):
    background_env = daemon_environment(home, LORE_MCP_ALIASES="true")
    subprocess.run(
        [sys.executable, "-m", "lore.cli", "--home", str(home), "up", "--detach"],
        env=background_env, check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    found = address.find_address(str(home))
    assert found
    settings = replace(load({}, home=home).settings, mcp_aliases=True)
    assert found.handshake_mark == cached_handshake.fingerprint(__version__, settings)
    with running_proxy(home) as process:
        ask(process, INITIALIZE)
        assert "query_memory" in tools(process)


def test_a_hung_daemon_is_reported_without_waiting(home):
    with running_proxy(home) as process:
        ask(process, INITIALIZE)
        assert "result" in ask(process, recall(2))
        pid = holder_of(home)
        os.kill(pid, signal.SIGSTOP)
        try:
            assert "recall" in tools(process)
            assert "lore down --force" in ask(process, recall(3))["error"]["message"]
        finally:
            os.kill(pid, signal.SIGCONT)
        assert "result" in ask(process, recall(4))


def test_the_cached_handshake_is_deleted_if_the_daemon_cannot_start(home):
    cache_handshake(home)
    held = daemon_lock.take_lock(home, now=NOON, version="test")
    try:
        with running_proxy(home) as process:
            assert "result" in ask(process, INITIALIZE)
            assert "lore status" in ask(process, recall(2))["error"]["message"]
    finally:
        held.release()
    assert not (home / HANDSHAKE_FILE).exists()


@pytest.mark.parametrize(
    ("arguments", "home", "rest"),
    [
        (["mcp"], "", ["mcp"]),
        (["--home", "/h", "mcp"], "/h", ["mcp"]),
        (["--home=/h", "hook", "Stop"], "/h", ["hook", "Stop"]),
        (["--home"], "", []),
        ([], "", []),
    ],
)
def test_the_home_option_stands_before_the_command(arguments, home, rest):
    assert fast_path.home_of(arguments) == (home, rest)


def test_the_proxy_loads_only_the_standard_library(home):
    script = (
        "import sys; before = set(sys.modules); import lore.proxy.stdio_proxy, lore.cli.fast_path;"
        " print([n for n in sys.modules if n not in before and not n.startswith('lore')"
        " and n.split('.')[0] not in sys.stdlib_module_names])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
