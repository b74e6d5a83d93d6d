from __future__ import annotations

from lore.store import changes
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_fragment, minutes, numbered_id


def test_changes_are_told_in_order_from_a_number_on(db: Connection) -> None:
    a = add_fragment(db, 1)
    changes.log(db, "change", [a], minutes(1))
    assert changes.bury(db, ["gone", "gone"], minutes(2)) == 1
    told = [(c.action, c.table, c.id, c.at) for c in changes.since(db, 0)]
    assert told == [
        ("add", "fragment", numbered_id(1), NOON),
        ("change", "fragment", numbered_id(1), minutes(1)),
        ("forget", "tombstone", "gone", minutes(2)),
    ]
    seq = changes.since(db, 0)[0].seq
    assert len(changes.since(db, seq)) == 2
    assert len(changes.since(db, 0, limit=1)) == 1


def test_items_with_numbers_in_a_row_share_an_entry(db: Connection) -> None:
    ns = [add_fragment(db, i) for i in (1, 2, 3, 4)]
    db.run("DELETE FROM changes")
    changes.log(db, "change", [ns[0], ns[1], ns[3]], NOON)
    told = changes.since(db, 0)
    assert [change.id for change in told] == [numbered_id(i) for i in (1, 2, 4)]
    assert [change.seq - told[0].seq for change in told] == [0, 0, 1]
    assert len(changes.since(db, 0, limit=1)) == 2


def test_burying_twice_is_no_news(db: Connection) -> None:
    changes.bury(db, ["gone"], NOON, sources={"gone": "digest"})
    assert changes.bury(db, ["gone"], NOON) == 0
    assert changes.buried(db, ["gone", "here"]) == {"gone"}
    assert changes.tombstones(db) == {"gone": "digest"}
    assert changes.buried_sources(db, ["digest", "other"]) == {"digest": "gone"}
    assert changes.buried_sources(db, [""]) == {}
    assert len(changes.since(db, 0)) == 1


def test_a_source_is_known_by_agent_session_and_key_together() -> None:
    digests = {
        changes.source_of(*parts) for parts in (("a", "b", "c"), ("a", "bc", ""), ("ab", "", "c"))
    }
    assert len(digests) == 3


def test_each_of_many_that_go_at_once_has_a_number_of_its_own(db: Connection) -> None:
    add_fragment(db, 1)
    ids = [f"gone {i}" for i in range(50)]
    assert changes.bury(db, ids, minutes(1), sources={"gone 7": "digest"}) == 50
    told = changes.since(db, 0)[1:]
    assert [change.id for change in told] == ids
    assert len({change.seq for change in told}) == 50
    assert changes.tombstones(db)["gone 7"] == "digest"
