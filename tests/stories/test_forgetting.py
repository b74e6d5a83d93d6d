"""Whole lives of a memory, with a clock that is moved by hand: learning, doubting, forgetting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore.clock import new_id
from lore.digest.consolidation.contradict import open_conflicts
from lore.digest.consolidation.cycle import phase_names, run_cycle, undo_cycle
from lore.digest.consolidation.phase import CycleContext
from lore.errors import StoreError
from lore.memory import Memory
from lore.records import CycleReport, Fragment, NewMessage, Part
from lore.settings import Settings
from lore.store import consolidation, fragments, graph, items
from lore.store.database import open_database
from tests.digest.consolidation.samples import (
    OFFLINE,
    ListingSummarizer,
    full_world,
    phase,
    soundness,
    state,
)
from tests.fakes import FakeEmbedder, FixedClock

ROOT = Path(__file__).parents[2]


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    config = Settings(home=tmp_path / "home")
    with Memory.open(config=config, embedder=FakeEmbedder(dimension=128), now=clock) as opened:
        yield opened


def means(memory: Memory, *digest: Any) -> CycleContext:
    return CycleContext(
        ListingSummarizer(),
        {f"kind {place}": one for place, one in enumerate(digest)},
        embed_pending=memory.maintenance.embed_waiting,
        forget_vectors=memory.sources.forget_vectors,
    )


def sleep(memory: Memory, *digest: Any) -> CycleReport:
    """Run a cycle, of which no phase may fail."""
    memory.maintenance.embed_waiting()
    report = run_cycle(memory.database, means(memory, *digest))
    assert [one.reason for one in report.phases if one.state == "failed"] == []
    assert soundness(memory.database) == []
    return report


def found(memory: Memory, question: str) -> list[str]:
    """Return what a search and a recall show, without strengthening it."""
    shown = [hit.text for hit in memory.search(question, log=False)]
    return shown + [hit.text for hit in memory.recall(question, log=False)]


def get(memory: Memory, id_: str) -> Fragment:
    with memory.database.read() as db:
        return fragments.get(db, items.resolve(db, id_).n)


def read(memory: Memory, clock: FixedClock, id_: str) -> None:
    memory.database.write(lambda db: fragments.reinforce_all(db, [id_], now=clock()))


def days(clock: FixedClock, memory: Memory, count: int, step: int = 3) -> None:
    """Let days pass with a cycle every few of them."""
    for _ in range(0, count, step):
        clock.advance(days=step)
        sleep(memory)


def test_six_months_of_use_in_a_minute(memory: Memory, clock: FixedClock):
    # Learned: what matters, what is in daily use, and a trifle.
    root = memory.store("The orders service of the shop", importance=0.5)
    rule = memory.store("Never deploy orders on Fridays", importance=0.9, parent_id=root)
    used = memory.store("The orders queue is drained by drain.sh", importance=0.2, parent_id=root)
    trifle = memory.store("Somebody liked the zebra sticker", importance=0.2, parent_id=root)
    limit = memory.store("The orders service takes 100 requests", importance=0.5, parent_id=root)
    sleep(memory)
    assert any("zebra" in text for text in found(memory, "zebra sticker"))

    # Confirmed by use: what is read every few days stays, what nobody reads fades.
    for _ in range(12):
        days(clock, memory, 3)
        read(memory, clock, used)
    assert any("drain.sh" in text for text in found(memory, "drain orders queue"))
    assert not any("zebra" in text for text in found(memory, "zebra sticker"))

    # Contradicted: the newer says so, and the older is not shown any more.
    memory.store("The orders service now takes 300 requests", importance=0.5, parent_id=root)
    sleep(memory)
    shown = found(memory, "how many requests does the orders service take")
    assert any("300" in text for text in shown)
    assert not any("takes 100" in text for text in shown)
    assert get(memory, limit).superseded_by is not None

    # Forgotten: the trifle is hidden, then gone, and nobody can bring it back.
    days(clock, memory, 60)
    with memory.database.read() as db:
        assert items.find_number(db, trifle) is None

    # Learned again: it is new, and shown again.
    again = memory.store("Somebody liked the zebra sticker", importance=0.2, parent_id=root)
    sleep(memory)
    assert any("zebra" in text for text in found(memory, "zebra sticker"))
    days(clock, memory, 60)
    assert get(memory, rule).content == "Never deploy orders on Fridays"
    assert any("Fridays" in text for text in found(memory, "deploy orders on Fridays"))
    assert again != trifle


def test_the_low_one_is_really_deleted_and_the_high_one_never_is(memory: Memory, clock: FixedClock):
    root = memory.store("The office", importance=0.5)
    low = memory.store("The axolotl poster hangs askew", importance=0.1, parent_id=root)
    high = memory.store("The fire exit is behind the lift", importance=0.9, parent_id=root)
    days(clock, memory, 92, step=23)
    with memory.database.read() as db:
        assert items.find_number(db, low) is None
    memory.database.checkpoint()
    for path in (memory.settings.home).rglob("*"):
        if path.is_file():
            assert b"axolotl" not in path.read_bytes(), path
    for _ in range(20):
        clock.advance(days=365)
        sleep(memory)
    assert get(memory, high).relevance >= 0.05
    assert any("fire exit" in text for text in found(memory, "fire exit behind the lift"))


def test_a_decision_that_was_changed_twice_never_comes_back(memory: Memory, clock: FixedClock):
    root = memory.store("The orders database of the shop", importance=0.9)
    first = memory.store("The orders database runs on MySQL", importance=0.9, parent_id=root)
    days(clock, memory, 3)
    second = memory.store(
        "The orders database moved from MySQL to Postgres", importance=0.9, parent_id=root
    )
    days(clock, memory, 3)
    memory.store(
        "The orders database moved from Postgres to CockroachDB", importance=0.9, parent_id=root
    )
    question = "what does the orders database run on"
    for _ in range(40):
        days(clock, memory, 9, step=9)
        shown = found(memory, question)
        assert any("CockroachDB" in text for text in shown)
        assert not any("runs on MySQL" in text for text in shown)
        assert not any("MySQL to Postgres" in text for text in shown)
    assert get(memory, first).superseded_by == second
    with memory.database.read() as db:
        assert open_conflicts(db) == []


def test_a_decision_that_stands_as_a_root_is_replaced_by_what_is_learned_below_it(
    memory: Memory, clock: FixedClock
):
    made: dict[str, Any] = {"origin": "assistant", "importance": 0.9}
    root = learn(memory, "The orders database runs on MySQL", **made)
    details = [learn(memory, text, parent=root, **made) for text in
               ("Orders are kept for 90 days", "The orders table has an index")]  # fmt: skip
    days(clock, memory, 3)
    middle = learn(memory, "The orders database moved from MySQL to Postgres", parent=root, **made)
    days(clock, memory, 3)
    last = learn(
        memory, "The orders database moved from Postgres to CockroachDB", parent=middle, **made
    )
    for _ in range(10):
        days(clock, memory, 9, step=9)
        shown = found(memory, "what does the orders database run on")
        assert any("CockroachDB" in text for text in shown)
        assert not any("runs on MySQL" in text or "to Postgres" in text for text in shown)
    assert (get(memory, last).depth, get(memory, last).parent_id) == (0, None)
    assert {get(memory, id_).parent_id for id_ in details} == {last}


def test_a_stale_value_does_not_live_on_in_an_overview(memory: Memory, clock: FixedClock):
    told = NewMessage("assistant", (Part("text", "The gateway of the shop"),), clock())
    (source,) = memory.capture("talk", [told])
    made: dict[str, Any] = {"origin": "assistant", "source_messages": (source,)}
    root = learn(memory, "The gateway of the shop", **made)
    learn(memory, "The gateway of the shop listens on port 8080", parent=root, **made)
    learn(memory, "The gateway of the shop is written in Rust", parent=root, **made)
    sleep(memory)
    assert "8080" in get(memory, root).content
    clock.advance(days=1)
    learn(memory, "The gateway of the shop now listens on port 9090", parent=root, **made)
    sleep(memory)
    assert "8080" not in get(memory, root).content
    assert not any("8080" in text for text in found(memory, "gateway port"))


def learn(memory: Memory, text: str, parent: str = "", **fields: Any) -> str:
    """Store a fragment as the digest does: made from messages, by nobody's hand."""

    def work(db: Any) -> str:
        now = memory.database.now()
        above = items.resolve(db, parent).n if parent else None
        new = fragments.NewFragment(
            id=new_id(now), content=text, summary=text, kind="fact", created_at=now,
            depth=1 if above else 0, **fields,
        )  # fmt: skip
        n = fragments.add(db, new, now=now)
        if above:
            graph.put_edge(db, above, n, "hierarchical", now=now)
        return new.id

    return memory.database.write(work)


