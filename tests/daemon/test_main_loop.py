"""The daemon in this process: turns, failures, clocks that jump, what it tells."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lore.daemon import server_address, status_file
from lore.daemon.main_loop import Clocks, Daemon, _take_lock
from lore.daemon.periodic_tasks import (
    PeriodicTask,
    Progress,
    ProgressBoard,
    Stopping,
    TaskResult,
    consolidate,
    embed,
    periodic_tasks,
)
from lore.daemon.server_address import ServerAddress
from lore.embed.embedder import NoEmbedder
from lore.errors import StoreFull
from lore.memory import Memory
from lore.proxy.address import KEY_FILE, find_address
from lore.settings import Settings
from tests.fakes import FakeEmbedder, FixedClock
from tests.store.samples import new_message

PRIVATE = "the heron nests at the quay"


class Ticks:
    """A clock that cannot be set, moved by the test."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def memory(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as opened:
        yield opened


def counting(name: str, counts: list[str], every_s: float = 10.0) -> PeriodicTask:
    def run(_memory: Memory, _stopping: object) -> TaskResult:
        counts.append(name)
        return TaskResult({"things": 2})

    return PeriodicTask(name, "counting", every_s, run)


def failing(name: str = "broken") -> PeriodicTask:
    def run(_memory: Memory, _stopping: object) -> TaskResult:
        raise ValueError(PRIVATE)

    return PeriodicTask(name, "failing", 10.0, run)


def take_due_turns(daemon: Daemon) -> None:
    for turn in daemon._schedule.due(daemon._clocks.monotonic()):
        daemon.take_turn(turn)


def test_a_failing_task_is_shown_and_stops_no_other(memory: Memory, tmp_path: Path):
    ran: list[str] = []
    ticks = Ticks()
    tasks = (failing(), counting("steady", ran))
    daemon = Daemon(memory, tasks, tmp_path, Clocks(FixedClock(), ticks))
    for _ in range(6):
        take_due_turns(daemon)
        ticks.now_s += 10
    daemon.tell()
    told = status_file._read(tmp_path)
    assert ran == ["steady"] * 6
    broken, steady = told.chores
    assert 1 < broken.failures < 6
    assert broken.last_error.startswith("ValueError in test_main_loop.py:")
    assert steady.failures == 0
    assert told.last_error.startswith("broken: ValueError")
    assert told.today == {"things": 12}


def test_contents_reach_neither_log_nor_status(memory: Memory, tmp_path: Path, caplog):
    caplog.set_level(logging.INFO, "lore")
    daemon = Daemon(memory, (failing(),), tmp_path)
    take_due_turns(daemon)
    daemon.tell()
    assert "task failed" in caplog.text
    assert PRIVATE not in caplog.text
    assert PRIVATE not in (tmp_path / status_file.STATUS_FILE).read_text()


@pytest.mark.parametrize("by", [{"days": 400}, {"days": -400}, {"hours": 9}])
def test_a_clock_jump_causes_neither_bursts_nor_gaps(
    memory: Memory, tmp_path: Path, by: dict[str, float]
):
    ran: list[str] = []
    ticks, wall = Ticks(), FixedClock()
    daemon = Daemon(memory, (counting("steady", ran),), tmp_path, Clocks(wall, ticks))
    take_due_turns(daemon)
    wall.advance(**by)
    take_due_turns(daemon)
    assert len(ran) == 1
    ticks.now_s += 10
    take_due_turns(daemon)
    take_due_turns(daemon)
    assert len(ran) == 2


def test_a_jump_of_the_clock_is_logged(memory: Memory, tmp_path: Path, caplog):
    caplog.set_level(logging.INFO, "lore")
    ticks, wall = Ticks(), FixedClock()
    daemon = Daemon(memory, (), tmp_path, Clocks(wall, ticks))
    before = daemon._apart_s()
    wall.advance(hours=8)
    before = daemon._notice_jump(before)
    daemon._notice_jump(before)
    assert [record.message for record in caplog.records] == ["clock moved"]


