from __future__ import annotations

from collections import Counter

from lore.memory import Memory
from lore.memory.desk import Desk


def test_no_two_desks_give_different_things_one_name():
    desks = [desk for desk in Memory.__bases__ if desk is not Desk]
    own = Counter(name for desk in desks for name in vars(desk) if not name.startswith("__"))
    assert len(desks) > 5
    assert [name for name, count in own.items() if count > 1] == []
