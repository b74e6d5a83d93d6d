"""The schema on PostgreSQL: roles, functions, word tables, and the migrations of the store."""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg

from lore import clock
from lore.errors import StoreError
from lore.store import migrations
from lore.store.postgres import program
from lore.store.postgres.dialect import OWNER, protect
from lore.store.postgres.owner_connection import (
    APPLICATION_ROLE,
    SCHEMA,
    PostgresConnection,
    connect,
    translate_error,
)
from lore.store.postgres.vector_rows import MOST_GRAPH_DIMENSIONS
from lore.store.sql_connection import newer_schema_error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NOBODY = UUID(int=0)
"""The owner of what migrations write; nobody's memory has it."""

_OWNER_ROLE = "lore_owner"
"""The role that owns the tables: policies hold for it too, also while it changes the schema."""

_PI2_6 = 1.64493406685
_MAX_COUNT = 64


def _count_bounds() -> str:
    """Return the bounds of `ts_rank` between one use of a word and the next.

    For one word and weights of 0 and 1, `ts_rank` is the sum of 1/i² for its uses i, over π²/6.
    """
    sums = [0.0]
    for i in range(1, _MAX_COUNT + 1):
        sums.append(sums[-1] + 1 / (i * i))
    return ",".join(f"{(low + high) / 2 / _PI2_6:.9f}" for low, high in pairwise(sums))


_FEW_USES = 5
"""Uses of a word in a row that one call of `ts_rank` tells by column."""

_RANK_WEIGHTS = (1.0, 0.05, 0.002)
"""Weights of the three columns for which no two sums of few uses are alike."""

_MORE_USES = -1

_RANK_ERROR = 5e-6
"""More than the error of `ts_rank`, which has 32 bits, and less than half a step between sums."""


def _rank_table() -> tuple[str, list[str]]:
    """Return bounds of `ts_rank` around each sum of few uses, and for these uses by column.

    Between two sums there is a sign for more uses: an array with NULL would be read slowly.
    """
    sums = {}
    counts = range(_FEW_USES + 1)
    for uses in product(counts, counts, counts):
        weights = [w for w, count in zip(_RANK_WEIGHTS, uses, strict=True) for _ in range(count)]
        if 0 < len(weights) <= _FEW_USES:
            sums[sum(w / i**2 for i, w in enumerate(weights, 1)) / _PI2_6] = uses
    ordered = sorted(sums.items())
    bounds = [f"{rank + side:.9f}" for rank, _ in ordered for side in (-_RANK_ERROR, _RANK_ERROR)]
    columns = [",".join(f"{uses[i]},{_MORE_USES}" for _, uses in ordered) for i in range(3)]
    return ",".join(bounds), columns


_RANK_LABELS = ",".join(map(str, reversed(_RANK_WEIGHTS)))
_RANK_BOUNDS, (_USES_OF_A, _USES_OF_B, _USES_OF_C) = _rank_table()

