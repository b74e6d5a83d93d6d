from __future__ import annotations

from lore.store import judgements
from lore.store.judgements import Judgement
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_fragment


def test_a_decision_is_found_by_its_pair_and_replaced_by_a_later_one(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    judgements.put(db, [Judgement(a, b, "judge", "agrees", 1, 1)], now=NOON)
    judgements.put(db, [Judgement(a, b, "judge", "changes", 2, 1)], now=NOON)
    assert judgements.of(db, [a], "judge") == {(a, b): Judgement(a, b, "judge", "changes", 2, 1)}
    assert judgements.of(db, [b], "judge") == {}
    assert judgements.of(db, [a], "merge") == {}


def test_groups_are_told_by_their_first(db: Connection) -> None:
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    judged = [Judgement(a, n, "reflect", "insight") for n in (a, b, c)]
    judgements.put(db, judged, now=NOON)
    assert judgements.groups(db, "reflect") == {a: {a, b, c}}


def test_a_decision_goes_with_either_of_its_fragments(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    judgements.put(db, [Judgement(a, b, "merge", "apart")], now=NOON)
    db.run("DELETE FROM items WHERE n = :n", n=b)
    assert judgements.of(db, [a], "merge") == {}
