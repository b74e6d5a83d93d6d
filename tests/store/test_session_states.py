from __future__ import annotations

import pytest

from lore.store import session_states
from lore.store.sqlite import Connection
from tests.store.samples import NOON, new_session


@pytest.mark.parametrize("value", [None, 3, {"floor": [1, 2]}, "text"])
def test_a_session_carries_values_from_turn_to_turn(db: Connection, value: object) -> None:
    n = new_session(db)
    assert session_states.find(db, n, "working") is None
    session_states.put(db, n, "working", "other", now=NOON)
    session_states.put(db, n, "working", value, now=NOON)
    assert session_states.find(db, n, "working") == value
    assert session_states.find(db, n, "layer_floor") is None
