"""Check what a chat extracted from a session once more, at the end of the session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from lore.errors import BadReply, PromptTooLong
from lore.llm import Summarizer
from lore.records import TRUST, Fragment, MessageText
from lore.store import fragments, graph, items, messages, reversible_changes
from lore.store.consolidation import StepRecorder
from lore.store.database import Connection, Database
from lore.text import transcript_text

MIN_FACTS = 2
"""A single fact was just read with all that is said around it."""

MAX_FACTS = 60
"""The latest facts of a session; with more a chat mixes up the numbers."""

_MAX_MESSAGES = 10_000


def check_session(
    database: Database,
    session_n: int,
    ids: Sequence[str],
    summarizer: Summarizer,
    recorder: StepRecorder,
) -> int:
    """Archive new facts that their session overturned, or that are trivial; return how many.

    What has a person's trust stays, and so does what other facts are below. If the chat gives no
    usable answer, all of them stay: the session is digested without its verdicts.
    """
    with database.read() as db:
        facts = _find_facts(db, ids)
        if len(facts) < MIN_FACTS:
            return 0
        read = messages.messages_of_session(db, session_n, limit=_MAX_MESSAGES)
    texts = transcript_text.render_messages(read, transcript_text.FOR_KNOWLEDGE)
    try:
        verdicts = summarizer.check(list(facts.values()), list(_select_outline(texts)))
    except (BadReply, PromptTooLong):
        return 0
    rejected = {
        n: fact
        for (n, fact), verdict in zip(facts.items(), verdicts, strict=True)
        if verdict != "keep"
    }
    if not rejected:
        return 0
    now = database.now()
    return database.write(partial(_archive, rejected=rejected, now=now, recorder=recorder))


def _find_facts(db: Connection, ids: Sequence[str]) -> dict[int, Fragment]:
    by_number = fragments.by_number(db, sorted(items.numbers_of(db, ids).values()))
    deleted = fragments.deletion_times(db, list(by_number))
    living = {
        n: one
        for n, one in by_number.items()
        if n not in deleted and one.superseded_by is None and one.trust < TRUST["user"]
    }
    return dict(list(living.items())[-MAX_FACTS:])


def _select_outline(texts: Sequence[MessageText]) -> Iterator[MessageText]:
    """Yield each request, and the last words of the assistant before the next one."""
    last: MessageText | None = None
    for one in texts:
        if one.origin == "user" and one.text:
            if last is not None:
                yield last
            last = None
            yield one
        elif one.origin == "assistant" and one.text:
            last = one
    if last is not None:
        yield last


def _archive(
    db: Connection, *, rejected: dict[int, Fragment], now: datetime, recorder: StepRecorder
) -> int:
    """Archive facts that were not changed meanwhile, the deepest first, so that no tree breaks."""
    archived: set[int] = set()
    there = fragments.by_number(db, sorted(rejected))
    for n, fact in sorted(rejected.items(), key=lambda one: (-one[1].depth, one[0])):
        unchanged = n in there and there[n].version == fact.version
        if unchanged and not set(graph.children(db, n)) - archived:
            reversible_changes.archive(db, n, now=now, recorder=recorder)
            archived.add(n)
    return len(archived)
