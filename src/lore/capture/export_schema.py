"""Validate the fields of an exported record before it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lore.errors import InvalidInput
from lore.records import CHANNELS, EDGE_KINDS, FRAGMENT_KINDS, ORIGINS, PART_KINDS, ROLES, TRUST

_LATEST_US = 253_402_300_799_999_999
_EARLIEST_US = -62_135_596_800_000_000
_LARGEST = 2**53

Validator = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and abs(value) <= _LARGEST


def _count(value: Any) -> bool:
    return _whole_number(value) and 0 <= value <= _LARGEST


def _line_sources(value: Any) -> bool:
    """Return whether a value is a list of lines, each a list of ordinals."""
    return isinstance(value, list) and all(
        isinstance(line, list) and all(_count(ordinal) for ordinal in line) for line in value
    )


def _number(value: Any) -> bool:
    return _whole_number(value) and abs(value) < 2**63


def _channel(value: Any) -> bool:
    return _whole_number(value) and 0 <= value < len(CHANNELS)


def _trust(value: Any) -> bool:
    return _whole_number(value) and value in TRUST.values()


def _moment(value: Any) -> bool:
    return _whole_number(value) and _EARLIEST_US <= value <= _LATEST_US


def _whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _table(value: Any) -> bool:
    return isinstance(value, dict)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _parts(value: Any) -> bool:
    return isinstance(value, list) and all(_part(part) for part in value)


def _part(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("kind") in PART_KINDS
        and isinstance(value.get("text"), str)
        and set(value) <= {"kind", "text", "name", "call_id", "origin", "failed"}
        and isinstance(value.get("failed", False), bool)
        and all(isinstance(item, str) for name, item in value.items() if name != "failed")
        and value.get("origin", "user") in ORIGINS
    )


def _usage(value: Any) -> bool:
    return isinstance(value, dict) and all(_whole_number(count) for count in value.values())


def _one_of(*choices: str) -> Validator:
    return lambda value: value in choices


def _maybe(test: Validator) -> Validator:
    return lambda value: value is None or test(value)


FIELD_VALIDATORS: dict[str, dict[str, Validator]] = {
    "project": {
        "id": _name, "path": _name, "remote": _text, "name": _text, "created_at": _moment,
    },
    "session": {
        "id": _name, "external_id": _name, "project_id": _maybe(_name), "agent": _text,
        "title": _text, "files": _text, "branch": _text, "parent_id": _maybe(_name),
        "started_at": _moment, "last_message_at": _moment,
        "state": _one_of("open", "idle", "closed"),
    },
    "message": {
        "id": _name, "session_id": _name, "ordinal": _count, "key": _name,
        "role": _one_of(*ROLES), "speaker": _text, "parts": _parts, "origin": _one_of(*ORIGINS),
        "model": _text, "usage": _usage, "created_at": _moment, "channel": _channel,
    },
    "distillation": {
        "id": _name, "session_id": _name, "generation": _whole, "text": _text,
        "from_message": _text, "to_message": _text, "source_tokens": _whole,
        "archived": _whole, "created_at": _moment, "sources": _line_sources,
    },
    "fragment": {
        "id": _name, "content": _name, "summary": _text, "depth": _count,
        "kind": _one_of(*FRAGMENT_KINDS), "payload": _table, "importance": _share,
        "confidence": _share, "origin": _one_of(*ORIGINS), "trust": _trust,
        "source_messages": _texts, "metadata": _table, "project_id": _maybe(_name),
        "session_id": _maybe(_name), "created_at": _moment, "access_count": _count,
        "last_accessed": _maybe(_moment), "last_reinforced": _moment, "relevance": _share,
        "superseded_by": _maybe(_name), "valid_from": _maybe(_moment),
        "valid_to": _maybe(_moment), "updated_at": _moment, "version": _count,
        "deleted_at": _maybe(_moment), "boost": _amount, "boosted_at": _moment,
        "overview_at": _maybe(_moment),
    },
    "version": {
        "fragment_id": _name, "version": _count, "content": _text, "summary": _text,
        "changed_at": _moment, "reason": _text,
    },
    "edge": {
        "source": _name, "target": _name, "kind": _one_of(*EDGE_KINDS), "weight": _share,
        "note": _text, "created_at": _moment,
    },
    "watermark": {
        "source": _name, "session_id": _maybe(_name), "position": _whole, "fingerprint": _text,
        "updated_at": _moment, "file": _text, "size": _count, "modified_ns": _number,
        "context": _text, "problem": _text,
    },
    "claim": {"session_id": _name, "channel": _channel, "key": _name, "message_id": _name},
    "staged_turn": {"session_id": _name, "key": _name, "body": _text, "created_at": _moment},
    "session_state": {"session_id": _name, "name": _name, "value": _text, "updated_at": _moment},
    "curation": {"session_id": _name, "ordinal": _count, "at": _moment},
    "confirmation": {
        "fragment_id": _name, "project_id": _name, "times": _count, "at": _moment,
    },
    "judgement": {
        "a_id": _name, "b_id": _name, "verb": _name, "verdict": _name, "a_version": _count,
        "b_version": _count, "at": _moment,
    },
    "shared": {"entry": _name, "fragment_id": _name, "digest": _text, "left_out": _whole},
    "spend": {
        "key": _name, "at": _moment, "session_id": _maybe(_name), "project_id": _maybe(_name),
        "purpose": _text, "model": _text, "usage": _text, "usd": _amount,
    },
    "tombstone": {"id": _name, "at": _moment, "source": _text},
}  # fmt: skip
"""The validator of each field, by record type."""

OPTIONAL_FIELDS: dict[str, dict[str, Validator]] = {
    "spend": {
        "layer": _maybe(_count), "busts": _count, "delay_ms": _count, "without_usd": _amount,
    },
}  # fmt: skip
"""Fields that exports of an earlier Lore do not have."""


def check_record(kind: str, line: dict[str, Any]) -> None:
    """Raise `InvalidInput` for a record with a missing or invalid field."""
    later = OPTIONAL_FIELDS.get(kind, {})
    for field, test in (FIELD_VALIDATORS[kind] | later).items():
        if field not in line:
            if field in later:
                continue
            msg = f"A record of kind '{kind}' has no '{field}'."
            raise InvalidInput(msg)
        if not test(line[field]):
            msg = f"A record of kind '{kind}' has an invalid '{field}'."
            raise InvalidInput(msg)
