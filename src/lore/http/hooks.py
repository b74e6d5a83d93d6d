"""REST endpoint for agent hooks: handlers, deduplication of repeated events, counters.

It takes the input of Claude Code's hooks as it is, and returns the output that this agent reads.
Unknown fields are ignored, since newer agents send more.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from anyio import CapacityLimiter
from pydantic import BaseModel, ConfigDict, Field

from lore import local_files
from lore.http.endpoint import Endpoint, FilePath, Short, Text
from lore.memory import Memory
from lore.proxy.hook_client import NOTIFICATION_EVENTS
from lore.text import memory_tags
from lore.tools.tool import Caller

DEDUP_WINDOW_S = 5.0
"""As long as an agent waits for a hook; the same event later is a new one."""


class HookDeduplicator:
    """Handles each event once: duplicates within a short time are ignored (idempotency).

    An agent that has Lore both in its configuration and as a plugin runs every hook twice, at the
    same time and with the same input.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[bytes, float] = {}
        self._looking = threading.Lock()

    def run_once(self, fingerprint: bytes, act: Callable[[], str]) -> str:
        """Run `act` and return its text.

        Return '' if the same event is running, or returned a text just now.
        """
        with self._looking:
            now = self._clock()
            self._until = {seen: until for seen, until in self._until.items() if until > now}
            if fingerprint in self._until:
                return ""
            self._until[fingerprint] = math.inf
        text = ""
        try:
            text = act()
        finally:
            with self._looking:
                if text:
                    self._until[fingerprint] = self._clock() + DEDUP_WINDOW_S
                else:
                    del self._until[fingerprint]
        return text


@dataclass(slots=True)
class HookCounters:
    """Counts hook calls: memory returned, nothing to return, too late, or notification only.

    A response is late if the agent no longer waits for it. Hooks that give up before they reach the
    server are not counted.
    """

    answered: int = 0
    nothing: int = 0
    late: int = 0
    told: int = 0

    def count(self, *, waits: bool, is_empty: bool, is_late: bool) -> None:
        """Count a hook call; `waits` says whether the agent expects a response."""
        if not waits:
            self.told += 1
        elif is_late:
            self.late += 1
        elif is_empty:
            self.nothing += 1
        else:
            self.answered += 1


Event = Literal[
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
    "SubagentStart", "PreCompact", "Stop", "SubagentStop", "SessionEnd",
]  # fmt: skip

_NO_FOLDER = "/"
"""Stands for a missing folder, which is no project."""

TRANSCRIPT_FOLDER, CODEX_FOLDER = "projects", "sessions"
"""The folders of Claude Code's and Codex's transcripts, wherever their homes are."""

OPENCODE_DATABASE = "/opencode/opencode.db"
"""How the path of the database ends in which opencode stores its sessions."""

_MAX_OUTPUT_CHARS = 200_000
"""Error messages stand at the beginning or the end of an output."""

NOTIFICATION_THREADS = 2
"""Importing a session can take a minute, and must not block prompts.

With two threads, the end of one session's turn does not wait for another session to be distilled.
"""


class HookInput(BaseModel):
    """The input of a hook, as the agent sends it."""

    model_config = ConfigDict(extra="ignore")

    event: Event
    session_id: Short = ""
    agent_id: Short = ""
    transcript_path: FilePath = ""
    agent_transcript_path: FilePath = ""
    cwd: FilePath = ""
    source: Annotated[str, Field(max_length=100)] = ""
    prompt: Text = ""
    tool_name: Annotated[str, Field(max_length=400)] = ""
    tool_input: Any = None
    tool_response: Any = None
    error: Text = ""

    @property
    def agent(self) -> str:
        """Return the agent that runs a hook, by where its transcript lies; '' if unknown."""
        if f"/{TRANSCRIPT_FOLDER}/" in self.transcript_path:
            return "claude-code"
        if self.transcript_path.endswith(OPENCODE_DATABASE):
            return "opencode"
        return "codex" if f"/.codex/{CODEX_FOLDER}/" in self.transcript_path else ""

    @property
    def session(self) -> str:
        """Return the session id, as capture names it; subagents have one of their own."""
        if not self.agent_id:
            return self.session_id
        has_own_id = self.agent in ("codex", "opencode")
        return self.agent_id if has_own_id else f"{self.session_id}/agent-{self.agent_id}"


class HookSpecificOutput(BaseModel):
    """The text that the agent adds to its prompt."""

    model_config = ConfigDict(serialize_by_alias=True)

    event: Event = Field(serialization_alias="hookEventName")
    text: str = Field(serialization_alias="additionalContext")


class HookOutput(BaseModel):
    """The output of a hook; an empty object adds nothing."""

    model_config = ConfigDict(serialize_by_alias=True)

    specific: HookSpecificOutput | None = Field(
        None, serialization_alias="hookSpecificOutput", exclude_if=lambda value: value is None
    )


