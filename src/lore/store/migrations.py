"""Schema migrations: named steps, each recorded in the transaction that applies it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from lore import clock
from lore.errors import StoreDamaged
from lore.store import keywords, sqlite, standing_instructions, task_tables
from lore.store.files import make_folder
from lore.store.replacements import STATEMENT_BYTES, statement_key
from lore.store.sql_connection import (
    AUTOINCREMENT,
    ID,
    ROW_NUMBER,
    Connection,
    json_field,
    newer_schema_error,
)
from lore.text import instructions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lore.store.database import Database

Migration = Callable[[Connection], None]

_ADDITIVE: set[str] = set()
"""Names of the steps after which a program that does not know them can go on."""


def additive(step: Migration) -> Migration:
    """Mark a step that adds what an older program neither reads nor must write.

    Such are new tables, new indexes, and new columns with a default that is right for the rows of
    an older program. Rows with contents must go with their items (ON DELETE CASCADE), since an
    older program forgets too. Any other step makes programs that do not know it refuse the
    database.
    """
    _ADDITIVE.add(step.__name__)
    return step


def oldest_program(steps: Sequence[Migration]) -> int:
    """Return how many of the steps a program must know to use a database that has all of them."""
    breaking = (n for n, step in enumerate(steps, 1) if step.__name__ not in _ADDITIVE)
    return max(breaking, default=0)


def m001_initial(db: Connection) -> None:
    """Create the tables of the first release."""
    for statement in _INITIAL.split(";\n"):
        if statement.strip():
            db.rows(statement)
    keywords.create(db)
    db.run("INSERT INTO meta (key, value) VALUES ('epoch', :epoch)", epoch=uuid.uuid4().hex)


def m002_requests(db: Connection) -> None:
    """Add columns of requests to the spend ledger: layer, bust, delay, and cost without Lore."""
    for column in (
        "layer INTEGER",
        "busts INTEGER NOT NULL DEFAULT 0",
        "delay_ms INTEGER NOT NULL DEFAULT 0",
        "without_usd REAL NOT NULL DEFAULT 0",
    ):
        db.rows(f"ALTER TABLE spend ADD COLUMN {column}")
    # A covering index: the budget sums up a day before every request.
    db.rows("DROP INDEX spend_at")
    db.rows("CREATE INDEX spend_at ON spend (at, usd)")


@additive
def m003_dialogues(db: Connection) -> None:
    """Create the tables for the state of gateway sessions."""
    for statement in _DIALOGUES.split(";\n"):
        db.rows(statement)


def m004_holders(db: Connection) -> None:
    """Add columns to reservations: process, model, and the prompt's share."""
    for column in (
        "process TEXT NOT NULL DEFAULT ''",
        "model TEXT NOT NULL DEFAULT ''",
        "prompt_usd REAL NOT NULL DEFAULT 0",
    ):
        db.rows(f"ALTER TABLE spend_reservations ADD COLUMN {column}")


def m005_withdrawals(db: Connection) -> None:
    """Note which standing instructions withdraw another, and index what identifies them."""
    db.rows("ALTER TABLE standing ADD COLUMN withdraws INTEGER NOT NULL DEFAULT 0")
    for n, text in db.rows("SELECT n, text FROM standing"):
        if instructions.find_withdrawal(text):
            db.update("standing", n, withdraws=1)
    db.rows("CREATE INDEX standing_withdraws ON standing (n) WHERE withdraws = 1")
    # A covering index: every recall reads it.
    columns = "created_at, n, item_n, project_n, digest, withdraws"
    db.rows(f"CREATE INDEX standing_newest ON standing ({columns})")


_VECTOR_BATCH = 4_096


