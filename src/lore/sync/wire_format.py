"""The wire format: a record as it travels, and the checks before it is believed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard

from lore.capture.export_import import FIELD_VALIDATORS, Validator
from lore.errors import SyncError
from lore.records import EDGE_KINDS
from lore.store import native_rows, sync_task_rows
from lore.store.sync_rows import KINDS
from lore.store.sync_shapes import SyncKind
from lore.store.sync_task_rows import TASK_KINDS, TaskKind, columns
from lore.sync.registers import LATEST_STAMP, MOST_PAST, Register, Registers, from_wire, to_wire
from lore.text.name_limit import is_short

FORMAT, OLDEST_FORMAT = 1, 1
"""The version of the format, and the oldest one that is still read and written."""

PAGE_BYTES = 2_000_000
"""A page ends with the record that reaches this size, well below the largest body of a server."""

LONGEST_PAGE = 64_000_000 + PAGE_BYTES
"""A page has at most one record beyond its size, and that one is at most the largest message."""

_LONGEST_KEY = 400

DEEPEST_RECORD = 30
"""Levels of a record: a request has two more around it, and servers read 32."""

_NAMES = frozenset((
    "path",
    "remote",
    "external_id",
    "agent",
    "project",
    "session",
    "parent",
))
"""Fields whose values are indexed: of references, and of registers."""

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


class SyncRecord(NamedTuple):
    """A record with its registers, and what finds or creates what it refers to."""

    kind: SyncKind
    key: str
    registers: Registers
    references: Mapping[str, Any]


def pack_record(record: SyncRecord) -> dict[str, Any]:
    """Return a record as JSON values."""
    packed = {"kind": record.kind, "key": record.key, "registers": to_wire(record.registers)}
    return {**packed, "references": record.references} if record.references else packed


def parse_record(raw: Any) -> SyncRecord:
    """Return a record of another machine; raise `SyncError` if anything is wrong with it."""
    if not isinstance(raw, dict) or raw.get("kind") not in KINDS:
        msg = "A record is of no kind that this version of Lore knows."
        raise SyncError(msg, hint="Upgrade the older one of the two.")
    kind, key, registers = raw["kind"], raw.get("key"), raw.get("registers")
    _check_depth(kind, raw)
    if not is_key(key) or not _KEYS[kind](key):
        raise _invalid(kind, "key")
    names = _REGISTERS[kind]
    if not isinstance(registers, dict) or set(registers) != set(names):
        raise _invalid(kind, "registers")
    for name, check in names.items():
        if not _is_register(registers[name], check):
            raise _invalid(kind, name)
    references = raw.get("references", {})
    if not isinstance(references, dict) or not _are_references(kind, references):
        raise _invalid(kind, "references")
    believed = from_wire(registers)
    if kind == "fragment":
        believed["text"] = _without_note(believed["text"])
    if kind in TASK_KINDS and believed["self"].value is not None:
        if kind == "working_state" and "session" not in references:
            raise _invalid(kind, "references")
        believed["self"] = _without_own(kind, believed["self"])
    return SyncRecord(kind, key, believed, references)


def has_long_name(raw: Any) -> bool:
    """Return whether a record has a name that is too long to be stored."""
    if not isinstance(raw, dict):
        return False
    registers = raw.get("registers")
    values = [
        one[2]
        for one in (registers.values() if isinstance(registers, dict) else ())
        if isinstance(one, list) and len(one) > 2
    ]
    return any(not is_short(name) for name in _names_in([raw.get("references"), *values]))


def _names_in(values: Iterable[Any]) -> Iterable[str]:
    """Yield the names that a record refers to, or has itself.

    The record is not checked yet: it may have any shape and depth, so this does not recurse.
    """
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            for name, one in value.items():
                if name in _NAMES and isinstance(one, str):
                    yield one
                elif name in _REFERENCES:
                    waiting.append(one)


def _without_note(text: Register) -> Register:
    """Return a fragment's text that is no note in a file here: only this machine says so.

    Lore sends no such metadata. Who does could tie words to a file of an agent, and so have this
    machine take them for the person's own notes, or look into files for them.
    """
    metadata = native_rows.without_note(text.value["metadata"])
    return text._replace(value={**text.value, "metadata": metadata})


def _without_own(kind: TaskKind, own: Register) -> Register:
    """Return a record of task memory without what is of one machine, which Lore does not send."""
    body = sync_task_rows.without_own(kind, own.value["body"])
    return own._replace(value={**own.value, "body": body})


def is_too_deep(raw: Any) -> bool:
    """Return whether a record is nested too deeply to be sent on in a request."""
    level: list[Any] = [raw]
    for _ in range(DEEPEST_RECORD):
        if not level:
            return False
        level = [inner for one in level for inner in _inner_values(one)]
    return bool(level)


def _check_depth(kind: str, raw: Any) -> None:
    if is_too_deep(raw):
        msg = f"A record of kind '{kind}' is nested deeper than {DEEPEST_RECORD} levels."
        raise SyncError(msg)


def _invalid(kind: str, what: str) -> SyncError:
    return SyncError(f"A record of kind '{kind}' has an invalid '{what}'.")


def is_key(value: Any) -> TypeGuard[str]:
    """Return whether a value can be the key of a record: no engine looks for a zero character."""
    is_text = isinstance(value, str) and 0 < len(value) <= _LONGEST_KEY
    return is_text and "\0" not in value and is_short(value)


def _is_us(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LATEST_STAMP


def _is_machine(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 64


def _is_stamp(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2
    return is_pair and _is_us(value[0]) and _is_machine(value[1])


def _is_register(value: Any, check: Validator) -> bool:
    if not isinstance(value, list) or len(value) not in (3, 4):
        return False
    past = value[3] if len(value) == 4 else []
    is_past = isinstance(past, list) and len(past) <= MOST_PAST and all(map(_is_stamp, past))
    return _is_stamp(value[:2]) and is_past and check(value[2])


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def _is_composite(parts: int, *lasts: str) -> Callable[[str], bool]:
    def check(key: str) -> bool:
        ids, last = key.split("/")[:-1], key.split("/")[-1]
        return len(ids) == parts - 1 and all(map(_is_id, ids)) and (not lasts or last in lasts)

    return check


_KEYS: Mapping[str, Callable[[str], bool]] = {
    "forget": lambda _key: True,
    "session": lambda _key: True,
    "message": _is_id,
    "distillation": _is_id,
    "fragment": _is_id,
    "version": _is_composite(2),
    "parent": _is_id,
    "edge": _is_composite(3, *(kind for kind in EDGE_KINDS if kind != "hierarchical")),
    "instruction": _is_composite(2),
    "judgement": _is_composite(3, "merge", "judge", "reflect", "prune"),
    "task": _is_id,
    "handoff": _is_id,
    "working_state": lambda key: "/" not in key,
}


def _fields(record: str, *names: str, **more: Validator) -> Validator:
    """Return the check of a value that has exactly these fields, as an export has them."""
    checks = {name: FIELD_VALIDATORS[record][name] for name in names} | more

    def check(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and set(value) == set(checks)
            and all(test(value[name]) for name, test in checks.items())
        )

    return check


def _maybe(test: Validator) -> Validator:
    return lambda value: value is None or test(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_day(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 4_000_000


def _is_weighted(value: Any) -> bool:
    has_weight = isinstance(value, dict) and "weight" in value
    names = ("note", "created_at", *(("weight",) if has_weight else ()))
    return _fields("edge", *names)(value)


def _task_record(kind: TaskKind) -> Validator:
    """Return the check of a record of task memory; its body is a table, not the text of one."""
    more = {"body": _is_table, "project": _maybe_short, "session": _maybe_short}
    if kind == "task":
        more["episode"] = _maybe_id
    return _maybe(_fields(kind, *(name for name in columns(kind) if name != "body"), **more))


def _inner_values(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


_STATES = ("stands", "suggested", "confirmed", "rejected", "passing")

_is_table = FIELD_VALIDATORS["fragment"]["payload"]
_moment = FIELD_VALIDATORS["message"]["created_at"]
_is_short = FIELD_VALIDATORS["project"]["remote"]
_maybe_short = _maybe(_is_short)
_maybe_id = _maybe(_is_id)

_REGISTERS: Mapping[str, Mapping[str, Validator]] = {
    "forget": {"self": _fields("tombstone", "source")},
    "session": {
        "names": _fields("session", "title", "files", "branch"),
        "place": _fields("session", project=_maybe_short, parent=_maybe_short),
    },
    "message": {
        "self": _fields(
            "message", "channel", "key", "role", "speaker", "parts", "origin", "model", "usage",
            "created_at", session=_is_short,
        )
    },
    "distillation": {
        "self": _fields(
            "distillation", "generation", "text", "from_message", "to_message", "source_tokens",
            "sources", "created_at", session=_is_short,
        ),
        "archived": lambda value: isinstance(value, bool),
    },
    "fragment": {
        "self": _fields("fragment", "created_at"),
        "text": _fields(
            "fragment", "content", "summary", "kind", "payload", "origin", "trust", "metadata"
        ),
        "evidence": _fields(
            "fragment", "confidence", "importance", "source_messages", "updated_at"
        ),
        "validity": _fields("fragment", "valid_from", "valid_to", superseded_by=_maybe_id),
        "shown": _fields("fragment", "deleted_at", archived_at=_maybe(_moment)),
        "place": _fields("fragment", project=_maybe_short, session=_maybe_short),
        "use": _is_day,
    },
    "version": {"self": _maybe(_fields("version", "content", "summary", "changed_at", "reason"))},
    "parent": {"self": _maybe_id},
    "edge": {"self": _maybe(_is_weighted)},
    "instruction": {
        "self": lambda value: value is None or value in _STATES,
        "rule": _maybe(_fields("message", "created_at", text=_is_text)),
    },
    "judgement": {
        "self": _maybe(_fields("judgement", "verdict", "at", a_text=_is_text, b_text=_is_text))
    },
    **{kind: {"self": _task_record(kind)} for kind in TASK_KINDS},
}  # fmt: skip
"""The registers of each kind, and the check of each value."""

_is_project = _fields("project", "path", "remote", "name")
_is_session = _fields(
    "session", "id", "external_id", "agent", "started_at", project=_maybe(_is_project)
)
_REFERENCES: Mapping[str, Validator] = {
    "session": _is_session,
    "parent": _is_session,
    "project": _is_project,
    "ordinal": FIELD_VALIDATORS["message"]["ordinal"],
    "weight": FIELD_VALIDATORS["edge"]["weight"],
}
_REQUIRED = {
    "session": {"session"},
    "message": {"session", "ordinal"},
    "distillation": {"session"},
}


def _are_references(kind: str, references: Mapping[str, Any]) -> bool:
    if not _REQUIRED.get(kind, set()) <= set(references) <= set(_REFERENCES):
        return False
    return all(_REFERENCES[name](value) for name, value in references.items())


def known_references(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the references of a record that have a form that this version knows."""
    references = raw.get("references")
    if not isinstance(references, dict):
        return {}
    return {
        name: one
        for name, one in references.items()
        if name in _REFERENCES and _REFERENCES[name](one)
    }


def is_known_kind(raw: Mapping[str, Any]) -> bool:
    """Return whether this version knows the kind of a record."""
    return isinstance(raw.get("kind"), str) and raw["kind"] in KINDS


def without_unknown(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of a known kind without registers and references of a newer version."""
    names = {"registers": _REGISTERS[raw["kind"]], "references": _REFERENCES}
    return {
        part: {name: one for name, one in value.items() if name in names[part]}
        if part in names and isinstance(value, dict)
        else value
        for part, value in raw.items()
    }


_KIND = re.compile(r"[a-z][a-z_]{0,39}")


def check_shape(raw: Mapping[str, Any]) -> None:
    """Raise `SyncError` unless a record of a newer version has the shape of all records."""
    kind, key, registers = raw.get("kind"), raw.get("key"), raw.get("registers")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        msg = "A record has no kind."
        raise SyncError(msg)
    if not is_key(key):
        raise _invalid(kind, "key")
    is_sound = isinstance(registers, dict) and all(
        isinstance(name, str) and _is_register(one, lambda _value: True)
        for name, one in registers.items()
    )
    if not registers or not is_sound:
        raise _invalid(kind, "registers")
