from __future__ import annotations

from lore.records import Watermark
from lore.store import watermarks
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, minutes, new_session


def test_a_watermark_says_how_far_a_source_was_read(db: Connection) -> None:
    n = new_session(db)
    assert watermarks.find(db, "log") is None
    watermarks.put(db, Watermark("log", None, 10, "", NOON), session_n=None)
    watermarks.put(db, Watermark("log", None, 20, "f", minutes(1)), session_n=n)
    found = watermarks.find(db, "log")
    assert found is not None
    assert (found.position, found.fingerprint, found.updated_at) == (20, "f", minutes(1))
    assert found.session_id == db.value("SELECT id FROM sessions")
