"""The plugin of opencode calls Lore's hooks, as Node runs it."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from lore.setup import agents
from lore.setup.agents import get_agent

NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node")

START = """
import { LorePlugin } from "./lore.mjs"
const plugin = await LorePlugin({ directory: process.cwd() })
const tell = (type, properties) => plugin.event({ event: { type, properties } })
const create = (id, parentID) => tell("session.created", { info: { id, parentID } })
const ask = (sessionID) =>
  plugin["chat.message"]({ sessionID }, { parts: [{ type: "text", text: "Hi" }], message: {} })
"""


@pytest.fixture
def play(tmp_path):
    """Return a function that plays a scene; it returns which hooks ended which sessions."""
    log = tmp_path / "log"
    log.touch()

    def run(scene, *, then="", limit_ms=60_000):
        hook = tmp_path / "lore"
        hook.write_text(f'#!/bin/sh\nread -r line\necho "$line" >> "{log}"\n{then}\n')
        hook.chmod(0o755)
        edits = get_agent("opencode").edits(tmp_path, (str(hook),))
        plugin = next(one for one in edits if one.path == agents.opencode_plugin(tmp_path))
        text = plugin.put("")
        assert "LIMIT_MS = 5_000" in text
        text = text.replace("LIMIT_MS = 5_000", f"LIMIT_MS = {limit_ms}")
        (tmp_path / "lore.mjs").write_text(text)
        (tmp_path / "scene.mjs").write_text(START + scene)
        subprocess.run([str(NODE), "scene.mjs"], cwd=tmp_path, check=True)
        calls = [json.loads(line) for line in log.read_text().splitlines()]
        return [one["session_id"] for one in calls if one["hook_event_name"] == "SessionEnd"]

    return run


def test_sessions_that_had_a_prompt_are_ended_the_latest_first(play):
    scene = """
await create("a"); await create("b"); await create("unused"); await create("child", "a")
await ask("b"); await ask("child"); await ask("a"); await ask("b")
await tell("session.idle", { sessionID: "b" })
await plugin.dispose()
"""
    assert play(scene) == ["b", "a"]


def test_a_session_is_ended_once(play):
    scene = """
await create("a"); await create("b"); await ask("a"); await ask("b")
await tell("session.deleted", { info: { id: "a" } })
await plugin.dispose(); await plugin.dispose()
"""
    assert play(scene) == ["a", "b"]


def test_all_sessions_share_the_limit_when_opencode_ends(play):
    scene = """
for (const id of ["a", "b", "c"]) { await create(id); await ask(id) }
await plugin.dispose()
"""
    assert len(play(scene, then="exec sleep 60", limit_ms=200)) <= 1