def m006_quantized_vectors(db: Connection) -> None:
    """Store vectors as int8 codes with a scale, in half the space of half-precision numbers."""
    import numpy as np  # only this step needs both

    from lore.index.quantization import pack_rows

    def packed(half: bytes, dimension: int) -> bytes:
        is_whole = len(half) % (2 * dimension) == 0
        rows = np.frombuffer(half if is_whole else b"", np.float16).reshape(-1, dimension)
        return pack_rows(rows)

    seq = 0
    sql = (
        "SELECT v.seq, v.vector, e.dimension FROM vectors v JOIN embedders e"
        " ON e.n = v.embedder_n WHERE v.seq > :seq ORDER BY v.seq LIMIT :limit"
    )
    while rows := db.rows(sql, seq=seq, limit=_VECTOR_BATCH):
        values = [(packed(half, dimension), n) for n, half, dimension in rows]
        db.run_many("UPDATE vectors SET vector = :vector WHERE seq = :seq", values)
        seq = rows[-1][0]


def m007_vectors_of_two_embedders(db: Connection) -> None:
    """Let an item have vectors of two embedders, and queue those of the next one."""
    next_seq = db.next_number("vectors")
    for statement in _VECTORS_OF_TWO_EMBEDDERS.split(";\n"):
        db.rows(statement)
    # In parts: SQLite holds the pages that one statement changes in memory.
    columns = "seq, n, embedder_n, vector"
    while moved := db.rows(
        f"DELETE FROM former_vectors WHERE seq IN"
        f" (SELECT seq FROM former_vectors ORDER BY seq LIMIT {_MOVED_ROWS}) RETURNING {columns}"
    ):
        db.insert_many("vectors", columns.split(", "), moved)
    db.rows("DROP TABLE former_vectors")
    # A change number is never used twice: the vector index relies on it.
    db.set_next_number("vectors", next_seq)


_MOVED_ROWS = 1_024


def m008_states_of_instructions(db: Connection) -> None:
    """Judge which standing instructions are lasting rules, and which are only suggested.

    Fragments that a person stored stand as before. What was said in two sessions is confirmed.
    """
    db.rows("ALTER TABLE standing ADD COLUMN state TEXT NOT NULL DEFAULT 'stands'")
    rows = db.rows(
        "SELECT s.n, s.text, i.tokens * 4 FROM standing s JOIN items i ON i.n = s.item_n"
        " LEFT JOIN fragments f ON f.n = s.item_n WHERE f.n IS NULL OR (f.origin = 'user'"
        f" AND f.source_messages <> '[]' AND {json_field('f.metadata', 'promoted_from')} IS NULL)"
    )
    for n, text, chars in rows:
        state = instructions.judge_sentence(text, message_chars=chars)
        if state != "stands":
            db.update("standing", n, state=state)
    standing_instructions.confirm_repeated(db)
    # A covering index: every recall reads it.
    db.rows("DROP INDEX standing_newest")
    columns = "created_at, n, item_n, project_n, digest, withdraws, state"
    db.rows(f"CREATE INDEX standing_states ON standing ({columns})")


def m009_replacements(db: Connection) -> None:
    """Create the links from replaced statements to newer ones, and queue all that has a vector."""
    for statement in _REPLACEMENTS.split(";\n"):
        db.rows(statement)
    db.rows("INSERT INTO replacement_queue SELECT n FROM items WHERE embedder_n > 0")


def m010_task_memory(db: Connection) -> None:
    """Create the tables of task memory, and what the retrieval log says about a task."""
    task_tables.create(db)


@additive
def m011_sync(db: Connection) -> None:
    """Create the change log of sync, the records that wait for others, and the peers."""
    for statement in _SYNC.split(";\n"):
        db.rows(statement)


def m012_statement_keys(db: Connection) -> None:
    """Cut replaced statements to what they are found by; of two that are one then, keep one.

    That is the more certain one: what a person decided.
    """
    for n, certainty, older_n, text, newer_n in db.rows(
        "SELECT n, certainty, older_n, older_text, newer_n FROM replacements"
        " WHERE length(older_text) > :short ORDER BY certainty DESC, n",
        short=STATEMENT_BYTES // 4,  # a character has four bytes at most
    ):
        key = statement_key(text)
        if key == text:
            continue
        same = db.find(
            "SELECT n, certainty FROM replacements WHERE older_n = :older_n"
            " AND older_text = :key AND newer_n = :newer_n",
            older_n=older_n,
            key=key,
            newer_n=newer_n,
        )
        if same is not None and same[1] >= certainty:
            db.run("DELETE FROM replacements WHERE n = :n", n=n)
            continue
        if same is not None:
            db.run("DELETE FROM replacements WHERE n = :n", n=same[0])
        db.update("replacements", n, older_text=key)


