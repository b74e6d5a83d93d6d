"""The real opencode through the gateway: Chat Completions, and Anthropic's Messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from tests.clients import opencode
from tests.clients.client import Client, Run
from tests.clients.gateway_machine import TITLE_PROMPT, GatewayMachine, running_gateway_machine
from tests.clients.machine import BIN, find_client, write_repository
from tests.upstream import Call, ModelError, ModelReply, ReceivedRequest, Text, Thought

TELL = "We print the almanac with ops/press.sh from the pier branch, never by hand."
FIX = "Please read tides.txt and count its lines."
SEEK = "Look into memory: how did we say the almanac is printed?"
DELEGATE = "Is that sure? Let a subagent count the tide tables."
ERRAND = "Count the tide tables below src and report the number."
STARTED = "Who started you?"

SCENES = {
    FIX: (
        ModelReply(
            Thought("Two ways to count; both at once."),
            Text("I will look."),
            Call("read", {"filePath": "tides.txt"}),
            Call("bash", {"command": "wc -l tides.txt", "description": "Count"}),
        ),
        ModelReply("It has two lines."),
    ),
    SEEK: (
        ModelReply(
            Text("I will look it up."), Call("recall", {"query": "how is the almanac printed?"})
        ),
        ModelReply("With ops/press.sh, from the pier branch."),
    ),
    DELEGATE: (
        ModelError(429, "rate_limit_error", "Slowly.", {"retry-after": "0"}),
        ModelReply(
            Call(
                "task",
                {"description": "Count", "subagent_type": "general", "prompt": ERRAND},
            )
        ),
        ModelReply("The subagent counted nine."),
    ),
    ERRAND: (ModelReply("Nine tide tables."),),
    STARTED: (ModelReply("Lore did."),),
}


@dataclass
class Story:
    """Sessions that were held, and the machine that they were held on."""

    gateway: GatewayMachine
    client: Client
    runs: dict[str, Run] = field(default_factory=dict)
    session: str = ""

    def say(self, prompt: str, *words: str) -> str:
        """Say something to opencode, and return its session."""
        self.runs[prompt] = self.client.run("run", "--format", "json", *words, input=prompt)
        return opencode.session_in(self.runs[prompt].stdout)

    def told(self, prompt: str) -> list[str]:
        """Return what opencode showed."""
        events = [json.loads(line) for line in self.runs[prompt].stdout.splitlines()]
        return [one["part"]["text"] for one in events if one["type"] == "text"]

    def requests(self, cue: str) -> list[ReceivedRequest]:
        """Return what the provider was asked about a cue."""
        return self.gateway.requests(cue)


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Iterator[Story]:
    find_client("opencode")
    with running_gateway_machine(tmp_path_factory.mktemp("machine"), SCENES) as behind:
        machine = behind.machine
        project = write_repository(machine.home / "code" / "almanac")
        (project / "tides.txt").write_text("high at nine\nlow at three\n")
        machine.lore("remember", TELL, "--kind", "decision", "--project", str(project))
        machine.start()
        settings = dict(opencode.prepare(machine.home, behind.url))
        held = Story(behind, behind.client("opencode", project, settings))
        tell(held)
        yield held


def tell(story: Story) -> None:
    """Hold all sessions: the last in Anthropic's format, started by Lore."""
    machine = story.gateway.machine
    session = story.session = story.say(FIX)
    story.say(SEEK, "--session", session)
    story.say(DELEGATE, "--session", session)
    path = machine.home / ".config" / "opencode" / "opencode.json"
    model = "anthropic/claude-sonnet-4-5"
    config = json.loads(path.read_text()) | {"model": model, "small_model": model}
    del config["provider"]
    path.write_text(json.dumps(config))
    key = ("ANTHROPIC_API_KEY", "dummy-key-for-loopback")
    lore = replace(story.client, command=BIN / "lore", settings=(*story.client.settings, key))
    story.runs[STARTED] = lore.run("run", "opencode", "run", "--format", "json", input=STARTED)


def system_text(asked: ReceivedRequest) -> str:
    """Return the system prompt of a request."""
    heads = [one for one in asked.json["messages"] if one["role"] == "system"]
    return json.dumps(asked.json.get("system") or heads)


def test_nothing_is_refused_and_nothing_fails(story):
    assert [one.problem for one in story.gateway.up.rejected] == []
    assert {run.status for run in story.runs.values()} == {0}


def test_a_session_is_told_what_was_decided(story):
    first, second = story.requests(FIX)
    assert "ops/press.sh" in system_text(first)
    assert system_text(first) == system_text(second)


def test_tools_are_called_and_their_results_are_read_from_the_cache(story):
    assert story.told(FIX) == ["I will look.", "It has two lines."]
    assert story.requests(FIX)[1].usage.read > 5_000


def test_a_request_for_a_title_is_no_turn(story):
    titles = [
        one for one in story.gateway.up.model_requests if TITLE_PROMPT in json.dumps(one.json)
    ]
    assert titles
    for asked in titles:
        assert "recall" not in json.dumps(asked.json.get("tools") or [])
    for session in story.gateway.machine.sessions():
        said = story.gateway.machine.texts(session)
        assert not any("title" in text for text in said)


def test_recall_is_carried_out_inside_one_answer(story):
    assert len(story.requests(SEEK)) == 2
    assert story.told(SEEK)[-1].endswith("With ops/press.sh, from the pier branch.")
    assert TELL in json.dumps(story.requests(SEEK)[1].json["messages"][-1])


def test_what_recall_found_is_the_same_on_later_turns(story):
    before = story.requests(SEEK)[1].json["messages"]
    assert story.requests(DELEGATE)[-1].json["messages"][: len(before)] == before


def test_a_subagent_has_a_session_of_its_own(story):
    machine = story.gateway.machine
    sessions = machine.sessions()
    parent = sessions[story.session]["id"]
    (name,) = [one for one, told in sessions.items() if told["parent_id"] == parent]
    assert machine.texts(name) == [ERRAND, "Nine tide tables."]
    assert ERRAND not in machine.texts(story.session)


def test_what_is_retried_is_stored_once(story):
    said = story.gateway.machine.texts(story.session)
    assert said.count(DELEGATE) == 1
    assert said[-1] == "The subagent counted nine."


def test_all_sessions_are_in_one_project(story):
    (project,) = {one["project_id"] for one in story.gateway.machine.sessions().values()}
    assert project


def test_what_comes_by_its_database_too_is_stored_once(story):
    machine = story.gateway.machine
    before = machine.texts(story.session)
    machine.lore("capture", str(opencode.transcripts(machine.home)[0]))
    assert machine.texts(story.session) == before


def test_opencode_that_lore_started_speaks_to_claude_through_the_gateway(story):
    assert story.told(STARTED) == ["Lore did."]
    assert [one.path for one in story.requests(STARTED)] == ["/v1/messages"]
