from __future__ import annotations

from lore.store import places
from lore.store.places import Place
from lore.store.sqlite import Connection
from tests.store.samples import NOON


def remotes(db: Connection) -> list[str]:
    return [row[0] for row in db.rows("SELECT remote FROM projects ORDER BY n")]


def test_to_look_for_a_place_writes_nothing(db: Connection) -> None:
    n = places.ensure(db, Place("/code/engine"), now=NOON)
    cloned = Place("/code/engine", "host/engine")
    assert places.find(db, cloned) == n
    assert remotes(db) == [""]
    assert places.ensure(db, cloned, now=NOON) == n
    assert remotes(db) == ["host/engine"]


def test_a_path_with_another_remote_is_another_project_and_keeps_its_own(db: Connection) -> None:
    former = places.ensure(db, Place("/code/engine", "host/old"), now=NOON)
    assert places.find(db, Place("/code/engine", "host/new")) is None
    assert places.ensure(db, Place("/code/engine", "host/new"), now=NOON) != former
    assert remotes(db) == ["host/old", "host/new"]
