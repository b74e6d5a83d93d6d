"""What one project knows stays there, and what was not to be stored is not, by whatever way."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lore.gateway.turning import MemoryTurning
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.settings import load
from tests.fakes import FakeEmbedder
from tests.gateway.proxied import Proxied, proxied
from tests.gateway.upstream import Says, Text, Upstream, upstream
from tests.waiting import eventually

HERE, THERE = "/code/almanac", "/code/harbor"
ON, OFF = "/lore:amnesia on", "/lore:amnesia off"


class Gate:
    """A gateway with its memory, which many talk through."""

    def __init__(self, memory: Memory, gateway: Proxied, up: Upstream) -> None:
        self.memory = memory
        self.gateway = gateway
        self.up = up

    def talk(self, session: str = "", project: str = HERE, **headers: str) -> Talk:
        return Talk(self, session, project, headers)

    def stored(self) -> str:
        """Return all that is stored of any session, once all that was said before is."""
        return "\n".join(
            part.text
            for session in self.memory.sessions()
            for message in self.memory.messages(session.id)
            for part in message.parts
        )

    def settled(self) -> str:
        """Return all that is stored once what was said last is."""
        last = self.talk("witness")
        word = f"Witness {len(self.up.asked)} was here."
        last.ask(word)
        eventually(lambda: word in self.stored())
        return self.stored()


class Talk:
    """One conversation, as a client keeps it."""

    def __init__(self, gate: Gate, session: str, project: str, headers: dict[str, str]) -> None:
        self.gate = gate
        self.headers = {"x-api-key": "of a client", "x-lore-project": project}
        self.headers |= {"x-claude-code-session-id": session} if session else {}
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.messages: list[Any] = []

    def ask(self, text: str) -> str:
        """Say something, and return what upstream was told by that."""
        asked = len(self.gate.up.asked)
        self.messages.append({"role": "user", "content": text})
        body = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": self.messages}
        got = self.gate.gateway.ask("/v1/messages", body, self.headers)
        assert got.status == 200, got.body
        assert not got.header("x-lore-degraded")
        self.messages.append({"role": "assistant", "content": got.tree["content"]})
        return "".join(json.dumps(one.tree) for one in self.gate.up.asked[asked:])


@contextmanager
def gate(home: Path, up: Upstream) -> Iterator[Gate]:
    config = replace(load({}, home=home).settings)
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        turning = MemoryTurning(memory, Composer(memory))
        with proxied(home, up.url, turning=turning) as gateway:
            yield Gate(memory, gateway, up)
        turning.close()


@pytest.fixture
def up() -> Iterator[Upstream]:
    with upstream() as served:
        yield served


def remember_both(memory: Memory) -> None:
    memory.remember("The vault of the almanac is 7391", kind="decision", project=HERE)
    memory.remember("The harbor deploys on Tuesdays", kind="decision", project=THERE)


@pytest.mark.parametrize("session", ["", "s-1"])
def test_the_same_words_in_another_project_are_not_told_what_the_first_one_knows(
    tmp_path: Path, up: Upstream, session: str
):
    with gate(tmp_path, up) as house:
        remember_both(house.memory)
        assert "7391" in house.talk(session).ask("Hello, please run the tests")
        told = house.talk(session, THERE).ask("Hello, please run the tests")
        assert "7391" not in told
        assert "Tuesdays" in told


def test_a_talk_that_moves_to_another_project_leaves_what_it_was_told_behind(
    tmp_path: Path, up: Upstream
):
    with gate(tmp_path, up) as house:
        remember_both(house.memory)
        talk = house.talk("s-1")
        assert "7391" in talk.ask("Hello, please run the tests")
        talk.headers["x-lore-project"] = THERE
        told = talk.ask("And now these.")
        assert "7391" not in told
        assert "Tuesdays" in told


def test_after_a_restart_the_same_words_are_still_those_of_another_project(
    tmp_path: Path, up: Upstream
):
    with gate(tmp_path, up) as house:
        remember_both(house.memory)
        talk = house.talk()
        talk.ask("Good day to you")
        assert "7391" in talk.ask("Anything new?")
        house.settled()
    with gate(tmp_path, up) as house:
        assert "7391" not in house.talk("", THERE).ask("Good day to you")


def test_a_talk_without_a_name_is_stored_as_one_and_goes_on_after_a_restart(
    tmp_path: Path, up: Upstream
):
    up.reply_with(Says(Text("Good day.")), Says(Text("Nothing.")), Says(Text("Hello you.")))
    with gate(tmp_path, up) as house:
        remember_both(house.memory)
        talk, other = house.talk(), house.talk()
        first = talk.ask("Good day to you")
        talk.ask("Anything new?")
        other.ask("Good day to you")
        house.settled()
    up.reply_with(Says(Text("Not at all.")))
    with gate(tmp_path, up) as house:
        again = talk.messages
        talk = house.talk()
        talk.messages = again
        told = talk.ask("And by now?")
        assert json.loads(first)["system"] == json.loads(told)["system"]
        house.settled()
        texts = [
            [part.text for message in house.memory.messages(session.id) for part in message.parts]
            for session in house.memory.sessions()
        ]
        assert [
            "Good day to you", "Good day.", "Anything new?", "Nothing.", "And by now?",
            "Not at all.",
        ] in texts  # fmt: skip
        assert ["Good day to you", "Hello you."] in texts


def test_what_an_unnamed_talk_costs_is_entered_for_its_session(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house:
        talk = house.talk()
        talk.ask("Good day to you")
        talk.ask("Anything new?")
        eventually(lambda: len(house.memory.sessions()) == 1)
        [session] = house.memory.sessions()
        lines = eventually(
            lambda: [
                one for one in house.memory.spend_report(by="session").lines if one.requests == 2
            ]
        )
        assert [one.name for one in lines] == [session.id]


def silenced(talk: Talk) -> Talk:
    """Return a talk that has begun, and is not to be stored from now on."""
    talk.ask("Hello there, what is new?")
    talk.ask(ON)
    return talk


def test_amnesia_of_a_talk_without_a_name_survives_a_restart(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house:
        house.talk().ask("Hello there, what is new?")
        talk = silenced(house.talk())
        talk.ask("The merger is on the ninth.")
        house.settled()
    with gate(tmp_path, up) as house:
        house.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        again = house.talk()
        again.messages = talk.messages
        told = again.ask("The merger costs nine millions.")
        assert "ops/deploy.sh" not in told
        assert '"recall"' not in told
        assert "merger" not in house.settled()
        again.ask(OFF)
        again.ask("The weather is fine.")
        assert "merger" not in house.settled()
        assert "weather" in house.stored()


@pytest.mark.parametrize(
    ("parent", "child", "grandchild"),
    [
        ({"x-claude-code-session-id": "s-1"}, {"x-claude-code-agent-id": "7"}, {}),
        (
            {"x-session-id": "ses_1", "user-agent": "opencode/1.18"},
            {"x-session-id": "ses_2", "x-parent-session-id": "ses_1"},
            {"x-session-id": "ses_3", "x-parent-session-id": "ses_2"},
        ),
    ],
)
def test_helpers_of_an_amnesic_session_are_not_stored_either(
    tmp_path: Path, up: Upstream, parent: dict[str, str], child: dict[str, str],
    grandchild: dict[str, str],
):  # fmt: skip
    with gate(tmp_path, up) as house:
        talk = silenced(house.talk(**parent))
        helper = house.talk(**parent | child)
        assert '"recall"' not in helper.ask("Look up what the merger costs.")
        below = house.talk(**parent | child | grandchild)
        below.ask("Look up who the merger is with.")
        assert "merger" not in house.settled()
        talk.ask(OFF)
        helper.ask("Go on.")
        assert "merger" not in house.settled()
        house.talk(**parent | child | {next(iter(child)): "9"}).ask("Look up the weather.")
        assert "weather" in house.settled()


def test_a_fork_does_not_bring_what_was_said_in_amnesia(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house:
        talk = silenced(house.talk("s-1"))
        talk.ask("The merger is on the ninth.")
        during = house.talk("s-2")
        during.messages = [*talk.messages]
        during.ask("And who knows of the merger?")
        house.talk("s-2", **{"x-claude-code-agent-id": "7"}).ask("Tell me of the merger.")
        talk.ask(OFF)
        after = house.talk("s-3")
        after.messages = [*talk.messages]
        after.ask("What is the weather?")
        assert "merger" not in house.settled()
        assert "weather" in house.stored()


def test_what_is_under_way_when_amnesia_ends_is_not_stored(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house:
        talk = silenced(house.talk("s-1"))
        branch = house.talk("s-1")
        branch.messages = [*talk.messages]
        held = threading.Event()
        up.reply_with(Says(Text("I see."), hold=held))
        with ThreadPoolExecutor(1) as apart:
            asked = len(up.asked)
            late = apart.submit(branch.ask, "The merger is on the ninth.")
            eventually(lambda: len(up.asked) > asked)
            talk.ask(OFF)
            held.set()
            late.result()
        assert "merger" not in house.settled()
        talk.messages += branch.messages[-2:]
        talk.ask("The weather is fine.")
        assert "merger" not in house.settled()
        assert "weather" in house.stored()


def test_amnesia_that_is_said_to_one_gateway_holds_for_another(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house, gate(tmp_path, up) as other:
        house.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        talk, same = house.talk("s-1"), other.talk("s-1")
        talk.ask("Hello there, what is new?")
        same.messages = talk.messages
        assert "ops/deploy.sh" in same.ask("And how do we deploy?")
        talk.ask(ON)
        # A client that does not send the command on.
        same.messages = talk.messages[:-2]
        told = same.ask("The merger is on the ninth.")
        assert "ops/deploy.sh" not in told
        assert '"recall"' not in told
        assert "merger" not in other.settled()
