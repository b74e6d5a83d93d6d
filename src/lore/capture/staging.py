"""Staging: what transcripts tell, gathered into batches and written with how far that is.

No model is asked and nothing is embedded here; that is for jobs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from lore import projects
from lore.capture import forks, searches
from lore.capture.messages import check, prepare_all
from lore.capture.transcripts import Context
from lore.errors import InvalidInput
from lore.projects import Projects
from lore.records import NewMessage
from lore.redaction import UNKEPT
from lore.store import claims, copies, dialogues, messages, names, sessions
from lore.store.db import Connection
from lore.store.keywords import NewMessageText
from lore.store.messages import PreparedMessage
from lore.text import chat_commands, goals, lines, words
from lore.text.secrets import Redactor
from lore.text.typed import person_said

BATCH_MESSAGES = 1_000
BATCH_BYTES = 4 << 20
"""What shares a transaction: enough to make its commit cheap, little enough to hold."""

TITLE_CHARS = 80
"""As much of the first request as names a session."""

_SECRET = re.compile(r"\[secret:([\w.-]+):[0-9a-f]+\]")
_SHOWN_CHARS = 80
"""So much of the line on each side of a secret shows where it stood."""

_MOST_SHOWN = 1_000
"""So many places of secrets are kept of a file."""

_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
"""The beginning of a path of another system: it is known by its text."""


@dataclass(slots=True)
class Counts:
    """What came of reading one file."""

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
class Run:
    """Messages that follow each other in one session."""

    context: Context
    new: list[NewMessage] = field(default_factory=list)
    prepared: list[PreparedMessage] = field(default_factory=list)
    switches: list[tuple[datetime, bool]] = field(default_factory=list)
    """When amnesia was turned on, and when off."""


@dataclass(slots=True)
class Batch:
    """Messages that are written together."""

    counts: Counts
    redactor: Redactor = UNKEPT
    most: int = BATCH_MESSAGES
    runs: list[Run] = field(default_factory=list)
    messages: int = 0
    bytes: int = 0
    _kept: tuple[Context, Context] | None = None
    _asked_lore: str = ""
    """The session in which a command was typed last, until something else is said in one."""

    def add(self, context: Context, new: Sequence[NewMessage], size: int) -> None:
        """Put messages into the batch."""
        if self.runs and self.runs[-1].context.session == context.session:
            run = self.runs[-1]
            run.context = context
        else:
            run = Run(context)
            self.runs.append(run)
        self.bytes += size
        for message in searches.taken_apart(new):
            if self._is_for_lore(run, message):
                continue
            try:
                check(message)
            except InvalidInput:
                self.counts.skipped["invalid"] += 1
                continue
            run.new.append(message)
            self.messages += 1

    def _is_for_lore(self, run: Run, message: NewMessage) -> bool:
        """Tell whether a message is typed to Lore itself, or is its answer."""
        session = run.context.session
        if message.role == "assistant":
            return bool(session) and self._asked_lore == session
        texts = [part.text for part in message.parts]
        if message.role in ("user", "system") and any("lore:" in text for text in texts):
            typed = ["".join(texts), *texts]
            is_command = bool(chat_commands.find(typed))
            switch = chat_commands.find_switch(typed)
            if switch is not None:
                run.switches.append((message.created_at, switch))
        else:
            is_command = False
        if is_command or message.role == "user":
            self._asked_lore = session if is_command else ""
        return is_command

    def prepare(self) -> None:
        """Redact what was put into the batch and derive the rest, all of it before any write."""
        for run in reversed(self.runs):
            run.context = self.kept(run.context)
        for run in self.runs:
            run.prepared = prepare_all(run.new, redactor=self.redactor)
            for message, prepared in zip(run.new, run.prepared, strict=True):
                self._note_secrets(message, prepared)

    def end(self, context: Context) -> None:
        """Take in what was told of a session after its last message."""
        if self.runs and self.runs[-1].context.session == context.session:
            self.runs[-1].context = context
        elif context.title or context.files:
            self.runs.append(Run(context))

    def kept(self, context: Context) -> Context:
        """Return what was told of a session without the secrets in it; they are sought once."""
        if self._kept is None or self._kept[0] is not context:
            self._kept = context, _redacted(context, self.redactor)
        return self._kept[1]

    def is_full(self) -> bool:
        """Tell whether it is time to write."""
        return self.messages >= self.most or self.bytes >= BATCH_BYTES

    def _note_secrets(self, message: NewMessage, prepared: PreparedMessage) -> None:
        """Count what was taken out, by its mark."""
        if message.parts is prepared.new.parts:
            return
        for before, after in zip(message.parts, prepared.new.parts, strict=True):
            if before.text == after.text or "[secret:" not in after.text:
                continue
            for found in _SECRET.finditer(after.text):
                if found[0] not in before.text:
                    self.counts.redactions[found[1]] += 1
                    place = found[1], _line_around(after.text, found.start(), found.end())
                    if place in self.counts.redacted or len(self.counts.redacted) < _MOST_SHOWN:
                        self.counts.redacted[place] += 1


def _line_around(text: str, start: int, end: int) -> str:
    """Return the line of a mark, or what is near it where the line is long."""
    first = max(text.rfind("\n", max(0, start - _SHOWN_CHARS), start) + 1, start - _SHOWN_CHARS)
    last = text.find("\n", end, end + _SHOWN_CHARS)
    return text[first : last if last >= 0 else end + _SHOWN_CHARS]


def write(
    db: Connection,
    batch: Batch,
    agent: str,
    seen: Projects,
    unindexed: list[NewMessageText],
    *,
    now: datetime,
) -> tuple[int | None, int]:
    """Store a batch in the caller's transaction; return its last session and what was new.

    The caller adds what is left in `unindexed` to the keyword index.
    """
    session_n, added = None, 0
    for run in batch.runs:
        dialogues.note_switches(db, _name(run), run.switches, now=now)
        run.context = without_forgotten(db, agent, run.context)
        parent = words.clean(run.context.parent)
        told = dialogues.to_be_stored(db, _name(run), run.prepared, parent=parent)
        if len(told) < len(run.prepared) and run.context.lasting_keys:
            kept = {message.key for message in told}
            unstored = [message for message in run.prepared if message.key not in kept]
            copies.bury(db, agent, unstored, now=now)
        own = messages.not_forgotten(db, (agent, _name(run)), "file", told)
        run.prepared = own
        if not own:
            _describe(db, sessions.find_number(db, _name(run), agent=agent), run.context)
            continue
        session_n = _ensure_session(db, agent, run, seen, now=now)
        added += _add(db, session_n, run, unindexed, now=now)
        goal = "" if run.context.title else _find_goal(db, session_n, own)
        _describe(db, session_n, run.context, goal)
    return session_n, added


def without_forgotten(db: Connection, agent: str, context: Context) -> Context:
    """Return what was told of a session without the names of it that were forgotten.

    What an agent calls a session, and the files that it works on, may be of a stretch of amnesia.
    """
    name = words.clean(context.session)
    if any(dialogues.was_amnesic(db, one) for one in {name, words.clean(context.parent)} if one):
        context = replace(context, title="", files=())
    title = names.kept(db, agent, name, "title", words.clean(context.title))
    branch = names.kept(db, agent, name, "branch", words.clean(context.branch))
    if bool(title) == bool(context.title) and bool(branch) == bool(context.branch):
        return context
    return replace(context, title=title, branch=branch)


def _add(
    db: Connection, session_n: int, run: Run, unindexed: list[NewMessageText], *, now: datetime
) -> int:
    """Store the messages of a run and count those that were new."""
    if run.context.lasting_keys:
        return forks.add(db, session_n, run.prepared, unindexed, now=now)
    ids = messages.add(db, session_n, run.prepared, now=now, channel="file", unindexed=unindexed)
    return sum(id_ == message.id for id_, message in zip(ids, run.prepared, strict=True))


def _find_goal(db: Connection, session_n: int, prepared: Sequence[PreparedMessage]) -> str:
    """Return what the person first asked for, to call a session by that has no title."""
    if sessions.has_title(db, session_n):
        return ""
    said = [(message.key, text) for message in prepared if (text := person_said(message.new))]
    # not what a fork only copied: its original may have been forgotten
    own = claims.known(db, session_n, "file", [key for key, _ in said])
    goal, _ = goals.find_goal(text for key, text in said if key in own)
    return lines.one_line(goal, TITLE_CHARS)


def _ensure_session(db: Connection, agent: str, run: Run, seen: Projects, *, now: datetime) -> int:
    """Return the number of the session that a run belongs to, made if it is new."""
    context = run.context
    started_at = run.prepared[0].new.created_at
    name, parent = _name(run), words.clean(context.parent)
    branch = words.clean(context.branch)
    folder = words.clean(context.folder)
    place = seen.find(folder)
    project_n = projects.ensure(db, folder if _DRIVE.match(folder) else "", place, now=now)
    parent_n = None
    if parent and parent != name:
        parent_n = sessions.ensure_session(
            db, parent, agent=agent, project_n=project_n, started_at=started_at
        )
        project_n = project_n or sessions.project_number(db, parent_n)
    n = sessions.ensure_session(
        db,
        name,
        agent=agent,
        project_n=project_n,
        started_at=started_at,
        branch=branch,
        parent_n=parent_n,
    )
    sessions.complete(db, n, project_n=project_n, branch=branch, parent_n=parent_n)
    return n


def _redacted(context: Context, redactor: Redactor) -> Context:
    """Return what was told of a session without the secrets in it."""
    names = (
        context.session,
        context.parent,
        context.title,
        context.folder,
        context.branch,
        context.version,
    )
    told = [*names, *context.files, *context.state, *map(str, context.state.values())]
    if not redactor.holds_secret(map(words.clean, told)):
        return context

    def kept(text: str) -> str:
        return redactor.redact(words.clean(text))

    session, parent, title, folder, branch, version = map(kept, names)
    return replace(
        context,
        session=session,
        parent=parent,
        title=title,
        folder=folder,
        branch=branch,
        version=version,
        files=tuple(map(kept, context.files)),
        state={kept(key): kept(value) for key, value in context.state.items()},
    )


def _name(run: Run) -> str:
    return words.clean(run.context.session)


def _describe(db: Connection, n: int | None, context: Context, goal: str = "") -> None:
    title = words.clean(context.title) or goal
    if n is not None and (title or context.files):
        sessions.describe(db, n, title=title, files=tuple(map(words.clean, context.files)))
