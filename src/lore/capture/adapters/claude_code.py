"""Claude Code: one JSON line for each block that was said, a file for each session and subagent."""

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

agent = "claude-code"

_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""Lines that give a title and the field it is in; a later kind in this list outdoes the others."""

_SILENT = frozenset(
    """progress file-history-snapshot file-history-delta queue-operation mode permission-mode
    agent-name agent-color agent-setting last-prompt tag pr-link cost-state bridge-session
    worktree-state content-replacement attribution-snapshot task-summary
    speculation-accept result started""".split()
)
"""Lines for the program itself, in which nothing is said."""

_SHOWN = (
    "isMeta",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "isSynthetic",
    "toolUseResult",
    "sourceToolAssistantUUID",
)
"""Signs of a line in a person's place that the program wrote itself.

A line with a tool's result holds no words of a person: in none of 299 that were looked at."""

_ANSWERED_BY_LORE = "msg_lore"
"""The id of an answer that the gateway gave itself: it is no part of the talk."""

_MOST_CHAINS = 20
"""Subagents that are told in turns; agents run a handful at a time."""
_MOST_FILES = 200
_NAME_CHARS = 60
_META_BYTES = 65_536
_STAMP_CHARS = 40
"""A time is kept as it is written, unless that is longer than ISO 8601 needs."""

_ATTACHED_DEPTH = 4

_SIGNS = (b'"parentUuid"', b'"leafUuid"', b'"file-history-snapshot"', b'"queue-operation"')
"""Words that stand in the first lines of a transcript, and hardly in other files."""

Line = dict[str, Any]
State = dict[str, str]


def find(home: Path) -> Iterator[Path]:
    """Return the transcripts below a person's home folder."""
    return places.files(home / ".claude" / "projects", ".jsonl")


def fits(path: Path, head: bytes) -> bool:
    """Tell whether a file is a transcript of Claude Code."""
    if path.suffix != ".jsonl":
        return False
    at_home = ".claude" in path.parts and "projects" in path.parts
    return (at_home and b'"type"' in head) or any(sign in head for sign in _SIGNS)


def begin(path: Path) -> Context:
    """Return what the place of a file tells of its session."""
    state = {"time": places.modified(path).isoformat()}
    if not path.name.startswith("agent-"):
        return Context(session=path.stem, state=state)
    state["agent"] = path.stem.removeprefix("agent-")
    parent = path.parent.parent.name if path.parent.name == "subagents" else ""
    session = f"{parent}/{path.stem}" if parent else path.stem
    return Context(session=session, parent=parent, title=_described(path), state=state)


def _described(path: Path) -> str:
    """Return what a subagent was asked for, from the file beside its transcript."""
    try:
        with path.with_suffix(".meta.json").open("rb") as stream:
            told = fields.table(orjson.loads(stream.read(_META_BYTES)))
    except (OSError, ValueError):
        return ""
    return fields.text(told.get("description")) or fields.text(told.get("agentType"))


def tell(line: Any, context: Context) -> Told:
    """Return what a parsed line says."""
    if not isinstance(line, dict):
        return Told(context, unknown="no object")
    kind = line.get("type")
    if not isinstance(kind, str):
        return Told(context, unknown="no type")
    if kind in _SILENT:
        return Told(context)
    if kind in _TITLES:
        return Told(_titled(line, kind, context))
    teller = _TELLERS.get(kind)
    if teller is None:
        return Told(context, unknown=kind[:_NAME_CHARS])
    state = dict(context.state)
    stamp = line.get("timestamp")
    at = fields.moment(stamp)
    if at is None:
        at = fields.moment(state.get("time")) or clock.now()
    else:
        told = fields.text(stamp)
        state["time"] = told if len(told) <= _STAMP_CHARS else at.isoformat()
    session, parent = _session(line, context, state)
    key = fields.text(line.get("uuid"))
    state["last"] = key
    messages, files = teller(line, state, key or fields.digest(line), at)
    if parent:
        messages = [_from_agent(message) for message in messages]
    same = session == context.session
    placed = Context(
        session=session,
        parent=parent,
        title=context.title if same or "agent" in state else "",
        folder=context.folder or fields.text(line.get("cwd")),
        branch=fields.text(line.get("gitBranch")) or context.branch,
        version=fields.text(line.get("version")) or context.version,
        files=fields.bounded(files, context.files if same else (), _MOST_FILES),
        state=state,
        lasting_keys="uuid" in line,
    )
    return Told(placed, tuple(messages))


def _session(line: Line, context: Context, state: State) -> tuple[str, str]:
    """Return the session of a line and that of its parent, if a subagent speaks."""
    given = fields.text(line.get("sessionId")).strip()
    if given:
        state["main"] = given
    main = given or state.get("main") or context.session
    helper = fields.text(line.get("agentId")) or state.get("agent", "")
    if helper and (line.get("isSidechain") or "agent" in state):
        own = state.get("main") or context.parent
        return (f"{own}/agent-{helper}", own) if own else (context.session, "")
    if line.get("isSidechain") is True:
        return f"{main}/side-{_chain(line, state)}", main
    return main, ""


def _chain(line: Line, state: State) -> str:
    """Return the first line of the chain that a line of a subagent belongs to.

    Old versions write subagents into the file of their session; several can run at once.
    """
    own = fields.text(line.get("uuid")) or "?"
    first = state.pop(f"chain:{fields.text(line.get('parentUuid'))}", own)
    blocks.remember(state, f"chain:{own}", first, _MOST_CHAINS)
    return first


