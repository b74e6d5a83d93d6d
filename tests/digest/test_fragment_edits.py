from __future__ import annotations

from types import MappingProxyType

import pytest

from lore.capture.message_capture import Conversation
from lore.capture.message_capture import capture as capture_messages
from lore.digest import fragment_edits as capture
from lore.digest import undo
from lore.errors import InvalidInput, NotFound
from lore.records import Draft, NewMessage, Part
from lore.store import fragments, graph, items, keywords
from lore.validation import DEEPEST_VALUES, MOST_VALUE_CHARS, MOST_VALUES
from tests.fakes import NOON


@pytest.fixture
def store(database):
    def keep(content: str, **fields) -> str:
        return capture.store(database, Draft(content, **fields))

    return keep


@pytest.fixture
def get(database):
    def read(id_: str):
        with database.read() as db:
            return fragments.get(db, items.resolve(db, id_).n)

    return read


@pytest.fixture
def edges_of(database):
    def read(id_: str) -> set[tuple[str, str, str, float]]:
        with database.read() as db:
            found = graph.edges_of_fragment(db, items.resolve(db, id_).n)
        return {(edge.source, edge.target, edge.kind, edge.weight) for edge in found}

    return read


@pytest.fixture
def is_deleted(database):
    def read(id_: str) -> bool:
        with database.read() as db:
            return fragments.is_deleted(db, items.resolve(db, id_).n)

    return read


@pytest.fixture
def names_of(database):
    def read(id_: str) -> set[tuple[str, bool]]:
        with database.read() as db:
            table = graph.mentions_of_items(db, [items.resolve(db, id_).n])
            names = graph.entity_names(db, table[:, 1].tolist())
        return {(names[int(row[1])], bool(row[2])) for row in table}

    return read


def test_a_fragment_is_stored_as_it_was_asked_for(store, get):
    id_ = store(
        "Deploys run on Fridays. They take an hour.",
        kind="workflow",
        importance=0.9,
        confidence=0.8,
        origin="assistant",
        payload=MappingProxyType({"command": "just deploy"}),
        metadata={"seen": 1},
    )
    found = get(id_)
    assert found.content == "Deploys run on Fridays. They take an hour."
    assert found.summary == "Deploys run on Fridays."
    assert (found.kind, found.importance, found.confidence) == ("workflow", 0.9, 0.8)
    assert (found.origin, found.trust) == ("assistant", 2)
    assert (found.payload, found.metadata) == ({"command": "just deploy"}, {"seen": 1})
    assert (found.depth, found.parent_id, found.version) == (0, None, 1)
    assert found.created_at == found.last_reinforced == NOON


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Mr. Smith goes to Washington", "Mr. Smith goes to Washington"),
        ("Two\nlines.  And more!", "Two lines. And more!"),
        ("  ", "The content."),
        ("a\x00b", "a b"),
    ],
)
def test_a_given_summary_is_kept_on_one_line(database, store, get, given, kept):
    id_ = store("The content. More.", summary=given)
    assert get(id_).summary == kept
    capture.update(database, id_, "The content. Even more.", summary=given)
    assert get(id_).summary == kept


def test_a_summary_as_long_as_a_page_is_cut(database, store, get):
    id_ = store("content", summary="word " * 1_000)
    assert len(get(id_).summary) <= capture.SUMMARY_CHARS
    capture.update(database, id_, "content", summary="word " * 1_000)
    assert len(get(id_).summary) <= capture.SUMMARY_CHARS


@pytest.mark.parametrize(
    "wrong",
    [
        Draft(""),
        Draft(" \n\x00"),
        Draft("\u200b\ufeff\u2060"),
        Draft("x" * (capture.MAX_CHARS + 1)),
        Draft("x", kind="gossip"),  # type: ignore[arg-type]
        Draft("x", origin="rumour"),  # type: ignore[arg-type]
        Draft("x", importance=1.5),
        Draft("x", importance=float("nan")),
        Draft("x", confidence=-0.1),
        Draft("x", depth=2),
        Draft("x", payload={"when": object()}),
        Draft("x", metadata={"half": "\ud800"}),
    ],
)
def test_invalid_draft_is_refused(database, wrong):
    with pytest.raises(InvalidInput):
        capture.store(database, wrong)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"parent_id": "01234567-89ab"}, NotFound),
        ({"parent_id": "short"}, InvalidInput),
        ({"session": "nowhere"}, NotFound),
        ({"source_messages": ("01234567-89ab",)}, NotFound),
    ],
)
def test_references_of_a_draft_must_exist(store, fields, error):
    with pytest.raises(error):
        store("text", **fields)