def test_roots_are_merged_without_losing_a_child(memory: Memory, clock: FixedClock):
    one = memory.store("The invoice worker sends bills to customers")
    other = memory.store("The invoice worker sends bills to customers daily")
    details = ["The worker is written in Go", "Bills are PDF files", "A bill has a due day"]
    for i, text in enumerate(details):
        memory.store(text, parent_id=(one, other)[i % 2])
    below = memory.store("PDF files are signed", parent_id=other)
    report = sleep(memory)
    assert phase(report, "merge").counts["merged"] == 1
    (survivor,) = [id_ for id_ in (one, other) if get(memory, id_).superseded_by is None]
    outline = memory.search.explore(survivor)[0]
    assert {get(memory, one.title.id).content for one in outline.below} == {
        *details, get(memory, below).content,
    }  # fmt: skip


def test_a_failed_extraction_loses_nothing(memory: Memory, clock: FixedClock):
    texts = ["We keep orders in Postgres", "Never deploy on Fridays"]
    memory.capture("talk", [NewMessage("user", (Part("text", t),), clock()) for t in texts])
    clock.advance(minutes=6)
    tried: list[str] = []

    def extract(session: str, _watch: object) -> dict[str, int]:
        tried.append(session)
        if len(tried) < 4:
            msg = "The provider gave no answer."
            raise StoreError(msg)
        return {"fragments": 2}

    for _ in range(3):
        report = sleep(memory, extract)
        assert phase(report, "digest").counts == {"failed": 1}
        assert "stays staged" in phase(report, "digest").told[0]
        clock.advance(hours=2)
    assert phase(sleep(memory, extract), "digest").counts == {"sessions": 1, "fragments": 2}
    assert phase(sleep(memory, extract), "digest").counts == {}
    shown = [hit.text for hit in memory.recall("orders in Postgres")]
    assert any("Postgres" in text for text in shown)


