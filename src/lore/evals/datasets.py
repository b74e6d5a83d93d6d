"""Evaluation datasets: parse files into tasks, recorded sessions and questions."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from lore import clock, settings
from lore.embed import Embedder
from lore.errors import EvaluationError
from lore.memory import Memory
from lore.records import Draft, Hit, Message, NewMessage, Part, Role
from lore.records.gateway import Block, Entry, Voice
from lore.text.tokens import TOKENS_PER_CHAR

MAX_RANK = 20
"""Number of ranks that are scored."""

_UNLIMITED_TOKENS = 1_000_000
"""No token limit: ranks are scored, not lengths."""

Raw = dict[str, Any]
Shown = frozenset[str]
"""The units that one hit shows."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document that can be found: its unit, its plain text, and when it was last active."""

    unit: str
    text: str
    at: datetime | None = None


UNANSWERABLE = "unanswerable"
"""The category of questions whose answer is nowhere: they have no gold."""


@dataclass(frozen=True, slots=True)
class Query:
    """One question with the units that answer it.

    Every unit of `gold` is needed, unless `alternatives` says otherwise: one unit of each group.
    Queries of one cluster are answered by the same session, so their results are not independent;
    an empty one stands for the query alone.
    """

    text: str
    category: str
    gold: frozenset[str]
    now: datetime | None = None
    alternatives: tuple[frozenset[str], ...] = ()
    cluster: str = ""

    @property
    def groups(self) -> tuple[frozenset[str], ...]:
        """Return the groups of units of which one each is needed."""
        return self.alternatives or tuple(frozenset({unit}) for unit in sorted(self.gold))


@dataclass(frozen=True, slots=True)
class RetrievalTask:
    """One memory to fill, and the queries to ask."""

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    fill: Callable[[Memory], dict[str, str]]
    rank: Callable[[Memory, Query, str, dict[str, str]], list[Shown]]
    separate_categories: frozenset[str] = field(default_factory=frozenset)
    unit: Literal["message", "session", "fragment"] = "message"


@contextmanager
def open_scratch_memory(
    embedder: Embedder, now: clock.Clock = clock.now, *, store: str = "", vectors: str = ""
) -> Iterator[Memory]:
    """Open a memory that is nobody's, in a temporary home or on PostgreSQL, and with Qdrant."""
    with tempfile.TemporaryDirectory(prefix="lore-eval-") as scratch:
        loaded = settings.load(home=Path(scratch), project_dir=Path.cwd()).settings
        config = replace(loaded, store_url=store, store_owner=scratch, vectors_url=vectors)
        config = replace(config, vectors_engine="qdrant" if vectors else "local")
        with Memory.open(config=config, embedder=embedder, now=now) as memory:
            yield memory
            if vectors:
                memory.sources.vector_index().clear()


def read_folder(
    data: Path, corpus: Path | None = None, prefixes: Sequence[str] = ()
) -> dict[str, list[RetrievalTask]]:
    """Parse the known files of a folder, or those whose names start with one of the prefixes."""
    if not data.is_dir():
        msg = f"There is no folder {data}."
        raise EvaluationError(msg)
    return {
        path.name.removesuffix(".jsonl.gz"): tasks
        for path in sorted(data.glob("*.jsonl.gz"))
        if not prefixes or path.name.startswith(tuple(prefixes))
        if (tasks := read_tasks(path, corpus))
    }


def read_tasks(path: Path, corpus: Path | None) -> list[RetrievalTask]:
    """Parse one evaluation file; return an empty list if its name is unknown."""
    name = path.name
    for pattern, read in _READERS:
        if re.fullmatch(pattern, name):
            try:
                return read(path, corpus or path.parent)
            except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
                msg = f"{name} cannot be read: {error!r}"
                raise EvaluationError(msg) from error
    return []


