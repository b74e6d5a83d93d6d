from __future__ import annotations

from pathlib import Path

import pytest

from lore import settings
from lore.memory import Memory, restore_backup
from lore.recall import health
from tests.fakes import FakeEmbedder
from tests.recall.talk import say


def test_checks_pass_for_a_healthy_memory(memory: Memory):
    say(memory, "s", "one boat", "two lamps")
    memory.store("Boats float")
    memory.maintenance.embed_waiting()
    states = {
        check.name: check.state for check in health.check_memory(memory.sources, "", fix=False)
    }
    assert set(states.values()) == {"ok"}


def test_missing_keyword_rows_are_reported_and_fixed(memory: Memory):
    [id_] = say(memory, "s", "one boat")
    memory.database.write(lambda db: db.run("DELETE FROM message_words"))
    before = {c.name: c for c in health.check_memory(memory.sources, "", fix=False)}
    assert before["keywords"].state == "broken"
    assert "doctor --fix" in before["keywords"].remedy
    after = {c.name: c for c in health.check_memory(memory.sources, "", fix=True)}
    assert after["keywords"].state == "fixed"
    assert memory.recall("boat").hits[0].id == id_


@pytest.mark.only_sqlite("the file of vectors")
def test_missing_vectors_are_reported_and_fixed(memory: Memory):
    say(memory, "s", "one boat", "two lamps")
    memory.maintenance.embed_waiting()
    memory.sources.vector_index().remove([1])
    before = {c.name: c for c in health.check_memory(memory.sources, "", fix=False)}
    assert before["vectors"].state == "broken"
    after = {c.name: c for c in health.check_memory(memory.sources, "", fix=True)}
    assert after["vectors"].state == "fixed"
    assert len(memory.sources.vector_index()) == 2


def test_items_without_vectors_are_reported(memory: Memory):
    say(memory, "s", "one boat")
    checks = {c.name: c for c in health.check_memory(memory.sources, "", fix=False)}
    assert checks["vectors"].state in ("ok", "degraded")
    assert "1 item" in checks["vectors"].detail


def test_readable_home_is_reported(tmp_path: Path):
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=FakeEmbedder()):
        home.chmod(0o755)
    config = settings.load({}, home=home).settings
    checks = {check.name: check for check in health.check_home(config)}
    assert checks["home"].state == "degraded"
    assert checks["disk"].detail.endswith("free")


def test_a_session_stays_in_its_first_project_and_doctor_says_so(memory: Memory):
    say(memory, "s", "one boat", project="/code/first")
    say(memory, "s", "two boats", project="/code/first")
    checks = {c.name: c for c in health.check_memory(memory.sources, "", fix=False)}
    [session] = memory.sessions()
    assert session.id not in checks["sessions"].detail
    say(memory, "s", "three boats", project="/code/second")
    checks = {c.name: c for c in health.check_memory(memory.sources, "", fix=False)}
    assert session.id in checks["sessions"].detail
    assert memory.maintenance.stats().projects == (("/code/first", 3),)


def test_copies_outside_the_backups_are_reported(tmp_path: Path):
    config = settings.load({}, home=tmp_path / "home").settings
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        memory.store("one boat")
        memory.maintenance.backup()
    checks = {check.name: check for check in health.check_home(config)}
    assert checks["files"].state == "ok"
    (config.home / "old.db").write_bytes(b"")
    (config.backups / "export.jsonl").write_bytes(b"")
    checks = {check.name: check for check in health.check_home(config)}
    assert checks["files"].state == "degraded"
    assert "backups/export.jsonl, old.db may still hold" in checks["files"].detail


@pytest.mark.only_sqlite("copies of a file")
def test_forget_reaches_all_copies_that_lore_makes(tmp_path: Path):
    config = settings.load({}, home=tmp_path / "home").settings
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        memory.store("The word is xylophonist")
        copy = memory.maintenance.backup()
    before = config.backups / "before-m002_something-20260513T120000.db"
    before.write_bytes(copy.read_bytes())
    restore_backup(copy, home=config.home)
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        memory.forget(match="xylophonist")
    kept = sorted(config.backups.iterdir())
    assert [path.name.split("-")[0] for path in kept] == ["before", "before", "lore"]
    assert not any(b"xylophonist" in path.read_bytes() for path in kept)
