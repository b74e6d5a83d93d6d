from __future__ import annotations

from datetime import timedelta

from lore.records import PhaseReport
from lore.store import cycles, steps
from lore.store.sqlite import Connection
from lore.store.steps import Step
from tests.store.samples import NOON, add_fragment, numbered_id


def test_a_cycle_keeps_what_each_phase_did(db: Connection) -> None:
    n = cycles.begin(db, ["merge", "link"], now=NOON)
    cycles.save(db, n, PhaseReport("merge", "done", {"merged": 2}, ("a → b",), "", 0.5))
    report = cycles.get(db, n)
    assert [(one.phase, one.state) for one in report.phases] == [
        ("merge", "done"),
        ("link", "pending"),
    ]
    assert report.phases[0].counts == {"merged": 2}
    assert (report.started_at, report.ended_at, report.undone) == (NOON, None, False)


def test_an_open_cycle_goes_on_only_with_the_same_phases(db: Connection) -> None:
    n = cycles.begin(db, ["merge", "link"], now=NOON)
    assert cycles.find_open(db, ["merge"]) is None
    found = cycles.find_open(db, ["merge", "link"])
    assert found is not None
    assert found.n == n
    cycles.end(db, n, now=NOON)
    assert cycles.find_open(db, ["merge", "link"]) is None


def test_the_last_that_stands_is_found(db: Connection) -> None:
    first = cycles.begin(db, ["merge"], now=NOON)
    second = cycles.begin(db, ["merge"], now=NOON)
    cycles.mark_undone(db, second, now=NOON)
    last, standing = cycles.find_last(db), cycles.find_last(db, standing=True)
    assert (last.n, standing.n) == (second, first) if last and standing else False
    assert cycles.get(db, second).undone


def test_reports_are_kept_for_a_month_and_as_long_as_they_can_be_taken_back(
    db: Connection,
) -> None:
    old = cycles.begin(db, ["merge"], now=NOON)
    held = cycles.begin(db, ["merge"], now=NOON)
    steps.record(db, held, Step("depth", add_fragment(db, 1), value=1))
    later = NOON + timedelta(days=31)
    cycles.end(db, cycles.begin(db, ["merge"], now=later), now=later)
    kept = {row[0] for row in db.rows("SELECT n FROM cycles")}
    assert old not in kept
    assert held in kept
    assert cycles.beyond_undo(db, now=later) == [held]


def test_marks_begin_at_nothing_and_are_replaced(db: Connection) -> None:
    assert cycles.find_mark(db, "merge") == 0
    cycles.set_mark(db, "merge", 7)
    cycles.set_mark(db, "merge", 9)
    assert (cycles.find_mark(db, "merge"), cycles.find_mark(db, "link")) == (9, 0)


def test_lines_that_tell_of_an_id_or_say_a_text_are_dropped(db: Connection) -> None:
    n = cycles.begin(db, ["merge", "link"], now=NOON)
    cycles.save(db, n, PhaseReport("link", "failed", reason="ValueError: a secret"))
    gone, kept = numbered_id(1), numbered_id(3)
    told = (f"{kept} → {gone} some words", f"{kept} A  Secret here", f"{kept} more")
    cycles.save(db, n, PhaseReport("merge", "done", told=told))
    cycles.drop_lines(db, [gone], "a secret")
    merge, link = cycles.get(db, n).phases
    assert merge.told == (f"{kept} more",)
    assert link.reason == ""
