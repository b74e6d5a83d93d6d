"""A cycle that is stopped anywhere goes on, loses nothing and does nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lore.digest.consolidation.cycle import phase_names, run_cycle
from lore.digest.consolidation.undoing import undo_cycle
from lore.store import cycles
from lore.store.db import Database, open_database
from tests.digest.consolidation.samples import OFFLINE, World, full_world, soundness, state
from tests.fakes import FixedClock


class Killed(BaseException):
    """The process ends here."""


class MortalDatabase(Database):
    """Dies at its n-th write: before it, or right after it is durable."""

    dies_at = 10**9
    dies_after = False
    writes = 0

    def write(self, work: Callable[..., Any], *, key: str = "") -> Any:
        self.writes += 1
        if self.writes == self.dies_at and not self.dies_after:
            raise Killed
        result = super().write(work, key=key)
        if self.writes == self.dies_at:
            raise Killed
        return result


def told(database: Database) -> dict[str, Any]:
    """Return what a memory says, but for ids that are drawn anew each time."""
    found = state(database)
    return {
        "texts": sorted((f.content, f.depth, f.superseded_by) for f in found["fragments"].values()),
        "edges": [edge[:4] for edge in found["edges"]],
    }


def run_dying(home: Path, clock: FixedClock, write: int, *, after: bool) -> tuple[Any, int]:
    """Make the sample memory, kill the cycle at a write, and let it go on."""
    home.mkdir()
    path = home / "memory.db"
    with_all = open_database(path, busy_timeout_s=5, backups=None, now=clock)
    full_world(with_all)
    with_all.close()
    mortal = MortalDatabase(path, busy_timeout_s=5, now=clock)
    mortal.dies_at, mortal.dies_after = write, after
    try:
        run_cycle(mortal, OFFLINE)
    except Killed:
        pass
    finally:
        mortal.close()
    writes = mortal.writes
    database = open_database(path, busy_timeout_s=5, backups=None, now=clock)
    if writes == write:
        run_cycle(database, OFFLINE)
    with database.read() as db:
        assert len(cycles.newest(db, limit=5)) == 1, "the cycle went on, none was begun beside it"
        last = cycles.find_last(db)
    assert last is not None
    assert last.report.ended_at is not None
    counts = {one.phase: one.counts for one in last.report.phases}
    result = (told(database), counts)
    assert soundness(database) == []
    assert undo_cycle(database).left == 0
    database.close()
    return result, writes


@pytest.mark.parametrize("after", [False, True])
def test_a_cycle_killed_at_any_write_ends_as_if_it_had_not_been(tmp_path, clock, after: bool):
    whole, writes = run_dying(tmp_path / "whole", clock, 10**6, after=False)
    assert writes > 2 * len(phase_names())
    last = writes if after else writes + 1
    for write in range(2, last):
        found, _ = run_dying(tmp_path / f"w{write}", clock, write, after=after)
        assert found[0] == whole[0], f"write {write}"
        for name in ("merge", "reflect", "contradict", "prune_fragments"):
            assert found[1][name].get("merged") == whole[1][name].get("merged")
            for counted in ("insights", "superseded", "conflicts", "pruned", "linked"):
                assert found[1][name].get(counted) == whole[1][name].get(counted), (write, name)


def test_a_cycle_goes_on_with_the_phase_it_was_in(database: Database, clock):
    full_world(database)

    def dies(name: str, _done: int, _total: int) -> None:
        if name == "reflect":
            raise Killed

    with pytest.raises(Killed):
        run_cycle(database, OFFLINE, progress=dies)
    seen: list[str] = []
    clock.advance(hours=1)
    report = run_cycle(database, OFFLINE, progress=lambda name, *_: seen.append(name))
    assert seen[0] == "reflect"
    assert [one.state for one in report.phases[1:]] == ["done"] * 8


def test_one_phase_alone_does_not_end_a_cycle_that_was_stopped(database: Database):
    World(database).add("a", "Some fact", None)

    def dies(_name: str, _done: int, _total: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        run_cycle(database, OFFLINE, progress=dies)
    assert len(run_cycle(database, OFFLINE, only=("rescore",)).phases) == 1
    run_cycle(database, OFFLINE)
    with database.read() as db:
        assert [len(one.phases) for one in cycles.newest(db, limit=5)] == [1, 9]
