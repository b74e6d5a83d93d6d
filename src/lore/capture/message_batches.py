"""Stage messages in batches and write them with their watermarks; count new ones in a dry run.

No model is called and nothing is embedded here; jobs do that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import groupby, islice
from typing import NamedTuple, Self

from lore import projects, telemetry
from lore.capture import quotes
from lore.capture.adapter_protocol import TYPED_STATE, Context
from lore.capture.exclusion import covers_folder
from lore.capture.message_capture import (
    check_message,
    prepare_all,
    redact_fields,
    split_at_search_marks,
)
from lore.errors import InvalidInput, LoreError
from lore.projects import ProjectFinder
from lore.records import NewMessage, Watermark
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor
from lore.store import (
    dialogue_state,
    forgotten_names,
    fork_dedup,
    keywords,
    message_dedup,
    messages,
    sessions,
)
from lore.store.database import Connection, Database
from lore.store.keywords import NewMessageText
from lore.store.messages import PreparedMessage
from lore.text import chat_commands, goals, sentences, words
from lore.text.instructions import typed_text
from lore.text.name_limit import is_short
from lore.text.private_text import hide_private

BATCH_MESSAGES = 1_000
BATCH_BYTES = 4 << 20
"""The size of a transaction: large enough to make its commit cheap, small enough for memory."""

TITLE_CHARS = 80
"""Most characters of the first request that serve as a session's title."""

_SECRET = re.compile(r"\[secret:([\w.-]+):[0-9a-f]+\]")
_SHOWN_CHARS = 80
"""Characters on each side of a secret that show where it was."""

_MOST_SHOWN = 1_000
"""Places of secrets that are recorded for a file."""

_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
"""The start of a Windows path, which is identified by its text."""


@dataclass(slots=True)
class FileCounts:
    """The counts of reading one file."""

    source: str = ""
    agent: str = ""
    bytes: int = 0
    added: int = 0
    known: int = 0
    sessions: set[tuple[str, str]] = field(default_factory=set)
    skipped: Counter[str] = field(default_factory=Counter)
    redactions: Counter[str] = field(default_factory=Counter)
    redacted: Counter[tuple[str, str]] = field(default_factory=Counter)
    problem: str = ""
    news: bool = False


@dataclass(slots=True)
class SessionRun:
    """Consecutive messages of one session."""

    context: Context
    new: list[NewMessage] = field(default_factory=list)
    prepared: list[PreparedMessage] = field(default_factory=list)
    switches: list[tuple[datetime, bool]] = field(default_factory=list)
    """When private mode was turned on, and when off."""


