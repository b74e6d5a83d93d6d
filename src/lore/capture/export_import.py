"""Export everything as JSON lines, and import it again without loss or duplicates.

Indexes, vectors, mentions and standing instructions are derived and rebuilt. An export is sealed
(HMAC) with the key of its home: records from another home are imported as a peer's.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from lore import clock
from lore.capture.message_capture import prepare
from lore.errors import InvalidInput
from lore.records import (
    CHANNELS,
    EDGE_KINDS,
    FRAGMENT_KINDS,
    ORIGINS,
    PART_KINDS,
    ROLES,
    TRUST,
    ImportResult,
    NewMessage,
    Origin,
    Part,
)
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor, redact_tree
from lore.store import dump, files, fragments, history, messages, native_rows
from lore.store.database import Connection, Database
from lore.text import entities
from lore.text.name_limit import is_short, shorten_name

_LATEST_US = 253_402_300_799_999_999
_EARLIEST_US = -62_135_596_800_000_000
_LARGEST = 2**53

Validator = Callable[[Any], bool]


def _is(*types: type) -> Validator:
    return lambda value: isinstance(value, types) and not isinstance(value, bool)


def _between(least: float, most: float, *types: type) -> Validator:
    has_type = _is(*types or (int,))
    return lambda value: has_type(value) and least <= value <= most


def _one_of(*choices: str) -> Validator:
    return lambda value: value in choices


def _maybe(test: Validator) -> Validator:
    return lambda value: value is None or test(value)


def _list_of(test: Validator) -> Validator:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _filled(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _short(value: Any) -> bool:
    return isinstance(value, str) and is_short(value)


def _name(value: Any) -> bool:
    return _filled(value) and is_short(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and abs(value) <= _LARGEST


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
    return isinstance(value, dict) and all(map(_is(int), value.values()))


def _json(value: Any) -> bool:
    """Return whether a value is the text of a JSON value."""
    try:
        orjson.loads(value)
    except (orjson.JSONDecodeError, TypeError):
        return False
    return isinstance(value, str)


_text, _table = _is(str), _is(dict)
_maybe_name = _maybe(_name)
_count = _between(0, _LARGEST)
_number = _between(1 - 2**63, 2**63 - 1)
_channel = _between(0, len(CHANNELS) - 1)
_moment = _between(_EARLIEST_US, _LATEST_US)
_share = _between(0, 1, int, float)
_amount = _between(0, inf, int, float)
_trust = _between(0, max(TRUST.values()))
_texts = _list_of(_text)
_parts = _list_of(_part)
_line_sources = _list_of(_list_of(_count))
"""For each line, the ordinals of its sources."""

FIELD_VALIDATORS: dict[str, dict[str, Validator]] = {
    "project": {
        "id": _name, "path": _name, "remote": _short, "name": _text, "created_at": _moment,
    },
    "session": {
        "id": _name, "external_id": _name, "project_id": _maybe_name, "agent": _short,
        "title": _text, "files": _text, "branch": _text, "parent_id": _maybe_name,
        "started_at": _moment, "last_message_at": _moment,
        "state": _one_of("open", "idle", "closed"),
    },
    "message": {
        "id": _name, "session_id": _name, "ordinal": _count, "key": _filled,
        "role": _one_of(*ROLES), "speaker": _text, "parts": _parts, "origin": _one_of(*ORIGINS),
        "model": _text, "usage": _usage, "created_at": _moment, "channel": _channel,
    },
    "distillation": {
        "id": _name, "session_id": _name, "generation": _whole, "text": _text,
        "from_message": _text, "to_message": _text, "source_tokens": _whole,
        "archived": _whole, "created_at": _moment, "sources": _line_sources,
    },
    "fragment": {
        "id": _name, "content": _filled, "summary": _text, "depth": _count,
        "kind": _one_of(*FRAGMENT_KINDS), "payload": _table, "importance": _share,
        "confidence": _share, "origin": _one_of(*ORIGINS), "trust": _trust,
        "source_messages": _texts, "metadata": _table, "project_id": _maybe_name,
        "session_id": _maybe_name, "created_at": _moment, "access_count": _count,
        "last_accessed": _maybe(_moment), "last_reinforced": _moment, "relevance": _share,
        "superseded_by": _maybe_name, "valid_from": _maybe(_moment),
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
        "source": _name, "session_id": _maybe_name, "position": _whole, "fingerprint": _text,
        "updated_at": _moment, "file": _short, "size": _count, "modified_ns": _number,
        "context": _text, "problem": _text,
    },
    "claim": {"session_id": _name, "channel": _channel, "key": _filled, "message_id": _name},
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
    "instruction": {
        "item_id": _name, "digest": _name, "state": _one_of("confirmed", "rejected"),
    },
    "shared": {"entry": _name, "fragment_id": _name, "digest": _text, "left_out": _whole},
    "spend": {
        "key": _name, "at": _moment, "session_id": _maybe_name, "project_id": _maybe_name,
        "purpose": _text, "model": _text, "usage": _text, "usd": _amount,
    },
    "task": {
        "session_id": _maybe_name, "project_id": _maybe_name, "episode_id": _maybe_name,
        "id": _name, "name": _text, "agent": _text, "goal": _text, "phase": _text,
        "action": _text, "type": _text, "profile": _text, "state": _one_of("open", "done"),
        "outcome": _text, "reason": _text, "started_at": _moment, "ended_at": _maybe(_moment),
        "body": _json,
    },
    "task_memory": {
        "task_id": _name, "item_id": _name, "given_as": _name, "tokens": _count,
        "used": _maybe(_count), "sign": _text, "helped": _maybe(_count), "at": _moment,
    },
    "working_state": {"session_id": _name, "body": _json, "updated_at": _moment},
    "agent_ledger": {
        "project_id": _maybe_name, "agent": _short, "body": _json, "updated_at": _moment,
    },
    "handoff": {
        "session_id": _maybe_name, "project_id": _maybe_name, "id": _name,
        "from_agent": _text, "to_agent": _text, "body": _json, "created_at": _moment,
        "read_at": _maybe(_moment),
    },
    "task_metric": {
        "task_id": _maybe_name, "session_id": _maybe_name, "project_id": _maybe_name,
        "kind": _name, "name": _short, "value": _maybe(_is(int, float)), "body": _json,
        "at": _moment,
    },
    "token_economics": {
        "session_id": _maybe_name, "task_id": _maybe_name, "project_id": _maybe_name,
        "body": _json, "updated_at": _moment,
    },
    "economics_action": {
        "session_id": _maybe_name, "project_id": _maybe_name, "metric": _name,
        "action": _name, "value": _is(int, float), "value_after": _maybe(_is(int, float)),
        "body": _json, "at": _moment,
    },
    "profile": {
        "name": _name, "weights": _json, "source": _text, "is_active": _count, "share": _share,
        "successes": _amount, "failures": _amount, "body": _json, "created_at": _moment,
        "updated_at": _moment,
    },
    "profile_day": {
        "profile": _name, "day": _name, "share": _share, "successes": _amount,
        "failures": _amount,
    },
    "session_profile": {
        "session_id": _name, "profile": _name, "outcome": _text, "at": _moment,
    },
    "layout_file": {"project_id": _maybe_name, "path": _name, "body": _text, "at": _moment},
    "tombstone": {"id": _name, "at": _moment, "source": _short},
}  # fmt: skip
"""The validator of each field, by record type."""

OPTIONAL_FIELDS: dict[str, dict[str, Validator]] = {
    "fragment": {"archived_at": _maybe(_moment)},
    "spend": {
        "layer": _maybe(_count), "busts": _count, "delay_ms": _count, "without_usd": _amount,
    },
}  # fmt: skip
"""Fields that exports of an earlier Lore do not have."""

_LIMITED_FIELDS = {
    kind: tuple(name for name, test in checks.items() if test in (_name, _maybe_name, _short))
    for kind, checks in FIELD_VALIDATORS.items()
}
"""Fields that hold a name, by record type."""


def _shorten_names(kind: str, line: dict[str, Any]) -> dict[str, Any]:
    """Return a record with names that can be stored; those that refer to each other still do.

    An export from before the limit on names may have longer ones.
    """
    long = {
        name: value
        for name in _LIMITED_FIELDS[kind]
        if isinstance(value := line.get(name), str) and not is_short(value)
    }
    return line | {name: shorten_name(value) for name, value in long.items()} if long else line


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


_ACCEPTED_FROM_PEERS = frozenset(("project", "session", "message", "fragment", "version", "edge"))
"""Record types accepted from another home. The rest would act here: tombstones delete; watermarks
and claims keep files and messages from being read; staged turns are stored later, as one's own;
spend counts against one's budget. A distillation can be rebuilt from its messages."""