_FUNCTIONS = f"""
CREATE OR REPLACE FUNCTION current_owner() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('lore.owner', true), '')::uuid;

{program.FUNCTION}
CREATE OR REPLACE FUNCTION instr(whole text, part text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN strpos(whole, part);

CREATE OR REPLACE FUNCTION small_exp(x float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN exp(greatest(x, -300::float8));

CREATE OR REPLACE FUNCTION unhex(digits text, ignored text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN length(replace(digits, ignored, '')) % 2 = 0
    AND replace(digits, ignored, '') ~ '^[0-9a-fA-F]*$'
    THEN decode(replace(digits, ignored, ''), 'hex') END;

CREATE OR REPLACE FUNCTION hex(bytes bytea) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN upper(encode(bytes, 'hex'));

CREATE OR REPLACE FUNCTION json_extract(document text, path text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN document = '' THEN NULL
    ELSE document::json #>> string_to_array(substr(path, 3), '.') END;

CREATE OR REPLACE FUNCTION json_each(document text) RETURNS TABLE (value text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT json_array_elements_text(nullif(document, '')::json) $$;

CREATE TABLE IF NOT EXISTS used_numbers (
    {OWNER}, name TEXT NOT NULL, last BIGINT NOT NULL, PRIMARY KEY (owner, name));
{protect("used_numbers")};

CREATE TABLE IF NOT EXISTS word_totals (
    {OWNER}, name TEXT NOT NULL, entries BIGINT NOT NULL, length BIGINT NOT NULL,
    PRIMARY KEY (owner, name));
{protect("word_totals")};

CREATE TABLE IF NOT EXISTS owners (owner UUID PRIMARY KEY);

CREATE OR REPLACE FUNCTION register_owner() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS $$
    INSERT INTO owners VALUES (current_owner()) ON CONFLICT DO NOTHING
$$;

CREATE OR REPLACE FUNCTION unregister_owner() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS $$
    DELETE FROM owners WHERE owner = current_owner()
$$;

CREATE OR REPLACE FUNCTION use_number(of_table text, number bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO used_numbers (name, last) VALUES (of_table, number)
    ON CONFLICT (owner, name) DO UPDATE SET last = greatest(used_numbers.last, excluded.last)
$$;

CREATE OR REPLACE FUNCTION next_number(of_table text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    place text := CASE WHEN of_table IN ('vectors', 'changes') THEN 'seq' ELSE 'n' END;
    highest bigint;
BEGIN
    EXECUTE format('SELECT max(%I) FROM %I', place, of_table) INTO highest;
    RETURN 1 + greatest(highest, (SELECT last FROM used_numbers WHERE name = of_table), 0);
END $$;

CREATE OR REPLACE FUNCTION note_used_numbers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    highest bigint;
BEGIN
    EXECUTE format('SELECT max(%I) FROM gone', TG_ARGV[0]) INTO highest;
    IF highest IS NOT NULL THEN
        PERFORM use_number(TG_TABLE_NAME::text, highest);
    END IF;
    RETURN NULL;
END $$;

-- Once in a transaction, unless a savepoint before it is rolled back.
CREATE OR REPLACE FUNCTION count_vector_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    own text := current_setting('lore.owner', true);
BEGIN
    IF current_setting('lore.vectors_changed', true) IS DISTINCT FROM own THEN
        INSERT INTO used_numbers (name, last) VALUES ('vector changes', 1)
        ON CONFLICT (owner, name) DO UPDATE SET last = used_numbers.last + 1;
        PERFORM set_config('lore.vectors_changed', own, true);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION owned_words(words text) RETURNS tsvector
LANGUAGE sql STABLE PARALLEL SAFE
RETURN replace(words, chr(1), left(current_owner()::text, 6))::tsvector;

CREATE OR REPLACE FUNCTION owned_query(words text) RETURNS tsquery
LANGUAGE sql STABLE PARALLEL SAFE
RETURN replace(words, chr(1), left(current_owner()::text, 6))::tsquery;

CREATE OR REPLACE FUNCTION create_word_table(name text, columns text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I ({OWNER}, n BIGINT NOT NULL, words TSVECTOR NOT NULL,'
        ' length BIGINT NOT NULL, PRIMARY KEY (owner, n))', name);
    EXECUTE format('CREATE INDEX %I ON %I USING gin (words)', name || '_words', name);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN words SET STORAGE MAIN', name);
    EXECUTE replace('{protect("%")}', '%', name);
    -- A condition on words may only use the index where no policy must be checked before it, so
    -- the functions that search run with the role of the table's owner, and check it themselves.
    EXECUTE format('CREATE POLICY search ON %I FOR SELECT TO %I USING (true)', name, current_user);
END $$;

CREATE OR REPLACE FUNCTION match_words(of_table text, words text) RETURNS TABLE (n bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS $$
BEGIN
    IF of_table !~ '^[a-z_]+_words$' THEN RAISE 'no word table'; END IF;
    RETURN QUERY EXECUTE format(
        'SELECT n FROM %I WHERE owner = $1 AND words @@ $2', of_table)
        USING current_owner(), owned_query(words);
END $$;

CREATE OR REPLACE FUNCTION create_word_search(of_table text) RETURNS void
LANGUAGE plpgsql AS $create$
BEGIN
    EXECUTE format('DROP FUNCTION IF EXISTS %I', 'search_' || of_table);
    EXECUTE replace($function$
CREATE OR REPLACE FUNCTION uses_in_word_table(phrases text[], weights float8[])
RETURNS TABLE (entries bigint, total bigint, ns bigint[], lengths bigint[], uses float8[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS $$
DECLARE
    own uuid := current_owner();
    queries tsquery[] := ARRAY(SELECT owned_query(one) FROM unnest(phrases) AS one);
    -- Uses up to a column count with its weight, less that of the next.
    of_a float8 := weights[1] - coalesce(weights[2], 0);
    of_b float8 := coalesce(weights[2], 0) - coalesce(weights[3], 0);
    of_c float8 := coalesce(weights[3], 0);
    few_uses float8[] := ARRAY(SELECT
        CASE WHEN a = {_MORE_USES} THEN {_MORE_USES} ELSE
            weights[1] * a + coalesce(weights[2], 0) * b + coalesce(weights[3], 0) * c END
        FROM unnest('{{{_USES_OF_A}}}'::integer[], '{{{_USES_OF_B}}}'::integer[],
            '{{{_USES_OF_C}}}'::integer[]) AS by_column (a, b, c));
    all_entries bigint; all_words bigint;
BEGIN
    SELECT t.entries, t.length INTO all_entries, all_words
        FROM word_totals t WHERE t.owner = own AND t.name = 'word_table';
    IF coalesce(all_entries, 0) <= 0 THEN RETURN; END IF;
    -- The owner's rows are found by their words, which begin with letters of the owner: a
    -- comparison that no index knows keeps the planner from listing all rows of the owner.
    -- Each phrase is looked up on its own: a row is then compared with those alone that it has.
    RETURN QUERY
    SELECT all_entries, all_words, array_agg(u.n), array_agg(u.length), array_agg(u.f)
    FROM unnest(queries) WITH ORDINALITY AS q (query, i) CROSS JOIN LATERAL (
        SELECT w.n, w.length, CASE
            WHEN numnode(q.query) > 1 THEN -- a phrase counts once in each column
                weights[1] * (w.words @@ labelled(q.query, 'A'))::integer
                + coalesce(weights[2], 0) * (w.words @@ labelled(q.query, 'B'))::integer
                + coalesce(weights[3], 0) * (w.words @@ labelled(q.query, 'C'))::integer
            ELSE coalesce(
                nullif(few_uses[width_bucket(
                    ts_rank('{{0,{_RANK_LABELS}}}', w.words, q.query)::float8,
                    ARRAY[{_RANK_BOUNDS}]::float8[])], {_MORE_USES}),
                of_a * count_uses('{{0,0,0,1}}', w.words, q.query)
                + of_b * count_uses('{{0,0,1,1}}', w.words, q.query)
                + of_c * count_uses('{{0,1,1,1}}', w.words, q.query))
            END AS f
        FROM word_table w
        WHERE w.owner IS NOT DISTINCT FROM own AND w.words @@ q.query OFFSET 0
    ) AS u GROUP BY q.i ORDER BY q.i;
END $$
    $function$, 'word_table', of_table);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %I FROM PUBLIC', 'uses_in_' || of_table);
END $create$;

CREATE OR REPLACE FUNCTION labelled(query tsquery, label text) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN regexp_replace(query::text, '''( |$)', ''':' || label || '\\1', 'g')::tsquery;

DROP FUNCTION IF EXISTS search_words;

CREATE OR REPLACE FUNCTION count_uses(labels real[], words tsvector, query tsquery) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN width_bucket(
    ts_rank(labels, words, query)::float8, ARRAY[{_count_bounds()}]::float8[]);
"""