def test_daily_maintenance_runs_after_a_clock_was_far_ahead(tmp_path: Path):
    wall = FixedClock()
    wall.advance(days=900)
    (upkeep,) = [task for task in periodic_tasks(Settings()) if task.name == "upkeep"]
    with Memory.open(home=tmp_path, embedder=NoEmbedder(), now=wall) as memory:
        memory.database.write(lambda _db: None)
        assert upkeep.run(memory, lambda: False) == TaskResult()
        wall.advance(days=-900)
        assert upkeep.run(memory, lambda: False) == TaskResult({"upkeeps": 1})
        assert upkeep.run(memory, lambda: False) == TaskResult()
        wall.advance(days=1)
        assert upkeep.run(memory, lambda: False) == TaskResult({"upkeeps": 1})


def test_a_stop_closes_the_memory(memory: Memory, tmp_path: Path):
    ran: list[str] = []
    daemon = Daemon(memory, (counting("steady", ran),), tmp_path)
    assert daemon.run(lambda _timeout_s: bool(ran))
    told = status_file.read(tmp_path)
    assert (told.running, told.state) == (False, "stopped")
    with pytest.raises(Exception, match="closed"), memory.database.read():
        pass


def test_capture_embedding_and_jobs_go_on_while_a_cycle_runs(memory: Memory, tmp_path: Path):
    turns, may_end, board = Counter[str](), threading.Event(), ProgressBoard()

    def counted(task: PeriodicTask) -> PeriodicTask:
        def run(memory: Memory, stopping: Stopping) -> TaskResult:
            turns[task.name] += 1
            return task.run(memory, stopping)

        return replace(task, run=run, every_s=0.01)

    def run_cycle(_memory: Memory, stopping: Stopping) -> TaskResult:
        board.report("consolidate", "merge", 100, 1_000)
        board.report("consolidate", "merge", 250, 1_000)
        while not may_end.wait(0.01) and not stopping():
            pass
        return TaskResult()

    tasks = {task.name: counted(task) for task in periodic_tasks(Settings(), board=board)}
    tasks["consolidate"] = replace(tasks["consolidate"], run=run_cycle)
    daemon = Daemon(memory, list(tasks.values()), tmp_path, board=board)

    def is_done(_timeout_s: float) -> bool:
        daemon.tell()
        told = {task.name: task for task in status_file._read(tmp_path).chores}
        cycle = told["consolidate"]
        if not cycle.running or turns["capture"] < 3 or turns["embed"] < 3 or turns["jobs"] < 3:
            return False
        assert (cycle.part, cycle.done, cycle.total) == ("merge", 250, 1_000)
        assert cycle.eta_s is not None
        assert "consolidating" in status_file._read(tmp_path).state
        return True

    assert daemon.run(is_done)


def test_progress_measures_the_pace_of_each_part():
    ticks = Ticks()
    board = ProgressBoard(ticks)
    assert board.find("consolidate") is None
    board.report("consolidate", "merge", 0, 100)
    assert board.find("consolidate") == Progress("merge", 0, 100, None)
    ticks.now_s += 10
    board.report("consolidate", "merge", 25, 100)
    assert board.find("consolidate") == Progress("merge", 25, 100, 30.0)
    board.report("consolidate", "link", 0, 8)
    assert board.find("consolidate") == Progress("link", 0, 8, None)
    board.clear("consolidate")
    assert board.find("consolidate") is None


def test_a_cycle_and_the_embedding_report_their_progress(memory: Memory):
    reported: list[tuple[str, int, int]] = []

    def note(part: str, done: int, total: int) -> None:
        reported.append((part, done, total))

    memory.capture("talk", [new_message(f"word and {i}", i, key=str(i)) for i in range(70)])
    embed(memory, lambda: False, progress=note)
    assert ("items", 70, 70) in reported
    consolidate(memory, lambda: False, progress=note)
    assert {part for part, _, _ in reported} >= {"items", "digest", "merge", "prune_fragments"}


