from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import NotFound
from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.relevance import VISIBLE, relevance
from lore.store import fragments, graph, keywords, vectors
from lore.store.sql_connection import Connection
from lore.text import entities
from tests.fakes import NOON as CLOCK_NOON
from tests.fakes import FixedClock
from tests.store.samples import NOON, add_fragment, numbered_id


def update(db: Connection, n: int, content: str) -> int:
    mentioned = entities.extract_mentions(content, title="")
    return fragments.update(
        db, n, content=content, summary=content, mentioned=mentioned,
        now=NOON + timedelta(days=1), reason="why",
    )  # fmt: skip


def test_a_stored_fragment_is_read_back(db: Connection) -> None:
    n = add_fragment(
        db, 1, "Zebras are striped", payload={"a": [1]}, metadata={"b": "c"}, importance=0.9,
        source_messages=("m1",), origin="web",
    )  # fmt: skip
    found = fragments.get(db, n)
    assert (found.id, found.content, found.payload) == (
        numbered_id(1),
        "Zebras are striped",
        {"a": [1]},
    )
    assert (found.trust, found.origin, found.version, found.parent_id) == (0, "web", 1, None)
    assert (found.source_messages, found.metadata) == (("m1",), {"b": "c"})
    assert (found.created_at, found.last_accessed) == (NOON, None)


def test_a_missing_fragment_is_not_found(db: Connection) -> None:
    with pytest.raises(NotFound):
        fragments.get(db, 99)


def test_an_update_keeps_the_former_text(db: Connection) -> None:
    n = add_fragment(db, 1, "first words")
    assert update(db, n, "second words") == 2
    assert update(db, n, "third words") == 3
    assert [v.content for v in fragments.get_versions(db, n)] == ["first words", "second words"]
    assert fragments.get(db, n).content == "third words"


def test_an_updated_fragment_is_indexed_again_and_pending(db: Connection) -> None:
    n = add_fragment(db, 1, "zebra")
    update(db, n, "lion")
    keywords.optimize(db)
    assert keywords.count_rows(db, "fragment_words", "zebra") == [0]
    assert keywords.count_rows(db, "fragment_words", "lion") == [1]
    assert [w.n for w in vectors.pending_items(db, limit=9)] == [n]


def test_a_deleted_fragment_can_be_restored(db: Connection) -> None:
    n = add_fragment(db, 1)
    fragments.set_deleted(db, n, NOON, now=NOON)
    assert fragments.is_deleted(db, n)
    assert fragments.roots(db, project_n=None, limit=9) == []
    fragments.set_deleted(db, n, None, now=NOON)
    assert fragments.roots(db, project_n=None, limit=9) == [(n, 0)]


def test_a_superseded_fragment_is_valid_until_the_newer_one(db: Connection) -> None:
    n = add_fragment(db, 1)
    fragments.set_superseded(db, n, numbered_id(2), now=NOON)
    assert (fragments.get(db, n).superseded_by, fragments.get(db, n).valid_to) == (
        numbered_id(2),
        NOON,
    )
    fragments.set_superseded(db, n, None, now=NOON)
    assert fragments.get(db, n).valid_to is None


def test_reading_strengthens_a_fragment_and_its_neighbours_a_little(db: Connection) -> None:
    a, b = add_fragment(db, 1, importance=0.8), add_fragment(db, 2, importance=0.5)
    graph.put_edge(db, a, b, "associative", now=NOON, weight=0.5)
    before = fragments.get(db, a).relevance, fragments.get(db, b).relevance
    fragments.reinforce(db, a, now=NOON)
    fragments.reinforce(db, 99, now=NOON)
    one, other = fragments.get(db, a), fragments.get(db, b)
    assert (one.access_count, one.last_accessed) == (1, NOON)
    assert one.relevance > before[0]
    assert other.relevance == pytest.approx(before[1] + 0.1 * 0.5)


@pytest.mark.parametrize("importance", [0.1, 0.4, 0.5, 0.9])
def test_reading_never_lifts_a_neighbour_above_the_fragment_that_was_read(
    db: Connection, importance: float
) -> None:
    read, near = add_fragment(db, 1, importance=0.3), add_fragment(db, 2, importance=importance)
    graph.put_edge(db, read, near, "associative", now=NOON, weight=1.0)
    before = fragments.get(db, near).relevance
    for _ in range(20):
        fragments.reinforce(db, read, now=NOON)
        lifted = fragments.get(db, near).relevance
        assert lifted <= max(before, fragments.get(db, read).relevance + 1e-9)


def test_what_is_recalled_counts_as_used_but_not_as_read(db: Connection) -> None:
    n, other = add_fragment(db, 1, importance=0.2), add_fragment(db, 2, importance=0.2)
    later = NOON + timedelta(days=40)
    fragments.mark_used(db, [n], now=later)
    fragments.decay_relevance(db, now=later)
    used, unused = fragments.get(db, n), fragments.get(db, other)
    assert (used.access_count, used.last_accessed) == (0, later)
    assert used.relevance == pytest.approx(relevance(0.2, 0, 0))
    assert unused.relevance < VISIBLE


def test_what_was_used_in_the_last_90_days_stays_visible(db: Connection) -> None:
    n = add_fragment(db, 1, importance=0.05)
    fragments.reinforce(db, n, now=NOON)
    for days, is_visible in ((89, True), (91, False)):
        fragments.decay_relevance(db, now=NOON + timedelta(days=days))
        assert (fragments.get(db, n).relevance >= VISIBLE) == is_visible


def test_roots_come_with_their_children_strongest_first(db: Connection) -> None:
    weak, strong = add_fragment(db, 1, importance=0.1), add_fragment(db, 2, importance=0.9)
    child = add_fragment(db, 3, depth=1)
    graph.put_edge(db, strong, child, "hierarchical", now=NOON)
    assert fragments.roots(db, project_n=None, limit=9) == [(strong, 1), (weak, 0)]
    assert fragments.get(db, child).parent_id == numbered_id(2)
    db.update("fragments", child, depth=0)
    assert fragments.get(db, child).depth == 0


def test_an_outdated_message_ranks_below_the_newer_one_and_is_marked(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder(), now=FixedClock()) as memory:
        texts = ["The worker tries a job three times.", "The worker tries a job five times now."]
        old, new = (
            memory.capture(f"s{place}", [
                NewMessage("user", (Part("text", text),), CLOCK_NOON - timedelta(days=9 - place))
            ])[0]
            for place, text in enumerate(texts)
        )  # fmt: skip
        stale = memory.store("Three tries.", session="s0", source_messages=[old])
        fresh = memory.store("Five tries.", session="s1", source_messages=[new])
        question = "how often does the worker try a job?"
        before = {hit.id: hit for hit in memory.recall(question)}
        memory.knowledge.supersede(stale, fresh)
        hits = {hit.id: hit for hit in memory.recall(question)}
        assert hits[old].score < before[old].score - 1
        assert "out of date" in hits[old].why
        assert "out of date" not in hits[new].why
        memory.store("The worker logs its jobs.", session="s0", source_messages=[old])
        [again] = [h for h in memory.recall("worker try a job three") if h.id == old]
        assert "out of date" not in again.why
