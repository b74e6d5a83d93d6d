"""Private entries are found from the dialogue itself."""

from __future__ import annotations

from functools import partial

from lore.context import private_mode
from lore.records import Block, Entry, Voice


def entry(voice: Voice, text: str, kind: str = "text") -> Entry:
    return Entry(voice, (Block(kind, len(text), text),), f"{voice}-{text}")  # type: ignore[arg-type]  # a kind


find_silent = partial(private_mode.find_private_entries, joined=True)
is_silent = partial(private_mode.is_private, joined=True)

ON, OFF = entry("user", "/lore:amnesia on"), entry("user", "lore:amnesia  off")
HELLO, ANSWER = entry("user", "hello"), entry("assistant", "From now on nothing is stored.")


def test_entries_between_on_and_off_are_private():
    talk = [HELLO, ANSWER, ON, ANSWER, HELLO, entry("system", "Be brief."), ANSWER, OFF, ANSWER]
    assert find_silent(talk) == {4, 6}
    assert not is_silent(talk)
    assert is_silent(talk[:7])


def test_a_command_of_the_plugin_counts_as_one_that_is_typed():
    offered = "<command-message>x</command-message>\n<command-name>/lore:amnesia</command-name>"
    assert is_silent([entry("user", f"{offered}\n<command-args>on</command-args>")])


def test_only_a_person_can_say_it():
    told = entry("assistant", "/lore:amnesia on"), entry("user", "/lore:amnesia on", "result")
    assert not is_silent([HELLO, *told])
    assert not is_silent([entry("user", "Tell me what /lore:amnesia on does")])


def test_where_a_program_adds_texts_only_a_single_one_is_a_command():
    beside = Entry("user", (*HELLO.blocks, *ON.blocks), "k")
    assert is_silent([beside])
    assert not private_mode.is_private([beside], joined=False)
    assert private_mode.is_private([ON], joined=False)
