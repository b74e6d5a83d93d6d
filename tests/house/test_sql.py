"""SQL lives in the store, and what is SQLite's alone in one folder of it."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.source import PACKAGE, Module, modules

STORE = PACKAGE / "store"
SQLITE = STORE / "sqlite"

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

OUTSIDE_STORE = [m for m in modules() if not m.path.is_relative_to(STORE)]
BESIDE_SQLITE = [
    m for m in modules() if m.path.is_relative_to(STORE) and not m.path.is_relative_to(SQLITE)
]


def strings(module: Module) -> Iterator[tuple[int, str]]:
    """Yield every string of a module with its line, but for docstrings; holes become `_`."""
    told = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    inner: set[int] = set()
    for node in ast.walk(module.tree):
        if id(node) in told or id(node) in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            inner |= {id(value) for value in node.values}
            pieces = (v.value if isinstance(v, ast.Constant) else "_" for v in node.values)
            yield node.lineno, "".join(map(str, pieces))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


@pytest.mark.parametrize("module", OUTSIDE_STORE, ids=lambda m: m.name)
def test_no_sql_stands_outside_the_store(module: Module):
    found = [f"{module.name}:{line} {text}" for line, text in strings(module) if SQL.search(text)]
    assert not found


@pytest.mark.parametrize("module", BESIDE_SQLITE, ids=lambda m: m.name)
def test_no_word_of_sqlites_own_stands_beside_its_folder(module: Module):
    found = [
        f"{module.name}:{line} {match[0]}"
        for line, text in strings(module)
        if (match := ONLY_SQLITE.search(text))
    ]
    assert not found


@pytest.mark.parametrize("module", BESIDE_SQLITE, ids=lambda m: m.name)
def test_the_id_of_an_item_is_read_and_compared_in_its_own_form(module: Module):
    found = [
        f"{module.name}:{line} {match[0]}"
        for line, text in strings(module)
        if (match := PLAIN_ID.search(text))
    ]
    assert not found, "id_text() reads it, id_of() compares with it"


@pytest.mark.parametrize("module", BESIDE_SQLITE, ids=lambda m: m.name)
def test_no_module_beside_the_folder_reaches_under_a_connection(module: Module):
    nodes = list(ast.walk(module.tree))
    assert "raw" not in {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert not {"apsw", "sqlite3"} & {node.id for node in nodes if isinstance(node, ast.Name)}


def test_the_word_lists_know_what_they_look_for():
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
