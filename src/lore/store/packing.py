"""Packing: values as the store keeps them, and back; garbage is told as damage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson

from lore import clock
from lore.errors import StoreDamaged
from lore.records import Part
from lore.text.parts import searchable


def pack_parts(parts: Sequence[Part]) -> str:
    """Return parts as compact JSON, without empty fields."""
    packed = []
    for part in parts:
        fields: dict[str, str | bool] = {"kind": part.kind, "text": part.text}
        if part.name:
            fields["name"] = part.name
        if part.call_id:
            fields["call_id"] = part.call_id
        if part.origin:
            fields["origin"] = part.origin
        if part.failed:
            fields["failed"] = True
        packed.append(fields)
    return orjson.dumps(packed).decode()


def unpack_text(packed: str) -> str:
    """Return the searchable text of packed parts, as `lore.text.parts` has it, but quickly."""
    parts = unpack_json(packed)
    try:
        if len(parts) == 1 and parts[0]["kind"] == "text":
            return str(parts[0]["text"])
    except (KeyError, TypeError) as error:
        damage = _garbled("message")
        raise damage from error
    return searchable(unpack_parts(packed))


def unpack_parts(packed: str) -> tuple[Part, ...]:
    """Return the parts that `pack_parts` wrote."""
    try:
        return tuple(Part(**fields) for fields in orjson.loads(packed))
    except (TypeError, ValueError) as error:
        damage = _garbled("message")
        raise damage from error


def unpack_json(packed: str) -> Any:
    """Return a JSON value that the store wrote."""
    try:
        return orjson.loads(packed)
    except (TypeError, ValueError) as error:
        damage = _garbled("value")
        raise damage from error


def number(value: int | None) -> int:
    """Return a number that the store wrote."""
    if not isinstance(value, int):
        damage = _garbled("number")
        raise damage
    return value


def moment(us: int) -> datetime:
    """Return a moment that the store wrote."""
    try:
        return clock.from_us(us)
    except (TypeError, ValueError, OverflowError) as error:
        damage = _garbled("time")
        raise damage from error


def _garbled(what: str) -> StoreDamaged:
    return StoreDamaged(
        f"The database is damaged: a {what} in it cannot be read.",
        hint="'lore doctor' says what can be saved; 'lore restore' takes a backup.",
    )
