"""Packing: the parts of a message as compact JSON, and back."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from lore.records import Part


def pack_parts(parts: Sequence[Part]) -> str:
    """Return parts as compact JSON, without empty fields."""
    packed = []
    for part in parts:
        fields = {"kind": part.kind, "text": part.text}
        if part.name:
            fields["name"] = part.name
        if part.call_id:
            fields["call_id"] = part.call_id
        if part.origin:
            fields["origin"] = part.origin
        packed.append(fields)
    return orjson.dumps(packed).decode()


def unpack_parts(packed: str) -> tuple[Part, ...]:
    """Return the parts that `pack_parts` wrote."""
    return tuple(Part(**fields) for fields in orjson.loads(packed))
