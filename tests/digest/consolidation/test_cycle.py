"""The cycle runner, its lock, and the undo of a cycle."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.digest import fragment_edits as by_hand
from lore.digest.consolidation import cycle
from lore.digest.consolidation.cycle import PHASES, phase_names, run_cycle, undo_cycle
from lore.digest.consolidation.phase import CycleContext
from lore.errors import CycleRunning, InvalidInput, NotFound, ProviderUnavailable
from lore.store import consolidation, fragments
from lore.store.database import Database, open_database
from tests.digest.consolidation.samples import (
    CHAT,
    DIMENSION,
    OFFLINE,
    ListingSummarizer,
    ReflectiveSummarizer,
    World,
    axis,
    full_world,
    phase,
    soundness,
    state,
)
from tests.fakes import NOON, FixedClock


class FailingSummarizer(ReflectiveSummarizer):
    error: Exception = ZeroDivisionError("the text of a fragment")

    def reflect(self, cluster):
        raise self.error


class UnpaidSummarizer(FailingSummarizer):
    error = ProviderUnavailable("The provider refuses the key.", hint="Set another one.")


class AskedSummarizer(ListingSummarizer):
    @property
    def identity(self) -> str:
        return "some chat"

    def overview(self, root, children):
        pytest.fail("a dry run asks no chat")

    def reflect(self, cluster):
        pytest.fail("a dry run asks no chat")

    def judge(self, pairs):
        pytest.fail("a dry run asks no chat")


def test_the_phases_stand_in_the_order_of_the_table():
    assert phase_names() == (
        "learn", "digest", "rescore", "merge", "link", "resummarize", "reflect", "contradict",
        "prune_edges", "prune_fragments",
    )  # fmt: skip
    assert len(PHASES) == 10


def test_a_cycle_reports_every_phase_and_leaves_sound_trees(database: Database):
    full_world(database)
    report = run_cycle(database, CHAT)
    assert [one.phase for one in report.phases] == list(phase_names())
    counts = {one.phase: one.counts for one in report.phases if one.state == "done"}
    assert counts["merge"]["merged"] == 1
    assert counts["link"]["linked"] >= 1
    assert counts["resummarize"]["reworded"] >= 1
    assert counts["reflect"]["insights"] == 1
    assert (counts["contradict"]["superseded"], counts["contradict"]["conflicts"]) == (1, 1)
    assert counts["prune_edges"]["dropped"] == 1
    assert counts["prune_fragments"] == {"pruned": 1, "children moved": 1}
    assert phase(report, "digest").state == "skipped"
    assert soundness(database) == []


def test_repeated_cycles_converge(database: Database):
    full_world(database)
    run_cycle(database, OFFLINE)
    run_cycle(database, OFFLINE)
    before = state(database)
    report = run_cycle(database, OFFLINE)
    assert state(database) == before
    done = {name for one in report.phases for name in one.counts}
    assert done <= {"rescored", "compared", "near roots"}


def test_a_dry_run_counts_the_same_and_writes_nothing(database: Database):
    full_world(database)
    before = state(database)
    planned = run_cycle(database, OFFLINE, dry_run=True)
    assert planned.dry_run
    assert state(database) == before
    with database.read() as db:
        assert consolidation.find_last_cycle(db) is None
        assert db.value("SELECT count(*) FROM steps") == 0
        assert db.value("SELECT count(*) FROM judgements") == 0
    done = run_cycle(database, OFFLINE)
    for name in ("merge", "reflect", "prune_fragments"):
        assert phase(planned, name).counts == phase(done, name).counts, name


def test_a_dry_run_asks_no_chat(database: Database):
    full_world(database)
    report = run_cycle(database, CycleContext(AskedSummarizer()), dry_run=True)
    assert {one.state for one in report.phases} == {"done", "skipped"}
    assert phase(report, "reflect").counts["to ask"] == 1


def test_one_phase_can_be_run_alone(database: Database):
    full_world(database)
    report = run_cycle(database, OFFLINE, only=("prune_fragments",))
    assert [one.phase for one in report.phases] == ["prune_fragments"]
    assert phase(report, "prune_fragments").counts["pruned"] == 1


def test_a_phase_that_does_not_exist_is_refused_with_the_list(database: Database):
    with pytest.raises(InvalidInput) as refused:
        run_cycle(database, OFFLINE, only=("sleep",))
    assert "merge" in refused.value.hint


def test_a_phase_that_fails_is_reported_and_the_later_ones_run(database: Database):
    full_world(database)
    report = run_cycle(database, CycleContext(FailingSummarizer()))
    assert phase(report, "reflect").state == "failed"
    assert "ZeroDivisionError" in phase(report, "reflect").reason
    assert phase(report, "prune_fragments").state == "done"
    with database.read() as db:
        kept = consolidation.find_last_cycle(db)
    assert kept is not None
    assert kept.report == report


def test_foreign_error_is_reported_by_location_without_its_text(database: Database):
    full_world(database)
    reason = phase(run_cycle(database, CycleContext(FailingSummarizer())), "reflect").reason
    assert reason.startswith("ZeroDivisionError in test_cycle.py:")
    assert "fragment" not in reason


def test_own_error_is_reported_with_its_hint(database: Database):
    full_world(database)
    reason = phase(run_cycle(database, CycleContext(UnpaidSummarizer())), "reflect").reason
    assert reason == "The provider refuses the key. Set another one."


def test_a_dry_run_that_is_stopped_ends_early_and_says_what_is_left(database: Database):
    full_world(database)
    before = state(database)
    asked = iter(range(100))
    report = run_cycle(database, OFFLINE, dry_run=True, should_stop=lambda: next(asked) > 3)
    assert [one.phase for one in report.phases] == list(phase_names())
    assert report.phases[0].state != "pending"
    assert report.phases[-1].state == "pending"
    assert report.ended_at is None
    assert state(database) == before


def test_without_vectors_the_phases_that_need_them_say_so(database: Database):
    report = run_cycle(database, OFFLINE)
    for name in ("merge", "link", "contradict"):
        assert phase(report, name).state == "skipped"
        assert "vectors" in phase(report, name).reason


def test_progress_is_reported_for_every_phase(database: Database):
    full_world(database)
    told: list[tuple[str, int, int]] = []
    run_cycle(database, OFFLINE, progress=lambda *step: told.append(step))
    assert list(dict.fromkeys(name for name, _, _ in told)) == list(phase_names())
    assert all(done <= total for _, done, total in told)


def test_a_report_is_kept_and_comes_back_as_it_was(database: Database):
    full_world(database)
    report = run_cycle(database, OFFLINE)
    with database.read() as db:
        found = consolidation.find_cycle(db, report.id[:13])
        assert consolidation.recent_reports(db, limit=5) == [report]
    assert found is not None
    assert found.report == report


HOLDER = """
import sys, time
from pathlib import Path
from lore.digest.consolidation import cycle
with cycle.hold_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(database: Path) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(database)], stdout=subprocess.PIPE, text=True
    )
    assert started.stdout
    assert started.stdout.readline() == "held\n"
    return started