@dataclass(slots=True)
class Batch:
    """Messages that are written together."""

    counts: FileCounts
    redactor: Redactor = EPHEMERAL_REDACTOR
    most: int = BATCH_MESSAGES
    exclude: tuple[str, ...] = ()
    runs: list[SessionRun] = field(default_factory=list)
    messages: int = 0
    bytes: int = 0
    is_prepared: bool = False
    _redacted_context: tuple[Context, Context] | None = None
    _command_session: str = ""
    """The session of the last command to Lore, until another message follows."""

    def add(self, context: Context, new: Sequence[NewMessage], size: int) -> None:
        """Add messages to the batch; drop commands to Lore, excluded and invalid ones."""
        if covers_folder(self.exclude, self.counts.agent, context.folder):
            self.bytes += size
            self.counts.skipped["excluded"] += len(new)
            return
        if not _is_storable(context):
            self.bytes += size
            self.counts.skipped["name too long"] += len(new)
            return
        if self.runs and self.runs[-1].context.session == context.session:
            run = self.runs[-1]
            run.context = context
        else:
            run = SessionRun(context)
            self.runs.append(run)
        self.bytes += size
        for message in split_at_search_marks(new):
            if self._is_for_lore(run, message):
                continue
            try:
                check_message(message)
            except InvalidInput:
                self.counts.skipped["invalid"] += 1
                continue
            run.new.append(message)
            self.messages += 1

    def _is_for_lore(self, run: SessionRun, message: NewMessage) -> bool:
        """Return whether a message is a command to Lore, or the response to one."""
        session = run.context.session
        if message.role == "assistant":
            return bool(session) and self._command_session == session
        texts = [part.text for part in message.parts]
        if message.role in ("user", "system") and any("lore:" in text for text in texts):
            typed = ["".join(texts), *texts]
            is_command = bool(chat_commands.find_command(typed))
            switch = chat_commands.find_private_switch(typed)
            if switch is not None:
                run.switches.append((message.created_at, switch))
        else:
            is_command = False
        if is_command or message.role == "user":
            self._command_session = session if is_command else ""
        return is_command

    def end(self, context: Context) -> None:
        """Apply session data that came after the last message."""
        if covers_folder(self.exclude, self.counts.agent, context.folder):
            return
        if not _is_storable(context):
            return
        if self.runs and self.runs[-1].context.session == context.session:
            self.runs[-1].context = context
        elif context.title or context.files:
            self.runs.append(SessionRun(context))

    def redacted(self, context: Context) -> Context:
        """Return the redacted context; the last result is cached.

        What a person typed in an excluded folder is not stored, not even in a watermark.
        """
        if self._redacted_context is None or self._redacted_context[0] is not context:
            original = context
            if covers_folder(self.exclude, self.counts.agent, context.folder):
                context = _without_typed_state(context)
            texts = [*context.state, *map(str, context.state.values()), *context.files]
            texts += [
                value
                for each in fields(context)
                if isinstance(value := getattr(context, each.name), str)
            ]
            has_secret = self.redactor.holds_secret(map(words.clean, texts))
            is_private = any(hide_private(text) is not text for text in texts)
            redacted = context
            if has_secret or is_private:
                redacted = redact_fields(context, self.redactor)
            self._redacted_context = original, redacted
        return self._redacted_context[1]

    def is_full(self) -> bool:
        """Return whether it is time to write."""
        return self.messages >= self.most or self.bytes >= BATCH_BYTES

    def note_secrets(self, message: NewMessage, prepared: PreparedMessage) -> None:
        """Count the redacted secrets, by their placeholders."""
        if message.parts is prepared.new.parts:
            return
        for before, after in zip(message.parts, prepared.new.parts, strict=True):
            if before.text == after.text or "[secret:" not in after.text:
                continue
            for mark in _SECRET.finditer(after.text):
                if mark[0] not in before.text:
                    self.counts.redactions[mark[1]] += 1
                    place = mark[1], _line_around(after.text, mark.start(), mark.end())
                    if place in self.counts.redacted or len(self.counts.redacted) < _MOST_SHOWN:
                        self.counts.redacted[place] += 1


def _without_typed_state(context: Context) -> Context:
    state = context.state
    if not any(name.startswith(TYPED_STATE) for name in state):
        return context
    left = {name: value for name, value in state.items() if not name.startswith(TYPED_STATE)}
    return replace(context, state=left)


def prepare_batches(batches: Sequence[Batch]) -> None:
    """Redact the messages of batches and derive the rest, all of it before any write.

    The rules of redaction are large automata: they stay in the processor's cache while they scan
    the messages of many short files together.
    """
    batches = [batch for batch in batches if not batch.is_prepared]
    new = [message for batch in batches for run in batch.runs for message in run.new]
    redactor = batches[0].redactor if batches else EPHEMERAL_REDACTOR
    prepared = iter(prepare_all(new, redactor=redactor))
    for batch in batches:
        batch.is_prepared = True
        for run in reversed(batch.runs):
            run.context = batch.redacted(run.context)
        for run in batch.runs:
            run.prepared = list(islice(prepared, len(run.new)))
            for message, each in zip(run.new, run.prepared, strict=True):
                batch.note_secrets(message, each)


def _is_storable(context: Context) -> bool:
    """Return whether the names of a session are short enough to be stored."""
    return all(map(is_short, (context.session, context.parent, context.folder)))


