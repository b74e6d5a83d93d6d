from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lore import clock
from lore.capture.message_capture import prepare
from lore.errors import SchemaTooNew
from lore.records import Role, Spend
from lore.store import (
    hard_delete,
    items,
    maintenance,
    messages,
    migrations,
    project_rows,
    replacements,
    sqlite,
    standing_instructions,
    vectors,
)
from lore.store.database import Connection, Database, open_database
from lore.text import instructions
from tests.store.samples import (
    NOON,
    add_fragment,
    at_noon,
    insert_former_link,
    new_message,
    new_session,
    newest_spend,
    open_at,
)

pytestmark = pytest.mark.only_sqlite("files of former versions, copied before they are migrated")


def m900_adds_a_table(db: Connection) -> None:
    db.rows("CREATE TABLE later (n INTEGER PRIMARY KEY)")


def m900_fails(db: Connection) -> None:
    db.rows("CREATE TABLE later (n INTEGER PRIMARY KEY)")
    db.rows("INSERT INTO nowhere VALUES (1)")


STEPS = (*migrations.MIGRATIONS, m900_adds_a_table)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database of this schema, opened by no program in particular."""
    open_at(tmp_path).close()
    opened = Database(tmp_path / "memory.db", busy_timeout_s=5, now=at_noon)
    yield opened
    opened.close()


def names(database: Database) -> set[str]:
    with database.read() as db:
        return {row[0] for row in db.rows("SELECT name FROM sqlite_schema")}


def test_a_fresh_database_has_every_step_and_no_backup(tmp_path: Path) -> None:
    database = open_at(tmp_path)
    with database.read() as db:
        assert migrations.check(db) == {step.__name__ for step in migrations.MIGRATIONS}
    database.close()
    assert not (tmp_path / "backups").exists()


def test_a_database_of_the_first_schema_keeps_its_spend(tmp_path: Path) -> None:
    database = Database(tmp_path / "memory.db", busy_timeout_s=5, now=at_noon)
    migrations.migrate(database, None, (migrations.m001_initial,))
    database.write(
        lambda db: db.run(
            "INSERT INTO spend (key, at, purpose, model, usage, usd)"
            " VALUES ('k', :at, 'background:observe', 'm', '{\"input\": 5}', 0.25)",
            at=clock.to_us(NOON),
        )
    )
    database.close()
    reopened = open_at(tmp_path)
    with reopened.read() as db:
        assert newest_spend(db) == [
            Spend("k", NOON, "background:observe", "m", {"input": 5}, 0.25, None, None)
        ]
        assert migrations.check(db) >= {"m001_initial", "m002_requests"}
    reopened.close()
    (copy,) = (tmp_path / "backups").iterdir()
    assert copy.name == "before-m002_requests-20260301T120000.db"


def test_former_vectors_are_quantized_and_damaged_ones_emptied(tmp_path: Path) -> None:
    database = Database(tmp_path / "memory.db", busy_timeout_s=5, now=at_noon)
    last_step = migrations.MIGRATIONS.index(migrations.m006_quantized_vectors)
    migrations.migrate(database, None, migrations.MIGRATIONS[:last_step])
    passages = np.array([[0.6, 0.8, 0.0], [-0.28, 0.0, 0.96]], np.float16)

    def fill(db: Connection) -> None:
        n = vectors.ensure_embedder(db, "one", 3)
        for place, blob in enumerate((passages.tobytes(), b"short", b"sevenby"), 1):
            item = add_fragment(db, place)
            db.insert("vectors", n=item, embedder_n=n, vector=blob)
            db.update("items", item, embedder_n=n)

    database.write(fill)
    database.close()
    reopened = open_at(tmp_path)
    with reopened.read() as db:
        loaded = vectors.load_passages(db, 1, np.arange(1, 4), 3)
        assert list(loaded) == [1]
        assert np.allclose(loaded[1], passages, atol=4e-3)
        assert db.column("SELECT seq FROM vectors ORDER BY seq") == [1, 2, 3]
        assert migrations.find_foreign_schema(db) == []
    reopened.close()


def test_vectors_keep_their_change_numbers_and_a_deleted_one_is_not_used_again(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path / "memory.db", busy_timeout_s=5, now=at_noon)
    last_step = migrations.MIGRATIONS.index(migrations.m007_vectors_of_two_embedders)
    migrations.migrate(database, None, migrations.MIGRATIONS[:last_step])

    def fill(db: Connection) -> None:
        n = vectors.ensure_embedder(db, "one", 2)
        for item in (add_fragment(db, 1), add_fragment(db, 2), add_fragment(db, 3)):
            db.insert("vectors", n=item, embedder_n=n, vector=bytes(4))
        db.run("DELETE FROM vectors WHERE seq <> 2")

    database.write(fill)
    database.close()
    reopened = open_at(tmp_path)
    with reopened.read() as db:
        assert db.rows("SELECT seq, n, vector FROM vectors") == [(2, 2, bytes(4))]
        assert vectors.newest_seq(db) == 3
        assert maintenance.check_integrity(db) == []
        assert migrations.find_foreign_schema(db) == []
    reopened.close()


def before(step: migrations.Migration, home: Path) -> Database:
    """Open a database of the schema that a step changes."""
    database = Database(home / "memory.db", busy_timeout_s=5, now=at_noon)
    migrations.migrate(database, None, migrations.MIGRATIONS[: migrations.MIGRATIONS.index(step)])
    return database


SUGGESTED, OTHER, CERTAIN = (
    "Please use tabs everywhere.", "Please run the linter everywhere.", "Never push to main.",
)  # fmt: skip
SAID = (
    (SUGGESTED, "monday", "/a"), (OTHER, "monday", "/a"), (CERTAIN, "monday", "/a"),
    (OTHER, "monday", "/a"), (SUGGESTED, "tuesday", "/b"), (SUGGESTED, "friday", "/a"),
)  # fmt: skip
"""Rules, the sessions in which they were said, and their projects."""


def test_former_rules_get_the_states_of_a_fresh_memory(tmp_path: Path) -> None:
    def say(db: Connection) -> None:
        is_former = "m008_states_of_instructions" not in migrations.check(db)
        for i, (text, session, project) in enumerate(SAID, 1):
            session_n = new_session(db, session, project=project)
            project_n = project_rows.ensure_project(db, project, now=NOON)
            item = add_fragment(
                db, i, text, session_n=session_n, project_n=project_n, source_messages=("m",)
            )
            if is_former:
                row = {"item_n": item, "project_n": project_n, "created_at": i, "digest": str(i)}
                db.insert("standing", text=text, **row)
            else:
                state = instructions.judge_sentence(text)
                standing_instructions.add(db, item, project_n, text, i, state)

    former = before(migrations.m008_states_of_instructions, tmp_path)
    former.write(say)
    former.close()
    found = []
    for home in (tmp_path, tmp_path / "fresh"):
        home.mkdir(exist_ok=True)
        database = open_at(home)
        if home != tmp_path:
            database.write(say)
        with database.read() as db:
            found.append(db.column("SELECT state FROM standing ORDER BY n"))
        database.close()
    assert found[0] == found[1]
    assert found[0] == [
        "confirmed", "suggested", "stands", "suggested", "suggested", "confirmed",
    ]  # fmt: skip


def test_all_that_has_a_vector_is_queued_to_be_judged(tmp_path: Path) -> None:
    def fill(db: Connection) -> list[int]:
        session_n = new_session(db)
        roles: tuple[Role, ...] = ("user", "assistant", "user")
        said = [
            prepare(new_message(f"Said {i}", i, role=role, key=f"{i}"))
            for i, role in enumerate(roles)
        ]
        ids = messages.add_messages(db, session_n, said, now=NOON)
        ns = [*items.numbers_of(db, ids).values(), add_fragment(db, 1), add_fragment(db, 2)]
        embedder_n = vectors.ensure_embedder(db, "one", 2)
        for n, state in zip(ns, (embedder_n, embedder_n, 0, embedder_n, None), strict=True):
            db.update("items", n, embedder_n=state)
        return [ns[0], ns[1], ns[3]]

    former = before(migrations.m009_replacements, tmp_path)
    embedded = former.write(fill)
    former.close()
    reopened = open_at(tmp_path)
    with reopened.read() as db:
        assert sorted(replacements.waiting_items(db, limit=9)) == embedded
    reopened.close()


def test_steps_are_named_in_their_order() -> None:
    found = [step.__name__ for step in migrations.MIGRATIONS]
    assert found == sorted(found)
    assert all(name.startswith(f"m{i:03}_") for i, name in enumerate(found, 1))


def test_an_existing_database_is_copied_before_it_is_migrated(
    tmp_path: Path, database: Database
) -> None:
    database.write(lambda db: add_fragment(db, 1, "an old fact"))
    assert migrations.migrate(database, tmp_path / "backups", STEPS) == ["m900_adds_a_table"]
    assert "later" in names(database)
    (copy,) = (tmp_path / "backups").iterdir()
    assert copy.name == "before-m900_adds_a_table-20260301T120000.db"
    old = sqlite.open_connection(copy, busy_timeout_s=1, read_only=True)
    assert old.value("SELECT content FROM fragments") == "an old fact"
    assert not old.find("SELECT 1 FROM sqlite_schema WHERE name = 'later'")
    old.close()


def test_migrating_twice_does_nothing_the_second_time(tmp_path: Path, database: Database) -> None:
    migrations.migrate(database, tmp_path / "backups", STEPS)
    assert migrations.migrate(database, tmp_path / "backups", STEPS) == []


def test_a_step_that_fails_leaves_the_old_schema(tmp_path: Path, database: Database) -> None:
    before = names(database)
    with pytest.raises(Exception, match="nowhere"):
        migrations.migrate(database, tmp_path / "backups", (*migrations.MIGRATIONS, m900_fails))
    assert names(database) == before


def test_a_step_applied_by_another_process_is_skipped(
    database: Database,
) -> None:
    database.write(lambda db: migrations._apply(db, m900_adds_a_table, at_noon))
    database.write(lambda db: migrations._apply(db, m900_adds_a_table, at_noon))


def test_a_newer_schema_is_refused_and_nothing_is_changed(
    tmp_path: Path, database: Database
) -> None:
    migrations.migrate(database, tmp_path / "backups", STEPS)
    database.close()
    before = database.path.read_bytes()
    with pytest.raises(SchemaTooNew, match="upgraded by a newer Lore"):
        open_at(tmp_path)
    with pytest.raises(SchemaTooNew):
        open_database(database.path, busy_timeout_s=1, backups=None, read_only=True)
    assert database.path.read_bytes() == before


def test_a_decision_on_a_long_statement_is_found_after_the_upgrade(tmp_path: Path) -> None:
    long = "The harbor is deep, and " * 60
    new = "The harbor is flat."
    decided = replacements.Replacement(1, long, 2, new, "dismissed", 1.0, 1)

    def fill(db: Connection) -> None:
        older, newer = add_fragment(db, 1, f"{long} also here."), add_fragment(db, 2, new)
        again = decided._replace(older_n=older, newer_n=newer, relation="may_replace")
        for text, link in (
            (long, decided),
            (f"{long} also here.", again._replace(certainty=0.4)),
            (replacements.statement_key(long), again._replace(certainty=0.9)),
        ):
            insert_former_link(db, link._replace(older_text=text))

    former = before(migrations.m012_statement_keys, tmp_path)
    former.write(fill)
    former.close()
    reopened = open_at(tmp_path)
    with reopened.read() as db:
        state = replacements.find_pair(db, decided)
        assert state is not None
        assert state.relation == "dismissed"
        assert db.value("SELECT count(*) FROM replacements") == 1
        assert migrations.find_foreign_schema(db) == []
    reopened.close()


ASKED = "Should the **orders** database of Zanzibar run on Postgres 16?"
REPLY = "Yes, on Postgres 16 now."
QUOTED = f"Should the orders database of Zanzibar run on Postgres 16? {REPLY}"


def former_answer(home: Path, *, is_asked_forgotten: bool) -> tuple[int, int]:
    """Make a memory of the former schema with links to an answer; one quotes its question.

    Return the numbers of the question and the answer.
    """

    def fill(db: Connection) -> tuple[int, int]:
        older = add_fragment(db, 1, "It runs on Postgres 14.")
        turns: tuple[tuple[Role, str], ...] = (("assistant", ASKED), ("user", REPLY))
        said = [
            prepare(new_message(text, i, role=role, key=str(i)))
            for i, (role, text) in enumerate(turns)
        ]
        ids = messages.add_messages(db, new_session(db), said, now=NOON)
        asked, newer = items.numbers_of(db, ids).values()
        link = replacements.Replacement(
            older, "It runs on Postgres 14.", newer, QUOTED, "dismissed", 1.0, 1
        )
        insert_former_link(db, link)
        insert_former_link(db, link._replace(older_text="Postgres 14", newer_text=REPLY))
        if is_asked_forgotten:
            db.run("DELETE FROM items WHERE n = :n", n=asked)
        return asked, newer

    former = before(migrations.m013_asked_messages, home)
    ends = former.write(fill)
    former.close()
    return ends


def test_a_former_link_goes_with_the_question_that_it_quotes(tmp_path: Path) -> None:
    asked, newer = former_answer(tmp_path, is_asked_forgotten=False)
    reopened = open_at(tmp_path)
    with reopened.read() as db:
        rows = db.rows("SELECT newer_text, newer_asked_n, relation FROM replacements ORDER BY n")
        assert rows == [(QUOTED, asked, "dismissed"), (REPLY, None, "dismissed")]
        assert replacements.count_waiting(db) == 0
        assert migrations.find_foreign_schema(db) == []
    selection = hard_delete.ForgetSelection((asked,))
    reopened.write(lambda db: hard_delete.forget(db, selection, now=NOON))
    with reopened.read() as db:
        assert db.column("SELECT newer_text FROM replacements") == [REPLY]
        assert replacements.waiting_items(db, limit=9) == [newer]
    reopened.close()


def test_a_former_link_that_quotes_a_forgotten_question_is_judged_again(tmp_path: Path) -> None:
    _, newer = former_answer(tmp_path, is_asked_forgotten=True)
    assert b"Zanzibar" in (tmp_path / "memory.db").read_bytes()
    reopened = open_at(tmp_path)
    with reopened.read() as db:
        assert db.column("SELECT newer_text FROM replacements") == [REPLY]
        assert replacements.waiting_items(db, limit=9) == [newer]
    reopened.close()
    assert b"Zanzibar" not in (tmp_path / "memory.db").read_bytes()
