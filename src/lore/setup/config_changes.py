"""Changes to the files of an agent, which can be undone to the byte."""

from __future__ import annotations

import base64
import difflib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lore import config_files
from lore.errors import InvalidInput
from lore.setup.agents import Agent, Edit

FOLDER = "setup"
"""Folder in the home with the content of each file before Lore changed it."""

_LARGEST = 32_000_000
"""Claude Code stores its history in its settings file, which can have megabytes."""

_NOTHING = (b"", b"{}")
"""What remains of a file that Lore created, without Lore."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one file; None means that the file does not exist."""

    path: Path
    before: bytes | None
    after: bytes | None
    original: bytes | None
    """What an undo restores."""

    @property
    def is_noop(self) -> bool:
        """Return whether nothing changes."""
        return self.before == self.after

    @property
    def is_plain(self) -> bool:
        """Return whether the file is standard JSON, or no JSON at all."""
        if self.after is None or self.path.suffix != ".json":
            return True
        try:
            json.loads(_text(self.after))
        except ValueError:
            return False
        return True

    def diff(self) -> Iterator[str]:
        """Return the change as a unified diff."""
        before, after = (_text(side or b"").splitlines() for side in (self.before, self.after))
        names = (str(self.path), str(self.path))
        return difflib.unified_diff(before, after, *names, lineterm="", n=2)


def parse_problem(agent: Agent, planned: Sequence[Change]) -> str:
    """Return why an agent cannot read one of its own files, or ''."""
    for change in planned:
        if not agent.takes_comments and not change.is_plain:
            return f"{change.path} has comments or commas at an end: {agent.title} ignores it all."
    return ""


def plan(home: Path, agent: Agent, edits: Sequence[Edit]) -> list[Change]:
    """Return the changes that set an agent up."""
    records = _load_records(home, agent)
    return [_put(edit, records.get(str(edit.path))) for edit in edits]


def plan_undo(home: Path, agent: Agent, edits: Sequence[Edit]) -> list[Change]:
    """Return the changes that undo the setup, in every file that Lore changed.

    Those are not always the files that it would change today: an agent may have two names for one
    file, and the user may have created the other since.
    """
    records = _load_records(home, agent)
    paths = {str(edit.path) for edit in edits}
    former = [_edit_of(path, edits) for path in records if path not in paths]
    return [_drop(edit, records.get(str(edit.path))) for edit in (*edits, *filter(None, former))]


def apply(
    home: Path, agent: Agent, changes: Sequence[Change], *, undo: bool, address: str = ""
) -> None:
    """Write the planned changes: first the record for an undo, then the files.

    `address` is the gateway's address if it was planned; an undo has to recognise it.
    """
    others = _load_records(home, agent)
    records = {str(c.path): _FileRecord(c.original, _digest(c.after)) for c in changes}
    addresses = dict.fromkeys((*stored_addresses(home, agent), address))
    for change in changes:
        others.pop(str(change.path), None)
    if not undo:
        _store_record(home, agent, {**others, **records}, [*filter(None, addresses)])
    for change in changes:
        if change.is_noop:
            continue
        try:
            _write(change.path, change.after)
        except OSError as error:
            msg = f"{change.path} cannot be written: {error.strerror}."
            rest = f"'lore setup {agent.name} --undo' takes back the rest."
            raise InvalidInput(msg, hint=rest) from error
    if undo:
        _store_record(home, agent, others, [*filter(None, addresses)])


def is_set_up(changes: Sequence[Change]) -> bool:
    """Return whether a plan changes nothing."""
    return all(change.is_noop for change in changes)


@dataclass(frozen=True, slots=True)
class _FileRecord:
    """The content of a file before the change, and a digest of the content after it."""

    original: bytes | None
    digest: str


def _edit_of(path: str, edits: Sequence[Edit]) -> Edit | None:
    """Return the edit for a file that was changed under another suffix or in another home."""
    alike = (edit for edit in edits if edit.path.stem == Path(path).stem)
    edit = next(alike, None)
    return None if edit is None else replace(edit, path=Path(path))


