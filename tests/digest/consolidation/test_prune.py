"""Phases prune_edges and prune_fragments: decay, hide, and remove a day later."""

from __future__ import annotations

from datetime import timedelta
from math import exp
from pathlib import Path

import pytest

from lore.digest import fragment_edits as by_hand
from lore.digest import undo
from lore.digest.consolidation.cycle import run_cycle
from lore.digest.consolidation.phase import CycleContext
from lore.digest.consolidation.prune import check_files
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.store import (
    consolidation,
    fragments,
    graph,
    history,
    project_rows,
    replacements,
    sessions,
)
from lore.store.database import Database
from lore.store.replacements import Replacement
from tests.digest.consolidation.samples import OFFLINE, World, phase, soundness
from tests.fakes import NOON

OLD = NOON - timedelta(days=200)


def prune_edges(database: Database):
    return phase(run_cycle(database, OFFLINE, only=("prune_edges",)), "prune_edges")


def prune(database: Database, means: CycleContext = OFFLINE):
    report = run_cycle(database, means, only=("rescore", "prune_fragments"))
    return phase(report, "prune_fragments")


def weight(world: World, one: str, other: str) -> float | None:
    with world.database.read() as db:
        found = graph.find_edge(db, world.ns[one], world.ns[other], "associative")
    return None if found is None else found[0]


def linked(database: Database, strength: float, age_days: float = 0) -> World:
    world = World(database)
    world.add("a", "One fact", None)
    world.add("b", "Another fact", None)
    world.link("a", "b", strength, at=NOON - timedelta(days=age_days))
    return world


def test_an_edge_fades_as_fast_however_often_cycles_run(database: Database, clock):
    world = linked(database, 0.8, age_days=90)
    for _ in range(12):
        clock.advance(hours=2)
        prune_edges(database)
    assert weight(world, "a", "b") == pytest.approx(0.8 * exp(-0.00438))


def test_an_edge_is_renewed_when_a_fragment_at_its_end_is_read(database: Database, clock):
    world = linked(database, 0.8)
    clock.advance(days=80)
    world.read("a")
    clock.advance(days=80)
    prune_edges(database)
    assert weight(world, "a", "b") == 0.8
    clock.advance(days=20)
    prune_edges(database)
    assert weight(world, "a", "b") == pytest.approx(0.8 * exp(-0.00438 * 10))


def test_an_edge_below_the_line_is_dropped(database: Database):
    world = linked(database, 0.16, age_days=120)
    assert prune_edges(database).counts == {"faded": 1, "dropped": 1}
    assert weight(world, "a", "b") is None


def test_a_cycle_at_the_same_moment_fades_nothing(database: Database):
    linked(database, 0.8, age_days=3)
    prune_edges(database)
    assert prune_edges(database).counts == {}


def test_hierarchical_and_drawn_edges_never_fade(database: Database, clock):
    world = World(database)
    world.add("a", "One fact", None)
    world.add("b", "Another fact", None, parent="a")
    by_hand.link(database, world.get("a").id, world.get("b").id, "related_to", weight=0.2)
    clock.advance(days=400)
    prune_edges(database)
    with database.read() as db:
        assert graph.find_edge(db, world.ns["a"], world.ns["b"], "hierarchical") == (1.0, "")
        assert graph.find_edge(db, world.ns["a"], world.ns["b"], "related_to") == (0.2, "")


def faded_world(database: Database) -> World:
    world = World(database)
    world.add("root", "The project", None, at=OLD, importance=0.1)
    world.add("low", "Somebody liked the quokka logo", None, parent="root", at=OLD, importance=0.1)
    world.add("below", "The logo is drawn in SVG", None, parent="low", importance=0.9)
    world.add("deeper", "The SVG has two layers", None, parent="below", importance=0.9)
    world.add("high", "Never deploy on Fridays", None, parent="root", at=OLD, importance=0.9)
    return world


