from __future__ import annotations

from lore.store import cycles, steps
from lore.store.sqlite import Connection
from lore.store.steps import Step
from tests.store.samples import NOON, Cycle, add_fragment


def test_steps_are_read_last_first_and_by_verb(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1)
    steps.record(db, cycle.n, Step("depth", n, value=1), Step("hidden", n, at=7))
    cycle.watch(db, Step("depth", n, value=2))
    assert [step.verb for step in steps.of_cycle(db, cycle.n)] == ["depth", "hidden", "depth"]
    assert [step.value for step in steps.of_cycle(db, cycle.n, "depth")] == [2, 1]


def test_a_fragment_knows_when_cycles_changed_it(db: Connection, cycle: Cycle) -> None:
    one, other = add_fragment(db, 1), add_fragment(db, 2)
    steps.record(db, cycle.n, Step("depth", one, value=1), Step("hidden", other))
    assert steps.of_fragment(db, one) == [(NOON, "depth")]


def test_the_steps_of_other_cycles_stay_when_some_are_dropped(db: Connection, cycle: Cycle) -> None:
    later = cycles.begin(db, ["merge"], now=NOON)
    n = add_fragment(db, 1)
    steps.record(db, cycle.n, Step("depth", n, value=1))
    steps.record(db, later, Step("depth", n, value=2))
    steps.drop(db, [cycle.n])
    assert steps.of_cycle(db, cycle.n) == []
    assert len(steps.of_cycle(db, later)) == 1