class BackgroundWarmUp:
    """Preloads what the first prompt needs, in one thread for all sessions that start together."""

    def __init__(self) -> None:
        self._under_way = threading.Lock()

    def start(self, load: Callable[[], None]) -> None:
        """Start loading in the background unless it is running."""
        if self._under_way.acquire(blocking=False):
            threading.Thread(
                target=self._run, args=(load,), name="lore-warming", daemon=True
            ).start()

    def _run(self, load: Callable[[], None]) -> None:
        try:
            load()
        finally:
            self._under_way.release()


def _with_index(memory: Memory, hook: HookInput, caller: Caller, text: str) -> str:
    index = memory.tasks.for_session_start(
        session=hook.session, project=_project_folder(hook, caller), within_s=caller.within_s
    )
    return memory_tags.append_memory(text, index) if index else text


def _start_session(memory: Memory, hook: HookInput, caller: Caller) -> str:
    """Return memory for a new session; a resumed one still has it in its prompt."""
    if hook.source == "resume":
        return ""
    condensed = hook.source == "compact"
    text = memory.prompts.begin_session(
        hook.session,
        project=_project_folder(hook, caller),
        agent=hook.agent,
        condensed=condensed,
        within_s=caller.within_s,
    ).text
    if text:  # a second hook of the same session, such as the plugin's beside setup, gets nothing
        text = _with_index(memory, hook, caller, text)
    return _with_invitation(memory, hook, text, condensed=condensed) if condensed else text


def _with_invitation(memory: Memory, hook: HookInput, text: str, *, condensed: bool = False) -> str:
    """Add the invitation to store what was learned; it never blocks and comes once a session."""
    if hook.agent_id:
        return text
    return "\n".join(filter(None, (text, memory.prompts.invite(hook.session, condensed=condensed))))


def _submit_prompt(memory: Memory, hook: HookInput, caller: Caller) -> str:
    text = memory.prompts.for_prompt(
        hook.prompt,
        session=hook.session,
        project=_project_folder(hook, caller),
        agent=hook.agent,
        within_s=caller.within_s,
    ).text
    return _with_invitation(memory, hook, text)


def _use_tool(memory: Memory, hook: HookInput, caller: Caller) -> str:
    if memory.prompts.is_task_tool(hook.tool_name):
        if _is_excluded(memory, hook, caller):
            return ""
        return memory.prompts.for_task_call(
            hook.tool_name,
            _as_text(hook.tool_input),
            _tool_output(hook.tool_response) or _as_text(hook.tool_response),
            session=hook.session,
            project=_project_folder(hook, caller),
            agent=hook.agent,
            within_s=caller.within_s,
        )
    return memory.prompts.for_error(
        hook.tool_name,
        _as_text(hook.tool_input),
        hook.error or _tool_output(hook.tool_response),
        session=hook.session,
        project=_project_folder(hook, caller),
        failed=bool(hook.error) or hook.event == "PostToolUseFailure",
        within_s=caller.within_s,
    ).text


def _is_excluded(memory: Memory, hook: HookInput, caller: Caller) -> bool:
    """Return whether the setting `capture.exclude` names the folder: no task of it is stored."""
    return memory.sessions.is_excluded(hook.agent, _project_folder(hook, caller))


def _begin_tool(memory: Memory, hook: HookInput, caller: Caller) -> str:
    if _is_excluded(memory, hook, caller):
        return ""
    memory.prompts.note_delegation(hook.tool_name, _as_text(hook.tool_input), session=hook.session)
    return ""


def _start_subagent(memory: Memory, hook: HookInput, caller: Caller) -> str:
    """Return what is known for a subagent's task; opencode says which one that is."""
    if _is_excluded(memory, hook, caller):
        return ""
    return memory.prompts.for_subagent(
        hook.session,
        parent=hook.session_id,
        goal=hook.prompt,
        project=_project_folder(hook, caller),
        agent=hook.agent,
    )


_HANDLERS: dict[str, Callable[[Memory, HookInput, Caller], str]] = {
    "SessionStart": _start_session,
    "UserPromptSubmit": _submit_prompt,
    "PostToolUse": _use_tool,
    "PostToolUseFailure": _use_tool,
    "PreToolUse": _begin_tool,
    "SubagentStart": _start_subagent,
}


