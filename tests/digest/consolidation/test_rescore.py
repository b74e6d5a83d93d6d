"""Phase rescore: the decay curve, reinforcement, and doubt about missing files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore import relevance
from lore.digest.consolidation.cycle import run_cycle
from lore.recall.item_details import why
from lore.store import consolidation, fragments, project_rows, sessions
from lore.store.database import Database, open_database
from tests.digest.consolidation.samples import OFFLINE, World, phase
from tests.fakes import NOON, FixedClock


def rescore(database: Database):
    return phase(run_cycle(database, OFFLINE, only=("rescore",)), "rescore")


@pytest.fixture(scope="module")
def one_fragment(tmp_path_factory):
    path = tmp_path_factory.mktemp("home") / "memory.db"
    database = open_database(path, busy_timeout_s=5, backups=None, now=FixedClock())
    World(database).add("a", "Some fact", None)
    yield database
    database.close()


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    importance=st.floats(0, 1),
    accesses=st.integers(0, 500),
    days=st.floats(-5, 1_000),
    boost=st.floats(0, 1),
    boosted=st.floats(-5, 1_000),
)
def test_the_store_rescores_as_the_pure_curve_says(
    one_fragment: Database, importance, accesses, days, boost, boosted
):
    us = {name: int((NOON - timedelta(days=value)).timestamp() * 1e6)
          for name, value in (("days", days), ("boosted", boosted))}  # fmt: skip

    def work(db):
        db.run(
            "UPDATE fragments SET importance = :importance, decay_rate = :rate,"
            " access_count = :accesses, last_reinforced = :days, boost = :boost,"
            " boosted_at = :boosted",
            importance=importance, rate=relevance.decay_rate(importance), accesses=accesses,
            boost=boost, **us,
        )  # fmt: skip
        fragments.decay_relevance(db, now=NOON)
        return db.value("SELECT relevance FROM fragments")

    wanted = relevance.relevance(importance, accesses, days, boost, boosted)
    assert one_fragment.write(work) == pytest.approx(wanted, abs=1e-9)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 100))
def test_a_boost_fades(boost, importance, days):
    assert 0 <= relevance.decayed_boost(boost, importance, days) <= boost


def test_boosts_lift_a_neighbour_up_to_the_fragment_that_is_read(database: Database):
    world = World(database)
    world.add("read", "A fact that is read", None)
    world.add("near", "A fact beside it", None)
    world.link("read", "near", 1.0)
    world.read("read", times=20)
    rescore(database)
    assert world.get("near").relevance == pytest.approx(world.get("read").relevance)


def test_neighbour_boost_outlives_the_next_rescore(database: Database, clock):
    world = World(database)
    world.add("read", "A fact that is read", None, importance=0.9)
    world.add("near", "A fact beside it", None, importance=0.2)
    world.add("far", "A fact far away", None, importance=0.2)
    world.link("near", "read", 0.8)
    world.read("read")
    clock.advance(days=1)
    rescore(database)
    alone = relevance.relevance(0.2, 0, 1)
    assert world.get("far").relevance == pytest.approx(alone)
    assert world.get("near").relevance == pytest.approx(
        alone + relevance.decayed_boost(0.08, 0.2, 1)
    )
    clock.advance(days=60)
    rescore(database)
    assert world.get("near").relevance < alone / 2


def test_why_gives_the_boost_and_the_doubt_behind_the_numbers(database: Database, clock):
    world = World(database)
    world.add("read", "A fact that is read", None, importance=0.9)
    world.add("near", "A fact beside it", None, importance=0.2)
    world.link("near", "read", 0.8)
    world.read("read")
    clock.advance(days=4)
    rescore(database)
    with database.read() as db:
        told = why(db, world.get("near").id, now=clock()).numbers
    assert told["boost"] == pytest.approx(relevance.decayed_boost(0.08, 0.2, 4))
    assert told["doubt"] == 0
    assert told["relevance"] == pytest.approx(world.get("near").relevance)


def test_boosts_add_up_as_they_fade(database: Database, clock):
    world = World(database)
    world.add("read", "A fact that is read", None, importance=0.9)
    world.add("near", "A fact beside it", None, importance=0.2)
    world.link("read", "near", 1.0)
    world.read("read")
    clock.advance(days=3)
    world.read("read")
    with database.read() as db:
        boost = db.value("SELECT boost FROM fragments WHERE n = :n", n=world.ns["near"])
    assert boost == pytest.approx(relevance.decayed_boost(0.1, 0.2, 3) + relevance.NEIGHBOUR_BOOST)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "todos.ts").write_text("x")
    (folder / "README.md").write_text("x")
    return folder


def about_files(database: Database, project: Path) -> World:
    world = World(database)
    where: dict[str, Any] = {"project": str(project)}
    world.add("todos", "Todos are kept in src/todos.ts by the store", None, **where)
    world.add("both", "src/todos.ts is described in README.md", None, **where)
    world.add("other", "Lists live in src/lists.ts", None, **where)
    world.add("elsewhere", "Todos are kept in src/todos.ts", None)

    def work(db):
        n = sessions.ensure_session(
            db, "talk", agent="test", started_at=NOON,
            project_n=project_rows.find_project(db, str(project)),
        )  # fmt: skip
        sessions.describe_session(db, n, files=(str(project / "src" / "todos.ts"), "README.md"))

    database.write(work)
    return world


def test_a_fragment_whose_files_are_gone_is_doubted_after_a_week_and_hidden(
    database: Database, clock, project
):
    world = about_files(database, project)
    rescore(database)
    (project / "src" / "todos.ts").unlink()
    assert rescore(database).counts["files missing"] == 1
    clock.advance(days=7)
    rescore(database)
    assert world.get("todos").confidence == pytest.approx(0.7)
    clock.advance(days=3)
    rescore(database)
    assert world.get("todos").confidence == pytest.approx(0.4)
    assert "todos" in world.visible()
    clock.advance(days=2)
    rescore(database)
    assert world.visible() == {"both", "other", "elsewhere"}


def test_fragment_is_visible_again_when_its_files_are_back(database: Database, clock, project):
    world = about_files(database, project)
    (project / "src" / "todos.ts").unlink()
    rescore(database)
    clock.advance(days=20)
    rescore(database)
    assert "todos" not in world.visible()
    (project / "src" / "todos.ts").write_text("again")
    assert rescore(database).counts["files back"] == 1
    assert world.get("todos").confidence == pytest.approx(0.7)
    assert "todos" in world.visible()


def test_a_project_that_is_not_on_this_machine_is_doubted_by_nobody(
    database: Database, clock, project
):
    world = about_files(database, project)
    project.rename(project.with_name("moved"))
    rescore(database)
    clock.advance(days=60)
    rescore(database)
    assert "todos" in world.visible()


def test_a_rescore_is_reported_with_its_count(database: Database):
    world = World(database)
    world.add("a", "Some fact", None)
    world.add("b", "Another fact", None)
    assert rescore(database).counts == {"rescored": 2}
    with database.read() as db:
        assert consolidation.find_last_cycle(db) is not None
