"""SQL is in the store, and SQL that only SQLite knows is in store/sqlite."""

import ast
import re
from collections.abc import Iterable, Iterator

from tests.house.source import PACKAGE, Module, modules

STORE = PACKAGE / "store"
SQLITE = STORE / "sqlite"
ENGINES = (SQLITE, STORE / "postgres", STORE / "sql_connection.py")
"""What knows an engine: a folder for each, and the fragments of SQL that they spell apart."""

SQL = re.compile(
    r"\bSELECT\b.+\bFROM\b|\bINSERT INTO\b|\bUPDATE \w+ SET\b|\bDELETE FROM\b"
    r"|\bCREATE (?:TABLE|INDEX)\b|\bPRAGMA\b|\bpragma_\w+",
    re.DOTALL,
)

ONLY_SQLITE = re.compile(
    r"\b(?:MATCH|bm25|fts5\w*|rowid|json_each|json_extract|json_group_\w+|carray|PRAGMA|pragma_\w+|VACUUM"
    r"|AUTOINCREMENT|ATTACH|GLOB|REPLACE INTO|INSERT OR|UPDATE OR|IFNULL|GROUP_CONCAT|STRFTIME"
    r"|JULIANDAY|UNIXEPOCH|LAST_INSERT_ROWID|TOTAL_CHANGES|WITHOUT ROWID|INDEXED BY"
    r"|BEGIN (?:IMMEDIATE|EXCLUSIVE|DEFERRED)|sqlite_\w+|\w+_docsize|\w+_vocabulary)\b"
    r"|\b(?:max|min)\([^()]*,"
    r"|\bINTEGER PRIMARY KEY(?! REFERENCES)",
    re.IGNORECASE,
)
"""Words and forms that another engine does not know; max and min of two values among them."""

PLAIN_ID = re.compile(
    r"\bi\.id\s*(?:,|FROM\b|=\s*:)|\bid\s*(?:,[^;]*)? FROM items\b"
    r"|FROM items\b[^;]*\bid\s*[=<>]+\s*:"
)
"""Ids of items as if they were text."""

REDACTION = PACKAGE / "redaction"
"""Its rules match SQL statements with passwords."""


def outside_store() -> list[Module]:
    return [
        m
        for m in modules()
        if not m.path.is_relative_to(STORE) and not m.path.is_relative_to(REDACTION)
    ]


def beside_engines() -> list[Module]:
    return [
        m
        for m in modules()
        if m.path.is_relative_to(STORE) and not any(map(m.path.is_relative_to, ENGINES))
    ]


def strings(module: Module) -> Iterator[tuple[int, str]]:
    """Yield every string of a module with its line, but for docstrings; placeholders become `_`."""
    docstrings = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    inner: set[int] = set()
    for node in ast.walk(module.tree):
        if id(node) in docstrings or id(node) in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            inner |= {id(value) for value in node.values}
            pieces = (v.value if isinstance(v, ast.Constant) else "_" for v in node.values)
            yield node.lineno, "".join(map(str, pieces))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def matches(among: Iterable[Module], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{module.name}:{line} {match[0]}"
        for module in among
        for line, text in strings(module)
        if (match := pattern.search(text))
    ]


def test_no_sql_is_outside_the_store():
    assert not matches(outside_store(), SQL)


def test_sql_of_sqlite_alone_is_in_its_folder():
    assert not matches(beside_engines(), ONLY_SQLITE)


def test_item_ids_are_read_and_compared_in_their_stored_form():
    assert not matches(beside_engines(), PLAIN_ID), "id_text() reads it, id_of() compares with it"


def test_only_the_folders_of_engines_use_raw_connections():
    for module in beside_engines():
        nodes = list(ast.walk(module.tree))
        attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        assert "raw" not in attributes, module.name
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        assert not {"apsw", "sqlite3", "psycopg"} & names, module.name


def test_the_patterns_match_what_they_look_for():
    assert SQL.search("SELECT n\nFROM items")
    assert SQL.search("pragma_table_info('items')")
    assert not SQL.search("Select one from the list")
    for text in (
        "w MATCH :q", "max(a, :b)", "min(1.0, x)", "PRAGMA x", "n INTEGER PRIMARY KEY,",
        "SELECT name FROM pragma_table_info(:name)",
    ):  # fmt: skip
        assert ONLY_SQLITE.search(text), text
    for text in ("max(ordinal) + 1", "n INTEGER PRIMARY KEY REFERENCES items", "matching"):
        assert not ONLY_SQLITE.search(text), text
