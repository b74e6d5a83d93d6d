"""Hooks by REST: what an agent tells of its session, and the memory it is given for that.

It takes the input of Claude Code's hooks as it is, and gives back what that agent reads. Fields
that nobody knows here are no error: an agent of tomorrow says more.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from anyio import CapacityLimiter
from pydantic import BaseModel, ConfigDict, Field

from lore.http.endpoint import Endpoint
from lore.http.fields import Name, Text
from lore.http.once import Once
from lore.http.tally import Tally
from lore.memory import Memory
from lore.proxy.events import TOLD
from lore.tools.tool import Caller

Event = Literal[
    "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PreCompact",
    "Stop", "SubagentStop", "SessionEnd",
]  # fmt: skip

_NOWHERE = "/"
"""Stands for a folder that was not named: only what holds everywhere is told."""

TRANSCRIPTS = "projects"
"""The folder in which Claude Code keeps transcripts, wherever that has its home."""

_MOST_OUTPUT = 200_000
"""Errors stand at the beginning of an output or at its end."""

TELLING_THREADS = 2
"""To bring in a session may take a minute, and prompts wait for none of it; with two, the end of
one session's turn does not wait for another's to be condensed."""


class HookInput(BaseModel):
    """What an agent says at a moment of its session."""

    model_config = ConfigDict(extra="ignore")

    event: Event
    session_id: Annotated[str, Field(max_length=400)] = ""
    agent_id: Annotated[str, Field(max_length=400)] = ""
    transcript_path: Name = ""
    agent_transcript_path: Name = ""
    cwd: Name = ""
    source: Annotated[str, Field(max_length=100)] = ""
    prompt: Text = ""
    tool_name: Annotated[str, Field(max_length=400)] = ""
    tool_input: Any = None
    tool_response: Any = None
    error: Text = ""

    @property
    def session(self) -> str:
        """Return the session that speaks; a subagent has one of its own."""
        return f"{self.session_id}/agent-{self.agent_id}" if self.agent_id else self.session_id


class HookSpecificOutput(BaseModel):
    """What the agent puts into its prompt."""

    model_config = ConfigDict(serialize_by_alias=True)

    event: Event = Field(serialization_alias="hookEventName")
    text: str = Field(serialization_alias="additionalContext")


class HookOutput(BaseModel):
    """What an agent is given; an empty object is nothing."""

    model_config = ConfigDict(serialize_by_alias=True)

    specific: HookSpecificOutput | None = Field(
        None, serialization_alias="hookSpecificOutput", exclude_if=lambda given: given is None
    )


class Warming:
    """Loads what a first prompt will need, in one thread however many sessions begin."""

    def __init__(self) -> None:
        self._under_way = threading.Lock()

    def start(self, load: Callable[[], None]) -> None:
        """Begin to load, unless that is under way, and do not wait for it."""
        if self._under_way.acquire(blocking=False):
            threading.Thread(
                target=self._run, args=(load,), name="lore-warming", daemon=True
            ).start()

    def _run(self, load: Callable[[], None]) -> None:
        try:
            load()
        finally:
            self._under_way.release()


def _begin(memory: Memory, given: HookInput, caller: Caller) -> str:
    """Tell a session that begins; one that is resumed has in its prompt what it was told then."""
    if given.source == "resume":
        return ""
    return memory.begin_session(
        given.session,
        project=_folder(given, caller),
        condensed=given.source == "compact",
        within_s=caller.within_s,
    ).text


def _prompt(memory: Memory, given: HookInput, caller: Caller) -> str:
    return memory.for_prompt(
        given.prompt,
        session=given.session,
        project=_folder(given, caller),
        within_s=caller.within_s,
    ).text


def _tool_used(memory: Memory, given: HookInput, caller: Caller) -> str:
    return memory.for_error(
        given.tool_name,
        _as_text(given.tool_input),
        given.error or _output(given.tool_response),
        session=given.session,
        project=_folder(given, caller),
        failed=bool(given.error) or given.event == "PostToolUseFailure",
        within_s=caller.within_s,
    ).text


def _condense(memory: Memory, given: HookInput, _caller: Caller) -> str:
    memory.distil_now(given.session, _transcript(given.transcript_path))
    return ""


def _end_turn(memory: Memory, given: HookInput, _caller: Caller) -> str:
    memory.end_turn(given.session, _transcript(given.transcript_path))
    return ""


def _end_subagent(memory: Memory, given: HookInput, _caller: Caller) -> str:
    """Bring in what a subagent said: its own file, never that of its parent."""
    memory.end_turn(given.session, _transcript(given.agent_transcript_path))
    return ""


def _end_session(memory: Memory, given: HookInput, _caller: Caller) -> str:
    memory.end_session(given.session, _transcript(given.transcript_path))
    return ""


_ACTS: dict[Event, Callable[[Memory, HookInput, Caller], str]] = {
    "SessionStart": _begin,
    "UserPromptSubmit": _prompt,
    "PostToolUse": _tool_used,
    "PostToolUseFailure": _tool_used,
    "PreCompact": _condense,
    "Stop": _end_turn,
    "SubagentStop": _end_subagent,
    "SessionEnd": _end_session,
}


def _hook(memory: Memory, given: HookInput, caller: Caller, once: Once) -> HookOutput:
    text = once.answer(_moment(given), lambda: _ACTS[given.event](memory, given, caller))
    return HookOutput(specific=HookSpecificOutput(event=given.event, text=text) if text else None)


def _moment(given: HookInput) -> bytes:
    """Return what tells a moment from others: all that is said, and how long the transcript is."""
    file = _transcript(given.agent_transcript_path or given.transcript_path)
    size = 0
    with suppress(OSError):
        size = file.stat().st_size if file and given.event in TOLD else 0
    return hashlib.sha256(f"{size} {given!r}".encode("utf-8", "surrogatepass")).digest()


def _folder(given: HookInput, caller: Caller) -> str:
    return given.cwd or caller.project or _NOWHERE


def _transcript(path: str) -> Path | None:
    """Return the transcript that an agent names, if it can be one.

    It lies below a folder of transcripts, and no link leads out of that.
    """
    file = Path(path)
    if "\0" in path or not file.is_absolute() or file.suffix != ".jsonl":
        return None
    folder = next((above for above in file.parents if above.name == TRANSCRIPTS), None)
    try:
        fits = folder is not None and (
            file.resolve(strict=True) == folder.resolve(strict=True) / file.relative_to(folder)
        )
    except (OSError, RuntimeError):  # it is not there, or links lead round in a circle
        return None
    return file if fits else None


def _as_text(value: object) -> str:
    try:
        return value if isinstance(value, str) else orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return ""


def _output(response: object) -> str:
    """Return what a tool printed; agents hand it on as a text or in fields."""
    if isinstance(response, str):
        return response[:_MOST_OUTPUT]
    if isinstance(response, list):
        return "\n".join(_output(one) for one in response[:20])[:_MOST_OUTPUT]
    if not isinstance(response, dict):
        return ""
    named = ("error", "stderr", "stdout", "output", "text", "content")
    found = [_output(response[name]) for name in named if response.get(name)]
    return "\n".join(text for text in found if text)[:_MOST_OUTPUT]


def answer(memory: Memory, event: str, told: bytes, project: str) -> bytes:
    """Return what the endpoint would answer an agent, for a process that serves this one alone."""
    given = HookInput.model_validate({**orjson.loads(told), "event": event})
    return _hook(memory, given, Caller(project), Once()).model_dump_json().encode()


def endpoints(tally: Tally | None = None) -> tuple[Endpoint[HookInput]]:
    """Return the endpoint of all hooks, which are counted in `tally`.

    An agent names files of this machine: only who may do all may say which are read.
    """
    warming, once = Warming(), Once()
    counts = tally or Tally()

    def hook(memory: Memory, given: HookInput, caller: Caller) -> HookOutput:
        if given.event == "SessionStart":
            warming.start(memory.warm_up)
        if caller.within_s == 0 and given.event not in TOLD:
            return HookOutput(specific=None)  # its agent has gone on while it waited for a thread
        return _hook(memory, given, caller, once)

    def count(given: HookInput, body: bytes, late: bool) -> None:  # noqa: FBT001 - as an endpoint tells it
        counts.count(waits=given.event not in TOLD, is_empty=body == b"{}", is_late=late)

    return (
        Endpoint(
            "POST", "/hooks/{event}", "Tell of a moment in an agent's session.", "admin", HookInput,
            hook, HookOutput, tags=("hooks",), limiter=CapacityLimiter(TELLING_THREADS),
            takes_long=lambda given: given.event in TOLD, after=count,
        ),
    )  # fmt: skip