def as_peer_record(db: Connection, line: dict[str, Any]) -> dict[str, Any] | None:
    """Return a record of another home as a peer's; None if it is not accepted."""
    if line["record"] not in _ACCEPTED_FROM_PEERS:
        return None
    if line["record"] == "message":
        return {**line, "origin": _lower_origin(line["origin"])}
    if line["record"] == "fragment":
        origin = _lower_origin(line["origin"])
        trust = min(line["trust"], TRUST[origin])
        metadata = native_rows.without_note(line["metadata"])
        return {**line, "origin": origin, "trust": trust, "metadata": metadata}
    ends = [line[name] for name in ("fragment_id", "source", "target") if name in line]
    return line if _are_peer_fragments(db, ends) else None


def _lower_origin(origin: Origin) -> Origin:
    return min(origin, "peer", key=TRUST.__getitem__)


def _are_peer_fragments(db: Connection, ids: list[str]) -> bool:
    """Return whether fragments are no more trusted than a peer; others are not linked to."""
    by_n = fragments.by_number(db, dump.known_numbers(db, ids))
    return all(fragment.trust <= TRUST["peer"] for fragment in by_n.values())


LINES_PER_SEAL = 500
"""A seal is verified before the lines above it are imported: this many are held in memory."""


class Sealer:
    """Seals lines in their order: none can be changed, added, moved or removed in the middle."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.home = self._digest(b"home")[:16]
        """Identifies the home of the key without revealing the key."""
        self._lines = self._begun(self.home)

    def add(self, line: bytes) -> None:
        """Add a line, without its newline."""
        self._lines.update(line)
        self._lines.update(b"\n")

    def seal(self) -> str:
        """Return the seal of all lines since the previous one, which it includes."""
        sealed = self._lines.hexdigest()
        self._lines = self._begun(sealed)
        return sealed

    def fits(self, seal: object) -> bool:
        """Return whether a seal matches the lines since the previous one."""
        return isinstance(seal, str) and hmac.compare_digest(self.seal().encode(), seal.encode())

    def _begun(self, former: str) -> hmac.HMAC:
        return hmac.new(self._key, former.encode() + b"\n", hashlib.sha256)

    def _digest(self, words: bytes) -> str:
        return hmac.new(self._key, words, hashlib.sha256).hexdigest()


FORMAT = 1
_SEAL = "seal"

Line = dict[str, Any]


def export(database: Database, target: Path | BinaryIO, *, key: bytes) -> int:
    """Write everything to a file or stream, sealed, and return the number of records."""
    if isinstance(target, Path):
        refuse_own_file(database, target)
        return files.write_whole(target, lambda stream: _write(database, stream, Sealer(key)))
    return _write(database, target, Sealer(key))


def refuse_own_file(database: Database, target: Path) -> None:
    """Refuse to overwrite the database, its log, its index or a backup."""
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
        for line in dump.dump_records(db):
            if count and count % LINES_PER_SEAL == 0:
                stream.write(_seal_line(sealer))
            raw = orjson.dumps(line)
            sealer.add(raw)
            stream.write(raw + b"\n")
            count += 1
    stream.write(_seal_line(sealer))
    return count


def _seal_line(sealer: Sealer) -> bytes:
    return orjson.dumps({"record": _SEAL, "of": sealer.seal()}) + b"\n"


def import_lines(
    database: Database,
    lines: Iterable[bytes],
    *,
    key: bytes,
    trust: bool | None = None,
    redactor: Redactor = EPHEMERAL_REDACTOR,
    progress: Callable[[int], None] | None = None,
) -> ImportResult:
    """Import an export; duplicates and forgotten records are skipped.

    An export of another home is refused, unless `trust` says whether to believe it. If not, its
    records are a peer's, and delete nothing.
    """
    counts = ImportResult()
    for batch, foreign in _batches(lines, Sealer(key), trust=trust):
        redacted = _redact_batch(batch, redactor)
        added, left_out = database.write(
            partial(_add_batch, batch=redacted, foreign=foreign, now=database.now())
        )
        counts = ImportResult(
            added=counts.added + added,
            skipped=counts.skipped + len(batch) - added - left_out,
            left_out=counts.left_out + left_out,
            foreign=foreign,
        )
        if progress:
            progress(counts.added + counts.skipped + counts.left_out)
    return counts


def import_records(
    database: Database,
    records: Iterable[Line],
    *,
    foreign: bool,
    redactor: Redactor = EPHEMERAL_REDACTOR,
) -> ImportResult:
    """Import the records of another memory; if `foreign`, they are stored as a peer's words."""
    added = left_out = total = 0
    stream = iter(records)
    while batch := list(islice(stream, LINES_PER_SEAL)):
        work = partial(
            _add_batch, batch=_redact_batch(batch, redactor), foreign=foreign, now=database.now()
        )
        new, omitted = database.write(work)
        added, left_out, total = added + new, left_out + omitted, total + len(batch)
    return ImportResult(added, total - added - left_out, left_out, foreign)


