"""Readers that are killed at any instant, and several of them at once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from lore.store import messages, sessions
from lore.store.database import open_database
from tests.transcripts import line

ROOT = Path(__file__).parents[2]
LINES = 400


def start(home: Path, talk: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.capture.slow_reader", str(home), str(talk)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def stored(home: Path) -> list[str]:
    database = open_database(home / "memory.db", busy_timeout_s=30, backups=None)
    with database.read() as db:
        n = sessions.find_session(db, "talk", agent="tiny")
        found = messages.messages_of_session(db, n) if n else []
        assert db.value("PRAGMA integrity_check") == "ok"
    database.close()
    assert [message.ordinal for message in found] == list(range(len(found)))
    return [message.parts[0].text for message in found]


def test_a_reader_that_is_killed_again_and_again_stores_each_line_once(tmp_path: Path):
    talk = tmp_path / "talk.jsonl"
    talk.write_bytes(b"".join(map(line, range(LINES))))
    kill_again_and_again(tmp_path, talk)


def test_a_reader_of_short_files_that_is_killed_stores_each_line_once(tmp_path: Path):
    talks = tmp_path / "talks"
    talks.mkdir()
    for first in range(0, LINES, 2):
        lines = (line(i, session="talk") for i in (first, first + 1))
        (talks / f"{first:04}.jsonl").write_bytes(b"".join(lines))
    kill_again_and_again(tmp_path, talks)


def kill_again_and_again(home: Path, talk: Path) -> None:
    expected = [f"line {i}" for i in range(LINES)]
    draw = random.Random(7)
    for _ in range(6):
        reader = start(home, talk)
        assert reader.stdout is not None
        for _ in range(draw.randrange(1, 8)):
            reader.stdout.readline()
        time.sleep(draw.random() * 0.01)
        reader.kill()
        reader.wait()
        reader.stdout.close()
        found = stored(home)
        assert found == expected[: len(found)]
    finished = start(home, talk)
    assert finished.communicate()[0].endswith("done\n")
    assert stored(home) == expected


def test_readers_at_once_store_each_line_once(tmp_path: Path):
    talk = tmp_path / "talk.jsonl"
    talk.write_bytes(b"".join(map(line, range(LINES))))
    readers = [start(tmp_path, talk) for _ in range(3)]
    assert all(reader.communicate()[0].endswith("done\n") for reader in readers)
    assert stored(tmp_path) == [f"line {i}" for i in range(LINES)]
