from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.store import history
from tests.fakes import FakeEmbedder


@pytest.fixture
def memory(new_home: Path):
    with Memory.open(home=new_home, embedder=NoEmbedder()) as opened:
        yield opened


def content_of(memory: Memory, id_: str) -> str:
    return memory.read([id_], reinforce=False)[0].text


def test_redo_repeats_undone_actions_in_order(memory: Memory):
    id_ = memory.store("one")
    memory.knowledge.update(id_, "two")
    memory.knowledge.update(id_, "three")
    memory.knowledge.undo()
    memory.knowledge.undo()
    assert content_of(memory, id_) == "one"
    assert memory.knowledge.redo() == ("update", id_)
    assert content_of(memory, id_) == "two"
    assert memory.knowledge.redo() == ("update", id_)
    assert content_of(memory, id_) == "three"
    with pytest.raises(NotFound, match="nothing to redo"):
        memory.knowledge.redo()
    assert memory.knowledge.undo() == ("update", id_)
    assert content_of(memory, id_) == "two"


def test_new_action_ends_redo(memory: Memory):
    id_ = memory.store("one")
    memory.knowledge.update(id_, "two")
    memory.knowledge.undo()
    memory.store("other")
    with pytest.raises(NotFound, match="nothing to redo"):
        memory.knowledge.redo()


def test_undo_and_redo_of_one_fragment_leave_others_alone(memory: Memory):
    one, two = memory.store("one"), memory.store("two")
    memory.knowledge.delete(one)
    memory.knowledge.delete(two)
    memory.knowledge.undo(one)
    memory.knowledge.undo(two)
    assert memory.knowledge.redo(one) == ("delete", one)
    assert [r.deleted for r in memory.read([one, two], reinforce=False)] == [True, False]


def test_links_and_supersessions_can_be_redone(memory: Memory):
    one, two = memory.store("one"), memory.store("two")
    memory.knowledge.link(one, two, "supports", weight=0.5, note="see")
    memory.knowledge.undo()
    memory.knowledge.redo()
    [edge] = memory.read([one])[0].edges
    assert (edge.kind, edge.weight, edge.note) == ("supports", 0.5, "see")
    memory.knowledge.supersede(one, two)
    memory.knowledge.undo()
    assert memory.knowledge.log(one)[0].superseded_by is None
    memory.knowledge.redo()
    assert memory.knowledge.log(one)[0].superseded_by == two
    memory.knowledge.link(one, two, "hierarchical")
    memory.knowledge.undo()
    memory.knowledge.redo()
    assert memory.search.traverse(two, "parent")[0].id == one


def test_the_next_undo_is_reported(memory: Memory):
    assert memory.knowledge.next_undo() is None
    id_ = memory.store("one")
    assert memory.knowledge.next_undo() == ("store", id_)
    assert memory.knowledge.next_undo(redo=True) is None
    memory.knowledge.undo()
    assert memory.knowledge.next_undo(redo=True) == ("store", id_)
    assert memory.knowledge.next_undo() is None


def test_forgetting_is_never_undone(memory: Memory):
    memory.store("kept")
    memory.forget(id=memory.store("gone"))
    with pytest.raises(InvalidInput, match="cannot be undone"):
        memory.knowledge.undo()


def test_removal_by_a_cycle_does_not_block_undo(memory: Memory):
    id_ = memory.store("one")
    memory.knowledge.update(id_, "two")
    memory.database.write(lambda db: history.add_tombstones(db, ["gone"], memory.database.now()))
    assert memory.knowledge.undo() == ("update", id_)


def test_forgotten_fragment_cannot_be_redone(memory: Memory):
    id_ = memory.store("one")
    memory.knowledge.update(id_, "the secret is xylophone")
    memory.knowledge.undo()
    assert memory.forget(match="xylophone") == [id_]
    with pytest.raises(NotFound):
        memory.knowledge.redo()


@given(st.lists(st.sampled_from(["undo", "redo"]), max_size=20))
@settings(max_examples=15)
def test_any_sequence_of_undo_and_redo_is_consistent(tmp_path_factory, steps: list[str]):
    with Memory.open(home=tmp_path_factory.mktemp("h"), embedder=NoEmbedder()) as memory:
        id_ = memory.store("0")
        for text in "123":
            memory.knowledge.update(id_, text)
        place = 3
        for step in steps:
            if step == "undo" and place > 0:
                memory.knowledge.undo()
                place -= 1
            elif step == "redo" and place < 3:
                memory.knowledge.redo()
                place += 1
            assert content_of(memory, id_) == str(place)


def test_undo_of_a_store_removes_the_vector(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        memory.store("one")
        memory.store("two")
        memory.maintenance.embed_waiting()
        memory.recall("one")
        memory.knowledge.undo()
        assert len(memory.sources.vector_index()) == memory.maintenance.stats().vectors == 1
