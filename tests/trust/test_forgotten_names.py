"""A forgotten name stays forgotten: of files, transcripts, agents, models and keys."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lore.daemon import periodic_tasks
from lore.embed.embedder import NoEmbedder
from lore.memory import Memory, restore_backup
from lore.records import NewMessage, Part, Spend
from lore.store import spend
from tests.store.samples import NOON

WORD = "oxymoronitis"


def line(number: int, text: str, folder: str, **block: Any) -> str:
    role = "assistant" if block else "user"
    content = [{"type": "text", "text": text}, *([block] if block else [])]
    told = {
        "type": role,
        "uuid": f"s1-{number}",
        "parentUuid": None,
        "sessionId": "s1",
        "cwd": folder,
        "timestamp": f"2026-11-01T10:00:{number:02}Z",
        "message": {"role": role, "content": content},
    }
    return json.dumps(told) + "\n"


def call(file: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": file}}


def write_transcript(folder: Path, way: str) -> Path:
    """Write a transcript that has the word wherever this way of forgetting reaches it."""
    project = f"/code/{WORD}" if way == "project" else "/code/clinic"
    path = folder / "agent" / ("-code-clinic" if way == "id" else f"-{WORD}") / "s1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(
        line(1, "please write a file", project)
        + line(2, "so I write it", project, **call(f"/code/notes/{WORD}.txt"))
        + line(3, "thanks and good bye", project)
    )
    return path


def forget(memory: Memory, way: str) -> None:
    if way == "match":
        memory.forget(match=WORD)
    elif way == "session":
        memory.forget(session="s1")
    elif way == "project":
        memory.forget(project=f"/code/{WORD}")
    else:
        for message in memory.sessions.messages("s1"):
            if any(WORD in part.text for part in message.parts):
                memory.forget(id=message.id)


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def extended(path: Path) -> None:
    path.write_text(path.read_text() + line(9, "one more thing about the weather", "/code/clinic"))


def rewritten(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_text(path.read_text() + line(8, "another inode, then", "/code/clinic"))
    copy.replace(path)


def traces(home: Path) -> list[str]:
    files = [path for path in home.rglob("*") if path.is_file()]
    return [path.name for path in files if WORD.encode() in path.read_bytes().lower()]


def opened(home: Path) -> Memory:
    return Memory.open(home=home, embedder=NoEmbedder())


@pytest.mark.parametrize(
    ("way", "change", "later"),
    list(
        itertools.product(
            ("match", "session", "project", "id"),
            (touched, extended, rewritten),
            ("capture", "restore", "import"),
        )
    ),
)
def test_no_way_back_brings_a_forgotten_name(
    tmp_path: Path, way: str, change: Callable[[Path], None], later: str
) -> None:
    transcript, home = write_transcript(tmp_path, way), tmp_path / "home"
    with opened(home) as memory:
        memory.capture_files([transcript])
        saved = memory.maintenance.backup(tmp_path / "saved.db")
        memory.sessions.export(tmp_path / "export.jsonl")
        assert traces(home)
        forget(memory, way)
        assert traces(home) == []
    if later == "restore":
        restore_backup(saved, home=home)
        assert traces(home) == []
    with opened(home) as memory:
        if later == "import":
            with (tmp_path / "export.jsonl").open("rb") as lines:
                memory.sessions.import_lines(lines)
        change(transcript)
        memory.capture_files([transcript])
        memory.capture_files([transcript])
        memory.database.checkpoint()
        if change is not touched:
            kept = 1 if way in ("session", "project") else 4
            assert len(memory.sessions.messages("s1")) == kept
    assert traces(home) == []


def test_models_agents_keys_and_pages_lose_a_forgotten_word(tmp_path: Path) -> None:
    home, code = tmp_path / "home", tmp_path / "code"
    code.mkdir()
    page = code / ".lore.md"
    agent = f"{WORD}-agent"
    said = [NewMessage("user", (Part("text", "hello"),), NOON, key="1")]
    with opened(home) as memory:
        memory.capture("s1", said, agent=agent, project=str(code), title=f"The {WORD}")
        for name in (f"{WORD} key", "another"):
            memory.access.create_key(name, scopes=["read"])
        usage = {"input": 1}
        spent = Spend(key="k", at=NOON, purpose="digest", model=f"{WORD}-4", usage=usage, usd=1.0)
        memory.database.write(lambda db: spend.add(db, spent, session_n=None, project_n=None))
        for text in (f"The {WORD} is treated\nwith patience", "Tests run in CI"):
            memory.store(text, project=str(code), kind="decision")
        memory.knowledge.share(memory.knowledge.plan_share(str(code), page), page)
        page.write_text(page.read_text() + f"\n## Facts\n\n- a colleague on {WORD.upper()}\n")
        saved = memory.maintenance.backup(tmp_path / "saved.db")
        assert memory.maintenance.preview_forget(match=WORD).pages == (page,)
        memory.forget(match=WORD)
        assert traces(home) == traces(code) == []
        assert "Tests run in CI" in page.read_text()
    restore_backup(saved, home=home)
    assert traces(home) == []
    with opened(home) as memory:
        memory.capture("s1", said, agent=agent, project=str(code), title=f"The {WORD}")
        memory.database.checkpoint()
        assert len(memory.sessions()) == 1
        assert [key.name for key in memory.access.list_keys()] == ["", "another"]
    assert traces(home) == []


def test_a_session_forgotten_after_its_name_stays_forgotten(tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = [NewMessage("user", (Part("text", "hello there"),), NOON, key="1")]
    with opened(home) as memory:
        memory.capture(WORD, said)
        memory.forget(match=WORD)
        memory.forget(session=memory.sessions()[0].id)
        memory.capture(WORD, said)
        assert memory.sessions() == []
    assert traces(home) == []


def test_an_older_page_does_not_bring_a_forgotten_entry_back(tmp_path: Path) -> None:
    page = tmp_path / ".lore.md"
    with opened(tmp_path / "home") as memory:
        memory.store(f"The {WORD} is treated", project=str(tmp_path), kind="decision")
        memory.knowledge.share(memory.knowledge.plan_share(str(tmp_path), page), page)
        older = page.read_text()
        memory.forget(match=WORD)
        page.write_text(older)
        assert memory.knowledge.read_shared(str(tmp_path), page) == []


def test_the_log_never_has_the_name_of_a_transcript(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "user" / ".claude" / "projects" / f"-code-{WORD}"
    folder.mkdir(parents=True)
    (folder / f"{WORD}.jsonl").write_text('{"type": "no such thing"}\n')
    (folder / f"{WORD}-2.jsonl").write_bytes(b"\xff\xfe broken\n")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    with Memory.open(home=tmp_path / "home", embedder=NoEmbedder()) as memory:
        captured = memory.capture_files()
        assert any(WORD in problem.path for problem in captured.problems)
        memory.database.write(lambda db: db.run("DELETE FROM watermarks"))
        periodic_tasks.capture(memory, lambda: False)
    assert "files not read" in caplog.text
    assert WORD not in " ".join(str(vars(record)) for record in caplog.records)
