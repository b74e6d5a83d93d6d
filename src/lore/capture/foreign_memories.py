"""Import the knowledge of other memories: claude-mem, mem0 and basic-memory.

Each reader yields records in the format of an export, so that the import treats them like those of
another home: what is known or was forgotten is skipped, and without trust they are a peer's words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from lore import clock
from lore.capture.adapters import json_fields
from lore.capture.adapters.json_fields import Record, as_datetime, as_dict, as_list, as_text
from lore.capture.transcript_files import parse
from lore.errors import InvalidInput, NotFound
from lore.records import TRUST
from lore.store import database

_MOST_CHARS = 200_000
_SUMMARY_CHARS = 400
_SQLITE = b"SQLite format 3\0"


def read_records(kind: str, path: Path) -> Iterator[Record]:
    """Yield the records of another memory at a path."""
    if kind not in READERS:
        msg = f"'{kind}' is no memory that Lore can import."
        raise InvalidInput(msg, hint=f"Known: {', '.join(READERS)}.")
    if not path.exists():
        msg = f"There is no file {path}."
        raise NotFound(msg)
    yield from READERS[kind](path)


def _id(source: str, own: str, at: datetime) -> str:
    """Return an id that is the same in every import; ids sort by time."""
    hashed = hashlib.blake2b(f"{source}\0{own}".encode("utf-8", "replace"), digest_size=10)
    ms, rest = f"{max(0, clock.to_us(at) // 1000) & 0xFFFF_FFFF_FFFF:012x}", hashed.hexdigest()
    return f"{ms[:8]}-{ms[8:]}-7{rest[:3]}-8{rest[3:6]}-{rest[6:18]}"


def _fragment(  # noqa: PLR0913 - a record has many fields
    source: str,
    own: str,
    content: str,
    at: datetime,
    *,
    summary: str = "",
    project: str | None = None,
    depth: int = 0,
    metadata: Record | None = None,
) -> Record:
    moment = clock.to_us(at)
    return {
        "record": "fragment", "id": _id(source, f"{own}\0{content}", at),
        "content": content[:_MOST_CHARS], "summary": (summary or content.strip())[:_SUMMARY_CHARS],
        "depth": depth, "kind": "fact", "payload": {}, "importance": 0.5, "confidence": 0.7,
        "origin": "assistant", "trust": TRUST["assistant"], "source_messages": [],
        "metadata": {"imported_from": source, **(metadata or {})}, "project_id": project,
        "session_id": None, "created_at": moment, "access_count": 0, "last_accessed": None,
        "last_reinforced": moment, "relevance": 1.0, "superseded_by": None, "valid_from": None,
        "valid_to": None, "updated_at": moment, "version": 1, "deleted_at": None, "boost": 0.0,
        "boosted_at": moment, "overview_at": None,
    }  # fmt: skip


def _project(source: str, name: str, at: datetime) -> Record:
    own = _id(source, f"project\0{name}", clock.from_us(0))
    moment = clock.to_us(at)
    return {
        "record": "project", "id": own, "path": name, "remote": "", "name": name,
        "created_at": moment,
    }  # fmt: skip


def _edge(source: Record, target: Record, kind: str, note: str = "") -> Record:
    return {
        "record": "edge", "source": source["id"], "target": target["id"], "kind": kind,
        "weight": 1.0, "note": note[:_SUMMARY_CHARS], "created_at": target["created_at"],
    }  # fmt: skip


_OBSERVATION = (
    "id", "memory_session_id", "project", "text", "type", "title", "subtitle", "facts",
    "narrative", "created_at_epoch",
)  # fmt: skip
_SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def _read_claude_mem(path: Path) -> Iterator[Record]:
    """Yield the observations and the summaries of sessions in claude-mem's database."""
    path = path / "claude-mem.db" if path.is_dir() else path
    with database.open_external(path) as db:
        observations = database.external_rows(db, "observations", _OBSERVATION, order=("id",))
        names = ("id", "memory_session_id", "project", "created_at_epoch", *_SUMMARY)
        summaries = database.external_rows(db, "session_summaries", names, order=("id",))
    if not observations and not summaries:
        msg = "It has no observations of claude-mem."
        raise InvalidInput(msg)
    projects: dict[str, str] = {}
    for row in observations:
        fields = dict(zip(_OBSERVATION, row, strict=True))
        texts = [as_text(fields[name]).strip() for name in ("subtitle", "narrative", "text")]
        texts += [f"- {fact}" for fact in _texts(fields["facts"])]
        yield from _of_claude_mem("observation", fields, as_text(fields["title"]), texts, projects)
    for row in summaries:
        fields = dict(zip(names, row, strict=True))
        labelled = ((name, as_text(fields[name]).strip()) for name in _SUMMARY)
        texts = [f"{name.replace('_', ' ')}: {text}" for name, text in labelled if text]
        yield from _of_claude_mem("summary", fields, as_text(fields["request"]), texts, projects)


