"""People resolve conflicts, and may undo that."""

from __future__ import annotations

from typing import Any

import pytest

from lore.digest import undo
from lore.digest.consolidation.contradict import open_conflicts, resolve_conflict
from lore.digest.consolidation.cycle import run_cycle
from lore.errors import NotFound
from lore.store import project_rows
from lore.store.database import Database
from tests.digest.consolidation.samples import OFFLINE, World, axis

LIMITS = ("The gateway takes 100 requests a second", "The gateway takes 300 requests a second")


def contradict(database: Database) -> None:
    run_cycle(database, OFFLINE, only=("contradict",))


def siblings(database: Database, *texts: str, **fields: Any) -> World:
    world = World(database)
    world.add("root", "The gateway", axis(15), **fields)
    for i, text in enumerate(texts):
        world.add(f"s{i}", text, axis(0, 1, **{f"_{2 + i}": 0.3}), parent="root", **fields)
    return world


def conflicts(database: Database) -> list[tuple[str, str]]:
    with database.read() as db:
        return [(one.newer.content, one.older.content) for one in open_conflicts(db)]


def test_a_person_keeps_one(database: Database):
    world = siblings(database, *LIMITS)
    contradict(database)
    resolve_conflict(database, world.get("s0").id, world.get("s1").id, "keep")
    assert world.get("s1").superseded_by == world.get("s0").id
    assert conflicts(database) == []
    undo.undo(database)
    assert len(conflicts(database)) == 1


@pytest.mark.parametrize("decision", ["both", "dismiss"])
def test_a_person_keeps_both_or_dismisses_and_is_not_asked_again(database: Database, decision):
    world = siblings(database, *LIMITS)
    contradict(database)
    resolve_conflict(database, world.get("s1").id, world.get("s0").id, decision)
    assert conflicts(database) == []
    contradict(database)
    assert conflicts(database) == []
    assert {"s0", "s1"} <= world.visible()
    assert undo.undo(database)[0] == "decision"
    assert len(conflicts(database)) == 1


def test_a_person_may_keep_the_one_of_less_trust_and_take_that_back(database: Database):
    world = World(database)
    world.add("root", "The gateway", axis(15))
    world.add("mine", LIMITS[0], axis(0, 1), parent="root", origin="user")
    world.add("theirs", LIMITS[1], axis(0, 1, _2=0.3), parent="root", origin="web")
    contradict(database)
    resolve_conflict(database, world.get("theirs").id, world.get("mine").id, "keep")
    assert world.get("mine").superseded_by == world.get("theirs").id
    undo.undo(database)
    assert world.get("mine").superseded_by is None
    assert len(conflicts(database)) == 1


def test_an_unknown_conflict_is_an_error(database: Database):
    world = siblings(database, "The gateway is fast", "The gateway is written in Rust")
    with pytest.raises(NotFound):
        resolve_conflict(database, world.get("s0").id, world.get("s1").id, "keep")


def test_conflicts_are_listed_by_project(database: Database):
    siblings(database, *LIMITS, project="/code/app")
    contradict(database)
    database.write(lambda db: project_rows.ensure_project(db, "/code/other", now=database.now()))
    with database.read() as db:
        listed = [
            len(open_conflicts(db, project_n=project_rows.get_project(db, path)))
            for path in ("/code/app", "/code/other")
        ]
    assert listed == [1, 0]
