"""The daemon on bad days: tasks that break or hang, homes that vanish, disks that are full."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lore.daemon import daemon_lock, status_file
from lore.embed.embedder import NoEmbedder
from lore.errors import StoreFull, StoreReadOnly
from lore.memory import Memory
from lore.store import jobs as job_store
from tests.cli.conftest import environment, run_process
from tests.store.samples import new_message
from tests.waiting import PATIENCE_S, eventually

PRIVATE = "the heron nests at the quay"

ALONE = {"LORE_GATEWAY_ON": "false"}
"""No agent needs this daemon to reach its model."""

SERVING = """
import os, sys, threading
from functools import partial
from pathlib import Path
from lore.daemon.periodic_tasks import PeriodicTask, TaskResult, run_jobs
from lore.daemon.main_loop import serve
from lore.settings import load

def breaks(memory, stopping):
    raise ValueError("the heron nests at the quay")

def hangs(memory, stopping):
    threading.Event().wait()

def steady(memory, stopping):
    with (Path(sys.argv[1]) / "beats").open("a") as file:
        file.write("x")
    return TaskResult({"beats": 1})

def bad_job(memory, job):
    raise ValueError("the heron nests at the quay")

TASKS = {
    "breaks": PeriodicTask("breaks", "breaking", 0.05, breaks),
    "hangs": PeriodicTask("hangs", "hanging", 0.05, hangs),
    "steady": PeriodicTask("steady", "beating", 0.05, steady),
    "jobs": PeriodicTask("jobs", "working", 0.05, partial(run_jobs, kinds={"bad": bad_job})),
}
ended = serve(
    load(home=Path(sys.argv[1])).settings,
    tasks=[TASKS[name] for name in sys.argv[2:]],
    on_ready=lambda notice: print("up", flush=True),
)
os._exit(0 if ended else 9)
"""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(*tasks: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVING, str(tmp_path / "home"), *tasks],
            env=environment(tmp_path / "home"),
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def beats(home: Path) -> int:
    path = home / "beats"
    return path.stat().st_size if path.exists() else 0


def test_a_task_that_breaks_each_time_leaves_the_others_alone(tmp_path: Path, serve):
    home = tmp_path / "home"
    process = serve("breaks", "steady")
    eventually(lambda: beats(home) >= 20)
    eventually(lambda: any(task.failures > 2 for task in status_file.read(home).chores))
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0
    assert status_file.read(home).last_error.startswith("breaks: ValueError in <string>:")
    for name in ("lore.log", "status.json"):
        assert PRIVATE not in (home / name).read_text()


def test_a_job_that_fails_is_parked_and_shown_and_its_input_is_kept(tmp_path: Path, serve):
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=NoEmbedder()) as memory:
        memory.capture("talk", [new_message("something to distil", 0, key="1")])
        database = memory.database
        database.write(lambda db: job_store.ensure(db, "bad", "talk", total=1, now=database.now()))
        serve("jobs", "steady")

        def has_parked() -> bool:
            database.write(lambda db: db.run("UPDATE jobs SET due_at = 0"))
            return [job.state for job in memory.digest.jobs()] == ["parked"]

        eventually(has_parked)
        (job,) = memory.digest.jobs()
        assert job.attempts == 5
        assert memory.maintenance.stats().messages == 1
    eventually(lambda: status_file.read(home).jobs_parked == 1)
    assert "1 parked" in run_process("status", home=home).works().out
    assert "parked" in run_process("jobs", home=home).works().out
    doctor = run_process("doctor", home=home).out
    assert "parked after 5 attempts" in doctor
    assert PRIVATE not in doctor


def test_a_task_that_hangs_does_not_keep_the_daemon_from_stopping(tmp_path: Path, serve):
    process = serve("hangs")
    eventually(lambda: status_file.read(tmp_path / "home").state == "hanging")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 9
    assert "cut_off=True" in (tmp_path / "home" / "lore.log").read_text()
    assert daemon_lock.find_holder(tmp_path / "home") is None


def test_a_daemon_whose_home_is_gone_stops(tmp_path: Path, serve):
    process = serve("steady")
    (tmp_path / "home").rename(tmp_path / "elsewhere")
    assert process.wait(PATIENCE_S) == 0


def test_many_that_start_at_once_leave_one(tmp_path: Path):
    home = tmp_path / "home"
    env = environment(home, HOME=str(tmp_path))
    command = [sys.executable, "-m", "lore.cli", "up"]
    started = [
        subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    eventually(lambda: sum(process.poll() is None for process in started) == 1)
    (alive,) = [process for process in started if process.poll() is None]
    eventually(lambda: daemon_lock.find_holder(home))
    holder = daemon_lock.find_holder(home)
    assert holder
    assert holder.pid == alive.pid
    alive.terminate()
    for process in started:
        process.communicate(timeout=PATIENCE_S)
    assert sorted(process.returncode for process in started) == [0, 12, 12, 12]


@pytest.mark.parametrize("how", [("up",), ("up", "--detach")])
def test_a_daemon_on_a_disk_that_cannot_be_written_says_so(disk: Path, how: tuple[str, ...]):
    home = disk / "home"
    run_process("remember", "a fact", home=home).works()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    run_process(*how, home=home, env=ALONE).fails_with(StoreReadOnly.exit_code)
    assert "not running" in run_process("status", home=home).works().out


@pytest.mark.parametrize("how", [("up",), ("up", "--detach")])
def test_a_daemon_on_a_full_disk_says_so(disk: Path, how: tuple[str, ...]):
    home = disk / "home"
    run_process("remember", "a fact", home=home).works()
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"\0" * 4096)
        except OSError:
            pass
    run_process(*how, home=home, env=ALONE).fails_with(StoreFull.exit_code)
