"""What a chat is shown with an exchange: project, topics, messages before, nearest fragments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lore.digest import placement
from lore.digest.drafts import CurationContext
from lore.digest.placement import ASSOCIATE_FROM, NEVER_PARENTS, Neighbour
from lore.records import UNASKED_TRUST, Fragment, MessageText, Segment
from lore.store import fragments, items, messages, project_rows, sessions
from lore.store.database import Connection, Database
from lore.text import transcript_text

MAX_KNOWN = 8
"""The nearest fragments that are shown: five in the specification, but a long exchange has more
subjects, and a chat can correct only what it sees."""

MAX_TOPICS = 12
MAX_EARLIER = 2

_ROOTS_READ = 40
_READ_BEFORE = 12
_MAX_TEXTS, _TEXT_CHARS = 24, 500
"""An exchange can have several subjects: its longest messages are searched for one by one."""


def add_context(
    database: Database, session_n: int, exchange: Segment, context: CurationContext
) -> Segment:
    """Return an exchange with what helps a chat to understand it.

    Fragments and topics are those of the same project or of all, and from trusted origins: what a
    chat reads here it may repeat in a person's name.
    """
    if not exchange.messages:
        return exchange
    with database.read() as db:
        session = sessions.get_session(db, session_n)
        project_n = sessions.project_of_session(db, session_n)
        project = project_rows.all_projects(db)[project_n] if project_n else None
        earlier = _read_earlier(db, session_n, exchange.messages[0].ordinal)
        topics = _find_topics(db, project_n) if project_n else ()
    known = _find_known(database, exchange, context, project_n)
    shown = {one.id for one in known}
    return replace(
        exchange,
        earlier=earlier,
        project=project.name if project else "",
        branch=session.branch,
        topics=tuple(one for one in topics if one.id not in shown),
        known=known,
    )


def add_earlier(database: Database, session_n: int, exchange: Segment) -> Segment:
    """Return an exchange with what was said before it, which may have asked something."""
    with database.read() as db:
        earlier = _read_earlier(db, session_n, exchange.messages[0].ordinal)
    return replace(exchange, earlier=earlier)


def _read_earlier(db: Connection, session_n: int, ordinal: int) -> tuple[MessageText, ...]:
    first = max(0, ordinal - _READ_BEFORE)
    read = messages.messages_of_session(db, session_n, first=first, limit=ordinal - first)
    texts = transcript_text.render_messages(
        [one for one in read if one.ordinal < ordinal], transcript_text.FOR_KNOWLEDGE
    )
    spoken = [one for one in texts if one.text and one.origin in ("user", "assistant")]
    return tuple(spoken[-MAX_EARLIER:])


def _find_topics(db: Connection, project_n: int) -> tuple[Fragment, ...]:
    ns = [n for n, _ in fragments.roots(db, project_n=project_n, limit=_ROOTS_READ)]
    roots = fragments.by_number(db, ns)
    trusted = [roots[n] for n in ns if n in roots and _may_be_shown(roots[n])]
    return tuple(trusted[:MAX_TOPICS])


def _find_known(
    database: Database,
    exchange: Segment,
    context: CurationContext,
    project_n: int | None,
) -> tuple[Fragment, ...]:
    """Return the fragments nearest to the messages of an exchange."""
    near: list[Neighbour] = []
    rows = context.embed(_spoken_texts(exchange.messages))
    for row in rows if rows is not None else ():
        near += placement.find_neighbours(context.nearest, row, project_n)
    with database.read() as db:
        candidates = placement.load_candidates(db, near)
        candidates = placement.applying(db, candidates, project_n or items.NO_PROJECT)
    return tuple(
        one.fragment
        for one in candidates
        if one.cosine >= ASSOCIATE_FROM  # below it a fragment is about something else
        and _may_be_shown(one.fragment)
    )[:MAX_KNOWN]


def _spoken_texts(exchange: Sequence[MessageText]) -> list[str]:
    """Return what people and assistants said, the longest texts of an exchange that has many."""
    spoken = [one.text for one in exchange if one.text and one.origin in ("user", "assistant")]
    longest = sorted(spoken, key=len, reverse=True)[:_MAX_TEXTS]
    return [text[:_TEXT_CHARS] for text in longest]


def _may_be_shown(fragment: Fragment) -> bool:
    return fragment.trust >= UNASKED_TRUST and fragment.kind not in NEVER_PARENTS