def read_rows(path: Path) -> Iterator[Raw]:
    """Yield the JSON lines of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            if line.strip():
                yield json.loads(line)


def _message(
    role: Role, text: str, at: datetime, *, speaker: str = "", caption: str = ""
) -> NewMessage:
    parts = [Part("text", text)] if text else []
    if caption:
        parts.append(Part("image", caption, name="image"))
    return NewMessage(role, tuple(parts), at, speaker=speaker)


def _rank_messages(memory: Memory, ask: Query, recipe: str, units: dict[str, str]) -> list[Shown]:
    answer = memory.recall(
        ask.text,
        limit=3 * MAX_RANK,
        budget_tokens=_UNLIMITED_TOKENS,
        recipe=recipe,
        now=ask.now,
        log=False,
    )
    return list(dict.fromkeys(shown for hit in answer.hits if (shown := units_of(hit, units))))[
        :MAX_RANK
    ]


def units_of(hit: Hit, units: dict[str, str]) -> Shown:
    """Return the units that a hit shows: its message, its answer, and what its lines say."""
    ids = (hit.id, hit.question_id, *(hit.sources if hit.type != "message" else ()))
    return frozenset(units[id_] for id_ in ids if id_ in units)


def _locomo(path: Path, _corpus: Path) -> list[RetrievalTask]:
    return [_locomo_task(raw) for raw in read_rows(path)]


def _locomo_task(raw: Raw) -> RetrievalTask:
    turns: list[Raw] = raw["turns"]

    def fill(memory: Memory) -> dict[str, str]:
        units: dict[str, str] = {}
        for turns_of_session, (name, new) in zip(
            _locomo_turns(raw), locomo_sessions(raw), strict=True
        ):
            ids = memory.capture(name, new, agent="locomo")
            units |= {id_: turn["id"] for id_, turn in zip(ids, turns_of_session, strict=True)}
        return units

    session_of = {turn["id"]: f"{raw['id']}-{turn['session']}" for turn in turns}
    return RetrievalTask(
        name=raw["id"],
        documents=tuple(
            Document(
                t["id"],
                f"{t['speaker']}: {t['text']} {t.get('caption') or ''}",
                _locomo_date(t["date"]),
            )
            for t in turns
        ),
        queries=tuple(
            _locomo_query(q, [unit for unit in q["evidence"] if unit in session_of], session_of)
            for q in raw["questions"]
            if any(unit in session_of for unit in q["evidence"]) or q["category"] == UNANSWERABLE
        ),
        fill=fill,
        rank=_rank_messages,
        separate_categories=frozenset({"adversarial", UNANSWERABLE}),
    )


def _locomo_query(raw: Raw, evidence: Sequence[str], session_of: dict[str, str]) -> Query:
    """Return a question; a single turn may have others that answer alone, too."""
    gold = frozenset(evidence)
    also = raw.get("also") or []
    alternatives = (gold | frozenset(also),) if also and len(gold) == 1 else ()
    cluster = session_of[evidence[0]] if evidence else ""
    return Query(raw["question"], raw["category"], gold, None, alternatives, cluster)


def locomo_sessions(raw: Raw) -> Iterator[tuple[str, list[NewMessage]]]:
    """Yield the name and the messages of each session between two people."""
    for turns in _locomo_turns(raw):
        new = [
            _message("user", turn["text"], _locomo_date(turn["date"]) + timedelta(seconds=20 * i),
                  speaker=turn["speaker"], caption=turn.get("caption") or "")
            for i, turn in enumerate(turns)
        ]  # fmt: skip
        yield f"{raw['id']}-{turns[0]['session']}", new


def _locomo_turns(raw: Raw) -> list[list[Raw]]:
    by_session: dict[Any, list[Raw]] = {}
    for turn in raw["turns"]:
        by_session.setdefault(turn["session"], []).append(turn)
    return list(by_session.values())


def _locomo_date(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _beam(path: Path, _corpus: Path) -> list[RetrievalTask]:
    return [_beam_task(raw) for raw in read_rows(path)]


def _beam_task(raw: Raw) -> RetrievalTask:
    """Return a task whose unit is an exchange: a user's message with the responses to it."""
    messages, unit_of = _beam_messages(raw)
    session_of = {unit: f"{raw['id']}-{batch}" for unit, _, _, _, batch in reversed(messages)}

    def fill(memory: Memory) -> dict[str, str]:
        units: dict[str, str] = {}
        for (name, new), part in zip(beam_sessions(raw), _beam_batches(messages), strict=True):
            ids = memory.capture(name, new, agent="beam")
            units |= {id_: entry[0] for id_, entry in zip(ids, part, strict=True)}
        return units

    return RetrievalTask(
        name=str(raw["id"]),
        documents=tuple(Document(unit, text) for unit, _, text, _, _ in messages),
        queries=tuple(
            Query(q["question"], ability, gold, cluster=session_of[min(gold, key=int)])
            for ability, questions in raw["questions"].items()
            for q in questions
            if (
                gold := frozenset(
                    unit_of[i] for i in _integers(q.get("source_chat_ids")) if i in unit_of
                )
            )
        ),
        fill=fill,
        rank=_rank_messages,
    )


