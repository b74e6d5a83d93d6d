"""Packing: values as the store keeps them, and back; garbage is told as damage."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson

from lore import clock
from lore.errors import StoreDamaged
from lore.records import ROLES, Part, PartKind, Role
from lore.text.parts import searchable

_JSON = "["
"""How packed parts begin that are not one plain text; a text that begins so is packed too."""

_PACKED_CHARS = 16
_PACKED_KEY = re.compile(r"[0-9a-f]{16}")
_RECENT_KEYS = 4_096
"""A batch's keys are looked up first and written then."""


def pack_parts(parts: Sequence[Part]) -> str:
    """Return one plain text as it is, other parts as compact JSON without empty fields."""
    if len(parts) == 1 and _is_plain_part(parts[0]):
        return parts[0].text
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


def _is_plain_part(part: Part) -> bool:
    """Tell whether a part is nothing but a text that can be told from packed parts."""
    bare = not (part.name or part.call_id or part.origin or part.failed)
    return bare and part.kind == "text" and not part.text.startswith(_JSON)


def holds(column: str, kind: PartKind) -> str:
    """Return the SQL condition that packed parts hold one of a kind, but for one plain text.

    A plain text that quotes packed parts fits too; `unpack_parts` tells them apart.
    """
    return f"{column} LIKE '%{_spelled(kind=kind)}%'"


def may_mix(column: str) -> str:
    """Return the SQL condition that packed parts may be of others than their message is.

    A part has an origin of its own, or it is what a tool gave back: see `text.parts.origin_of`.
    """
    own = _spelled(origin="").removesuffix('""')
    return f"({column} LIKE '%{own}%' OR {holds(column, 'tool_result')})"


def _spelled(**field: str) -> str:
    """Return a field as `pack_parts` spells it."""
    return orjson.dumps(field).decode()[1:-1]


def unpack_text(packed: str) -> str:
    """Return the searchable text of packed parts, as `lore.text.parts` has it, but quickly."""
    return packed if _is_plain(packed) else searchable(unpack_parts(packed))


def _is_plain(packed: Any) -> bool:
    return isinstance(packed, str) and not packed.startswith(_JSON)


def unpack_parts(packed: str) -> tuple[Part, ...]:
    """Return the parts that `pack_parts` wrote."""
    try:
        if _is_plain(packed):
            return (Part("text", packed),)
        return tuple(Part(**fields) for fields in orjson.loads(packed))
    except (TypeError, ValueError) as error:
        damage = _garbled("message")
        raise damage from error


@lru_cache(maxsize=_RECENT_KEYS)
def pack_key(key: str) -> int:
    """Return the number by which a session knows a message's key again.

    A key that `unpack_key` gave is taken for that number, so that an export keeps its keys.
    """
    if len(key) == _PACKED_CHARS and _PACKED_KEY.fullmatch(key):
        digest = bytes.fromhex(key)
    else:
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8]
    return int.from_bytes(digest, "big", signed=True)


def unpack_key(number: int) -> str:
    """Return a key that stands for the one that `pack_key` was given."""
    return number.to_bytes(8, "big", signed=True).hex()


# Roles are kept by their place in the list: new ones belong at its end.
_ROLE_NUMBERS: dict[Role, int] = {name: i + 1 for i, name in enumerate(ROLES)}
_ROLE_NAMES = {number: name for name, number in _ROLE_NUMBERS.items()}


def pack_role(role: Role) -> int:
    """Return the number under which a message's role is kept."""
    return _ROLE_NUMBERS[role]


def unpack_role(number: int) -> Role:
    """Return the role of a number that `pack_role` gave."""
    if number not in _ROLE_NAMES:
        damage = _garbled("role")
        raise damage
    return _ROLE_NAMES[number]


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
