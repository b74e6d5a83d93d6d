"""Private entries are found from the dialogue itself."""

from __future__ import annotations

from lore.gateway.session.private_mode import find_private_entries, is_private_dialogue
from lore.records import Block, ClientSession, Entry, Voice


def entry(voice: Voice, text: str, kind: str = "text") -> Entry:
    return Entry(voice, (Block(kind, len(text), text),), f"{voice}-{text}")  # type: ignore[arg-type]  # a kind


MARKING, OTHER = ClientSession("s", "claude-code"), ClientSession("s", "gateway")
"""Clients whose agent marks injected text, and one whose agent does not."""


ON, OFF = entry("user", "/lore:amnesia on"), entry("user", "lore:amnesia  off")
HELLO, ANSWER = entry("user", "hello"), entry("assistant", "From now on nothing is stored.")


def test_entries_between_on_and_off_are_private():
    talk = [HELLO, ANSWER, ON, ANSWER, HELLO, entry("system", "Be brief."), ANSWER, OFF, ANSWER]
    assert find_private_entries(MARKING, talk) == {4, 6}
    assert not is_private_dialogue(MARKING, talk)
    assert is_private_dialogue(MARKING, talk[:7])


def test_command_of_the_plugin_switches_private_mode():
    offered = "<command-message>x</command-message>\n<command-name>/lore:amnesia</command-name>"
    assert is_private_dialogue(
        MARKING, [entry("user", f"{offered}\n<command-args>on</command-args>")]
    )


def test_only_a_person_can_switch_private_mode():
    others = entry("assistant", "/lore:amnesia on"), entry("user", "/lore:amnesia on", "result")
    assert not is_private_dialogue(MARKING, [HELLO, *others])
    assert not is_private_dialogue(MARKING, [entry("user", "Tell me what /lore:amnesia on does")])


def test_without_marked_texts_only_a_single_text_is_a_command():
    beside = Entry("user", (*HELLO.blocks, *ON.blocks), "k")
    assert is_private_dialogue(MARKING, [beside])
    assert not is_private_dialogue(OTHER, [beside])
    assert is_private_dialogue(OTHER, [ON])