def _handle(memory: Memory, hook: HookInput, caller: Caller) -> str:
    if hook.event in _HANDLERS:
        if hook.agent_id and memory.prompts.is_quiet(hook.session_id):
            return ""  # a subagent of a private session is private too
        return _HANDLERS[hook.event](memory, hook, caller)
    # A subagent has its own transcript; that of its parent is never imported for it.
    is_subagent = hook.event == "SubagentStop"
    path = hook.agent_transcript_path if is_subagent else hook.transcript_path
    prompts = memory.prompts
    file, folder = _transcript(path), "" if hook.agent_id else hook.cwd
    if hook.event == "PreCompact":
        prompts.distill_now(hook.session, file)
    elif hook.event == "SessionEnd":
        prompts.end_session(hook.session, file, folder=folder)
        memory.tasks.check_economics("session_end", session=hook.session)
    else:
        prompts.end_turn(hook.session, file, folder=folder)
    return ""


def _run_hook(
    memory: Memory, hook: HookInput, caller: Caller, deduplicator: HookDeduplicator
) -> HookOutput:
    text = deduplicator.run_once(_fingerprint(hook), lambda: _handle(memory, hook, caller))
    return HookOutput(specific=HookSpecificOutput(event=hook.event, text=text) if text else None)


def _fingerprint(hook: HookInput) -> bytes:
    """Return a digest that identifies an event: its input and the size of the transcript."""
    file = _transcript(hook.agent_transcript_path or hook.transcript_path)
    size = 0
    with suppress(OSError):
        size = file.stat().st_size if file and hook.event in NOTIFICATION_EVENTS else 0
    return hashlib.sha256(f"{size} {hook!r}".encode("utf-8", "surrogatepass")).digest()


def _project_folder(hook: HookInput, caller: Caller) -> str:
    return hook.cwd or caller.project or _NO_FOLDER


def _transcript(path: str) -> Path | None:
    """Return the transcript path that an agent sent, if it is valid.

    The file must lie below a transcript folder, and no symlink may lead out of it.
    """
    file = Path(path)
    if local_files.are_withheld() or "\0" in path or not file.is_absolute():
        return None
    names = (TRANSCRIPT_FOLDER, CODEX_FOLDER) if file.suffix == ".jsonl" else ()
    folder = next((above for above in file.parents if above.name in names), None)
    if path.endswith(OPENCODE_DATABASE):
        folder = file.parent
    try:
        fits = folder is not None and (
            file.resolve(strict=True) == folder.resolve(strict=True) / file.relative_to(folder)
        )
    except (OSError, RuntimeError):  # the file is missing, or its symlinks form a loop
        return None
    return file if fits else None


def _as_text(value: object) -> str:
    try:
        return value if isinstance(value, str) else orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return ""


def _tool_output(response: object) -> str:
    """Return the output of a tool; agents send it as a text or in fields."""
    if isinstance(response, str):
        return response[:_MAX_OUTPUT_CHARS]
    if isinstance(response, list):
        return "\n".join(_tool_output(one) for one in response[:20])[:_MAX_OUTPUT_CHARS]
    if not isinstance(response, dict):
        return ""
    fields = ("error", "stderr", "stdout", "output", "text", "content")
    texts = [_tool_output(response[name]) for name in fields if response.get(name)]
    return "\n".join(text for text in texts if text)[:_MAX_OUTPUT_CHARS]


def answer_hook(memory: Memory, event: str, body: bytes, project: str) -> bytes:
    """Handle a hook in this process and return the same body as the endpoint."""
    hook_input = HookInput.model_validate({**orjson.loads(body), "event": event})
    return (
        _run_hook(memory, hook_input, Caller(project), HookDeduplicator())
        .model_dump_json()
        .encode()
    )


def hook_endpoints(counters: HookCounters | None = None) -> tuple[Endpoint[HookInput]]:
    """Return the endpoint of all hooks, which are counted in `counters`.

    It needs the admin scope, because the agent names files of this machine to be read.
    """
    warming, once = BackgroundWarmUp(), HookDeduplicator()
    counts = counters or HookCounters()

    def hook(memory: Memory, call: HookInput, caller: Caller) -> HookOutput:
        if call.event == "SessionStart":
            warming.start(memory.prompts.warm_up)
        if caller.within_s == 0 and call.event not in NOTIFICATION_EVENTS:
            return HookOutput(
                specific=None
            )  # the agent stopped waiting while this call waited for a thread
        return _run_hook(memory, call, caller, once)

    def count(call: HookInput, body: bytes, late: bool) -> None:  # noqa: FBT001 - the signature of on_answered
        counts.count(
            waits=call.event not in NOTIFICATION_EVENTS, is_empty=body == b"{}", is_late=late
        )

    return (
        Endpoint(
            "POST", "/hooks/{event}", "Tell of a moment in an agent's session.", "admin", HookInput,
            hook, HookOutput, tags=("hooks",), limiter=CapacityLimiter(NOTIFICATION_THREADS),
            takes_long=lambda call: call.event in NOTIFICATION_EVENTS, on_answered=count,
        ),
    )  # fmt: skip
