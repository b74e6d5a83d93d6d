"""Forgetting leaves no byte: not in the database, its log, the indexes, logs or backups."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.index.quantization import encode, pack_rows, unit_rows
from lore.memory import Memory
from lore.records import Watermark
from lore.store import distillations, jobs, maintenance, sessions, watermarks
from lore.store.database import Connection
from tests.store.samples import (
    NOON,
    HashEmbedder,
    empty_log,
    new_distillation,
    new_message,
    open_memory,
)

SECRET = "Quixotl zymurgist vexillology jabberwock"
CANARIES = ("quixotl", "zymurg", "vexillolog", "jabberwock")
SESSION = "Xylopyr"
"""Only the session that goes has this in its title, its files and its speaker's name."""


def traces(home: Path, *needles: bytes) -> list[str]:
    """Return where any of the needles stands in any file, in lower case or as it is."""
    found = []
    for path in sorted(home.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            low = content.lower()
            found += [f"{path.name}: {n!r}" for n in needles if n in content or n in low]
    return found


def words(*names: str) -> list[bytes]:
    return [name.lower().encode() for name in names]


def vector_bytes(*texts: str) -> list[bytes]:
    """Return a vector's bytes as the database keeps them and as the index does."""
    matrix = HashEmbedder().embed(texts)
    codes, _ = encode(unit_rows(matrix))
    return [pack_rows(row) for row in matrix] + [row[:64].tobytes() for row in codes]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    """A memory with a secret in one session, and neighbours that stay."""
    with open_memory(home, HashEmbedder()) as opened:
        opened.capture(
            "safe",
            [new_message(f"harmless talk number {i}", i, key=str(i)) for i in range(40)],
            project="/code/other",
            title="Something else",
        )
        opened.capture(
            "talk",
            [
                new_message("before it all was well", 0, key="0"),
                new_message(f"Always remember: {SECRET}.", 1, key=f"key of {SECRET}"),
                new_message("after it all was well too", 2, key="2"),
                new_message("and said aloud", 3, key="3", speaker=f"{SESSION} Smith"),
            ],
            project="/code/secretproject",
            title=f"{SESSION} plans",
            files=[f"src/{SESSION}.py"],
        )
        opened.maintenance.embed_waiting()
        yield opened


def secret_message(memory: Memory) -> str:
    return next(m.id for m in memory.sessions.messages("talk") if SECRET in m.parts[0].text)


def everywhere(memory: Memory) -> str:
    """Put the secret into all other places; return the id of the fragment that has it."""
    source = secret_message(memory)
    id_ = memory.store(
        f"{SECRET} is the word",
        summary=f"On {SECRET}",
        session="talk",
        source_messages=[source],
        key=f"store {SECRET}",
        payload={"word": SECRET},
    )
    other = memory.store("a fact that stays")
    memory.knowledge.update(id_, f"{SECRET} was the word", reason=f"because {SECRET}")
    memory.knowledge.link(id_, other, "related_to", note=f"see {SECRET}")
    memory.recall(SECRET)
    memory.search(SECRET)

    def work(db: Connection) -> None:
        session_n = db.value("SELECT n FROM sessions WHERE external_id = 'talk'")
        distilled = new_distillation(77, f"They spoke of {SECRET}", source, source)
        distillations.add_distillation(db, session_n, distilled, now=NOON)
        job = jobs.ensure(db, "distil", source, total=1, now=NOON)
        jobs.fail(db, job.id, f"the model choked on {SECRET}", now=NOON)
        db.insert("staged_turns", session_n=session_n, key="t", body=f'["{SECRET}"]', created_at=0)
        sessions.put_session_state(db, session_n, "working", {"word": SECRET}, now=NOON)
        mark = Watermark(f"/logs/{SESSION}.jsonl", None, 9, "", NOON)
        watermarks.put(db, mark, session_n=session_n)

    memory.database.write(work)
    memory.maintenance.embed_waiting()
    return id_


def assert_sound(memory: Memory) -> None:
    with memory.database.read() as db:
        assert maintenance.check_integrity(db) == []
    assert maintenance.check_keywords(memory.database) == []


def test_what_is_forgotten_was_really_there_before(memory: Memory, home: Path) -> None:
    everywhere(memory)
    empty_log(memory.database)
    assert traces(home, b"jabberwock")
    said = f"Always remember: {SECRET}."
    assert {where.split(":")[0] for where in traces(home, *vector_bytes(said))} == {
        "memory.db",
        "vectors.index",
    }


def test_forgetting_one_message_takes_all_that_was_made_of_it(memory: Memory, home: Path) -> None:
    everywhere(memory)
    memory.maintenance.backup()
    said = f"Always remember: {SECRET}."
    with memory.database.read() as db:
        session_n = db.value("SELECT n FROM sessions WHERE external_id = 'talk'")
    memory.database.write(lambda db: db.run("DELETE FROM staged_turns"))
    memory.database.write(
        lambda db: sessions.put_session_state(db, session_n, "working", None, now=NOON)
    )
    shutil.rmtree(home / "backups")
    memory.maintenance.backup()
    gone = memory.forget(id=secret_message(memory))
    assert len(gone) == 3
    assert traces(home, *words(*CANARIES), *vector_bytes(said)) == []
    assert len(memory.sessions.messages("talk")) == 3
    assert_sound(memory)


def test_forgetting_a_session_leaves_nothing_of_it(memory: Memory, home: Path) -> None:
    everywhere(memory)
    memory.maintenance.backup()
    memory.forget(session="talk")
    texts = [f"Always remember: {SECRET}.", "before it all was well"]
    assert traces(home, *words(*CANARIES, SESSION), *vector_bytes(*texts)) == []
    assert len(memory.sessions.messages("safe")) == 40
    assert_sound(memory)


def test_forgetting_a_project_leaves_nothing_of_it(memory: Memory, home: Path) -> None:
    everywhere(memory)
    memory.store("knowledge of the session but of no project", session="talk")
    memory.capture("child", [new_message("a child speaks", 5)], parent="talk")
    memory.maintenance.backup()
    memory.forget(project="/code/secretproject")
    assert traces(home, *words(*CANARIES, SESSION, "secretproject", "a child speaks")) == []
    assert [session.external_id for session in memory.sessions()] == ["safe"]
    assert_sound(memory)


def test_forgetting_a_text_finds_it_everywhere(memory: Memory, home: Path) -> None:
    everywhere(memory)
    memory.capture(
        "named", [new_message("nothing special", 9)], title=f"A title with {SECRET.upper()}"
    )
    memory.maintenance.backup()
    for word in SECRET.split():
        memory.forget(match=word)
    assert traces(home, *words(*CANARIES)) == []
    assert memory.sessions.messages("named")
    assert_sound(memory)


def test_a_word_of_a_former_title_leaves_the_index_too(memory: Memory, home: Path) -> None:
    memory.capture("talk", [new_message("once more", 8)], title="Another title")
    memory.forget(match=SESSION)
    assert traces(home, *words(SESSION)) == []
    assert_sound(memory)


def test_a_fragment_and_its_successor_leave_the_index_together(memory: Memory, home: Path) -> None:
    older, newer = memory.store("The numbat digs"), memory.store("The numbat digs at night")
    memory.knowledge.supersede(older, newer)
    memory.forget(match="numbat")
    assert traces(home, *words("numbat")) == []


def test_what_was_forgotten_stays_forgotten_when_an_older_backup_is_restored(
    memory: Memory, home: Path, tmp_path: Path
) -> None:
    everywhere(memory)
    external = memory.maintenance.backup(tmp_path / "external.db")
    internal = memory.maintenance.backup()
    memory.forget(session="talk")
    memory.close()
    for source in (external, internal):
        maintenance.restore(home / "memory.db", source, home / "backups")
        assert traces(home, *words(*CANARIES, SESSION)) == []
        with open_memory(home, HashEmbedder()) as restored:
            assert len(restored.sessions.messages("safe")) == 40
            assert_sound(restored)
    assert traces(tmp_path / "home", *words(*CANARIES)) == []
    assert traces(tmp_path, b"jabberwock") == ["external.db: b'jabberwock'"]


def test_a_forgotten_message_is_not_captured_once_more(memory: Memory, home: Path) -> None:
    former = secret_message(memory)
    again = [new_message(f"Always remember: {SECRET}.", 1, key=f"key of {SECRET}")]
    memory.forget(id=former)
    assert memory.capture("talk", again) == [former]
    memory.forget(session="talk")
    assert memory.capture("talk", again) == [former]
    empty_log(memory.database)
    assert traces(home, *words(*CANARIES)) == []


def test_an_export_from_before_does_not_bring_the_forgotten_back(
    memory: Memory, home: Path, tmp_path: Path
) -> None:
    everywhere(memory)
    memory.database.write(lambda db: db.run("DELETE FROM staged_turns"))
    memory.database.write(lambda db: db.run("DELETE FROM session_states"))
    memory.database.write(lambda db: db.run("DELETE FROM watermarks"))
    memory.sessions.export(tmp_path / "export.jsonl")
    memory.forget(match="jabberwock")
    with (tmp_path / "export.jsonl").open("rb") as lines:
        memory.sessions.import_lines(lines)
    empty_log(memory.database)
    assert traces(home, *words(*CANARIES)) == []
    assert_sound(memory)


def test_files_of_a_copy_that_was_killed_go_too(memory: Memory, home: Path) -> None:
    leftover = home / "memory.db.restored-99999999"
    leftover.write_text(SECRET)
    wal = home / "memory.db.restored-99999999-wal"
    wal.write_text(SECRET)
    memory.forget(id=secret_message(memory))
    assert not leftover.exists()
    assert not wal.exists()


@pytest.mark.parametrize("seed", range(3))
def test_of_many_messages_any_part_can_be_forgotten_without_a_trace(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    home = tmp_path / "home"
    letters = "bcdfghjklmnpqrstvwxz"
    names = ["".join(rng.choices(letters, k=12)) for _ in range(400)]
    with open_memory(home) as memory:
        for i, name in enumerate(names):
            text = f"{name} " + "filler words " * rng.randint(0, 200)
            memory.capture(f"s{i % 7}", [new_message(text, i, key=name)])
        keys = {m.parts[0].text.split()[0]: m.id for s in memory.sessions()
                for m in memory.sessions.messages(s.id)}  # fmt: skip
        gone = rng.sample(names, 40)
        for name in gone:
            memory.forget(id=keys[name])
        assert traces(home, *words(*gone)) == []
        assert_sound(memory)