def _line_around(text: str, start: int, end: int) -> str:
    """Return the line of a placeholder, or what is near it if the line is long."""
    first = max(text.rfind("\n", max(0, start - _SHOWN_CHARS), start) + 1, start - _SHOWN_CHARS)
    last = text.find("\n", end, end + _SHOWN_CHARS)
    return text[first : last if last >= 0 else end + _SHOWN_CHARS]


def write_batch(
    db: Connection,
    batch: Batch,
    seen: ProjectFinder,
    unindexed: list[NewMessageText],
    *,
    now: datetime,
) -> tuple[int | None, int]:
    """Store a batch in the caller's transaction; return its last session and the count of new
    messages.

    Duplicates, private and forgotten messages are dropped. The caller adds `unindexed` to the
    keyword index.
    """
    session_n, added, agent = None, 0, batch.counts.agent
    for run in batch.runs:
        name = words.clean(run.context.session)
        dialogue_state.record_private_switches(db, name, run.switches, now=now)
        run.context = drop_forgotten_names(db, agent, run.context)
        parent = words.clean(run.context.parent)
        public = dialogue_state.drop_private_messages(db, name, run.prepared, parent=parent)
        if len(public) < len(run.prepared) and run.context.lasting_keys:
            public_keys = {message.key for message in public}
            private = [message for message in run.prepared if message.key not in public_keys]
            fork_dedup.add_copy_tombstones(db, agent, private, now=now)
        own = messages.drop_forgotten(db, (agent, name), "file", public)
        run.prepared = own
        if not own:
            _describe(db, sessions.find_session(db, name, agent=agent), run.context)
            continue
        session_n = _ensure_session(db, agent, run, seen, now=now)
        add = _add_with_fork_dedup if run.context.lasting_keys else _add_messages
        added += add(db, session_n, own, unindexed, now=now)
        goal = "" if run.context.title else _find_goal(db, session_n, own)
        _describe(db, session_n, run.context, goal)
    return session_n, added


def drop_forgotten_names(db: Connection, agent: str, context: Context) -> Context:
    """Return a context without title, branch and files that were forgotten or are private."""
    name = words.clean(context.session)
    if any(
        dialogue_state.was_ever_private(db, one)
        for one in {name, words.clean(context.parent)}
        if one
    ):
        context = replace(context, title="", files=())
    title, branch = words.clean(context.title), words.clean(context.branch)
    files = tuple(map(words.clean, context.files))
    visible = forgotten_names.visible(db, agent, name, title=title, branch=branch, files=files)
    if visible == (title, branch, files):
        return context
    return replace(context, title=visible.title, branch=visible.branch, files=visible.files)


def _add_with_fork_dedup(
    db: Connection,
    session_n: int,
    prepared: Sequence[PreparedMessage],
    unindexed: list[NewMessageText],
    *,
    now: datetime,
) -> int:
    """Store a session's own messages, link it to its origin if it is a fork, and count new ones.

    Messages that a fork moved before the session they were said in are moved there, in order.
    """
    keys = [message.key for message in prepared]
    seen_keys = message_dedup.find_seen(db, session_n, "file", keys)
    fresh = [message for message in prepared if message.key not in seen_keys]
    fork_dedup.link_forks(db, session_n, fresh)
    copies = fork_dedup.find_copies(db, session_n, fresh)
    forgotten = fork_dedup.find_forgotten_copies(
        db, session_n, (message for message in fresh if message.key not in copies)
    )
    if not copies and not forgotten:
        return _add_messages(db, session_n, prepared, unindexed, now=now)
    forks = fork_dedup.descendants(db, session_n) if copies else set()
    origins = [message.session_n for key in keys if (message := copies.get(key))]
    origins = [origin for origin in origins if origin not in forks]
    if origins:
        fork_dedup.set_parent(db, session_n, origins[-1])

    def place(message: PreparedMessage) -> str:
        if message.key in copies:
            return "fork" if copies[message.key].session_n in forks else "origin"
        return "nowhere" if message.key in forgotten else "own"

    added = 0
    for where, group in groupby(prepared, key=place):
        run = list(group)
        if where == "own":
            added += _add_messages(db, session_n, run, unindexed, now=now)
        elif where == "fork":
            moved = dict.fromkeys(copies[message.key].n for message in run)
            fork_dedup.move_to_original(db, session_n, list(moved), now=now)
    return added