_Numbered = Iterator[tuple[int, bytes]]


def _batches(
    lines: Iterable[bytes], sealer: Sealer, *, trust: bool | None
) -> Iterator[tuple[list[Line], bool]]:
    """Yield records in batches, each with whether another home wrote it."""
    filled = ((number, raw.strip()) for number, raw in enumerate(lines, 1) if raw.strip())
    header = next(filled, None)
    if header is None:
        return
    home = _read_home(*header)
    if trust or home != sealer.home:
        if trust is None:
            msg = "Another home wrote this export."
            hint = "'--trust' if it is yours; '--no-trust' takes it as a peer's word."
            raise InvalidInput(msg, hint=hint)
        yield from ((batch, not trust) for batch in _read_unsealed(filled))
    else:
        yield from ((batch, False) for batch in _read_sealed(filled, sealer))


def _read_unsealed(lines: _Numbered) -> Iterator[list[Line]]:
    """Yield batches whatever their seals say; what came before a bad line is still yielded."""
    batch: list[Line] = []
    try:
        for line in (_parse_record(number, raw) for number, raw in lines):
            if line["record"] != _SEAL:
                batch.append(line)
            if len(batch) >= LINES_PER_SEAL:
                yield batch
                batch = []
    except InvalidInput:
        yield batch
        raise
    yield batch


