"""A cycle taken back: what was there before is there again."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.curate import fragments as by_hand
from lore.digest.consolidation.cycle import run_cycle
from lore.digest.consolidation.undoing import undo_cycle
from lore.errors import InvalidInput, NotFound
from lore.store import fragments
from lore.store.db import Database, open_database
from tests.digest.consolidation.samples import (
    DIMENSION,
    OFFLINE,
    World,
    axis,
    full_world,
    phase,
    soundness,
    state,
)
from tests.fakes import NOON, FixedClock


def test_a_cycle_taken_back_leaves_what_was_there_before(database: Database):
    full_world(database)
    before = state(database)
    run_cycle(database, OFFLINE)
    assert state(database) != before
    undone = undo_cycle(database)
    assert undone.left == 0
    assert state(database) == before
    assert soundness(database) == []


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10_000))
def test_any_memory_is_the_same_after_a_cycle_and_its_undoing(tmp_path_factory, seed: int):
    clock = FixedClock()
    path = tmp_path_factory.mktemp("home") / "memory.db"
    database = open_database(path, busy_timeout_s=5, backups=None, now=clock)
    try:
        drawn_world(database, random.Random(seed))
        before = state(database)
        run_cycle(database, OFFLINE)
        assert soundness(database) == []
        assert undo_cycle(database).left == 0
        assert state(database) == before
    finally:
        database.close()


def drawn_world(database: Database, draw: random.Random) -> None:
    """Make a memory by chance: trees, edges, ages, readings."""
    world = World(database)
    names: list[str] = []
    for i in range(draw.randint(3, 25)):
        place = draw.randrange(6)
        vector = axis(place, **{f"_{draw.randrange(6, DIMENSION)}": draw.choice((0.1, 0.3, 0.8))})
        parent = draw.choice([*names, "", ""])
        world.add(
            f"f{i}",
            draw.choice((
                f"Part {place} of the service is written in Go",
                f"The limit of part {place} is {draw.randint(1, 3)}0 requests",
                f"The limit of part {place} is now {draw.randint(4, 6)}0 requests",
                f"Nobody looks after part {place}",
            )),
            vector,
            parent=parent,
            at=NOON.replace(month=draw.randint(1, 5), day=draw.randint(1, 13)),
            importance=draw.choice((0.1, 0.2, 0.5, 0.9)),
            origin=draw.choice(("user", "assistant", "assistant", "web")),
            source_messages=draw.choice(((), ("m1",))),
        )  # fmt: skip
        names.append(f"f{i}")
    for _ in range(draw.randint(0, 12)):
        one, other = sorted(draw.sample(names, 2))
        world.link(one, other, draw.uniform(0.15, 1.0), at=NOON.replace(month=draw.randint(1, 5)))
    for name in draw.sample(names, min(3, len(names))):
        world.read(name, draw.randint(1, 3))
    database.write(lambda db: fragments.rescore(db, now=database.now()))


def test_what_was_taken_back_is_not_done_again_by_the_next_cycle(database: Database, clock):
    world = full_world(database)
    run_cycle(database, OFFLINE)
    undo_cycle(database)
    clock.advance(hours=2)
    report = run_cycle(database, OFFLINE)
    assert "merged" not in phase(report, "merge").counts
    assert "insights" not in phase(report, "reflect").counts
    assert "superseded" not in phase(report, "contradict").counts
    assert "pruned" not in phase(report, "prune_fragments").counts
    assert "reworded" not in phase(report, "resummarize").counts
    assert {"orders", "orders again", "port"} <= world.visible()


def test_after_a_day_nothing_is_taken_back_and_the_reason_is_told(database: Database, clock):
    full_world(database)
    run_cycle(database, OFFLINE)
    clock.advance(hours=24)
    before = state(database)
    with pytest.raises(InvalidInput, match="only a day"):
        undo_cycle(database)
    assert state(database) == before


def test_a_cycle_is_taken_back_once(database: Database):
    full_world(database)
    report = run_cycle(database, OFFLINE)
    undo_cycle(database, report.id)
    with pytest.raises(InvalidInput, match="already"):
        undo_cycle(database, report.id)
    with pytest.raises(NotFound):
        undo_cycle(database)


def test_an_earlier_cycle_can_be_taken_back_while_a_later_one_stands(database: Database, clock):
    world = full_world(database)
    first = run_cycle(database, OFFLINE)
    clock.advance(hours=2)
    run_cycle(database, OFFLINE)
    undo_cycle(database, first.id)
    assert {"orders", "orders again", "port", "port now"} <= world.visible()
    assert soundness(database) == []


def test_words_changed_by_hand_since_are_left_as_they_are(database: Database):
    world = full_world(database)
    run_cycle(database, OFFLINE)
    by_hand.update(database, world.get("gateway").id, "The gateway is gone")
    assert undo_cycle(database).left >= 1
    assert world.get("gateway").content == "The gateway is gone"


def test_a_memory_without_cycles_has_nothing_to_take_back(database: Database):
    with pytest.raises(NotFound):
        undo_cycle(database)