def _titled(line: Line, kind: str, context: Context) -> Context:
    """Return the context with the title of a line; a summary can be of another session."""
    title = fields.text(line.get(_TITLES[kind])).strip()
    order = list(_TITLES)
    outdone = order.index(kind) < order.index(context.state.get("titled", "summary"))
    foreign = kind == "summary" and (
        not context.state.get("last") or line.get("leafUuid") != context.state["last"]
    )
    if not title or outdone or foreign or context.parent:
        return context
    return replace(context, title=title, state={**context.state, "titled": kind})


def _from_agent(message: NewMessage) -> NewMessage:
    """Return a message of a subagent's session: what it is asked was written by its parent."""
    if message.role != "user":
        return message
    return replace(message, speaker="agent", origin="assistant")


Said = tuple[list[NewMessage], list[str]]


def _user(line: Line, state: State, key: str, at: datetime) -> Said:
    message = fields.table(line.get("message"))
    content = message.get("content")
    shown = (
        any(line[flag] for flag in _SHOWN if flag in line)
        or message.get("role") not in (None, "user")
        or not _by_human(line.get("origin"))
    )
    if not isinstance(content, list):
        return _asked(blocks.typed(fields.text(content), aside=shown), key, at), []
    messages: list[NewMessage] = []
    beside: list[Any] = []
    first = 0
    for i, block in enumerate(content):
        if isinstance(block, dict) and block.get("type") == "tool_result":
            name = key if len(content) == 1 else f"{key}:{i}"
            messages += _asked(blocks.typed(beside, aside=shown), f"{key}:{first}", at)
            messages.append(_result(block, state, name, at))
            beside, first = [], i + 1
        else:
            beside.append(block)
    name = key if len(content) == 1 else f"{key}:{first}"
    rest = blocks.typed(beside, aside=shown)
    return [*messages, *_asked(blocks.brought(rest) if messages else rest, name, at)], []


def _by_human(origin: Any) -> bool:
    """Tell whether a line came from a person: nothing else is said, or just that."""
    kind = origin.get("kind") if isinstance(origin, dict) else origin
    return kind in (None, "human")


def _asked(parts: tuple[Part, ...], key: str, at: datetime) -> list[NewMessage]:
    return [asides.from_person(NewMessage("user", (), at, key), parts)] if parts else []


def _result(block: Line, state: State, key: str, at: datetime) -> NewMessage:
    parts = blocks.answered(block, state, block.get("tool_use_id"))
    return NewMessage("tool", parts, at, key, origin=parts[0].origin)


def _assistant(line: Line, state: State, key: str, at: datetime) -> Said:
    message = fields.table(line.get("message"))
    if message.get("id") == _ANSWERED_BY_LORE:
        return [], []
    content = message.get("content")
    content = [content] if isinstance(content, str) else fields.items(content)
    model = fields.text(message.get("model"))
    if line.get("isApiErrorMessage") or model == "<synthetic>":
        return _asked(blocks.typed(content, aside=True), key, at), []
    messages: list[NewMessage] = []
    files: list[str] = []
    for i, block in enumerate(content):
        name = key if len(content) == 1 else f"{key}:{i}"
        parts = blocks.spoken(block, state)
        if not parts:
            continue
        if parts[0].kind == "tool_result":
            messages.append(NewMessage("tool", parts, at, name, origin=parts[0].origin))
            continue
        usage = _fresh_usage(message, state) if not messages else {}
        messages.append(NewMessage("assistant", parts, at, name, "", "assistant", model, usage))
        if parts[0].kind == "tool_call":
            files += tools.files(block.get("input"))
    return messages, files


def _fresh_usage(message: Line, state: State) -> dict[str, int]:
    """Return what a line adds to the usage of its message, which every line of it repeats.

    While a message streams its count of output grows, so the first line does not have it all.
    """
    usage = fields.counts(message.get("usage"))
    if not usage:
        return {}
    own = fields.text(message.get("id"))
    held, told = state.get("usage of"), state.get("usage", "")
    packed = fields.compact(usage)
    state["usage of"], state["usage"] = own, packed
    if not own or held != own:
        return usage
    if packed == told:
        return {}
    known = _counted(told)
    grown = {name: count - known.get(name, 0) for name, count in usage.items()}
    return {name: count for name, count in grown.items() if count > 0}


def _counted(told: str) -> dict[str, int]:
    """Return counts that were remembered; what was taken out of them as a secret is not known."""
    try:
        return fields.counts(orjson.loads(told))
    except orjson.JSONDecodeError:
        return {}


def _attachment(line: Line, state: State, key: str, at: datetime) -> Said:
    """Return what was attached: a prompt typed while the agent worked, or an aside."""
    del state
    attached = fields.table(line.get("attachment"))
    kind = fields.text(attached.get("type"))
    if kind == "queued_command":
        mode = attached.get("commandMode")
        human = mode in (None, "prompt") and _by_human(attached.get("origin"))
        shown = not human or bool(attached.get("isMeta") or line.get("isMeta"))
        return _asked(blocks.typed(attached.get("prompt"), aside=shown), key, at), []
    text = _attached_text(attached, _ATTACHED_DEPTH)
    files = list(tools.files(attached)) if kind in ("file", "edited_text_file") else []
    return _asked((asides.aside(text, kind),) if text.strip() else (), key, at), files


def _attached_text(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth == 0:
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, (_attached_text(each, depth - 1) for each in value)))
    told = fields.table(value)
    names = ("content", "stdout", "snippet", "file", "prompt", "text", "message", "blockingError")
    return next((text for name in names if (text := _attached_text(told.get(name), depth - 1))), "")


def _system(line: Line, state: State, key: str, at: datetime) -> Said:
    del state
    text = fields.text(line.get("content"))
    name = fields.text(line.get("subtype"))
    return _asked((asides.aside(text, name),) if text.strip() else (), key, at), []


_TELLERS = {"user": _user, "assistant": _assistant, "attachment": _attachment, "system": _system}
