"""The store's SQL in the words of PostgreSQL.

Statements of the store name their parameters `:name` and say nothing of owners. Row-level security
adds the owner to every condition, so only keys of conflicts and definitions of tables name it.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"""
    (?P<text>'(?:[^']|'')*')
    | (?P<cast>::)
    | (?P<among>\bIN\ \(SELECT\ value\ FROM\ carray\(:(?P<listed>\w+)\)\))
    | (?P<array>\bcarray\(:(?P<bound>\w+)\))
    | :(?P<name>[A-Za-z_]\w*)
    | (?P<percent>%)
    | (?P<like>\bLIKE\b)
    | (?P<conflict>\bON\ CONFLICT\ \()
    | (?P<same>\bIS\ (?P<different>NOT\ )?(?=:|-?\d))
    | (?P<exp>\bexp\()
    | (?P<integer>\bAS\ INTEGER\))
    """,
    re.VERBOSE,
)


def _translate_token(match: re.Match[str]) -> str:  # noqa: C901, PLR0911 - a line for each word
    if match["text"] is not None:
        return match["text"].replace("%", "%%")
    if match["among"] is not None:
        return f"= ANY(%({match['listed']})s)"  # which an index finds, unlike rows of a function
    if match["array"] is not None:
        return f"unnest(%({match['bound']})s) AS bound (value)"
    if match["name"] is not None:
        return f"%({match['name']})s"
    if match["percent"] is not None:
        return "%%"
    if match["like"] is not None:
        return "ILIKE"  # as in SQLite, where LIKE ignores the case of ASCII letters
    if match["conflict"] is not None:
        return "ON CONFLICT (owner, "
    if match["same"] is not None:
        return "IS DISTINCT FROM " if match["different"] else "IS NOT DISTINCT FROM "
    if match["exp"] is not None:
        return "small_exp("  # PostgreSQL's fails where the result is too small
    if match["integer"] is not None:
        return "AS BIGINT)"
    return match[0]


@lru_cache(maxsize=4_096)
def translate(sql: str) -> str:
    """Return a statement of the store as psycopg and PostgreSQL read it."""
    head = sql.lstrip()[:13].upper()
    if head.startswith(("CREATE TABLE", "CREATE INDEX", "ALTER TABLE")):
        return translate_definition(sql)
    return _TOKEN.sub(_translate_token, sql)


_NULL_TEST = re.compile(r":(?P<name>\w+) IS (?P<isnt>NOT )?NULL\b")


@lru_cache(maxsize=4_096)
def translate_query(sql: str, nulls: frozenset[str]) -> str:
    """Return a query whose values the server binds; parameters in `nulls` become the word NULL.

    PostgreSQL knows no type for a parameter that is only compared with NULL, so whether it is one
    is decided here.
    """
    decided = _NULL_TEST.sub(
        lambda match: "FALSE" if (match["name"] in nulls) == bool(match["isnt"]) else "TRUE", sql
    )
    return _TOKEN.sub(
        lambda match: "NULL" if match["name"] in nulls else _translate_token(match), decided
    )


@lru_cache(maxsize=4_096)
def is_query(sql: str) -> bool:
    """Return whether a statement is a query, which is worth preparing."""
    return sql.lstrip()[:7].upper() in {"SELECT ", "SELECT\n", "WITH RE"}


@lru_cache(maxsize=4_096)
def parameter_names(sql: str) -> tuple[str, ...]:
    """Return the names of the parameters of a statement in order of their first use."""
    names = (match["listed"] or match["bound"] or match["name"] for match in _TOKEN.finditer(sql))
    return tuple(dict.fromkeys(filter(None, names)))


@lru_cache(maxsize=1_024)
def split_insert(sql: str) -> tuple[str, str, str] | None:
    """Return an INSERT of one row before, in and after its values; None for other statements."""
    # A row that is not numbered by the caller gets a number that the rows before it must have.
    match = re.fullmatch(
        r"(\s*INSERT INTO \w+ \((?:[^()]*, )?n\b[^()]*\) VALUES )"
        r"(\((?:[^()]|\([^()]*\))*\))((?: ON CONFLICT.*)?)",
        sql,
        re.DOTALL,
    )
    return None if match is None else (match[1], translate(match[2]), translate(match[3]))


_TYPES = {
    "INTEGER": "BIGINT",
    "BIGINT": "BIGINT",
    "SMALLINT": "SMALLINT",
    "REAL": "DOUBLE PRECISION",
    "TEXT": 'TEXT COLLATE "C"',
    "BLOB": "BYTEA",
}

_SHARED_TABLES = ("migrations",)
"""Tables of the whole database; all others belong to owners, row by row."""

OWNER = "owner UUID NOT NULL DEFAULT current_owner()"

_REFERENCE = re.compile(
    r"\s*REFERENCES (?P<table>\w+) \((?P<key>\w+)\)(?: ON DELETE (?P<action>CASCADE|SET NULL))?"
)
_TABLE = re.compile(
    r"\s*CREATE TABLE (?P<unless>IF NOT EXISTS )?(?P<name>\w+)\s*\((?P<body>.*)\)\s*", re.DOTALL
)
_INDEX = re.compile(
    r"\s*CREATE INDEX (?P<name>\w+) ON (?P<table>\w+) \((?P<columns>[^()]*)\)(?P<rest>.*)",
    re.DOTALL,
)
_NEW_COLUMN = re.compile(r"\s*ALTER TABLE (?P<table>\w+) ADD COLUMN (?P<column>.*)", re.DOTALL)


def translate_definition(sql: str) -> str:
    """Return the definition of a table, an index or a column; keys and indexes begin with owner."""
    if match := _TABLE.fullmatch(sql):
        return _table(match["name"], match["body"], match["unless"] or "")
    if match := _INDEX.fullmatch(sql):
        name, table, columns, rest = match.group("name", "table", "columns", "rest")
        return f"CREATE INDEX {name} ON {table} (owner, {columns}){rest}"
    if match := _NEW_COLUMN.fullmatch(sql):
        definition, constraints = _column(match["column"], match["table"])
        parts = [f"ADD COLUMN {definition}", *(f"ADD {constraint}" for constraint in constraints)]
        return f"ALTER TABLE {match['table']} {', '.join(parts)}"
    return sql


def _table(name: str, body: str, unless: str) -> str:
    is_shared = name in _SHARED_TABLES
    parts: list[str] = []
    constraints: list[str] = []
    for part in _split(body):
        if key := re.fullmatch(r"(PRIMARY KEY|UNIQUE) \((.*)\)", part):
            constraints.append(f"{key[1]} (owner, {key[2]})")
            continue
        definition, more = _column(part, name)
        parts.append(definition)
        constraints += more
    if not is_shared:
        parts.append(OWNER)  # last, for an INSERT that names no columns
    else:
        constraints = [one.replace("(owner, ", "(") for one in constraints]
    created = f"CREATE TABLE {unless}{name} ({', '.join(parts + constraints)})"
    return created if is_shared else f"{created}; {protect(name)}"


def protect(table: str) -> str:
    """Return the statements that let an owner reach their own rows of a table alone."""
    return (
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;"
        f" ALTER TABLE {table} FORCE ROW LEVEL SECURITY;"
        f" DROP POLICY IF EXISTS own_rows ON {table};"
        f" CREATE POLICY own_rows ON {table}"
        " USING (owner = current_owner()) WITH CHECK (owner = current_owner())"
    )


def _split(body: str) -> list[str]:
    """Return the columns and constraints of a table, which commas outside of brackets divide."""
    parts, depth, start = [], 0, 0
    for at, sign in enumerate(body):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            parts.append(body[start:at])
            start = at + 1
    return [" ".join(part.split()) for part in (*parts, body[start:])]


def _column(text: str, table: str) -> tuple[str, list[str]]:
    """Return the definition of a column, and its constraints as those of the table."""
    name, kind, *_ = text.split()
    rest = " ".join(text.split()[2:])
    constraints: list[str] = []
    if reference := _REFERENCE.search(f" {rest}"):
        constraints.append(_foreign_key(name, reference))
        rest = _REFERENCE.sub("", f" {rest}").strip()
    numbered = kind == "INTEGER" and rest.startswith("PRIMARY KEY") and not constraints
    if "PRIMARY KEY" in rest:
        constraints.append(f"PRIMARY KEY (owner, {name})")
    if re.search(r"\bUNIQUE\b", rest):
        constraints.append(f"UNIQUE (owner, {name})")
    rest = re.sub(r"PRIMARY KEY(?: AUTOINCREMENT)?|\bUNIQUE\b", "", rest)
    default = ""
    if numbered and name == "n":
        # An owner's rows are numbered without gaps, as in SQLite: a sequence is of all owners.
        default = f" NOT NULL DEFAULT next_number('{table}')"
    elif numbered:
        default = " GENERATED BY DEFAULT AS IDENTITY"
    definition = " ".join(f"{name} {_TYPES[kind]} {rest}{default}".split())
    return definition, constraints


def _foreign_key(name: str, reference: re.Match[str]) -> str:
    action = reference["action"] or ""
    # Only the column is emptied: without its owner the row would belong to nobody.
    action = {"": "", "SET NULL": f" ON DELETE SET NULL ({name})"}.get(action, " ON DELETE CASCADE")
    return (
        f"FOREIGN KEY (owner, {name})"
        f" REFERENCES {reference['table']} (owner, {reference['key']}){action}"
    )
