from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from mcp.client.stdio import stdio_client

from lore.cli import quick
from lore.daemon import background, lock
from lore.memory import Memory
from mcp import Client, StdioServerParameters
from tests.cli.conftest import environment

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


def surroundings(home, **more):
    return environment(
        home, LORE_EMBED_PROVIDER="none", LORE_SERVER_PORT="0", HOME=str(home.parent), **more
    )


def command(home):
    return [sys.executable, "-m", "lore.cli", "--home", str(home), "mcp"]


@contextmanager
def bridge(home, **more):
    process = subprocess.Popen(
        command(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=surroundings(home, **more),
    )  # fmt: skip
    with process:
        yield process


def holder_of(home):
    holder = lock.find_holder(home)
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
    parameters = StdioServerParameters(command=program, args=arguments, env=surroundings(home))

    async def run():
        async with Client(stdio_client(parameters), mode=mode) as client:
            return await client.call_tool("recall", {"query": "how do we deploy?"})

    assert "ops/deploy.sh" in asyncio.run(run()).content[0].text
    assert lock.find_holder(home)


def test_a_daemon_that_was_killed_is_started_again(home):
    with bridge(home) as process:
        assert "result" in ask(process, INITIALIZE)
        first = holder_of(home)
        os.kill(first, signal.SIGKILL)
        while lock.find_holder(home):
            pass
        answer = ask(process, recall(2))
        assert "ops/deploy.sh" in answer["result"]["content"][0]["text"]
        assert holder_of(home) != first


def test_where_no_daemon_may_be_started_the_process_serves_itself(home):
    with bridge(home, LORE_MCP_START="false") as process:
        assert ask(process, INITIALIZE)["result"]["serverInfo"]["name"] == "lore"
        answer = ask(process, recall(2))
        assert "ops/deploy.sh" in answer["result"]["content"][0]["text"]
    assert lock.find_holder(home) is None


def test_a_home_that_cannot_be_opened_leaves_standard_output_alone(tmp_path):
    occupied = tmp_path / "home"
    occupied.write_text("a file")
    done = subprocess.run(
        command(occupied), input=json.dumps(INITIALIZE).encode() + b"\n", capture_output=True,
        env=environment(None, HOME=str(tmp_path)), check=False, timeout=60,
    )  # fmt: skip
    assert not done.stdout
    assert b"Traceback" not in done.stderr
    assert done.stderr.startswith(b"lore: ")
    assert done.returncode > 0


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
def test_the_home_is_an_option_before_the_command(arguments, home, rest):
    assert quick.home_of(arguments) == (home, rest)


def test_the_bridge_loads_nothing_but_the_standard_library(home):
    script = (
        "import sys; before = set(sys.modules); import lore.bridges.mcp, lore.cli.quick;"
        " print([n for n in sys.modules if n not in before and not n.startswith('lore')"
        " and n.split('.')[0] not in sys.stdlib_module_names])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
