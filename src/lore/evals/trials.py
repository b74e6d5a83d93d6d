"""Trials: evaluation files, read into what to store, what to ask and what is right."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from lore.errors import EvaluationError
from lore.memory import Memory
from lore.records import Draft, NewMessage, Part, Role

DEEP = 20
"""Ranks that are looked at."""

_WIDE = 1_000_000
"""A token budget that cuts nothing: ranks are judged, not lengths."""

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Doc:
    """One thing that can be found: the unit it counts as, and its plain text."""

    unit: str
    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """One question with the units that answer it."""

    text: str
    category: str
    gold: frozenset[str]
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One memory to fill, and what to ask of it."""

    name: str
    docs: tuple[Doc, ...]
    asks: tuple[Ask, ...]
    fill: Callable[[Memory], dict[str, str]]
    rank: Callable[[Memory, Ask, str, dict[str, str]], list[str]]
    apart: frozenset[str] = field(default_factory=frozenset)
    unit: Literal["message", "session", "fragment"] = "message"


def trials_of(path: Path, corpus: Path | None) -> list[Trial]:
    """Read one evaluation file; an empty list if its name is not known."""
    name = path.name
    for pattern, read in _READERS:
        if re.fullmatch(pattern, name):
            try:
                return read(path, corpus or path.parent)
            except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
                msg = f"{name} cannot be read: {error!r}"
                raise EvaluationError(msg) from error
    return []


def rows(path: Path) -> Iterator[Raw]:
    """Yield the JSON lines of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            if line.strip():
                yield json.loads(line)


def _said(
    role: Role, text: str, at: datetime, *, speaker: str = "", caption: str = ""
) -> NewMessage:
    parts = [Part("text", text)] if text else []
    if caption:
        parts.append(Part("image", caption, name="image"))
    return NewMessage(role, tuple(parts), at, speaker=speaker)


def _recall(memory: Memory, ask: Ask, recipe: str, units: dict[str, str]) -> list[str]:
    answer = memory.recall(
        ask.text, limit=3 * DEEP, budget_tokens=_WIDE, recipe=recipe, now=ask.now, log=False
    )
    return list(dict.fromkeys(units[hit.id] for hit in answer.hits if hit.id in units))[:DEEP]


def _locomo(path: Path, _corpus: Path) -> list[Trial]:
    return [_locomo_trial(raw) for raw in rows(path)]


def _locomo_trial(raw: Raw) -> Trial:
    turns: list[Raw] = raw["turns"]

    def fill(memory: Memory) -> dict[str, str]:
        units: dict[str, str] = {}
        for said, (name, new) in zip(_locomo_sessions(raw), locomo_talks(raw), strict=True):
            ids = memory.capture(name, new, agent="locomo")
            units |= {id_: turn["id"] for id_, turn in zip(ids, said, strict=True)}
        return units

    known = {turn["id"] for turn in turns}
    return Trial(
        name=raw["id"],
        docs=tuple(
            Doc(t["id"], f"{t['speaker']}: {t['text']} {t.get('caption') or ''}") for t in turns
        ),
        asks=tuple(
            Ask(q["question"], q["category"], gold)
            for q in raw["questions"]
            if (gold := frozenset(q["evidence"]) & known)
        ),
        fill=fill,
        rank=_recall,
        apart=frozenset({"adversarial"}),
    )


def locomo_talks(raw: Raw) -> Iterator[tuple[str, list[NewMessage]]]:
    """Yield the sessions of a conversation between two people, each with its name."""
    for said in _locomo_sessions(raw):
        new = [
            _said("user", turn["text"], _locomo_date(turn["date"]) + timedelta(seconds=20 * i),
                  speaker=turn["speaker"], caption=turn.get("caption") or "")
            for i, turn in enumerate(said)
        ]  # fmt: skip
        yield f"{raw['id']}-{said[0]['session']}", new


def _locomo_sessions(raw: Raw) -> list[list[Raw]]:
    by_session: dict[Any, list[Raw]] = {}
    for turn in raw["turns"]:
        by_session.setdefault(turn["session"], []).append(turn)
    return list(by_session.values())


def _locomo_date(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _beam(path: Path, _corpus: Path) -> list[Trial]:
    return [_beam_trial(raw) for raw in rows(path)]


def _beam_trial(raw: Raw) -> Trial:
    """An exchange, a person's message with the answers to it, is the unit."""
    said, unit_of = _beam_said(raw)

    def fill(memory: Memory) -> dict[str, str]:
        units: dict[str, str] = {}
        for batch in dict.fromkeys(entry[4] for entry in said):
            part = [entry for entry in said if entry[4] == batch]
            new = [_said(role, text, when) for _, role, text, when, _ in part]
            ids = memory.capture(f"{raw['id']}-{batch}", new, agent="beam")
            units |= {id_: entry[0] for id_, entry in zip(ids, part, strict=True)}
        return units

    return Trial(
        name=str(raw["id"]),
        docs=tuple(Doc(unit, text) for unit, _, text, _, _ in said),
        asks=tuple(
            Ask(q["question"], ability, gold)
            for ability, questions in raw["questions"].items()
            for q in questions
            if (
                gold := frozenset(
                    unit_of[i] for i in _integers(q.get("source_chat_ids")) if i in unit_of
                )
            )
        ),
        fill=fill,
        rank=_recall,
    )


BeamSaid = tuple[str, Role, str, datetime, Any]
"""Unit, role, text, time and batch of a message."""


