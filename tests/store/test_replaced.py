from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from lore.embed.none import NoEmbedder
from lore.memory import Memory
from lore.records import NewMessage, Part
from tests.fakes import NOON, FixedClock


def test_a_message_that_something_newer_replaces_ranks_below_it_and_says_so(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder(), now=FixedClock()) as memory:
        texts = ["The worker tries a job three times.", "The worker tries a job five times now."]
        old, new = (
            memory.capture(f"s{place}", [
                NewMessage("user", (Part("text", text),), NOON - timedelta(days=9 - place))
            ])[0]
            for place, text in enumerate(texts)
        )  # fmt: skip
        stale = memory.store("Three tries.", session="s0", source_messages=[old])
        fresh = memory.store("Five tries.", session="s1", source_messages=[new])
        question = "how often does the worker try a job?"
        before = {hit.id: hit for hit in memory.recall(question)}
        memory.supersede(stale, fresh)
        hits = {hit.id: hit for hit in memory.recall(question)}
        assert hits[old].score < before[old].score - 1
        assert "out of date" in hits[old].why
        assert "out of date" not in hits[new].why
        memory.store("The worker logs its jobs.", session="s0", source_messages=[old])
        [again] = [h for h in memory.recall("worker try a job three") if h.id == old]
        assert "out of date" not in again.why
