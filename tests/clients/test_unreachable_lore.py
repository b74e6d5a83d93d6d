"""Lore that does not answer: the agent goes on as if there were none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.proxy.address import SERVER_FILE
from lore.proxy.hook_client import HOOK_EVENTS
from tests.clients import claude_code
from tests.clients.machine import BIN, PLUGIN, Machine, find_client, json_texts, write_repository
from tests.upstream import ModelReply, Scene, SceneScript, running_upstream

ASK = "How tall is the lighthouse?"
SCENES = (Scene(ASK, (ModelReply("Thirty metres."),)),)


@pytest.fixture
def machine(tmp_path) -> Iterator[Machine]:
    with running_upstream(SceneScript(SCENES)) as upstream:
        machine = Machine(tmp_path / "person", tmp_path / "lore", upstream)
        machine.changes["LORE_MCP_START"] = "false"
        write_repository(machine.home / "code" / "almanac")
        try:
            yield machine
        finally:
            machine.stop()


def kill(machine: Machine) -> None:
    """Kill Lore as a machine that runs out of memory does; its files stay."""
    machine.start()
    os.kill(machine.pid, signal.SIGKILL)
    assert (machine.lore_home / SERVER_FILE).exists()


def spoil(machine: Machine) -> None:
    """Make a home that cannot be opened."""
    machine.lore_home.write_text("a file where the home should be")


def lose(machine: Machine) -> None:
    """Take the command away, as if the plugin were installed alone."""
    parts = os.environ["PATH"].split(os.pathsep)
    machine.changes["PATH"] = os.pathsep.join(p for p in parts if not Path(p, "lore").exists())


@pytest.mark.parametrize("harm", [kill, spoil, lose], ids=["killed", "unopenable", "not there"])
def test_a_prompt_goes_through_unchanged(machine, harm):
    find_client("claude")
    harm(machine)
    client = machine.client("claude", claude_code, machine.home / "code" / "almanac")
    words = ("-p", "--output-format", "json", "--plugin-dir", str(PLUGIN))
    done = client.run(*words, input=ASK)
    assert done.status == 0, done
    assert json.loads(done.stdout)["result"] == "Thirty metres."
    (asked,) = machine.requests(ASK)
    assert ASK in json_texts(asked.json)
    assert "lore-memory>" not in "\n".join(json_texts(asked.json))


def hook(machine: Machine, event: str) -> subprocess.CompletedProcess[bytes]:
    told = {"hook_event_name": event, "session_id": "s", "prompt": ASK, "cwd": str(machine.home)}
    return subprocess.run(
        [str(BIN / "lore"), "hook", event], input=json.dumps(told).encode(), capture_output=True,
        env=machine.environment(), timeout=60, check=False,
    )  # fmt: skip


def silent(done: subprocess.CompletedProcess[bytes]) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("harm", [kill, spoil], ids=["killed", "unopenable"])
def test_a_hook_ends_well_and_says_nothing(machine, harm):
    harm(machine)
    assert all(silent(hook(machine, event)) for event in HOOK_EVENTS)


def test_a_hook_does_not_wait_for_a_lore_that_hangs(machine):
    machine.changes["LORE_INJECT_WITHIN_MS"] = "180"
    machine.start()
    os.kill(machine.pid, signal.SIGSTOP)
    try:
        assert all(silent(hook(machine, event)) for event in HOOK_EVENTS)
    finally:
        os.kill(machine.pid, signal.SIGCONT)


def test_a_hook_ends_well_whatever_it_is_told(machine):
    machine.start()
    for told in (b"", b"{", b"[]", b"\xff" * 10, b'{"session_id": 1}', b"x" * 5_000_000):
        done = subprocess.run(
            [str(BIN / "lore"), "hook", "UserPromptSubmit"], input=told, capture_output=True,
            env=machine.environment(), timeout=60, check=False,
        )  # fmt: skip
        assert silent(done), told[:20]