def _of_claude_mem(
    kind: str, fields: Record, title: str, texts: list[str], projects: dict[str, str]
) -> Iterator[Record]:
    content = "\n".join(filter(None, ([title.strip()] if kind == "observation" else []) + texts))
    if not content.strip():
        return
    at = as_datetime(fields["created_at_epoch"]) or clock.from_us(0)
    name = as_text(fields["project"]).strip()
    if name and name not in projects:
        project = _project("claude-mem", name, at)
        projects[name] = project["id"]
        yield project
    session = as_text(fields["memory_session_id"])
    about = {"type": as_text(fields.get("type")) or kind, "session": session}
    own = f"{kind}\0{as_text(fields['id'])}"
    yield _fragment(
        "claude-mem", own, content, at, summary=title, project=projects.get(name), metadata=about
    )


def _texts(packed: Any) -> list[str]:
    listed = parse(as_text(packed).encode("utf-8", "replace")) if packed else None
    return [as_text(each) for each in as_list(listed) if as_text(each).strip()]


def _read_mem0(path: Path) -> Iterator[Record]:
    """Yield the memories of mem0: its history database, or the JSON of `get_all`."""
    with path.open("rb") as stream:
        head = stream.read(len(_SQLITE))
    memories = _mem0_history(path) if head == _SQLITE else _mem0_export(path)
    for own, (text, at, about) in memories.items():
        if text.strip():
            yield _fragment("mem0", own, text.strip(), at, metadata=about)


_Memories = dict[str, tuple[str, datetime, Record]]


def _mem0_history(path: Path) -> _Memories:
    """Return the last text of each memory that was not deleted."""
    names = ("memory_id", "new_memory", "event", "created_at", "updated_at", "is_deleted")
    with database.open_external(path) as db:
        rows = database.external_rows(db, "history", names, order=("rowid",))
    memories: _Memories = {}
    for own, text, event, created, updated, deleted in rows:
        memories.pop(as_text(own), None)
        if as_text(event).upper() != "DELETE" and not deleted:
            at = as_datetime(created) or as_datetime(updated) or json_fields.modified_at(path)
            memories[as_text(own)] = (as_text(text), at, {})
    return memories


def _mem0_export(path: Path) -> _Memories:
    document = json_fields.load_document(path)
    listed = document if isinstance(document, list) else as_dict(document).get("results")
    if not isinstance(listed, list):
        msg = "It is no export of mem0: it has no list of results."
        raise InvalidInput(msg)
    memories: _Memories = {}
    for fields in map(as_dict, listed):
        at = as_datetime(fields.get("created_at")) or json_fields.modified_at(path)
        names = ("user_id", "agent_id", "run_id")
        about = {name: as_text(fields[name]) for name in names if as_text(fields.get(name))}
        memories[as_text(fields.get("id"))] = (as_text(fields.get("memory")), at, about)
    return memories


_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_FIELD = re.compile(r"^([A-Za-z_]{1,40}):[ \t]*(.{0,1000})$", re.MULTILINE)
_NOTED = re.compile(r"^\s*- \[([^\[\]()\n]{2,60})\][ \t]+(\S[^\n]*)$", re.MULTILINE)
"""An observation; task marks such as `[x]` have one letter."""

_CLOCK = re.compile(r"\d{1,3}:\d{2}")
_RELATION = re.compile(
    r"^\s*- (?P<type>[^\s\[\]\"'\n]{1,60}|\"[^\"\n]{1,60}\"|'[^'\n]{1,60}') "
    r"\[\[(?P<target>[^\[\]\n]{1,300})\]\](?: \([^()\n]{0,300}\))?[ \t]*$",
    re.MULTILINE,
)
_NOTE_BYTES = 1 << 20


def _read_basic_memory(path: Path) -> Iterator[Record]:
    """Yield the notes of a folder, each with its observations, and the relations between them."""
    paths = json_fields.find_files(path, ".md") if path.is_dir() else iter([path])
    notes: dict[str, Record] = {}
    relations: list[tuple[Record, str, str]] = []
    for file in paths:
        own = file.relative_to(path).as_posix() if path.is_dir() else file.name
        text = _read_note(file)
        front = _FRONT.match(text)
        fields = dict(_FIELD.findall(front[1])) if front else {}
        body = text[front.end() :] if front else text
        title = fields.get("title", "").strip("\"' ") or file.stem
        at = as_datetime(fields.get("created", "").strip("\"' ")) or json_fields.modified_at(file)
        rest = _RELATION.sub("", _NOTED.sub("", body)).strip()
        about = {"title": title, "permalink": fields.get("permalink", "").strip("\"' ")}
        content = rest or title
        note = _fragment("basic-memory", own, content, at, summary=title, metadata=about)
        yield note
        notes |= {name: note for name in (title, about["permalink"], file.stem) if name}
        for category, text in _NOTED.findall(body):
            if not _CLOCK.match(category):
                tagged = {"title": title, "category": category}
                observation = _fragment(
                    "basic-memory", f"{own}\0{category}", text.strip(), at, depth=1, metadata=tagged
                )
                yield observation
                yield _edge(note, observation, "hierarchical")
        relations += [(note, each["type"], each["target"]) for each in _RELATION.finditer(body)]
    for note, kind, target in relations:
        other = notes.get(target.strip())
        if other is not None and other["id"] != note["id"]:
            yield _edge(note, other, "related_to", kind.strip("\"'"))


def _read_note(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            raw = stream.read(_NOTE_BYTES)
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror}."
        raise NotFound(msg) from error
    return raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n")


READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    "claude-mem": _read_claude_mem,
    "mem0": _read_mem0,
    "basic-memory": _read_basic_memory,
}