def _add_messages(
    db: Connection,
    session_n: int,
    prepared: Sequence[PreparedMessage],
    unindexed: list[NewMessageText],
    *,
    now: datetime,
) -> int:
    """Store messages without duplicates and return how many were new."""
    prepared = quotes.mark_quotes(db, session_n, prepared)
    ids = messages.add_messages(
        db, session_n, prepared, now=now, channel="file", unindexed=unindexed
    )
    return sum(id_ == message.id for id_, message in zip(ids, prepared, strict=True))


def _find_goal(db: Connection, session_n: int, prepared: Sequence[PreparedMessage]) -> str:
    """Return the person's first request, as the title of a session without one."""
    if sessions.has_title(db, session_n):
        return ""
    typed = [(message.key, text) for message in prepared if (text := typed_text(message.new))]
    # not what a fork only copied: its original may have been forgotten
    own = message_dedup.find_seen(db, session_n, "file", [key for key, _ in typed])
    return make_title(text for key, text in typed if key in own)


def make_title(typed: Iterable[str]) -> str:
    """Return the first request among what a person typed, short enough for a title; '' without."""
    goal, _ = goals.find_goal(typed)
    return sentences.one_line(goal, TITLE_CHARS)


def _ensure_session(
    db: Connection, agent: str, run: SessionRun, seen: ProjectFinder, *, now: datetime
) -> int:
    context = run.context
    started_at = messages.clamp_time(run.prepared[0].new.created_at, now)
    name, parent, branch, folder = map(
        words.clean, (context.session, context.parent, context.branch, context.folder)
    )
    place = seen.find(folder)
    project_n = projects.ensure_project(db, folder if _DRIVE.match(folder) else "", place, now=now)
    parent_n = None
    if parent and parent != name:
        parent_n = sessions.ensure_session(
            db, parent, agent=agent, project_n=project_n, started_at=started_at
        )
        project_n = project_n or sessions.project_of_session(db, parent_n)
    n = sessions.ensure_session(
        db,
        name,
        agent=agent,
        project_n=project_n,
        started_at=started_at,
        branch=branch,
        parent_n=parent_n,
    )
    sessions.fill_session(db, n, project_n=project_n, branch=branch, parent_n=parent_n)
    return n


def _describe(db: Connection, n: int | None, context: Context, goal: str = "") -> None:
    title = words.clean(context.title) or goal
    if n is not None and (title or context.files):
        sessions.describe_session(db, n, title=title, files=tuple(map(words.clean, context.files)))


