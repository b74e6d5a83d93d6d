from __future__ import annotations

from pathlib import Path

import pytest

from lore.embed.none import NoEmbedder
from lore.errors import InvalidInput
from lore.memory import Memory
from lore.records import NewMessage, Part
from tests.fakes import NOON, FixedClock


def test_a_history_tells_everything_in_order(tmp_path: Path):
    clock = FixedClock()
    with Memory.open(home=tmp_path, embedder=NoEmbedder(), now=clock) as memory:
        [said] = memory.capture("s", [NewMessage("user", (Part("text", "We use tabs."),), NOON)])
        clock.advance(hours=1)
        old = memory.store("We use tabs.", source_messages=[said])
        clock.advance(hours=1)
        memory.update(old, "We use tabs everywhere.", reason="more of it")
        clock.advance(hours=1)
        memory.recall("tabs")
        memory.read([old])
        clock.advance(hours=1)
        new = memory.store("We use spaces.")
        memory.supersede(old, new)
        happened = memory.history(old)
        assert [one.what for one in happened] == [
            "said", "learned", "changed", "recalled", "read", "superseded", "supersedes",
        ]  # fmt: skip
        assert happened[0].detail == "user: We use tabs."
        assert happened[2].detail == "it said: We use tabs. (more of it)"
        memory.undo()
        [undone] = [one for one in memory.history(old) if one.what == "superseded"]
        assert undone.detail == "by hand, taken back since"
        with pytest.raises(InvalidInput, match="only fragments"):
            memory.history(said)
