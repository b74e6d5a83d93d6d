"""The real Claude Code through the gateway when a session does not go straight on: it is forked,
interrupted, compacted by the agent itself, too long for its model, or kept by tiers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.clients import claude_code
from tests.clients.client import Client
from tests.clients.gateway_machine import (
    CueReplies,
    GatewayMachine,
    message_text,
    running_gateway_machine,
    system_text,
    without_breakpoints,
)
from tests.clients.machine import find_client, write_repository
from tests.upstream import Call, ModelReply, ReceivedRequest, Text, Thought
from tests.waiting import eventually

COUNT = "Please count the lines of tides.txt."
BRANCH = "In this branch of the talk, call the almanac a calendar."
TRUNK = "In this one it stays an almanac; is that right?"
SLOW = claude_code.SLOW
REWORD = claude_code.REWORD
FILL = "Print the log of the day, please."
AFTER = "After the summary: what did we print?"
READ = "Read all of the tide tables again."
ASKED = "Which boat has the number 4711?"
TIERS = "Read the tables of every harbour."
TOLD = "The boat with the number 4711 is the Petrel; keep that in mind."
HELLO = "Good morning."
WINDOW = 90_000
"""What the model takes, though Lore believes it is more; Claude Code compacts from 67,000 on."""

ROUNDS = 4
TABLE = "".join(f"{n}: high at nine, low at three, the wind from the west\n" for n in range(700))
"""Some 10,000 tokens, which Claude Code reads at once."""


def reads(*numbers: int) -> tuple[Call, ...]:
    """Return calls for tables that are read side by side."""
    return tuple(Call("Read", {"file_path": f"tables/{n}.txt"}) for n in numbers)


def answer_from_what_is_there(asked: ReceivedRequest) -> ModelReply:
    """Say the name if the prompt has it, in whatever form."""
    return ModelReply("The Petrel." if "Petrel" in message_text(asked) else "Who knows?")


SCENES: CueReplies = {
    claude_code.COMPACT: (ModelReply("<summary>\nThe log of the day was printed.\n</summary>"),),
    COUNT: (
        ModelReply(
            Thought("One command will do."),
            Call("Bash", {"command": "wc -l tides.txt", "description": "Count"}),
        ),
        ModelReply("It has two lines."),
    ),
    BRANCH: (ModelReply("Here it is a calendar."),),
    TRUNK: (ModelReply("Yes: an almanac."),),
    SLOW: (ModelReply("A leap year has one day more. " * 200, pause_s=0.2),),
    REWORD: (ModelReply("Every fourth year, but not every hundredth."),),
    FILL: (ModelReply(Text("Printing."), *reads(*range(5))), ModelReply("Printed.")),
    AFTER: (ModelReply("We printed the log."),),
    TOLD: (ModelReply("The Petrel, 4711."),),
    READ: tuple(
        said
        for n in range(ROUNDS)
        for said in (
            ModelReply(Thought("There."), *reads(2 * n, 2 * n + 1)),
            ModelReply(f"Read them, {n}."),
        )
    ),
    ASKED: (answer_from_what_is_there,),
    TIERS: tuple(
        said
        for n in range(ROUNDS + 2)
        for said in (
            ModelReply(Text("Two at once."), *reads(2 * n, 2 * n + 1)),
            ModelReply(f"Tables, {n}."),
        )
    ),
}


@dataclass
class Story:
    """Sessions that were held, and the machine that they were held on."""

    gateway: GatewayMachine
    project: Path
    results: dict[str, list[str]] = field(default_factory=dict)

    def client(self, **settings: str) -> Client:
        """Return Claude Code as it talks through the gateway."""
        told = {
            **dict(claude_code.SETTINGS),
            "ANTHROPIC_BASE_URL": self.gateway.url,
            "ANTHROPIC_CUSTOM_HEADERS": f"x-lore-project: {self.project}",
            **settings,
        }
        return self.gateway.client("claude", self.project, told)

    def say(self, prompt: str, *words: str, **settings: str) -> Any:
        """Say something to Claude Code, and return what it printed."""
        allowed = ("--allowedTools", claude_code.ALLOWED)
        run = self.client(**settings).run(
            "-p", "--output-format", "json", *allowed, *words, input=prompt
        )
        told = json.loads(run.stdout)
        self.results.setdefault(prompt, []).append(told["result"])
        return told

    def requests(self, cue: str) -> list[ReceivedRequest]:
        """Return what the provider was asked about a cue."""
        return self.gateway.requests(cue)

    def layers(self, session: str) -> list[int]:
        """Return the layers of a session's requests, as the ledger has them."""
        report = self.gateway.machine.get("/spend?by=session&since=last%20week&limit=500")["items"]
        id_ = self.gateway.machine.sessions()[session]["id"]
        return [one["layer"] for one in report if one["session_id"] == id_][::-1]


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Iterator[Story]:
    """Give a machine on which every way of going on is taken once."""
    find_client("claude")
    place = tmp_path_factory.mktemp("machine")
    with running_gateway_machine(place, SCENES, window_tokens=WINDOW) as behind:
        project = write_repository(behind.machine.home / "code" / "almanac")
        (project / "tides.txt").write_text("high at nine\nlow at three\n")
        (project / "tables").mkdir()
        for number in range(16):
            (project / "tables" / f"{number}.txt").write_text(TABLE)
        behind.machine.changes["LORE_CONTEXT_MAX_LAYER0_TOKENS"] = "190000"
        behind.machine.start()
        held = Story(behind, project)
        held.say(HELLO)  # the first session of a new home has another system prompt than later ones
        yield held