def m013_asked_messages(db: Connection) -> None:
    """Note which other message a link quotes: it goes with that message.

    Links that quote what is gone are deleted, and their newer items judged again.
    """
    from lore.store import link_upgrade  # only this step needs it

    for column in ("newer_asked_n", "older_asked_n"):
        db.rows(
            f"ALTER TABLE replacements ADD COLUMN {column} INTEGER"
            " REFERENCES items (n) ON DELETE CASCADE"
        )
        # Deleting an item looks for the links that quote it.
        db.rows(
            f"CREATE INDEX replacements_{column.removesuffix('_n')} ON replacements ({column})"
            f" WHERE {column} IS NOT NULL"
        )
    link_upgrade.note_asked_messages(db)


MIGRATIONS: tuple[Migration, ...] = (
    m001_initial,
    m002_requests,
    m003_dialogues,
    m004_holders,
    m005_withdrawals,
    m006_quantized_vectors,
    m007_vectors_of_two_embedders,
    m008_states_of_instructions,
    m009_replacements,
    m010_task_memory,
    m011_sync,
    m012_statement_keys,
    m013_asked_messages,
)


def migrate(
    database: Database,
    backups: Path | None,
    steps: Sequence[Migration] = MIGRATIONS,
    *,
    seal: Callable[[Path], None] | None = None,
) -> list[str]:
    """Apply the missing migrations; first copy an existing database to `backups` and seal that."""
    with database.read() as db:
        applied = check(db, steps)
    missing = [step for step in steps if step.__name__ not in applied]
    if missing and applied and backups is not None:
        make_folder(backups)
        stamp = database.now().strftime("%Y%m%dT%H%M%S")
        database.copy_to(backups / f"before-{missing[0].__name__}-{stamp}.db", seal)
    # A new database needs one transaction: nothing in it is worth a commit of its own.
    groups = [[step] for step in missing] if applied else [missing]
    for group in groups if missing else ():
        upto = steps[: steps.index(group[-1]) + 1]
        work = partial(_apply_group, steps=group, oldest=oldest_program(upto), now=database.now)
        database.write_alone(work)
    return [step.__name__ for step in missing]


def _apply_group(
    db: Connection, *, steps: Sequence[Migration], oldest: int, now: clock.Clock
) -> None:
    apply_all(db, steps, now)
    sqlite.set_oldest_program(db, oldest)


def check(
    db: Connection, steps: Sequence[Migration] = MIGRATIONS, *, exact: bool = False
) -> set[str]:
    """Return the names of the applied migrations; refuse a schema that this program cannot use.

    If it must be `exact`, any unknown step is refused, also one that older programs may ignore.
    """
    if not db.has_table("migrations"):
        if not db.is_empty_database():
            msg = f"{db.path} is a database of another program."
            raise StoreDamaged(msg, hint="Set LORE_DB_PATH to another file.")
        return set()
    applied = {row[0] for row in db.rows("SELECT name FROM migrations")}
    names = {step.__name__ for step in steps}
    if applied <= names:
        return applied
    is_usable = names <= applied and 0 < sqlite.oldest_program(db) <= len(steps)
    if exact or not is_usable:
        raise newer_schema_error(str(db.path))
    return applied


