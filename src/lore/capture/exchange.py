"""Export and import: everything as JSON lines, the same again after a round trip.

Indexes, vectors, mentions and standing instructions are derived and made anew.
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
from lore.capture import shapes
from lore.capture.messages import prepare
from lore.errors import InvalidInput, StoreError
from lore.records import CHANNELS, TRUST, NewMessage, Part
from lore.redaction import UNKEPT, redact_tree
from lore.store import changes, dump, messages, trusting
from lore.store.db import Connection, Database
from lore.text import entities
from lore.text.secrets import Redactor

FORMAT = 1
_BATCH = 500

Line = dict[str, Any]


def export(database: Database, target: Path | BinaryIO) -> int:
    """Write everything to a file or stream and return how many records that were."""
    if isinstance(target, Path):
        _refuse_own_file(database, target)
        part = target.with_name(f"{target.name}.part-{os.getpid()}")
        try:
            with part.open("wb") as stream:
                part.chmod(0o600)
                count = _write(database, stream)
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(target)
        except OSError as error:
            msg = f"{target} could not be written: {error.strerror}."
            raise StoreError(msg) from error
        finally:
            part.unlink(missing_ok=True)
        return count
    return _write(database, target)


def _refuse_own_file(database: Database, target: Path) -> None:
    """Refuse to write over the database, its log, its index or a backup."""
    own = database.path.resolve()
    path = target.resolve()
    in_home = path.parent == own.parent and path.name.startswith((f"{own.name}-", own.name))
    if in_home or path.suffix in (".db", ".index", ".lock"):
        msg = f"{target} is, or looks like, a file of the memory itself."
        raise InvalidInput(msg, hint="Name another file, such as export.jsonl.")


def _write(database: Database, stream: BinaryIO) -> int:
    header = {"lore": FORMAT, "exported_at": database.now().isoformat()}
    stream.write(orjson.dumps(header) + b"\n")
    count = 0
    with database.read() as db:
        for line in dump.everything(db):
            stream.write(orjson.dumps(line) + b"\n")
            count += 1
    return count


def import_lines(
    database: Database,
    lines: Iterable[bytes],
    *,
    redactor: Redactor = UNKEPT,
    progress: Callable[[int], None] | None = None,
) -> dict[str, int]:
    """Bring in an export; records that are here already, or were forgotten, are skipped."""
    counts = {"added": 0, "skipped": 0}
    for batch in _batches(_parsed(lines)):
        added = database.write(
            partial(_add_batch, batch=_redacted(batch, redactor), now=database.now())
        )
        counts["added"] += added
        counts["skipped"] += len(batch) - added
        if progress:
            progress(counts["added"] + counts["skipped"])
    return counts


def _parsed(lines: Iterable[bytes]) -> Iterator[Line]:
    header_seen = False
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        try:
            line = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            msg = f"Line {number} is not JSON; everything before it was imported."
            raise InvalidInput(msg, hint="Importing again skips what is here.") from error
        if not header_seen:
            if not isinstance(line, dict) or line.get("lore") != FORMAT:
                msg = "This is no export of Lore: its first line should be a header."
                raise InvalidInput(msg)
            header_seen = True
            continue
        if not isinstance(line, dict) or str(line.get("record")) not in _ADDERS:
            msg = f"Line {number} holds no record that this Lore knows."
            raise InvalidInput(msg)
        yield line


def _batches(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """Gather lines into batches; what came before a bad line is still given out."""
    batch: list[Line] = []
    try:
        for line in lines:
            batch.append(line)
            if len(batch) >= _BATCH:
                yield batch
                batch = []
    except InvalidInput:
        yield batch
        raise
    yield batch


def _redacted(batch: list[Line], redactor: Redactor) -> list[Line]:
    try:
        return [redact_tree(redactor, line) for line in batch]
    except RecursionError as error:
        msg = "A record is nested too deeply."
        raise InvalidInput(msg) from error


def _add_batch(db: Connection, batch: list[Line], now: datetime) -> int:
    added = 0
    for line in batch:
        shapes.check(line["record"], line)
        fresh = not changes.buried(db, [str(line.get("id", ""))])
        try:
            added += bool(fresh and _ADDERS[line["record"]](db, line, now))
        except (ArithmeticError, TypeError, ValueError) as error:
            msg = f"A record of kind '{line['record']}' cannot be kept: {error}."
            raise InvalidInput(msg) from error
    return added


def _add_message(db: Connection, line: Line, now: datetime) -> bool:
    if dump.has_item(db, line["id"]):
        return False
    session_n = dump.session_number(db, line["session_id"])
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
    if dump.has_item(db, line["id"]):
        return False
    mentioned = entities.of_fragment(line["content"], line["summary"])
    source_ns = dump.numbers_of(db, line["source_messages"])
    allowed = TRUST[trusting.lowest(db, line["origin"], source_ns)]
    line = {**line, "trust": min(line["trust"], allowed)}
    dump.add_fragment(db, line, mentioned, now)
    return True


_ADDERS = {**dump.ADDERS, "message": _add_message, "fragment": _add_fragment}
