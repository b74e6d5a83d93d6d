"""The real Claude Code through the gateway: what reached its provider, and what Lore has of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.clients import claude_code
from tests.clients.client import Run
from tests.clients.gateway_machine import (
    GatewayMachine,
    message_text,
    running_gateway_machine,
    system_text,
    typed_text,
    without_breakpoints,
)
from tests.clients.machine import BIN, find_client, write_repository
from tests.upstream import Call, ModelError, ModelReply, ReceivedRequest, Text, Thought
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
GONE = "Is anybody there?"
ONCE = {"CLAUDE_CODE_MAX_RETRIES": "0"}

TURNS = 9
KILLED_AT = 7
LOG = "for n in $(seq 1 250); do echo $n: the wind turned and the tide took the boat; done"
"""Prints some 13,000 characters: nine of them do not fit into what is kept."""


def answer_from_what_is_there(asked: ReceivedRequest) -> ModelReply:
    """Say the number if the prompt has it, in whatever form."""
    return ModelReply("It is 4711." if "4711" in message_text(asked) else "I do not know.")


SCENES = {
    claude_code.COMPACT: (
        ModelReply("<summary>\nThe tide tables were counted: nine.\n</summary>"),
    ),
    TELL: (ModelReply("Understood: ops/press.sh, from the pier branch."),),
    FIX: (
        ModelReply(
            Thought("Two ways to count; both at once."),
            Text("I will look."),
            Call("Read", {"file_path": "tides.txt"}),
            Call("Bash", {"command": "wc -l tides.txt", "description": "Count"}),
        ),
        ModelReply("It has two lines."),
    ),
    BUSY: (
        ModelError(429, "rate_limit_error", "Slowly.", {"retry-after": "0"}),
        ModelError(529, "overloaded_error", "Overloaded"),
        ModelReply("Awake now."),
    ),
    SEEK: (
        ModelReply(
            Text("I will look it up."), Call("recall", {"query": "how is the almanac printed?"})
        ),
        ModelReply("With ops/press.sh, from the pier branch."),
    ),
    SURE: (ModelReply("Yes: it was said so."),),
    DELEGATE: (
        ModelReply(
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
        ModelReply("The subagent counted nine."),
    ),
    ERRAND: (ModelReply("Nine tide tables."),),
    AFTER: (ModelReply("We counted nine tables."),),
    SECRET: (ModelReply("I will keep it to myself."),),
    PLACE: (ModelReply("I will keep it in mind."),),
    LOOK: tuple(
        said
        for n in range(TURNS)
        for said in (
            ModelReply(
                Text(f"Log {n}."), Call("Bash", {"command": LOG, "description": "Print it"})
            ),
            ModelReply(f"Printed, for the {n}th time."),
        )
    ),
    LAST: (answer_from_what_is_there,),
    BROKE: (ModelReply("Plenty."),),
}


@dataclass
class Story:
    """Sessions that were held, in order, and the machine that they were held on."""

    gateway: GatewayMachine
    project: Path
    first: str
    second: str
    secret: str
    long: str
    runs: dict[str, Run] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    started: Run | None = None

    def say(self, prompt: str, *words: str, **settings: str) -> Any:
        """Say something to Claude Code, and return what it printed."""
        told = {
            **dict(claude_code.SETTINGS),
            "ANTHROPIC_BASE_URL": self.gateway.url,
            "ANTHROPIC_CUSTOM_HEADERS": f"x-lore-project: {self.project}",
            **settings,
        }
        client = self.gateway.client("claude", self.project, told)
        allowed = ("--allowedTools", claude_code.ALLOWED)
        self.runs[prompt] = client.run(
            "-p", "--output-format", "json", *allowed, *words, input=prompt
        )
        return json.loads(self.runs[prompt].stdout)

    def requests(self, cue: str) -> list[ReceivedRequest]:
        """Return what the provider was asked about a cue."""
        return self.gateway.requests(cue)

    def said(self, session: str) -> list[str]:
        """Return what Lore has of a session."""
        return self.gateway.machine.texts(session)


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Iterator[Story]:
    find_client("claude")
    with running_gateway_machine(tmp_path_factory.mktemp("machine"), SCENES) as behind:
        project = write_repository(behind.machine.home / "code" / "almanac")
        (project / "tides.txt").write_text("high at nine\nlow at three\n")
        behind.machine.start()
        first, second, secret, long = (str(uuid.uuid4()) for _ in range(4))
        held = Story(behind, project, first, second, secret, long)
        tell(held)
        yield held


def tell(story: Story) -> None:
    """Hold all sessions."""
    story.say(TELL, "--session-id", story.first)
    story.gateway.machine.wait_until_indexed(story.first, "Understood")
    story.say(FIX, "--session-id", story.second)
    story.say(BUSY, "--resume", story.second)
    story.say(SEEK, "--resume", story.second)
    story.say(SURE, "--resume", story.second)
    story.say(DELEGATE, "--resume", story.second)
    story.say("/compact", "--resume", story.second)
    story.say(AFTER, "--resume", story.second)
    story.say("lore:amnesia on", "--session-id", story.secret)
    story.say(SECRET, "--resume", story.secret)
    story.started = start_with_lore(story)
    hold_long_session(story)
    machine = story.gateway.machine
    machine.stop()
    machine.changes["LORE_DAILY_BUDGET"] = "0.0001"
    machine.start()
    story.say(BROKE, **ONCE)
    machine.stop()
    story.say(GONE, **ONCE)
    del machine.changes["LORE_DAILY_BUDGET"]
    machine.start()


def start_with_lore(story: Story) -> Run:
    """Start Claude Code by `lore run`, and ask what Lore does for it."""
    client = story.gateway.client("claude", story.project, dict(claude_code.SETTINGS))
    lore = replace(client, command=BIN / "lore")
    return lore.run("run", "claude", "-p", "/lore:status")


def hold_long_session(story: Story) -> None:
    """Hold a session that grows too long; the daemon is killed in between."""
    told = {
        **dict(claude_code.SETTINGS),
        "ANTHROPIC_BASE_URL": story.gateway.url,
        "ANTHROPIC_CUSTOM_HEADERS": f"x-lore-project: {story.project}",
    }
    client = story.gateway.client("claude", story.project, told)
    streams = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
    allowed = ("--allowedTools", claude_code.ALLOWED, "--session-id", story.long)
    with client.start("-p", *streams, *allowed) as running:
        assert running.stdin
        assert running.stdout
        for number, prompt in enumerate([PLACE, *[LOOK] * TURNS, LAST]):
            if number == KILLED_AT:
                story.gateway.kill()
                story.gateway.machine.start()
            claude_code.tell(running.stdin, claude_code.user_line(prompt))
            for line in running.stdout:
                if '"type":"result"' in line:
                    story.results.append(json.loads(line)["result"])
                    break
            story.gateway.wait_until_condensed(story.long)
        running.stdin.close()
        running.stdout.read()


def test_nothing_is_refused_and_nothing_goes_elsewhere(story):
    assert [one.problem for one in story.gateway.up.rejected] == []
    assert [one.target for one in story.gateway.up.requests if one.api == "other"] == []
    failed = {prompt for prompt, run in story.runs.items() if run.status}
    assert failed == {BROKE, GONE}


def test_a_session_gets_memory_of_the_previous_session(story):
    asked = story.requests(FIX)
    assert "ops/press.sh" in system_text(asked[0])
    assert system_text(asked[0]) == system_text(asked[1])
    assert "ops/press.sh" not in system_text(story.requests(TELL)[0])


def test_tools_are_called_and_their_results_are_read_from_the_cache(story):
    first, second = story.requests(FIX)
    assert first.usage.read == 0
    assert second.usage.read > 15_000
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
    assert TELL in message_text(story.requests(SEEK)[1])


def test_what_recall_found_is_the_same_on_later_turns(story):
    before = without_breakpoints(story.requests(SEEK)[1].json["messages"])
    after = without_breakpoints(story.requests(SURE)[0].json["messages"])
    assert after[: len(before)] == before
    assert story.requests(SURE)[0].usage.read > 0


def test_a_resumed_session_is_stored_once_and_in_order(story):
    eventually(lambda: "We counted nine tables." in story.said(story.second))
    cues = (FIX, BUSY, SEEK, SURE, DELEGATE, AFTER)
    said = [text for text in story.said(story.second) if text in cues]
    assert said == list(cues)


def test_a_subagent_has_a_session_of_its_own(story):
    sessions = story.gateway.machine.sessions()
    (name,) = [one for one in sessions if one.startswith(f"{story.second}/agent-")]
    assert story.said(name) == [ERRAND, "Nine tide tables."]
    assert ERRAND not in story.said(story.second)
    assert sessions[name]["parent_id"] == sessions[story.second]["id"]


def test_a_compaction_passes_whole_and_is_no_turn(story):
    (asked,) = story.requests(claude_code.COMPACT)
    (before,) = [one for one in story.gateway.up.model_requests if one.number == asked.number - 1]
    assert asked.json["tools"] == before.json["tools"]
    assert system_text(asked) == system_text(before)
    assert all(cue in message_text(asked) for cue in (FIX, BUSY, SEEK, SURE, DELEGATE))
    assert not any("TEXT ONLY" in text for text in story.said(story.second))
    assert not any("<summary>" in text for text in story.said(story.second))


def test_private_mode_stores_nothing(story):
    machine = story.gateway.machine
    told = json.loads(story.runs["lore:amnesia on"].stdout)
    assert told["result"].startswith("Private mode is on: nothing of this conversation")
    assert SECRET in message_text(story.requests(SECRET)[0])
    assert "ops/press.sh" not in system_text(story.requests(SECRET)[0])
    machine.lore("capture", str(next(machine.home.rglob(f"{story.secret}.jsonl"))))
    assert not any("merger" in text for text in story.said(story.secret))


def test_messages_also_read_from_the_transcript_are_stored_once(story):
    machine = story.gateway.machine
    before = story.said(story.second)
    machine.lore("capture", str(next(machine.home.rglob(f"{story.second}.jsonl"))))
    assert story.said(story.second) == before


def test_a_long_session_is_shortened_and_the_answer_is_there(story):
    requests = story.requests(LOOK)
    assert len(requests) == 2 * TURNS
    (last,) = story.requests(LAST)
    assert PLACE not in typed_text(requests[-1]).partition(LOOK)[2]
    assert last.usage.total < requests[0].usage.total + 0.7 * TURNS * 3_400
    assert story.results[-1] == "It is 4711."


def test_between_busts_a_long_session_is_read_from_the_cache(story):
    uses = [one.usage for one in (*story.requests(LOOK), *story.requests(LAST))]
    busts = [use for before, use in pairwise(uses) if use.read < before.read]
    grown = [use for before, use in pairwise(uses) if use.read > before.read]
    assert 1 <= len(busts) <= 3
    assert len(grown) >= len(uses) - 1 - 2 * len(busts)


def test_a_daemon_that_is_killed_goes_on_with_the_same_prompt(story):
    before = story.requests(LOOK)[2 * (KILLED_AT - 1) - 1]
    after = story.requests(LOOK)[2 * (KILLED_AT - 1)]
    said = without_breakpoints(before.json["messages"])
    assert without_breakpoints(after.json["messages"])[: len(said)] == said


def test_a_spent_budget_is_reported_as_text(story):
    told = json.loads(story.runs[BROKE].stdout)
    assert "402 Lore: Today" in told["result"]
    assert story.requests(BROKE) == []


def test_a_stopped_gateway_is_a_connection_error(story):
    assert "Unable to connect" in json.loads(story.runs[GONE].stdout)["result"]


def test_an_agent_that_lore_started_goes_through_the_gateway(story):
    assert story.started
    assert story.started.status == 0
    assert "Layer 0" in story.started.stdout
