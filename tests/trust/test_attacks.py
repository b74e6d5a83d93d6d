"""Attacks that once succeeded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lore.errors import InvalidInput, NotFound, StoreError
from lore.memory import Memory, restore_backup
from lore.settings import load
from lore.store import hard_delete
from tests.fakes import FakeEmbedder, FixedClock
from tests.recall.talk import say


@pytest.fixture
def memory(new_home: Path):
    with Memory.open(home=new_home, embedder=FakeEmbedder(), now=FixedClock()) as opened:
        yield opened


def test_forget_by_text_looks_at_what_was_said_and_not_at_keys_or_field_names(memory: Memory):
    say(memory, "s", *["the weather in Oslo is nice"] * 3, "the harbor was calm")
    id_ = memory.store("one", payload={"note": 'a "quoted" word'})
    memory.knowledge.update(id_, "two")
    for innocent in ("text", "kind", "content", "{}", "7a"):
        assert memory.maintenance.preview_forget(match=innocent).count == 0
    assert memory.maintenance.preview_forget(match='a "QUOTED" word').count == 1


def test_forget_by_text_finds_other_forms_of_the_same_text(memory: Memory):
    say(memory, "s", "Zu\u0308rich is far", "the secret\ntoken", "pass\u200bword")
    for text in ("Z\u00fcrich", "secret token", "password"):
        assert memory.maintenance.preview_forget(match=text).count == 1


def test_a_key_can_be_used_again_after_what_it_stored_was_forgotten(memory: Memory):
    first = memory.store("a secret", key="k")
    memory.forget(id=first)
    second = memory.store("harmless", key="k")
    assert second != first
    assert memory.read([second])[0].text == "harmless"


def test_forgetting_again_by_id_finishes_what_was_interrupted(memory: Memory, tmp_path: Path):
    id_ = memory.store("the word is xylophonist")
    memory.settings.backups.mkdir()
    memory.database.write(
        lambda db: hard_delete.forget(
            db, hard_delete.select(db, id_, "", "", ""), now=memory.database.now()
        )
    )
    assert memory.forget(id=id_) == []
    with pytest.raises(NotFound):
        memory.read([id_])


def test_deleting_what_superseded_a_fragment_lets_it_stand_again(memory: Memory):
    old, new = memory.store("the limit is three"), memory.store("the limit is five")
    memory.knowledge.supersede(old, new)
    memory.knowledge.delete(new)
    assert [hit.id for hit in memory.recall("limit")] == [old]
    memory.knowledge.undo(new)
    assert [hit.id for hit in memory.recall("limit")] == [new]


def test_a_subagent_works_in_the_project_of_its_parent(memory: Memory):
    say(memory, "main", "hello", project="/p/a")
    memory.capture("sub", memory_copy("the secret of a"), parent="main")
    say(memory, "other", "hello", project="/p/b")
    assert not list(memory.recall("secret of a", project="/p/b"))
    assert len(memory.recall("secret of a", project="/p/a").hits) == 1


def memory_copy(text: str):
    from lore.records import NewMessage, Part
    from tests.fakes import NOON

    return [NewMessage("user", (Part("text", text),), NOON)]


def test_spellings_of_one_path_are_one_project(memory: Memory):
    for path in ("/p/beta", "/p/beta/", "/p/./beta"):
        memory.store(f"kept for {path}", project=path)
    assert [path for path, _ in memory.maintenance.stats().projects] == ["/p/beta"]


def test_an_instruction_said_twice_survives_the_forgetting_of_one_saying(memory: Memory):
    say(memory, "a", "Always use tabs in Makefiles.")
    [second] = say(memory, "b", "Always use tabs in Makefiles.")
    memory.forget(id=second)
    assert [hit.text for hit in memory.search.standing_instructions()] == [
        "Always use tabs in Makefiles."
    ]


def test_an_export_never_replaces_a_file_of_the_memory(memory: Memory):
    memory.store("x")
    for name in ("memory.db", "memory.db-wal", "backups/lore-1.db", "memory.vectors/vectors.index"):
        with pytest.raises(InvalidInput):
            memory.sessions.export(memory.settings.home / name)


def test_a_memory_carried_over_a_fork_says_so_and_does_not_hang(memory: Memory):
    memory.store("of the parent")
    child = os.fork()
    if child == 0:
        try:
            memory.store("of the child")
        except StoreError:
            os._exit(7)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_a_pipe_in_place_of_a_configuration_file_is_not_read(tmp_path: Path):
    os.mkfifo(tmp_path / ".lore.json")
    loaded = load({}, home=tmp_path / "home", project_dir=tmp_path)
    assert "no ordinary file" in loaded.warning
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(InvalidInput, match="no ordinary file"):
        load({}, home=tmp_path)


def test_a_restore_into_a_new_home_works(memory: Memory, tmp_path: Path):
    memory.store("the tea is green")
    copy = memory.maintenance.backup(tmp_path / "copy.db")
    assert restore_backup(copy, home=tmp_path / "new" / "home", trust=True) is None
    with Memory.open(home=tmp_path / "new" / "home", embedder=FakeEmbedder()) as restored:
        assert len(restored.recall("tea").hits) == 1
