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