def find_foreign_schema(db: Connection, steps: Sequence[Migration] = MIGRATIONS) -> list[str]:
    """Return what differs from the schema that the applied migrations make, before it is used.

    A trigger, a view or an expression in a table would run with the next write.
    """
    applied = check(db, steps, exact=True)
    with sqlite.open_scratch() as scratch:
        for step in steps:
            if step.__name__ in applied:
                _apply(scratch, step, clock.now)
        expected = sqlite.schema_objects(scratch)
    present = sqlite.schema_objects(db)
    names = {name for name in expected | present if expected.get(name) != present.get(name)}
    return sorted(f"{kind} {name!r}" for kind, name in names)


def apply_all(db: Connection, steps: Sequence[Migration], now: clock.Clock) -> None:
    """Apply the migrations that are missing, within the transaction of the caller."""
    for step in steps:
        _apply(db, step, now)


def _apply(db: Connection, step: Migration, now: clock.Clock) -> None:
    """Apply one migration unless another process did so meanwhile."""
    db.rows("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at INTEGER NOT NULL)")
    db.rows(
        "CREATE TABLE IF NOT EXISTS receipts"
        " (key TEXT PRIMARY KEY, result TEXT NOT NULL, at INTEGER NOT NULL)"
    )
    if db.find("SELECT 1 FROM migrations WHERE name = :name", name=step.__name__):
        return
    step(db)
    db.insert("migrations", name=step.__name__, at=clock.to_us(now()))


_INITIAL = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE projects (
    n {ROW_NUMBER},
    id TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL UNIQUE,
    remote TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL);

CREATE TABLE sessions (
    n {ROW_NUMBER},
    id TEXT NOT NULL UNIQUE,
    external_id TEXT NOT NULL,
    project_n INTEGER REFERENCES projects (n),
    agent TEXT NOT NULL,
    title TEXT NOT NULL,
    files TEXT NOT NULL,
    branch TEXT NOT NULL,
    parent_n INTEGER REFERENCES sessions (n) ON DELETE SET NULL,
    started_at INTEGER NOT NULL,
    last_message_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    channels INTEGER NOT NULL DEFAULT 0,
    UNIQUE (agent, external_id));
CREATE INDEX sessions_project ON sessions (project_n);
CREATE INDEX sessions_parent ON sessions (parent_n);

CREATE TABLE items (
    n {AUTOINCREMENT},
    id {ID} NOT NULL UNIQUE,
    type INTEGER NOT NULL,
    project_n INTEGER REFERENCES projects (n),
    session_n INTEGER REFERENCES sessions (n),
    created_at INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    embedder_n INTEGER);
CREATE INDEX items_session ON items (session_n);
CREATE INDEX items_project ON items (project_n);
CREATE INDEX items_time ON items (created_at) WHERE type <> 1;
CREATE INDEX items_to_embed ON items (n) WHERE embedder_n IS NULL;

CREATE TABLE messages (
    n INTEGER PRIMARY KEY REFERENCES items (n) ON DELETE CASCADE,
    session_n INTEGER NOT NULL REFERENCES sessions (n),
    ordinal INTEGER NOT NULL,
    channel SMALLINT NOT NULL,
    digest BIGINT NOT NULL,
    key BIGINT NOT NULL,
    role SMALLINT NOT NULL,
    speaker TEXT NOT NULL,
    parts TEXT NOT NULL,
    origin TEXT NOT NULL,
    model TEXT NOT NULL,
    usage TEXT NOT NULL,
    traits INTEGER NOT NULL,
    UNIQUE (session_n, ordinal),
    UNIQUE (session_n, key, channel));

CREATE TABLE claims (
    session_n INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
    channel SMALLINT NOT NULL,
    key BIGINT NOT NULL,
    message_n INTEGER NOT NULL REFERENCES messages (n) ON DELETE CASCADE,
    PRIMARY KEY (session_n, channel, key));
CREATE INDEX claims_message ON claims (message_n);

CREATE TABLE distillations (
    n INTEGER PRIMARY KEY REFERENCES items (n) ON DELETE CASCADE,
    session_n INTEGER NOT NULL REFERENCES sessions (n),
    generation INTEGER NOT NULL,
    text TEXT NOT NULL,
    from_message TEXT NOT NULL,
    to_message TEXT NOT NULL,
    source_tokens INTEGER NOT NULL,
    sources TEXT NOT NULL,
    archived INTEGER NOT NULL);