def test_the_same_key_stores_once(database):
    first = capture.store(database, Draft("one"), key="k")
    assert capture.store(database, Draft("two"), key="k") == first
    assert capture.store(database, Draft("one"), key="other") != first


def test_many_fragments_are_stored_in_order(database, get):
    drafts = [Draft(f"number {i}") for i in range(capture.BATCH + 5)]
    ids = capture.store_all(database, iter(drafts))
    assert [get(id_).content for id_ in (ids[0], ids[-1])] == ["number 0", "number 204"]
    assert ids == sorted(ids)


def test_a_child_lies_one_below_its_parent(store, get, edges_of):
    root = store("root")
    child = store("child", parent_id=root)
    grandchild = store("grandchild", parent_id=child)
    assert [get(id_).depth for id_ in (root, child, grandchild)] == [0, 1, 2]
    assert get(grandchild).parent_id == child
    assert edges_of(root) == {(root, child, "hierarchical", 1.0)}


def test_nothing_is_stored_below_a_deleted_fragment(database, store):
    root = store("root")
    capture.delete(database, root)
    with pytest.raises(NotFound, match="deleted"):
        store("child", parent_id=root)


@pytest.mark.parametrize(
    ("origins", "trust"),
    [((), 3), (("user",), 3), (("user", "assistant"), 2), (("user", "web"), 0)],
)
def test_a_derived_fragment_has_the_lowest_trust_of_its_sources(
    database, store, get, origins, trust
):
    new = [
        NewMessage("user", (Part("text", f"{i}"),), NOON, origin=o) for i, o in enumerate(origins)
    ]
    ids = capture_messages(database, Conversation("talk"), new)
    found = get(store("text", source_messages=tuple(ids)))
    assert found.trust == trust
    assert found.source_messages == tuple(ids)


def test_a_fragment_is_found_by_keyword_at_once(database, store):
    store("The zebra escaped")
    with database.read() as db:
        weights = (6.0, 2.0, 3.0)
        assert keywords.search(db, "fragment_words", '"zebra"', limit=5, weights=weights)


def test_only_a_given_summary_is_a_title(database, store, names_of):
    derived = store("Ada met Bob.")
    named = store("She met Bob.", summary="Ada Lovelace")
    assert names_of(derived) == {("ada", False), ("bob", False)}
    assert names_of(named) == {("ada lovelace", True), ("bob", False)}
    capture.update(database, derived, "Ada met Carl.")
    assert names_of(derived) == {("ada", False), ("carl", False)}
    undo.undo(database)
    assert names_of(derived) == {("ada", False), ("bob", False)}


def test_an_update_keeps_the_former_versions(database, store, get, clock):
    id_ = store("first")
    clock.advance(days=1)
    assert capture.update(database, id_, "second", reason="it changed") == 2
    assert capture.update(database, id_, "third") == 3
    found = get(id_)
    assert (found.content, found.summary, found.version) == ("third", "third", 3)
    assert found.updated_at == clock()
    with database.read() as db:
        former = fragments.get_versions(db, items.resolve(db, id_).n)
    assert [(v.version, v.content, v.reason) for v in former] == [
        (1, "first", "it changed"),
        (2, "second", ""),
    ]


def test_an_update_needs_words_and_a_living_fragment(database, store):
    id_ = store("first")
    with pytest.raises(InvalidInput):
        capture.update(database, id_, "  ")
    capture.delete(database, id_)
    with pytest.raises(NotFound):
        capture.update(database, id_, "second")


def test_an_updated_fragment_is_found_by_its_new_words_only(database, store):
    id_ = store("The zebra escaped")
    capture.update(database, id_, "The lion stayed")
    weights = (6.0, 2.0, 3.0)
    with database.read() as db:
        assert not keywords.search(db, "fragment_words", '"zebra"', limit=5, weights=weights)
        assert keywords.search(db, "fragment_words", '"lion"', limit=5, weights=weights)


def test_a_deleted_fragment_comes_back_by_undo(database, store, is_deleted):
    id_ = store("text")
    assert capture.delete(database, id_) == id_
    assert is_deleted(id_)
    with pytest.raises(NotFound, match="was deleted"):
        capture.delete(database, id_)
    assert undo.undo(database) == ("delete", id_)
    assert not is_deleted(id_)


def test_undo_goes_back_step_by_step_to_the_beginning(database, store, get, is_deleted):
    one, two = store("one"), store("two")
    capture.update(database, one, "one changed")
    capture.delete(database, one)
    assert undo.undo(database) == ("delete", one)
    assert undo.undo(database) == ("update", one)
    assert get(one).content == "one"
    assert undo.undo(database) == ("store", two)
    assert is_deleted(two)
    assert undo.undo(database) == ("store", one)
    assert is_deleted(one)
    with pytest.raises(NotFound, match="nothing to undo"):
        undo.undo(database)


