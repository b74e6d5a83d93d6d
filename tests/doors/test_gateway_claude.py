"""The real Claude Code through the gateway: what reached its provider, and what Lore has of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients import claude_code
from tests.clients.client import Run
from tests.doors.gated import Gated, bare, gated, said_of, system_of
from tests.doors.machine import find_client, write_folder
from tests.gateway.upstream import Asked, Call, Fails, Says, Text, Thought
from tests.waiting import eventually

TELL = "From now on we print the almanac with ops/press.sh from the pier branch, never by hand."
FIX = "Please read tides.txt and count its lines."
BUSY = "Is the provider awake?"
SEEK = "Look into memory: how did we say the almanac is printed?"
SURE = "Are you quite sure of it?"
DELEGATE = "Let a subagent count the tide tables."
ERRAND = "Count the tide tables below src and report the number."
AFTER = "After the summary: what did we count?"
SECRET = "The merger with the harbour office is on the ninth, which nobody may know."
PLACE = "The keel of the new boat has the number 4711; keep that in mind."
LOOK = "Print the log of the day once more, please."
LAST = "Which number does the keel of the new boat have?"
BROKE = "Is there any money left?"

TURNS = 9
LOG = "for n in $(seq 1 70); do echo $n: the wind turned and the tide took the boat; done"
"""Prints some four thousand characters: nine of them do not fit into what is kept."""


def answer_from_what_is_there(asked: Asked) -> Says:
    """Say the number if the prompt has it, in whatever form."""
    return Says("It is 4711." if "4711" in said_of(asked) else "I do not know.")


SCENES = {
    claude_code.COMPACT: (Says("<summary>\nThe tide tables were counted: nine.\n</summary>"),),
    TELL: (Says("Understood: ops/press.sh, from the pier branch."),),
    FIX: (
        Says(
            Thought("Two ways to count; both at once."),
            Text("I will look."),
            Call("Read", {"file_path": "tides.txt"}),
            Call("Bash", {"command": "wc -l tides.txt", "description": "Count"}),
        ),
        Says("It has two lines."),
    ),
    BUSY: (
        Fails(429, "rate_limit_error", "Slowly.", {"retry-after": "0"}),
        Fails(529, "overloaded_error", "Overloaded"),
        Says("Awake now."),
    ),
    SEEK: (
        Says(Text("I will look it up."), Call("recall", {"query": "how is the almanac printed?"})),
        Says("With ops/press.sh, from the pier branch."),
    ),
    SURE: (Says("Yes: it was said so."),),
    DELEGATE: (
        Says(
            Text("A subagent will count."),
            Call(
                "Agent",
                {
                    "description": "Count tables",
                    "subagent_type": "general-purpose",
                    "prompt": ERRAND,
                    "run_in_background": False,
                },
            ),
        ),
        Says("The subagent counted nine."),
    ),
    ERRAND: (Says("Nine tide tables."),),
    AFTER: (Says("We counted nine tables."),),
    SECRET: (Says("I will keep it to myself."),),
    PLACE: (Says("I will keep it in mind."),),
    LOOK: tuple(
        said
        for n in range(TURNS)
        for said in (
            Says(Text(f"Log {n}."), Call("Bash", {"command": LOG, "description": "Print it"})),
            Says(f"Printed, for the {n}th time."),
        )
    ),
    LAST: (answer_from_what_is_there,),
    BROKE: (Says("Plenty."),),
}  # fmt: skip


@dataclass
class Story:
    """Sessions that were held, in order, and the machine that they were held on."""

    gated: Gated
    project: Path
    first: str
    second: str
    secret: str
    long: str
    runs: dict[str, Run]

    def say(self, prompt: str, *words: str, **settings: str) -> Any:
        """Say something to Claude Code, and return what it printed."""
        told = {
            **dict(claude_code.SETTINGS),
            "ANTHROPIC_BASE_URL": self.gated.url,
            "ANTHROPIC_CUSTOM_HEADERS": f"x-lore-project: {self.project}",
            **settings,
        }
        client = self.gated.client("claude", self.project, told)
        allowed = ("--allowedTools", claude_code.ALLOWED)
        self.runs[prompt] = client.run(
            "-p", "--output-format", "json", *allowed, *words, given=prompt
        )
        return json.loads(self.runs[prompt].stdout)

    def requests(self, cue: str) -> list[Asked]:
        """Return what the provider was asked about a cue."""
        return self.gated.asked(cue)

    def said(self, session: str) -> list[str]:
        """Return what Lore has of a session."""
        return self.gated.machine.said(session)


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Iterator[Story]:
    find_client("claude")
    with gated(tmp_path_factory.mktemp("machine"), SCENES) as behind:
        project = write_folder(behind.machine.home / "code" / "almanac")
        (project / "tides.txt").write_text("high at nine\nlow at three\n")
        behind.machine.start()
        names = [str(uuid.uuid4()) for _ in range(4)]
        held = Story(behind, project, *names, runs={})
        tell(held)
        yield held


def tell(story: Story) -> None:
    """Hold all sessions."""
    story.say(TELL, "--session-id", story.first)
    story.gated.machine.wait_until_known(story.first, "Understood")
    story.say(FIX, "--session-id", story.second)
    story.say(BUSY, "--resume", story.second)
    story.say(SEEK, "--resume", story.second)
    story.say(SURE, "--resume", story.second)
    story.say(DELEGATE, "--resume", story.second)
    story.say("/compact", "--resume", story.second)
    story.say(AFTER, "--resume", story.second)
    story.say("lore:amnesia on", "--session-id", story.secret)
    story.say(SECRET, "--resume", story.secret)


def test_nothing_is_refused_and_nothing_goes_elsewhere(story):
    assert [one.problem for one in story.gated.up.refused] == []
    assert [one.target for one in story.gated.up.asked if one.wire == "other"] == []
    assert {run.status for run in story.runs.values()} == {0}


def test_a_session_is_told_what_the_one_before_it_said(story):
    asked = story.requests(FIX)
    assert "ops/press.sh" in system_of(asked[0])
    assert system_of(asked[0]) == system_of(asked[1])
    assert "ops/press.sh" not in system_of(story.requests(TELL)[0])


def test_tools_are_called_and_their_results_are_read_from_the_cache(story):
    first, second = story.requests(FIX)
    assert first.use.read == 0
    assert second.use.read > 15_000
    assert json.loads(story.runs[FIX].stdout)["result"] == "It has two lines."


def test_what_is_retried_is_stored_once(story):
    assert len(story.requests(BUSY)) == 3
    assert story.said(story.second).count(BUSY) == 1
    assert story.said(story.second).count("Awake now.") == 1


def test_recall_is_carried_out_inside_one_answer(story):
    assert len(story.requests(SEEK)) == 2
    told = json.loads(story.runs[SEEK].stdout)
    assert told["result"].endswith("With ops/press.sh, from the pier branch.")
    assert told["num_turns"] == 1
    assert TELL in said_of(story.requests(SEEK)[1])


def test_what_recall_found_is_the_same_on_later_turns(story):
    before = bare(story.requests(SEEK)[1].tree["messages"])
    after = bare(story.requests(SURE)[0].tree["messages"])
    assert after[: len(before)] == before
    assert story.requests(SURE)[0].use.read > 0


def test_a_resumed_session_is_stored_once_and_in_order(story):
    eventually(lambda: "We counted nine tables." in story.said(story.second))
    cues = (FIX, BUSY, SEEK, SURE, DELEGATE, AFTER)
    said = [text for text in story.said(story.second) if text in cues]
    assert said == list(cues)


def test_a_subagent_has_a_session_of_its_own(story):
    sessions = story.gated.machine.sessions()
    (name,) = [one for one in sessions if one.startswith(f"{story.second}/agent-")]
    assert story.said(name) == [ERRAND, "Nine tide tables."]
    assert ERRAND not in story.said(story.second)
    assert sessions[name]["parent_id"] == sessions[story.second]["id"]


def test_a_compaction_passes_whole_and_is_no_turn(story):
    (asked,) = story.requests(claude_code.COMPACT)
    assert "recall" not in [tool["name"] for tool in asked.tree.get("tools") or ()]
    assert all(cue in said_of(asked) for cue in (FIX, BUSY, SEEK, SURE, DELEGATE))
    assert not any("TEXT ONLY" in text for text in story.said(story.second))
    assert not any("<summary>" in text for text in story.said(story.second))


def test_amnesia_stores_nothing_by_any_way(story):
    machine = story.gated.machine
    told = json.loads(story.runs["lore:amnesia on"].stdout)
    assert told["result"].startswith("From now on nothing of this conversation")
    assert SECRET in said_of(story.requests(SECRET)[0])
    assert "ops/press.sh" not in system_of(story.requests(SECRET)[0])
    machine.lore("capture", str(next(machine.home.rglob(f"{story.secret}.jsonl"))))
    assert not any("merger" in text for text in story.said(story.secret))


def test_what_comes_by_the_transcript_too_is_stored_once(story):
    machine = story.gated.machine
    before = story.said(story.second)
    machine.lore("capture", str(next(machine.home.rglob(f"{story.second}.jsonl"))))
    assert story.said(story.second) == before