def _read_sealed(lines: _Numbered, sealer: Sealer) -> Iterator[list[Line]]:
    """Yield batches as they were sealed; raise `InvalidInput` where a seal does not match."""
    batch: list[Line] = []
    for number, raw in lines:
        line = _parse_record(number, raw)
        if line["record"] == _SEAL and sealer.fits(line.get("of")):
            yield batch
            batch = []
        elif line["record"] == _SEAL or len(batch) >= LINES_PER_SEAL:
            raise _tampered(number)
        else:
            sealer.add(raw)
            batch.append(line)
    if batch:
        raise _tampered(number + 1)


def _tampered(number: int) -> InvalidInput:
    msg = f"This export of this home was changed or cut off before line {number}."
    hint = "What stands before was imported. 'lore import --trust' takes it as it is."
    return InvalidInput(msg, hint=hint)


def _read_home(number: int, raw: bytes) -> object:
    header = _parse_json(number, raw)
    if not isinstance(header, dict) or header.get("lore") != FORMAT:
        msg = "This is not an export of Lore: its first line should be a header."
        raise InvalidInput(msg)
    return header.get("home")


def _parse_record(number: int, raw: bytes) -> Line:
    line = _parse_json(number, raw)
    if not isinstance(line, dict) or str(line.get("record")) not in (*_ADDERS, _SEAL):
        msg = f"Line {number} is not a record that this version of Lore knows."
        raise InvalidInput(msg)
    return line


def _parse_json(number: int, raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if number == 1:
            msg = "This is not an export of Lore: its first line is not JSON."
            raise InvalidInput(msg, hint="Nothing was imported.") from error
        msg = f"Line {number} is not JSON; everything before it was imported."
        raise InvalidInput(msg, hint="Importing again skips what is here.") from error


def _redact_batch(batch: list[Line], redactor: Redactor) -> list[Line]:
    try:
        return [redact_tree(redactor, line) for line in batch]
    except RecursionError as error:
        msg = "A record is nested too deeply."
        raise InvalidInput(msg) from error


def _add_batch(
    db: Connection, batch: list[Line], *, foreign: bool, now: datetime
) -> tuple[int, int]:
    """Add records; return how many were added, and how many of another home were left out."""
    added = left_out = 0
    for original in batch:
        record = _shorten_names(original["record"], original)
        check_record(record["record"], record)
        line = as_peer_record(db, record) if foreign else record
        if line is None:
            left_out += 1
            continue
        try:
            added += bool(not _is_forgotten(db, line) and _ADDERS[line["record"]](db, line, now))
        except (ArithmeticError, TypeError, ValueError) as error:
            msg = f"A record of kind '{line['record']}' cannot be kept: {error}."
            raise InvalidInput(msg) from error
    return added, left_out


def _is_forgotten(db: Connection, line: Line) -> bool:
    """Return whether a record was forgotten here; a tombstone says itself what is new about it."""
    id_ = str(line.get("id", ""))
    return line["record"] != "tombstone" and bool(history.find_tombstones(db, [id_]))


def _add_message(db: Connection, line: Line, now: datetime) -> bool:
    if dump.has_item(db, line["id"]):
        return False
    session_n = dump.get_session_number(db, line["session_id"])
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
    messages.add_messages(
        db,
        session_n,
        [prepare(new, id=line["id"])],
        now=max(now, new.created_at),  # an export is restored as it is, with its dates
        ordinal=line["ordinal"],
        channel=CHANNELS[line["channel"]],
    )
    return True


def _add_fragment(db: Connection, line: Line, now: datetime) -> bool:
    if dump.has_item(db, line["id"]):
        return False
    mentioned = entities.fragment_mentions(line["content"], line["summary"])
    source_ns = dump.known_numbers(db, line["source_messages"])
    allowed = TRUST[messages.lowest_trust_origin(db, line["origin"], source_ns)]
    line = {**line, "trust": min(line["trust"], allowed)}
    dump.load_fragment(db, line, mentioned, now)
    return True


_ADDERS = {**dump.LOADERS, "message": _add_message, "fragment": _add_fragment}
