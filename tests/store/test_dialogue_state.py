"""What a session holds between its requests: by number, without its name, and not for ever."""

from __future__ import annotations

from datetime import timedelta

from lore.store import dialogue_state
from lore.store.database import Connection
from lore.text import message_features
from tests.fakes import NOON
from tests.store.samples import add_fragment


def test_a_state_replaces_the_former_one(db: Connection):
    dialogue_state.put_state(db, "s", "pins", {"layer": 1}, now=NOON)
    dialogue_state.put_state(db, "s", "pins", {"layer": 2}, now=NOON)
    assert dialogue_state.find_states(db, "s") == {"pins": {"layer": 2}}
    assert dialogue_state.find_state(db, "t", "pins") is None


def test_states_do_not_store_the_name_of_a_session(db: Connection):
    dialogue_state.put_state(db, "quiet-heron", "pins", {}, now=NOON)
    dialogue_state.add_markers(db, "quiet-heron", {"m": "Port 5436."}, now=NOON)
    rows = [*db.rows("SELECT * FROM dialogue_states"), *db.rows("SELECT * FROM recall_markers")]
    assert len(rows) == 2
    assert "heron" not in str(rows)


def test_quoting_states_are_dropped_and_others_stay(db: Connection):
    for name in ("pins", "measured", "knowledge", "notes", "tiers", "amnesia"):
        dialogue_state.put_state(db, "s", name, ["x"], now=NOON)
    dialogue_state.add_markers(db, "s", {"m": "Port 5436."}, now=NOON)
    dialogue_state.drop_quoting_states(db)
    assert sorted(dialogue_state.find_states(db, "s")) == ["amnesia", "measured", "pins"]
    assert not dialogue_state.find_markers(db, "s")


def test_states_of_old_sessions_are_deleted(db: Connection):
    dialogue_state.put_state(db, "old", "pins", {"layer": 1}, now=NOON)
    dialogue_state.add_markers(db, "old", {"m": "x"}, now=NOON)
    later = NOON + timedelta(days=dialogue_state.STATE_RETENTION_DAYS + 1)
    dialogue_state.put_state(db, "new", "pins", {"layer": 1}, now=later)
    dialogue_state.delete_old_states(db, now=later)
    assert not dialogue_state.find_states(db, "old")
    assert not dialogue_state.find_markers(db, "old")
    assert dialogue_state.find_states(db, "new")


def test_private_mode_lasts_until_it_is_ended(db: Connection):
    assert not dialogue_state.is_private(db, "s")
    dialogue_state.begin_private_mode(db, "s", now=NOON)
    dialogue_state.begin_private_mode(db, "s", now=NOON + timedelta(hours=1))
    assert dialogue_state.is_private(db, "s")
    dialogue_state.end_private_mode(db, "s", now=NOON + timedelta(hours=2))
    assert not dialogue_state.is_private(db, "s")


def test_injections_belong_to_one_session(db: Connection):
    n = add_fragment(db, 1)
    dialogue_state.add_injections(
        db, "s", [(n, message_features.word_fingerprint("The cache!"))], now=NOON
    )
    shown = dialogue_state.find_injections(db, "s")
    assert shown.items == {n}
    assert message_features.word_fingerprint("the  cache") in shown.digests
    assert not dialogue_state.find_injections(db, "t").items


def test_cleared_injections_may_be_injected_again(db: Connection):
    n = add_fragment(db, 1)
    dialogue_state.add_injections(db, "s", [(n, 1)], now=NOON)
    dialogue_state.clear_injections(db, "s")
    assert not dialogue_state.find_injections(db, "s").items


def test_undone_injections_are_removed(db: Connection):
    n, m = add_fragment(db, 1), add_fragment(db, 2)
    dialogue_state.add_injections(db, "s", [(n, 1), (n, 2), (m, 1)], now=NOON)
    dialogue_state.add_injections(db, "t", [(n, 1)], now=NOON)
    dialogue_state.undo_injections(db, "s", [(n, 1)])
    assert dialogue_state.find_injections(db, "s") == (frozenset((n, m)), frozenset((1, 2)))
    dialogue_state.undo_injections(db, "s", [(n, 2), (m, 7)])
    assert dialogue_state.find_injections(db, "s") == (frozenset((m,)), frozenset((1,)))
    assert dialogue_state.find_injections(db, "t").items == {n}


def test_injections_of_deleted_items_are_removed(db: Connection):
    n = add_fragment(db, 1)
    dialogue_state.add_injections(db, "s", [(n, 1), (n + 999, 2)], now=NOON)
    assert dialogue_state.find_injections(db, "s").items == {n}
    db.run("DELETE FROM items WHERE n = :n", n=n)
    assert not dialogue_state.find_injections(db, "s").digests


def test_injections_do_not_store_the_name_of_a_session(db: Connection):
    dialogue_state.add_injections(db, "quiet-heron", [(add_fragment(db, 1), 1)], now=NOON)
    [row] = db.rows("SELECT * FROM injections")
    assert "heron" not in str(row)


def test_old_injections_are_deleted(db: Connection):
    n = add_fragment(db, 1)
    dialogue_state.add_injections(db, "old", [(n, 1)], now=NOON)
    later = NOON + timedelta(days=dialogue_state.INJECTION_RETENTION_DAYS + 1)
    dialogue_state.add_injections(db, "new", [(n, digest) for digest in range(200)], now=later)
    assert not dialogue_state.find_injections(db, "old").items
    assert dialogue_state.find_injections(db, "new").items
