"""The real Codex through the gateway: Responses, and a WebSocket that is not answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.clients import codex
from tests.clients.client import Client, Run
from tests.clients.gateway_machine import GatewayMachine, message_text, running_gateway_machine
from tests.clients.machine import BIN, find_client, write_repository
from tests.upstream import Call, ModelError, ModelReply, ReceivedRequest, Text, Thought
from tests.waiting import eventually

TELL = "From now on we print the almanac with ops/press.sh from the pier branch, never by hand."
FIX = "Please read tides.txt and count its lines."
SEEK = "Look into memory: how did we say the almanac is printed?"
SURE = "Are you quite sure of it?"
BUSY = "Is the provider awake?"
LOOK = "Print the log of the day once more, please."
LAST = "Which number does the keel of the new boat have? It was 4711 in our log."
STARTED = "Who started you?"
NEWER = "And how does the newest of you hear of it?"
NEWEST = "gpt-6.1-sol"
"""The model that this Codex takes of itself; it is told its tools among the items."""

TURNS = 7
LOG = "for n in $(seq 1 150); do echo $n: the wind turned and the tide took the boat; done"

SCENES = {
    TELL: (ModelReply("Understood: ops/press.sh, from the pier branch."),),
    FIX: (
        ModelReply(
            Thought("Two ways to count; both at once."),
            Text("I will look."),
            Call("exec_command", {"cmd": "cat tides.txt"}),
            Call("exec_command", {"cmd": "wc -l tides.txt"}),
        ),
        ModelReply("It has two lines."),
    ),
    SEEK: (
        ModelReply(
            Text("I will look it up."), Call("recall", {"query": "how is the almanac printed?"})
        ),
        ModelReply("With ops/press.sh, from the pier branch."),
    ),
    SURE: (ModelReply("Yes: it was said so."),),
    BUSY: (
        ModelError(429, "rate_limit_error", "Slowly.", {"retry-after": "0"}),
        ModelError(500, "server_error", "Not now."),
        ModelReply("Awake now."),
    ),
    LOOK: tuple(
        said
        for n in range(TURNS)
        for said in (
            ModelReply(Text(f"Log {n}."), Call("exec_command", {"cmd": LOG})),
            ModelReply(f"Printed, for the {n}th time."),
        )
    ),
    STARTED: (ModelReply("Lore did."),),
    NEWER: (ModelReply("By its own way."),),
}


@dataclass
class Story:
    """Sessions that were held, and the machine that they were held on."""

    gateway: GatewayMachine
    client: Client
    runs: dict[str, Run] = field(default_factory=dict)
    session: str = ""

    def say(self, prompt: str, *words: str) -> str:
        """Say something to Codex, and return its session."""
        self.runs[prompt] = self.client.run("exec", *words, "--json", "-", input=prompt)
        return codex.thread_of(self.runs[prompt].stdout)

    def told(self, prompt: str) -> list[str]:
        """Return what Codex showed."""
        events = [json.loads(line) for line in self.runs[prompt].stdout.splitlines()]
        items: list[Any] = [one["item"] for one in events if one["type"] == "item.completed"]
        return [one["text"] for one in items if one["type"] == "agent_message"]

    def requests(self, cue: str) -> list[ReceivedRequest]:
        """Return what the provider was asked about a cue."""
        return self.gateway.requests(cue)


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Iterator[Story]:
    find_client("codex")
    place = tmp_path_factory.mktemp("machine")
    with running_gateway_machine(place, SCENES, LORE_CONTEXT_MAX_LAYER0_TOKENS="20000") as behind:
        machine = behind.machine
        project = write_repository(machine.home / "code" / "almanac")
        (project / "tides.txt").write_text("high at nine\nlow at three\n")
        machine.start()
        settings = dict(codex.prepare(machine.home, behind.url))
        held = Story(behind, behind.client("codex", project, settings))
        tell(held)
        yield held


def tell(story: Story) -> None:
    """Hold all sessions."""
    machine = story.gateway.machine
    machine.wait_until_indexed(story.say(TELL), "Understood")
    session = story.session = story.say(FIX)
    for prompt in (SEEK, SURE, BUSY, *[LOOK] * TURNS):
        story.say(prompt, "resume", session)
        story.gateway.wait_until_condensed(session)
    story.say("lore:status", "resume", session)
    config = Path(machine.home / ".codex" / "config.toml")
    config.write_text(codex.PLAIN.format(model=codex.MODEL))
    lore = replace(story.client, command=BIN / "lore")
    words = ("run", "codex", "exec", "--json")
    story.runs[STARTED] = lore.run(*words, "-", input=STARTED)
    story.runs[NEWER] = lore.run(*words, "--model", NEWEST, "-", input=NEWER)


def developers_in(asked: ReceivedRequest) -> list[Any]:
    """Return what Codex and Lore tell the model in their own place."""
    return [one for one in asked.json["input"] if one.get("role") == "developer"]


def test_nothing_is_refused_and_nothing_fails(story):
    assert [one.problem for one in story.gateway.up.rejected] == []
    assert {run.status for run in story.runs.values()} == {0}


def test_a_session_is_told_what_the_one_before_it_said(story):
    first, second = (developers_in(one) for one in story.requests(FIX))
    assert "ops/press.sh" in json.dumps(first)
    assert first == second
    assert "ops/press.sh" not in json.dumps(developers_in(story.requests(TELL)[0]))


def test_tools_are_called_and_thoughts_come_back(story):
    assert story.told(FIX) == ["I will look.", "It has two lines."]
    assert [item["type"] for item in story.requests(FIX)[1].json["input"]].count("reasoning") == 1
    assert story.requests(FIX)[1].usage.read > 5_000


def test_recall_is_carried_out_inside_one_answer(story):
    assert len(story.requests(SEEK)) == 2
    assert story.told(SEEK)[-1] == "With ops/press.sh, from the pier branch."
    assert TELL in message_text(story.requests(SEEK)[1])


def test_what_recall_found_is_the_same_on_later_turns(story):
    before = story.requests(SEEK)[1].json["input"]
    assert story.requests(SURE)[0].json["input"][: len(before)] == before


def test_what_is_retried_is_stored_once(story):
    said = story.gateway.machine.texts(story.session)
    assert len(story.requests(BUSY)) == 3
    assert (said.count(BUSY), said.count("Awake now.")) == (1, 1)


def test_a_long_session_is_shortened_and_read_from_the_cache(story):
    uses = [one.usage for one in story.requests(LOOK)]
    assert len(uses) == 2 * TURNS
    assert any(FIX not in message_text(one) for one in story.requests(LOOK))
    assert uses[-1].total < uses[0].total + 0.8 * TURNS * len(LOG) * 25
    # the cache grows by blocks of tokens, so that a short turn may add none
    assert uses[-1].read >= uses[-2].read > 5_000


def test_lore_tells_what_it_does(story):
    (told,) = story.told("lore:status")
    assert f"Session {story.session} of codex" in told


def test_what_comes_by_the_transcript_too_is_stored_once(story):
    machine = story.gateway.machine
    eventually(lambda: story.gateway.messages(story.session))
    before = machine.texts(story.session)
    (path,) = machine.home.rglob(f"rollout-*{story.session}.jsonl")
    machine.lore("capture", str(path))
    # What Lore answered itself has gone through nobody else's hands.
    after = machine.texts(story.session)
    assert after[: len(before)] == before
    assert after[len(before) :] in ([], ["lore:status", *story.told("lore:status")])


def test_codex_falls_back_from_its_websocket_when_lore_started_it(story):
    assert story.told(STARTED) == ["Lore did."]
    assert [one.method for one in story.requests(STARTED)] == ["POST"]


def test_the_newest_model_is_told_what_was_said_in_this_project(story):
    (asked,) = story.requests(NEWER)
    assert not asked.problem
    assert asked.json["input"][0]["type"] == "additional_tools"
    assert "ops/press.sh" in json.dumps(developers_in(asked))
    assert "tools" not in asked.json