def test_faded_fragment_is_pruned_and_its_children_move_up(database: Database):
    world = faded_world(database)
    assert prune(database).counts == {"pruned": 1, "children moved": 1}
    assert world.children("root") == {"below", "high"}
    assert (world.get("below").depth, world.get("deeper").depth) == (1, 2)
    assert soundness(database) == []


@pytest.mark.parametrize(
    ("age_days", "change", "goes"),
    [
        (200, "", True),
        (170, "", False),
        (200, "last_accessed = 1", False),
        (200, "kind = 'episode'", False),
        (200, "importance = 0.5", False),
    ],
)
def test_a_root_without_children_that_was_never_used_is_pruned_after_half_a_year(
    database: Database, age_days: int, change: str, goes: bool
):
    world = World(database)
    world.add("alone", "A trifle", importance=0.1, at=NOON - timedelta(days=age_days))
    if change:
        database.write(lambda db: db.run(f"UPDATE fragments SET {change}"))
    assert prune(database).counts == ({"pruned": 1} if goes else {})


def test_what_was_used_lately_is_not_pruned(database: Database, clock):
    world = faded_world(database)
    world.read("low")
    clock.advance(days=89)
    assert prune(database).counts == {}
    clock.advance(days=30)
    assert prune(database).counts == {"pruned": 1, "children moved": 1}


@pytest.mark.parametrize("days", [1, 100, 1_000, 20_000])
def test_roots_with_children_and_important_fragments_are_never_pruned(
    database: Database, clock, days
):
    world = faded_world(database)
    clock.advance(days=days)
    prune(database)
    with database.read() as db:
        assert not fragments.is_deleted(db, world.ns["root"])
        assert not fragments.is_deleted(db, world.ns["high"])


@pytest.mark.parametrize(
    ("age_days", "readings", "goes"), [(59, 0, False), (75, 0, True), (75, 1, False)]
)
def test_the_lines_of_the_table_hold(database: Database, age_days, readings, goes):
    world = World(database)
    world.add("root", "The project", None)
    world.add("low", "A trifle", None, parent="root", importance=0.1,
              at=NOON - timedelta(days=age_days))  # fmt: skip

    def read_long_ago(db):
        db.run("UPDATE fragments SET access_count = :count WHERE depth = 1", count=readings)

    database.write(read_long_ago)
    prune(database)
    assert ("low" not in world.children("root")) == goes


def test_pruned_fragment_is_hidden_for_a_day_and_can_be_restored(database: Database, clock):
    world = faded_world(database)
    prune(database)
    assert "low" not in world.visible()
    clock.advance(hours=23)
    assert "removed" not in prune(database).counts
    undo.undo(database, world.get("low").id)
    clock.advance(hours=48)
    assert "removed" not in prune(database).counts
    with database.read() as db:
        assert fragments.by_number(db, [world.ns["low"]])


def test_pruned_fragment_is_erased_after_a_day_with_a_tombstone(database: Database, clock):
    world = faded_world(database)
    id_ = world.get("low").id
    prune(database)
    gone: list[int] = []
    means = CycleContext(OfflineSummarizer(), forget_vectors=gone.extend)
    clock.advance(hours=24)
    assert prune(database, means).counts == {"removed": 1}
    assert gone == [world.ns["low"]]
    with database.read() as db:
        assert history.find_tombstones(db, [id_]) == {id_}
        assert not fragments.by_number(db, [world.ns["low"]])
    database.checkpoint()
    for path in database.path.parent.glob("memory.db*"):
        assert b"quokka" not in path.read_bytes(), path
    assert soundness(database) == []


def test_superseding_fragment_is_not_pruned_before_the_superseded_one(database: Database, clock):
    world = World(database)
    world.add("root", "The project", None)
    world.add("stale", "The logo is red", None, parent="root", at=OLD, importance=0.9)
    world.add("new", "The logo is blue", None, parent="root", at=OLD, importance=0.1)
    by_hand.supersede(database, world.get("stale").id, world.get("new").id)
    prune(database)
    clock.advance(days=2)
    prune(database)
    assert "stale" not in world.visible()


