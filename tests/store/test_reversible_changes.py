from __future__ import annotations

from datetime import timedelta
from math import exp
from typing import get_args

import pytest

from lore.store import consolidation, fragments, graph, history, project_rows, reversible_changes
from lore.store.consolidation import Step, StepVerb
from lore.store.graph import EdgeRow
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, Cycle, add_fragment, minutes, numbered_id


def hang(db: Connection, *pairs: tuple[int, int]) -> None:
    for parent, child in pairs:
        graph.put_edge(db, parent, child, "hierarchical", now=NOON)


def depths(db: Connection, *ns: int) -> list[int]:
    return [fragments.get(db, n).depth for n in ns]


def test_reparent_updates_depths_and_can_be_undone(db: Connection, cycle: Cycle) -> None:
    top, other, child, below = (add_fragment(db, i, depth=d) for i, d in enumerate((0, 0, 1, 2), 1))
    middle = add_fragment(db, 9, depth=1)
    hang(db, (top, child), (child, below), (other, middle))
    reversible_changes.reparent(db, child, middle, now=NOON, recorder=cycle.recorder)
    assert depths(db, child, below) == [2, 3]
    assert graph.find_parent(db, child) == middle
    cycle.take_back()
    assert depths(db, child, below) == [1, 2]
    assert graph.find_parent(db, child) == top


def test_reparent_to_none_makes_a_root(db: Connection, cycle: Cycle) -> None:
    top, child, below = (add_fragment(db, i, depth=i - 1) for i in (1, 2, 3))
    hang(db, (top, child), (child, below))
    reversible_changes.reparent(db, child, None, now=NOON, recorder=cycle.recorder)
    assert graph.find_parent(db, child) is None
    assert depths(db, child, below) == [0, 1]


def test_reparent_to_the_same_parent_does_nothing(db: Connection, cycle: Cycle) -> None:
    top, child = add_fragment(db, 1), add_fragment(db, 2, depth=1)
    graph.put_edge(db, top, child, "hierarchical", now=NOON, weight=0.4, note="kept")
    reversible_changes.reparent(db, child, top, now=NOON, recorder=cycle.recorder)
    assert consolidation.steps_of_cycle(db, cycle.n) == []
    assert graph.find_edge(db, top, child, "hierarchical") == (0.4, "kept")


@pytest.mark.parametrize("above", [True, False], ids=["below a root", "as a root"])
def test_a_child_replaces_its_parent_with_its_siblings_below(
    db: Connection, cycle: Cycle, *, above: bool
) -> None:
    depth = int(above)
    root = add_fragment(db, 9)
    parent = add_fragment(db, 1, depth=depth)
    child, sibling = (add_fragment(db, i, depth=depth + 1) for i in (2, 3))
    hang(db, (parent, child), (parent, sibling), *([(root, parent)] if above else []))
    reversible_changes.replace_parent(db, child, parent, now=NOON, recorder=cycle.recorder)
    assert graph.find_parent(db, child) == (root if above else None)
    assert graph.find_parent(db, sibling) == child
    assert depths(db, child, sibling) == [depth, depth + 1]
    cycle.take_back()
    assert graph.find_parent(db, child) == graph.find_parent(db, sibling) == parent
    assert depths(db, child, sibling) == [depth + 1, depth + 1]


