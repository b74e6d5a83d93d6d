"""Which programs may use the schema of a database that several versions of Lore share."""

from __future__ import annotations

from lore.store import migrations

SCHEMA_LOCK = 0x6C6F7265
"""The lock under which one process changes the schema, while every writer shares it."""

REVISION = 3
"""The revision of the functions in `schema.py`; they are created again when it changes."""

OLDEST_REVISION = REVISION
"""The oldest revision whose programs can use these functions; lower if they were only added to."""

PLACE = "The memory on this server"
"""What was upgraded, for a message: the address may have a password."""

TOO_OLD = "LO001"
"""The error code of PostgreSQL for a transaction of a program that is too old."""

FUNCTION = f"""
CREATE OR REPLACE FUNCTION require_program(steps integer, revision integer) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM revisions WHERE oldest_steps > steps OR oldest_revision > revision) THEN
        RAISE 'the schema is of a newer program' USING ERRCODE = '{TOO_OLD}';
    END IF;
END $$;
"""

REQUIRE = f"; SELECT require_program({len(migrations.MIGRATIONS)}, {REVISION})"
"""What every transaction begins with: a newer program may have changed the schema since the last
one."""

REQUIRE_TO_WRITE = f"; SELECT pg_advisory_xact_lock_shared({SCHEMA_LOCK}){REQUIRE}"
"""What a transaction that writes begins with: the schema does not change until it ends."""
