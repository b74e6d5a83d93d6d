"""Bundles: all that sync exchanges in one compressed file, sealed like an export.

A bundle is a gzip file of JSON lines: a header, records, a seal after each block, and at the end
their number. It can be applied in any order and any number of times. Nothing of a block is parsed
before its seal fits, and no more than one block is in memory.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from lore.capture.export_import import Sealer
from lore.errors import SyncError
from lore.store import files
from lore.sync.replica import PAGE, Replica
from lore.sync.wire_format import FORMAT, LONGEST_PAGE, OLDEST_FORMAT

_HEADER, _SEAL, _END = "lore_sync", "seal", "end"

_SEAL_START = b'{"seal":'
_LONGEST_HEADER = 10_000

_NO_BUNDLE = "'lore sync --to FILE' writes one."


def write_bundle(replica: Replica, target: Path, *, key: bytes) -> int:
    """Write all records to a file and return how many; what stood there is replaced at the end."""
    return files.write_whole(target, lambda stream: _write(replica, stream, Sealer(key)))


def _write(replica: Replica, stream: BinaryIO, sealer: Sealer) -> int:
    own = {"machine": replica.machine, "epoch": replica.epoch, "home": sealer.home}
    header = {_HEADER: FORMAT, **own}
    count, cursor, more = 0, "", True
    with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0, compresslevel=6) as packed:
        _write_line(packed, header, sealer)
        while more:
            page = replica.changes(cursor, limit=PAGE)
            for record in page.records:
                _write_line(packed, record, sealer)
            count, cursor, more = count + len(page.records), page.cursor, page.more
            if not more:
                _write_line(packed, {_END: count}, sealer)
            packed.write(orjson.dumps({_SEAL: sealer.seal()}) + b"\n")
    return count


def _write_line(packed: gzip.GzipFile, line: Any, sealer: Sealer) -> None:
    raw = orjson.dumps(line)
    sealer.add(raw)
    packed.write(raw + b"\n")


class Bundle:
    """An open bundle: whose it is, and its records in blocks whose seals fit."""

    def __init__(self, stream: io.BufferedReader, *, key: bytes, trust: bool) -> None:
        self._stream = stream
        self._sealer = Sealer(key)
        self._checks_seals = True
        raw = self._read_line(_LONGEST_HEADER)
        header = _parse(raw)
        if not isinstance(header, dict) or _HEADER not in header:
            msg = "This file is not a bundle of 'lore sync'."
            raise SyncError(msg, hint=_NO_BUNDLE)
        if header[_HEADER] not in range(OLDEST_FORMAT, FORMAT + 1):
            msg = f"This bundle has format {header[_HEADER]}; this Lore reads format {FORMAT}."
            raise SyncError(msg, hint="Upgrade the older one of the two.")
        if header.get("home") != self._sealer.home:
            if not trust:
                msg = "Another home sealed this bundle, with another key."
                hint = (
                    "If it is yours: 'lore sync --pair' there shows a code for 'lore sync --join'"
                    " here, or '--trust' takes it once. Of others, take exports: 'lore import'."
                )
                raise SyncError(msg, hint=hint)
            self._checks_seals = False
        self.machine = str(header.get("machine", ""))[:64]
        self._sealer.add(raw)

    def blocks(self) -> Iterator[list[Any]]:
        """Yield the records of each sealed block; raise `SyncError` where the bundle is damaged."""
        count, ended = 0, False
        while (lines := self._read_block(count, may_end=ended)) is not None:
            block = [_parse(raw) for raw in lines]
            last = block[-1] if block else None
            if isinstance(last, dict) and _END in last:
                block.pop()
                ended = last[_END] == count + len(block)
            yield block
            count += len(block)

    def _read_block(self, count: int, *, may_end: bool) -> list[bytes] | None:
        """Return the lines of the next block, if its seal fits; None at the end."""
        lines: list[bytes] = []
        left = LONGEST_PAGE
        while raw := self._read_line(left, may_end=may_end and not lines):
            if raw.startswith(_SEAL_START):
                if not self._sealer.fits(_parse(raw)[_SEAL]) and self._checks_seals:
                    raise _changed(count)
                return lines
            self._sealer.add(raw)
            lines.append(raw)
            left -= len(raw)
            if len(lines) > PAGE + 1:  # the last block has a line for the end
                raise _changed(count)
        return None

    def _read_line(self, longest: int, *, may_end: bool = False) -> bytes:
        """Return a line without its end; an empty one at the end of the file, if it `may_end`."""
        try:
            raw = self._stream.readline(max(longest, 1))
        except gzip.BadGzipFile as error:
            msg = "This file is not a bundle of 'lore sync'."
            raise SyncError(msg, hint=_NO_BUNDLE) from error
        except (EOFError, zlib.error) as error:
            raise _cut_off() from error
        if len(raw) >= longest and not raw.endswith(b"\n"):
            msg = f"A block of this bundle is larger than {LONGEST_PAGE:,} bytes: Lore writes none."
            raise SyncError(msg, hint=_NO_BUNDLE)
        if (not raw and not may_end) or (raw and not raw.endswith(b"\n")):
            raise _cut_off()
        return raw.rstrip(b"\n")


def _parse(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        msg = "This file is not a bundle of 'lore sync': a line in it is not JSON."
        raise SyncError(msg, hint=_NO_BUNDLE) from error


def _changed(count: int) -> SyncError:
    msg = f"This bundle was changed after it was sealed; {count:,} records before that are stored."
    return SyncError(msg, hint="Write it again with 'lore sync --to FILE'.")


def _cut_off() -> SyncError:
    msg = "This bundle is cut off: its end is missing."
    hint = "What stands before was stored. Copy or write the file again; applying it again is safe."
    return SyncError(msg, hint=hint)


@contextmanager
def open_bundle(path: Path, *, key: bytes, trust: bool) -> Iterator[Bundle]:
    """Open a bundle and check its header."""
    try:
        with gzip.open(path, "rb") as packed:
            yield Bundle(io.BufferedReader(packed), key=key, trust=trust)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        msg = f"{path} cannot be read: {error.strerror}."
        raise SyncError(msg, hint=_NO_BUNDLE) from error
