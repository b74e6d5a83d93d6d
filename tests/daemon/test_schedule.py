"""The schedule: no bursts, no task that waits for ever, whatever the clock does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.daemon.periodic_tasks import LONGEST_DELAY_S, PeriodicTask, Schedule, TaskResult


def task(name: str = "sweep", every_s: float = 30.0) -> PeriodicTask:
    return PeriodicTask(name, "sweeping", every_s, lambda _memory, _stopping: TaskResult())


def test_every_task_is_due_at_the_start_in_the_given_order():
    schedule = Schedule.of((task("a", 5), task("b", 60)), 100.0)
    assert [turn.task.name for turn in schedule.due(100.0)] == ["a", "b"]


def test_a_task_runs_again_one_interval_after_it_ended():
    schedule = Schedule.of((task(),), 0.0)
    (turn,) = schedule.due(0.0)
    schedule.ran(turn, 12.0)
    assert schedule.due(41.9) == []
    assert schedule.pause_s(40.0) == 2.0
    assert schedule.due(42.0) == [turn]


def test_missed_runs_are_not_repeated_after_a_sleep():
    schedule = Schedule.of((task(),), 0.0)
    (turn,) = schedule.due(8 * 3600.0)
    schedule.ran(turn, 8 * 3600.0)
    assert schedule.due(8 * 3600.0 + 1) == []


def test_a_task_with_more_to_do_is_due_at_once():
    schedule = Schedule.of((task(),), 0.0)
    schedule.ran(schedule.turns[0], 1.0, more=True)
    assert schedule.pause_s(1.0) == 0


def test_a_task_that_fails_runs_less_often_but_never_stops():
    schedule = Schedule.of((task(every_s=5),), 0.0)
    turn = schedule.turns[0]
    delays = []
    for _ in range(12):
        schedule.ran(turn, 0.0, failed=True)
        delays.append(turn.due_s)
    assert delays[:3] == [10, 20, 40]
    assert delays[-1] == LONGEST_DELAY_S
    schedule.ran(turn, 0.0)
    assert turn.due_s == 5


def test_a_rare_task_that_fails_does_not_become_more_frequent():
    schedule = Schedule.of((task(every_s=7200),), 0.0)
    schedule.ran(schedule.turns[0], 0.0, failed=True)
    assert schedule.turns[0].due_s == 7200


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20))
def test_no_wait_is_negative_or_longer_than_the_longest_delay(moments: list[float]):
    schedule = Schedule.of((task(),), 0.0)
    for moment in moments:
        assert 0 <= schedule.pause_s(moment) <= LONGEST_DELAY_S
        for turn in schedule.due(moment):
            schedule.ran(turn, moment)
            assert schedule.due(moment) == []