def _beam_said(raw: Raw) -> tuple[list[BeamSaid], dict[int, str]]:
    said: list[BeamSaid] = []
    at, exchange = datetime(2024, 1, 1, tzinfo=UTC), -1
    unit_of: dict[int, str] = {}
    for message in raw["messages"]:
        at = max(_beam_date(message.get("time"), at), at) + timedelta(seconds=1)
        exchange += message["role"] == "user"
        unit = str(max(exchange, 0))
        unit_of[message["id"]] = unit
        text = re.sub(r"\s*->->\s*[\d,]+\s*$", "", message["content"])
        said.append((unit, message["role"], text, at, message.get("batch", 0)))
    return said, unit_of


def beam_talks(raw: Raw) -> Iterator[tuple[str, list[NewMessage]]]:
    """Yield the sessions of a conversation with an assistant, each with its name."""
    said, _ = _beam_said(raw)
    for batch in dict.fromkeys(entry[4] for entry in said):
        new = [_said(role, text, when) for _, role, text, when, of in said if of == batch]
        yield f"{raw['id']}-{batch}", new


def _beam_date(text: str | None, fallback: datetime) -> datetime:
    try:
        return datetime.strptime(text or "", "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError:
        return fallback


def _integers(value: Any) -> list[int]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for item in inner for number in _integers(item)]


_CODING_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "summary": "assistant",
}


def _coding(path: Path, corpus: Path) -> list[Trial]:
    """Tool traffic is left out: `git commit -m` would give the answer away."""
    source = corpus / "coding-sessions.jsonl.gz"
    if not source.exists():
        msg = f"{path.name} needs coding-sessions.jsonl.gz beside it."
        raise EvaluationError(msg, hint="--corpus names its folder.")
    sessions = list(rows(source))

    def fill(memory: Memory) -> dict[str, str]:
        units = {}
        for raw in sessions:
            at = _iso(raw["created"])
            new = [
                _said(_CODING_ROLES[role], text, _iso(time) if time else at)
                for role, text, time in raw["turns"]
                if role in _CODING_ROLES and text.strip()
            ]
            if new:
                memory.capture(raw["sid"], new, agent="coding", files=raw.get("files") or ())
        for session in memory.sessions(limit=len(sessions) + 1):
            units[session.id] = session.external_id
        return units

    known = {raw["sid"] for raw in sessions}
    return [
        Trial(
            name="coding",
            docs=tuple(
                Doc(raw["sid"], text)
                for raw in sessions
                for role, text, _ in raw["turns"]
                if role in _CODING_ROLES and text.strip()
            ),
            asks=tuple(
                Ask(q["query"], "commit", gold, _iso(q["date"]))
                for q in rows(path)
                if (gold := frozenset(q["sessions"]) & known)
            ),
            fill=fill,
            rank=_rank_sessions,
            unit="session",
        )
    ]


def _rank_sessions(memory: Memory, ask: Ask, recipe: str, units: dict[str, str]) -> list[str]:
    found = memory.find_sessions(ask.text, limit=DEEP, now=ask.now, recipe=recipe)
    return [units[hit.session_id] for hit in found if hit.session_id in units]


def _iso(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _multihop(path: Path, _corpus: Path) -> list[Trial]:
    return [_multihop_trial(raw) for raw in rows(path)]


def _multihop_trial(raw: Raw) -> Trial:
    passages: list[Raw] = raw["passages"]

    def fill(memory: Memory) -> dict[str, str]:
        ids = memory.store_all(
            Draft(passage["text"] or passage["title"], passage["title"]) for passage in passages
        )
        return {id_: str(place) for place, id_ in enumerate(ids)}

    def rank(memory: Memory, ask: Ask, recipe: str, units: dict[str, str]) -> list[str]:
        hits = memory.search(ask.text, limit=DEEP, deep=recipe == "learned", log=False)
        return [units[hit.id] for hit in hits]

    return Trial(
        name="passages",
        docs=tuple(Doc(str(i), f"{p['title']}\n{p['text']}") for i, p in enumerate(passages)),
        asks=tuple(
            Ask(q["question"], f"{len(q['gold'])}-passage", frozenset(map(str, q["gold"])))
            for q in raw["questions"]
            if q["gold"]
        ),
        fill=fill,
        rank=rank,
        unit="fragment",
    )


def _long_session(path: Path, _corpus: Path) -> list[Trial]:
    return [_long_trial(raw) for raw in rows(path)]


def _long_trial(raw: Raw) -> Trial:
    said: list[Raw] = raw["messages"]

    def fill(memory: Memory) -> dict[str, str]:
        new = [
            _said(m["role"], m["content"], datetime.fromtimestamp(m["timestamp"] / 1000, UTC))
            for m in said
        ]
        ids = memory.capture(
            str(raw["session_id"]), new, agent="long", project=raw.get("project_path") or ""
        )
        return {id_: str(m["index"]) for id_, m in zip(ids, said, strict=True)}

    return Trial(
        name=str(raw["session_id"]),
        docs=tuple(Doc(str(m["index"]), m["content"]) for m in said),
        asks=tuple(
            Ask(q["question"], q.get("type", "detail"), frozenset({str(q["message_index"])}))
            for q in raw["questions"]
            if q.get("message_index") is not None
        ),
        fill=fill,
        rank=_recall,
    )


_READERS: tuple[tuple[str, Callable[[Path, Path], list[Trial]]], ...] = (
    (r"locomo.*\.jsonl\.gz", _locomo),
    (r"beam-.*\.jsonl\.gz", _beam),
    (r"coding-queries.*\.jsonl\.gz", _coding),
    (r"multihop-.*\.jsonl\.gz", _multihop),
    (r"long-session-.*\.jsonl\.gz", _long_session),
)
