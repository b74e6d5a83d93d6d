"""All rows of a memory as lines of JSON: how they are read, and how two dumps are compared.

A dump is a head, each table with its rows after it, and the number of all rows. Bytes are written
as PostgreSQL writes them: '\\x' and digits. A portable dump leaves out what an engine derives from
other rows (words, rows of pgvector), so that any engine can load it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from lore.errors import LoreError, SchemaTooNew, StoreDamaged
from lore.text.name_limit import is_short, shorten_name

FORMAT = 1

NUMBERED_TABLES = ("items", "vectors", "changes")
"""Tables whose numbers are never used again; a portable dump has the next one of each."""

NUL, NUL_SIGN = "\0", "\N{SYMBOL FOR NULL}"
"""PostgreSQL has no text with a zero character; it is stored as the sign for it."""

_MOST_INDEXED = 2_560
"""Bytes of all names of an index; PostgreSQL has 2,704 for them, the owner and the numbers."""

_HEAD_LINE, _TABLE_LINE = b'{"rows":', b'{"table":'

_ESCAPED_NUL = b"\\u0000"

NOT_FINITE = ("Infinity", "-Infinity", "NaN")
"""How PostgreSQL writes the numbers that JSON does not have."""

Line = dict[str, Any]


def portable_head(
    schema: Iterable[str],
    next_numbers: Mapping[str, int],
    fractions: Mapping[str, list[str]],
    names: Mapping[str, list[list[str]]] | None = None,
) -> Iterator[bytes]:
    """Yield the head of a portable dump: the migrations of its schema, and the next numbers.

    It names the columns of numbers with a fraction of each table: JSON has one kind of number. It
    may also name the texts of each index.
    """
    head = {"rows": FORMAT, "schema": sorted(schema), "portable": True, "fractions": fractions}
    yield orjson.dumps({**head, "names": names or {}})
    yield orjson.dumps({"next": next_numbers})


def check_head(head: Line, schema: list[str], portable_schema: Iterable[str]) -> bool:
    """Refuse what is no dump, or of another schema; return whether it is a portable one."""
    if head.get("rows") != FORMAT:
        raise damaged_error(reason="It is no dump of a memory.")
    is_portable = bool(head.get("portable"))
    if head.get("schema") != (sorted(portable_schema) if is_portable else schema):
        msg = "The backup was made by another version of Lore, with other tables."
        raise SchemaTooNew(msg, hint="Restore it with that version, then upgrade.")
    return is_portable


def parse(line: bytes) -> Line:
    """Return a line of a dump; one that is no JSON object is damage."""
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise damaged_error(reason="It has a line that is no JSON.") from error
    if not isinstance(parsed, dict):
        raise damaged_error(reason="It has a line that is no row.")
    return parsed


def without_nul(line: Line) -> Line:
    """Return a row with the sign for a zero character in place of it."""
    return {
        name: value.replace(NUL, NUL_SIGN) if isinstance(value, str) else value
        for name, value in line.items()
    }


def damaged_error(*, reason: str) -> LoreError:
    """Return the error for a dump that cannot be loaded."""
    msg = f"The dump of a memory is damaged: {reason}"
    return StoreDamaged(msg, hint="Take another backup; nothing was restored.")


@dataclass(slots=True)
class NameShortener:
    """Shortens names that an index of PostgreSQL cannot have, each to its beginning and digest."""

    count: int = 0
    """How many names were shortened."""

    def shorten(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of a portable dump with names that fit."""
        names: Mapping[str, list[list[str]]] = {}
        indexes: list[list[str]] = []
        for line in lines:
            if line.startswith(_TABLE_LINE):
                indexes = names.get(str(parse(line)["table"]), [])
            elif line.startswith(_HEAD_LINE):
                names = parse(line).get("names", {})
            elif indexes and len(line) > _MOST_INDEXED:
                yield self._shorten_row(line, indexes)
                continue
            yield line

    def _shorten_row(self, line: bytes, indexes: Iterable[list[str]]) -> bytes:
        row = without_nul(parse(line))
        long: dict[str, str] = {}
        for columns in indexes:
            texts = {name: row[name] for name in columns if isinstance(row[name], str)}
            if sum(len(text.encode()) for text in texts.values()) > _MOST_INDEXED:
                long |= {name: text for name, text in texts.items() if not is_short(text)}
        self.count += len(long)
        return orjson.dumps(row | {name: shorten_name(text) for name, text in long.items()})


@dataclass(slots=True)
class RowTally:
    """How many rows of each table a dump has, and a digest of them that ignores their order."""

    counts: dict[str, int] = field(default_factory=dict)
    digests: dict[str, int] = field(default_factory=dict)
    _fractions: dict[str, list[str]] = field(default_factory=dict)

    def watch(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of a dump, and count them on the way."""
        table = ""
        for line in lines:
            parsed = parse(line)
            if "rows" in parsed and not table:
                self._fractions = dict(parsed.get("fractions", {}))
            elif set(parsed) == {"table"}:
                table = str(parsed["table"])
            elif table and set(parsed) != {"end"} and not _is_epoch(table, parsed):
                plain = _canonical(line, parsed, self._fractions.get(table, ()))
                digest = int.from_bytes(hashlib.sha256(plain).digest())
                self.counts[table] = self.counts.get(table, 0) + 1
                self.digests[table] = (self.digests.get(table, 0) + digest) % (1 << 256)
            yield line

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> RowTally:
        """Count the rows of a dump."""
        tally = cls()
        for _ in tally.watch(lines):
            pass
        return tally

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return sum(self.counts.values())

    @property
    def digest(self) -> str:
        """A text that is the same for the same rows."""
        tables = sorted((name, self.counts[name], self.digests[name]) for name in self.counts)
        return hashlib.sha256(repr(tables).encode()).hexdigest()

    def differences(self, other: RowTally) -> list[str]:
        """Return the names of the tables whose rows are not the same."""
        tables = sorted({*self.counts, *other.counts})
        return [
            table
            for table in tables
            if self.counts.get(table) != other.counts.get(table)
            or self.digests.get(table) != other.digests.get(table)
        ]


def _is_epoch(table: str, row: Line) -> bool:
    """Return whether a row is the name of this copy, which no other copy has."""
    return table == "meta" and row.get("key") == "epoch"


def _is_whole(value: float) -> bool:
    """Return whether a number is a whole one that every engine and JSON have exactly."""
    return value.is_integer() and abs(value) < 2**53


def _canonical(line: bytes, row: Line, fractions: Collection[str]) -> bytes:
    """Return a row in the form that is the same for each engine: 1.0 is 1, and NUL has its sign.

    Engines write a number with a fraction in several ways, so that its bits are compared.
    """
    if _ESCAPED_NUL in line:
        row = without_nul(row)
    plain = {name: _plain(value, is_exact=name in fractions) for name, value in row.items()}
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)


def _plain(value: Any, *, is_exact: bool) -> Any:
    if is_exact and is_number(value):
        return (float(value) + 0.0).hex()
    return int(value) if isinstance(value, float) and _is_whole(value) else value


def pack_number(value: float) -> float | str:
    """Return a number as a dump has it: JSON has no infinity."""
    return value if math.isfinite(value) else NOT_FINITE[0 if value > 0 else 1]


def is_number(value: Any) -> bool:
    """Return whether the value of a column of fractions is a number, or the name of one."""
    return isinstance(value, int | float) or value in NOT_FINITE