def test_undo_of_one_fragment_leaves_the_others(database, store, get):
    one, two = store("one"), store("two")
    capture.update(database, one, "one changed")
    capture.update(database, two, "two changed")
    assert undo.undo(database, one) == ("update", one)
    assert (get(one).content, get(two).content) == ("one", "two changed")
    assert undo.undo(database, one) == ("store", one)
    assert undo.undo(database, one) == ("delete", one)
    assert get(one).content == "one"
    with pytest.raises(NotFound):
        undo.undo(database, one)


def test_several_updates_are_undone_one_by_one_and_stay_in_the_log(database, store, get):
    id_ = store("first")
    capture.update(database, id_, "second")
    capture.update(database, id_, "third")
    undo.undo(database)
    assert get(id_).content == "second"
    undo.undo(database)
    assert get(id_).content == "first"
    assert get(id_).version == 5


def test_a_link_is_drawn_once_with_its_latest_weight(database, store, edges_of):
    a, b = store("a"), store("b")
    capture.link(database, a, b, "supports", weight=0.5, note="first")
    capture.link(database, a, b, "supports", weight=0.7, note="second")
    assert edges_of(a) == {(a, b, "supports", 0.7)}


def test_undo_of_a_link_restores_the_one_before(database, store, edges_of):
    a, b = store("a"), store("b")
    capture.link(database, a, b, "supports", weight=0.5)
    capture.link(database, a, b, "supports", weight=0.7)
    undo.undo(database)
    assert edges_of(a) == {(a, b, "supports", 0.5)}
    undo.undo(database)
    assert edges_of(a) == set()


@pytest.mark.parametrize(
    ("kind", "weight"), [("friendly", 1.0), ("supports", 1.5), ("supports", -1), ("supersedes", 1)]
)
def test_invalid_link_is_refused(database, store, edges_of, kind, weight):
    a, b = store("a"), store("b")
    with pytest.raises(InvalidInput):
        capture.link(database, a, b, kind, weight=weight)
    assert edges_of(a) == set()


def test_a_fragment_is_not_linked_to_itself_or_to_a_deleted_one(database, store):
    a, b = store("a"), store("b")
    with pytest.raises(InvalidInput, match="itself"):
        capture.link(database, a, a, "supports")
    capture.delete(database, b)
    with pytest.raises(NotFound):
        capture.link(database, a, b, "supports")


def test_a_child_moves_with_its_subtree(database, store, get, edges_of):
    a, b = store("a"), store("b")
    mid = store("mid", parent_id=b)
    child = store("child", parent_id=a)
    leaf = store("leaf", parent_id=child)
    capture.link(database, mid, child, "hierarchical")
    assert get(child).parent_id == mid
    assert [get(id_).depth for id_ in (child, leaf)] == [2, 3]
    assert edges_of(a) == set()


def test_undo_of_a_move_brings_the_subtree_back(database, store, get):
    a, b = store("a"), store("b")
    child = store("child", parent_id=a)
    leaf = store("leaf", parent_id=child)
    capture.link(database, store("mid", parent_id=b), child, "hierarchical")
    undo.undo(database)
    assert get(child).parent_id == a
    assert [get(id_).depth for id_ in (child, leaf)] == [1, 2]


def test_undo_of_a_first_parent_makes_a_root_again(database, store, get):
    a, b = store("a"), store("b")
    leaf = store("leaf", parent_id=b)
    capture.link(database, a, b, "hierarchical")
    assert [get(id_).depth for id_ in (a, b, leaf)] == [0, 1, 2]
    undo.undo(database)
    assert get(b).parent_id is None
    assert [get(id_).depth for id_ in (a, b, leaf)] == [0, 0, 1]


def test_a_tree_has_no_cycles(database, store):
    a = store("a")
    b = store("b", parent_id=a)
    c = store("c", parent_id=b)
    for child in (a, b):
        with pytest.raises(InvalidInput, match="ancestor"):
            capture.link(database, c, child, "hierarchical")


def test_a_deleted_link_of_the_chain_does_not_let_a_cycle_in(database, store):
    a = store("a")
    b = store("b", parent_id=a)
    c = store("c", parent_id=b)
    capture.delete(database, b)
    with pytest.raises(InvalidInput, match="ancestor"):
        capture.link(database, c, a, "hierarchical")


