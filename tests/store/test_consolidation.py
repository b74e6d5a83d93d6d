from __future__ import annotations

from datetime import timedelta

import pytest

from lore.records import PhaseReport
from lore.store import consolidation, fragments, project_rows, sessions
from lore.store.consolidation import Judgement, Step
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, Cycle, add_fragment, minutes, new_session, numbered_id


def test_a_cycle_stores_the_report_of_each_phase(db: Connection) -> None:
    n = consolidation.begin_cycle(db, ["merge", "link"], now=NOON)
    consolidation.save_phase(
        db, n, PhaseReport("merge", "done", {"merged": 2}, ("a → b",), "", 0.5)
    )
    report = consolidation.get_report(db, n)
    assert [(one.phase, one.state) for one in report.phases] == [
        ("merge", "done"),
        ("link", "pending"),
    ]
    assert report.phases[0].counts == {"merged": 2}
    assert (report.started_at, report.ended_at, report.undone) == (NOON, None, False)


def test_an_open_cycle_is_resumed_only_with_the_same_phases(db: Connection) -> None:
    n = consolidation.begin_cycle(db, ["merge", "link"], now=NOON)
    assert consolidation.find_open_cycle(db, ["merge"]) is None
    found = consolidation.find_open_cycle(db, ["merge", "link"])
    assert found is not None
    assert found.n == n
    consolidation.end_cycle(db, n, now=NOON)
    assert consolidation.find_open_cycle(db, ["merge", "link"]) is None


def test_the_last_cycle_that_was_not_undone_is_found(db: Connection) -> None:
    first = consolidation.begin_cycle(db, ["merge"], now=NOON)
    second = consolidation.begin_cycle(db, ["merge"], now=NOON)
    consolidation.mark_cycle_undone(db, second, now=NOON)
    last, standing = (
        consolidation.find_last_cycle(db),
        consolidation.find_last_cycle(db, not_undone=True),
    )
    assert (last.n, standing.n) == (second, first) if last and standing else False
    assert consolidation.get_report(db, second).undone


def test_reports_are_kept_for_a_month_and_while_they_can_be_undone(
    db: Connection,
) -> None:
    old = consolidation.begin_cycle(db, ["merge"], now=NOON)
    held = consolidation.begin_cycle(db, ["merge"], now=NOON)
    consolidation.record_steps(db, held, Step("depth", add_fragment(db, 1), value=1))
    later = NOON + timedelta(days=31)
    consolidation.end_cycle(db, consolidation.begin_cycle(db, ["merge"], now=later), now=later)
    kept = {row[0] for row in db.rows("SELECT n FROM cycles")}
    assert old not in kept
    assert held in kept
    assert consolidation.cycles_past_undo(db, now=later) == [held]


def test_progress_starts_at_zero_and_is_replaced(db: Connection) -> None:
    assert consolidation.get_progress(db, "merge") == 0
    consolidation.set_progress(db, "merge", 7)
    consolidation.set_progress(db, "merge", 9)
    assert (consolidation.get_progress(db, "merge"), consolidation.get_progress(db, "link")) == (
        9,
        0,
    )


def test_report_lines_with_an_id_or_a_text_are_redacted(db: Connection) -> None:
    n = consolidation.begin_cycle(db, ["merge", "link"], now=NOON)
    consolidation.save_phase(db, n, PhaseReport("link", "failed", reason="ValueError: a secret"))
    gone, kept = numbered_id(1), numbered_id(3)
    told = (f"{kept} → {gone} some words", f"{kept} A  Secret here", f"{kept} more")
    consolidation.save_phase(db, n, PhaseReport("merge", "done", told=told))
    consolidation.redact_reports(db, [gone], "a secret")
    merge, link = consolidation.get_report(db, n).phases
    assert merge.told == (f"{kept} more",)
    assert link.reason == ""


def test_steps_are_read_last_first_and_by_verb(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1)
    consolidation.record_steps(db, cycle.n, Step("depth", n, value=1), Step("hidden", n, at=7))
    cycle.recorder(db, Step("depth", n, value=2))
    assert [step.verb for step in consolidation.steps_of_cycle(db, cycle.n)] == [
        "depth",
        "hidden",
        "depth",
    ]
    assert [step.value for step in consolidation.steps_of_cycle(db, cycle.n, "depth")] == [2, 1]


def test_steps_of_a_fragment_have_the_times_of_their_cycles(db: Connection, cycle: Cycle) -> None:
    one, other = add_fragment(db, 1), add_fragment(db, 2)
    consolidation.record_steps(db, cycle.n, Step("depth", one, value=1), Step("hidden", other))
    assert consolidation.steps_of_fragment(db, one) == [(NOON, "depth")]


