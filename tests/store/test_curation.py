from __future__ import annotations

from datetime import timedelta

from lore.capture.messages import Conversation, capture
from lore.records import NewMessage, Part
from lore.store import curation, sessions
from tests.fakes import NOON


def said(database, session: str, count: int = 1) -> int:
    new = [
        NewMessage("user", (Part("text", f"hello {n}"),), NOON + timedelta(seconds=n))
        for n in range(count)
    ]
    capture(database, Conversation(session), new)
    with database.read() as db:
        return sessions.get_number(db, session)


def test_a_session_without_a_mark_was_not_curated(database):
    n = said(database, "s")
    with database.read() as db:
        assert curation.find_mark(db, n) == curation.NOTHING


def test_a_mark_never_goes_back(database):
    n = said(database, "s")
    for ordinal in (5, 3):
        database.write(lambda db, to=ordinal: curation.advance(db, n, to, now=NOON))
    with database.read() as db:
        assert curation.find_mark(db, n) == 5


def test_sessions_are_due_in_the_order_in_which_they_fell_silent(database):
    first, second = said(database, "a", 3), said(database, "b", 1)
    with database.read() as db:
        ids = [sessions.get(db, n).id for n in (second, first)]
        found = curation.due(db, idle_since=NOON + timedelta(minutes=5), turns=9)
    assert found == ids


def test_nothing_is_due_before_a_session_is_silent_or_long(database):
    said(database, "s", 3)
    with database.read() as db:
        assert curation.due(db, idle_since=NOON - timedelta(minutes=5), turns=3) == []
        assert len(curation.due(db, idle_since=NOON - timedelta(minutes=5), turns=2)) == 1