_WORD_SEARCH = f"""
DO $$
DECLARE
    of_table text;
BEGIN
    FOR of_table IN SELECT table_name FROM information_schema.columns
        WHERE table_schema = '{SCHEMA}' AND data_type = 'tsvector'
    LOOP
        PERFORM create_word_search(of_table);
        EXECUTE format(
            'GRANT EXECUTE ON FUNCTION %I TO {APPLICATION_ROLE}', 'uses_in_' || of_table);
    END LOOP;
END $$
"""
"""A function for each word table: its statement is planned once."""

_VECTORS = f"""
CREATE TABLE IF NOT EXISTS vector_rows (
    {OWNER}, n BIGINT NOT NULL, embedder_n BIGINT NOT NULL, part INTEGER NOT NULL,
    dimension INTEGER NOT NULL, project_n BIGINT NOT NULL, type BIGINT NOT NULL,
    created_at BIGINT NOT NULL, in_graph BOOLEAN NOT NULL DEFAULT false,
    embedding halfvec NOT NULL, PRIMARY KEY (owner, embedder_n, n, part),
    FOREIGN KEY (owner, n, embedder_n) REFERENCES vectors (owner, n, embedder_n)
        ON DELETE CASCADE);
{protect("vector_rows")};
CREATE INDEX IF NOT EXISTS vector_rows_outside ON vector_rows (owner, embedder_n)
    WHERE NOT in_graph;

CREATE OR REPLACE FUNCTION ensure_graph(dimension integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {SCHEMA}, public, pg_temp AS $$
DECLARE
    name text := 'vector_rows_graph_' || dimension;
BEGIN
    IF to_regclass(name) IS NOT NULL THEN RETURN; END IF;
    IF dimension NOT BETWEEN 1 AND 64000 THEN RAISE 'no such dimension'; END IF;
    EXECUTE format(CASE WHEN dimension <= {MOST_GRAPH_DIMENSIONS}
        THEN 'CREATE INDEX %1$I ON vector_rows USING hnsw'
            ' ((embedding::halfvec(%2$s)) halfvec_ip_ops) WHERE in_graph AND dimension = %2$s'
        ELSE 'CREATE INDEX %1$I ON vector_rows USING hnsw'
            ' ((binary_quantize(embedding)::bit(%2$s)) bit_hamming_ops)'
            ' WHERE in_graph AND dimension = %2$s' END, name, dimension);
END $$;
REVOKE EXECUTE ON FUNCTION ensure_graph FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ensure_graph TO {APPLICATION_ROLE};
"""

