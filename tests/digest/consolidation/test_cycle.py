"""The runner: every phase reported, none stopped by another, nothing written in a dry run."""

from __future__ import annotations

import pytest

from lore.digest.consolidation.cycle import PHASES, phase_names, run_cycle
from lore.digest.consolidation.phase import Means
from lore.errors import InvalidInput, ProviderUnavailable
from lore.llm.offline.digester import OfflineDigester
from lore.store import cycles
from lore.store.db import Database
from tests.digest.consolidation.samples import OFFLINE, full_world, phase, soundness, state


class FailingDigester(OfflineDigester):
    error: Exception = ZeroDivisionError("the text of a fragment")

    def reflect(self, cluster):
        raise self.error


class UnpaidDigester(FailingDigester):
    error = ProviderUnavailable("The provider refuses the key.", hint="Set another one.")


class AskedDigester(OfflineDigester):
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
        "digest", "rescore", "merge", "link", "resummarize", "reflect", "contradict",
        "prune_edges", "prune_fragments",
    )  # fmt: skip
    assert len(PHASES) == 9


def test_a_cycle_reports_every_phase_and_leaves_sound_trees(database: Database):
    full_world(database)
    report = run_cycle(database, OFFLINE)
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


def test_a_memory_comes_to_rest(database: Database):
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
        assert cycles.find_last(db) is None
        assert db.value("SELECT count(*) FROM steps") == 0
        assert db.value("SELECT count(*) FROM judgements") == 0
    done = run_cycle(database, OFFLINE)
    for name in ("merge", "reflect", "prune_fragments"):
        assert phase(planned, name).counts == phase(done, name).counts, name


def test_a_dry_run_asks_no_chat(database: Database):
    full_world(database)
    report = run_cycle(database, Means(AskedDigester()), dry_run=True)
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


def test_a_phase_that_fails_is_told_and_the_later_ones_go_on(database: Database):
    full_world(database)
    report = run_cycle(database, Means(FailingDigester()))
    assert phase(report, "reflect").state == "failed"
    assert "ZeroDivisionError" in phase(report, "reflect").reason
    assert phase(report, "prune_fragments").state == "done"
    with database.read() as db:
        kept = cycles.find_last(db)
    assert kept is not None
    assert kept.report == report


def test_what_a_foreign_error_says_is_not_kept_but_where_it_came_from(database: Database):
    full_world(database)
    reason = phase(run_cycle(database, Means(FailingDigester())), "reflect").reason
    assert reason.startswith("ZeroDivisionError in test_cycle.py:")
    assert "fragment" not in reason


def test_what_an_error_of_our_own_says_is_kept_with_its_hint(database: Database):
    full_world(database)
    reason = phase(run_cycle(database, Means(UnpaidDigester())), "reflect").reason
    assert reason == "The provider refuses the key. Set another one."


def test_a_dry_run_that_is_stopped_ends_early_and_says_what_is_left(database: Database):
    full_world(database)
    before = state(database)
    asked = iter(range(100))
    report = run_cycle(database, OFFLINE, dry_run=True, stopping=lambda: next(asked) > 3)
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


def test_progress_is_told_for_every_phase(database: Database):
    full_world(database)
    told: list[tuple[str, int, int]] = []
    run_cycle(database, OFFLINE, progress=lambda *step: told.append(step))
    assert list(dict.fromkeys(name for name, _, _ in told)) == list(phase_names())
    assert all(done <= total for _, done, total in told)


def test_a_report_is_kept_and_comes_back_as_it_was(database: Database):
    full_world(database)
    report = run_cycle(database, OFFLINE)
    with database.read() as db:
        found = cycles.find(db, report.id[:13])
        assert cycles.newest(db, limit=5) == [report]
    assert found is not None
    assert found.report == report
