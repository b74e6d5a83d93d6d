from __future__ import annotations

import pytest

from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from tests.recall.talk import say


def test_a_fragment_is_read_with_its_surroundings(memory: Memory):
    root = memory.store("Deploys")
    child = memory.store("Deploys are blue green", parent_id=root)
    leaf = memory.store("Green is the new one", parent_id=child)
    other = memory.store("Rollbacks")
    memory.link(child, other, "related_to", note="see also")
    [reading] = memory.read([child])
    assert reading.parent is not None
    assert (reading.parent.id, [c.id for c in reading.children]) == (root, [leaf])
    assert [(e.kind, e.target, e.note) for e in reading.edges] == [
        ("related_to", other, "see also")
    ]


def test_reading_reinforces_and_looking_does_not(memory: Memory):
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


def test_a_tree_is_explored_to_the_depth_asked_for(memory: Memory):
    root = memory.store("A")
    child = memory.store("B", parent_id=root)
    memory.store("C", parent_id=child)
    [whole] = memory.explore(root, max_depth=2)
    assert whole.below[0].below[0].title.title == "C"
    [short] = memory.explore(root, max_depth=1)
    assert short.below[0].below == ()


def test_one_step_in_each_direction(memory: Memory):
    root = memory.store("A")
    child = memory.store("B", parent_id=root)
    other = memory.store("C")
    memory.link(other, child, "supports")
    assert [t.id for t in memory.traverse(root, "children")] == [child]
    assert [t.id for t in memory.traverse(child, "parent")] == [root]
    assert [t.id for t in memory.traverse(child, "associations")] == [other]
    with pytest.raises(NotFound, match="root"):
        memory.traverse(root, "parent")
    with pytest.raises(InvalidInput):
        memory.traverse(root, "sideways")  # type: ignore[arg-type]


def test_why_shows_the_messages_that_a_fragment_came_from(memory: Memory):
    [source] = say(memory, "s", "We deploy with ops/deploy.sh")
    id_ = memory.store("Deploys use ops/deploy.sh", source_messages=[source])
    memory.recall("deploy")
    memory.database.write(lambda _db: None)
    provenance = memory.why(id_)
    assert [message.id for message in provenance.sources] == [source]
    assert provenance.times_recalled == 1
    assert provenance.numbers["importance"] == 0.5


def test_versions_are_logged_and_compared(memory: Memory):
    id_ = memory.store("The limit is 3")
    memory.update(id_, "The limit is 5", reason="outage")
    now, former = memory.log(id_)
    assert (now.content, now.version) == ("The limit is 5", 2)
    assert [(v.content, v.reason) for v in former] == [("The limit is 3", "outage")]
    old, new = memory.diff(id_)
    assert (old.content, new.content) == ("The limit is 3", "The limit is 5")
    with pytest.raises(NotFound):
        memory.diff(id_, version=7)


def test_what_was_deleted_is_on_no_way(memory: Memory):
    root = memory.store("Deploys")
    child = memory.store("Deploys are blue green", parent_id=root)
    other = memory.store("Rollbacks")
    memory.link(child, other, "related_to")
    memory.delete(other)
    assert memory.traverse(child, "associations") == []
    [reading] = memory.read([child])
    assert reading.edges == ()
    memory.delete(root)
    with pytest.raises(NotFound, match="was deleted"):
        memory.traverse(child, "parent")


def test_what_was_deleted_and_is_asked_for_by_id_is_marked(memory: Memory):
    root = memory.store("Deploys")
    child = memory.store("Deploys are blue green", parent_id=root)
    memory.delete(child)
    [outline] = memory.explore(root)
    assert (outline.title.deleted, outline.below) == (False, ())
    [outline] = memory.explore(child)
    assert outline.title.deleted
    memory.delete(root)
    [reading] = memory.read([child])
    assert reading.parent is not None
    assert reading.parent.deleted
