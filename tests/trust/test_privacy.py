"""What one project knows stays there, and what was not to be stored is not, by whatever way."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
