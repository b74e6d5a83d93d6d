"""Codex: rollouts, one JSON line for each item that went to the model or came from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from lore import clock
from lore.capture.adapters import asides, blocks, fields, places, tools
from lore.capture.transcripts import Context, Told
from lore.records import NewMessage, Part

agent = "codex"

_SILENT = frozenset(
    """token_usage_record world_state security_risk_score realtime_item state
    inter_agent_communication_metadata""".split()
)
_SILENT_ITEMS = frozenset("ghost_snapshot compaction compaction_summary context_compaction".split())
"""Items for the program itself, or that only the provider can read."""

_ITEMS = frozenset(
    """message reasoning function_call function_call_output custom_tool_call
    custom_tool_call_output local_shell_call web_search_call""".split()
)
"""Items that old versions write as lines of their own."""

_DROPPED = ("id", "status", "call_id", "type", "result", "name", "internal_chat_message_metadata")
_ID_CHARS = 36
_NAME_CHARS = 60
_MOST_FILES = 200
_HEAD_CHARS = 200
_FAILURES = ("apply_patch verification failed", "unsupported call: ", "failed to parse function")
"""How results begin of calls that Codex itself refused."""
_EXITS = ("Exit code: ", "Process exited with code ", "exited with code ")
"""How results begin that tell the exit code of a command."""

Line = dict[str, Any]
State = dict[str, str]


def find(home: Path) -> Iterator[Path]:
    """Return the rollouts below a person's home folder."""
    for folder in ("sessions", "archived_sessions"):
        yield from places.files(home / ".codex" / folder, ".jsonl", beginning="rollout-")


def fits(path: Path, head: bytes) -> bool:
    """Tell whether a file is a rollout."""
    if path.suffix != ".jsonl":
        return False
    return b'"session_meta"' in head or (
        path.name.startswith("rollout-") and b'"timestamp"' in head and b'"sessionId"' not in head
    )


def begin(path: Path) -> Context:
    """Return what the place of a file tells of its session: its name ends with the id."""
    state = {"time": places.modified(path).isoformat()}
    session = path.stem[-_ID_CHARS:] if path.name.startswith("rollout-") else path.stem
    return Context(session=session, state=state, lasting_keys=True)


def tell(line: Any, context: Context) -> Told:
    """Return what a parsed line says."""
    if not isinstance(line, dict):
        return Told(context, unknown="no object")
    kind = fields.text(line.get("type")) or fields.text(line.get("record_type"))
    payload = line.get("payload")
    if kind in _ITEMS and payload is None:
        kind, payload = "response_item", line
    elif not kind and "id" in line and "timestamp" in line:
        kind, payload = "session_meta", line
    if kind in _SILENT:
        return Told(context)
    teller = _TELLERS.get(kind)
    if teller is None:
        return Told(context, unknown=kind[:_NAME_CHARS] or "no type")
    state = dict(context.state)
    at = _time(line, state)
    return teller(fields.table(payload), replace(context, state=state), at)


def _time(line: Line, state: State) -> datetime:
    """Return the time of a line, and set in `state` what tells lines of the same time apart."""
    at = fields.moment(line.get("timestamp"))
    if at is not None:
        state["time"] = state["mark"] = at.isoformat()
        return at
    number = fields.text(state.get("number"))
    state["number"] = str(int(number) + 1) if number.isdigit() else "1"
    state["mark"] = state["number"]
    return fields.moment(state.get("time")) or clock.now()


def _meta(payload: Line, context: Context, at: datetime) -> Told:
    """Return the context of a rollout; in a fork, the heads of what was copied come after."""
    del at
    if "known" in context.state:
        return Told(context)
    source = fields.table(fields.table(payload.get("source")).get("subagent"))
    spawn = fields.table(source.get("thread_spawn"))
    parent = fields.text(spawn.get("parent_thread_id")) or fields.text(
        payload.get("parent_thread_id")
    )
    if source or parent:
        context.state["agent"] = "yes"
    context.state["known"] = "yes"
    git = fields.table(payload.get("git"))
    return Told(
        replace(
            context,
            session=fields.text(payload.get("id")).strip() or context.session,
            parent=parent or fields.text(payload.get("forked_from_id")),
            folder=fields.text(payload.get("cwd")),
            branch=fields.text(git.get("branch")),
            version=fields.text(payload.get("cli_version")),
        )
    )


def _turn(payload: Line, context: Context, at: datetime) -> Told:
    del at
    model = fields.text(payload.get("model"))
    if model:
        context.state["model"] = model
    return Told(replace(context, folder=context.folder or fields.text(payload.get("cwd"))))


def _compacted(payload: Line, context: Context, at: datetime) -> Told:
    text = fields.text(payload.get("message"))
    parts = (asides.aside(text, "compacted"),) if text.strip() else ()
    return _told(NewMessage("system", parts, at, origin="tool"), payload, context)


