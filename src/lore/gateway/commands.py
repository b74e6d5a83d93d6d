"""Commands: what a person types to Lore itself, answered without asking the model."""

from __future__ import annotations

from dataclasses import dataclass

from lore.context import turns
from lore.errors import LoreError
from lore.gateway.apis.wire import Tool
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


@dataclass(frozen=True, slots=True)
class Typed:
    """A command as it was typed."""

    name: str
    rest: str

    @property
    def begins_amnesia(self) -> bool:
        """Tell whether nothing of the conversation is to be stored from now on."""
        return self.name == "lore:amnesia" and self.rest.lower() == "on"


def find(speaker: Speaker, dialogue: Dialogue) -> Typed | None:
    """Return the command that a dialogue ends with, if it does."""
    name, _, rest = _typed(dialogue, speaker).partition(" ")
    return Typed(name, rest.strip()) if name else None


def carry_out(
    memory: Memory, composer: Composer, speaker: Speaker, dialogue: Dialogue, typed: Typed
) -> str:
    """Do what a person typed to Lore and return the answer."""
    try:
        return _done(memory, composer, speaker, dialogue, typed)
    except LoreError as error:
        told = " ".join(filter(None, (str(error), error.hint)))
        return f"{excuse(typed)}\n{told}"


def _done(
    memory: Memory, composer: Composer, speaker: Speaker, dialogue: Dialogue, typed: Typed
) -> str:
    name, rest = typed.name, typed.rest
    if name == "lore:status":
        return composer.describe(speaker, dialogue)
    if typed.begins_amnesia:
        composer.begin_amnesia(speaker)
        return _AMNESIC
    if name == "lore:amnesia" and rest.lower() == "off":
        composer.end_amnesia(speaker, dialogue)
        return _AGAIN
    if name == "lore:remember" and rest:
        kept = memory.remember(rest, project=speaker.project)
        return f"{_KEPT[kept.outcome]}: {kept.title.title}"
    return HELP


def excuse(typed: Typed) -> str:
    """Return what is said where a command could not be carried out."""
    if typed.begins_amnesia:
        return f"{_AMNESIC} {_UNKEPT}"
    if typed.name == "lore:remember":
        return f"{_FAILED} {_UNSURE}"
    return _FAILED


_KEPT = {"stored": "Remembered", "known": "Known already", "updated": "Changed"}

_AMNESIC = "From now on nothing of this conversation is stored, and nothing is given to it."
_UNKEPT = (
    "The memory cannot be written at the moment: until it can, this holds as long as Lore runs."
)
_FAILED = "Lore could not do that: its memory is busy or broken ('lore doctor' says more)."
_UNSURE = "This is probably not remembered; to say it again later does no harm."
_AGAIN = "This conversation is stored again from now on; what was said without it never is."


def _typed(dialogue: Dialogue, speaker: Speaker) -> str:
    """Return the last thing that was typed, if the dialogue ends with it."""
    last = turns.last_said(dialogue.entries)
    if last is None:
        return ""
    return chat_commands.find(last.typed(joined=speaker.marks_what_it_adds))
