"""The command that brings conversations in."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import PROGRAM, Lore, environment
from tests.waiting import eventually


def said(i: int, role: str = "user", **fields: Any) -> str:
    at = f"2026-05-13T12:{i // 60 % 60:02}:{i % 60:02}Z"
    told = {"role": role, "content": f"heron number {i}", "id": f"m{i}", "timestamp": at}
    return json.dumps({**told, **fields}) + "\n"


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(map(said, range(4))))
    return path


def test_a_file_is_brought_in_and_found_at_once(lore: Lore, talk: Path):
    done = lore("capture", str(talk)).works()
    assert done.out.startswith("4 messages stored, 0 known, in 1 session of 1 file.")
    assert "1 file to read, 0.0 MB" in done.err
    assert "heron number 2" in lore("recall", "heron number 2").works().out


def test_a_second_time_brings_nothing_new(lore: Lore, talk: Path):
    lore("capture", str(talk)).works()
    os.utime(talk, (1, 1))
    assert "0 messages stored, 4 known" in lore("capture", str(talk)).works().out
    again = lore("capture", str(talk)).works()
    assert "0 messages stored, 0 known" in again.out
    assert "Nothing has changed" in again.err


def test_a_folder_is_searched_for_transcripts(lore: Lore, talk: Path, tmp_path: Path):
    (tmp_path / "notes.txt").write_text("not for agents")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "other.jsonl").write_text(said(9) + "torn {\n")
    found = json.loads(lore("capture", str(tmp_path), "--json").works().out)
    assert (found["files"], found["added"], found["sessions"]) == (2, 5, 2)
    assert found["skipped"] == {"not JSON": 1}
    assert [problem["problem"] for problem in found["problems"]] == ["has lines that are not JSON"]


def test_files_of_a_folder_that_nobody_can_read_are_counted(lore: Lore, talk: Path, tmp_path: Path):
    folder = tmp_path / "kept"
    folder.mkdir()
    talk.rename(folder / talk.name)
    (folder / "other.jsonl").write_text(said(9) + "torn {\n")
    (folder / "packed.jsonl.gz").write_bytes(b"\x1f\x8b\x08 packed")
    out = lore("capture", str(folder)).works().out
    assert "5 messages stored" in out
    assert "has lines that are not JSON" in out
    assert re.search(r"passed over +1 that are not known transcripts", out)


def test_everything_of_the_agents_is_found_below_the_home(lore: Lore, tmp_path: Path):
    place = tmp_path / ".claude" / "projects" / "app"
    place.mkdir(parents=True)
    told = {
        "type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s1", "cwd": "/code/app",
        "timestamp": "2026-05-13T12:00:00Z", "message": {"role": "user", "content": "fix it"},
    }  # fmt: skip
    (place / "s1.jsonl").write_text(json.dumps(told) + "\n" + '{"type": "progress"}\n')
    done = lore("capture", "--all", env={"HOME": str(tmp_path)}).works()
    assert "1 message stored" in done.out
    assert "/code/app" in lore("stats").works().out


def test_folders_that_tools_fill_are_not_read(lore: Lore, tmp_path: Path):
    for folder in ("node_modules", ".venv", "talks"):
        (tmp_path / "code" / folder).mkdir(parents=True)
        (tmp_path / "code" / folder / "talk.jsonl").write_text(said(1))
    found = json.loads(lore("capture", str(tmp_path / "code"), "--json").works().out)
    [file] = found["each"]
    assert file["path"].endswith("talks/talk.jsonl")
    assert (file["added"], file["known"], file["sessions"]) == (1, 0, ["talk"])


def test_what_was_captured_is_named_with_the_way_back(lore: Lore, talk: Path):
    told = lore("capture", str(talk), "--verbose").works().out
    assert str(talk) in told
    assert "'lore forget --session talk' takes it out again." in told
    lore("forget", "--session", "talk", "--yes").works()
    assert _count(lore) == 0


def test_a_machine_without_transcripts_is_told_where_was_looked(lore: Lore, tmp_path: Path):
    done = lore("capture", "--all", env={"HOME": str(tmp_path)}).works()
    assert "No transcripts found in ~/.claude/projects" in done.err


def test_files_that_are_all_older_are_not_said_to_be_known(lore: Lore, talk: Path):
    os.utime(talk, (1, 1))
    assert "No file is that new" in lore("capture", str(talk), "--since", "today").works().err


def test_a_dry_run_writes_nothing(lore: Lore, talk: Path):
    done = lore("capture", str(talk), "--dry-run").works()
    assert "4 messages would be stored" in done.out
    assert not lore.home.exists()
    lore("capture", str(talk)).works()
    before = lore.export()
    talk.write_text(talk.read_text() + said(4))
    assert "1 message would be stored" in lore("capture", str(talk), "--dry-run").works().out
    assert lore.export() == before


def test_secrets_are_taken_out_and_shown_on_request(lore: Lore, tmp_path: Path):
    secret = "ghp_" + "a1B2" * 9
    talk = tmp_path / "keys.jsonl"
    content = f"hello\nmy token is {secret} ok, once more {secret}\nPGPASSWORD=Gr4nite!Owl psql"
    talk.write_text(said(1, content=content))
    done = lore("capture", str(talk), "--dry-run", "--show-redactions").works()
    shown = [line.split(maxsplit=2) for line in done.out.splitlines()]
    (first,) = (line for line in shown if line[:2] == ["2", "github"])
    assert re.fullmatch(r"my token is (\[secret:github:\w{8}\]) ok, once more \1", first[2])
    (second,) = (line for line in shown if line[:2] == ["1", "password"])
    assert re.fullmatch(r"PGPASSWORD=\[secret:password:\w{8}\] psql", second[2])
    assert str(talk) in done.out
    assert "hello" not in done.out
    assert secret not in done.out
    assert "Gr4nite" not in done.out
    told = json.loads(
        lore("capture", str(talk), "--dry-run", "--show-redactions", "--json").works().out
    )
    assert [(place["kind"], place["count"]) for place in told["redacted"]] == [
        ("github", 2), ("password", 1),
    ]  # fmt: skip
    lore("capture", str(talk)).works()
    assert secret not in lore("export").works().out


def test_only_files_written_since_a_day_are_read(lore: Lore, talk: Path):
    os.utime(talk, (1_700_000_000, 1_700_000_000))
    assert "0 messages" in lore("capture", str(talk), "--since", "2026-01-01").works().out
    assert "4 messages" in lore("capture", str(talk), "--since", "2023-01-01").works().out
    lore("capture", str(talk), "--since", "whenever").fails_with(2)


def test_what_cannot_be_read_is_told_with_its_code(lore: Lore, talk: Path, tmp_path: Path):
    lore("capture").fails_with(2)
    lore("capture", str(talk), "--all").fails_with(2)
    lore("capture", str(tmp_path / "nothing")).fails_with(3)
    (tmp_path / "link.jsonl").symlink_to(talk)
    failed = lore("capture", str(tmp_path / "link.jsonl"))
    assert failed.code == 11
    assert "symbolic link" in failed.err
    (tmp_path / "notes.txt").write_text("hello")
    assert lore("capture", str(tmp_path / "notes.txt")).code == 11


def test_an_interrupted_capture_goes_on_where_it_stopped(lore: Lore, tmp_path: Path):
    talk = tmp_path / "long.jsonl"
    with talk.open("w") as stream:
        stream.writelines(said(i, content=f"heron {i} " + "word " * 200) for i in range(20_000))
    running = subprocess.Popen(
        [*PROGRAM, "capture", str(talk)],
        env=environment(lore.home),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    eventually(lambda: _count(lore))
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert b"messages stored; run it again to go on." in err
    assert err.count(b"lore: ") == 2, "what is to be read, and how far that came"
    before = _count(lore)
    assert 0 < before < 20_000
    found = json.loads(lore("capture", str(talk), "--json").works().out)
    assert (found["added"], found["known"]) == (20_000 - before, 0)


def _count(lore: Lore) -> int:
    if not (lore.home / "memory.db").exists():
        return 0
    outcome = lore("stats", "--json")
    return int(json.loads(outcome.out)["messages"]) if outcome.code == 0 else 0