def _put(edit: Edit, former: _FileRecord | None) -> Change:
    before = _read(edit.path)
    after = _edited(edit.path, before, edit.put)
    original = _restored(edit, before, former) if former else before
    return Change(edit.path, before, after, original)


def _drop(edit: Edit, former: _FileRecord | None) -> Change:
    before = _read(edit.path)
    if former:
        return Change(edit.path, before, _restored(edit, before, former), None)
    if before is None:
        return Change(edit.path, None, None, None)
    after = _edited(edit.path, before, edit.drop)
    return Change(edit.path, before, None if edit.owns_file and not after else after, None)


def _restored(edit: Edit, before: bytes | None, former: _FileRecord) -> bytes | None:
    """Return the original, or the current content with Lore removed."""
    if former.digest == _digest(before):
        return former.original
    if before is None or before == former.original:  # it was removed, or never written
        return before
    original = _text(former.original or b"").removeprefix("\ufeff")
    after = _edited(edit.path, before, lambda text: edit.give_back(text, original))
    was_made = former.original is None and after != before
    return None if was_made and b"".join(after.split()) in _NOTHING else after


def _edited(path: Path, before: bytes | None, change: Callable[[str], str]) -> bytes:
    try:
        text = _text(before or b"")
        marked = text.startswith("\ufeff")
        after = change(text.removeprefix("\ufeff"))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}", hint=error.hint) from error
    return (("\ufeff" if marked else "") + after).encode()


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        msg = "This is not text in UTF-8."
        raise InvalidInput(msg, hint="Nothing was changed.") from error


def _read(path: Path) -> bytes | None:
    try:
        # without blocking, because a pipe would wait for a writer
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            content = file.read(_LARGEST + 1) if is_file else b""
    except FileNotFoundError:
        return None
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}."
        raise InvalidInput(msg, hint="Nothing was changed.") from error
    if not is_file:
        raise InvalidInput(f"{path} is not a regular file.", hint="Nothing was changed.")
    if len(content) > _LARGEST:
        raise InvalidInput(f"{path} is too large for a configuration.")
    return content


def _write(path: Path, content: bytes | None) -> None:
    """Replace a file atomically, through links, with its former permissions."""
    target = path.resolve()
    if content is None:
        target.unlink(missing_ok=True)
        return
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(content)
            file.flush()
            os.fsync(handle)
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


def _store_record(
    home: Path, agent: Agent, formers: Mapping[str, _FileRecord], addresses: Sequence[str]
) -> None:
    """Write the record for an undo, or remove it if nothing is left to undo."""
    record = _record_of(home, agent)
    if not formers:
        record.unlink(missing_ok=True)
        return
    files = {
        path: {"original": _packed(former.original), "digest": former.digest}
        for path, former in formers.items()
    }
    config_files.make_private_folder(record.parent)
    document: dict[str, object] = {"files": files}
    if addresses:
        document["addresses"] = addresses
    _write(record, json.dumps(document).encode())


_MAX_RECORD_BYTES = 200_000_000
"""A record holds the original of an agent's file, which may have many megabytes."""


def _load_records(home: Path, agent: Agent) -> dict[str, _FileRecord]:
    try:
        files = json.loads(
            config_files.read_small_file(_record_of(home, agent), _MAX_RECORD_BYTES)
        )["files"]
        return {
            path: _FileRecord(_unpacked(former["original"]), str(former["digest"]))
            for path, former in files.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def stored_addresses(home: Path, agent: Agent) -> tuple[str, ...]:
    """Return the gateway addresses that were written for an agent, the latest last."""
    try:
        addresses = json.loads(
            config_files.read_small_file(_record_of(home, agent), _MAX_RECORD_BYTES)
        ).get("addresses", ())
        return tuple(one for one in addresses if isinstance(one, str))
    except (OSError, ValueError, TypeError, AttributeError):
        return ()


def _record_of(home: Path, agent: Agent) -> Path:
    return home / FOLDER / f"{agent.name}.json"


def _packed(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def _unpacked(packed: str | None) -> bytes | None:
    return None if packed is None else base64.b64decode(packed, validate=True)


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()