def test_a_deleted_child_moves_along_and_comes_back_in_its_place(database, store, get):
    a, b = store("a"), store("b")
    child = store("child", parent_id=a)
    leaf = store("leaf", parent_id=child)
    capture.delete(database, child)
    capture.link(database, b, a, "hierarchical")
    undo.undo(database, child)
    assert [get(id_).depth for id_ in (b, a, child, leaf)] == [0, 1, 2, 3]


def test_the_newer_supersedes_the_older_and_both_are_kept(database, store, get, edges_of, clock):
    old, new = store("old"), store("new")
    clock.advance(days=3)
    capture.supersede(database, old, new)
    assert get(old).superseded_by == new
    assert get(old).valid_to == clock()
    assert get(new).superseded_by is None
    assert edges_of(new) == {(new, old, "supersedes", 1.0)}


def test_superseding_twice_is_superseding_once(database, store, get):
    old, new = store("old"), store("new")
    capture.supersede(database, old, new)
    capture.supersede(database, old, new)
    assert undo.undo(database) == ("supersede", old)
    assert get(old).superseded_by is None
    assert undo.undo(database) == ("store", new)


def test_undo_of_a_second_supersession_restores_the_first(database, store, get, edges_of):
    old, new, newest = store("old"), store("new"), store("newest")
    capture.supersede(database, old, new)
    capture.supersede(database, old, newest)
    assert get(old).superseded_by == newest
    undo.undo(database)
    assert get(old).superseded_by == new
    assert edges_of(old) == {(new, old, "supersedes", 1.0)}


def test_fragments_do_not_supersede_each_other_in_a_circle(database, store):
    a, b, c = store("a"), store("b"), store("c")
    capture.supersede(database, a, b)
    with pytest.raises(InvalidInput, match="itself superseded"):
        capture.supersede(database, b, a)
    capture.supersede(database, b, c)
    with pytest.raises(InvalidInput, match="itself superseded"):
        capture.supersede(database, c, a)
    with pytest.raises(InvalidInput, match="itself"):
        capture.supersede(database, c, c)


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("user", "user", True),
        ("assistant", "user", True),
        ("user", "assistant", False),
        ("assistant", "web", False),
        ("web", "tool", True),
        ("tool", "peer", True),
    ],
)
def test_only_the_same_or_higher_trust_supersedes(database, store, get, old, new, allowed):
    a, b = store("a", origin=old), store("b", origin=new)
    if allowed:
        capture.supersede(database, a, b, origin=new)
    else:
        with pytest.raises(InvalidInput, match="may not supersede"):
            capture.supersede(database, a, b, origin=new)
    assert get(a).superseded_by == (b if allowed else None)


def test_user_may_supersede_any_fragment_and_undo_it(database, store, get):
    a, b = store("a", origin="user"), store("b", origin="web")
    capture.supersede(database, a, b)
    assert get(a).superseded_by == b
    assert undo.undo(database) == ("supersede", a)
    assert get(a).superseded_by is None


def test_agent_cannot_supersede_what_it_may_not_change(database, store, get):
    a, b = store("a", origin="user"), store("b", origin="user")
    with pytest.raises(InvalidInput, match="may not supersede"):
        capture.supersede(database, a, b, origin="assistant")
    assert get(a).superseded_by is None


def test_a_deleted_fragment_neither_supersedes_nor_is_superseded(database, store):
    a, b = store("a"), store("b")
    capture.delete(database, b)
    for old, new in ((a, b), (b, a)):
        with pytest.raises(NotFound):
            capture.supersede(database, old, new)


def nested(levels: int) -> dict[str, object]:
    tree: dict[str, object] = {"inmost": True}
    for _ in range(levels - 1):
        tree = {"inner": tree}
    return tree


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({f"name {i}": i for i in range(MOST_VALUES + 1)}, "values"),
        ({"all": [[i] for i in range(MOST_VALUES)]}, "values"),
        ({"text": "x" * (MOST_VALUE_CHARS + 1)}, "characters"),
        ({"x" * (MOST_VALUE_CHARS + 1): 1}, "characters"),
        (nested(DEEPEST_VALUES + 1), "levels"),
    ],
)
@pytest.mark.parametrize("field", ["payload", "metadata"])
def test_fields_beside_a_text_are_bounded(store, field: str, payload: dict[str, object], told: str):
    with pytest.raises(InvalidInput, match=told):
        store("Deploys run on Fridays.", **{field: payload})


def test_fields_beside_a_text_may_reach_their_bounds(store, get):
    many = {f"name {i}": i for i in range(MOST_VALUES)}
    assert get(store("Deploys run on Fridays.", payload=many)).payload == many
    deep = nested(DEEPEST_VALUES)
    assert get(store("Deploys run on Mondays.", payload=deep)).payload == deep
