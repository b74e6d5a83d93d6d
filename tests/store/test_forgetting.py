from __future__ import annotations

from datetime import timedelta

import pytest

from lore.capture.message_capture import prepare
from lore.errors import NotFound
from lore.records import NameMatches, NewMessage, Part, Spend
from lore.store import (
    candidate_rows,
    distillations,
    fragments,
    graph,
    hard_delete,
    history,
    items,
    maintenance,
    message_dedup,
    messages,
    sessions,
    spend,
    standing_instructions,
)
from lore.store.candidate_rows import Retrieval
from lore.store.hard_delete import ForgetSelection
from lore.store.history import Tombstone
from lore.store.sql_connection import Connection
from tests.store.samples import (
    NOON,
    add_fragment,
    add_messages,
    new_distillation,
    new_session,
    newest_spend,
    numbered_id,
)


def number(db: Connection, id_: str) -> int:
    return items.resolve(db, id_).n


def test_derived_items_are_forgotten_with_their_message(db: Connection) -> None:
    session_n = new_session(db)
    ids = add_messages(db, session_n, "one", "two", "three")
    derived = add_fragment(db, 1, source_messages=(ids[1],))
    kept = add_fragment(db, 2, source_messages=(ids[0],))
    covering = distillations.add_distillation(
        db, session_n, new_distillation(8, "all", ids[0], ids[2]), now=NOON
    )
    other = distillations.add_distillation(
        db, session_n, new_distillation(9, "end", ids[2], ids[2]), now=NOON
    )
    doomed = hard_delete.with_derived(db, ForgetSelection((number(db, ids[1]),)))
    assert set(doomed.item_ns) == {number(db, ids[1]), derived, covering}
    assert {kept, other}.isdisjoint(doomed.item_ns)


def test_a_session_is_forgotten_with_its_subagents(db: Connection) -> None:
    parent = new_session(db, "parent")
    child = new_session(db, "child", parent_n=parent)
    grandchild = new_session(db, "grandchild", parent_n=child)
    add_messages(db, grandchild, "deep down")
    doomed = hard_delete.select_session(db, parent)
    assert set(doomed.session_ns) == {parent, child, grandchild}
    assert len(hard_delete.forget(db, doomed, now=NOON)) == 4
    assert maintenance.check_integrity(db) == []


def test_items_stored_after_the_selection_are_forgotten(db: Connection) -> None:
    session_n = new_session(db)
    doomed = hard_delete.select_session(db, session_n)
    add_messages(db, session_n, "said in the meantime")
    hard_delete.forget(db, doomed, now=NOON)
    assert db.value("SELECT count(*) FROM items") == 0


def test_an_empty_request_selects_nothing(db: Connection) -> None:
    add_fragment(db, 1)
    assert hard_delete.select(db, "", "", "", "  ") == ForgetSelection()
    with pytest.raises(NotFound):
        hard_delete.select(db, numbered_id(7), "", "", "")
    assert hard_delete.forget(db, ForgetSelection(), now=NOON) == []


def test_a_text_is_found_in_any_case_and_in_former_versions(db: Connection) -> None:
    n = add_fragment(db, 1, "The GROẞE Secret")
    fragments.update(
        db, n, content="changed", summary="changed", mentioned=(), now=NOON, reason="x"
    )
    add_fragment(db, 2, "something else")
    assert hard_delete.select_text(db, "grosse secret").item_ns == (n,)


def test_children_of_a_forgotten_fragment_become_roots(db: Connection) -> None:
    root, child, leaf = (add_fragment(db, i, depth=i - 1) for i in (1, 2, 3))
    graph.put_edge(db, root, child, "hierarchical", now=NOON)
    graph.put_edge(db, child, leaf, "hierarchical", now=NOON)
    hard_delete.forget(db, ForgetSelection((root,)), now=NOON)
    assert [fragments.get(db, n).depth for n in (child, leaf)] == [0, 1]
    assert maintenance.check_integrity(db) == []


