from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from lore import clock
from lore.store import history
from lore.store.graph import EdgeState
from lore.store.history import (
    EMPTY_SNAPSHOT,
    Attribution,
    LinkSnapshot,
    SuccessorSnapshot,
    UndoSnapshot,
    Wording,
    pack_snapshot,
    unpack_snapshot,
)
from lore.store.sql_connection import Connection, id_text
from lore.store.sqlite import SqliteConnection
from tests.store.samples import NOON, add_fragment, minutes, numbered_id

SAID = UndoSnapshot(wording=Wording("x", "x"))


def test_the_last_action_that_was_not_undone_is_found(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    assert history.find_last_action(db) is None
    history.record_action(db, "store", a, now=NOON)
    history.record_action(db, "update", b, SAID, now=NOON)
    last = history.find_last_action(db)
    assert last is not None
    assert (last.verb, last.fragment_n, last.before, last.at) == (
        "update",
        b,
        SAID,
        NOON,
    )
    history.mark_actions_undone(db, [(last.n, replace(SAID, after=Wording("y", "y")))])
    assert [found.verb for found in [history.find_last_action(db)] if found] == ["store"]
    assert history.find_last_action(db, fragment_n=b) is None


@pytest.mark.only_sqlite("traces of statements")
def test_many_actions_are_marked_as_undone_without_reading_the_log_for_each(db: Connection) -> None:
    ns = [add_fragment(db, i) for i in range(1, 21)]
    history.record_actions(db, [("store", n, EMPTY_SNAPSHOT) for n in ns], now=NOON)
    last = history.find_last_action(db)
    assert last is not None
    actions = history.actions_of_same_batch(db, last)
    queries: list[str] = []

    def trace(_cursor: object, sql: str, _bindings: object) -> bool:
        queries.append(sql)
        return True

    assert isinstance(db, SqliteConnection)
    db.raw.exec_trace = trace
    history.mark_actions_undone(db, [(one.n, one.before) for one in actions])
    db.raw.exec_trace = None
    assert sum("SELECT" in sql for sql in queries) == 1
    undone = history.find_last_action(db, undone=True)
    assert undone is not None
    assert undone.n == actions[-1].n


def test_the_last_undone_action_is_found_until_a_new_one(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    history.record_action(db, "store", a, now=NOON)
    history.record_action(db, "store", b, now=NOON)
    for n in (2, 1):
        history.mark_actions_undone(db, [(n, EMPTY_SNAPSHOT)])
    assert [found.n for found in [history.find_last_action(db, undone=True)] if found] == [1]
    assert [
        found.n for found in [history.find_last_action(db, fragment_n=b, undone=True)] if found
    ] == [2]
    history.mark_action_redone(db, 1)
    assert [found.n for found in [history.find_last_action(db, undone=True)] if found] == [2]
    history.record_action(db, "delete", a, now=NOON)
    assert history.find_last_action(db, undone=True) is None


EDGE = EdgeState(0.5, "so it is")


@pytest.mark.parametrize(
    "before",
    [
        EMPTY_SNAPSHOT,
        UndoSnapshot(wording=Wording("one", "two")),
        UndoSnapshot(
            wording=Wording("one", "two", Attribution("repo", 2, "fact")), after=Wording("a", "b")
        ),
        UndoSnapshot(link=LinkSnapshot(7, "related_to")),
        UndoSnapshot(link=LinkSnapshot(7, "hierarchical", EDGE, 3), batch="decision", after=EDGE),
        UndoSnapshot(successor=SuccessorSnapshot(7)),
        UndoSnapshot(successor=SuccessorSnapshot(7, "former")),
        UndoSnapshot(batch="revocation", removed_instructions=(1, 2)),
    ],
)
def test_a_snapshot_survives_packing(before: UndoSnapshot) -> None:
    assert unpack_snapshot(pack_snapshot(before)) == before


@pytest.mark.parametrize(
    ("kept", "before"),
    [
        ("{}", EMPTY_SNAPSHOT),
        ('{"together": "revocation", "standing": []}', UndoSnapshot(batch="revocation")),
        (
            '{"target": 7, "kind": "hierarchical", "edge": null, "parent": null, "after": null}',
            UndoSnapshot(link=LinkSnapshot(7, "hierarchical")),
        ),
        (
            '{"newer": 7, "former": null, "after": null}',
            UndoSnapshot(successor=SuccessorSnapshot(7)),
        ),
    ],
)
def test_a_snapshot_with_empty_fields_is_read(kept: str, before: UndoSnapshot) -> None:
    assert unpack_snapshot(kept) == before


def logged(db: Connection) -> list[tuple[int, str, str, datetime]]:
    """Return (number, action, id, time) of every logged change."""
    rows = db.rows(
        f"SELECT c.seq, c.action, coalesce({id_text('i.id')}, t.id), c.at FROM changes c"
        " LEFT JOIN items i ON i.n BETWEEN c.first_n AND c.last_n"
        " LEFT JOIN tombstones t ON t.seq = c.seq ORDER BY c.seq, i.n"
    )
    return [(seq, action, id_, clock.from_us(at)) for seq, action, id_, at in rows]


def test_changes_are_logged_in_order(db: Connection) -> None:
    a = add_fragment(db, 1)
    history.log_change(db, "change", [a], minutes(1))
    assert history.add_tombstones(db, ["gone", "gone"], minutes(2)) == 1
    assert [change[1:] for change in logged(db)] == [
        ("add", numbered_id(1), NOON),
        ("change", numbered_id(1), minutes(1)),
        ("forget", "gone", minutes(2)),
    ]


def test_consecutive_items_share_a_change_entry(db: Connection) -> None:
    ns = [add_fragment(db, i) for i in (1, 2, 3, 4)]
    db.run("DELETE FROM changes")
    history.log_change(db, "change", [ns[0], ns[1], ns[3]], NOON)
    changes = logged(db)
    assert [id_ for _, _, id_, _ in changes] == [numbered_id(i) for i in (1, 2, 4)]
    assert [seq - changes[0][0] for seq, *_ in changes] == [0, 0, 1]


def test_a_second_tombstone_of_an_id_is_not_new(db: Connection) -> None:
    history.add_tombstones(db, ["gone"], NOON, sources={"gone": "digest"})
    assert history.add_tombstones(db, ["gone"], NOON) == 0
    assert history.find_tombstones(db, ["gone", "here"]) == {"gone"}
    assert history.all_tombstones(db)["gone"].source == "digest"
    assert history.find_tombstones_by_source(db, ["digest", "other"]) == {"digest": "gone"}
    assert history.find_tombstones_by_source(db, [""]) == {}
    assert len(logged(db)) == 1


def test_a_source_digest_depends_on_agent_session_and_key() -> None:
    digests = {
        history.source_digest(*parts)
        for parts in (("a", "b", "c"), ("a", "bc", ""), ("ab", "", "c"))
    }
    assert len(digests) == 3


def test_each_tombstone_has_its_own_change_number(db: Connection) -> None:
    add_fragment(db, 1)
    ids = [f"gone {i}" for i in range(50)]
    assert history.add_tombstones(db, ids, minutes(1), sources={"gone 7": "digest"}) == 50
    changes = logged(db)[1:]
    assert [id_ for _, _, id_, _ in changes] == ids
    assert len({seq for seq, *_ in changes}) == 50
    assert history.all_tombstones(db)["gone 7"].source == "digest"
