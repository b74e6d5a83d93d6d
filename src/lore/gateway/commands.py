"""Commands that a person types to Lore itself, answered without asking the model."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from lore.context import layers
from lore.errors import LoreError
from lore.gateway.apis.adapter import Tool
from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from lore.records import ClientSession, Dialogue
from lore.text import chat_commands
from lore.tools import tool_registry

HELP = (
    "Commands: /lore:status; /lore:amnesia on (private mode: nothing of this conversation is"
    " stored, and no memory is added to it); /lore:amnesia off; /lore:remember TEXT."
)


def _recall_tool() -> Tool:
    tool = tool_registry.get_tool("recall")
    return Tool(tool.name, tool.description, tool.arguments.model_json_schema())


RECALL = _recall_tool()
"""The tool that the gateway offers, the same bytes on every turn."""

RECALL_CHARS = sum(len(str(part)) for part in astuple(RECALL))
"""Length of its definition in a prompt."""


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """A command as it was typed."""

    name: str
    rest: str

    @property
    def begins_private_mode(self) -> bool:
        """Return whether the command switches private mode on."""
        return self.name == "lore:amnesia" and self.rest.lower() == "on"


def find_command(client: ClientSession, dialogue: Dialogue) -> TypedCommand | None:
    """Return the command that a dialogue ends with, if it does."""
    last = layers.last_spoken_entry(dialogue.entries)
    if last is None:
        return None
    command = chat_commands.find_command(last.typed(joined=client.marks_injected_text))
    name, _, rest = command.partition(" ")
    return TypedCommand(name, rest.strip()) if name else None


def run_command(
    memory: Memory,
    composer: PromptComposer,
    client: ClientSession,
    dialogue: Dialogue,
    typed: TypedCommand,
) -> str:
    """Run a command and return the text for the person."""
    try:
        return _run(memory, composer, client, dialogue, typed)
    except LoreError as error:
        reason = " ".join(filter(None, (str(error), error.hint)))
        return f"{failure_text(typed)}\n{reason}"


def _run(
    memory: Memory,
    composer: PromptComposer,
    client: ClientSession,
    dialogue: Dialogue,
    typed: TypedCommand,
) -> str:
    name, rest = typed.name, typed.rest
    if name == "lore:status":
        return composer.describe(client, dialogue)
    if typed.begins_private_mode:
        composer.sessions.begin_private_mode(client)
        return _PRIVATE_ON
    if name == "lore:amnesia" and rest.lower() == "off":
        composer.sessions.end_private_mode(client, dialogue)
        return _PRIVATE_OFF
    if name == "lore:remember" and rest:
        result = memory.remember(rest, project=client.project)
        return f"{_OUTCOMES[result.outcome]}: {result.title.title}"
    return HELP


def failure_text(typed: TypedCommand) -> str:
    """Return the text for a command that could not be run."""
    if typed.begins_private_mode:
        return f"{_PRIVATE_ON} {_PRIVATE_UNSAVED}"
    if typed.name == "lore:remember":
        return f"{_FAILED} {_MAYBE_NOT_STORED}"
    return _FAILED


_OUTCOMES = {"stored": "Stored", "known": "Already known", "updated": "Updated"}

_PRIVATE_ON = (
    "Private mode is on: nothing of this conversation is stored, and no memory is added to it."
)
_PRIVATE_UNSAVED = (
    "The memory cannot be written now: until it can, private mode lasts only while Lore runs."
)
_FAILED = "The command failed: the memory is busy or damaged ('lore doctor' shows more)."
_MAYBE_NOT_STORED = "The text is probably not stored; you can safely repeat the command later."
_PRIVATE_OFF = (
    "Private mode is off: new messages are stored again; those said in private mode never are."
)