def test_a_fragment_superseded_by_a_forgotten_one_is_live_again(db: Connection) -> None:
    old, new = add_fragment(db, 1), add_fragment(db, 2)
    fragments.set_superseded(db, old, numbered_id(2), now=NOON)
    hard_delete.forget(db, ForgetSelection((new,)), now=NOON)
    assert (fragments.get(db, old).superseded_by, fragments.get(db, old).valid_to) == (None, None)
    assert maintenance.check_integrity(db) == []


@pytest.mark.only_sqlite("the vocabulary of FTS5")
def test_forgetting_removes_only_the_words_of_the_message(db: Connection) -> None:
    session_n = new_session(db)
    ids = add_messages(db, session_n, "before", "okapi", "after")
    hard_delete.forget(db, ForgetSelection((number(db, ids[1]),)), now=NOON)
    words = [row[0] for row in db.rows("SELECT term FROM message_words_vocabulary")]
    assert "okapi" not in words
    assert {"befor", "after"} <= set(words)


def test_retrievals_with_forgotten_hits_are_deleted(db: Connection) -> None:
    n = add_fragment(db, 1)
    candidate_rows.log_retrieval(db, Retrieval(NOON, "recall", "about it", (numbered_id(1),), 0))
    candidate_rows.log_retrieval(db, Retrieval(NOON, "recall", "about Okapis", (), 0))
    candidate_rows.log_retrieval(db, Retrieval(NOON, "recall", "other", (), 0))
    hard_delete.forget(db, ForgetSelection((n,)), text="okapi", now=NOON)
    assert [entry.query for entry in candidate_rows.recent_retrievals(db)] == ["other"]


def test_a_speaker_without_messages_is_deleted(db: Connection) -> None:
    session_n = new_session(db)
    (first,) = add_messages(db, session_n, "one", speaker="Ada")
    add_messages(db, session_n, "two", speaker="Bob")
    hard_delete.forget(db, ForgetSelection((number(db, first),)), now=NOON)
    assert messages.find_speakers(db, ["Ada", "Bob"]) == ["Bob"]


def test_forgetting_keeps_the_spend_ledger(db: Connection) -> None:
    session_n = new_session(db, project="/p")
    spend.add(db, Spend("a", NOON, "distil", "m", {}, 2.5), session_n=session_n)
    hard_delete.forget(db, hard_delete.select_session(db, session_n), now=NOON)
    assert [entry.usd for entry in newest_spend(db)] == [2.5]


def test_tombstones_delete_items_restored_by_a_copy(db: Connection) -> None:
    session_n = new_session(db, project="/p")
    (id_,) = add_messages(db, session_n, "one")
    session_id = db.value("SELECT id FROM sessions")
    tombstones = {session_id: Tombstone("", 1), "elsewhere": Tombstone("digest", 1)}
    gone = hard_delete.apply_tombstones(db, tombstones, now=NOON)
    assert set(gone) == {id_, session_id}
    buried = {message_dedup.message_id_of(name) for name in history.all_tombstones(db)}
    assert buried == {id_, session_id, "elsewhere"}
    assert history.find_tombstones_by_source(db, ["digest"]) == {"digest": "elsewhere"}
    assert hard_delete.apply_tombstones(db, {session_id: Tombstone("", 1)}, now=NOON) == []


def test_a_query_that_quotes_what_is_forgotten_is_deleted_from_the_log(db: Connection) -> None:
    said = "The merger with Okapi Holdings closes on the third of March at a price of 12 million"
    n = add_fragment(db, 1, content=said)
    quoted = "is it true that THE MERGER with Okapi Holdings  closes on the third of march?"
    for query in (quoted, "what about the merger"):
        candidate_rows.log_retrieval(db, Retrieval(NOON, "recall", query, (), 1.0))
    hard_delete.forget(db, ForgetSelection((n,)), now=NOON)
    assert [entry.query for entry in candidate_rows.recent_retrievals(db)] == [
        "what about the merger"
    ]


