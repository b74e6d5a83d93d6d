"""Commands: what a person types to Lore itself, answered without asking the model."""

from __future__ import annotations

from lore.context import turns
from lore.gateway.wires.wire import Tool
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.records import Dialogue, Speaker
from lore.text import chat_commands
from lore.tools import catalogue

HELP = (
    "Lore knows /lore:status, /lore:amnesia on (nothing of this conversation is stored or given"
    " from now on), /lore:amnesia off, and /lore:remember with what to remember."
)


def _recall_tool() -> Tool:
    tool = catalogue.get_tool("recall")
    return Tool(tool.name, tool.description, tool.arguments.model_json_schema())


RECALL = _recall_tool()
"""The tool that the gateway offers, the same bytes on every turn."""


def is_command(dialogue: Dialogue) -> bool:
    """Tell whether a dialogue ends with what a person typed to Lore."""
    return bool(_typed(dialogue))


def carry_out(memory: Memory, composer: Composer, speaker: Speaker, dialogue: Dialogue) -> str:
    """Do what a person typed to Lore and return the answer; empty if it was nothing of that."""
    name, _, rest = _typed(dialogue).partition(" ")
    if not name:
        return ""
    rest = rest.strip()
    if name == "lore:status":
        return composer.describe(speaker, dialogue)
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
    if last is None or last.voice != "user":
        return ""
    return chat_commands.find([block.text for block in last.blocks if block.kind == "text"])
