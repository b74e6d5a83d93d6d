"""Encode values for storage and decode them; report undecodable values as damage."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, TypeVar

import orjson

from lore import clock
from lore.errors import StoreDamaged
from lore.records import ROLES, TRUST, UNASKED_TRUST, Part, PartKind, Role
from lore.text.message_features import searchable_text

T = TypeVar("T")

_JSON = "["
"""The first character of packed JSON; a plain text that starts with it is packed as JSON, too."""

_PACKED_CHARS = 16
_PACKED_KEY = re.compile(r"[0-9a-f]{16}")
_RECENT_KEYS = 4_096
"""A batch looks its keys up before it writes them, so the cache saves hashing them twice."""


def pack_parts(parts: Sequence[Part]) -> str:
    """Return a single plain text as it is, and other parts as compact JSON without empty fields."""
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
    bare = not (part.name or part.call_id or part.origin or part.failed)
    return bare and part.kind == "text" and not part.text.startswith(_JSON)


def has_part_kind(column: str, kind: PartKind) -> str:
    """Return the SQL condition that packed parts contain a part of this kind.

    A plain text that quotes packed parts matches as well; `unpack_parts` separates them.
    """
    return f"{column} LIKE '%{_json_field(kind=kind)}%'"


def may_have_other_origins(column: str) -> str:
    """Return the SQL condition that a part may have another origin than its message.

    Such a part has an origin of its own or is a tool result.
    """
    own = _json_field(origin="").removesuffix('""')
    return f"({column} LIKE '%{own}%' OR {has_part_kind(column, 'tool_result')})"


def _json_field(**field: str) -> str:
    return orjson.dumps(field).decode()[1:-1]


def unpack_text(packed: str) -> str:
    """Return the searchable text of packed parts, without decoding a plain text."""
    return packed if _is_plain(packed) else searchable_text(unpack_parts(packed))


def _is_plain(packed: Any) -> bool:
    return isinstance(packed, str) and not packed.startswith(_JSON)


def unpack_parts(packed: str) -> tuple[Part, ...]:
    """Return the parts that `pack_parts` encoded."""
    try:
        if _is_plain(packed):
            return (Part("text", packed),)
        return tuple(Part(**fields) for fields in orjson.loads(packed))
    except (TypeError, ValueError) as error:
        damage = _damaged("message")
        raise damage from error


@lru_cache(maxsize=_RECENT_KEYS)
def pack_key(key: str) -> int:
    """Return the 64-bit hash that stands for a message key.

    The output of `unpack_key` maps back to the same number, so exported keys survive an import.
    """
    if len(key) == _PACKED_CHARS and _PACKED_KEY.fullmatch(key):
        digest = bytes.fromhex(key)
    else:
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8]
    return int.from_bytes(digest, "big", signed=True)


def unpack_key(number: int) -> str:
    """Return a text key for a number from `pack_key`."""
    return number.to_bytes(8, "big", signed=True).hex()


# Roles are stored by their position in the list: append new ones at its end.
_ROLE_NUMBERS: dict[Role, int] = {name: i + 1 for i, name in enumerate(ROLES)}
_ROLE_NAMES = {number: name for name, number in _ROLE_NUMBERS.items()}


def pack_role(role: Role) -> int:
    """Return the stored number of a role."""
    return _ROLE_NUMBERS[role]


def unpack_role(number: int) -> Role:
    """Return the role of a stored number."""
    if number not in _ROLE_NAMES:
        damage = _damaged("role")
        raise damage
    return _ROLE_NAMES[number]


def unpack_json(packed: str) -> Any:
    """Decode a stored JSON value."""
    try:
        return orjson.loads(packed)
    except (TypeError, ValueError) as error:
        damage = _damaged("value")
        raise damage from error


def unpack_number(value: int | None) -> int:
    """Return a stored number, or raise if it is not one."""
    if not isinstance(value, int):
        damage = _damaged("number")
        raise damage
    return value


def unpack_time(us: int) -> datetime:
    """Decode a stored time."""
    try:
        return clock.from_us(us)
    except (TypeError, ValueError, OverflowError) as error:
        damage = _damaged("time")
        raise damage from error


def _damaged(what: str) -> StoreDamaged:
    return StoreDamaged(
        f"The database is damaged: a {what} in it cannot be read.",
        hint="Run 'lore doctor' to see what can be saved, or 'lore restore' to use a backup.",
    )


TRUSTED_ORIGINS = tuple(origin for origin, trust in TRUST.items() if trust >= UNASKED_TRUST)

TRUSTED_SQL = ", ".join(f"'{origin}'" for origin in TRUSTED_ORIGINS)
"""The same origins as an SQL list."""


def pack_json(value: Any) -> str:
    """Encode a JSON value for storage."""
    return orjson.dumps(value).decode()


def unpack_optional_time(us: int | None) -> datetime | None:
    """Decode a stored time, or None."""
    return None if us is None else unpack_time(us)


def unpack_record(kind: type[T], row: Sequence[Any], **decoders: Callable[[Any], Any]) -> T:
    """Return a record from the values of its fields, in order.

    Times and booleans are decoded by the types of their fields, other values by `decoders`.
    """
    values = dict(zip(kind.__annotations__, row, strict=True))
    for name, decode in (_decoders_by_type(kind) | decoders).items():  # type: ignore[arg-type]
        values[name] = decode(values[name])
    return kind(**values)


@cache
def _decoders_by_type(kind: type[Any]) -> dict[str, Callable[[Any], Any]]:
    decoders: dict[str, Callable[[Any], Any]] = {}
    for name, annotation in kind.__annotations__.items():
        # A named tuple wraps the names of types.
        type_name = getattr(annotation, "__forward_arg__", annotation)
        if type_name in ("datetime", "datetime | None"):
            decoders[name] = unpack_optional_time
        elif type_name == "bool":
            decoders[name] = bool
    return decoders