CREATE INDEX distillations_session ON distillations (session_n, generation);

CREATE TABLE fragments (
    n INTEGER PRIMARY KEY REFERENCES items (n) ON DELETE CASCADE,
    content TEXT NOT NULL,
    summary TEXT NOT NULL,
    depth INTEGER NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    importance REAL NOT NULL,
    confidence REAL NOT NULL,
    decay_rate REAL NOT NULL,
    access_count INTEGER NOT NULL,
    last_accessed INTEGER,
    last_reinforced INTEGER NOT NULL,
    relevance REAL NOT NULL,
    boost REAL NOT NULL DEFAULT 0,
    boosted_at INTEGER NOT NULL DEFAULT 0,
    missing_since INTEGER,
    doubt REAL NOT NULL DEFAULT 0,
    overview_at INTEGER,
    origin TEXT NOT NULL,
    trust INTEGER NOT NULL,
    source_messages TEXT NOT NULL,
    superseded_by TEXT,
    valid_from INTEGER,
    valid_to INTEGER,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    deleted_at INTEGER,
    metadata TEXT NOT NULL);
CREATE INDEX fragments_roots ON fragments (n) WHERE depth = 0;
CREATE INDEX fragments_replaced ON fragments (n) WHERE superseded_by IS NOT NULL;
CREATE INDEX fragments_settings ON fragments (n) WHERE kind = 'config';
CREATE INDEX fragments_missing ON fragments (n) WHERE missing_since IS NOT NULL;

CREATE TABLE fragment_versions (
    fragment_n INTEGER NOT NULL REFERENCES fragments (n) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    content TEXT NOT NULL,
    summary TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (fragment_n, version));

CREATE INDEX fragments_deleted ON fragments (n) WHERE deleted_at IS NOT NULL;

CREATE TABLE curations (
    session_n INTEGER PRIMARY KEY REFERENCES sessions (n) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    at INTEGER NOT NULL);

CREATE TABLE confirmations (
    fragment_n INTEGER NOT NULL REFERENCES fragments (n) ON DELETE CASCADE,
    project_n INTEGER NOT NULL REFERENCES projects (n) ON DELETE CASCADE,
    times INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (fragment_n, project_n));
CREATE INDEX confirmations_project ON confirmations (project_n);

CREATE TABLE edges (
    source_n INTEGER NOT NULL REFERENCES fragments (n) ON DELETE CASCADE,
    target_n INTEGER NOT NULL REFERENCES fragments (n) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    weight REAL NOT NULL,
    note TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (source_n, target_n, kind));
CREATE INDEX edges_target ON edges (target_n, kind);

CREATE TABLE shared (
    entry TEXT PRIMARY KEY,
    fragment_n INTEGER NOT NULL REFERENCES fragments (n) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    left_out INTEGER NOT NULL);
CREATE INDEX shared_fragment ON shared (fragment_n);

CREATE TABLE entities (n {ROW_NUMBER}, name TEXT NOT NULL UNIQUE, uses INTEGER NOT NULL);
CREATE TABLE mentions (
    item_n INTEGER NOT NULL REFERENCES items (n) ON DELETE CASCADE,
    entity_n INTEGER NOT NULL REFERENCES entities (n),
    is_title INTEGER NOT NULL,
    PRIMARY KEY (item_n, entity_n));
CREATE INDEX mentions_entity ON mentions (entity_n, item_n, is_title);

CREATE TABLE speakers (name TEXT PRIMARY KEY);

CREATE TABLE standing (
    n {ROW_NUMBER},
    item_n INTEGER NOT NULL REFERENCES items (n) ON DELETE CASCADE,
    project_n INTEGER REFERENCES projects (n),
    text TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_at INTEGER NOT NULL);
