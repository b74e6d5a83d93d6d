"""Knowledge of other memories is imported once, as a peer's words unless it is trusted."""

import json
import sqlite3

import pytest

from lore.capture.export_import import import_records
from lore.capture.foreign_memories import read_records
from lore.errors import InvalidInput
from lore.store import dump


def imported(database, kind, path, *, foreign=True):
    return import_records(database, read_records(kind, path), foreign=foreign)


def fragments(database):
    with database.read() as db:
        return [each for each in dump.dump_records(db) if each["record"] == "fragment"]


@pytest.fixture
def claude_mem(tmp_path):
    path = tmp_path / "claude-mem.db"
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT,"
            " project TEXT, text TEXT, type TEXT, title TEXT, subtitle TEXT, facts TEXT,"
            " narrative TEXT, created_at_epoch INTEGER)"
        )
        db.execute(
            "CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT,"
            " project TEXT, request TEXT, learned TEXT, created_at_epoch INTEGER)"
        )
        row = ("s1", "almanac", "decision", "Tides by Ines", '["Ines checks"]', 1777888800000)
        db.execute(
            "INSERT INTO observations (memory_session_id, project, type, title, facts,"
            " created_at_epoch) VALUES (?, ?, ?, ?, ?, ?)", row,
        )  # fmt: skip
        db.execute(
            "INSERT INTO session_summaries"
            " VALUES (1, 's1', 'almanac', 'Mend', 'It leaks', 1777888800000)"
        )
    db.close()
    return path


def test_claude_mem_is_imported_once_as_a_peers_words(database, claude_mem):
    assert imported(database, "claude-mem", claude_mem).added == 3
    again = imported(database, "claude-mem", claude_mem)
    assert (again.added, again.foreign) == (0, True)
    kept = fragments(database)
    assert {each["content"] for each in kept} == {
        "Tides by Ines\n- Ines checks", "request: Mend\nlearned: It leaks"
    }  # fmt: skip
    assert {(each["origin"], each["trust"]) for each in kept} == {("peer", 1)}
    assert {each["metadata"]["imported_from"] for each in kept} == {"claude-mem"}
    assert all(each["project_id"] for each in kept)


def test_trusted_knowledge_of_mem0_is_the_assistants(database, tmp_path):
    path = tmp_path / "all.json"
    one = {"id": "m1", "memory": "Likes tea", "created_at": "2026-05-04T10:00:00Z", "user_id": "a"}
    path.write_text(json.dumps({"results": [one, {"id": "m2", "memory": ""}]}))
    assert imported(database, "mem0", path, foreign=False).added == 1
    (kept,) = fragments(database)
    assert (kept["content"], kept["origin"]) == ("Likes tea", "assistant")


def test_the_history_of_mem0_gives_what_was_not_deleted(database, tmp_path):
    path = tmp_path / "history.db"
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE history (id TEXT, memory_id TEXT, old_memory TEXT, new_memory TEXT,"
            " event TEXT, created_at DATETIME, updated_at DATETIME, is_deleted INTEGER)"
        )
        for own, text, event in (
            ("m1", "Likes tea", "ADD"), ("m1", "Likes coffee", "UPDATE"),
            ("m2", "Has a cat", "ADD"), ("m2", None, "DELETE"),
        ):  # fmt: skip
            row = (own, text, event, "2026-05-04T10:00:00", int(event == "DELETE"))
            db.execute(
                "INSERT INTO history (memory_id, new_memory, event, created_at, is_deleted)"
                " VALUES (?, ?, ?, ?, ?)", row,
            )  # fmt: skip
    db.close()
    assert imported(database, "mem0", path).added == 1
    assert [each["content"] for each in fragments(database)] == ["Likes coffee"]


def test_notes_of_basic_memory_keep_observations_and_relations(database, tmp_path):
    (tmp_path / "Tea.md").write_text(
        "---\ntitle: Tea\npermalink: tea\n---\n# Tea\n\n- [method] Steep it #brew\n- [x] done\n"
        "- relates_to [[Water]]\n"
    )
    (tmp_path / "Water.md").write_text("# Water\n\nWet.\n")
    assert imported(database, "basic-memory", tmp_path).added == 5
    assert imported(database, "basic-memory", tmp_path).added == 0
    with database.read() as db:
        edges = [each for each in dump.dump_records(db) if each["record"] == "edge"]
    assert {(each["kind"], each["note"]) for each in edges} == {
        ("hierarchical", ""), ("related_to", "relates_to")
    }  # fmt: skip
    assert "Steep it #brew" in {each["content"] for each in fragments(database)}


def test_an_unknown_memory_is_refused(database, tmp_path):
    with pytest.raises(InvalidInput):
        imported(database, "cake", tmp_path)
