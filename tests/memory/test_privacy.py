"""What a person keeps out of memory: private spans and excluded folders, at every way in."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput
from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.settings import Settings
from lore.tools.search_tools import RecallArguments, recall
from lore.tools.tool import Caller
from lore.tools.write_tools import StoreArguments, store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CANARY = "zebrafish"


def opened(home: Path, **values: object) -> Memory:
    settings = Settings(home=home, **values)  # type: ignore[arg-type]
    return Memory.open(config=settings, embedder=NoEmbedder(), now=lambda: NOON)


def said(text: str) -> NewMessage:
    return NewMessage("user", (Part("text", text),), NOON)


def transcript(path: Path, folder: str, text: str) -> Path:
    line = {
        "type": "user", "uuid": "u1", "sessionId": "s-file", "cwd": folder, "version": "2.0.0",
        "timestamp": "2026-03-01T11:00:00.000Z", "message": {"role": "user", "content": text},
    }  # fmt: skip
    path.write_text(json.dumps(line) + "\n")
    return path


def asking(query: str, *, everywhere: bool = False) -> RecallArguments:
    return RecallArguments.model_validate({"query": query, "everywhere": everywhere})


def bytes_of(home: Path) -> bytes:
    return b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_a_private_span_is_stored_nowhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    text = f"Deploy on Fridays. <private>the pet is a {CANARY}</private> Thanks."
    with opened(home) as memory:
        memory.capture("s-push", [said(text)], title=f"<private>{CANARY}</private> plan")
        file = transcript(tmp_path / "s-file.jsonl", "/code/open", text)
        memory.sessions.capture_files([file])
        memory.remember(f"The release is on Friday. <private>{CANARY}</private>")
        memory.recall(f"who is it <private>{CANARY}</private> deploy")
        (stored,) = memory.sessions.messages("s-push")
        assert stored.parts[0].text == "Deploy on Fridays. [private] Thanks."
        assert memory.recall("deploy Fridays").hits
    assert CANARY.encode() not in bytes_of(home)


def test_an_excluded_folder_is_stored_by_no_way_in(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with opened(home, capture_exclude=("/code/secret*",)) as memory:
        file = transcript(tmp_path / "s-file.jsonl", "/code/secret/src", f"a {CANARY} text")
        memory.sessions.capture_files([file])
        assert memory.capture("s-push", [said(CANARY)], project="/code/secret") == []
        with pytest.raises(InvalidInput, match=r"capture\.exclude"):
            store(
                memory,
                StoreArguments.model_validate({"content": CANARY}),
                Caller(project="/code/secret"),
            )
        assert memory.capture("s-open", [said("kept")], project="/code/open")
        assert memory.maintenance.stats().sessions == 1
    assert CANARY.encode() not in bytes_of(home)


def test_recall_quotes_another_project_only_if_its_own_has_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as memory:
        memory.capture("a", [said("The deploy script is called ship.sh")], project="/code/a")
        memory.capture("b", [said("The deploy script is called launch.py")], project="/code/b")
        memory.capture("b", [said("Penguins are served at noon")], project="/code/b")
        question = asking("what is the deploy script called")
        here = recall(memory, question, Caller(project="/code/a")).text
        assert "ship.sh" in here
        assert "launch.py" not in here
        everywhere = asking(question.query, everywhere=True)
        assert "launch.py" in recall(memory, everywhere, Caller(project="/code/a")).text
        elsewhere = asking("when are penguins served")
        assert "noon" in recall(memory, elsewhere, Caller(project="/code/a")).text
