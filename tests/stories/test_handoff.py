"""Work goes on in another agent: what the first session left is given to the second at its start.

The real Claude Code and the real Codex, set up as 'lore setup' does it, against a scripted
provider.
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
from tests.upstream import Call, ModelReply, ReceivedRequest, Scene, SceneScript, running_upstream
from tests.waiting import eventually

BEGIN = "Mend tides.py, and test it."
TESTED = "Check that the tests of the tide table cover the year 2100."
REPORT = """\
tides.py knows leap years now; the tests are not written yet.

Next steps:
- Write tests for 28 and 29 February in test_tides.py
- Ask Ines whether 2100 is a leap year in her tables
"""
GO_ON = "Go on where the last session stopped."
WENT_ON = "I will write the tests for 29 February first."
AGAIN = "What is left of the tide table?"
HANDED = "Tests of test_tides.py are written; the ones of 2100 fail."
SUBAGENT = "Let a subagent look at the year 2100."
WARNING = (
    "Leap years in the tide table that are computed by year % 4 alone come out wrong for the year"
    " 2100, which the harbour master found in print two years ago after all copies had been sold;"
    " the tide table takes them from the calendar module since then"
)
"""Too long for the start of a session, which has its first words only."""
PRINTED = "The almanac is printed on Thursdays, because the mail leaves on Fridays at nine."
TASK_TOOLS = "Bash Agent Write TaskCreate TaskUpdate"

SCENES = (
    Scene(
        BEGIN,
        (
            ModelReply(
                "I will plan it.",
                Call("TaskCreate", {"subject": "Add leap years to the tide table in tides.py",
                                    "description": "Leap years"}),
                Call("TaskCreate", {"subject": "Write tests for leap years",
                                    "description": "Tests"}),
            ),
            ModelReply(Call("TaskUpdate", {"taskId": "1", "status": "in_progress"})),
            ModelReply(Call("Bash", {"command": "echo 'LEAP = 4' > tides.py",
                                     "description": "Write it"})),
            ModelReply(Call("TaskUpdate", {"taskId": "1", "status": "completed"})),
            ModelReply(REPORT),
        ),
    ),
    Scene(
        GO_ON,
        (
            ModelReply("I look.", Call("exec_command", {"cmd": "cat tides.py"})),
            ModelReply(WENT_ON),
        ),
    ),
    Scene(AGAIN, (ModelReply("The tests of 2100 fail."),)),
    Scene(
        SUBAGENT,
        (
            ModelReply(
                "A subagent will look.",
                Call("Agent", {"description": "Look at 2100", "subagent_type": "general-purpose",
                               "prompt": TESTED, "run_in_background": False}),
            ),
            ModelReply("It does not."),
        ),
    ),
    Scene(TESTED, (ModelReply("They do not."),), "agent"),
)  # fmt: skip


@dataclass(frozen=True)
class Story:
    """What the sessions of two agents said and were given, one after the other."""

    machine: Machine
    project: Path
    first: str
    second: str
    page_after_first: str

    def first_request(self, cue: str) -> ReceivedRequest:
        return self.machine.requests(cue)[0]


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Iterator[Story]:
    find_client("claude")
    find_client("codex")
    place = tmp_path_factory.mktemp("machine")
    with running_upstream(SceneScript(SCENES)) as upstream:
        machine = Machine(place / "person", place / "lore", upstream)
        project = write_repository(machine.home / "code" / "almanac")
        (place / "lore").mkdir()
        (place / "lore" / "config.toml").write_text("[tasks]\ncontinuity = true\n")
        machine.start()
        try:
            yield tell(machine, project)
        finally:
            machine.stop()


def tell(machine: Machine, project: Path) -> Story:
    """Hold a session of Claude Code, one of Codex, and two more of Claude Code."""
    (machine.home / ".claude").mkdir(parents=True)
    (machine.home / ".codex").mkdir(parents=True)
    machine.lore("setup", "claude-code")
    hooks = json.loads((machine.home / ".claude" / "settings.json").read_text())["hooks"]
    machine.lore("remember", WARNING, "--kind", "anti_pattern", "--project", str(project))
    machine.lore("remember", PRINTED, "--project", str(project))
    eventually(lambda: machine.get("/stats")["waiting"] == 0)
    first, third, fourth = (str(uuid.uuid4()) for _ in range(3))

    def say_to_claude(prompt: str, session: str) -> None:
        client = machine.client("claude", claude_code, project)
        words = ("-p", "--output-format", "json", "--allowedTools", TASK_TOOLS)
        done = client.run(*words, "--session-id", session, input=prompt)
        assert done.status == 0, done

    say_to_claude(BEGIN, first)
    machine.wait_until_indexed(first, "tides.py knows leap years now")
    page = project / "CONTINUITY.md"
    eventually(lambda: page.exists() and "## Outcome" in page.read_text())
    after_first = page.read_text()
    second = say_to_codex(machine, project, hooks)
    machine.lore("handoff", "write", HANDED, "--to", "claude-code", "--by", "codex",
                 "--next-step", "Mend the year 2100", "--project", str(project))  # fmt: skip
    say_to_claude(AGAIN, third)
    say_to_claude(SUBAGENT, fourth)
    return Story(machine, project, first, second, after_first)


def say_to_codex(machine: Machine, project: Path, hooks: object) -> str:
    """Hold a session of Codex with the hooks that 'lore setup codex' writes."""
    (machine.home / ".codex").rmdir()
    client = machine.client("codex", codex, project)
    machine.lore("setup", "codex")
    written = json.loads((machine.home / ".codex" / "hooks.json").read_text())["hooks"]
    assert set(written) == set(hooks)  # type: ignore[call-overload]
    done = client.run("exec", "--dangerously-bypass-hook-trust", "--json", "-", input=GO_ON)
    assert done.status == 0, done
    session = codex.thread_of(done.stdout)
    machine.wait_until_indexed(session, WENT_ON)
    return session


def test_the_clients_keep_to_the_script(story: Story):
    assert story.machine.upstream.problems() == []


def test_a_task_that_begins_gets_what_is_known_for_it(story: Story):
    asked = story.machine.requests(BEGIN)[-1]
    after_tools = [text for event, text in hook_contexts(asked) if event == "PostToolUse"]
    assert len(after_tools) == 1
    assert "computed by year % 4 alone" in after_tools[0]


def test_the_task_is_recorded_with_an_honest_outcome(story: Story):
    [task] = [
        one for one in json.loads(story.machine.lore(
            "task", "list", "--project", str(story.project), "--json").stdout)
        if one["goal"].startswith("Add leap years")
    ]  # fmt: skip
    assert (task["state"], task["agent"]) == ("done", "claude-code")
    assert task["outcome"] != "success"


def test_the_page_has_the_state_of_the_work(story: Story):
    page = story.page_after_first
    assert "## Current Task\n\n- Mend tides.py, and test it." in page
    assert "- [x] Add leap years to the tide table in tides.py\n" in page
    assert "## Next\n\n- Write tests for leap years\n" in page
    assert "- Write tests for 28 and 29 February in test_tides.py" in page
    assert "## Mistakes to Avoid (From Learnings)\n\n- [" in page


def test_another_agent_is_given_the_open_work_first(story: Story):
    texts = json_texts(story.first_request(GO_ON).json["input"])
    [given] = [text for text in texts if "Open work (claude-code" in text]
    lines = given.split("Open work (claude-code")[1].splitlines()
    assert "Task > Mend tides.py, and test it." in lines
    assert "Next > Write tests for 28 and 29 February in test_tides.py" in lines


def test_a_session_of_codex_is_captured_by_its_hooks(story: Story):
    assert story.machine.texts(story.second) == [GO_ON, "I look.", WENT_ON]


def test_a_handoff_of_codex_is_given_to_claude_code_and_taken_over(story: Story):
    given = dict(hook_contexts(story.first_request(AGAIN)))["SessionStart"]
    assert "Handed over to you by codex" in given
    assert f"Done > {HANDED}" in given
    assert "Next > Mend the year 2100" in given
    listed = story.machine.lore("handoff", "list", "--project", str(story.project), "--json")
    assert json.loads(listed.stdout)[0]["read_at"]
    later = hook_contexts(story.first_request(SUBAGENT))
    assert not [text for _, text in later if "Handed over to you" in text]


def test_a_subagent_gets_what_is_known_for_its_task(story: Story):
    given = dict(hook_contexts(story.first_request(TESTED)))
    assert "computed by year % 4 alone" in given["SubagentStart"]
