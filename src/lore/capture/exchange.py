"""Export and import: everything as JSON lines, the same again after a round trip.

Indexes, vectors, mentions and standing instructions are derived and made anew. An export is sealed
with the key of its home: what another home wrote comes in as a peer's word.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from lore import clock
from lore.capture import peers, shapes
from lore.capture.messages import prepare
from lore.capture.sealing import LINES_PER_SEAL, Sealer
from lore.errors import InvalidInput, StoreError
from lore.records import CHANNELS, TRUST, Imported, NewMessage, Part
from lore.redaction import UNKEPT, redact_tree
from lore.store import changes, dump, loading, messages, trusting
from lore.store.db import Connection, Database
from lore.text import entities
from lore.text.secrets import Redactor

FORMAT = 1
_SEAL = "seal"

Line = dict[str, Any]


def export(database: Database, target: Path | BinaryIO, *, key: bytes) -> int:
    """Write everything to a file or stream, sealed, and return how many records that were."""
    if isinstance(target, Path):
        _refuse_own_file(database, target)
        part = target.with_name(f"{target.name}.part-{os.getpid()}")
        try:
            with part.open("wb") as stream:
                part.chmod(0o600)
                count = _write(database, stream, Sealer(key))
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(target)
        except OSError as error:
            msg = f"{target} could not be written: {error.strerror}."
            raise StoreError(msg) from error
        finally:
            part.unlink(missing_ok=True)
        return count
    return _write(database, target, Sealer(key))


def _refuse_own_file(database: Database, target: Path) -> None:
    """Refuse to write over the database, its log, its index or a backup."""
    own = database.path.resolve()
    path = target.resolve()
    in_home = path.parent == own.parent and path.name.startswith((f"{own.name}-", own.name))
    if in_home or path.suffix in (".db", ".index", ".lock"):
        msg = f"{target} is, or looks like, a file of the memory itself."
        raise InvalidInput(msg, hint="Name another file, such as export.jsonl.")


def _write(database: Database, stream: BinaryIO, sealer: Sealer) -> int:
    header = {"lore": FORMAT, "exported_at": database.now().isoformat(), "home": sealer.home}
    stream.write(orjson.dumps(header) + b"\n")
    count = 0
    with database.read() as db:
        for line in dump.everything(db):
            if count and count % LINES_PER_SEAL == 0:
                stream.write(_sealed(sealer))
            raw = orjson.dumps(line)
            sealer.add(raw)
            stream.write(raw + b"\n")
            count += 1
    stream.write(_sealed(sealer))
    return count


def _sealed(sealer: Sealer) -> bytes:
    return orjson.dumps({"record": _SEAL, "of": sealer.seal()}) + b"\n"


def import_lines(
    database: Database,
    lines: Iterable[bytes],
    *,
    key: bytes,
    trust: bool | None = None,
    redactor: Redactor = UNKEPT,
    progress: Callable[[int], None] | None = None,
) -> Imported:
    """Bring in an export; records that are here already, or were forgotten, are skipped.

    What another home wrote is refused, unless `trust` says whether to believe it. If not, it is
    a peer's word, and nothing is deleted by it.
    """
    counts = Imported()
    for batch, foreign in _batches(lines, Sealer(key), trust=trust):
        told = _redacted(batch, redactor)
        added, left_out = database.write(
            partial(_add_batch, batch=told, foreign=foreign, now=database.now())
        )
        counts = Imported(
            added=counts.added + added,
            skipped=counts.skipped + len(batch) - added - left_out,
            left_out=counts.left_out + left_out,
            foreign=foreign,
        )
        if progress:
            progress(counts.added + counts.skipped + counts.left_out)
    return counts


_Numbered = Iterator[tuple[int, bytes]]


def _batches(
    lines: Iterable[bytes], sealer: Sealer, *, trust: bool | None
) -> Iterator[tuple[list[Line], bool]]:
    """Gather records into batches, and tell of each whether another home wrote it."""
    filled = ((number, raw.strip()) for number, raw in enumerate(lines, 1) if raw.strip())
    header = next(filled, None)
    if header is None:
        return
    home = _home_of(*header)
    if trust or home != sealer.home:
        if trust is None:
            msg = "Another home wrote this export."
            hint = "'--trust' if it is yours; '--no-trust' takes it as a peer's word."
            raise InvalidInput(msg, hint=hint)
        yield from ((batch, not trust) for batch in _unsealed(filled))
    else:
        yield from ((batch, False) for batch in _sealed_ones(filled, sealer))


def _unsealed(lines: _Numbered) -> Iterator[list[Line]]:
    """Yield batches whatever their seals say; what came before a bad line is still given out."""
    batch: list[Line] = []
    try:
        for line in (_parsed(number, raw) for number, raw in lines):
            if line["record"] != _SEAL:
                batch.append(line)
            if len(batch) >= LINES_PER_SEAL:
                yield batch
                batch = []
    except InvalidInput:
        yield batch
        raise
    yield batch


def _sealed_ones(lines: _Numbered, sealer: Sealer) -> Iterator[list[Line]]:
    """Yield batches as they were sealed, and refuse to go on where a seal does not fit."""
    batch: list[Line] = []
    for number, raw in lines:
        line = _parsed(number, raw)
        if line["record"] == _SEAL and sealer.fits(line.get("of")):
            yield batch
            batch = []
        elif line["record"] == _SEAL or len(batch) >= LINES_PER_SEAL:
            raise _changed(number)
        else:
            sealer.add(raw)
            batch.append(line)
    if batch:
        raise _changed(number + 1)


def _changed(number: int) -> InvalidInput:
    msg = f"This export of this home was changed or cut off before line {number}."
    hint = "What stands before was imported. 'lore import --trust' takes it as it is."
    return InvalidInput(msg, hint=hint)


def _home_of(number: int, raw: bytes) -> object:
    """Return the home that wrote an export, by its header."""
    header = _json(number, raw)
    if not isinstance(header, dict) or header.get("lore") != FORMAT:
        msg = "This is no export of Lore: its first line should be a header."
        raise InvalidInput(msg)
    return header.get("home")


def _parsed(number: int, raw: bytes) -> Line:
    line = _json(number, raw)
    if not isinstance(line, dict) or str(line.get("record")) not in (*_ADDERS, _SEAL):
        msg = f"Line {number} holds no record that this Lore knows."
        raise InvalidInput(msg)
    return line


def _json(number: int, raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        msg = f"Line {number} is not JSON; everything before it was imported."
        raise InvalidInput(msg, hint="Importing again skips what is here.") from error


def _redacted(batch: list[Line], redactor: Redactor) -> list[Line]:
    try:
        return [redact_tree(redactor, line) for line in batch]
    except RecursionError as error:
        msg = "A record is nested too deeply."
        raise InvalidInput(msg) from error


def _add_batch(
    db: Connection, batch: list[Line], *, foreign: bool, now: datetime
) -> tuple[int, int]:
    """Add records; return how many came in, and how many of another home are left out."""
    added = left_out = 0
    for given in batch:
        shapes.check(given["record"], given)
        line = peers.as_peers(db, given) if foreign else given
        if line is None:
            left_out += 1
            continue
        fresh = not changes.buried(db, [str(line.get("id", ""))])
        try:
            added += bool(fresh and _ADDERS[line["record"]](db, line, now))
        except (ArithmeticError, TypeError, ValueError) as error:
            msg = f"A record of kind '{line['record']}' cannot be kept: {error}."
            raise InvalidInput(msg) from error
    return added, left_out


def _add_message(db: Connection, line: Line, now: datetime) -> bool:
    if loading.has_item(db, line["id"]):
        return False
    session_n = loading.session_number(db, line["session_id"])
    new = NewMessage(
        role=line["role"],
        parts=tuple(Part(**part) for part in line["parts"]),
        created_at=clock.from_us(line["created_at"]),
        key=line["key"],
        speaker=line["speaker"],
        origin=line["origin"],
        model=line["model"],
        usage=line["usage"],
    )
    messages.add(
        db,
        session_n,
        [prepare(new, id=line["id"])],
        now=now,
        ordinal=line["ordinal"],
        channel=CHANNELS[line["channel"]],
    )
    return True


def _add_fragment(db: Connection, line: Line, now: datetime) -> bool:
    if loading.has_item(db, line["id"]):
        return False
    mentioned = entities.of_fragment(line["content"], line["summary"])
    source_ns = loading.numbers_of(db, line["source_messages"])
    allowed = TRUST[trusting.lowest(db, line["origin"], source_ns)]
    line = {**line, "trust": min(line["trust"], allowed)}
    loading.add_fragment(db, line, mentioned, now)
    return True


_ADDERS = {**loading.ADDERS, "message": _add_message, "fragment": _add_fragment}