def test_a_fragment_without_its_former_parent_keeps_the_new_one(
    db: Connection, cycle: Cycle
) -> None:
    former, later, child = (add_fragment(db, i, depth=i // 3) for i in (1, 2, 3))
    hang(db, (former, child))
    reversible_changes.reparent(db, child, later, now=NOON, recorder=cycle.recorder)
    done = consolidation.steps_of_cycle(db, cycle.n)
    graph.remove_edge(db, later, child, "hierarchical")
    db.update("fragments", child, depth=5)
    reversible_changes.restore_parents(db, done, now=NOON)
    assert graph.find_parent(db, child) == later
    assert depths(db, child) == [1]


def test_an_edge_is_added_once_and_can_be_undone(db: Connection, cycle: Cycle) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    edge = EdgeRow(a, b, "associative", 0.5)
    assert reversible_changes.add_edge(db, edge, now=NOON, recorder=cycle.recorder)
    assert not reversible_changes.add_edge(db, edge, now=NOON, recorder=cycle.recorder)
    assert cycle.take_back() == [True]
    assert graph.find_edge(db, a, b, "associative") is None


def test_an_existing_edge_keeps_weight_and_note(db: Connection, cycle: Cycle) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    graph.put_edge(db, a, b, "associative", now=NOON, weight=0.3, note="so it is")
    reversible_changes.add_edge(
        db, EdgeRow(a, b, "associative", 0.9), now=NOON, recorder=cycle.recorder
    )
    assert graph.find_edge(db, a, b, "associative") == (0.3, "so it is")


def test_a_dropped_edge_can_be_restored(db: Connection, cycle: Cycle) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    graph.put_edge(db, a, b, "associative", now=NOON, weight=0.3, note="so it is")
    before = graph.edges_of_fragment(db, a)
    reversible_changes.drop_edge(db, a, b, "associative", recorder=cycle.recorder)
    assert graph.edges_of_fragment(db, a) == []
    assert cycle.take_back() == [True]
    assert graph.edges_of_fragment(db, a) == before


def test_dropping_a_missing_edge_records_nothing(db: Connection, cycle: Cycle) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    reversible_changes.drop_edge(db, a, b, "associative", recorder=cycle.recorder)
    assert consolidation.steps_of_cycle(db, cycle.n) == []


def test_a_parent_edge_is_not_restored_beside_another(db: Connection, cycle: Cycle) -> None:
    former, other, child = (add_fragment(db, i) for i in (1, 2, 3))
    graph.put_edge(db, former, child, "hierarchical", now=NOON)
    reversible_changes.drop_edge(db, former, child, "hierarchical", recorder=cycle.recorder)
    graph.put_edge(db, other, child, "hierarchical", now=NOON)
    assert cycle.take_back() == [False]
    assert graph.find_parent(db, child) == other


def test_supersede_marks_the_older_fragment(db: Connection) -> None:
    older, newer = add_fragment(db, 1), add_fragment(db, 2)
    reversible_changes.supersede(db, older, newer, now=minutes(5))
    held = fragments.get(db, older)
    assert (held.superseded_by, held.valid_to) == (fragments.get(db, newer).id, minutes(5))
    assert graph.find_edge(db, newer, older, "supersedes") is not None
    assert fragments.get(db, newer).superseded_by is None


def test_undoing_a_supersession_restores_both_fragments(db: Connection, cycle: Cycle) -> None:
    older, newer = add_fragment(db, 1), add_fragment(db, 2)
    before = fragments.get(db, older)
    reversible_changes.supersede(db, older, newer, now=minutes(5), recorder=cycle.recorder)
    assert cycle.take_back() == [True, True]
    assert fragments.get(db, older) == before
    assert graph.edges_of_fragment(db, older) == []


def test_a_supersession_changed_since_is_not_undone(db: Connection, cycle: Cycle) -> None:
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    reversible_changes.supersede(db, a, b, now=NOON, recorder=cycle.recorder)
    reversible_changes.supersede(db, a, c, now=NOON)
    assert cycle.take_back() == [True, False]
    assert fragments.get(db, a).superseded_by == fragments.get(db, c).id


def test_undoing_restores_a_former_supersession(db: Connection, cycle: Cycle) -> None:
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    reversible_changes.supersede(db, a, b, now=NOON)
    before = fragments.get(db, a)
    reversible_changes.supersede(db, a, c, now=minutes(5), recorder=cycle.recorder)
    assert cycle.take_back() == [True, True]
    assert fragments.get(db, a) == before


def test_undoing_an_overview_restores_text_version_and_times(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1, "first words")
    before = fragments.get(db, n)
    reversible_changes.write_overview(
        db, n, "an overview", "overview", now=minutes(60), recorder=cycle.recorder
    )
    assert fragments.get(db, n).content == "an overview"
    assert fragments.get(db, n).last_reinforced == before.last_reinforced
    assert cycle.take_back() == [True]
    assert fragments.get(db, n) == before
    assert fragments.get_versions(db, n) == []


def test_a_text_changed_after_the_overview_is_not_undone(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1, "first words")
    reversible_changes.write_overview(
        db, n, "an overview", "overview", now=NOON, recorder=cycle.recorder
    )
    fragments.update(db, n, content="ours", summary="ours", mentioned=(), now=NOON, reason="")
    assert cycle.take_back() == [False]
    assert fragments.get(db, n).content == "ours"


def test_the_text_before_an_overview_is_that_before_all_overviews(db: Connection) -> None:
    n = add_fragment(db, 1, "its own")
    assert reversible_changes.find_text_before_overview(db, n) is None
    reversible_changes.write_overview(db, n, "one", "one", now=NOON)
    reversible_changes.write_overview(db, n, "two", "two", now=NOON)
    own = reversible_changes.find_text_before_overview(db, n)
    assert own is not None
    assert own.content == "its own"


def test_overviews_above_deleted_fragments_are_withdrawn(db: Connection) -> None:
    root, child = add_fragment(db, 1, "its own"), add_fragment(db, 2, depth=1)
    graph.put_edge(db, root, child, "hierarchical", now=NOON)
    reversible_changes.write_overview(db, root, "tells of the child", "overview", now=NOON)
    assert reversible_changes.withdraw_overviews(db, [child], now=NOON) == 1
    assert fragments.get(db, root).content == "its own"
    assert fragments.get_versions(db, root) == []


def test_undoing_deletes_a_new_fragment_unless_it_was_changed(db: Connection, cycle: Cycle) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    for n in (a, b):
        cycle.recorder(db, Step("added", n, note="[]"))
    fragments.update(db, b, content="ours", summary="ours", mentioned=(), now=NOON, reason="")
    assert cycle.take_back() == [False, True]
    assert sorted(fragments.by_number(db, [a, b])) == [b]
    assert history.find_tombstones(db, [numbered_id(1), numbered_id(2)]) == {numbered_id(1)}


def test_a_new_fragment_with_children_is_not_deleted(db: Connection, cycle: Cycle) -> None:
    root, child = add_fragment(db, 1), add_fragment(db, 2, depth=1)
    cycle.recorder(db, Step("added", root, note="[]"))
    graph.put_edge(db, root, child, "hierarchical", now=NOON)
    assert cycle.take_back() == [False]
    assert root in fragments.by_number(db, [root])


def test_a_hidden_fragment_can_be_restored(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1)
    reversible_changes.hide_fragment(db, n, now=NOON, recorder=cycle.recorder)
    assert fragments.is_deleted(db, n)
    assert cycle.take_back() == [True]
    assert not fragments.is_deleted(db, n)


def test_a_fragment_deleted_since_stays_deleted(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1)
    reversible_changes.hide_fragment(db, n, now=NOON, recorder=cycle.recorder)
    fragments.set_deleted(db, n, minutes(5), now=minutes(5))
    assert cycle.take_back() == [False]
    assert fragments.is_deleted(db, n)


def test_a_confirmation_raises_confidence_and_adds_sources(db: Connection) -> None:
    n = add_fragment(db, 1, confidence=0.7)
    reversible_changes.confirm(db, n, sources=["a", "b"], confidence_gain=0.05, now=NOON)
    held = fragments.get(db, n)
    assert held.confidence == pytest.approx(0.75)
    assert held.source_messages == ("a", "b")


def test_confidence_is_at_most_1(db: Connection) -> None:
    n = add_fragment(db, 1, confidence=0.98)
    reversible_changes.confirm(db, n, sources=(), confidence_gain=0.05, now=NOON)
    assert fragments.get(db, n).confidence == 1.0


def test_undoing_a_confirmation_restores_the_former_text(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1, "old words", confidence=0.7, source_messages=("a",))
    before = fragments.get(db, n)
    reversible_changes.confirm(
        db, n, sources=["a", "b"], confidence_gain=0.05, now=minutes(5), recorder=cycle.recorder
    )
    fragments.update(
        db, n, content="new words", summary="", mentioned=(), now=minutes(5), reason="said again"
    )
    assert cycle.take_back() == [True, True]
    after = fragments.get(db, n)
    assert (after.content, after.confidence, after.source_messages, after.updated_at) == (
        before.content,
        before.confidence,
        before.source_messages,
        before.updated_at,
    )


def test_a_confirmation_before_other_changes_is_not_undone(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1, confidence=0.7)
    reversible_changes.confirm(
        db, n, sources=(), confidence_gain=0.05, now=NOON, recorder=cycle.recorder
    )
    for text in ("one", "two"):
        fragments.update(db, n, content=text, summary="", mentioned=(), now=NOON, reason="")
    assert cycle.take_back() == [False, True]
    assert fragments.get(db, n).content == "two"


def test_undoing_a_count_subtracts_one_and_deletes_zero(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1)
    project_n = project_rows.ensure_project(db, "/code/a", now=NOON)
    reversible_changes.count_confirmation(db, n, project_n, now=NOON, recorder=cycle.recorder)
    reversible_changes.count_confirmation(db, n, project_n, now=minutes(5))
    assert list(reversible_changes.confirmations_by_project(db, n).values()) == [2]
    assert cycle.take_back() == [True]
    assert list(reversible_changes.confirmations_by_project(db, n).values()) == [1]
    cycle.take_back()
    assert reversible_changes.confirmations_by_project(db, n) == {}


def test_widely_confirmed_fragments_need_confidence_and_trust(db: Connection) -> None:
    own = project_rows.ensure_project(db, "/code/0", now=NOON)
    found, unsure, rare = (
        add_fragment(db, i, project_n=own, confidence=c) for i, c in ((1, 0.8), (2, 0.5), (3, 0.9))
    )
    others = [project_rows.ensure_project(db, f"/code/{i}", now=NOON) for i in (1, 2)]
    for project_n in (own, *others):
        reversible_changes.count_confirmation(db, found, project_n, now=NOON)
        reversible_changes.count_confirmation(db, unsure, project_n, now=NOON)
    reversible_changes.count_confirmation(db, rare, own, now=NOON)
    wide = reversible_changes.widely_confirmed(db, projects=3, confidence=0.8, trust=0)
    assert [(n, len(projects)) for n, projects in wide.items()] == [(found, 3)]


def test_undoing_a_reinforcement_restores_strengths(db: Connection, cycle: Cycle) -> None:
    n, near = add_fragment(db, 1), add_fragment(db, 2)
    graph.put_edge(db, n, near, "associative", now=NOON)
    before = fragments.by_number(db, [n, near])
    reversible_changes.reinforce(db, n, now=minutes(5), recorder=cycle.recorder)
    assert fragments.get(db, n) != before[n]
    assert fragments.get(db, near).relevance > before[near].relevance
    assert cycle.take_back() == [True]
    assert fragments.by_number(db, [n, near]) == before


def test_a_fragment_read_since_keeps_its_strength(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1)
    reversible_changes.reinforce(db, n, now=minutes(5), recorder=cycle.recorder)
    fragments.reinforce(db, n, now=minutes(6))
    assert cycle.take_back() == [False]
    assert fragments.get(db, n).access_count == 2


DAY = timedelta(days=1)


@pytest.fixture
def pair(db: Connection) -> tuple[int, int]:
    return add_fragment(db, 1), add_fragment(db, 2)


def weight_of(db: Connection, pair: tuple[int, int]) -> float:
    found = graph.find_edge(db, *pair, "associative")
    assert found is not None
    return float(found[0])


def test_an_unused_edge_is_dropped_after_a_year(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    graph.put_edge(db, *pair, "associative", now=NOON, weight=0.5)
    assert reversible_changes.decay_edges(db, cycle.n, now=NOON + 90 * DAY) == (0, 0)
    assert reversible_changes.decay_edges(db, cycle.n, now=NOON + 360 * DAY) == (1, 0)
    assert 0.15 < weight_of(db, pair) < 0.16
    assert reversible_changes.decay_edges(db, cycle.n, now=NOON + 366 * DAY) == (1, 1)


@pytest.mark.parametrize("end", [0, 1])
def test_an_edge_does_not_decay_while_one_of_its_ends_is_used(
    db: Connection, cycle: Cycle, pair: tuple[int, int], end: int
) -> None:
    graph.put_edge(db, *pair, "associative", now=NOON, weight=0.5)
    for month in range(1, 25):
        fragments.mark_used(db, [pair[end]], now=NOON + month * 30 * DAY)
        assert reversible_changes.decay_edges(db, cycle.n, now=NOON + month * 30 * DAY) == (0, 0)
    assert weight_of(db, pair) == 0.5


def test_decay_does_not_depend_on_how_often_it_runs(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    graph.put_edge(db, *pair, "associative", now=NOON, weight=0.8)
    for days in (80, 100, 100, 150, 190):
        reversible_changes.decay_edges(db, cycle.n, now=NOON + days * DAY)
    assert weight_of(db, pair) == pytest.approx(0.8 * exp(-0.00438 * 100))


def test_weak_edges_are_dropped_and_can_be_restored(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    graph.put_edge(
        db,
        *pair,
        "associative",
        now=NOON,
        weight=reversible_changes.MIN_EDGE_WEIGHT,
        note="so it is",
    )
    assert reversible_changes.decay_edges(db, cycle.n, now=NOON + 91 * DAY) == (1, 1)
    assert graph.find_edge(db, *pair, "associative") is None
    assert cycle.take_back() == [True, True]
    assert weight_of(db, pair) == pytest.approx(reversible_changes.MIN_EDGE_WEIGHT)
    assert consolidation.get_progress(db, reversible_changes.DECAY_PROGRESS) == 0


def test_decay_is_undone_although_an_end_was_used_since(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    graph.put_edge(db, *pair, "associative", now=NOON, weight=0.8)
    reversible_changes.decay_edges(db, cycle.n, now=NOON + 190 * DAY)
    assert weight_of(db, pair) < 0.6
    fragments.mark_used(db, [pair[0]], now=NOON + 191 * DAY)
    cycle.take_back()
    assert weight_of(db, pair) == pytest.approx(0.8)


def test_other_kinds_of_edges_do_not_decay(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    graph.put_edge(db, *pair, "hierarchical", now=NOON, weight=0.1)
    assert reversible_changes.decay_edges(db, cycle.n, now=NOON + 30 * DAY) == (0, 0)
    assert graph.find_edge(db, *pair, "hierarchical") == (0.1, "")


def test_restored_weights_are_at_most_1(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    graph.put_edge(db, *pair, "associative", now=NOON, weight=0.9)
    reversible_changes.decay_edges(db, cycle.n, now=NOON + 120 * DAY)
    graph.put_edge(db, *pair, "associative", now=NOON, weight=1.0)
    cycle.take_back()
    assert weight_of(db, pair) == 1.0


@pytest.mark.parametrize("verb", get_args(StepVerb))
def test_every_step_can_be_undone(db: Connection, verb: StepVerb) -> None:
    n, other = add_fragment(db, 1), add_fragment(db, 2)
    notes = {"confirmed": '[0.7, "[]"]', "strengthened": "[]", "evidence": '["{}", 0.7]'}
    note = notes.get(verb, "")
    kind = {"counted": "1"}.get(verb, "associative")
    step = Step(verb, n, other, kind, 1.0, note, 1)
    assert reversible_changes.undo_step(db, step, now=NOON) in (True, False)
