"""Power cuts: nothing acknowledged is lost, nothing is damaged."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

from lore.errors import LoreError
from lore.store import database, maintenance, sqlite
from lore.store.database import QueuedWrite
from lore.store.sql_connection import Connection
from tests.store.samples import (
    add_fragment,
    add_messages,
    at_noon,
    empty_log,
    new_session,
    open_at,
)
from tests.trust.unreliable import (
    Disk,
    Files,
    PowerCut,
    UnreliableVFS,
    load,
    save,
    what_is_left,
)

CUTS = int(os.environ.get("LORE_TEST_CUTS", "500"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Files]:
    """A database with the real schema and a little in it, all of it durable."""
    home = tmp_path_factory.mktemp("power") / "home"
    database = open_at(home)
    texts = [f"hello {i}" for i in range(30)]
    database.write(lambda db: add_messages(db, new_session(db), *texts))
    empty_log(database)
    database.close()
    return home, load(home)


def write(db: Connection, seq: int) -> None:
    """Make one group of two writes, as the writer thread does."""

    def say(db: Connection) -> list[str]:
        text = f"message {seq} speaks of topic{seq % 7} " + "and more of it " * (seq % 40)
        return add_messages(db, new_session(db), text)

    def learn(db: Connection) -> int:
        return add_fragment(db, seq + 1_000, f"fact {seq} on topic{seq % 5}")

    group = [QueuedWrite(learn, str(seq)), QueuedWrite(say)]
    database.run_group(db, group, at_noon)
    for each in group:
        if each.error:
            raise each.error


def write_until_cut(db: Connection) -> int:
    """Write until the power fails; return how many groups were acknowledged."""
    acknowledged = 0
    with suppress(PowerCut, LoreError):
        while True:
            write(db, acknowledged)
            acknowledged += 1
    return acknowledged


def faults_of(home: Path, acknowledged: int) -> list[str]:
    db = sqlite.open_connection(home / "memory.db", busy_timeout_s=1, read_only=False)
    try:
        found = maintenance.check_integrity(db)
        found += maintenance.compare_keyword_index(db)
        facts = int(db.value("SELECT count(*) FROM fragments"))
        said = int(db.value("SELECT count(*) FROM messages")) - 30
        receipts = int(db.value("SELECT count(*) FROM receipts"))
    finally:
        db.close()
    if not facts == said == receipts:
        found.append(f"half a group: {facts} facts, {said} messages, {receipts} receipts")
    if facts < acknowledged:
        found.append(f"lost {acknowledged - facts} of {acknowledged}")
    return found


@pytest.mark.parametrize("share", range(5))
def test_nothing_acknowledged_is_lost_or_damaged_by_a_power_cut(
    base: tuple[Path, Files], share: int
) -> None:
    home, before = base
    disk = Disk()
    vfs = UnreliableVFS(f"power{share}", disk)
    acknowledged_in_all = 0
    for cut in range(CUTS // 5):
        rng = random.Random(1_000 * share + cut)
        save(before, home)
        disk.log.clear()
        disk.operations, disk.fails_at = 0, None
        db = sqlite.open_connection(
            home / "memory.db", busy_timeout_s=1, read_only=False, vfs=vfs.name
        )
        db.rows(f"PRAGMA wal_autocheckpoint = {rng.choice((10, 25, 1000))}")
        disk.fails_at = disk.operations + rng.randint(1, 250)
        acknowledged = write_until_cut(db)
        acknowledged_in_all += acknowledged
        with suppress(Exception):
            db.raw.close(force=True)
        save(what_is_left(before, disk.log, rng), home)
        assert faults_of(home, acknowledged) == [], (share, cut)
    assert acknowledged_in_all > CUTS / 5
