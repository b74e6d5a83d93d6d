"""Many concurrent callers beside background work: each gets its own response."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from lore.daemon.periodic_tasks import periodic_tasks
from lore.http.request_limits import Limits
from lore.memory import Memory
from lore.settings import Settings
from tests.http_api.live_server import Served, serving

CALLERS, ROUNDS = 8, 12
WORDS = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath")


def live(served: Served, caller: int, wrong: list[str]) -> None:
    """Push, store and ask in one project, and note whatever is not one's own."""
    word, project = WORDS[caller], f"/code/{WORDS[caller]}"
    for turn in range(ROUNDS):
        said = f"The {word} engine runs stage {turn} with valve {word}{turn}."
        pushed = served.post(
            "/api/v1/capture",
            {
                "session": f"{word}-talk",
                "project": project,
                "messages": [{"role": "user", "text": said, "key": str(turn)}],
            },
        )
        stored = served.memory.store(f"{word} rule {turn}: keep {word}{turn} shut", project=project)
        query = f"which valve has the {word} engine in stage {turn}, {word}{turn}?"
        found = served.post("/api/v1/retrieve", {"query": query, "project": project})
        if (pushed.status, found.status) != (200, 200):
            wrong.append(f"{pushed.status} {found.status} {found.body[:200]!r}")
            continue
        hits, question = found.json["hits"], found.json["question"]
        if question != query:
            wrong.append(f"{query} was answered as {question}")
        wrong += [f"{word} got {hit['text']}" for hit in hits if word not in hit["text"]]
        if not {pushed.json["ids"][0], stored} & {hit["id"] for hit in hits}:
            wrong.append(f"{word} did not get turn {turn}")


def do_tasks(memory: Memory, stopping: Callable[[], bool], wrong: list[str]) -> None:
    """Do all tasks but the reading of files, again and again, as the daemon does."""
    tasks = [task for task in periodic_tasks(Settings()) if task.name != "capture"]
    while not stopping():
        for task in tasks:
            try:
                task.run(memory, stopping)
            except Exception as error:  # noqa: BLE001 - told by the test
                wrong.append(f"{task.name}: {error!r}")
        time.sleep(0.01)


def test_callers_at_once_get_their_own_while_tasks_run(tmp_path: Path):
    wrong: list[str] = []
    over = threading.Event()
    with serving(tmp_path, limits=Limits(requests_per_minute=0)) as served:
        daemon = threading.Thread(target=do_tasks, args=(served.memory, over.is_set, wrong))
        callers = [
            threading.Thread(target=live, args=(served, caller, wrong)) for caller in range(CALLERS)
        ]
        for thread in (daemon, *callers):
            thread.start()
        for thread in callers:
            thread.join(120)
        over.set()
        daemon.join(60)
        assert not any(thread.is_alive() for thread in (daemon, *callers))
        assert wrong == []
        stats = served.memory.maintenance.stats()
        assert stats.messages == CALLERS * ROUNDS
        assert len(served.memory.sessions(limit=100)) == CALLERS
        served.memory.maintenance.embed_waiting()
        assert served.memory.maintenance.queues().waiting == 0
        assert served.memory.sources.vector_index().check() == []
