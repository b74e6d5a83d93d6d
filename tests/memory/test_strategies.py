"""The experiment over profiles in a real memory: assignment, log, learning and report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.daemon.periodic_tasks import TaskResult, periodic_tasks
from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.records import NewMessage, Part, TuningCandidate, TuningCase
from lore.settings import Settings
from lore.tasks import profiles
from lore.tasks.bandit import RAILS
from tests.fakes import FixedClock
from tests.recall.talk import say


@pytest.fixture
def memory(new_home: Path, clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(home=new_home, embedder=NoEmbedder(), now=clock) as opened:
        yield opened


def _finish_session(memory: Memory, name: str, *, good: str | None = None, succeeded: bool) -> str:
    """Hold a session in which the person is content or not, and return its profile.

    With `good` it is content if the session has this profile.
    """
    at = memory.database.now()
    ask = NewMessage("user", (Part("text", "please fix the login page now"),), at)
    memory.capture(name, [ask])
    profile = memory.strategies.profile_for(name).name
    if good is not None:
        succeeded = profile == good
    word = "perfect, that works, thanks" if succeeded else "this does not work, it is still broken"
    edit = Part("tool_call", '{"file_path": "/app/login.py"}', name="Edit", call_id="1")
    messages = [
        NewMessage("assistant", (edit,), at),
        NewMessage("tool", (Part("tool_result", "ok", call_id="1"),), at),
        NewMessage("assistant", (Part("text", "The form now posts to the new address."),), at),
        NewMessage("user", (Part("text", word),), at),
    ]
    memory.capture(name, messages)
    memory.sessions.episode(name)
    return profile


def test_all_sessions_have_the_default_profile_at_first(memory: Memory) -> None:
    say(memory, "s", "hello")
    assert memory.strategies.profile_for("s").name == profiles.DEFAULT
    assert memory.strategies.profile_for("not stored yet").name == profiles.DEFAULT
    state, shares = memory.strategies.state()
    assert (state.mode, shares) == ("fixed", {profiles.DEFAULT: 1.0})


def test_a_task_uses_the_profile_of_its_session_and_logs_what_it_compared(memory: Memory) -> None:
    from lore.store import candidate_rows

    memory.strategies.use("semantic-heavy")
    say(memory, "s", "hello")
    id_ = memory.store("The login page posts to /session", project="/code/app")
    task = memory.tasks.start("fix the login page", session="s", project="/code/app")
    assert memory.tasks.show(task.task_id)[0].profile == "semantic-heavy"
    with memory.database.read() as db:
        (entry,) = candidate_rows.recent_retrievals(db, limit=1)
    assert (entry.verb, entry.profile, entry.task_type) == (
        "before_task", "semantic-heavy", "debugging",
    )  # fmt: skip
    assert id_ in entry.candidates
    assert memory.strategies.report()[0].sessions == 1


def test_another_profile_is_used_for_new_sessions_only(memory: Memory) -> None:
    say(memory, "old", "hello")
    memory.strategies.profile_for("old")
    memory.database.write(lambda _db: None)
    memory.strategies.use("balanced")
    assert memory.strategies.profile_for("new").name == "balanced"
    assert memory.strategies.profile_for("old").name == profiles.DEFAULT
    with pytest.raises(NotFound, match="no profile 'nothing'"):
        memory.strategies.use("nothing")


def test_sessions_are_assigned_at_random_and_keep_their_profile(memory: Memory) -> None:
    shares = memory.strategies.use_random(["balanced", "task-types"])
    assert shares == {"balanced": 0.5, "task-types": 0.5}
    names = [f"session {n}" for n in range(40)]
    chosen = [memory.strategies.profile_for(name).name for name in names]
    assert {"balanced", "task-types"} == set(chosen)
    for name in names:
        say(memory, name, "hello")
    assert [memory.strategies.profile_for(name).name for name in names] == chosen
    with pytest.raises(InvalidInput, match="at least two"):
        memory.strategies.use_random(["balanced"])


def test_the_report_has_outcomes_costs_and_intervals(memory: Memory, clock: FixedClock) -> None:
    for n in range(4):
        _finish_session(memory, f"session {n}", succeeded=n > 0)
    task = memory.tasks.start("fix the login page", session="session 1")
    memory.tasks.end(task.task_id, outcome="success", session="session 1")
    clock.advance(hours=2)
    (row,) = memory.strategies.report()
    assert row.sessions == 4
    assert row.completion is not None
    assert row.completion[0::3] == (0.75, 4)
    assert row.satisfaction is not None
    assert row.satisfaction.value == 0.75
    assert row.latency_ms is not None
    assert row.latency_ms.value > 0
    assert row.tokens is not None
    assert row.retrievals == 1
    assert memory.strategies.report(since="2099-01-01")[0].sessions == 0


def test_learning_shifts_shares_by_outcomes_within_the_guard_rails(
    memory: Memory, clock: FixedClock
) -> None:
    memory.strategies.use_random(["balanced", "task-types", "semantic-heavy"])
    memory.strategies.learn(on=True)
    before = memory.strategies.state()[1]
    for day in range(6):
        for n in range(12):
            _finish_session(memory, f"session {day} {n}", good="balanced", succeeded=False)
        clock.advance(days=1)
        memory.strategies.advance()
        after = memory.strategies.state()[1]
        assert min(after.values()) >= RAILS.floor - 1e-9
        assert max(abs(after[name] - before[name]) for name in after) <= RAILS.daily_shift + 1e-9
        before = after
    assert before["balanced"] == max(before.values())
    assert before["balanced"] > 0.5
    assert len({one.day for one in memory.strategies.days()}) >= 6
    memory.strategies.learn(on=False)
    state, kept = memory.strategies.state()
    assert (state.mode, kept) == ("random", before)


def test_the_daemon_shifts_shares_once_a_day_without_a_report(
    memory: Memory, clock: FixedClock
) -> None:
    (task,) = [one for one in periodic_tasks(Settings()) if one.name == "strategies"]
    memory.strategies.use_random(["balanced", "task-types"])
    first = memory.strategies.state()[1]
    for n in range(30):
        _finish_session(memory, f"session {n}", good="balanced", succeeded=False)
    clock.advance(days=1)
    assert task.run(memory, lambda: False) == TaskResult()  # learning is off
    memory.strategies.learn(on=True)
    assert task.run(memory, lambda: False) == TaskResult()  # its first day is not over
    assert memory.strategies.state()[1] == first
    clock.advance(days=1)
    assert task.run(memory, lambda: False) == TaskResult({"shares shifted": 1})
    shifted = memory.strategies.state()[1]
    assert shifted["balanced"] > first["balanced"]
    clock.advance(hours=1)
    assert task.run(memory, lambda: False) == TaskResult()
    assert memory.strategies.state()[1] == shifted


def test_an_outcome_counts_once(memory: Memory, clock: FixedClock) -> None:
    memory.strategies.use_random(["balanced", "task-types"])
    profile = _finish_session(memory, "s", succeeded=True)
    memory.database.write(lambda _db: None)
    clock.advance(hours=2)
    for _ in range(3):
        memory.strategies.advance()
    days = {one.profile: one for one in memory.strategies.days()}
    assert days[profile].successes == 1
    assert sum(one.failures for one in days.values()) == 0


def test_a_stored_profile_can_be_used_and_deleted(memory: Memory) -> None:
    values = {"name": "mine", "weights": {"semantic": 1}, "settings": {"depth": 3}}
    assert memory.strategies.save(values).settings.depth == 3
    memory.strategies.use("mine")
    assert memory.strategies.profile_for("s").weights["review"]["semantic"] == 1
    with pytest.raises(NotFound, match="Sessions get"):
        memory.strategies.delete("mine")
    memory.strategies.use("balanced")
    memory.strategies.delete("mine")
    assert "mine" not in memory.strategies.profiles()
    with pytest.raises(InvalidInput, match="ships"):
        memory.strategies.save({"name": "balanced", "weights": {"semantic": 1}})
    with pytest.raises(NotFound):
        memory.strategies.delete("mine")


def test_every_recall_is_logged_with_its_strategy_and_tokens(memory: Memory) -> None:
    from lore.store import candidate_rows

    memory.store("Deploys are blue green")
    memory.recall("deploys")
    memory.search("deploys")
    memory.database.write(lambda _db: None)
    with memory.database.read() as db:
        search, recall = candidate_rows.recent_retrievals(db, limit=2)
    assert (recall.verb, recall.profile) == ("recall", "learned")
    assert recall.tokens > 0
    assert (search.verb, search.profile) == ("search", "fragments")


def test_a_forgotten_session_takes_its_profile_and_log_with_it(memory: Memory) -> None:
    say(memory, "s", "hello about okapis")
    memory.strategies.profile_for("s")
    memory.tasks.start("feed the okapis", session="s")
    memory.forget(session="s")
    assert all(not row.sessions and not row.retrievals for row in memory.strategies.report())


def test_tuning_over_the_log_stores_a_profile_and_applies_nothing(
    memory: Memory, clock: FixedClock
) -> None:
    with pytest.raises(InvalidInput, match="There are 0 tasks"):
        memory.strategies.tune()
    names = ("login", "report", "search", "export", "upload")
    for name in names:
        memory.store(f"The {name} page is in src/{name}_page.py", project="/code/app")
    for n in range(35):
        name = names[n % len(names)]
        task = memory.tasks.start(f"change the {name} page", project="/code/app", name=f"t{n}")
        report = {"files_changed": [f"src/{name}_page.py"]}
        memory.tasks.end(task.task_id, outcome="success", report=report)
        clock.advance(hours=1)
    gains = {75: ("file a.py",)}
    candidate = TuningCandidate("x", "episodic", True, 0.5, 0.5, 0.8, "a.py", 5, gains)
    recorded = TuningCase(clock(), "review", (candidate,), source="recorded")
    result = memory.strategies.tune(project="/code/app", cases=[recorded], name="mine")
    assert result.sources == {"log": 35, "recorded": 1}
    assert result.after.fitness >= result.before.fitness
    assert memory.strategies.profiles()["mine"].source == "tuned"
    assert memory.strategies.state()[0].profile == profiles.DEFAULT