KILLED = """
import os, signal, sys
from pathlib import Path
from lore.digest.consolidation.cycle import run_cycle
from lore.store.database import open_database
from tests.digest.consolidation.samples import OFFLINE
from tests.fakes import FixedClock

def dies(name, done, total):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

database = open_database(Path(sys.argv[1]), busy_timeout_s=5, backups=None, now=FixedClock())
run_cycle(database, OFFLINE, progress=dies)
"""


@pytest.mark.parametrize("name", phase_names())
def test_a_restart_in_every_phase_goes_on_and_can_be_taken_back(tmp_path: Path, name: str):
    path = tmp_path / "memory.db"
    database = open_database(path, busy_timeout_s=5, backups=None, now=FixedClock())
    full_world(database)
    before = state(database)
    database.close()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), name],
        cwd=ROOT, check=False, capture_output=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2_000:]
    database = open_database(path, busy_timeout_s=5, backups=None, now=FixedClock())
    report = run_cycle(database, OFFLINE)
    assert [one.phase for one in report.phases] == list(phase_names())
    assert {one.state for one in report.phases} == {"done", "skipped"}
    assert phase(report, "merge").counts["merged"] == 1
    assert phase(report, "prune_fragments").counts["pruned"] == 1
    with database.read() as db:
        assert len(consolidation.recent_reports(db, limit=3)) == 1
    assert soundness(database) == []
    undo_cycle(database)
    assert state(database) == before
    database.close()
