"""Commands: what a person types to Lore itself, answered without asking the model."""

from __future__ import annotations

import re

from lore.context import turns
from lore.gateway.wires.wire import Tool
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.records import Dialogue, Entry, Speaker
from lore.tools import catalogue

_MARK = "lore:"
"""Also without the slash: Claude Code refuses a command that it does not know itself."""

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


LATE = "Lore could not do this in time: please say it once more."
"""For a model it is not meant, and amnesia that did not begin must not look as if it had."""


def is_command(dialogue: Dialogue) -> bool:
    """Tell whether a dialogue ends with what a person typed to Lore."""
    return _typed(dialogue).startswith(_MARK)


def carry_out(memory: Memory, composer: Composer, speaker: Speaker, dialogue: Dialogue) -> str:
    """Do what a person typed to Lore and return the answer; empty if it was nothing of that."""
    name, _, rest = _typed(dialogue).partition(" ")
    if not name.startswith(_MARK):
        return ""
    rest = rest.strip()
    if name == "lore:status":
        return composer.describe(speaker)
    if name == "lore:amnesia" and rest == "on":
        composer.begin_amnesia(speaker)
        return _AMNESIC
    if name == "lore:amnesia" and rest == "off":
        composer.end_amnesia(speaker, dialogue)
        return _AGAIN
    if name == "lore:remember" and rest:
        kept = memory.remember(rest, project=speaker.project)
        return f"{_KEPT[kept.outcome]}: {kept.title.title}"
    return HELP


_KEPT = {"stored": "Remembered", "known": "Known already", "updated": "Changed"}

_AMNESIC = "From now on nothing of this conversation is stored, and nothing is given to it."
_AGAIN = "This conversation is stored again from now on; what was said without it never is."


def _typed(dialogue: Dialogue) -> str:
    """Return the last thing that was typed, if the dialogue ends with it."""
    last = turns.last_said(dialogue.entries)
    return _typed_in(last) if last is not None else ""


def _typed_in(entry: Entry) -> str:
    if entry.voice != "user":
        return ""
    texts = [block.text for block in entry.blocks if block.kind == "text"]
    for text in texts:
        offered = _OFFERED.match(text)
        if offered:
            return f"{offered[1]} {offered[2] or ''}"
    return texts[-1].strip()[:_MOST_CHARS].removeprefix("/") if texts else ""