_SEQUENCES = f"""
CREATE OR REPLACE FUNCTION skip_used_numbers() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS $$
DECLARE
    name text; of_table text; highest bigint; next bigint;
BEGIN
    FOREACH of_table IN ARRAY ARRAY['changes', 'vectors'] LOOP
        name := pg_get_serial_sequence(of_table, 'seq');
        EXECUTE format('SELECT max(seq) FROM %I WHERE owner = current_owner()', of_table)
            INTO highest;
        next := nextval(name);  -- others count on meanwhile: never back
        IF highest > next THEN
            PERFORM setval(name, highest);
        END IF;
    END LOOP;
END $$;
"""

_TRIGGERS = "".join(
    f"CREATE OR REPLACE TRIGGER note_used_numbers AFTER DELETE ON {table}"
    " REFERENCING OLD TABLE AS gone FOR EACH STATEMENT"
    f" EXECUTE FUNCTION note_used_numbers('{place}');\n"
    for table, place in (("items", "n"), ("vectors", "seq"), ("changes", "seq"))
) + (
    "CREATE OR REPLACE TRIGGER count_vector_change AFTER INSERT OR UPDATE OR DELETE ON vectors"
    " FOR EACH STATEMENT EXECUTE FUNCTION count_vector_change();\n"
)

_GRANTS = f"""
GRANT USAGE ON SCHEMA {SCHEMA} TO {APPLICATION_ROLE};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {APPLICATION_ROLE};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {APPLICATION_ROLE};
REVOKE INSERT, UPDATE, DELETE ON migrations, revisions FROM {APPLICATION_ROLE};
REVOKE ALL ON owners FROM {APPLICATION_ROLE};
REVOKE EXECUTE ON FUNCTION match_words FROM PUBLIC;
GRANT EXECUTE ON FUNCTION match_words TO {APPLICATION_ROLE};
"""


def is_current(raw: psycopg.Connection[Any]) -> bool:
    """Return whether the schema serves this Lore, by a connection of any role."""
    try:
        return _is_usable(raw, migrations.MIGRATIONS)
    except psycopg.Error as error:
        raise translate_error(error) from error


def prepare(
    url: str, path: Path, steps: Sequence[migrations.Migration] = migrations.MIGRATIONS
) -> None:
    """Create or migrate the schema with the role of the URL, unless it is up to date.

    Refuse a schema that a newer Lore changed so that this one cannot use it, and one that is out of
    date if the role may not change it.
    """
    raw = connect(url)
    try:
        if not _is_usable(raw, steps):
            _create(raw, path, steps)
    except psycopg.Error as error:
        raise translate_error(error) from error
    finally:
        raw.close()


def _state(raw: psycopg.Connection[Any]) -> tuple[set[str], int]:
    """Return the applied migrations and the revision of the functions."""
    row = raw.execute(f"SELECT to_regclass('{SCHEMA}.revisions')").fetchone()
    if row is None or row[0] is None:
        return set(), 0
    applied = {name for (name,) in raw.execute("SELECT name FROM migrations").fetchall()}
    newest = raw.execute("SELECT max(n) FROM revisions").fetchone()
    return applied, (newest[0] or 0) if newest else 0


def _is_usable(raw: psycopg.Connection[Any], steps: Sequence[migrations.Migration]) -> bool:
    """Return whether the schema has all that this program needs; refuse one that is too new."""
    applied, revision = _state(raw)
    names = {step.__name__ for step in steps}
    if applied <= names and revision <= program.REVISION:
        return applied == names and revision == program.REVISION
    oldest_steps, oldest_revision = _oldest_program(raw)
    if names - applied or not 0 < oldest_steps <= len(steps) or oldest_revision > program.REVISION:
        raise newer_schema_error(program.PLACE)
    return True


