"""The daemon as a real process, by its commands."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lore.daemon import daemon_lock, status_file
from lore.daemon.status_file import Status, TaskStatus
from lore.embed.embedder import NoEmbedder
from lore.errors import AlreadyRunning, StoreDamaged
from lore.memory import Memory
from lore.store import jobs
from lore.store.database import Connection
from tests.cli.conftest import PROGRAM, Outcome, environment, run_process
from tests.homes import keep_handshake
from tests.waiting import PATIENCE_S, eventually

SAID = "the heron nests at the northern quay"


@dataclass(frozen=True)
class Running:
    """A person's home folder with a memory in it, and the commands of the daemon."""

    person: Path

    @property
    def home(self) -> Path:
        return self.person / "memory"

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": str(self.person), "LORE_CAPTURE_POLL_INTERVAL_S": "1"}

    def __call__(self, *arguments: str) -> Outcome:
        if arguments[0] == "up":
            keep_handshake(self.home)
        return run_process(*arguments, home=self.home, env=self.env)

    def status(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self("status", "--json").works().out)
        return told

    def pid(self) -> int:
        holder = daemon_lock.find_holder(self.home)
        assert holder
        return holder.pid


@pytest.fixture
def lore(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    holder = daemon_lock.find_holder(running.home)
    if holder is not None:
        os.kill(holder.pid, signal.SIGKILL)


def append_message(person: Path, text: str, number: int = 1) -> None:
    """Let an agent write a line of its transcript."""
    folder = person / ".claude" / "projects" / "-code-demo"
    folder.mkdir(parents=True, exist_ok=True)
    session = "0b5b0a57-1c9c-4c55-8f4e-3f1f4a1d2c3b"
    line = {
        "type": "user",
        "sessionId": session,
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "parentUuid": None,
        "timestamp": datetime.now(UTC).isoformat(),
        "cwd": "/code/demo",
        "message": {"role": "user", "content": text},
    }
    with (folder / f"{session}.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def test_up_says_that_its_port_is_taken(lore: Running):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        lore("config", "server.port", str(port)).works()
        assert f"Port {port} was taken: the server uses" in lore("up", "--detach").works().err


def test_up_captures_transcripts_and_down_stops_the_daemon(lore: Running):
    append_message(lore.person, SAID)
    assert "is up" in lore("up", "--detach").works().out
    eventually(lambda: lore.status()["today"].get("messages") == 1)
    append_message(lore.person, "and the otter sleeps", 2)
    eventually(lambda: lore.status()["today"].get("messages") == 2)
    assert "otter" in lore("recall", "otter").works().out
    told = lore.status()
    assert told["running"]
    assert {task["name"] for task in told["chores"]} >= {"capture", "embed", "jobs", "upkeep"}
    assert told["memory_mb"] > 5
    assert "running" in lore("status").works().out
    assert "has stopped" in lore("down").works().out
    assert not lore.status()["running"]
    logged = lore("logs").works().out
    assert "task=capture" in logged
    assert "cut_off=False" in logged
    assert "heron" not in logged
    assert "otter" not in logged


def test_the_status_counts_hooks_while_the_daemon_runs(lore: Running):
    lore("up", "--detach").works()
    assert "hooks" not in lore("status").works().out
    prompt = {"session_id": "s", "cwd": "/code/demo", "prompt": "where does the heron nest?"}

    def run_hook() -> dict[str, int]:
        run_process(
            "hook", "UserPromptSubmit", home=lore.home, env=lore.env,
            stdin=json.dumps(prompt).encode(),
        ).works()  # fmt: skip
        counts: dict[str, int] = lore.status()["hooks"]
        return counts if any(counts.values()) else {}

    assert set(eventually(run_hook)) == {"answered", "nothing", "late", "told"}
    assert "without fitting memory" in lore("status").works().out
    lore("down").works()
    assert "hooks" not in lore("status").works().out


def test_status_shows_the_progress_of_long_work(lore: Running):
    lore.home.mkdir(mode=0o700)
    lock = daemon_lock.take_lock(lore.home, now=datetime.now(UTC), version="test")
    cycle = TaskStatus(
        "consolidate", 60, running=True, part="merge", done=250, total=1_000, eta_s=720.0
    )
    status_file.write(
        lore.home,
        Status(
            running=True, state="consolidating", pid=os.getpid(),
            chores=(TaskStatus("capture", 30), cycle),
        ),
    )  # fmt: skip
    told = lore("status").works().out
    assert told.count("merge: 250 of 1,000, about 12 min left") == 1
    shown = lore.status()["chores"][1]
    assert (shown["running"], shown["part"], shown["eta_s"]) == (True, "merge", 720.0)
    lock.release()


def test_stats_count_jobs_instead_of_listing_them(lore: Running):
    with Memory.open(home=lore.home, embedder=NoEmbedder()) as memory:
        now = memory.database.now()

        def add_jobs(db: Connection) -> None:
            for n in range(480):
                jobs.ensure(db, "distill", f"s{n}", total=1, now=now)

        memory.database.write(add_jobs)
    told = lore("stats").works().out
    assert "480 pending" in told
    assert len(told.splitlines()) < 20
    assert len(json.loads(lore("stats", "--json").works().out)["jobs"]) == 480


def test_doctor_checks_the_daemon_and_the_agents(lore: Running):
    lore("remember", SAID).works()
    lore("setup", "codex").works()
    lore("up", "--detach").works()

    def states() -> dict[str, str]:
        checks = json.loads(lore("doctor", "--json").out)
        return {check["name"]: check["state"] for check in checks}

    assert {"daemon": "ok", "codex": "ok"}.items() <= states().items()
    os.kill(lore.pid(), signal.SIGSTOP)
    assert states()["daemon"] == "broken"
    assert lore.status()["state"] == "hung"
    assert "does not answer" in lore("status").works().out
    assert lore("doctor").code == StoreDamaged.exit_code
    os.kill(lore.pid(), signal.SIGCONT)
    assert lore.status()["state"] != "hung"
    lore("down").works()
    assert states()["daemon"] == "ok"


def test_a_home_has_one_daemon(lore: Running):
    lore("up", "--detach").works()
    pid = lore.pid()
    assert f"pid {pid}" in lore("up").fails_with(AlreadyRunning.exit_code).err
    assert lore("up", "--detach").works().out == f"Lore is running already (pid {pid}).\n"
    assert lore.pid() == pid
    lore("down").works()


def test_without_a_daemon_commands_say_so_and_create_no_home(lore: Running):
    assert lore.status()["running"] is False
    assert "not running" in lore("status").works().out
    assert "not running" in lore("down").works().out
    assert "no log yet" in lore("logs").works().err
    assert not lore.home.exists()


def test_a_daemon_starts_after_the_former_was_killed(lore: Running):
    append_message(lore.person, SAID)
    lore("up", "--detach").works()
    eventually(lambda: lore.status()["today"].get("messages"))
    os.kill(lore.pid(), signal.SIGKILL)
    eventually(lambda: daemon_lock.find_holder(lore.home) is None)
    assert lore.status()["running"] is False
    append_message(lore.person, "and the otter sleeps", 2)
    lore("up", "--detach").works()
    eventually(lambda: "otter" in lore("recall", "otter").out)
    assert json.loads(lore("stats", "--json").works().out)["messages"] == 2
    lore("down").works()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_daemon_in_the_foreground_cleanly(lore: Running, number: signal.Signals):
    process = subprocess.Popen(
        [*PROGRAM, "up"],
        env=environment(lore.home, **lore.env, LORE_SERVER_PORT="0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert "is up" in process.stdout.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert daemon_lock.find_holder(lore.home) is None


def test_a_background_daemon_detaches_from_its_parent(lore: Running):
    lore("up", "--detach").works()
    pid = lore.pid()
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not show the files of a process")
    held = {Path(f"/proc/{pid}/fd/{number}").readlink() for number in (0, 1, 2)}
    assert held == {Path("/dev/null")}
    assert Path(f"/proc/{pid}/cwd").readlink() == lore.home
    assert os.getsid(pid) == pid
    lore("down").works()


STUBBORN = """
import signal, sys, time
from datetime import datetime, UTC
from pathlib import Path
from lore.daemon import daemon_lock
signal.signal(signal.SIGTERM, signal.SIG_IGN)
held = daemon_lock.take_lock(Path(sys.argv[1]), now=datetime.now(UTC), version="1")
print("held", flush=True)
time.sleep(120)
"""


def test_a_daemon_that_does_not_stop_is_killed_only_by_force(lore: Running):
    lore.home.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN, str(lore.home)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        process.stdout.readline()
        assert "--force" in lore("down").fails_with(12).err
        assert process.poll() is None
        lore("down", "--force").works()
        assert process.wait(PATIENCE_S) == -signal.SIGKILL


def test_down_does_not_signal_a_process_that_does_not_hold_the_lock(lore: Running):
    lore.home.mkdir()
    holding = [sys.executable, "-c", STUBBORN, str(lore.home)]
    with (
        subprocess.Popen(["sleep", "60"]) as stranger,
        subprocess.Popen(holding, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout
        process.stdout.readline()
        lock_file = lore.home / "lore.pid"
        lock_file.write_text(lock_file.read_text().replace(str(process.pid), str(stranger.pid), 1))
        assert "is not the daemon of this home" in lore("down", "--force").fails_with(12).err
        assert (stranger.poll(), process.poll()) == (None, None)
        process.kill()
        process.wait(PATIENCE_S)
        assert "not running" in lore("down", "--force").works().out
        assert stranger.poll() is None
        stranger.kill()


def test_jobs_are_listed_and_retried(lore: Running):
    lore("remember", "a fact").works()
    assert "No jobs" in lore("jobs").works().out
    assert json.loads(lore("jobs", "--json").works().out) == []
    assert "0 jobs" in lore("jobs", "retry", "--all").works().out
    lore("jobs", "retry", "7").fails_with(3)
    lore("jobs", "retry").fails_with(2)
    lore("jobs", "retry", "7", "--all").fails_with(2)


def test_service_install_has_a_dry_run(lore: Running):
    shown = lore("service", "install", "--dry-run").works()
    assert str(lore.home) in shown.out
    assert not (lore.person / ".config").exists()
    assert json.loads(lore("service", "status", "--json").works().out)["installed"] is False
    assert "nothing to remove" in lore("service", "uninstall").works().out


def test_the_log_is_followed(lore: Running):
    process = subprocess.Popen(
        [*PROGRAM, "logs", "-f", "-n", "0"],
        env=environment(lore.home, **lore.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lore("up", "--detach").works()
    assert process.stdout
    assert "started" in process.stdout.readline()
    lore("down").works()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
