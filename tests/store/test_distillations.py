from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lore.capture.message_capture import Conversation, capture
from lore.records import NewMessage, Part
from lore.store import distillations, items, jobs, keywords, project_rows, sessions
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, add_messages, new_distillation, new_session, numbered_id


def test_a_new_distillation_is_in_the_keyword_index(db: Connection) -> None:
    session_n = new_session(db, project="/p")
    ids = add_messages(db, session_n, "one", "two")
    new = new_distillation(9, "They spoke of okapis", ids[0], ids[1])
    n = distillations.add_distillation(db, session_n, new, now=NOON)
    (found,) = distillations.distillations_of_session(db, session_n)
    assert (found.id, found.text, found.from_message) == (numbered_id(9), new.text, ids[0])
    assert (found.archived, found.source_tokens, found.created_at) == (False, 100, NOON)
    assert distillations.get_distillations(db, [n]) == {n: found}
    assert distillations.get_distillations(db, []) == {}
    assert keywords.count_rows(db, "log_words", "okapi") == [1]
    assert db.value("SELECT project_n FROM items WHERE n = :n", n=n) is not None


def test_spans_are_the_ordinals_that_generation_0_covers(db: Connection) -> None:
    session_n = new_session(db)
    ids = add_messages(db, session_n, "one", "two", "three", "four")
    late = distillations.add_distillation(
        db, session_n, new_distillation(8, "b", ids[2], ids[3]), now=NOON
    )
    early = distillations.add_distillation(
        db, session_n, new_distillation(9, "a", ids[0], ids[1]), now=NOON
    )
    meta = replace(new_distillation(10, "c", ids[0], ids[3]), generation=1)
    distillations.add_distillation(db, session_n, meta, now=NOON)
    assert distillations.covered_spans(db, session_n) == [(early, 0, 1), (late, 2, 3)]


def test_lines_of_a_distillation_have_their_source_messages(db: Connection) -> None:
    session_n = new_session(db)
    ids = add_messages(db, session_n, "one", "two")
    new = replace(
        new_distillation(9, "2026-03-01\na\nb", ids[0], ids[1]), sources=((), (1,), (0, 1, 7))
    )
    n = distillations.add_distillation(db, session_n, new, now=NOON)
    ns = items.numbers_of(db, [*ids, numbered_id(77)])
    assert list(ns) == ids
    assert distillations.source_messages_by_line(db, [n]) == {
        n: ((), (ns[ids[1]],), (ns[ids[0]], ns[ids[1]]))
    }
    assert distillations.source_messages_by_line(db, []) == {}


def test_a_distillation_is_archived_and_unarchived(db: Connection) -> None:
    session_n = new_session(db)
    ids = add_messages(db, session_n, "one")
    n = distillations.add_distillation(
        db, session_n, new_distillation(9, "a", ids[0], ids[0]), now=NOON
    )
    assert distillations.distillations_among(db, [1, n, 99]) == [n]
    distillations.archive_distillations(db, [n])
    assert distillations.get_distillations(db, [n])[n].archived
    distillations.archive_distillations(db, [n], archived=False)
    assert not distillations.get_distillations(db, [n])[n].archived


def said(database, session: str, count: int = 1) -> int:
    new = [
        NewMessage("user", (Part("text", f"hello {n}"),), NOON + timedelta(seconds=n))
        for n in range(count)
    ]
    capture(database, Conversation(session), new)
    with database.read() as db:
        return sessions.get_session_number(db, session)


def test_a_session_without_a_mark_was_not_curated(database):
    n = said(database, "s")
    with database.read() as db:
        assert distillations.curated_up_to(db, n) == distillations.NOT_CURATED


def test_a_curation_mark_never_goes_back(database):
    n = said(database, "s")
    for ordinal in (5, 3):
        database.write(lambda db, to=ordinal: distillations.mark_curated(db, n, to, now=NOON))
    with database.read() as db:
        assert distillations.curated_up_to(db, n) == 5


def test_sessions_are_due_by_the_time_of_their_last_message(database):
    first, second = said(database, "a", 3), said(database, "b", 1)
    with database.read() as db:
        ids = [sessions.get_session(db, n).id for n in (second, first)]
        found = distillations.sessions_to_curate(
            db, idle_since=NOON + timedelta(minutes=5), turns=9
        )
    assert found == ids


def test_a_session_is_due_only_when_idle_or_long(database):
    said(database, "s", 3)
    with database.read() as db:
        assert (
            distillations.sessions_to_curate(db, idle_since=NOON - timedelta(minutes=5), turns=3)
            == []
        )
        assert (
            len(
                distillations.sessions_to_curate(
                    db, idle_since=NOON - timedelta(minutes=5), turns=2
                )
            )
            == 1
        )


def test_idle_sessions_without_a_finished_job_are_counted(db: Connection) -> None:
    for name, project in (
        ("new", "/a"),
        ("queued", "/a"),
        ("done", "/a"),
        ("grown", "/a"),
        ("elsewhere", "/b"),
    ):
        add_messages(db, new_session(db, name, project=project), f"{name} one", f"{name} two")
    for name, total in (("queued", 2), ("done", 2), ("grown", 1)):
        session = sessions.get_session(db, sessions.get_session_number(db, name))
        job = jobs.ensure(db, "episode", session.id, total=total, now=NOON)
        if name != "queued":
            jobs.finish(db, job.id, now=NOON)
    project_n = project_rows.get_project(db, "/a")
    later = NOON + timedelta(hours=1)

    def count(idle_s: float) -> int:
        return distillations.count_awaiting(db, "episode", project_n, now=later, idle_s=idle_s)

    assert (count(60), count(7_200)) == (3, 0)


def test_last_messages_are_found_by_the_ids_of_sessions(db: Connection) -> None:
    n = new_session(db)
    add_messages(db, n, "one", "two")
    session = sessions.get_session(db, n)
    assert sessions.last_messages(db, [session.id]) == {session.id: session.last_message_at}
    assert sessions.last_messages(db, []) == {}