def test_a_second_cycle_says_who_runs_one_and_begins_nothing(database: Database):
    with holder(database.path) as other:
        try:
            with pytest.raises(CycleRunning, match=rf"\(pid {other.pid}\)"):
                run_cycle(database, OFFLINE)
            with pytest.raises(CycleRunning):
                undo_cycle(database)
        finally:
            other.kill()
    assert run_cycle(database, OFFLINE).ended_at


def test_killed_process_releases_the_lock(database: Database):
    with holder(database.path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert run_cycle(database, OFFLINE).ended_at


def test_a_dry_run_needs_no_lock(database: Database):
    with cycle.hold_lock(database.path):
        assert run_cycle(database, OFFLINE, dry_run=True).ended_at


def test_lock_is_released_after_use(database: Database):
    for _ in range(2):
        with (
            cycle.hold_lock(database.path),
            pytest.raises(CycleRunning),
            cycle.hold_lock(database.path),
        ):
            pass


def test_undo_of_a_cycle_restores_the_former_state(database: Database):
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
def test_any_memory_is_unchanged_after_a_cycle_and_its_undo(tmp_path_factory, seed: int):
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
    database.write(lambda db: fragments.decay_relevance(db, now=database.now()))


def test_next_cycle_does_not_repeat_undone_steps(database: Database, clock):
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


def test_after_a_day_a_cycle_cannot_be_undone_and_the_error_says_why(database: Database, clock):
    full_world(database)
    run_cycle(database, OFFLINE)
    clock.advance(hours=24)
    before = state(database)
    with pytest.raises(InvalidInput, match="one day only"):
        undo_cycle(database)
    assert state(database) == before


def test_cycle_can_be_undone_only_once(database: Database):
    full_world(database)
    report = run_cycle(database, OFFLINE)
    undo_cycle(database, report.id)
    with pytest.raises(InvalidInput, match="already"):
        undo_cycle(database, report.id)
    with pytest.raises(NotFound):
        undo_cycle(database)


def test_earlier_cycle_can_be_undone_before_a_later_one(database: Database, clock):
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


def test_undo_without_cycles_raises_an_error(database: Database):
    with pytest.raises(NotFound):
        undo_cycle(database)


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


def report_lines(database: Database) -> dict[str, Any]:
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
        run_cycle(mortal, CHAT)
    except Killed:
        pass
    finally:
        mortal.close()
    writes = mortal.writes
    database = open_database(path, busy_timeout_s=5, backups=None, now=clock)
    if writes == write:
        run_cycle(database, CHAT)
    with database.read() as db:
        assert len(consolidation.recent_reports(db, limit=5)) == 1, (
            "the cycle went on, none was begun beside it"
        )
        last = consolidation.find_last_cycle(db)
    assert last is not None
    assert last.report.ended_at is not None
    counts = {one.phase: one.counts for one in last.report.phases}
    result = (report_lines(database), counts)
    assert soundness(database) == []
    assert undo_cycle(database).left == 0
    database.close()
    return result, writes


@pytest.mark.parametrize("after", [False, True])
def test_cycle_killed_at_any_write_resumes_to_the_same_result(tmp_path, clock, after: bool):
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
        run_cycle(database, CHAT, progress=dies)
    seen: list[str] = []
    clock.advance(hours=1)
    report = run_cycle(database, CHAT, progress=lambda name, *_: seen.append(name))
    assert seen[0] == "reflect"
    assert [one.state for one in report.phases[2:]] == ["done"] * 8


def test_one_phase_alone_does_not_end_a_cycle_that_was_stopped(database: Database):
    World(database).add("a", "Some fact", None)

    def dies(_name: str, _done: int, _total: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        run_cycle(database, CHAT, progress=dies)
    assert len(run_cycle(database, OFFLINE, only=("rescore",)).phases) == 1
    run_cycle(database, OFFLINE)
    with database.read() as db:
        assert [len(one.phases) for one in consolidation.recent_reports(db, limit=5)] == [1, 10]
