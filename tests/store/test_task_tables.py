"""The tables of task memory are exported, imported and cleaned like everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from lore import clock
from lore.capture import export_import
from lore.memory import Memory
from lore.store import dump, items, project_rows, sessions, task_tables
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, empty_log, new_message, open_memory

AT = clock.to_us(NOON)
WORD = "jabberwock"


def fill(memory: Memory, word: str = WORD) -> None:
    """Put one row into every table of task memory, with a word in every text column."""
    memory.capture("talk", [new_message("a goal", 0, key="0")], project="/p")
    item = memory.store("a pattern that was given", project="/p", kind="pattern")

    def work(db: Connection) -> None:
        session_n, project_n = (
            sessions.get_session_number(db, "talk"), project_rows.get_project(db, "/p"),
        )  # fmt: skip
        ns: dict[str, int | None] = {"session_n": session_n, "project_n": project_n}
        ns |= {"item_n": items.resolve(db, item).n, "episode_n": None}
        for spec in task_tables.TABLES.values():
            texts = dict.fromkeys(spec.texts, f'{{"said": "{word}"}}')
            values: dict[str, Any] = {name: PLAIN[name] for name in spec.columns} | texts
            values |= {one.column: ns[one.column] for one in spec.references}
            n = db.insert_numbered(spec.table, **values)
            if spec.table == "tasks":
                ns["task_n"] = n

    memory.database.write(work)


PLAIN = {
    "id": "one", "type": "debugging", "state": "done", "outcome": "success", "started_at": AT,
    "ended_at": AT, "given_as": "pattern", "tokens": 7, "used": 1, "sign": "path", "helped": 0,
    "at": AT, "updated_at": AT, "created_at": AT, "read_at": None, "kind": "reward",
    "value": 0.5, "value_after": None, "metric": "ratio", "action": "compress", "day": "2026-03-01",
    "share": 0.5, "successes": 2.0, "failures": 1.0, "is_active": 1,
} | dict.fromkeys(
    ("name", "agent", "goal", "phase", "profile", "reason", "from_agent", "to_agent", "weights",
     "source", "path", "body"), "{}",
)  # fmt: skip


def lines_of(memory: Memory) -> list[dict[str, Any]]:
    with memory.database.read() as db:
        return list(dump.dump_records(db))


def count(memory: Memory) -> dict[str, int]:
    with memory.database.read() as db:
        return {
            spec.table: db.value(f"SELECT count(*) FROM {spec.table}")
            for spec in task_tables.TABLES.values()
        }


def test_every_table_of_task_memory_is_known(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        assert set(count(memory).values()) == {1}
        lines = task_tables.SCHEMA.split("\n")
        created = {line.split()[2] for line in lines if line.startswith("CREATE TABLE")}
        assert created == {spec.table for spec in task_tables.TABLES.values()}


def test_task_memory_is_the_same_after_a_round_trip(tmp_path: Path) -> None:
    with open_memory(tmp_path / "a") as one, open_memory(tmp_path / "b") as other:
        fill(one)
        lines = lines_of(one)
        for line in lines:
            export_import.check_record(line["record"], line)
        raw = [orjson.dumps(line) for line in ({"lore": 1, "home": "x"}, *lines)]
        assert other.sessions.import_lines(raw, trust=True).added == len(lines)
        assert lines_of(other) == lines
        assert other.sessions.import_lines(raw, trust=True).added == 0


def test_a_peer_brings_no_task_rows(tmp_path: Path) -> None:
    with open_memory(tmp_path / "a") as one, open_memory(tmp_path / "b") as other:
        fill(one)
        raw = [orjson.dumps(line) for line in ({"lore": 1, "home": "x"}, *lines_of(one))]
        other.sessions.import_lines(raw, trust=False)
        assert set(count(other).values()) == {0}


def test_a_forgotten_word_is_in_no_table(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        memory.forget(match=WORD)
        empty_log(memory.database)
        assert not any(WORD.encode() in file.read_bytes() for file in tmp_path.glob("memory.db*"))
        left = {table for table, rows in count(memory).items() if rows}
        assert left <= {"task_memories"}


def test_a_forgotten_session_takes_its_tasks(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        memory.forget(session="talk")
        left = {table for table, rows in count(memory).items() if rows}
        assert left == {"agent_ledgers", "profiles", "profile_days", "layout_files"}


def test_a_forgotten_project_takes_its_ledgers_and_files(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        memory.forget(project="/p")
        left = {table for table, rows in count(memory).items() if rows}
        assert left == {"profiles", "profile_days"}


def test_rows_that_name_or_quote_a_forgotten_item_go_with_it(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        text = "the deployment key of the second cluster lies in the old cupboard"
        quoted, named = memory.store(text), memory.store("another fact altogether")

        def work(db: Connection) -> None:
            for agent, body in (("a", f'["{text}"]'), ("b", f'["{named}"]'), ("c", '["kept"]')):
                db.insert("agent_ledgers", agent=agent, body=body, updated_at=AT)

        memory.database.write(work)
        memory.forget(id=quoted)
        memory.forget(id=named)
        with memory.database.read() as db:
            assert db.column("SELECT agent FROM agent_ledgers") == ["c"]


def test_a_pattern_is_forgotten_with_its_episode(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        episode = memory.store("an episode of the past", kind="episode", origin="assistant")
        derived = memory.store("a way that worked", kind="pattern", origin="assistant")
        stated = memory.store("a person's own way", kind="pattern")
        memory.knowledge.link(derived, episode, "derived_from")
        memory.knowledge.link(stated, episode, "derived_from")
        assert set(memory.forget(id=episode)) == {episode, derived}