def is_deleted(database: Database, n: int) -> bool:
    with database.read() as db:
        return fragments.is_deleted(db, n)


def test_a_fragment_that_replaces_another_in_part_is_not_pruned(database: Database):
    world = World(database)
    older = world.add("older", "The limit of uploads is 100", None)
    newer = world.add("newer", "The limit is 200", None, parent="older", at=OLD, importance=0.1)
    link = Replacement(older, "100", newer, "200", "partly", 0.9, 1)
    database.write(lambda db: replacements.record(db, (), [link]))
    prune(database)
    assert not is_deleted(database, newer)
    dismissed = link._replace(relation="dismissed", certainty=1.0)
    database.write(lambda db: replacements.record(db, (), [dismissed]))
    prune(database)
    assert is_deleted(database, newer)


def test_removal_keeps_what_was_deleted_by_hand_until_it_is_brought_back(database: Database, clock):
    world = faded_world(database)
    by_hand.delete(database, world.get("high").id)
    prune(database)
    clock.advance(days=3)
    prune(database)
    undo.undo(database, world.get("high").id)
    assert "high" in world.visible()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text("x")
    return folder


def create_world(database: Database, project: Path, text: str, *files: str) -> World:
    """Store what a fragment of a project says, and which files its sessions had."""
    world = World(database)
    world.add("it", text, project=str(project))

    def work(db):
        project_n = project_rows.find_project(db, str(project))
        n = sessions.ensure_session(db, "s", agent="t", started_at=NOON, project_n=project_n)
        sessions.describe_session(db, n, files=files)

    database.write(work)
    return world


def is_missing(database: Database, world: World) -> bool:
    with database.read() as db:
        found = check_files(db)
    assert found.back == []
    return found.gone == [world.ns["it"]]


@pytest.mark.parametrize(
    ("text", "is_gone"),
    [
        ("Todos live in src/todos.ts.", True),
        ("Todos live in ./src/todos.ts", True),
        ("Todos live in src/todos.ts, as README.md says", False),
        ("Lists live in src/lists.ts", False),
        ("Nothing is named here", False),
    ],
)
def test_fragment_that_names_only_missing_files_is_found(
    database: Database, project: Path, text: str, *, is_gone: bool
):
    world = create_world(database, project, text, "src/todos.ts", "README.md")
    assert is_missing(database, world) == is_gone


def test_a_file_may_be_named_by_its_whole_path(database: Database, project: Path):
    file = f"{project}/src/todos.ts"
    assert is_missing(database, create_world(database, project, f"Todos live in {file} now", file))


@pytest.mark.parametrize("file", ["../outside.txt", "/etc/nothing-here", "~/notes.md"])
def test_files_outside_the_project_are_not_looked_for(database: Database, project: Path, file: str):
    assert not is_missing(
        database, create_world(database, project, f"Notes live in {file} now", file)
    )


def test_empty_or_remote_folders_are_not_checked(database: Database, project: Path):
    world = create_world(database, project, "Todos live in src/todos.ts", "src/todos.ts")
    assert is_missing(database, world)
    (project / "README.md").unlink()
    (project / "src").rmdir()
    assert not is_missing(database, world)


def test_a_missing_file_is_reported_when_it_is_back(database: Database, project: Path):
    world = create_world(database, project, "Todos live in src/todos.ts", "src/todos.ts")
    n = world.ns["it"]
    database.write(lambda db: consolidation.mark_missing_files(db, [n], [], now=NOON))
    with database.read() as db:
        assert check_files(db) == ([], [])
    (project / "src" / "todos.ts").write_text("x")
    with database.read() as db:
        assert check_files(db) == ([], [n])