BeamMessage = tuple[str, Role, str, datetime, Any]
"""Unit, role, text, time and batch of a message."""


def _beam_messages(raw: Raw) -> tuple[list[BeamMessage], dict[int, str]]:
    messages: list[BeamMessage] = []
    at, exchange = datetime(2024, 1, 1, tzinfo=UTC), -1
    unit_of: dict[int, str] = {}
    for message in raw["messages"]:
        at = max(_beam_date(message.get("time"), at), at) + timedelta(seconds=1)
        exchange += message["role"] == "user"
        unit = str(max(exchange, 0))
        unit_of[message["id"]] = unit
        text = re.sub(r"\s*->->\s*[\d,]+\s*$", "", message["content"])
        messages.append((unit, message["role"], text, at, message.get("batch", 0)))
    return messages, unit_of


def beam_sessions(raw: Raw) -> Iterator[tuple[str, list[NewMessage]]]:
    """Yield the name and the messages of each session with an assistant."""
    messages, _ = _beam_messages(raw)
    for part in _beam_batches(messages):
        new = [_message(role, text, when) for _, role, text, when, _ in part]
        yield f"{raw['id']}-{part[0][4]}", new


def _beam_batches(messages: Sequence[BeamMessage]) -> Iterator[list[BeamMessage]]:
    for batch in dict.fromkeys(entry[4] for entry in messages):
        yield [entry for entry in messages if entry[4] == batch]


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


UNDATED = "commit, date unknown"
"""The date alone reveals much: the session last active before a commit is often the one."""


def _coding(path: Path, corpus: Path) -> list[RetrievalTask]:
    """Return a task without tool traffic: `git commit -m` would reveal the answer.

    Each commit is asked twice, with its date and without.
    """
    source = corpus / "coding-sessions.jsonl.gz"
    if not source.exists():
        msg = f"{path.name} needs coding-sessions.jsonl.gz beside it."
        raise EvaluationError(msg, hint="--corpus names its folder.")
    sessions = list(read_rows(source))

    def fill(memory: Memory) -> dict[str, str]:
        units = {}
        for raw in sessions:
            at = _parse_iso(raw["created"])
            new = [
                _message(_CODING_ROLES[role], text, _parse_iso(time) if time else at)
                for role, text, time in raw["turns"]
                if role in _CODING_ROLES and text.strip()
            ]
            if new:
                memory.capture(raw["sid"], new, agent="coding", files=raw.get("files") or ())
        for session in memory.sessions(limit=len(sessions) + 1):
            units[session.id] = session.external_id
        return units

    session_ids = {raw["sid"] for raw in sessions}
    dated = [
        Query(q["query"], "commit", gold, _parse_iso(q["date"]), cluster=min(gold))
        for q in read_rows(path)
        if (gold := frozenset(q["sessions"]) & session_ids)
    ]
    return [
        RetrievalTask(
            name="coding",
            documents=tuple(
                Document(raw["sid"], text, _parse_iso(time or raw["created"]))
                for raw in sessions
                for role, text, time in raw["turns"]
                if role in _CODING_ROLES and text.strip()
            ),
            queries=(*dated, *(replace(query, category=UNDATED, now=None) for query in dated)),
            separate_categories=frozenset({UNDATED}),
            fill=fill,
            rank=_rank_sessions,
            unit="session",
        )
    ]


