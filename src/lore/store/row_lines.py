"""All rows of a memory as lines of JSON: how they are read, and how two dumps are compared.

A dump is a head, each table with its rows after it, and the number of all rows. Bytes are written
as PostgreSQL writes them: '\\x' and digits. A portable dump leaves out what an engine derives from
other rows (words, rows of pgvector), so that any engine can load it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from lore.errors import LoreError, SchemaTooNew, StoreDamaged

FORMAT = 1

NUMBERED_TABLES = ("items", "vectors", "changes")
"""Tables whose numbers are never used again; a portable dump has the next one of each."""

NUL, NUL_SIGN = "\0", "\N{SYMBOL FOR NULL}"
"""PostgreSQL has no text with a zero character; it is stored as the sign for it."""

_ESCAPED_NUL = b"\\u0000"

Line = dict[str, Any]


def portable_head(schema: Iterable[str], next_numbers: Mapping[str, int]) -> Iterator[bytes]:
    """Yield the head of a portable dump: the migrations of its schema, and the next numbers."""
    yield orjson.dumps({"rows": FORMAT, "schema": sorted(schema), "portable": True})
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
class RowTally:
    """How many rows of each table a dump has, and a digest of them that ignores their order."""

    counts: dict[str, int] = field(default_factory=dict)
    digests: dict[str, int] = field(default_factory=dict)

    def watch(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of a dump, and count them on the way."""
        table = ""
        for line in lines:
            parsed = parse(line)
            if set(parsed) == {"table"}:
                table = str(parsed["table"])
            elif table and set(parsed) != {"end"} and not _is_epoch(table, parsed):
                digest = int.from_bytes(hashlib.sha256(_canonical(line, parsed)).digest())
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


def _canonical(line: bytes, row: Line) -> bytes:
    """Return a row in the form that is the same for each engine: 1.0 is 1, and NUL has its sign."""
    if _ESCAPED_NUL in line:
        row = without_nul(row)
    plain = {
        name: int(value) if isinstance(value, float) and _is_whole(value) else value
        for name, value in row.items()
    }
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