def _oldest_program(raw: psycopg.Connection[Any]) -> tuple[int, int]:
    """Return how many migrations, and which revision, a program must know; 0 if nothing says so."""
    row = raw.execute(
        "SELECT coalesce(max((to_jsonb(r) ->> 'oldest_steps')::integer), 0),"
        " coalesce(max((to_jsonb(r) ->> 'oldest_revision')::integer), 0) FROM revisions r"
    ).fetchone()
    return (row[0], row[1]) if row else (0, 0)


def _create(
    raw: psycopg.Connection[Any], path: Path, steps: Sequence[migrations.Migration]
) -> None:
    """Create what is missing in one transaction, while other processes wait."""
    _require_version(raw)
    raw.execute(f"BEGIN; SELECT pg_advisory_xact_lock({program.SCHEMA_LOCK})")
    if _is_usable(raw, steps):  # another process did it meanwhile
        raw.execute("ROLLBACK")
        return
    raw.execute("SET LOCAL client_min_messages = warning")
    for role in (_OWNER_ROLE, APPLICATION_ROLE):
        _ensure_role(raw, role)
    raw.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    _require_extension(raw)
    raw.execute(
        f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} AUTHORIZATION {_OWNER_ROLE};"
        f" SET LOCAL ROLE {_OWNER_ROLE}; SET LOCAL lore.owner = '{_NOBODY}';"
        " CREATE TABLE IF NOT EXISTS revisions (n INTEGER PRIMARY KEY);"
        " ALTER TABLE revisions ADD COLUMN IF NOT EXISTS oldest_steps INTEGER NOT NULL DEFAULT 0,"
        " ADD COLUMN IF NOT EXISTS oldest_revision INTEGER NOT NULL DEFAULT 0"
    )
    raw.execute(_FUNCTIONS)
    db = PostgresConnection(raw, path, _NOBODY)
    applied = set(db.column("SELECT name FROM migrations")) if db.has_table("migrations") else set()
    migrations.apply_all(db, steps, clock.now)
    for (owner,) in raw.execute("SELECT owner FROM owners").fetchall():
        _change_rows(raw, path, owner, [step for step in steps if step.__name__ not in applied])
    raw.execute(f"SET LOCAL lore.owner = '{_NOBODY}'")
    raw.execute(_WORD_SEARCH)
    raw.execute(_VECTORS)
    raw.execute(_SEQUENCES)
    raw.execute(_TRIGGERS)
    raw.execute(_GRANTS)
    raw.execute(
        "INSERT INTO revisions (n, oldest_steps, oldest_revision) VALUES"
        f" ({program.REVISION}, {migrations.oldest_program(steps)}, {program.OLDEST_REVISION})"
        " ON CONFLICT (n) DO UPDATE SET"
        " oldest_steps = greatest(revisions.oldest_steps, excluded.oldest_steps)"
    )
    raw.execute("COMMIT")


def _change_rows(
    raw: psycopg.Connection[Any],
    path: Path,
    owner: UUID,
    steps: Sequence[migrations.Migration],
) -> None:
    """Apply what migrations do to the rows of an owner; their definitions are there."""
    raw.execute(f"SET LOCAL lore.owner = '{owner}'")
    db = PostgresConnection(raw, path, owner, defines=False)
    for step in steps:
        step(db)


_OLDEST_SERVER = 150_000
"""PostgreSQL 15 is the first that empties one column of a foreign key of two."""


_OLDEST_PGVECTOR = (0, 8)
"""pgvector 0.8 is the first that continues a search of its graph until enough rows pass."""


def _require_extension(raw: psycopg.Connection[Any]) -> None:
    row = raw.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    version = str(row[0]) if row else "0.0"
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_PGVECTOR:
        msg = f"pgvector {version} is too old."
        raise StoreError(msg, hint="Lore needs 0.8 or newer: ALTER EXTENSION vector UPDATE;")


def _require_version(raw: psycopg.Connection[Any]) -> None:
    if raw.info.server_version < _OLDEST_SERVER:
        msg = f"PostgreSQL {raw.info.server_version // 10_000} is too old."
        raise StoreError(msg, hint="Lore needs PostgreSQL 15 or newer, with pgvector.")


def _ensure_role(raw: psycopg.Connection[Any], role: str) -> None:
    """Create a role, and let the role of the URL change to it."""
    known = raw.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'").fetchone()
    if known is None:
        raw.execute(f"CREATE ROLE {role} NOLOGIN NOSUPERUSER NOBYPASSRLS")
        raw.execute(f"GRANT {role} TO CURRENT_USER")
