from __future__ import annotations

from typing import get_args

import pytest

from lore.store import reversing
from lore.store.sqlite import Connection
from lore.store.steps import Step, Verb
from tests.store.samples import NOON, add_fragment


@pytest.mark.parametrize("verb", get_args(Verb))
def test_there_is_a_way_back_for_every_step(db: Connection, verb: Verb) -> None:
    n, other = add_fragment(db, 1), add_fragment(db, 2)
    note = {"confirmed": '[0.7, "[]"]', "strengthened": "[]"}.get(verb, "")
    kind = {"counted": "1"}.get(verb, "associative")
    step = Step(verb, n, other, kind, 1.0, note, 1)
    assert reversing.take_back(db, step, now=NOON) in (True, False)
