"""What is forgotten stays forgotten although an agent's files still have it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore.embed.embedder import NoEmbedder
from lore.memory import Memory, restore_backup

WORD = "oxymoronitis"


def line(number: int, text: str, session: str = "s1", **fields: Any) -> str:
    told = {
        "type": "user",
        "uuid": f"{session}-{number}",
        "parentUuid": None,
        "sessionId": session,
        "cwd": "/code/clinic",
        "timestamp": f"2026-11-01T10:00:{number:02}Z",
        "message": {"role": "user", "content": text},
        **fields,
    }
    return json.dumps(told) + "\n"


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "p" / "s1.jsonl"
    path.parent.mkdir()
    path.write_text(
        line(1, f"Please write to my doctor about the {WORD} diagnosis")
        + line(2, "thanks, good bye and see you tomorrow")
    )
    return path


@pytest.fixture
def memory(tmp_path: Path, talk: Path) -> Iterator[Memory]:
    with Memory.open(home=tmp_path / "home", embedder=NoEmbedder()) as memory:
        memory.capture_files([talk])
        yield memory


def traces(memory: Memory) -> list[str]:
    """Return the files of the home that have the word in them."""
    memory.database.write(lambda db: None)
    memory.database.checkpoint()
    files = [path for path in memory.settings.home.rglob("*") if path.is_file()]
    return [path.name for path in files if WORD.encode() in path.read_bytes().lower()]


def capture_again(memory: Memory, talk: Path, more: str = "") -> None:
    talk.write_text(talk.read_text() + (more or line(3, "one more thing about the weather")))
    memory.capture_files([talk])


def test_a_session_is_called_by_its_first_request_before_that(memory: Memory):
    assert WORD in memory.sessions()[0].title
    assert traces(memory) == ["memory.db"]


def test_a_forgotten_session_does_not_come_back_by_its_title(memory: Memory, talk: Path):
    memory.forget(session="s1")
    assert traces(memory) == []
    talk.touch()
    memory.capture_files([talk])
    assert traces(memory) == []
    assert memory.sessions() == []


def test_a_forgotten_session_goes_on_with_what_is_new(memory: Memory, talk: Path):
    memory.forget(session="s1")
    capture_again(memory, talk)
    assert [m.parts[0].text for m in memory.sessions.messages("s1")] == [
        "one more thing about the weather"
    ]
    assert traces(memory) == []


def test_a_forgotten_message_takes_the_title_with_it(memory: Memory, talk: Path):
    memory.forget(id=memory.sessions.messages("s1")[0].id)
    assert memory.sessions()[0].title == ""
    assert traces(memory) == []
    capture_again(memory, talk)
    assert traces(memory) == []
    assert len(memory.sessions.messages("s1")) == 2


def test_a_forgotten_text_does_not_come_back_by_an_agent_s_title_or_branch(
    memory: Memory, talk: Path
):
    titled = json.dumps({"type": "ai-title", "aiTitle": f"On {WORD}", "sessionId": "s1"}) + "\n"
    capture_again(memory, talk, line(3, "more", gitBranch=f"fix/{WORD}") + titled)
    memory.forget(match=WORD)
    assert traces(memory) == []
    capture_again(memory, talk, line(4, "and more", gitBranch=f"fix/{WORD}"))
    assert traces(memory) == []
    assert len(memory.sessions.messages("s1")) == 3


def test_a_session_whose_name_was_forgotten_goes_on_as_one(memory: Memory, tmp_path: Path):
    talk = tmp_path / "p" / "named.jsonl"
    name = f"{WORD}-talk"
    talk.write_text(line(1, "hello there, please", name) + line(2, "and more of it", name))
    memory.capture_files([talk])
    memory.forget(match=WORD)
    before = {session.id: session for session in memory.sessions()}
    talk.write_text(talk.read_text() + line(3, "at last", name))
    memory.capture_files([talk])
    assert before.keys() == {session.id for session in memory.sessions()}
    counts = sorted(len(memory.sessions.messages(id_)) for id_ in before)
    assert counts[-1] == 3
    assert not any(WORD in session.external_id for session in memory.sessions())


def test_a_fork_does_not_bring_a_forgotten_request_back_as_its_title(memory: Memory, talk: Path):
    memory.forget(id=memory.sessions.messages("s1")[0].id)
    fork = talk.with_name("s2.jsonl")
    copied = talk.read_text().replace('"sessionId": "s1"', '"sessionId": "s2"')
    fork.write_text(copied + line(9, "please water the plants in the hall", "s2"))
    memory.capture_files([fork])
    assert traces(memory) == []
    assert [m.parts[0].text for m in memory.sessions.messages("s2")][-1].startswith("please water")


def test_a_restored_copy_brings_no_forgotten_title_back(tmp_path: Path, talk: Path):
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=NoEmbedder()) as memory:
        memory.capture_files([talk])
        saved = memory.maintenance.backup(tmp_path / "saved.db")
        memory.forget(match=WORD)
    restore_backup(saved, home=home)
    with Memory.open(home=home, embedder=NoEmbedder()) as memory:
        assert not any(WORD in session.title for session in memory.sessions())
        assert not any(WORD in m.parts[0].text for m in memory.sessions.messages("s1"))
