"""opencode before its database: a folder with a file for each session, message and part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lore.capture.adapters import fields, opencode_messages, places
from lore.capture.adapters.opencode_messages import Record
from lore.capture.transcripts import Stretch

agent = opencode_messages.AGENT


def find(home: Path) -> Iterator[Path]:
    """Return the files of sessions below a person's home folder."""
    folder = home / ".local" / "share" / "opencode" / "storage" / "session"
    return places.files(folder, ".json", beginning="ses_")


def fits(path: Path, head: bytes) -> bool:
    """Tell whether a file describes a session of opencode."""
    named = path.name.startswith("ses_") and path.suffix == ".json"
    return named and path.parent.parent.name == "session" and b'"id"' in head


def read(path: Path, position: int) -> Iterator[Stretch]:
    """Return what was finished since a position: the number of messages that were read."""
    session = _record(path)
    own = fields.text(session.get("id")) or path.stem
    names = ("parentID", "title", "directory", "version")
    parent, title, folder, version = (fields.text(session.get(name)) for name in names)
    teller = opencode_messages.Teller(
        opencode_messages.context(own, parent, title, folder, version)
    )
    storage = path.parents[2]
    held = list(places.files(storage / "message" / own, ".json"))
    read = position
    for i, file in enumerate(held[position:], position):
        record = _record(file)
        if i == len(held) - 1 and not opencode_messages.finished(record):
            break
        parts = places.files(storage / "part" / file.stem, ".json")
        teller.add(file.stem, record, [(part.stem, _record(part)) for part in parts])
        read = i + 1
    if read > position:
        yield Stretch(teller.context, tuple(teller.messages), read, teller.unknown)


def _record(path: Path) -> Record:
    try:
        return opencode_messages.parsed(path.read_bytes())
    except OSError:
        return {}
