"""Background work: every owner has a turn, a failure concerns one, and what is removed goes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lore.daemon.periodic_tasks import PeriodicTask, TaskResult
from lore.errors import NotFound, StoreError
from lore.memory import Memory
from lore.server.background import ACTIVE_S, BackgroundWork
from lore.server.owner_service import MemoryOpener, SharedModels
from lore.settings import Settings, load
from tests.fakes import FakeEmbedder
from tests.server.served import Served, database_of, on_both_engines, serving
from tests.waiting import eventually


class Seconds:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Log:
    """A task that records whom it worked for, and has more to do for some."""

    def __init__(self, served: Served) -> None:
        self.seen: list[str] = []
        self.busy: set[str] = set()
        self.broken: set[str] = set()
        self._names = {one.id: one.name for one in served.registry.list_owners()}

    def run(self, memory: Memory, _stopping: object) -> TaskResult:
        name = self._names[memory.settings.home.name]
        self.seen.append(name)
        if name in self.broken:
            msg = "The disk is full."
            raise StoreError(msg)
        return TaskResult({"done": 1}, more=name in self.busy)


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path, url=database_of(request)) as running:
        for name in ("ann", "ben", "cy"):
            running.get("/status", running.add(name))
        yield running


@pytest.fixture
def log(served: Served) -> Log:
    return Log(served)


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def work(served: Served, log: Log, seconds: Seconds) -> BackgroundWork:
    task = PeriodicTask("digest", "digesting", 10.0, log.run)
    local = PeriodicTask("capture", "capturing", 1.0, log.run)
    made = BackgroundWork(
        served.registry, served.server.pool, served.store, load({}, home=served.home).settings,
        tasks=(local, task), monotonic=seconds,
    )  # fmt: skip
    for name in ("ann", "ben", "cy"):
        made.note_request(served.registry.get_owner(name).id)
    return made


def test_one_with_much_to_do_delays_the_others_by_one_slice(work, log: Log, seconds: Seconds):
    log.busy = {"ann"}
    for _ in range(3):
        work.work_once()
        seconds.now += 1
    assert log.seen == ["ann", "ben", "cy", "ann", "ann"]


def test_one_who_waits_for_a_model_stops_nobody_else(served: Served, log: Log):
    answered, begun = threading.Event(), threading.Event()
    ann = served.registry.get_owner("ann").id

    def run(memory: Memory, stopping: object) -> TaskResult:
        result = log.run(memory, stopping)
        if memory.settings.home.name == ann:
            begun.set()
            answered.wait(60)
        return result

    task = PeriodicTask("digest", "digesting", 0.01, run)
    settings = load({}, home=served.home).settings
    work = BackgroundWork(served.registry, served.server.pool, served.store, settings, tasks=[task])
    for name in ("ann", "ben", "cy"):
        work.note_request(served.registry.get_owner(name).id)
    work.start()
    try:
        assert begun.wait(60)
        eventually(lambda: log.seen.count("ben") > 1 and log.seen.count("cy") > 1)
        assert log.seen.count("ann") == 1
    finally:
        answered.set()
        assert work.stop(60)


def test_a_failure_of_one_stops_nobody_else(work: BackgroundWork, log: Log, seconds: Seconds):
    log.broken = {"ben"}
    work.work_once()
    seconds.now += 11
    work.work_once()
    assert log.seen.count("ann") == log.seen.count("cy") == 2
    assert log.seen.count("ben") == 1  # it waits longer each time


def test_owners_leave_the_round_when_they_are_quiet(work, log: Log, seconds: Seconds):
    work.work_once()
    assert len(work) == 3
    seconds.now += ACTIVE_S + 1
    work.work_once()  # what is due by now
    work.work_once()
    assert len(work) == 0


def test_owners_without_requests_are_visited(served: Served, log: Log, seconds: Seconds):
    task = PeriodicTask("digest", "digesting", 10.0, log.run)
    settings = load({}, home=served.home).settings
    work = BackgroundWork(
        served.registry, served.server.pool, served.store, settings, tasks=(task,),
        monotonic=seconds,
    )  # fmt: skip
    work.tidy()
    work.work_once()
    assert sorted(log.seen) == ["ann", "ben", "cy"]
    work.work_once()
    work.tidy()
    assert len(work) == 0  # not again before some hours have passed


def test_the_memory_of_a_removed_owner_is_deleted(served: Served, work: BackgroundWork):
    folder = served.folder("ann")
    assert folder.exists()
    served.registry.remove_owner("ann")
    work.tidy()
    assert not folder.exists()
    assert served.registry.removed_owners() == []
    work.work_once()
    assert served.add("ann")


@on_both_engines
def test_what_a_removed_owner_published_goes_with_them(served: Served, work: BackgroundWork):
    registry, keys = served.registry, served.keys
    team = registry.add_team("harbor", quorum=1)
    for name in ("ann", "ben"):
        registry.add_member("harbor", name)
    stored = served.post("/api/v1/tools/store", {"content": "The gate opens at six."}, keys["ann"])
    path = "/api/v1/teams/harbor/publications"
    published = served.post(path, {"id": stored.json["data"]["id"]}, keys["ann"]).json["id"]
    served.post(f"{path}/{published}/approve", {}, keys["ben"])
    ask = {"query": "When does the gate open?"}
    assert len(served.post("/api/v1/retrieve", ask, keys["ben"]).json["hits"]) == 1
    registry.remove_owner("ann")
    assert served.post("/api/v1/retrieve", ask, keys["ben"]).json["hits"] == []
    work.tidy()
    with served.server.lease_team(team.id) as memory:
        assert memory.maintenance.stats().fragments == 0
    work.tidy()
    assert registry.removed_owners() == []


@pytest.mark.parametrize("url", ["", "postgres"])
def test_the_operators_store_and_sync_target_are_nobodys(
    tmp_path: Path, url: str, request: pytest.FixtureRequest
):
    url = request.getfixturevalue("postgres_url") if url else ""

    def choose(settings: Settings) -> Settings:
        return replace(
            settings, store_owner="operator", sync_target="hub:", sync_api_key="k",
            sync_interval_s=300.0,
        )  # fmt: skip

    with serving(tmp_path, change=choose, url=url) as running:
        ann, ben = running.add("ann"), running.add("ben")
        text = {"content": "The gate opens at six."}
        assert running.post("/api/v1/tools/store", text, ann).status == 200
        ask = {"query": "When does the gate open?"}
        assert len(running.post("/api/v1/retrieve", ask, ann).json["hits"]) == 1
        assert running.post("/api/v1/retrieve", ask, ben).json["hits"] == []
        assert running.get("/api/v1/status", ann).json["sync"]["target"] == ""
        settings = choose(load({}, home=tmp_path).settings)
        work = BackgroundWork(running.registry, running.server.pool, running.store, settings)
        assert "sync" not in {task.name for task in work.tasks}


def test_a_request_in_flight_brings_no_removed_owner_back(served: Served):
    id_ = served.registry.get_owner("ann").id
    served.registry.remove_owner("ann")
    opener = MemoryOpener(served.registry, served.store, SharedModels(FakeEmbedder(), None))
    with pytest.raises(NotFound):
        opener.open(id_)


def test_idle_memories_are_closed(served: Served, work: BackgroundWork):
    assert len(served.server.pool) == 3
    assert served.server.pool.close_idle() == 0  # not before the setting's time
    for owner in served.server.pool.owners():
        assert served.server.pool.close_owner(owner)
    assert served.get("/status", served.keys["ann"]).status == 200