def test_work_that_does_not_end_is_aborted(memory: Memory, tmp_path: Path):
    stuck = threading.Event()
    begun = threading.Event()

    def hang(_memory: Memory, _stopping: object) -> TaskResult:
        begun.set()
        stuck.wait()
        return TaskResult()

    daemon = Daemon(memory, (PeriodicTask("stuck", "hanging", 1.0, hang),), tmp_path)
    assert not daemon.run(lambda _timeout_s: begun.wait(10))
    stuck.set()


def test_the_daemon_stops_without_its_lock_file(memory: Memory, tmp_path: Path):
    daemon = Daemon(memory, (), tmp_path)
    daemon._schedule.turns.append(
        daemon._schedule.of((counting("steady", []),), time.monotonic()).turns[0]
    )
    assert daemon.run(lambda _timeout_s: False, lambda: False)


def test_embedded_items_are_counted_across_a_restart(tmp_path: Path):
    tasks = [task for task in periodic_tasks(Settings()) if task.name == "embed"]
    for expected in (70, 140):
        with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
            said = [new_message(f"word{expected} and {i}", i, key=str(i)) for i in range(70)]
            memory.capture(f"talk {expected}", said)
            daemon = Daemon(memory, tasks, tmp_path)
            take_due_turns(daemon)
            daemon._count_queues()
            daemon.tell()
            told = status_file._read(tmp_path)
            assert (told.today, told.waiting) == ({"embedded": expected}, 0)


def test_a_quiet_session_gets_one_episode_until_it_continues(tmp_path: Path):
    wall = FixedClock()
    tasks = {task.name: task for task in periodic_tasks(Settings())}

    def work(memory: Memory) -> tuple[int, int]:
        queued = tasks["episodes"].run(memory, lambda: False).counts["episodes queued"]
        return queued, tasks["jobs"].run(memory, lambda: False).counts["jobs done"]

    with Memory.open(home=tmp_path, embedder=NoEmbedder(), now=wall) as memory:
        memory.capture("talk", [new_message("Please mend the lock file test", 0, key="1")])
        assert work(memory) == (1, 1)
        assert [kept.episode.goal for kept in memory.sessions.episodes()] == [
            "Please mend the lock file test"
        ]
        assert work(memory) == (0, 0)
        memory.capture("talk", [new_message("And the other one", 1, key="2")])
        assert work(memory) == (1, 1)
        assert work(memory) == (0, 0)


def test_a_full_disk_is_reported_and_survived(memory: Memory, tmp_path: Path):
    room: list[bool] = []

    def write(_memory: Memory, _stopping: object) -> TaskResult:
        if not room:
            msg = "There is no space left."
            raise StoreFull(msg)
        return TaskResult({"things": 1})

    ticks = Ticks()
    tasks = (PeriodicTask("write", "writing", 10.0, write),)
    daemon = Daemon(memory, tasks, tmp_path, Clocks(monotonic=ticks))
    take_due_turns(daemon)
    room.append(True)
    ticks.now_s += 20
    take_due_turns(daemon)
    daemon.tell()
    told = status_file._read(tmp_path)
    assert told.last_error == "write: There is no space left."
    assert (told.chores[0].failures, told.chores[0].last_error) == (0, "")


def test_the_address_of_a_killed_daemon_is_removed(memory: Memory, tmp_path: Path):
    same_pid = ServerAddress("127.0.0.1", 3207, os.getpid(), "0.1.0")
    (tmp_path / KEY_FILE).write_text("k" * 50)
    server_address.write(tmp_path, same_pid)
    with _take_lock(tmp_path, memory):
        assert find_address(str(tmp_path)) is None
        server_address.write(tmp_path, same_pid)
        assert find_address(str(tmp_path))