CREATE INDEX standing_project ON standing (project_n, created_at);
CREATE INDEX standing_item ON standing (item_n);
CREATE INDEX standing_digest ON standing (digest, created_at);

CREATE TABLE embedders (
    n {ROW_NUMBER},
    identity TEXT NOT NULL UNIQUE,
    dimension INTEGER NOT NULL);
CREATE TABLE vectors (
    seq {AUTOINCREMENT},
    n INTEGER NOT NULL UNIQUE REFERENCES items (n) ON DELETE CASCADE,
    embedder_n INTEGER NOT NULL REFERENCES embedders (n),
    vector BLOB NOT NULL);

CREATE TABLE jobs (
    n {ROW_NUMBER},
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    last_error TEXT NOT NULL,
    progress INTEGER NOT NULL,
    total INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    UNIQUE (kind, subject));
CREATE INDEX jobs_open ON jobs (due_at) WHERE state <> 'done';

CREATE TABLE cycles (
    n {ROW_NUMBER},
    id TEXT NOT NULL UNIQUE,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    undone_at INTEGER,
    report TEXT NOT NULL);

CREATE TABLE steps (
    n {ROW_NUMBER},
    cycle_n INTEGER NOT NULL REFERENCES cycles (n) ON DELETE CASCADE,
    verb TEXT NOT NULL,
    fragment_n INTEGER REFERENCES fragments (n) ON DELETE CASCADE,
    other_n INTEGER REFERENCES fragments (n) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    value REAL,
    note TEXT NOT NULL,
    at INTEGER);
CREATE INDEX steps_cycle ON steps (cycle_n);
CREATE INDEX steps_fragment ON steps (fragment_n);
CREATE INDEX steps_other ON steps (other_n) WHERE other_n IS NOT NULL;

CREATE TABLE judgements (
    a_n INTEGER NOT NULL REFERENCES fragments (n) ON DELETE CASCADE,
    b_n INTEGER NOT NULL REFERENCES fragments (n) ON DELETE CASCADE,
    verb TEXT NOT NULL,
    verdict TEXT NOT NULL,
    a_version INTEGER NOT NULL,
    b_version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (a_n, b_n, verb));
CREATE INDEX judgements_other ON judgements (b_n);

CREATE TABLE actions (
    n {ROW_NUMBER},
    at INTEGER NOT NULL,
    verb TEXT NOT NULL,
    fragment_n INTEGER NOT NULL REFERENCES fragments (n) ON DELETE CASCADE,
    before TEXT NOT NULL,
    undone INTEGER NOT NULL);
CREATE INDEX actions_fragment ON actions (fragment_n);

CREATE TABLE changes (
    seq {AUTOINCREMENT},
    at INTEGER NOT NULL,
    action TEXT NOT NULL,
    first_n INTEGER NOT NULL,
    last_n INTEGER NOT NULL);
CREATE TABLE tombstones (
    id TEXT PRIMARY KEY NOT NULL,
    at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    source TEXT NOT NULL);
CREATE INDEX tombstones_seq ON tombstones (seq);
CREATE INDEX tombstones_source ON tombstones (source) WHERE source <> '';

CREATE TABLE aliases (
    id TEXT PRIMARY KEY,
    project_n INTEGER REFERENCES projects (n) ON DELETE CASCADE,
    session_n INTEGER REFERENCES sessions (n) ON DELETE CASCADE);

CREATE TABLE watermarks (
    source TEXT PRIMARY KEY,
    session_n INTEGER REFERENCES sessions (n) ON DELETE CASCADE,
    file TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    position INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    context TEXT NOT NULL,
    problem TEXT NOT NULL,
    updated_at INTEGER NOT NULL);
CREATE INDEX watermarks_session ON watermarks (session_n);
CREATE INDEX watermarks_file ON watermarks (file) WHERE file <> '';

CREATE TABLE staged_turns (
    n {ROW_NUMBER},
    session_n INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (session_n, key));

CREATE TABLE session_states (
    session_n INTEGER NOT NULL REFERENCES sessions (n) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (session_n, name));

