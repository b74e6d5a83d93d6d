from __future__ import annotations

from pathlib import Path

import pytest

from lore.gateway import commands
from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from lore.records import Block, ClientSession, Dialogue, Entry
from tests.fakes import FakeEmbedder

SPEAKER = ClientSession("s-1", "claude-code", "/code/almanac")
OFFERED = (
    "<command-message>lore:amnesia</command-message>\n<command-name>/lore:amnesia</command-name>\n"
    "<command-args>on</command-args>"
)


def told(*texts: str, voice: str = "user") -> Entry:
    return Entry(voice, tuple(Block("text", len(text), text) for text in texts), "k")  # type: ignore[arg-type]


@pytest.fixture
def carry_out(tmp_path: Path):
    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        composer = PromptComposer(memory)

        def carry_out(*entries: Entry, client: ClientSession = SPEAKER) -> str:
            dialogue = Dialogue(model="m", entries=entries)
            typed = commands.find_command(client, dialogue)
            if typed is None:
                return ""
            return commands.run_command(memory, composer, client, dialogue, typed)

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
def test_command_is_found_in_every_client_format(carry_out, entry):
    assert "nothing of this conversation is stored" in carry_out(entry)


def test_command_is_found_before_appended_agent_messages(carry_out):
    assert carry_out(told("/lore:status"), told("Agents: …", voice="system"))


def test_assistant_text_is_not_a_command(carry_out):
    assert not carry_out(told("/lore:status", voice="assistant"))


def test_other_text_is_not_a_command(carry_out):
    assert not carry_out(told("What does /lore:status do?"))


STRANGER = ClientSession("s-1", "", "/code/almanac")
RESULT = Block("result", 5, "found", "c1")


@pytest.mark.parametrize(
    "typed", ["lore: tell me of this game", "lore:\n  port: 3207", "lore:tour"]
)
def test_prompt_that_starts_like_a_command_is_not_one(carry_out, typed):
    assert not carry_out(told(typed))


def test_command_ignores_case_and_unknown_ones_show_help(carry_out):
    assert "nothing of this conversation is stored" in carry_out(told("/LORE:AMNESIA ON"))
    assert carry_out(told("/lore:stats")) == commands.HELP


def test_text_beside_a_tool_result_is_not_a_command(carry_out):
    beside = Entry("user", (RESULT, *told("/lore:remember it").blocks), "k")
    assert not carry_out(beside)


def test_command_among_several_texts_needs_an_agent_that_marks_injected_text(carry_out):
    both = told("Summarise the attached page", "/lore:remember the harbour is closed")
    assert not carry_out(both, client=STRANGER)
    assert carry_out(both)


def test_plugin_command_is_found_in_claude_code_requests(carry_out):
    assert not carry_out(told("Read this.", OFFERED + " It is attached."))
    assert not carry_out(told(OFFERED, "Read this."), client=STRANGER)