def _rank_sessions(memory: Memory, ask: Query, recipe: str, units: dict[str, str]) -> list[Shown]:
    hits = memory.search.find_sessions(ask.text, limit=MAX_RANK, now=ask.now, recipe=recipe)
    return [frozenset({units[hit.session_id]}) for hit in hits if hit.session_id in units]


def _coding_questions(path: Path, corpus: Path) -> list[RetrievalTask]:
    """Return the task of a project: its sessions, tool traffic included, and questions on them."""
    name, sessions = _coding_sessions(path, corpus, "coding-qa")
    return [coding_task(name, sessions, read_rows(path))]


def _session_questions(path: Path, corpus: Path) -> list[RetrievalTask]:
    """Return a task for each long session: that session alone, and questions on it."""
    name, sessions = _coding_sessions(path, corpus, "session-qa")
    asked: dict[str, list[Raw]] = defaultdict(list)
    for raw in read_rows(path):
        asked[raw["within"]].append(raw)
    return [
        coding_task(
            f"{name}/{session['sid'][:8]}", [session], asked[session["sid"]], with_tools=True
        )
        for session in sessions
        if session["sid"] in asked
    ]


def _coding_sessions(path: Path, corpus: Path, prefix: str) -> tuple[str, list[Raw]]:
    """Return the name of a project and its sessions."""
    suffix = path.name.removeprefix(prefix).removesuffix(".jsonl.gz")
    source = corpus / f"coding-sessions{suffix}.jsonl.gz"
    if not source.exists():
        msg = f"{path.name} needs {source.name} beside it."
        raise EvaluationError(msg, hint="--corpus names its folder.")
    return suffix.lstrip("-") or "entire", list(read_rows(source))


def coding_task(
    name: str, sessions: Sequence[Raw], questions: Iterable[Raw], *, with_tools: bool = False
) -> RetrievalTask:
    """Return the task of some sessions of a project and questions on them."""
    return RetrievalTask(
        name=name,
        documents=tuple(
            Document(_turn_unit(raw["sid"], place), text, _parse_iso(time or raw["created"]))
            for raw in sessions
            for place, (role, text, time) in enumerate(raw["turns"])
            if (with_tools or role in _CODING_ROLES) and text.strip()
        ),
        queries=tuple(map(_coding_question, questions)),
        fill=lambda memory: _fill_with_tools(memory, sessions),
        rank=_rank_messages,
        separate_categories=frozenset({UNANSWERABLE}),
    )


def _turn_unit(session: str, place: int) -> str:
    return f"{session}:{place}"


def _coding_question(raw: Raw) -> Query:
    if raw["kind"] == UNANSWERABLE:
        return Query(raw["question"], raw["kind"], frozenset())
    parts = raw.get("evidence_all") or [
        [*([raw["session"], place] for place in raw["evidence"]), *(raw.get("also") or [])]
    ]
    groups = tuple(frozenset(_turn_unit(*turn) for turn in part) for part in parts)
    return Query(
        raw["question"],
        raw["kind"],
        frozenset().union(*groups),
        alternatives=groups,
        cluster=raw.get("session") or parts[0][0][0],
    )


def _fill_with_tools(memory: Memory, sessions: Sequence[Raw]) -> dict[str, str]:
    units: dict[str, str] = {}
    for raw in sessions:
        new, places = [], []
        at = _parse_iso(raw["created"])
        for place, (role, text, time) in enumerate(raw["turns"]):
            at = _parse_iso(time) if time else at
            if text.strip():
                new.append(_coding_message(role, text, at))
                places.append(place)
        if new:
            ids = memory.capture(raw["sid"], new, agent="coding", files=raw.get("files") or ())
            units |= {
                id_: _turn_unit(raw["sid"], place) for id_, place in zip(ids, places, strict=True)
            }
    return units


