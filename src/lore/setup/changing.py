"""Changing the files of an agent, so that it can be undone to the byte."""

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

from lore.errors import InvalidInput
from lore.setup.agents import Agent, Edit

FOLDER = "setup"
"""Below the home: what the files of each agent held before Lore changed them."""

_LARGEST = 32_000_000
"""Claude Code keeps what it did in the file of its settings: that has megabytes."""

_NOTHING = (b"", b"{}")
"""What is left of a file that Lore made, without Lore."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file; None is a file that is not there."""

    path: Path
    before: bytes | None
    after: bytes | None
    original: bytes | None
    """What an undo gives back."""

    @property
    def is_none(self) -> bool:
        """Tell whether all is as it should be."""
        return self.before == self.after

    @property
    def is_plain(self) -> bool:
        """Tell whether the file is JSON as the standard has it, or no JSON at all."""
        if self.after is None or self.path.suffix != ".json":
            return True
        try:
            json.loads(_text(self.after))
        except ValueError:
            return False
        return True

    def diff(self) -> Iterator[str]:
        """Return the lines that change, as a diff shows them."""
        before, after = (_text(side or b"").splitlines() for side in (self.before, self.after))
        names = (str(self.path), str(self.path))
        return difflib.unified_diff(before, after, *names, lineterm="", n=2)


def unread_by(agent: Agent, planned: Sequence[Change]) -> str:
    """Return why an agent does not read one of its own files; nothing if it reads all."""
    for change in planned:
        if not agent.takes_comments and not change.is_plain:
            return f"{change.path} has comments or commas at an end: {agent.title} ignores it all."
    return ""


def plan(home: Path, agent: Agent, edits: Sequence[Edit]) -> list[Change]:
    """Return what would be changed to set an agent up."""
    kept = _kept(home, agent)
    return [_put(edit, kept.get(str(edit.path))) for edit in edits]


def plan_undo(home: Path, agent: Agent, edits: Sequence[Edit]) -> list[Change]:
    """Return what would be changed to undo that, in every file that Lore was put into.

    Those are not always the ones that it would be put into today: an agent may have two names for
    one file, and the owner may have made the other since.
    """
    kept = _kept(home, agent)
    named = {str(edit.path) for edit in edits}
    former = [_edit_of(path, edits) for path in kept if path not in named]
    return [_drop(edit, kept.get(str(edit.path))) for edit in (*edits, *filter(None, former))]


def apply(
    home: Path, agent: Agent, changes: Sequence[Change], *, undo: bool, address: str = ""
) -> None:
    """Write what was planned: first what an undo needs, then the files themselves.

    `address` is the one of the gateway, where that was planned: an undo has to know it again.
    """
    others = _kept(home, agent)
    known = dict.fromkeys((*kept_addresses(home, agent), address))
    for change in changes:
        others.pop(str(change.path), None)
    if not undo:
        _keep(home, agent, {**others, **_formers(changes)}, [*filter(None, known)])
    for change in changes:
        if change.is_none:
            continue
        try:
            _write(change.path, change.after)
        except OSError as error:
            msg = f"{change.path} cannot be written: {error.strerror}."
            rest = f"'lore setup {agent.name} --undo' takes back the rest."
            raise InvalidInput(msg, hint=rest) from error
    if undo:
        _keep(home, agent, others, [*filter(None, known)])


def is_set_up(changes: Sequence[Change]) -> bool:
    """Tell whether a plan finds everything in place."""
    return all(change.is_none for change in changes)


@dataclass(frozen=True, slots=True)
class _Former:
    """What a file held before, and a digest of what Lore made of it."""

    original: bytes | None
    digest: str


def _edit_of(path: str, edits: Sequence[Edit]) -> Edit | None:
    """Return how a file is edited that was changed under another ending or in another home."""
    alike = (edit for edit in edits if edit.path.stem == Path(path).stem)
    edit = next(alike, None)
    return None if edit is None else replace(edit, path=Path(path))


def _put(edit: Edit, former: _Former | None) -> Change:
    before = _read(edit.path)
    after = _edited(edit.path, before, edit.put)
    original = _given_back(edit, before, former) if former else before
    return Change(edit.path, before, after, original)


def _drop(edit: Edit, former: _Former | None) -> Change:
    before = _read(edit.path)
    if former:
        return Change(edit.path, before, _given_back(edit, before, former), None)
    if before is None:
        return Change(edit.path, None, None, None)
    return Change(edit.path, before, _edited(edit.path, before, edit.drop), None)


def _given_back(edit: Edit, before: bytes | None, former: _Former) -> bytes | None:
    """Return the original, or what others made of it since with Lore's place as it was."""
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
        msg = f"{path}: {error}"
        raise InvalidInput(msg, hint=error.hint) from error
    return (("\ufeff" if marked else "") + after).encode()


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        msg = "This is not text in UTF-8."
        raise InvalidInput(msg, hint="Nothing was changed.") from error


def _read(path: Path) -> bytes | None:
    try:
        # without waiting, or a pipe would hold the command until somebody writes to it
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            content = file.read(_LARGEST + 1) if is_file else b""
    except FileNotFoundError:
        return None
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}."
        raise InvalidInput(msg, hint="Nothing was changed.") from error
    if not is_file:
        msg = f"{path} is not a regular file."
        raise InvalidInput(msg, hint="Nothing was changed.")
    if len(content) > _LARGEST:
        msg = f"{path} is too large for a configuration."
        raise InvalidInput(msg)
    return content


def _write(path: Path, content: bytes | None) -> None:
    """Replace a file whole, through links, with the permissions that it had."""
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


def _formers(changes: Sequence[Change]) -> dict[str, _Former]:
    """Return what is kept of changes that are about to be made."""
    return {str(change.path): _Former(change.original, _digest(change.after)) for change in changes}


def _keep(
    home: Path, agent: Agent, formers: Mapping[str, _Former], addresses: Sequence[str]
) -> None:
    """Write what an undo needs; where it needs nothing any more, nothing is kept."""
    record = _record_of(home, agent)
    if not formers:
        record.unlink(missing_ok=True)
        return
    files = {
        path: {"original": _packed(former.original), "digest": former.digest}
        for path, former in formers.items()
    }
    record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept: dict[str, object] = {"files": files}
    if addresses:
        kept["addresses"] = addresses
    _write(record, json.dumps(kept).encode())


def _kept(home: Path, agent: Agent) -> dict[str, _Former]:
    try:
        files = json.loads(_record_of(home, agent).read_bytes())["files"]
        return {
            path: _Former(_unpacked(former["original"]), str(former["digest"]))
            for path, former in files.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def kept_addresses(home: Path, agent: Agent) -> tuple[str, ...]:
    """Return the addresses of the gateway that an agent was told, the last one last."""
    try:
        told = json.loads(_record_of(home, agent).read_bytes()).get("addresses", ())
        return tuple(one for one in told if isinstance(one, str))
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
