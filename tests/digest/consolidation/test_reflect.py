"""Phase 5: linked roots yield an insight, once, with the lowest trust of them all."""

from __future__ import annotations

from typing import Any

from lore.curate import fragments as by_hand
from lore.digest.consolidation.cycle import run_cycle
from lore.digest.consolidation.phase import Means
from lore.llm.offline.digester import OfflineDigester
from lore.store import edges, fragments
from lore.store.db import Database
from tests.digest.consolidation.samples import OFFLINE, World, phase


class SilentDigester(OfflineDigester):
    def reflect(self, cluster):
        return ""


def reflect(database: Database, means: Means = OFFLINE):
    return phase(run_cycle(database, means, only=("reflect",)), "reflect")


def deploys(database: Database, **fields: Any) -> World:
    world = World(database)
    for i, text in enumerate((
        "Deploys need a review",
        "Deploys run at noon",
        "Deploys are logged",
    )):
        world.add(f"d{i}", f"{text} by the platform crew", None, **fields)
    world.link("d0", "d1", 0.7)
    world.link("d2", "d1", 0.6)
    return world


def insights(database: Database) -> list[fragments.Fragment]:  # type: ignore[name-defined]
    with database.read() as db:
        rows = db.rows("SELECT n FROM fragments WHERE kind = 'insight' AND deleted_at IS NULL")
        return list(fragments.by_number(db, [row[0] for row in rows]).values())


def test_three_linked_roots_yield_an_insight_derived_from_them(database: Database):
    world = deploys(database, origin="user", project="/code/app")
    assert reflect(database).counts == {"insights": 1}
    (insight,) = insights(database)
    assert "deploys" in insight.content.lower()
    assert insight.depth == 0
    assert insight.project_id == world.get("d0").project_id
    with database.read() as db:
        n = db.value("SELECT n FROM fragments WHERE kind = 'insight'")
        drawn = edges.among_fragments(db, [n], ("derived_from",))
    assert {edge.target_n for edge in drawn} == set(world.ns.values())


def test_it_is_made_once_also_when_it_was_deleted(database: Database):
    deploys(database)
    reflect(database)
    assert reflect(database).counts == {}
    by_hand.delete(database, insights(database)[0].id)
    assert reflect(database).counts == {}
    assert insights(database) == []


def test_a_cluster_without_an_insight_is_not_asked_again(database: Database):
    deploys(database)
    assert reflect(database, Means(SilentDigester())).counts == {"without insight": 1}
    assert reflect(database).counts == {}


def test_a_cluster_that_grew_is_reflected_on_again_when_half_of_it_is_new(database: Database):
    world = deploys(database)
    reflect(database)
    world.add("d3", "Deploys are announced by the platform crew", None)
    world.link("d3", "d0", 0.9)
    assert reflect(database).counts == {}
    for i in (4, 5):
        world.add(f"d{i}", f"Deploys are checked {i * 'x'} by the platform crew", None)
        world.link(f"d{i}", "d3", 0.9)
    assert reflect(database).counts == {"insights": 1}


def test_it_has_the_lowest_trust_of_its_members(database: Database):
    world = deploys(database, origin="user")
    world.add("web", "Deploys may skip reviews, says the platform crew page", None, origin="web")
    world.link("web", "d0", 0.9)
    reflect(database)
    (insight,) = insights(database)
    assert (insight.origin, insight.trust) == ("web", 0)


def test_roots_linked_through_their_children_are_linked(database: Database):
    world = World(database)
    for i, text in enumerate(("review", "noon", "logs")):
        world.add(f"d{i}", f"Deploys and {text} of the platform crew", None)
        world.add(f"c{i}", f"A detail of {text}", None, parent=f"d{i}")
    world.link("c0", "c1", 0.8)
    world.link("c1", "c2", 0.8)
    assert reflect(database).counts == {"insights": 1}


def test_weak_links_and_two_roots_yield_nothing(database: Database):
    world = World(database)
    for i in range(3):
        world.add(f"d{i}", f"Deploys {i} of the platform crew", None)
    world.link("d0", "d1", 0.9)
    world.link("d1", "d2", 0.49)
    assert reflect(database).counts == {}


def test_projects_are_not_mixed(database: Database):
    world = World(database)
    for i in range(3):
        world.add(f"d{i}", f"Deploys {i} of the platform crew", None, project=f"/code/app{i}")
    world.link("d0", "d1", 0.9)
    world.link("d1", "d2", 0.9)
    assert reflect(database).counts == {}