def _coding_message(role: str, text: str, at: datetime) -> NewMessage:
    if role == "tool":
        name, _, arguments = text.partition(" ")
        return NewMessage("assistant", (Part("tool_call", arguments, name=name),), at)
    if role == "result":
        return NewMessage("tool", (Part("tool_result", text),), at)
    return _message(_CODING_ROLES[role], text, at)


def _parse_iso(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _multihop(path: Path, _corpus: Path) -> list[RetrievalTask]:
    return [_multihop_task(raw) for raw in read_rows(path)]


def _multihop_task(raw: Raw) -> RetrievalTask:
    passages: list[Raw] = raw["passages"]

    def fill(memory: Memory) -> dict[str, str]:
        ids = memory.knowledge.store_all(
            Draft(passage["text"] or passage["title"], passage["title"]) for passage in passages
        )
        return {id_: str(place) for place, id_ in enumerate(ids)}

    def rank(memory: Memory, ask: Query, recipe: str, units: dict[str, str]) -> list[Shown]:
        hits = memory.search(ask.text, limit=MAX_RANK, deep=recipe == "learned", log=False)
        return [frozenset({units[hit.id]}) for hit in hits]

    return RetrievalTask(
        name="passages",
        documents=tuple(
            Document(str(i), f"{p['title']}\n{p['text']}") for i, p in enumerate(passages)
        ),
        queries=tuple(
            Query(q["question"], f"{len(q['gold'])}-passage", frozenset(map(str, q["gold"])))
            for q in raw["questions"]
            if q["gold"]
        ),
        fill=fill,
        rank=rank,
        unit="fragment",
    )


def _long_session(path: Path, _corpus: Path) -> list[RetrievalTask]:
    return [_long_session_task(raw) for raw in read_rows(path)]


def _long_session_task(raw: Raw) -> RetrievalTask:
    messages: list[Raw] = raw["messages"]

    def fill(memory: Memory) -> dict[str, str]:
        new = [
            _message(m["role"], m["content"], datetime.fromtimestamp(m["timestamp"] / 1000, UTC))
            for m in messages
        ]
        ids = memory.capture(
            str(raw["session_id"]), new, agent="long", project=raw.get("project_path") or ""
        )
        return {id_: str(m["index"]) for id_, m in zip(ids, messages, strict=True)}

    return RetrievalTask(
        name=str(raw["session_id"]),
        documents=tuple(Document(str(m["index"]), m["content"]) for m in messages),
        queries=tuple(
            Query(q["question"], q.get("type", "detail"), frozenset({str(q["message_index"])}))
            for q in raw["questions"]
            if q.get("message_index") is not None
        ),
        fill=fill,
        rank=_rank_messages,
    )


_READERS: tuple[tuple[str, Callable[[Path, Path], list[RetrievalTask]]], ...] = (
    (r"locomo.*\.jsonl\.gz", _locomo),
    (r"chats.*\.jsonl\.gz", _locomo),
    (r"coding-qa.*\.jsonl\.gz", _coding_questions),
    (r"session-qa.*\.jsonl\.gz", _session_questions),
    (r"beam-.*\.jsonl\.gz", _beam),
    (r"coding-queries.*\.jsonl\.gz", _coding),
    (r"multihop-.*\.jsonl\.gz", _multihop),
    (r"long-session-.*\.jsonl\.gz", _long_session),
)


SESSIONS, COMMITS = "coding-sessions.jsonl.gz", "coding-queries.jsonl.gz"

RARE_FILE_SHARE = 0.04
"""A file changed by at most this share of the sessions is characteristic of a session."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One message of a recorded session."""

    session: str
    at: datetime
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session, with its files and commits."""

    name: str
    turns: tuple[RecordedTurn, ...]
    files: frozenset[str]
    commits: frozenset[str]


class SessionLinks:
    """Files and commits that sessions have in common."""

    def __init__(self, recordings: Sequence[Recording], commits: dict[str, set[str]]) -> None:
        uses = Counter(file for recording in recordings for file in recording.files)
        rare = {file for file, count in uses.items() if count <= RARE_FILE_SHARE * len(recordings)}
        self._files = {one.name: one.files for one in recordings}
        self._rare = {one.name: one.files & rare for one in recordings}
        self._commits = {one.name: one.commits | commits.get(one.name, set()) for one in recordings}

    def between(self, one: str, other: str) -> tuple[bool, bool]:
        """Return whether two sessions share a file or commit, and a rare file or commit."""
        if one not in self._files or other not in self._files:
            return False, False
        commit = bool(self._commits[one] & self._commits[other])
        file = bool(self._files[one] & self._files[other])
        return commit or file, commit or bool(self._rare[one] & self._rare[other])

    def chance(self, names: Sequence[str]) -> tuple[float, float]:
        """Return the probability of both for a session and any earlier one."""
        pairs = [self.between(b, a) for i, b in enumerate(names) for a in names[:i]]
        count = max(1, len(pairs))
        return sum(pair[0] for pair in pairs) / count, sum(pair[1] for pair in pairs) / count


def read_recordings(data: Path) -> list[Recording]:
    """Return the recorded sessions of a folder, oldest first."""
    source = data / SESSIONS
    if not source.exists():
        msg = f"There is no {SESSIONS} in {data}."
        raise EvaluationError(msg)
    try:
        recordings = [_recording(raw) for raw in read_rows(source)]
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        msg = f"{SESSIONS} cannot be read: {error!r}"
        raise EvaluationError(msg) from error
    spoken = [recording for recording in recordings if recording.turns]
    return sorted(spoken, key=lambda recording: recording.turns[0].at)


def read_links(data: Path, recordings: Sequence[Recording]) -> SessionLinks:
    """Return what sessions have in common, including the commits of the queries."""
    commits: dict[str, set[str]] = defaultdict(set)
    if (data / COMMITS).exists():
        for place, raw in enumerate(read_rows(data / COMMITS)):
            for name in raw["sessions"]:
                commits[name].add(f"query {place}")
    return SessionLinks(recordings, commits)


def _recording(raw: dict[str, object]) -> Recording:
    name, turns = str(raw["sid"]), raw["turns"]
    assert isinstance(turns, list)
    spoken: list[RecordedTurn] = []
    at = _parse_iso(str(raw["created"]))
    for role, text, time in turns:
        at = _parse_iso(time) if time else at
        if role in ("user", "assistant") and text.strip():
            spoken.append(RecordedTurn(name, at, role, text))
    return Recording(name, tuple(spoken), _texts(raw.get("files")), _texts(raw.get("checkpoints")))


def _texts(value: object) -> frozenset[str]:
    return frozenset(map(str, value)) if isinstance(value, list) else frozenset()


_TOOL = re.compile(r"^\[tool:([\w.-]+)\] ?", re.MULTILINE)
"""The mark of a tool result in recordings; call arguments are not recorded."""


@dataclass(frozen=True, slots=True)
class EvidenceQuestion:
    """A question about a session, its answer, and the message that contains it."""

    text: str
    answer: str
    message: int


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """One request: the number of entries in its prompt, and its time."""

    entries: int
    at_s: float


@dataclass(frozen=True, slots=True)
class ReplaySession:
    """A recorded session as the requests of a client."""

    name: str
    entries: tuple[Entry, ...]
    requests: tuple[ReplayRequest, ...]
    entry_counts: tuple[int, ...]
    """For each message, the number of entries up to and including it."""
    messages: tuple[NewMessage, ...]
    questions: tuple[EvidenceQuestion, ...] = ()
    project: str = ""
    tokens_per_char: float = TOKENS_PER_CHAR

    def entries_of(self, message: int) -> range:
        """Return the numbers of the entries of a message."""
        return range(self.entry_counts[message - 1] if message else 0, self.entry_counts[message])


def read_long_sessions(path: Path) -> list[ReplaySession]:
    """Return the sessions of a file."""
    try:
        return [_parse_long_session(raw) for raw in read_rows(path)]
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        msg = f"{path.name} cannot be read: {error!r}"
        raise EvaluationError(msg) from error


def replay_session_of(name: str, messages: Sequence[Message]) -> ReplaySession:
    """Return a captured session as the requests of a client, without questions."""
    items = [(one.parts, one.created_at, one.role) for one in messages]
    return _build_session(name, items, whole=False)


def _parse_long_session(raw: dict[str, Any]) -> ReplaySession:
    messages: list[dict[str, Any]] = raw["messages"]
    items = [
        (_parse_parts(m["role"], m["content"]), clock.from_us(1000 * m["timestamp"]), m["role"])
        for m in messages
    ]
    place = {m["index"]: number for number, m in enumerate(messages)}
    questions = tuple(
        EvidenceQuestion(q["question"], q.get("answer", ""), place[q["message_index"]])
        for q in raw["questions"]
        if q.get("message_index") in place
    )
    chars = sum(len(m["content"]) for m in messages)
    tokens = sum(m.get("tokens", 0) for m in messages)
    project = str(raw.get("project_path") or "")
    ratio = tokens / chars if tokens and chars else TOKENS_PER_CHAR
    return _build_session(str(raw["session_id"]), items, questions, project, ratio)


def _build_session(
    name: str,
    items: Sequence[tuple[Sequence[Part], datetime, Role]],
    questions: tuple[EvidenceQuestion, ...] = (),
    project: str = "",
    tokens_per_char: float = TOKENS_PER_CHAR,
    *,
    whole: bool = True,
) -> ReplaySession:
    """Build a session; with `whole`, each assistant message is a complete response."""
    entries: list[Entry] = []
    requests: list[ReplayRequest] = []
    ends: list[int] = []
    for parts, at, role in items:
        own = [part for part in parts if part.kind != "tool_result"]
        results = [part for part in parts if part.kind == "tool_result"]
        if role == "assistant" and entries and (whole or entries[-1].voice != "assistant"):
            requests.append(ReplayRequest(len(entries), at.timestamp()))
        if own:
            entries.append(_entry("user" if role == "user" else "assistant", own))
        if results:
            entries.append(_entry("user", results))
        ends.append(len(entries))
    new_messages = tuple(NewMessage(role, tuple(parts), at) for parts, at, role in items)
    return ReplaySession(
        name,
        tuple(entries),
        tuple(requests),
        tuple(ends),
        new_messages,
        questions,
        project,
        tokens_per_char,
    )


def _parse_parts(role: str, content: str) -> list[Part]:
    """Return the text, the calls and the results of an assistant message."""
    if role != "assistant":
        return [Part("text", content)]
    calls: list[Part] = []
    results: list[Part] = []
    marks = list(_TOOL.finditer(content))
    spoken = content[: marks[0].start()] if marks else content
    if spoken.strip():
        calls.append(Part("text", spoken))
    ends = [*(mark.start() for mark in marks[1:]), len(content)]
    for number, (mark, end) in enumerate(zip(marks, ends, strict=False)):
        text = content[mark.end() : end]
        id_ = blake2b(f"{content}{number}".encode(), digest_size=8).hexdigest()
        calls.append(Part("tool_call", "", name=mark[1], call_id=id_))
        results.append(Part("tool_result", text, name=mark[1], call_id=id_))
    return [*calls, *results]


_KINDS = {"tool_call": "call", "tool_result": "result", "reasoning": "reasoning", "text": "text"}


def _entry(voice: Voice, parts: Sequence[Part]) -> Entry:
    blocks = tuple(
        Block(
            _KINDS.get(part.kind, "other"),  # type: ignore[arg-type]
            max(1, len(part.text)),
            part.text,
            part.call_id,
            part.name,
            part.failed,
        )
        for part in parts
    )
    content = "\0".join(f"{b.kind} {b.call_id} {b.text}" for b in blocks)
    return Entry(
        voice, blocks, blake2b(content.encode("utf-8", "replace"), digest_size=12).hexdigest()
    )
