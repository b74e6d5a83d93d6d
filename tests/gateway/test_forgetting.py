"""What was forgotten is in nobody's mind either, whoever forgot it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.errors import StoreBusy
from lore.gateway.exchanges import Incoming
from lore.gateway.forgetting import Forgetting
from lore.gateway.turning import MemoryTurning
from lore.gateway.wires import anthropic
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.records import Speaker
from lore.settings import load
from tests.fakes import FakeEmbedder
from tests.gateway.proxied import HELLO
from tests.waiting import eventually

HEADERS = {"x-claude-code-session-id": "s-1"}


class Eras:
    """An era that a test changes, and what was let go of."""

    def __init__(self) -> None:
        self.now = "a"
        self.fails = False
        self.gone: list[str] = []

    def find(self) -> str:
        if self.fails:
            raise StoreBusy(self.now)
        return self.now


def test_all_is_let_go_of_once_in_an_era():
    eras = Eras()
    forgetting = Forgetting(eras.find, eras.gone.append)
    for eras.now in "aabb":
        forgetting.look()
    assert eras.gone == ["a", "b"]


def test_it_is_looked_again_and_again_though_the_store_is_busy():
    eras = Eras()
    eras.fails = True
    forgetting = Forgetting(eras.find, eras.gone.append, every_s=0.001)
    forgetting.watch()
    eras.fails = False
    eventually(lambda: eras.gone == ["a"])
    eras.now = "b"
    eventually(lambda: eras.gone == ["a", "b"])
    forgetting.close()


def test_what_could_not_be_let_go_of_is_tried_again():
    eras = Eras()

    def fail_once(era: str) -> None:
        eras.gone.append(era)
        if len(eras.gone) == 1:
            raise StoreBusy(era)

    forgetting = Forgetting(eras.find, fail_once)
    with pytest.raises(StoreBusy):
        forgetting.look()
    forgetting.look()
    forgetting.look()
    assert eras.gone == ["a", "a"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    config = load({}, home=tmp_path).settings
    with Memory.open(config=config, embedder=FakeEmbedder()) as opened:
        yield opened


def asked(*said: str) -> Incoming:
    speakers = ("user", "assistant")
    told = [{"role": speakers[n % 2], "content": one} for n, one in enumerate(said)]
    body = json.dumps({**HELLO, "messages": told}).encode()
    return Incoming("anthropic", "/v1/messages", "", HEADERS, body, 1_000_000)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another process"])
def test_requests_are_not_in_mind_once_anything_is_forgotten(memory: Memory, elsewhere: bool):
    turning = MemoryTurning(memory, Composer(memory))
    incoming = asked("The staging port is 5436.")
    turning.let_go_of_forgotten()
    turning.prepare(incoming)
    before = anthropic.read(incoming.raw).dialogue.entries[0].blocks
    turning.let_go_of_forgotten()
    assert anthropic.read(incoming.raw).dialogue.entries[0].blocks is before
    kept = memory.remember("The staging port is 5436")
    if elsewhere:
        with Memory.open(config=memory.settings, embedder=FakeEmbedder()) as other:
            other.forget(id=kept.id)
    else:
        memory.forget(id=kept.id)
    turning.let_go_of_forgotten()
    assert anthropic.read(incoming.raw).dialogue.entries[0].blocks is not before
    turning.close()


@pytest.mark.parametrize("by_history", [False, True])
def test_requests_in_amnesia_are_not_in_mind(memory: Memory, by_history: bool):
    composer = Composer(memory)
    turning = MemoryTurning(memory, composer)
    secret = "The staging port is 5436."
    if by_history:
        on, off = "/lore:amnesia on", "/lore:amnesia off"
        incoming = asked(secret, "Yes.", on, "Done.", secret, "Well.", off, "Done.", "Go on.")
    else:
        composer.begin_amnesia(Speaker("s-1", "claude-code"))
        incoming = asked(secret)
    before = anthropic.read(incoming.raw).dialogue.entries[0].blocks
    turning.prepare(incoming)
    assert anthropic.read(incoming.raw).dialogue.entries[0].blocks is not before
    turning.close()
