"""What holds in several projects is offered, and holds in all once a person says so."""

from __future__ import annotations

import pytest

from lore.curate import fragments as by_hand
from lore.curate import promoting, undoing
from lore.errors import InvalidInput
from tests.curate.world import World, fact

CACHE = "The cache of the web server lives in folder alpha beta gamma"


def test_what_holds_in_three_projects_is_offered_and_promoted_on_request(world: World):
    for name in ("a", "b", "c"):
        with world.database.read() as db:
            assert promoting.offers(db) == []
        world.learn(fact(CACHE), session=name, project=f"/code/{name}")
    with world.database.read() as db:
        (offer,) = promoting.offers(db)
    assert len(offer.projects) == 3
    promoted = promoting.promote(world.database, offer.fragment.id)
    found = {one.id: one for one in world.standing()}
    assert found[promoted].project_id is None
    assert offer.fragment.id not in found
    with world.database.read() as db:
        assert promoting.offers(db) == []


def test_a_promotion_can_be_undone(world: World):
    world.learn(fact(CACHE))
    before = world.contents()
    promoted = promoting.promote(world.database, world.standing()[0].id)
    undoing.undo(world.database)
    assert world.contents() == before
    assert promoted not in [one.id for one in world.standing()]


def test_what_a_tool_said_is_never_offered(world: World):
    for name in ("a", "b", "c", "d"):
        world.learn(fact(CACHE), session=name, project=f"/code/{name}", role="tool")
    with world.database.read() as db:
        assert promoting.offers(db) == []


def test_what_holds_everywhere_already_is_not_promoted(world: World):
    world.learn(fact(CACHE))
    promoted = promoting.promote(world.database, world.standing()[0].id)
    with pytest.raises(InvalidInput, match="holds in all projects already"):
        promoting.promote(world.database, promoted)


def test_what_no_longer_stands_is_not_promoted(world: World):
    world.learn(fact(CACHE))
    (kept,) = world.standing()
    by_hand.delete(world.database, kept.id)
    with pytest.raises(InvalidInput, match="no longer stands"):
        promoting.promote(world.database, kept.id)


def test_a_promotion_keeps_what_it_came_from(world: World):
    world.learn(fact(CACHE))
    (kept,) = world.standing()
    promoting.promote(world.database, kept.id)
    (promoted,) = world.standing()
    assert promoted.metadata["promoted_from"] == kept.id
    assert promoted.source_messages == kept.source_messages
    assert (promoted.origin, promoted.trust) == (kept.origin, kept.trust)


def test_a_promotion_under_one_key_is_made_once(world: World):
    world.learn(fact(CACHE))
    (kept,) = world.standing()
    made = {promoting.promote(world.database, kept.id, key="k") for _ in range(2)}
    assert len(made) == len(world.standing()) == 1
