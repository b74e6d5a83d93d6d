"""Commands: what a person types to Lore itself, answered without asking the model."""

from __future__ import annotations

from lore.gateway.wires.wire import Tool
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.records import Dialogue, Speaker
from lore.tools import catalogue

_MARK = "/lore:"
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
    name, _, rest = _typed(dialogue).partition(" ")
    if not name.startswith(_MARK):
        return ""
    rest = rest.strip()
    if name == "/lore:status":
        return composer.describe(speaker)
    if name == "/lore:amnesia" and rest in ("on", "off"):
        composer.set_amnesia(speaker, on=rest == "on")
        return _AMNESIA[rest]
    if name == "/lore:remember" and rest:
        kept = memory.remember(rest, project=speaker.project)
        return f"{_KEPT[kept.outcome]}: {kept.title.title}"
    return HELP


_KEPT = {"stored": "Remembered", "known": "Known already", "updated": "Changed"}

_AMNESIA = {
    "on": "From now on nothing of this conversation is stored, and nothing is given to it.",
    "off": "This conversation is stored again from now on.",
}


def _typed(dialogue: Dialogue) -> str:
    """Return the last thing that was typed, if the dialogue ends with it."""
    if not dialogue.entries or dialogue.entries[-1].voice != "user":
        return ""
    texts = [block.text for block in dialogue.entries[-1].blocks if block.kind == "text"]
    return texts[-1].strip()[:_MOST_CHARS] if texts else ""