def test_the_steps_of_other_cycles_stay_when_some_are_dropped(db: Connection, cycle: Cycle) -> None:
    later = consolidation.begin_cycle(db, ["merge"], now=NOON)
    n = add_fragment(db, 1)
    consolidation.record_steps(db, cycle.n, Step("depth", n, value=1))
    consolidation.record_steps(db, later, Step("depth", n, value=2))
    consolidation.drop_steps(db, [cycle.n])
    assert consolidation.steps_of_cycle(db, cycle.n) == []
    assert len(consolidation.steps_of_cycle(db, later)) == 1


def test_a_later_judgement_replaces_the_former_one_of_a_pair(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    consolidation.put_judgements(db, [Judgement(a, b, "judge", "agrees", 1, 1)], now=NOON)
    consolidation.put_judgements(db, [Judgement(a, b, "judge", "changes", 2, 1)], now=NOON)
    assert consolidation.judgements_of(db, [a], "judge") == {
        (a, b): Judgement(a, b, "judge", "changes", 2, 1)
    }
    assert consolidation.judgements_of(db, [b], "judge") == {}
    assert consolidation.judgements_of(db, [a], "merge") == {}


def test_judgement_groups_are_keyed_by_their_first_fragment(db: Connection) -> None:
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    judged = [Judgement(a, n, "reflect", "insight") for n in (a, b, c)]
    consolidation.put_judgements(db, judged, now=NOON)
    assert consolidation.judgement_groups(db, "reflect") == {a: {a, b, c}}


def test_a_judgement_is_deleted_with_either_fragment(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    consolidation.put_judgements(db, [Judgement(a, b, "merge", "apart")], now=NOON)
    db.run("DELETE FROM items WHERE n = :n", n=b)
    assert consolidation.judgements_of(db, [a], "merge") == {}


def marked(db: Connection) -> list[int]:
    return [one.n for one in consolidation.fragments_missing_files(db)]


@pytest.fixture
def project_n(db: Connection) -> int:
    return project_rows.ensure_project(db, "/code/app", now=NOON)


def test_doubt_grows_by_a_tenth_per_day_after_a_week(db: Connection):
    consolidation.mark_missing_files(db, [add_fragment(db, 1)], [], now=NOON)
    for days, doubt in ((0, 0), (6.5, 0), (7, 0), (7.5, 0.05), (12, 0.5), (30, 1)):
        consolidation.update_doubt(db, now=NOON + timedelta(days=days))
        found = db.value("SELECT doubt FROM fragments")
        assert found == pytest.approx(doubt)


def test_files_stay_missing_since_they_were_first_missed(db: Connection, project_n: int):
    n = add_fragment(db, 1, project_n=project_n)
    consolidation.mark_missing_files(db, [n], [], now=NOON)
    consolidation.mark_missing_files(db, [n], [], now=NOON + timedelta(days=30))
    assert consolidation.update_doubt(db, now=NOON + timedelta(days=10)) == 1
    assert fragments.get(db, n).confidence == pytest.approx(0.7 - 0.3)


def test_doubt_ends_when_the_files_are_back(db: Connection, project_n: int):
    n = add_fragment(db, 1, project_n=project_n)
    consolidation.mark_missing_files(db, [n], [], now=NOON)
    consolidation.update_doubt(db, now=NOON + timedelta(days=30))
    assert marked(db) == [n]
    consolidation.mark_missing_files(db, [], [n], now=minutes(1))
    assert marked(db) == []
    assert fragments.get(db, n).confidence == pytest.approx(0.7)


def test_project_folders_have_the_files_of_all_sessions(db: Connection):
    for name, files in (("one", ("a.py", "b.py")), ("two", ("b.py", "c.py")), ("three", ())):
        sessions.describe_session(db, new_session(db, name, project="/code/app"), files=files)
    new_session(db, "elsewhere", project="/code/other")
    (folder,) = consolidation.project_folders(db)
    assert (folder.path, folder.files) == ("/code/app", frozenset({"a.py", "b.py", "c.py"}))


def test_fragments_that_name_a_file_are_found_by_phrase(db: Connection, project_n: int):
    named = add_fragment(db, 1, "Todos are kept in src/todos.ts by the store", project_n=project_n)
    add_fragment(db, 2, "The todos of ts are in src", project_n=project_n)
    add_fragment(db, 3, "Todos are kept in src/todos.ts", project_n=None)
    assert [one.n for one in consolidation.fragments_naming(db, project_n, "src/todos.ts")] == [
        named
    ]
    assert consolidation.fragments_naming(db, project_n, "/") == []
