"""Commands: what a person types to Lore itself, answered without asking the model."""

from __future__ import annotations

import re

from lore.context import turns
from lore.gateway.wires.wire import Tool
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.records import Dialogue, Speaker
from lore.tools import catalogue

_COMMAND = re.compile(r"/?lore:(status|amnesia|remember)(?:\s+(.*))?", re.DOTALL | re.IGNORECASE)
"""Also without the slash: Claude Code refuses a command that it does not know itself."""

_MISTYPED = re.compile(r"/lore:\S*", re.IGNORECASE)

_OFFERED = re.compile(
    r"<command-message>[^<]*</command-message>\s*<command-name>/(lore:(?:status|amnesia))"
    r"</command-name>(?:\s*<command-args>([^<]*)</command-args>)?"
)
"""How Claude Code sends a command of the plugin, with the text of its page behind it."""

_MOST_CHARS = 20_000
"""Longer than that nobody types."""

HELP = (
    "Lore knows /lore:status, /lore:amnesia on (nothing of this conversation is stored or given"
    " from now on), /lore:amnesia off, and /lore:remember with what to remember."
)


def _recall_tool() -> Tool:
    tool = catalogue.get_tool("recall")
    return Tool(tool.name, tool.description, tool.arguments.model_json_schema())


RECALL = _recall_tool()
"""The tool that the gateway offers, the same bytes on every turn."""


def carry_out(memory: Memory, composer: Composer, speaker: Speaker, dialogue: Dialogue) -> str:
    """Do what a person typed to Lore and return the answer; empty if it was nothing of that."""
    typed = _typed(dialogue, speaker)
    command = _COMMAND.fullmatch(typed)
    if command is None:
        return HELP if _MISTYPED.match(typed) else ""
    name, rest = command[1].lower(), (command[2] or "").strip()
    if name == "status":
        return composer.describe(speaker)
    if name == "amnesia" and rest.lower() == "on":
        composer.begin_amnesia(speaker)
        return _AMNESIC
    if name == "amnesia" and rest.lower() == "off":
        composer.end_amnesia(speaker, dialogue)
        return _AGAIN
    if name == "remember" and rest:
        kept = memory.remember(rest, project=speaker.project)
        return f"{_KEPT[kept.outcome]}: {kept.title.title}"
    return HELP


_KEPT = {"stored": "Remembered", "known": "Known already", "updated": "Changed"}

_AMNESIC = "From now on nothing of this conversation is stored, and nothing is given to it."
_AGAIN = "This conversation is stored again from now on; what was said without it never is."


def _typed(dialogue: Dialogue, speaker: Speaker) -> str:
    """Return the last thing that was typed, if the dialogue ends with it."""
    last = turns.last_said(dialogue.entries)
    if last is None or not turns.begins_turn(last):
        return ""
    said = turns.texts_of(last)
    offered = _OFFERED.match(said[0]) if said else None
    if offered and speaker.agent == "claude-code":
        return f"{offered[1]} {offered[2] or ''}".strip()
    if len(said) == 1 or (said and speaker.marks_what_it_adds):
        return said[-1].strip()[:_MOST_CHARS]
    return ""
