"""The statements of recall, capture and session start read the rows of one owner by an index.

They are recorded by libpq on the connections of the pool, and planned again as the application
role. Tables can be distributed by owner only if this holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from psycopg.pq import Trace

from lore.memory import Memory
from lore.store.postgres.owner_connection import PostgresConnection
from tests.recall.talk import say
from tests.store.samples import HashEmbedder, open_memory

_CONNECTIONS = 3
"""As many as a reader, a writer and one more use at a time."""

_MESSAGE = re.compile(r"^F\t\d+\t(?P<kind>\w+)\t ?(?P<body>.*?)(?=^[FB]\t\d+\t|\Z)", re.M | re.S)
_PARSE = re.compile(r'"(?P<name>[^"]*)" "(?P<sql>.*)" (?P<count>\d+)(?P<types>(?: \d+)*)\s*', re.S)
_JOINED = re.compile(r";(?=\s*(?:INSERT|UPDATE|DELETE|SELECT)\b)")
_PLANNED = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")

Statement = tuple[str, tuple[int, ...]]
"""The SQL, and the types of its parameters."""


@pytest.fixture
def memory(tmp_path: Path, engine: str) -> Iterator[Memory]:
    """A memory with messages, knowledge, a rule and an edge, asked once."""
    with open_memory(tmp_path, HashEmbedder()) as opened:
        say(opened, "first", "Where does the harbour crane stand?", "At pier 5, beside the sluice.")
        say(opened, "first", "Always answer in short sentences.", title="harbour", project="port")
        top = opened.remember("The harbour opens at noon.", project="port")
        opened.remember("The sluice opens an hour earlier.", parent_id=top.id, project="port")
        use(opened, "The crane stood at pier 6 yesterday.")
        yield opened


def use(memory: Memory, message: str = "The crane was moved to pier 7 today.") -> None:
    """Recall, capture a message, and begin a session."""
    memory.recall("when does the harbour open?", project="port")
    memory.recall("What did Ada say last week?", session="first")
    say(memory, "second", message, project="port")
    memory.prompts.begin_session("third", project="port")
    memory.database.write(lambda db: None)  # after the log of the recalls


def record(memory: Memory, folder: Path, work: Callable[[Memory], None]) -> set[Statement]:
    """Return what the connections of the pool send while work is done."""
    taken = [memory.database.connect() for _ in range(_CONNECTIONS)]
    raws = [db.raw for db in taken if isinstance(db, PostgresConnection)]
    files = [folder / f"trace-{i}" for i in range(_CONNECTIONS)]
    with ExitStack() as stack:
        for raw, file in zip(raws, files, strict=True):
            raw.execute("DEALLOCATE ALL")  # a prepared statement would be sent by its name
            raw.pgconn.trace(stack.enter_context(file.open("w")).fileno())
            raw.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
        for db in taken:
            db.close()
        work(memory)
        for raw in raws:
            assert not raw.closed
            raw.pgconn.untrace()
    return {one for file in files for one in _statements(file.read_text())}


def _statements(trace: str) -> Iterator[Statement]:
    for message in _MESSAGE.finditer(trace):
        body = message["body"].strip()
        if message["kind"] == "Query":
            for sql in _JOINED.split(body[1:-1]):
                if sql.lstrip().startswith(_PLANNED):
                    yield sql, ()
        elif message["kind"] == "Parse" and (parsed := _PARSE.fullmatch(body)):
            yield parsed["sql"], tuple(map(int, parsed["types"].split()))


def plan(db: PostgresConnection, statement: Statement) -> dict[str, Any]:
    """Return how PostgreSQL runs a statement, whatever its values."""
    sql, types = statement
    if not types:
        rows = db.raw.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()
        return dict(rows[0][0][0]["Plan"])
    listed = ", ".join(_type_name(db, oid) for oid in types)
    db.raw.execute(f"PREPARE planned ({listed}) AS {sql}")
    nulls = ", ".join("NULL" for _ in types)
    rows = db.raw.execute(f"EXPLAIN (FORMAT JSON) EXECUTE planned ({nulls})").fetchall()
    db.raw.execute("DEALLOCATE planned")
    return dict(rows[0][0][0]["Plan"])


def _type_name(db: PostgresConnection, oid: int) -> str:
    return str(db.raw.execute(f"SELECT {oid}::regtype").fetchall()[0][0]) if oid else "unknown"


def nodes(plan_: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every node of a plan."""
    yield plan_
    for below in plan_.get("Plans", ()):
        yield from nodes(below)


def scans_without_owner(plan_: dict[str, Any], owned: set[str]) -> list[str]:
    """Return the tables of owners that a plan does not read by an index that begins with owner."""
    return [
        f"{node['Node Type']} of {node['Relation Name']}"
        for node in nodes(plan_)
        if "Scan" in node["Node Type"] and node.get("Relation Name") in owned
        if "(owner = " not in node.get("Index Cond", node.get("Recheck Cond", ""))
    ]


def owned_tables(db: PostgresConnection) -> set[str]:
    return set(
        db.column(
            "SELECT table_name FROM information_schema.columns"
            " WHERE table_schema = 'lore' AND column_name = 'owner' AND table_name <> 'owners'"
        )
    )


def test_every_hot_statement_reads_rows_by_their_owner(memory: Memory, tmp_path: Path) -> None:
    hot = record(memory, tmp_path, use)
    with memory.database.read() as db:
        assert isinstance(db, PostgresConnection)
        owned = owned_tables(db)
        plans = {sql: plan(db, (sql, types)) for sql, types in sorted(hot)}
    read = {node.get("Relation Name") for one in plans.values() for node in nodes(one)}
    written = {
        node["Relation Name"]
        for one in plans.values()
        for node in nodes(one)
        if node["Node Type"] == "ModifyTable"
    }
    missed = {sql: bad for sql, one in plans.items() if (bad := scans_without_owner(one, owned))}
    assert missed == {}
    assert {"items", "messages", "fragments", "vector_rows", "vectors", "standing"} <= read
    assert {"items", "messages", "message_words", "vectors", "retrievals"} <= written
    assert len(plans) > 80


def test_a_statement_of_all_owners_is_noticed(memory: Memory) -> None:
    with memory.database.read() as db:
        assert isinstance(db, PostgresConnection)
        owned = owned_tables(db)
        db.raw.execute("SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off")
        db.raw.execute("SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off")
        assert scans_without_owner(plan(db, ("SELECT * FROM items", ())), owned) == [
            "Seq Scan of items"
        ]


def test_functions_that_search_words_name_the_owner(memory: Memory) -> None:
    with memory.database.read() as db:
        bodies = db.rows(
            "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'lore'::regnamespace"
            " AND prosecdef AND (proname LIKE 'uses_in%words' OR proname = 'match_words')"
        )
    assert len(bodies) == 6
    for name, body in bodies:
        tables = re.findall(r"FROM (?:\w+_words|%I|word_totals)\b", body)
        conditions = re.findall(r"owner (?:= \$1|= own|IS NOT DISTINCT FROM own)", body)
        assert len(tables) == len(conditions) > 0, name
