"""Read, explore, traverse, why, history and timeline."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.records import NewMessage, Part
from tests.fakes import NOON, FixedClock
from tests.recall.talk import say


def test_a_fragment_is_read_with_its_surroundings(memory: Memory):
    root = memory.store("Deploys")
    child = memory.store("Deploys are blue green", parent_id=root)
    leaf = memory.store("Green is the new one", parent_id=child)
    other = memory.store("Rollbacks")
    memory.knowledge.link(child, other, "related_to", note="see also")
    [reading] = memory.read([child])
    assert reading.parent is not None
    assert (reading.parent.id, [c.id for c in reading.children]) == (root, [leaf])
    assert [(e.kind, e.target, e.note) for e in reading.edges] == [
        ("related_to", other, "see also")
    ]


def test_read_reinforces_and_explore_does_not(memory: Memory):
    id_ = memory.store("Deploys")
    memory.read([id_], reinforce=False)
    counts = [r.fragment.access_count for _ in (0, 1) for r in memory.read([id_]) if r.fragment]
    assert counts == [0, 1]


def test_a_message_is_read_whole_with_its_session(memory: Memory):
    [id_] = say(memory, "s", "x " * 5_000, title="Long talk")
    [reading] = memory.read([id_[:18]])
    assert len(reading.text) == 10_000
    assert reading.session is not None
    assert reading.session.title == "Long talk"


def test_explore_stops_at_max_depth(memory: Memory):
    root = memory.store("A")
    child = memory.store("B", parent_id=root)
    memory.store("C", parent_id=child)
    [whole] = memory.search.explore(root, max_depth=2)
    assert whole.below[0].below[0].title.title == "C"
    [short] = memory.search.explore(root, max_depth=1)
    assert short.below[0].below == ()


def test_traverse_returns_children_parent_and_associations(memory: Memory):
    root = memory.store("A")
    child = memory.store("B", parent_id=root)
    other = memory.store("C")
    memory.knowledge.link(other, child, "supports")
    assert [t.id for t in memory.search.traverse(root, "children")] == [child]
    assert [t.id for t in memory.search.traverse(child, "parent")] == [root]
    assert [t.id for t in memory.search.traverse(child, "associations")] == [other]
    with pytest.raises(NotFound, match="root"):
        memory.search.traverse(root, "parent")
    with pytest.raises(InvalidInput):
        memory.search.traverse(root, "sideways")  # type: ignore[arg-type]


def test_why_returns_source_messages(memory: Memory):
    [source] = say(memory, "s", "We deploy with ops/deploy.sh")
    id_ = memory.store("Deploys use ops/deploy.sh", source_messages=[source])
    memory.recall("deploy")
    memory.database.write(lambda _db: None)
    provenance = memory.search.why(id_)
    assert [message.id for message in provenance.sources] == [source]
    assert provenance.times_recalled == 1
    assert provenance.numbers["importance"] == 0.5


def test_versions_are_logged_and_compared(memory: Memory):
    id_ = memory.store("The limit is 3")
    memory.knowledge.update(id_, "The limit is 5", reason="outage")
    now, former = memory.knowledge.log(id_)
    assert (now.content, now.version) == ("The limit is 5", 2)
    assert [(v.content, v.reason) for v in former] == [("The limit is 3", "outage")]
    old, new = memory.knowledge.diff(id_)
    assert (old.content, new.content) == ("The limit is 3", "The limit is 5")
    with pytest.raises(NotFound):
        memory.knowledge.diff(id_, version=7)


def test_deleted_fragments_are_not_traversed(memory: Memory):
    root = memory.store("Deploys")
    child = memory.store("Deploys are blue green", parent_id=root)
    other = memory.store("Rollbacks")
    memory.knowledge.link(child, other, "related_to")
    memory.knowledge.delete(other)
    assert memory.search.traverse(child, "associations") == []
    [reading] = memory.read([child])
    assert reading.edges == ()
    memory.knowledge.delete(root)
    with pytest.raises(NotFound, match="was deleted"):
        memory.search.traverse(child, "parent")


def test_deleted_fragment_is_readable_by_id_and_marked(memory: Memory):
    root = memory.store("Deploys")
    child = memory.store("Deploys are blue green", parent_id=root)
    memory.knowledge.delete(child)
    [outline] = memory.search.explore(root)
    assert (outline.title.deleted, outline.below) == (False, ())
    [outline] = memory.search.explore(child)
    assert outline.title.deleted
    memory.knowledge.delete(root)
    [reading] = memory.read([child])
    assert reading.parent is not None
    assert reading.parent.deleted


def test_history_lists_all_events_in_order(tmp_path: Path):
    clock = FixedClock()
    with Memory.open(home=tmp_path, embedder=NoEmbedder(), now=clock) as memory:
        [said] = memory.capture("s", [NewMessage("user", (Part("text", "We use tabs."),), NOON)])
        clock.advance(hours=1)
        old = memory.store("We use tabs.", source_messages=[said])
        clock.advance(hours=1)
        memory.knowledge.update(old, "We use tabs everywhere.", reason="more of it")
        clock.advance(hours=1)
        memory.recall("tabs")
        memory.read([old])
        clock.advance(hours=1)
        new = memory.store("We use spaces.")
        memory.knowledge.supersede(old, new)
        happened = memory.knowledge.history(old)
        assert [one.what for one in happened] == [
            "said", "learned", "changed", "recalled", "read", "superseded", "supersedes",
        ]  # fmt: skip
        assert happened[0].detail == "user: We use tabs."
        assert happened[2].detail == "it said: We use tabs. (more of it)"
        memory.knowledge.undo()
        [undone] = [one for one in memory.knowledge.history(old) if one.what == "superseded"]
        assert undone.detail == "by hand, taken back since"
        with pytest.raises(InvalidInput, match="only fragments"):
            memory.knowledge.history(said)


def test_timeline_of_a_message_covers_its_session(memory: Memory, clock: FixedClock):
    ids = say(memory, "a", *(f"word {place}" for place in range(6)))
    say(memory, "b", "elsewhere")
    clock.advance(minutes=2.5)
    learned = memory.store("Learned in between", session="a")
    found = memory.search.timeline(ids[2], before=1, after=2)
    assert [one.id for one in found] == [ids[1], ids[2], learned, ids[3]]
    assert [one.is_anchor for one in found] == [False, True, False, False]
    assert [one.what for one in found] == ["assistant", "user", "fact", "assistant"]


def test_timeline_of_a_time_covers_all_sessions(memory: Memory):
    early = say(memory, "a", "one", "two", at=NOON - timedelta(hours=1), project="/code/a")
    late = say(memory, "b", "three", "four", at=NOON, project="/code/b")
    for anchor in ("2026-05-13T12:00", "2026-05-13 12:00:00+00:00"):
        found = memory.search.timeline(anchor, before=1, after=1)
        assert [one.id for one in found] == [early[1], late[0]]
        assert not any(one.is_anchor for one in found)
    within = memory.search.timeline("2026-05-13T12:00", project="/code/a")
    assert [one.id for one in within] == early


def test_timeline_accepts_time_in_words(memory: Memory):
    ids = say(memory, "a", "one", at=NOON - timedelta(days=1))
    assert [one.id for one in memory.search.timeline("yesterday")] == ids


def test_timeline_of_now_returns_latest_entries(memory: Memory):
    ids = say(memory, "a", *(f"word {place}" for place in range(9)), at=NOON - timedelta(days=1))
    assert [one.id for one in memory.search.timeline("now", before=3)] == ids[-3:]


def test_timeline_parses_numeric_date_as_time(memory: Memory):
    ids = say(memory, "a", "one", at=NOON)
    assert [one.id for one in memory.search.timeline("20260513")] == ids


def test_timeline_of_a_fragment_covers_its_session(memory: Memory, clock: FixedClock):
    ids = say(memory, "a", "one", "two")
    say(memory, "b", "elsewhere")
    clock.advance(minutes=5)
    learned = memory.store("Learned", session="a")
    found = memory.search.timeline(learned)
    assert [one.id for one in found] == [*ids, learned]
    assert found[-1].is_anchor


def test_timeline_omits_tool_results_and_shows_calls(memory: Memory):
    new = [
        NewMessage("user", (Part("text", "look"),), NOON),
        NewMessage(
            "assistant",
            (Part("reasoning", "hm"), Part("tool_call", '{"command": "ls"}', "Bash")),
            NOON + timedelta(seconds=1),
        ),
        NewMessage("tool", (Part("tool_result", "a b c"),), NOON + timedelta(seconds=2)),
        NewMessage("assistant", (Part("text", "done"),), NOON + timedelta(seconds=3)),
    ]
    ids = memory.capture("s", new)
    found = memory.search.timeline(ids[0])
    assert [one.id for one in found] == [ids[0], ids[1], ids[3]]
    assert "ls" in found[1].text
    assert "hm" not in found[1].text


def test_timeline_omits_deleted_fragments(memory: Memory):
    [said] = say(memory, "a", "one")
    memory.knowledge.delete(memory.store("Learned", session="a"))
    assert [one.id for one in memory.search.timeline(said)] == [said]


@pytest.mark.parametrize("anchor", ["whenever", "99/99", ""])
def test_timeline_refuses_anchor_that_is_no_id_or_time(memory: Memory, anchor: str):
    with pytest.raises(InvalidInput, match="not a time that Lore understands"):
        memory.search.timeline(anchor)


def test_timeline_of_unknown_id_raises_not_found(memory: Memory):
    with pytest.raises(NotFound, match="No item starts with"):
        memory.search.timeline("ab12cd34")