def test_a_forgotten_text_is_removed_from_session_names(db: Connection) -> None:
    named = new_session(db, "okapi-chat", project="/code/okapi-site")
    branched = sessions.ensure_session(
        db, "other", agent="test", project_n=None, started_at=NOON, branch="fix/Okapi-login"
    )
    new_session(db, "third")
    found = hard_delete.find_names(db, "okapi")
    assert {session.external_id for session in found.sessions} == {"okapi-chat", "other"}
    assert [project.path for project in found.projects] == ["/code/okapi-site"]
    hard_delete.forget(db, ForgetSelection(), text="okapi", now=NOON)
    assert sessions.get_session(db, named).external_id == sessions.get_session(db, named).id
    assert sessions.get_session(db, branched).branch == ""
    assert hard_delete.find_names(db, "okapi").sessions == ()
    assert hard_delete.find_names(db, " ") == NameMatches()


def test_the_contents_of_a_session_are_found(db: Connection):
    one, other = new_session(db, "one"), new_session(db, "other")
    add_messages(db, one, "a", "b")
    add_messages(db, other, "c")
    stored = add_fragment(db, 1, session_n=one)
    add_fragment(db, 2)
    messages, fragment_ns = hard_delete.contents_of_session(db, one)
    assert len(messages) == 2
    assert fragment_ns == {stored}


def test_like_wildcards_in_a_file_name_are_escaped(db: Connection):
    for i, text in enumerate(["a_b%.md", "aXbYY.md"]):
        new = NewMessage("assistant", (Part("tool_call", text, "Read", "1"),), NOON, key=f"{i}")
        messages.add_messages(db, new_session(db), [prepare(new)], now=NOON)
    found = list(hard_delete.tool_call_messages(db, "a_b%.md", project_n=None))
    assert [parts[0].text for _, _, parts in found] == ["a_b%.md"]


def test_deleted_fragments_are_not_live(db: Connection):
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    fragments.set_deleted(db, a, NOON, now=NOON)
    assert hard_delete.live_fragments(db, [a, b]) == [b]


def test_standing_instructions_are_removed_by_message(db: Connection):
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    for item, text in ((a, "one"), (a, "two"), (b, "three")):
        standing_instructions.add(db, item, None, text, 1)
    assert standing_instructions.texts_of_items(db, [a]) == ["one", "two"]
    assert standing_instructions.remove(db, [a]) == [a]
    assert [s.text for s in standing_instructions.current_instructions(db, None)] == ["three"]


def test_a_removed_distillation_leaves_only_a_tombstone(db: Connection):
    n = distillations.add_distillation(db, new_session(db), new_distillation(1, "zebra"), now=NOON)
    distillations.remove_distillations(db, [n], now=NOON)
    assert items.count_by_type(db)["distillation"] == 0
    assert db.value("SELECT count(*) FROM message_words") == 0
    assert db.find("SELECT 1 FROM tombstones WHERE id = :id", id=numbered_id(1))


def test_actions_of_one_time_are_one_batch(db: Connection):
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    history.record_action(db, "delete", a, now=NOON - timedelta(seconds=1))
    history.record_action(db, "delete", b, now=NOON)
    history.record_action(db, "delete", c, now=NOON)
    last = history.find_last_action(db)
    assert last is not None
    assert [one.fragment_n for one in history.actions_of_same_batch(db, last)] == [b, c]


def test_the_episode_of_a_session_is_found_by_its_metadata(db: Connection):
    session_n = new_session(db)
    assert distillations.find_episode(db, session_n) is None
    db.run("UPDATE fragments SET kind = 'episode' WHERE n = :n",
           n=add_fragment(db, 1, session_n=session_n))  # fmt: skip
    assert distillations.find_episode(db, session_n) is None
    told = add_fragment(db, 2, session_n=session_n, metadata=distillations.SESSION_EPISODE)
    db.run("UPDATE fragments SET kind = 'episode' WHERE n = :n", n=told)
    assert distillations.find_episode(db, session_n) == told


def test_the_trust_of_an_episode_never_rises(db: Connection):
    n = add_fragment(db, 1, origin="assistant")
    distillations.update_episode(db, n, payload={}, source_messages=(), origin="web")
    distillations.update_episode(
        db, n, payload={"a": 1}, source_messages=("m",), origin="assistant"
    )
    found = fragments.get(db, n)
    assert (found.trust, found.payload, found.source_messages) == (0, {"a": 1}, ("m",))
