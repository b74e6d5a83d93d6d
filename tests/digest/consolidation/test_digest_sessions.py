"""Phase digest: idle sessions are digested, and one that fails stays staged."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from lore.digest.consolidation.cycle import run_cycle
from lore.digest.consolidation.phase import CycleContext
from lore.errors import BadReply, BudgetSpent, StoreError
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.store import consolidation, jobs, sessions
from lore.store.database import Database
from tests.digest.consolidation.samples import phase, state
from tests.digest.world import Reader, ScriptedSummarizer, fact
from tests.fakes import FakeEmbedder
from tests.store.samples import add_messages


def create_session(database: Database, name: str) -> str:
    """Store a session of one message, and return its id."""

    def work(db):
        now = database.now()
        n = sessions.ensure_session(db, name, agent="test", project_n=None, started_at=now)
        add_messages(db, n, f"{name} said something")
        db.run("UPDATE sessions SET last_message_at = :at WHERE n = :n",
               at=int(now.timestamp() * 1e6), n=n)  # fmt: skip
        return sessions.get_session(db, n).id

    return str(database.write(work))


def cycle_context(*digest: Callable[[str], Mapping[str, int]], **more) -> CycleContext:
    unwatched = {
        f"kind {place}": lambda id_, _watch, run=run: run(id_) for place, run in enumerate(digest)
    }
    return CycleContext(OfflineSummarizer(), unwatched, **more)


def waiting(database: Database) -> list[str]:
    with database.read() as db:
        found = consolidation.undigested_sessions(db, idle=timedelta(minutes=5), now=database.now())
    return [one.id for one in found]


def test_idle_sessions_are_digested_once_by_all_who_digest(database: Database, clock):
    session = create_session(database, "one")
    clock.advance(minutes=5)
    late = create_session(database, "late")
    seen: list[str] = []

    def distil(id_: str) -> dict[str, int]:
        seen.append(f"distil {id_}")
        return {"distillations": 2}

    def curate(id_: str) -> dict[str, int]:
        seen.append(f"curate {id_}")
        return {"fragments": 3}

    report = run_cycle(database, cycle_context(distil, curate))
    assert seen == [f"distil {session}", f"curate {session}"]
    assert phase(report, "digest").counts == {"sessions": 1, "distillations": 2, "fragments": 3}
    run_cycle(database, cycle_context(distil, curate))
    assert len(seen) == 2
    clock.advance(minutes=5)
    run_cycle(database, cycle_context(distil, curate))
    assert seen[2:] == [f"distil {late}", f"curate {late}"]


def test_a_failure_leaves_the_session_staged_and_is_reported(database: Database, clock):
    bad, good = create_session(database, "bad"), create_session(database, "good")
    clock.advance(minutes=5)

    def digest(id_: str) -> dict[str, int]:
        if id_ == bad:
            msg = "the provider refused"
            raise StoreError(msg)
        return {}

    report = run_cycle(database, cycle_context(digest))
    digested = phase(report, "digest")
    assert digested.counts == {"sessions": 1, "failed": 1}
    assert any(bad in line and "refused" in line for line in digested.told)
    assert waiting(database) == [bad]
    assert good not in waiting(database)
    assert phase(run_cycle(database, cycle_context(lambda _: {})), "digest").counts == {}
    clock.advance(minutes=1)
    assert phase(run_cycle(database, cycle_context(lambda _: {})), "digest").counts == {
        "sessions": 1
    }
    assert waiting(database) == []


def test_how_long_a_session_must_be_idle_is_given(database: Database, clock):
    create_session(database, "one")
    clock.advance(minutes=5)
    patient = cycle_context(lambda _: {}, idle_s=600)
    assert phase(run_cycle(database, patient), "digest").counts == {}
    clock.advance(minutes=5)
    assert phase(run_cycle(database, patient), "digest").counts == {"sessions": 1}


def test_a_session_that_failed_five_times_is_parked_until_a_person_retries_it(
    database: Database, clock
):
    bad = create_session(database, "bad")
    seen = []

    def digest(id_: str) -> dict[str, int]:
        seen.append(id_)
        msg = "no answer"
        raise StoreError(msg)

    for _ in range(7):
        clock.advance(hours=2)
        run_cycle(database, cycle_context(digest))
    assert seen == [bad] * 5
    with database.read() as db:
        [job] = jobs.open_jobs(db)
    assert (job.subject, job.state, job.last_error) == (bad, "parked", "no answer")
    database.write(lambda db: jobs.retry(db, None, now=clock()))
    run_cycle(database, cycle_context(lambda _: {}))
    with database.read() as db:
        assert jobs.open_jobs(db) == []


def test_a_bad_reply_is_paid_for_once(database: Database, clock):
    create_session(database, "bad")
    seen = []

    def digest(id_: str) -> dict[str, int]:
        seen.append(id_)
        msg = "no JSON"
        raise BadReply(msg)

    for _ in range(3):
        clock.advance(hours=2)
        run_cycle(database, cycle_context(digest))
    assert len(seen) == 1


def test_a_spent_budget_is_counted_against_no_session(database: Database, clock):
    create_session(database, "one")
    clock.advance(minutes=5)

    def digest(_: str) -> dict[str, int]:
        msg = "all spent"
        raise BudgetSpent(msg, until=clock() + timedelta(hours=1))

    run_cycle(database, cycle_context(digest))
    with database.read() as db:
        assert [(job.state, job.attempts) for job in jobs.open_jobs(db)] == [("pending", 0)]
    assert phase(run_cycle(database, cycle_context(lambda _: {})), "digest").counts == {
        "sessions": 1
    }


def test_a_session_that_breaks_the_program_holds_no_other_up_twice(database: Database, clock):
    bad, good = create_session(database, "bad"), create_session(database, "good")
    clock.advance(minutes=5)
    seen = []

    def digest(id_: str) -> dict[str, int]:
        seen.append(id_)
        if id_ == bad:
            raise ZeroDivisionError
        return {}

    assert phase(run_cycle(database, cycle_context(digest)), "digest").state == "failed"
    run_cycle(database, cycle_context(digest))
    assert seen[:2] == [bad, good]
    assert waiting(database) == [bad]


def test_after_three_failures_in_a_row_the_rest_is_left_for_later(database: Database, clock):
    for i in range(5):
        create_session(database, f"s{i}")
    clock.advance(minutes=5)
    seen = []

    def digest(id_: str) -> dict[str, int]:
        seen.append(id_)
        msg = "no answer"
        raise StoreError(msg)

    run_cycle(database, cycle_context(digest))
    assert len(seen) == 3
    assert len(waiting(database)) == 5


def test_digested_fragments_are_embedded_before_they_are_compared(database: Database, clock):
    create_session(database, "one")
    clock.advance(minutes=5)
    done = []
    run_cycle(database, cycle_context(lambda _: {}, embed_pending=lambda: done.append(1)))
    assert done == [1]


def test_a_dry_run_counts_the_sessions_and_digests_none(database: Database, clock):
    create_session(database, "one")
    clock.advance(minutes=5)
    seen: list[str] = []

    def digest(id_: str) -> dict[str, int]:
        seen.append(id_)
        return {}

    report = run_cycle(database, cycle_context(digest), dry_run=True)
    assert phase(report, "digest").counts == {"sessions": 1}
    assert not seen


def test_undo_removes_what_a_cycle_learned_for_good(tmp_path, clock):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(), now=clock) as memory:
        known = memory.store("We keep the queue in Postgres.", kind="decision", project="/code")
        said = (
            "We decided to keep the queue in Postgres because Redis is one more service.",
            "Done: WORKER_MAX_ATTEMPTS is 3 in settings.py.",
            "Never push to main without asking me first.",
            "Understood.",
            "And always run `make check` before every commit.",
        )
        memory.capture("s", [
            NewMessage("assistant" if place % 2 else "user", (Part("text", text),), clock())
            for place, text in enumerate(said)
        ], project="/code")  # fmt: skip
        clock.advance(minutes=6)
        before = state_of(memory)
        report = memory.digest.consolidate(phases=["digest"])
        assert phase(report, "digest").counts["fragments"] >= 1
        assert state_of(memory) != before
        memory.digest.undo_cycle()
        assert state_of(memory) == before
        clock.advance(hours=1)
        memory.digest.consolidate(phases=["digest"])
        assert state_of(memory) == before
        assert memory.read([known], reinforce=False)[0].fragment is not None


def test_undo_reverts_all_changes_of_a_digest(tmp_path, clock):
    queue, worker = "The queue of the shop is kept in Postgres", "The worker reads the queue"
    lint, pin = "Every commit is checked by ruff", "We install the packages with npm"
    known = {"/code/shop": (queue, worker, pin), "/code/site": (lint,)}
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(dimension=256), now=clock) as memory:
        for project, texts in known.items():
            capture_session(memory, project, project)
            memory.context.summarizer = ScriptedSummarizer(finding(texts))
            memory.digest([project])
        clock.advance(hours=1)
        capture_session(memory, "again", "/code/shop")
        clock.advance(minutes=6)
        memory.context.summarizer = ScriptedSummarizer(lambda _: [
            replace(fact(queue), edges=(("related_to", worker),)), fact(worker), fact(lint),
            fact("We now install the packages with pnpm", corrects=pin),
            fact("The queue of the shop is kept in Postgres on the second host"),
        ])  # fmt: skip
        before = whole_state(memory.database)
        memory.digest.consolidate(phases=["digest"])
        after = whole_state(memory.database)
        assert {name for name in before if before[name] != after[name]} == set(before)
        assert report_lines(memory.database) >= {"confirmed", "counted", "edge_added", "superseded"}
        clock.advance(minutes=1)
        assert memory.digest.undo_cycle().left == 0
        assert whole_state(memory.database) == before


def finding(texts: Sequence[str]) -> Reader:
    return lambda _: [fact(text) for text in texts]


def capture_session(memory: Memory, session: str, project: str) -> None:
    memory.capture(
        session, [NewMessage("user", (Part("text", "hello"),), memory.database.now())],
        project=project,
    )  # fmt: skip


def whole_state(database: Database) -> dict[str, Any]:
    with database.read() as db:
        confirmed = db.rows("SELECT * FROM confirmations ORDER BY fragment_n, project_n")
        strong = db.rows("SELECT n, access_count, boost, boosted_at FROM fragments ORDER BY n")
    return {**state(database), "confirmations": confirmed, "strengths": strong}


def report_lines(database: Database) -> set[str]:
    """Return what sorts of steps were written down."""
    with database.read() as db:
        return {verb for (verb,) in db.rows("SELECT DISTINCT verb FROM steps")}


def state_of(memory: Memory) -> list[tuple[str, str, float, tuple[str, ...]]]:
    told = io.BytesIO()
    memory.sessions.export(told)
    lines = map(json.loads, told.getvalue().splitlines())
    found = [line for line in lines if line.get("record") == "fragment"]
    return [(f["id"], f["content"], f["confidence"], tuple(f["source_messages"])) for f in found]


def test_undo_reverts_a_fragment_learned_and_replaced_in_one_cycle(tmp_path, clock):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(), now=clock) as memory:
        for place, version in enumerate(("9", "10")):
            said = f"From now on we always use pnpm {version} in the harbor repository, never npm."
            at = clock() - timedelta(days=2 - place)
            memory.capture(f"s{place}", [NewMessage("user", (Part("text", said),), at)])
        memory.digest.consolidate()
        memory.digest.undo_cycle()
        assert state_of(memory) == []


def test_undo_leaves_fragments_that_others_depend_on(tmp_path, clock):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(), now=clock) as memory:
        said = "From now on we always use pnpm in the harbor repository, never npm."
        memory.capture("s", [NewMessage("user", (Part("text", said),), clock())])
        clock.advance(minutes=6)
        memory.digest.consolidate()
        [(learned, *_)] = state_of(memory)
        child = memory.store("pnpm 10 it is.", parent_id=learned)
        old = memory.store("We use npm.")
        memory.knowledge.supersede(old, learned)
        undone = memory.digest.undo_cycle()
        assert undone.left == 1
        assert {id_ for id_, *_ in state_of(memory)} == {learned, child, old}