CREATE TABLE injections (
    n {ROW_NUMBER},
    session BIGINT NOT NULL,
    item_n INTEGER NOT NULL REFERENCES items (n) ON DELETE CASCADE,
    digest BIGINT NOT NULL,
    at INTEGER NOT NULL);
CREATE INDEX injections_session ON injections (session);
CREATE INDEX injections_item ON injections (item_n);

CREATE TABLE spend (
    n {ROW_NUMBER},
    key TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    session_n INTEGER REFERENCES sessions (n) ON DELETE SET NULL,
    project_n INTEGER REFERENCES projects (n) ON DELETE SET NULL,
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    usage TEXT NOT NULL,
    usd REAL NOT NULL);
CREATE INDEX spend_at ON spend (at);
CREATE INDEX spend_session ON spend (session_n);
CREATE INDEX spend_project ON spend (project_n);

CREATE TABLE spend_reservations (
    key TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    usd REAL NOT NULL);

CREATE TABLE access_keys (
    n {ROW_NUMBER},
    prefix TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER);

CREATE TABLE retrievals (
    n {ROW_NUMBER},
    at INTEGER NOT NULL,
    verb TEXT NOT NULL,
    query TEXT NOT NULL,
    hits TEXT NOT NULL,
    took_ms REAL NOT NULL);
"""

_DIALOGUES = """
CREATE TABLE dialogue_states (
    session BIGINT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (session, name));

CREATE TABLE recall_markers (
    id TEXT PRIMARY KEY,
    session BIGINT NOT NULL,
    value TEXT NOT NULL,
    at INTEGER NOT NULL);
CREATE INDEX recall_markers_session ON recall_markers (session)
"""

_VECTORS_OF_TWO_EMBEDDERS = f"""\
ALTER TABLE vectors RENAME TO former_vectors;
CREATE TABLE vectors (
    seq {AUTOINCREMENT},
    n INTEGER NOT NULL REFERENCES items (n) ON DELETE CASCADE,
    embedder_n INTEGER NOT NULL REFERENCES embedders (n),
    vector BLOB NOT NULL,
    UNIQUE (n, embedder_n));
CREATE INDEX vectors_embedder ON vectors (embedder_n, seq);
CREATE TABLE next_vectors_queue (
    n INTEGER PRIMARY KEY REFERENCES items (n) ON DELETE CASCADE)"""

_REPLACEMENTS = f"""\
CREATE TABLE replacements (
    n {ROW_NUMBER},
    older_n INTEGER NOT NULL REFERENCES items (n) ON DELETE CASCADE,
    older_text TEXT NOT NULL,
    newer_n INTEGER NOT NULL REFERENCES items (n) ON DELETE CASCADE,
    newer_text TEXT NOT NULL,
    relation TEXT NOT NULL,
    certainty REAL NOT NULL,
    at INTEGER NOT NULL,
    statements INTEGER NOT NULL,
    UNIQUE (older_n, older_text, newer_n));
CREATE INDEX replacements_newer ON replacements (newer_n);
CREATE TABLE replacement_queue (
    n INTEGER PRIMARY KEY REFERENCES items (n) ON DELETE CASCADE)"""

_SYNC = """\
CREATE TABLE sync_records (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    n INTEGER,
    seq INTEGER NOT NULL,
    via TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (kind, key));
CREATE INDEX sync_records_seq ON sync_records (seq);
CREATE TABLE sync_pending (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    waits_for TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, key));
CREATE INDEX sync_pending_waits ON sync_pending (waits_for);
CREATE TABLE sync_peers (
    machine TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    epoch TEXT NOT NULL,
    pulled TEXT NOT NULL,
    pushed TEXT NOT NULL,
    synced_at INTEGER,
    state_hash TEXT NOT NULL,
    problem TEXT NOT NULL)"""
"""`sync_records` is the change log: each record once, by the number of its last change. It holds
stamps and digests of values, which are in their own tables. `via` is the peer that the last change
came from."""
