"""A mistake of one session is not made again: the next agent is warned when its task begins.

The real Claude Code and the real Codex, set up as 'lore setup' does it, against a scripted
provider. The commands really run, and the first one really fails.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients import claude_code, codex
from tests.clients.machine import (
    Machine,
    find_client,
    hook_contexts,
    json_texts,
    write_repository,
)
from tests.house.source import ROOT
from tests.upstream import Call, ModelReply, Scene, SceneScript, running_upstream
from tests.waiting import eventually

MISTAKE = "pytest test_tides.py"
WORKS = "cd tables && pytest test_tides.py"
WARNING = (
    "Running `pytest` outside `tables`, because it does not run in this directory;"
    " instead: run `cd tables` first"
)
SHORT_WARNING = "Running `pytest` outside `tables` fails. Run `cd tables` first."
"""As a session is given it at its start, where there is less room."""

FIRST = "Add leap years to the tide table, and test it."
FIRST_TASK = "Add leap years to the tide table"
CODEX = "Let the tide table begin at midnight, and make sure that it still works."
CLAUDE = "Cover the moon."
CLAUDE_TASK = "Write tests for the new moon"
DONE = "The tests of the tide table pass."
TOOLS = "Bash TaskCreate TaskUpdate"


def run(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "Test"})


def set_status(status: str) -> Call:
    return Call("TaskUpdate", {"taskId": "1", "status": status})


SCENES = (
    Scene(
        FIRST,
        (
            ModelReply(Call("TaskCreate", {"subject": FIRST_TASK, "description": "Leap years"})),
            ModelReply(set_status("in_progress")),
            ModelReply(run("echo 'LEAP = 4' >> tables/tides.py")),
            ModelReply(run(MISTAKE)),
            ModelReply(run("ls")),
            ModelReply(run(WORKS)),
            ModelReply(set_status("completed")),
            ModelReply(DONE),
        ),
    ),
    Scene(
        CODEX,
        (ModelReply(Call("exec_command", {"cmd": "cat tables/tides.py"})), ModelReply(DONE)),
    ),
    Scene(
        CLAUDE,
        (
            ModelReply(Call("TaskCreate", {"subject": CLAUDE_TASK, "description": "Tests"})),
            ModelReply(set_status("in_progress")),
            ModelReply(run(WORKS)),
            ModelReply(set_status("completed")),
            ModelReply(DONE),
        ),
    ),
)


@dataclass(frozen=True)
class Story:
    """The machine on which three sessions worked on a project, one after the other."""

    machine: Machine
    project: Path

    def list_json(self, *command: str) -> list[dict[str, object]]:
        done = self.machine.lore(*command, "--project", str(self.project), "--json")
        listed: list[dict[str, object]] = json.loads(done.stdout)
        return listed


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Iterator[Story]:
    find_client("claude")
    find_client("codex")
    place = tmp_path_factory.mktemp("machine")
    with running_upstream(SceneScript(SCENES)) as upstream:
        machine = Machine(place / "person", place / "lore", upstream)
        project = write_repository(machine.home / "code" / "almanac")
        tables = project / "tables"
        tables.mkdir()
        (tables / "tides.py").write_text("HOURS = 24\n")
        (tables / "test_tides.py").write_text(
            "import tides\n\n\ndef test_day():\n    assert tides.HOURS == 24\n"
        )
        machine.start()
        try:
            yield tell(Story(machine, project))
        finally:
            machine.stop()


def tell(story: Story) -> Story:
    """Hold a session of Claude Code, one of Codex, and another one of Claude Code."""
    (story.machine.home / ".claude").mkdir(parents=True)
    story.machine.lore("setup", "claude-code")
    say_to_claude(story, FIRST)
    eventually(lambda: story.list_json("tasks", "lessons"))
    eventually(lambda: story.machine.get("/stats")["waiting"] == 0)
    say_to_codex(story)
    say_to_claude(story, CLAUDE)
    return story


def say_to_claude(story: Story, prompt: str) -> None:
    client = story.machine.client("claude", claude_code, story.project)
    session = str(uuid.uuid4())
    words = ("-p", "--output-format", "json", "--allowedTools", TOOLS, "--session-id", session)
    done = client.run(*words, input=prompt)
    assert done.status == 0, done
    story.machine.wait_until_indexed(session, DONE)


def say_to_codex(story: Story) -> None:
    client = story.machine.client("codex", codex, story.project)
    story.machine.lore("setup", "codex")
    done = client.run("exec", "--dangerously-bypass-hook-trust", "--json", "-", input=CODEX)
    assert done.status == 0, done
    story.machine.wait_until_indexed(codex.thread_of(done.stdout), DONE)


def test_the_page_shows_what_agents_are_given():
    page = (ROOT / "docs" / "how-to" / "same-mistake.md").read_text("utf-8")
    for text in (FIRST, CLAUDE_TASK, MISTAKE, WORKS, WARNING, SHORT_WARNING):
        assert text in page


def test_the_clients_keep_to_the_script(story: Story):
    assert story.machine.upstream.problems() == []


def test_the_first_session_makes_the_mistake_and_nobody_warned_it(story: Story):
    [*_, last] = story.machine.requests(FIRST)
    texts = json_texts(last.json["messages"])
    assert any("file or directory not found: test_tides.py" in text for text in texts)
    assert any("1 passed" in text for text in texts)
    assert not [text for text in texts if "outside `tables`" in text]


def test_the_mistake_is_learned_with_what_works(story: Story):
    [lesson] = [one for one in story.list_json("tasks", "lessons") if one["kind"] == "anti_pattern"]
    assert "Running `pytest` outside `tables` fails" in str(lesson["content"])
    assert "Run `cd tables` first" in str(lesson["content"])


def test_another_agent_is_warned_before_its_first_command(story: Story):
    texts = json_texts(story.machine.requests(CODEX)[0].json["input"])
    assert [text for text in texts if SHORT_WARNING in text]


def test_a_later_session_of_the_same_agent_is_warned_too(story: Story):
    before_the_command = story.machine.requests(CLAUDE)[2]
    [given] = [text for _, text in hook_contexts(before_the_command) if WARNING in text]
    assert "Avoid:\n" in given
    assert "pytest test_tides.py" not in given, "what failed is not among what worked"


def test_the_warning_is_known_to_have_been_used(story: Story):
    [task] = [one for one in story.list_json("task", "list") if one["goal"] == CLAUDE_TASK]
    shown = json.loads(story.machine.lore("task", "show", str(task["id"]), "--json").stdout)
    [warning] = [one for one in shown["memories"] if one["given_as"] == "anti_pattern"]
    assert warning["used"] is True
