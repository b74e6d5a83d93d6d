"""Search of fragments and of sessions."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from tests.fakes import NOON, FixedClock
from tests.recall.talk import say


def test_fragments_are_found_by_words_with_a_breadcrumb(memory: Memory):
    root = memory.store("Deployment of harbor", kind="architecture")
    child = memory.store("The deploy script is ops/deploy.sh", parent_id=root)
    [hit] = memory.search("deploy script")
    assert (hit.id, hit.breadcrumb) == (child, "Deployment of harbor")


def test_search_returns_one_hit_per_tree_unless_parent_is_given(memory: Memory):
    root = memory.store("Deploys of harbor")
    below = [memory.store(f"Deploy step {i} of harbor", parent_id=root) for i in range(3)]
    assert len(memory.search("deploy harbor step")) == 1
    inside = memory.search("deploy harbor step", parent_id=root)
    assert {hit.id for hit in inside} == {root, *below}


def test_search_returns_fragments_at_requested_depth(memory: Memory):
    root = memory.store("Everything about harbor")
    middle = memory.store("Deploys of harbor", parent_id=root)
    leaf = memory.store("The deploy script is ops/deploy.sh", parent_id=middle)
    question = "deploy script ops/deploy.sh"
    assert [hit.id for hit in memory.search(question, depth=0)] == [root]
    assert [hit.id for hit in memory.search(question, depth=1)] == [middle]
    assert [hit.id for hit in memory.search("Everything about harbor", depth=2)] == [leaf]


def test_filters_narrow_the_search(memory: Memory, clock: FixedClock):
    old = memory.store("The cache is redis", kind="fact", project="/p/a")
    clock.advance(days=30)
    new = memory.store("The cache is valkey", kind="decision", project="/p/b", origin="assistant")
    assert [h.id for h in memory.search("cache", kind="decision")] == [new]
    assert [h.id for h in memory.search("cache", origin="user")] == [old]
    assert [h.id for h in memory.search("cache", since="last week")] == [new]
    assert [h.id for h in memory.search("cache", project="/p/a")] == [old]


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "thing"}, {"origin": "mars"}, {"since": "soonish"}, {"limit": 0}],
)
def test_invalid_filters_are_refused(memory: Memory, wrong: dict[str, Any]):
    with pytest.raises(InvalidInput):
        memory.search("x", **wrong)


def test_an_unknown_parent_is_refused(memory: Memory):
    with pytest.raises(NotFound):
        memory.search("x", parent_id="0199aaaa-bbbb")


def test_a_faded_fragment_is_hidden(memory: Memory):
    id_ = memory.store("The tea is green", importance=0.1)
    memory.database.write(lambda db: db.run("UPDATE fragments SET relevance = 0.01"))
    assert memory.search("tea green") == []
    assert memory.read([id_])[0].text == "The tea is green"


def test_frequently_read_fragment_ranks_first(memory: Memory):
    ids = [memory.store(f"The lamp in room {i} is broken") for i in (1, 2)]
    for _ in range(5):
        memory.read([ids[0]])
    assert memory.search("lamp broken")[0].id == ids[0]


def test_deep_search_finds_graph_neighbors_and_shows_the_path(memory: Memory):
    memory.store("quayrates 2.3.0 broke the invoice export", summary="Invoice export outage")
    memory.store("quayrates belongs to the Slipway Team", summary="quayrates")
    answer = memory.store("The Slipway Team is led by Odile Brandt", summary="Slipway Team")
    for i in range(30):
        memory.store(
            f"Harbor Note {i} is about Berth {i} and its Ropes", summary=f"Harbor Note {i}"
        )
    question = "Who leads the owners of the service that broke the invoice export?"
    hits = memory.search(question, deep=True, limit=5)
    found = {hit.id: hit for hit in hits}
    assert found[answer].path[-3:] == ("quayrates", "slipway team", "Slipway Team")
    assert found[answer].why == f"found through {' → '.join(found[answer].path)}"
    assert all(hit.path or hit.why.startswith(("a direct hit, #", "in the neigh")) for hit in hits)


def test_deep_search_follows_manual_edges(memory: Memory):
    seed = memory.store("The alarm rang at night")
    other = memory.store("Batteries were replaced")
    for i in range(20):
        memory.store(f"Unrelated sentence {i} with other words")
    memory.knowledge.link(seed, other, "related_to")
    hits = memory.search("alarm rang night", deep=True, limit=5)
    [found] = [hit for hit in hits if hit.id == other]
    assert found.path == ("The alarm rang at night", "related to", "Batteries were replaced")


def test_search_works_without_an_embedder(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        id_ = memory.store("The deploy script is ops/deploy.sh", summary="Deploy script")
        memory.store("Tea is green", summary="Tea")
        assert memory.search("deploy")[0].id == id_
        assert memory.search("deploy", deep=True)[0].id == id_
        assert memory.recall("deploy").hits[0].id == id_


def test_roots_are_filtered_by_query(memory: Memory):
    root = memory.store("Deploys of harbor")
    memory.store("The deploy script is ops/deploy.sh", parent_id=root)
    memory.store("Tea is green")
    [title] = memory.search.roots(query="deploy script")
    assert (title.id, title.children) == (root, 1)


def test_session_that_did_the_work_ranks_first(memory: Memory):
    for i in range(4):
        say(memory, f"other-{i}", f"Let us talk about boat {i}", "A fine boat")
    say(memory, "flaky", "The timezone test is flaky", "Fixed by freezing the clock")
    first = memory.search.find_sessions("flaky timezone test")[0]
    assert first.best[0].text.startswith(("The timezone", "Fixed"))
    assert memory.sessions(limit=10)
    found = {s.id: s.external_id for s in memory.sessions(limit=10)}
    assert found[first.session_id] == "flaky"


def test_session_is_found_by_its_files(memory: Memory):
    for i in range(4):
        say(memory, f"other-{i}", "please fix it", "done")
    memory.capture("files", [], files=["src/berths/slots.py"])
    say(memory, "files", "please fix it", "done")
    memory.capture(
        "files",
        memory_messages(memory, "files"),
        agent="test",
        files=["src/berths/slots.py"],
    )
    found = {s.id: s.external_id for s in memory.sessions(limit=10)}
    assert found[memory.search.find_sessions("slots.py berths")[0].session_id] == "files"


def memory_messages(memory: Memory, session: str):
    from lore.records import NewMessage

    return [NewMessage(m.role, m.parts, m.created_at) for m in memory.sessions.messages(session)]


def test_newer_of_two_equal_sessions_ranks_first(memory: Memory):
    for days in (400, 200, 1):
        say(memory, f"s{days}", "the build broke again", "mended", at=NOON - timedelta(days=days))
    found = {s.id: s.external_id for s in memory.sessions(limit=10)}
    ranked = [found[hit.session_id] for hit in memory.search.find_sessions("build broke")]
    assert ranked[0] == "s1"


def test_a_session_of_today_comes_after_an_old_one_that_fits(memory: Memory):
    say(memory, "old", "Show 100 bookings before pagination", "Done", at=NOON - timedelta(days=400))
    say(memory, "today", "The default colour of the heron is grey", "It is", at=NOON)
    names = {s.id: s.external_id for s in memory.sessions(limit=10)}
    hits = memory.search.find_sessions("pagination of bookings, default 100")
    assert names[hits[0].session_id] == "old"


def test_recency_counts_as_far_as_a_session_fits(memory: Memory):
    say(memory, "fitting", "Show 100 bookings before pagination", "Done")
    say(memory, "passing", "The default colour of the heron is grey", "It is")
    names = {s.id: s.external_id for s in memory.sessions(limit=10)}

    def scores(now: datetime) -> dict[str, float]:
        hits = memory.search.find_sessions("pagination of bookings, default 100", now=now)
        return {names[hit.session_id]: hit.score for hit in hits}

    new, old = scores(NOON + timedelta(minutes=5)), scores(NOON + timedelta(days=400))
    assert 0 <= new["passing"] - old["passing"] < (new["fitting"] - old["fitting"]) / 2


def test_no_session_is_found_in_an_empty_memory(memory: Memory):
    assert memory.search.find_sessions("anything") == []
