from __future__ import annotations

from pathlib import Path

import pytest

from lore.gateway import commands
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.records import Block, Dialogue, Entry, Speaker
from tests.fakes import FakeEmbedder

SPEAKER = Speaker("s-1", "claude-code", "/code/almanac")
OFFERED = (
    "<command-message>lore:amnesia</command-message>\n<command-name>/lore:amnesia</command-name>\n"
    "<command-args>on</command-args>"
)


def told(*texts: str, voice: str = "user") -> Entry:
    return Entry(voice, tuple(Block("text", len(text), text) for text in texts), "k")  # type: ignore[arg-type]


@pytest.fixture
def carry_out(tmp_path: Path):
    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        composer = Composer(memory)

        def carry_out(*entries: Entry) -> str:
            dialogue = Dialogue(model="m", entries=entries)
            typed = commands.find(dialogue)
            if typed is None:
                return ""
            return commands.carry_out(memory, composer, SPEAKER, dialogue, typed)

        yield carry_out


@pytest.mark.parametrize(
    "entry",
    [
        told("/lore:amnesia on"),
        told("lore:amnesia on"),
        told("/LORE:AMNESIA ON"),
        told("<system-reminder>x</system-reminder>", " /lore:amnesia  on\n"),
        told(OFFERED, "Lore's gateway answers this command by itself."),
    ],
)
def test_a_command_is_known_however_a_client_sends_it(carry_out, entry):
    assert "nothing of this conversation is stored" in carry_out(entry)


def test_what_an_agent_puts_behind_a_command_hides_it_from_nobody(carry_out):
    assert carry_out(told("/lore:status"), told("Agents: …", voice="system"))


def test_what_a_model_said_is_no_command(carry_out):
    assert not carry_out(told("/lore:status", voice="assistant"))


def test_other_words_are_no_command(carry_out):
    assert not carry_out(told("What does /lore:status do?"))