@pytest.fixture(scope="module")
def forked(machine: Story) -> tuple[str, str]:
    """Hold a session and a fork of it, one after the other; return their names."""
    trunk = str(uuid.uuid4())
    machine.say(COUNT, "--session-id", trunk)
    branch = machine.say(BRANCH, "--resume", trunk, "--fork-session")["session_id"]
    machine.say(TRUNK, "--resume", trunk)
    return trunk, branch


def test_a_fork_and_its_trunk_share_what_is_cached(machine, forked):
    said = without_breakpoints(machine.requests(COUNT)[-1].json["messages"])
    fork, trunk = (machine.requests(cue)[0] for cue in (BRANCH, TRUNK))
    assert without_breakpoints(fork.json["messages"])[: len(said)] == said
    assert without_breakpoints(trunk.json["messages"])[: len(said)] == said
    assert system_text(fork) == system_text(trunk)
    assert trunk.usage.read > 15_000


def test_a_fork_and_its_trunk_each_have_their_own_words(machine, forked):
    trunk, branch = forked
    said = machine.gateway.machine.texts
    eventually(lambda: "Yes: an almanac." in said(trunk))
    eventually(lambda: "Here it is a calendar." in said(branch))
    assert BRANCH not in said(trunk)
    assert TRUNK not in said(branch)
    assert said(trunk).count(COUNT) == 1


def test_an_interruption_reaches_the_provider_and_the_talk_goes_on(machine):
    session = str(uuid.uuid4())
    claude_code.interrupt(machine.client(), session)
    (slow,) = machine.requests(SLOW)
    eventually(lambda: slow.outcome == "disconnected")
    (reword,) = machine.requests(REWORD)
    assert not reword.problem
    said = machine.gateway.machine.texts
    eventually(lambda: "Every fourth year, but not every hundredth." in said(session))
    assert said(session).count(SLOW) == 1


def test_the_agents_own_compaction_is_a_new_beginning(machine):
    session = str(uuid.uuid4())
    machine.say(FILL, "--session-id", session)
    machine.say(AFTER, "--resume", session)
    assert machine.requests(claude_code.COMPACT)
    assert [one.problem for one in machine.gateway.up.rejected] == []
    (after,) = machine.requests(AFTER)
    assert "The log of the day was printed." in message_text(after)
    assert FILL not in message_text(after).replace("<summary>", "")
    assert machine.results[AFTER] == ["We printed the log."]


@contextmanager
def changed_settings(machine: Story, **settings: str) -> Iterator[None]:
    lore = machine.gateway.machine
    before = dict(lore.changes)
    lore.stop()
    lore.changes.update(settings)
    lore.start()
    yield
    lore.stop()
    lore.changes.clear()
    lore.changes.update(before)
    lore.start()


@pytest.fixture
def uncapped(machine: Story) -> Iterator[None]:
    """Let prompts grow whatever they cost, until they are too long.

    From some 60,000 tokens on it pays to shorten them; the turn depends on what is distilled by
    then.
    """
    with changed_settings(
        machine, LORE_CONTEXT_RULE="seed", LORE_CONTEXT_MAX_LAYER0_TOKENS="150000"
    ):
        yield


@pytest.mark.usefixtures("uncapped")
def test_a_prompt_that_is_too_long_is_shorter_the_next_time(machine):
    session = str(uuid.uuid4())
    machine.say(TOLD, "--session-id", session, DISABLE_AUTO_COMPACT="1")
    for _ in range(ROUNDS):
        machine.say(READ, "--resume", session, DISABLE_AUTO_COMPACT="1")
        machine.gateway.wait_until_condensed(session)
    machine.say(ASKED, "--resume", session, DISABLE_AUTO_COMPACT="1")
    assert machine.results[READ][-1] == "Prompt is too long"
    (asked,) = machine.requests(ASKED)
    assert asked.usage.total < 0.8 * WINDOW
    assert machine.results[ASKED] == ["The Petrel."]
    eventually(lambda: machine.layers(session)[-1] == 2)


@pytest.fixture
def tiered(machine: Story) -> Iterator[None]:
    """Let Lore keep sessions by tiers meanwhile, and know how much the model takes."""
    lore = machine.gateway.machine
    before = dict(lore.changes)
    lore.stop()
    lore.changes["LORE_CONTEXT_STRATEGY"] = "tiered"
    lore.changes["LORE_PRICES"] = f"claude-opus-4-8 window={WINDOW}"
    lore.start()
    yield
    lore.stop()
    lore.changes.clear()
    lore.changes.update(before)
    lore.start()


@pytest.mark.usefixtures("tiered")
def test_tiers_keep_a_session_within_its_window(machine):
    session = str(uuid.uuid4())
    machine.say(TOLD, "--session-id", session, DISABLE_AUTO_COMPACT="1")
    for _ in range(ROUNDS + 2):
        machine.say(TIERS, "--resume", session, DISABLE_AUTO_COMPACT="1")
        machine.gateway.wait_until_condensed(session)
    uses = [one.usage for one in machine.requests(TIERS)]
    assert max(use.total for use in uses) < 0.8 * WINDOW
    assert machine.results[TIERS][-1] == f"Tables, {ROUNDS + 1}."
    assert machine.layers(session)[0] == 0
    eventually(lambda: machine.layers(session)[-1] == 1)
    assert sum(use.read < 0.8 * use.total for use in uses[::2]) <= len(uses) // 4