PARSE_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""Errors of code that met unexpected data, never a failure of the machine."""


_MOST_FILES = 64
"""Batches that wait at most: files without messages would wait for long."""


class PendingWrite(NamedTuple):
    """A batch to be written, with its watermark.

    `write` stores both, adds texts for the keyword index to its list, and returns the count of new
    messages, or None if another reader was faster; `on_written` gets that count once it is durable.
    """

    batch: Batch
    mark: Watermark
    write: Callable[[Connection, list[NewMessageText]], int | None]
    on_written: Callable[[int | None], None]


class BatchWriter:
    """Groups the batches of several files into one transaction.

    A short file is not worth a commit, nor a segment of the keyword index, of its own. Batches wait
    until together they fill one; those of a file that continues do not wait. On exit all are
    written.
    """

    def __init__(self, database: Database | None, most: int = BATCH_MESSAGES) -> None:
        self._database = database
        self._most = most
        self._pending: list[PendingWrite] = []

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Write what waits, also after a failure: it belongs to files that were read whole."""
        self.flush()

    def put(self, pending: PendingWrite) -> None:
        """Add a batch; flush first if it would be too much with those that wait."""
        if self._is_full([*self._pending, pending]):
            self.flush()
        self._pending.append(pending)
        if self._is_full(self._pending):
            self.flush()

    def flush(self) -> None:
        """Write the waiting batches in order; if that fails, each in its own transaction."""
        writes, self._pending = self._pending, []
        if len(writes) > 1:
            try:
                self._write(writes)
            except (LoreError, *PARSE_ERRORS):
                pass
            else:
                return
        for pending in writes:
            self._write([pending])

    def has_pending(self, source: str, file: str = "") -> bool:
        """Return whether a batch of a file waits, by its name or its identity on disk."""
        marks = (pending.mark for pending in self._pending)
        return any(mark.source == source or (file and mark.file == file) for mark in marks)

    def is_empty(self) -> bool:
        """Return whether nothing waits."""
        return not self._pending

    def _write(self, writes: Sequence[PendingWrite]) -> None:
        if self._database is None:
            return
        prepare_batches([pending.batch for pending in writes])

        def write_all(db: Connection) -> list[int | None]:
            # The keyword index comes last: FTS5 flushes at every savepoint, also those that SQLite
            # makes for a statement, and would write a segment of the index for each batch.
            unindexed: list[NewMessageText] = []
            added = [pending.write(db, unindexed) for pending in writes]
            keywords.add_messages(db, unindexed)
            return added

        count = sum(pending.batch.messages for pending in writes)
        attributes: dict[str, telemetry.Value] = {"lore.messages": count, "lore.channel": "file"}
        with telemetry.span("capture", attributes) as span:
            added = self._database.write(write_all)
            span.set("lore.stored", sum(new or 0 for new in added))
        for pending, new in zip(writes, added, strict=True):
            pending.on_written(new)

    def _is_full(self, writes: Sequence[PendingWrite]) -> bool:
        return (
            len(writes) >= _MOST_FILES
            or sum(pending.batch.messages for pending in writes) >= self._most
            or sum(pending.batch.bytes for pending in writes) >= BATCH_BYTES
        )


@dataclass(frozen=True, slots=True)
class DryRun:
    """A dry run: counts what would be stored; a duplicate from a fork counts once."""

    seen: set[int] = field(default_factory=set)

    def count_new(self, db: Connection | None, batch: Batch, seen: ProjectFinder) -> int:
        """Return how many messages of a batch would be stored."""
        return sum(self._count(db, run, batch.counts.agent, seen) for run in batch.runs)

    def _count(
        self, db: Connection | None, run: SessionRun, agent: str, seen: ProjectFinder
    ) -> int:
        folder = words.clean(run.context.folder)
        place = seen.find(folder)
        fresh = run.prepared
        if db is not None:
            fresh = _drop_duplicates(
                db, run, agent, projects.find_project_number(db, folder, place)
            )
        if run.context.lasting_keys:
            marks = {hash((agent, place, m.key, m.digest, m.new.created_at)) for m in fresh}
        else:
            marks = {hash((agent, run.context.session, m.key)) for m in fresh}
        new = marks - self.seen
        self.seen.update(new)
        return len(new)


def _drop_duplicates(
    db: Connection, run: SessionRun, agent: str, project_n: int | None
) -> list[PreparedMessage]:
    """Drop messages that the session, or one that it copies, already has."""
    session = words.clean(run.context.session)
    own = messages.drop_forgotten(db, (agent, session), "file", run.prepared)
    session_n = sessions.find_session(db, session, agent=agent)
    if session_n is not None:
        seen_keys = message_dedup.find_seen(db, session_n, "file", [message.key for message in own])
        own = [message for message in own if message.key not in seen_keys]
    if not own or not run.context.lasting_keys:
        return own
    copied = fork_dedup.find_copied(db, agent, project_n, own)
    if session_n is not None:
        copied |= {
            *fork_dedup.find_copies(db, session_n, own),
            *fork_dedup.find_forgotten_copies(db, session_n, own),
        }
    return [message for message in own if message.key not in copied]
