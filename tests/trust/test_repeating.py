"""After an error nobody knows whether a write arrived: repeating it must be harmless."""

from __future__ import annotations

from pathlib import Path

from lore.memory import Memory
from lore.store import dump
from tests.store.samples import new_message, open_memory


def records(memory: Memory) -> list[object]:
    with memory.database.read() as db:
        return list(dump.dump_records(db))


def test_writes_that_are_repeated_after_a_restart_change_nothing(tmp_path: Path) -> None:
    said = [new_message("one", 1), new_message("two", 2), new_message("two", 2)]
    answers, left = [], []
    for _ in range(3):
        with open_memory(tmp_path) as memory:
            id_ = memory.store("a fact", key="store 1", project="/p")
            other = memory.store("another fact", key="store 2", parent_id=id_)
            version = memory.knowledge.update(id_, "a better fact", key="update 1")
            ids = memory.capture("talk", said, title="A talk", project="/p")
            memory.knowledge.link(id_, other, "supports", note="see")
            answers.append((id_, other, version, ids))
            left.append(records(memory))
    assert answers[0] == answers[1] == answers[2]
    assert left[0] == left[1] == left[2]
    assert len(set(answers[0][3])) == 3


def test_an_export_that_is_brought_in_again_changes_nothing(tmp_path: Path) -> None:
    with open_memory(tmp_path / "a") as one, open_memory(tmp_path / "b") as other:
        one.capture("talk", [new_message("one", 1)])
        one.store("a fact")
        one.sessions.export(tmp_path / "export.jsonl")
        for _ in range(2):
            with (tmp_path / "export.jsonl").open("rb") as lines:
                other.sessions.import_lines(lines, trust=True)
        assert records(other) == records(one)