def _event(payload: Line, context: Context, at: datetime) -> Told:
    """Return what an event tells: they repeat the items, but for the name of the session.

    Which answers they announce is written down: what Codex asks for to compact the session is
    none of them.
    """
    del at
    title = ""
    item = fields.table(payload.get("item"))
    if payload.get("type") == "item_completed" and item.get("type") == "AgentMessage":
        context.state["announced"] = fields.text(item.get("id"))
    if payload.get("type") in ("thread_name_updated", "thread_name_set"):
        title = fields.text(payload.get("thread_name")) or fields.text(payload.get("name"))
    return Told(replace(context, title=title.strip() or context.title))


def _item(payload: Line, context: Context, at: datetime) -> Told:
    kind = fields.text(payload.get("type"))
    if kind in _SILENT_ITEMS:
        return Told(context)
    state = context.state
    model = state.get("model", "")
    if kind == "message":
        return _told(_message(payload, state, at), payload, context)
    if kind == "reasoning":
        texts = [*fields.items(payload.get("summary")), *fields.items(payload.get("content"))]
        text = "\n\n".join(filter(None, (blocks.words(fields.table(each)) for each in texts)))
        return _told(
            NewMessage("assistant", blocks.thought(text), at, model=model), payload, context
        )
    if kind.endswith("_output"):
        parts = _output(payload, state)
        return _told(NewMessage("tool", parts, at, origin=parts[0].origin), payload, context)
    if kind.endswith("_call"):
        part = blocks.remembered(_call(payload, kind), state)
        given = _parsed(payload.get("arguments"))
        named = [*tools.files(given), *tools.patched_files(part.text.replace("\\n", "\n"))]
        files = fields.bounded(named, context.files, _MOST_FILES)
        message = NewMessage("assistant", (part,), at, model=model)
        return _told(message, payload, replace(context, files=files))
    parts = (blocks.opaque(payload),)
    return _told(NewMessage("assistant", parts, at, origin="tool"), payload, context)


def _message(payload: Line, state: State, at: datetime) -> NewMessage:
    content = payload.get("content")
    role = payload.get("role")
    if role == "assistant":
        content = [content] if isinstance(content, str) else fields.items(content)
        if _is_summary(payload, state):
            return NewMessage("system", blocks.typed(content, aside=True), at, origin="tool")
        parts = tuple(part for block in content for part in blocks.spoken(block, {}))
        return NewMessage("assistant", parts, at, model=state.get("model", ""))
    if role != "user":
        return NewMessage("system", blocks.typed(content, aside=True), at, origin="tool")
    asked = NewMessage("user", (), at)
    if "agent" in state:
        asked = replace(asked, speaker="agent", origin="assistant")
    return asides.from_person(asked, blocks.typed(content))


def _is_summary(payload: Line, state: State) -> bool:
    """Tell whether an answer is the summary of a compaction, which no event announces.

    Only where an announced answer was seen before: other versions write no such events, or
    write them later.
    """
    own = fields.text(payload.get("id"))
    if own and own == state.get("announced"):
        state["announces"] = "yes"
        return False
    return "announces" in state


def _call(payload: Line, kind: str) -> Part:
    name = fields.text(payload.get("name")) or kind.removesuffix("_call")
    given = payload.get("arguments", payload.get("input", payload.get("action")))
    if given is None:
        given = {each: value for each, value in payload.items() if each not in _DROPPED}
    return blocks.call(name, given, payload.get("call_id") or payload.get("id"))


def _output(payload: Line, state: State) -> tuple[Part, ...]:
    """Return a result; old versions wrap it into JSON with the exit code beside it."""
    call_id = fields.text(payload.get("call_id"))
    name = state.pop(f"call:{call_id}", "")
    output = payload.get("output", payload.get("content"))
    failed = False
    if isinstance(output, str) and output.startswith('{"output":'):
        output = _parsed(output) or output
    if isinstance(output, dict) and ("output" in output or "content" in output):
        code = fields.table(output.get("metadata")).get("exit_code")
        failed = code not in (None, 0) or output.get("success") is False
        output = output.get("output", output.get("content"))
    elif isinstance(output, str):
        failed = output.startswith(_FAILURES) or _exit_code(output[:_HEAD_CHARS]) not in ("", "0")
    return blocks.result(output, name, call_id, failed=failed)


def _exit_code(head: str) -> str:
    for words in _EXITS:
        _, found, rest = head.partition(words)
        if found:
            return rest.split(maxsplit=1)[0].rstrip(".,)") if rest.strip() else ""
    return ""


def _parsed(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("{"):
        return value if isinstance(value, dict) else None
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def _told(message: NewMessage, payload: Line, context: Context) -> Told:
    """Return a message with a key of its own; lines have no id, so time and content name them."""
    if not message.parts:
        return Told(context)
    key = f"{context.state['mark']}-{fields.digest(payload)}"
    return Told(context, (replace(message, key=key),))


_TELLERS = {
    "session_meta": _meta,
    "turn_context": _turn,
    "compacted": _compacted,
    "event_msg": _event,
    "response_item": _item,
}
