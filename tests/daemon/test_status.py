"""The status file: written whole, read with care, believed only while the lock is held."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lore.daemon import daemon_lock, status_file
from lore.daemon.status_file import Status, TaskStatus, check_gateway
from tests.fakes import NOON

TOLD = Status(
    running=True,
    state="embedding",
    pid=1,
    since=NOON,
    waiting=7,
    last_error="embed: no model",
    last_error_at=NOON,
    today={"messages": 3},
    hooks={"answered": 2, "nothing": 1_000, "late": 0, "told": 4},
    chores=(TaskStatus("embed", 5.0, NOON, NOON, 0.1, 2, "no model"),),
)


def test_a_status_survives_a_round_trip(tmp_path: Path):
    assert status_file.write(tmp_path, TOLD)
    assert status_file._read(tmp_path) == TOLD
    assert (tmp_path / status_file.STATUS_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [status_file.STATUS_FILE]


def test_the_status_of_a_dead_daemon_is_stopped(tmp_path: Path):
    status_file.write(tmp_path, TOLD)
    read = status_file.read(tmp_path)
    assert (read.running, read.state, read.pid) == (False, "stopped", None)
    assert read.last_error == "embed: no model"


def test_a_daemon_without_a_status_is_starting(tmp_path: Path):
    status_file.write(tmp_path, replace(TOLD, pid=-1))
    held = daemon_lock.take_lock(tmp_path, now=NOON, version="1.2")
    read = status_file.read(tmp_path)
    held.release()
    assert (read.running, read.state, read.since, read.chores) == (True, "starting", NOON, ())


@pytest.mark.parametrize(
    "content",
    ["", "no json", "[]", '{"chores": 3}', '{"chores": [{"x": 1}]}', '{"since": "long ago"}'],
)
def test_an_invalid_status_file_is_ignored(tmp_path: Path, content: str):
    (tmp_path / status_file.STATUS_FILE).write_text(content)
    assert status_file.read(tmp_path) == Status()


def test_unknown_fields_are_ignored(tmp_path: Path):
    (tmp_path / status_file.STATUS_FILE).write_text('{"waiting": 4, "moon": "full"}')
    assert status_file.read(tmp_path).waiting == 4


def test_a_status_that_cannot_be_written_is_no_error(tmp_path: Path):
    assert not status_file.write(tmp_path / "gone", TOLD)


def test_hook_counts_are_described_once_there_are_any():
    words = status_file.describe_hooks(TOLD)
    assert words == (
        "2 given memory, 1,000 without fitting memory, 0 too late, 4 that only reported"
    )
    assert status_file.describe_hooks(Status(hooks={"answered": 0})) == ""


def test_a_starting_daemon_has_no_hook_counts(tmp_path: Path):
    status_file.write(tmp_path, replace(TOLD, pid=-1))
    held = daemon_lock.take_lock(tmp_path, now=NOON, version="1.2")
    assert status_file.read(tmp_path).hooks == {}
    held.release()


def test_resident_memory_is_measured():
    assert 5 < status_file.resident_mb() < 5_000


@pytest.mark.parametrize(("late", "state"), [(0, "ok"), (5, "ok"), (6, "degraded")])
def test_more_than_five_percent_late_requests_degrade_the_gateway(late: int, state: str):
    told = Status(running=True, requests=100, degraded={"late": late, "StoreBusy": 2})
    [check] = check_gateway(told, 150)
    assert check.detail.startswith("100 requests")
    assert check.state == state
    assert ("gateway.within_ms" in check.remedy) is (state == "degraded")


def test_an_unused_gateway_has_no_check():
    assert check_gateway(Status(running=True), 150) == []


def test_status_says_whose_vectors_serve_and_how_many_are_left():
    assert status_file.describe_vectors(Status(embedder="new")) == "new"
    changing = Status(embedder="old", next_embedder="new", next_waiting=1_200)
    words = status_file.describe_vectors(changing)
    assert words == "old serves; 1,200 items left to embed with new"
