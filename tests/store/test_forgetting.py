from __future__ import annotations

import pytest

from lore.errors import NotFound
from lore.records import Spend
from lore.store import (
    changes,
    checks,
    claims,
    distillations,
    edges,
    forgetting,
    fragments,
    messages,
    retrievals,
    spend,
)
from lore.store.forgetting import Doomed
from lore.store.retrievals import Retrieval
from lore.store.sqlite import Connection
from tests.store.samples import (
    NOON,
    add_fragment,
    add_messages,
    new_distillation,
    new_session,
    numbered_id,
)


def number(db: Connection, id_: str) -> int:
    return int(db.value("SELECT n FROM items WHERE id = :id", id=id_))


def test_what_was_made_of_a_message_goes_with_it(db: Connection) -> None:
    session_n = new_session(db)
    ids = add_messages(db, session_n, "one", "two", "three")
    derived = add_fragment(db, 1, source_messages=(ids[1],))
    kept = add_fragment(db, 2, source_messages=(ids[0],))
    covering = distillations.add(
        db, session_n, new_distillation(8, "all", ids[0], ids[2]), now=NOON
    )
    other = distillations.add(db, session_n, new_distillation(9, "end", ids[2], ids[2]), now=NOON)
    doomed = forgetting.with_derived(db, Doomed((number(db, ids[1]),)))
    assert set(doomed.item_ns) == {number(db, ids[1]), derived, covering}
    assert {kept, other}.isdisjoint(doomed.item_ns)


def test_a_session_takes_its_subagents_along(db: Connection) -> None:
    parent = new_session(db, "parent")
    child = new_session(db, "child", parent_n=parent)
    grandchild = new_session(db, "grandchild", parent_n=child)
    add_messages(db, grandchild, "deep down")
    doomed = forgetting.of_session(db, parent)
    assert set(doomed.session_ns) == {parent, child, grandchild}
    assert len(forgetting.forget(db, doomed, now=NOON)) == 4
    assert checks.integrity(db) == []


def test_what_was_stored_after_it_was_named_goes_too(db: Connection) -> None:
    session_n = new_session(db)
    doomed = forgetting.of_session(db, session_n)
    add_messages(db, session_n, "said in the meantime")
    forgetting.forget(db, doomed, now=NOON)
    assert db.value("SELECT count(*) FROM items") == 0


def test_what_is_named_in_no_way_is_nothing(db: Connection) -> None:
    add_fragment(db, 1)
    assert forgetting.collect(db, "", "", "", "  ") == Doomed()
    with pytest.raises(NotFound):
        forgetting.collect(db, numbered_id(7), "", "", "")
    assert forgetting.forget(db, Doomed(), now=NOON) == []


def test_a_text_is_found_in_any_case_and_in_former_versions(db: Connection) -> None:
    n = add_fragment(db, 1, "The GROẞE Secret")
    fragments.update(
        db, n, content="changed", summary="changed", mentioned=(), now=NOON, reason="x"
    )
    add_fragment(db, 2, "something else")
    assert forgetting.of_text(db, "grosse secret").item_ns == (n,)


def test_children_of_a_forgotten_fragment_become_roots(db: Connection) -> None:
    root, child, leaf = (add_fragment(db, i, depth=i - 1) for i in (1, 2, 3))
    edges.put(db, root, child, "hierarchical", now=NOON)
    edges.put(db, child, leaf, "hierarchical", now=NOON)
    forgetting.forget(db, Doomed((root,)), now=NOON)
    assert [fragments.get(db, n).depth for n in (child, leaf)] == [0, 1]
    assert checks.integrity(db) == []


def test_what_a_forgotten_fragment_superseded_stands_again(db: Connection) -> None:
    old, new = add_fragment(db, 1), add_fragment(db, 2)
    fragments.set_superseded(db, old, numbered_id(2), now=NOON)
    forgetting.forget(db, Doomed((new,)), now=NOON)
    assert (fragments.get(db, old).superseded_by, fragments.get(db, old).valid_to) == (None, None)
    assert checks.integrity(db) == []


def test_neighbours_no_longer_know_the_message_between_them(db: Connection) -> None:
    session_n = new_session(db)
    ids = add_messages(db, session_n, "before", "okapi", "after")
    forgetting.forget(db, Doomed((number(db, ids[1]),)), now=NOON)
    words = [row[0] for row in db.rows("SELECT term FROM message_words_vocabulary")]
    assert "okapi" not in words
    assert {"befor", "after"} <= set(words)


def test_questions_that_were_answered_with_it_go_and_others_stay(db: Connection) -> None:
    n = add_fragment(db, 1)
    retrievals.log(db, Retrieval(NOON, "recall", "about it", (numbered_id(1),), 0))
    retrievals.log(db, Retrieval(NOON, "recall", "about Okapis", (), 0))
    retrievals.log(db, Retrieval(NOON, "recall", "other", (), 0))
    forgetting.forget(db, Doomed((n,)), text="okapi", now=NOON)
    assert [entry.query for entry in retrievals.newest(db)] == ["other"]


def test_a_speaker_of_whom_nothing_is_left_is_no_more_known(db: Connection) -> None:
    session_n = new_session(db)
    (first,) = add_messages(db, session_n, "one", speaker="Ada")
    add_messages(db, session_n, "two", speaker="Bob")
    forgetting.forget(db, Doomed((number(db, first),)), now=NOON)
    assert messages.find_speakers(db, ["Ada", "Bob"]) == ["Bob"]


def test_what_was_spent_stays_in_the_ledger(db: Connection) -> None:
    session_n = new_session(db, project="/p")
    spend.add(db, Spend("a", NOON, "distil", "m", {}, 2.5), session_n=session_n)
    forgetting.forget(db, forgetting.of_session(db, session_n), now=NOON)
    assert spend.total_usd(db) == 2.5


def test_tombstones_keep_away_what_a_copy_brings_back(db: Connection) -> None:
    session_n = new_session(db, project="/p")
    (id_,) = add_messages(db, session_n, "one")
    session_id = db.value("SELECT id FROM sessions")
    gone = forgetting.apply_tombstones(db, {session_id: "", "elsewhere": "digest"}, now=NOON)
    assert set(gone) == {id_, session_id}
    buried = {claims.own_id(name) for name in changes.tombstones(db)}
    assert buried == {id_, session_id, "elsewhere"}
    assert changes.buried_sources(db, ["digest"]) == {"digest": "elsewhere"}
    assert forgetting.apply_tombstones(db, {session_id: ""}, now=NOON) == []
