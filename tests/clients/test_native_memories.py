"""Real agents note something in memories of their own; Lore reads it, and gives it to the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients import claude_code, codex
from tests.clients.client import Client, Run
from tests.clients.gateway_machine import GatewayMachine, running_gateway_machine
from tests.clients.machine import find_client, json_texts, write_repository
from tests.upstream import Call, ModelReply, ReceivedRequest, Text

NOTE_IT = "Note for good that the foghorn hangs on relay K7, please."
ASK = "Which relay does the foghorn hang on?"
AGAIN = "And what is noted about the bell buoy?"
FACT = "The foghorn on Skerry Point hangs on relay K7, below the tower stairs."
ABOUT = "Which relay the foghorn of Skerry Point hangs on"
BELL = "The bell buoy is painted anew every third spring."
NOTE = f"""---
name: foghorn-relay
description: >-
  {ABOUT}
metadata:
  type: project
---

{FACT} See [[bell-buoy]].
"""
_FOLDER = re.compile(r"persistent,? file-based memory (?:system )?(?:at|found at:?) `([^`]+)`")


def memory_folder(asked: ReceivedRequest) -> str:
    """Return the folder that Claude Code tells its model to write memories to."""
    told = _FOLDER.search("\n".join(json_texts(asked.json)))
    assert told, "Claude Code does not tell its model about a memory"
    return told[1]


def note_it(asked: ReceivedRequest) -> ModelReply:
    folder = Path(memory_folder(asked))
    index = f"- [Foghorn relay](foghorn-relay.md) — {ABOUT}\n"
    return ModelReply(
        Text("I will note it."),
        Call("Write", {"file_path": str(folder / "foghorn-relay.md"), "content": NOTE}),
        Call("Write", {"file_path": str(folder / "MEMORY.md"), "content": index}),
    )


CONSOLIDATE = "Consolidate the supplied rollout summaries into `memory_summary.md`"
"""What Codex tells the model that writes its memory, in a session beside the person's."""

MOOR = "We moor the pilot boat at berth nine."
MOORED = "The pilot boat is always moored at berth nine."
SUMMARY = f"""v1

## User Profile

## User preferences

- {MOORED}

## General Tips

## What's in Memory
"""
TIDE = "When is the tide?"

CODEX_MEMORIES = """
[memories]
consolidation_model = "{model}"
extract_model = "{model}"
"""


def write_summary(_asked: ReceivedRequest) -> ModelReply:
    words = f"cat > memory_summary.md <<'EOF'\n{SUMMARY}EOF"
    return ModelReply(Text("I will write it."), Call("exec_command", {"cmd": words}))


SCENES: dict[str, Any] = {
    CONSOLIDATE: (write_summary, ModelReply("Written.")),
    MOOR: (ModelReply("Noted, at berth nine. " * 60, pause_s=0.2),),
    TIDE: (ModelReply("At nine."),),
    NOTE_IT: (note_it, ModelReply("Noted.")),
    ASK: (ModelReply("On relay K7."),),
    AGAIN: (ModelReply("Nothing yet."),),
}


@dataclass
class Story:
    """What was said on a machine, and what its memory has of it."""

    gateway: GatewayMachine
    project: Path
    captured: dict[str, Any]
    runs: list[Run]

    def fragments(self, agent: str = "claude-code") -> list[dict[str, Any]]:
        items = self.gateway.machine.get("/fragments?limit=100")["items"]
        return [one for one in items if one["payload"].get("agent") == agent]


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Iterator[Story]:
    find_client("claude")
    find_client("codex")
    place = tmp_path_factory.mktemp("machine")
    with running_gateway_machine(place, SCENES) as behind:
        machine = behind.machine
        project = write_repository(machine.home / "code" / "harbour")
        claude = machine.client("claude", claude_code, project)
        noted = claude.run(
            "-p", "--output-format", "json", "--allowedTools", "Write", input=NOTE_IT
        )
        captured = json.loads(machine.lore("capture", "--all", "--json").stdout)
        machine.lore("embed")
        machine.start()
        settings = dict(codex.prepare(machine.home, behind.url))
        asked = behind.client("codex", project, settings).run("exec", "--json", "-", input=ASK)
        let_codex_write(behind, project)
        machine.lore("capture", "--all")
        machine.lore("remember", BELL, "--project", str(project))
        shared = ("share", "--native", "claude-code", "--project", str(project), "--yes")
        machine.lore(*shared)
        machine.lore("share", "--native", "codex", "--project", str(project), "--yes")
        tide = direct_codex(behind, project).run("exec", "--json", "-", input=TIDE)
        again = claude.run("-p", "--output-format", "json", input=AGAIN)
        yield Story(behind, project, captured, [noted, asked, tide, again])


