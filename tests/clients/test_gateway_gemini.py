"""The real Gemini CLI through the gateway: it names no session, and is known all the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.clients.client import Client, Run
from tests.clients.gateway_machine import GatewayMachine, running_gateway_machine
from tests.clients.machine import BIN, find_client, write_repository
from tests.upstream import Call, ModelReply, Text, Thought
from tests.waiting import eventually

TELL = "We print the almanac with ops/press.sh from the pier branch, never by hand."
FIX = "Please read tides.txt and count its lines."
SEEK = "Look into memory: how did we say the almanac is printed?"
AGAIN = "Is that sure?"
ORDER = "From now on always run `make check` before every push."
STARTED = "Who started you?"
GEMINI = "gemini-2.5-pro"
"""Named, for it else asks another model first which one is to answer."""

SCENES = {
    FIX: (
        ModelReply(
            Thought("It is a short file."),
            Text("I will look."),
            Call("read_file", {"file_path": "tides.txt"}),
        ),
        ModelReply("It has two lines."),
    ),
    SEEK: (
        ModelReply(
            Text("I will look it up."), Call("recall", {"query": "how is the almanac printed?"})
        ),
        ModelReply("With ops/press.sh, from the pier branch."),
    ),
    AGAIN: (ModelReply("As sure as the tide."),),
    ORDER: (ModelReply("At six, then."),),
    STARTED: (ModelReply("Lore did."),),
}

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
}


@dataclass
class Story:
    """Sessions that were held, and the machine that they were held on."""

    gateway: GatewayMachine
    client: Client
    runs: dict[str, Run] = field(default_factory=dict)

    def told(self, prompt: str) -> str:
        """Return what Gemini CLI answered."""
        answer: str = json.loads(self.runs[prompt].stdout)["response"]
        return answer

    @property
    def sessions(self) -> list[Any]:
        """Return the sessions that Lore knows, the first one first."""
        return sorted(self.gateway.machine.sessions().values(), key=lambda one: one["started_at"])


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Iterator[Story]:
    find_client("gemini")
    with running_gateway_machine(tmp_path_factory.mktemp("machine"), SCENES) as behind:
        machine = behind.machine
        project = write_repository(machine.home / "code" / "almanac")
        (project / "tides.txt").write_text("high at nine\nlow at three\n")
        (machine.home / ".gemini").mkdir(parents=True)
        (machine.home / ".gemini" / "settings.json").write_text(json.dumps(SETTINGS))
        machine.lore("remember", TELL, "--kind", "decision", "--project", str(project))
        machine.start()
        settings = {"GEMINI_API_KEY": "dummy", "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        client = behind.client("gemini", project, settings)
        held = Story(behind, client)
        tell(held)
        yield held


def tell(story: Story) -> None:
    """Hold all sessions: the second goes on after the program has ended, Lore starts the last.

    One with calls of tools does not: the program then sends each of their results twice.
    """
    address = ("GOOGLE_GEMINI_BASE_URL", story.gateway.url)
    told = replace(story.client, settings=(*story.client.settings, address))
    words = ("--model", GEMINI, "--output-format", "json", "--approval-mode", "yolo", "--prompt")
    story.runs[FIX] = told.run(*words, FIX)
    story.runs[SEEK] = told.run(*words, SEEK)
    story.runs[AGAIN] = told.run("--resume", "latest", *words, AGAIN)
    story.runs[ORDER] = told.run(*words, ORDER)
    eventually(lambda: len(story.sessions) == 3)
    story.gateway.machine.wait_until_indexed(story.sessions[-1]["external_id"], "At six, then.")
    lore = replace(story.client, command=BIN / "lore")
    story.runs[STARTED] = lore.run("run", "gemini", *words, STARTED)


def test_nothing_is_refused_and_nothing_fails(story):
    assert [one.problem for one in story.gateway.up.rejected] == []
    assert {run.status for run in story.runs.values()} == {0}


def test_a_session_is_told_what_was_decided(story):
    first, second = story.gateway.requests(FIX)
    system = [json.dumps(one.json["systemInstruction"]) for one in (first, second)]
    assert "ops/press.sh" in system[0]
    assert system[0] == system[1]


def test_tools_are_called_and_their_results_are_read_from_the_cache(story):
    assert story.told(FIX).endswith("It has two lines.")
    assert story.gateway.requests(FIX)[1].usage.read > 5_000


def test_recall_is_carried_out_inside_one_answer(story):
    assert len(story.gateway.requests(SEEK)) == 2
    assert story.told(SEEK).endswith("With ops/press.sh, from the pier branch.")
    assert TELL in json.dumps(story.gateway.requests(SEEK)[1].json["contents"][-1])


def test_a_session_has_what_was_typed_and_said_and_goes_on(story):
    assert {one["agent"] for one in story.sessions} == {"gemini"}
    first, second, third, last = (
        story.gateway.machine.texts(one["external_id"]) for one in story.sessions
    )
    assert first == [FIX, "I will look.", "It has two lines."]
    assert (second[0], second[-3:]) == (
        SEEK,
        ["With ops/press.sh, from the pier branch.", AGAIN, "As sure as the tide."],
    )
    assert third == [ORDER, "At six, then."]
    assert last == [STARTED, "Lore did."]


def test_what_recall_found_is_the_same_on_later_turns(story):
    before = story.gateway.requests(SEEK)[1].json["contents"]
    assert story.gateway.requests(AGAIN)[-1].json["contents"][1 : len(before)] == before[1:]


def test_all_sessions_are_in_one_project(story):
    (project,) = {one["project_id"] for one in story.sessions}
    assert project


def test_what_a_person_orders_holds_in_the_next_session(story):
    (started,) = story.gateway.requests(STARTED)
    assert ORDER in json.dumps(started.json["systemInstruction"])


def test_gemini_that_lore_started_talks_through_the_gateway(story):
    assert story.told(STARTED) == "Lore did."
    assert len(story.gateway.requests(STARTED)) == 1
