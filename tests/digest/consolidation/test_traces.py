"""Forgetting reaches what a cycle derived: overviews, insights, reports, steps."""

from __future__ import annotations

from typing import Any

from lore.digest.consolidation.cycle import run_cycle, undo_cycle
from lore.store import consolidation, fragments, graph, hard_delete
from lore.store.database import Database
from lore.store.hard_delete import ForgetSelection
from tests.digest.consolidation.samples import CHAT, OFFLINE, World, full_world, soundness

MADE: dict[str, Any] = {"origin": "assistant", "source_messages": ("m1",)}


def forget(database: Database, *ns: int, text: str = "") -> None:
    now = database.now()
    database.write(lambda db: hard_delete.forget(db, ForgetSelection(ns), text=text, now=now))
    database.erase_traces()


def bytes_of(database: Database) -> bytes:
    database.checkpoint()
    return b"".join(path.read_bytes() for path in database.path.parent.glob("memory.db*"))


def gateway(database: Database) -> World:
    world = World(database)
    world.add("root", "The gateway takes requests", None, **MADE)
    world.add("one", "Its owner is Hippolyta Quince", None, parent="root", **MADE)
    world.add("two", "It is written in Rust", None, parent="root", **MADE)
    world.add("three", "It logs calls", None, parent="root", **MADE)
    return world


def test_an_overview_goes_with_what_it_quotes(database: Database, clock):
    world = gateway(database)
    run_cycle(database, OFFLINE)
    clock.advance(hours=1)
    world.add("four", "It signs keys", None, parent="root", **MADE)
    run_cycle(database, OFFLINE)
    assert "Hippolyta" in world.get("root").content
    forget(database, world.ns["one"])
    assert world.get("root").content == "The gateway takes requests"
    assert b"Hippolyta" not in bytes_of(database)
    run_cycle(database, OFFLINE)
    assert "Rust" in world.get("root").content


def test_words_that_a_person_gave_a_root_stay_when_an_overview_goes(database: Database):
    world = gateway(database)
    run_cycle(database, OFFLINE)

    def by_hand(db):
        fragments.update(db, world.ns["root"], content="Our gateway", summary="Our gateway",
                         mentioned=(), now=database.now(), reason="")  # fmt: skip

    database.write(by_hand)
    forget(database, world.ns["one"])
    assert world.get("root").content == "Our gateway"
    assert b"Hippolyta" not in bytes_of(database)


def test_an_insight_goes_with_what_it_was_derived_from(database: Database):
    world = World(database)
    for i, text in enumerate(("Deploys by Hippolyta", "Deploys run at noon", "Deploys are logged")):
        world.add(f"d{i}", text, None)
    world.link("d0", "d1", 0.9)
    world.link("d1", "d2", 0.9)
    run_cycle(database, CHAT)
    assert bytes_of(database).count(b"Deploys by Hippolyta") > 1
    forget(database, world.ns["d0"])
    assert b"Hippolyta" not in bytes_of(database)


def test_a_report_loses_the_lines_about_what_is_forgotten(database: Database):
    world = full_world(database)
    run_cycle(database, OFFLINE)
    gone = world.get("orders again")
    forget(database, world.ns["orders again"])
    with database.read() as db:
        told = [line for report in consolidation.recent_reports(db, limit=9) for p in report.phases
                for line in p.told]  # fmt: skip
    assert not any(gone.id in line for line in told)
    assert any(world.get("port").id in line for line in told)


def test_a_text_is_forgotten_in_reports_and_in_steps(database: Database):
    world = World(database)
    world.add("a", "One fact", None)
    world.add("b", "Another fact", None)

    def draw(db):
        graph.put_edge(db, world.ns["a"], world.ns["b"], "associative", now=database.now(),
                  weight=0.1, note="as Hippolyta said")  # fmt: skip

    database.write(draw)
    run_cycle(database, OFFLINE)
    forget(database, text="Hippolyta")
    assert b"Hippolyta" not in bytes_of(database)


def test_a_cycle_can_be_taken_back_after_something_of_it_was_forgotten(database: Database):
    world = full_world(database)
    run_cycle(database, OFFLINE)
    forget(database, world.ns["orders again"], world.ns["deploy 0"], world.ns["port now"])
    undo_cycle(database)
    assert soundness(database) == []
    assert "port" in world.visible()