def direct_codex(behind: GatewayMachine, project: Path) -> Client:
    """Return a Codex that writes memories and reaches the provider without the gateway."""
    config = behind.machine.home / ".codex" / "config.toml"
    text = codex.CONFIG.format(
        url=behind.up.url, model=codex.MODEL, limit=codex.COMPACT_LIMIT_TOKENS
    ).replace("[features]\n", "[features]\nmemories = true\n")
    config.write_text(text + CODEX_MEMORIES.format(model=codex.MODEL))
    return behind.client("codex", project, {"OPENAI_API_KEY": "dummy-key-for-loopback"})


def let_codex_write(behind: GatewayMachine, project: Path) -> None:
    """Talk to Codex until it has written its memory, which it does while a session goes on."""
    client = direct_codex(behind, project)
    for _ in range(5):
        client.run("exec", "--json", "-", input=MOOR)
        if list((behind.machine.home / ".codex").glob("memories*/memory_summary.md")):
            return
    pytest.fail("Codex wrote no memory")


def test_the_clients_succeed_and_nothing_is_refused(story):
    assert [run.status for run in story.runs] == [0, 0, 0, 0], story.runs
    assert [one.problem for one in story.gateway.up.rejected] == []


def test_the_memory_that_claude_code_wrote_is_a_fragment_with_its_file(story):
    assert story.captured["native"]["added"] == 1
    (note,) = story.fragments()
    assert note["content"].startswith(FACT)
    assert (note["origin"], note["kind"]) == ("assistant", "fact")
    assert note["payload"]["file"].endswith("/memory/foghorn-relay.md")
    assert note["payload"]["links"] == ["bell-buoy"]
    assert note["payload"]["front_matter"]["originSessionId"]
    assert note["session_id"] is not None


def test_codex_is_given_what_claude_code_noted(story):
    (asked, *_) = story.gateway.requests(ASK)
    told = [
        text for one in asked.json["input"] if one.get("role") != "user" for text in json_texts(one)
    ]
    assert any(ABOUT in text or FACT in text for text in told)


def test_the_memory_that_codex_wrote_is_a_preference_for_all_projects(story):
    (note,) = story.fragments("codex")
    assert (note["content"], note["origin"], note["kind"]) == (MOORED, "assistant", "preference")
    assert note["project_id"] is None


def test_what_lore_shares_is_in_the_summary_that_codex_loads(story):
    (asked, *_) = story.gateway.requests(TIDE)
    loaded = "\n".join(json_texts(asked.json))
    assert MOORED in loaded
    assert "[Lore](lore-harbour-" in loaded


def test_what_lore_shares_is_in_the_index_that_claude_code_loads(story):
    (asked, *_) = story.gateway.requests(AGAIN)
    loaded = "\n".join(json_texts(asked.json))
    assert "[Lore](lore.md)" in loaded
    assert "[Foghorn relay](foghorn-relay.md)" in loaded


def test_what_lore_shared_is_not_read_back(story):
    machine = story.gateway.machine
    again = json.loads(machine.lore("capture", "--all", "--json").stdout)
    assert again["native"]["added"] == 0
    folder = Path(story.fragments()[0]["payload"]["file"]).parent
    assert BELL in (folder / "lore.md").read_text()
    undo = ("share", "--native", "claude-code", "--project", str(story.project), "--undo", "--yes")
    machine.lore(*undo)
    assert not (folder / "lore.md").exists()
    assert "lore.md" not in (folder / "MEMORY.md").read_text()
