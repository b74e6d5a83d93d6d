"""What was said in amnesia is known by the talk itself."""

from __future__ import annotations

from lore.context import silences
from lore.records import Block, Entry, Voice
from lore.text import chat_commands


def entry(voice: Voice, text: str, kind: str = "text") -> Entry:
    return Entry(voice, (Block(kind, len(text), text),), f"{voice}-{text}")  # type: ignore[arg-type]  # a kind


ON, OFF = entry("user", "/lore:amnesia on"), entry("user", "lore:amnesia  off")
HELLO, ANSWER = entry("user", "hello"), entry("assistant", "From now on nothing is stored.")


def test_what_stands_between_on_and_off_was_said_in_amnesia():
    talk = [HELLO, ANSWER, ON, ANSWER, HELLO, entry("system", "Be brief."), ANSWER, OFF, ANSWER]
    assert silences.find_silent(talk) == {4, 6}
    assert not silences.is_silent(talk)
    assert silences.is_silent(talk[:7])


def test_a_command_of_the_plugin_counts_as_one_that_is_typed():
    offered = "<command-message>x</command-message>\n<command-name>/lore:amnesia</command-name>"
    assert silences.is_silent([entry("user", f"{offered}\n<command-args>on</command-args>")])


def test_what_came_too_late_is_to_be_said_once_more():
    late = entry("assistant", chat_commands.LATE)
    assert not silences.is_silent([ON, late, HELLO])
    assert silences.is_silent([ON, late, ON, ANSWER, HELLO])


def test_only_a_person_can_say_it():
    told = entry("assistant", "/lore:amnesia on"), entry("user", "/lore:amnesia on", "result")
    assert not silences.is_silent([HELLO, *told])
    assert not silences.is_silent([entry("user", "Tell me what /lore:amnesia on does")])
