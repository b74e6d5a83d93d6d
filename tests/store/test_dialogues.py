"""What a session holds between its requests: by number, without its name, and not for ever."""

from __future__ import annotations

from datetime import timedelta

from lore.store import dialogues
from lore.store.db import Connection
from tests.fakes import NOON


def test_a_state_takes_the_place_of_the_former_one(db: Connection):
    dialogues.put(db, "s", "pins", {"layer": 1}, now=NOON)
    dialogues.put(db, "s", "pins", {"layer": 2}, now=NOON)
    assert dialogues.find_all(db, "s") == {"pins": {"layer": 2}}
    assert dialogues.find(db, "t", "pins") is None


def test_the_name_of_a_session_is_not_kept(db: Connection):
    dialogues.put(db, "quiet-heron", "pins", {}, now=NOON)
    dialogues.add_markers(db, "quiet-heron", {"m": "Port 5436."}, now=NOON)
    rows = [*db.rows("SELECT * FROM dialogue_states"), *db.rows("SELECT * FROM recall_markers")]
    assert len(rows) == 2
    assert "heron" not in str(rows)


def test_what_quotes_memory_can_be_dropped_and_the_rest_stays(db: Connection):
    for name in ("pins", "measured", "knowledge", "notes", "tiers", "amnesia"):
        dialogues.put(db, "s", name, ["x"], now=NOON)
    dialogues.add_markers(db, "s", {"m": "Port 5436."}, now=NOON)
    dialogues.drop_texts(db)
    assert sorted(dialogues.find_all(db, "s")) == ["amnesia", "measured", "pins"]
    assert not dialogues.markers(db, "s")


def test_what_ended_long_ago_goes(db: Connection):
    dialogues.put(db, "old", "pins", {"layer": 1}, now=NOON)
    dialogues.add_markers(db, "old", {"m": "x"}, now=NOON)
    later = NOON + timedelta(days=dialogues.KEPT_DAYS + 1)
    dialogues.put(db, "new", "pins", {"layer": 1}, now=later)
    dialogues.tidy(db, now=later)
    assert not dialogues.find_all(db, "old")
    assert not dialogues.markers(db, "old")
    assert dialogues.find_all(db, "new")


def test_amnesia_lasts_until_it_is_taken_back(db: Connection):
    assert not dialogues.is_amnesic(db, "s")
    dialogues.forget_from(db, "s", now=NOON)
    dialogues.forget_from(db, "s", now=NOON + timedelta(hours=1))
    assert dialogues.is_amnesic(db, "s")
    dialogues.remember_from(db, "s", now=NOON + timedelta(hours=2))
    assert not dialogues.is_amnesic(db, "s")
