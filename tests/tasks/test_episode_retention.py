from __future__ import annotations

import pytest

from lore.errors import InvalidInput
from lore.memory import Memory
from lore.records import RetentionResult
from tests.fakes import FixedClock
from tests.tasks.sessions import do_task, edited, ran, stored

STEPS = [
    *((("Read", f"/code/app/f{i}.py", "text")) for i in range(30)),
    ran("ls -la"),
    ran("just build", "!Exit code 1\nbroken"),
    edited("/code/app/a.py"),
    ran("just test", "all passed"),
]


def episode(memory: Memory, id_: str) -> dict[str, object]:
    return stored(memory, id_).payload


def test_an_episode_is_whole_for_a_week_and_then_summarized(memory: Memory, clock: FixedClock):
    id_ = do_task(memory, "s1", "Build the thing", STEPS)
    assert memory.tasks.apply_retention() == RetentionResult()
    clock.advance(days=8)
    assert memory.tasks.apply_retention(dry_run=True).summarized == 1
    assert len(episode(memory, id_)["actions"]) == 34  # type: ignore[arg-type]
    assert memory.tasks.apply_retention() == RetentionResult(summarized=1)
    left = episode(memory, id_)["actions"]
    assert [one["target"] for one in left] == ["just build", "/code/app/a.py", "just test"]  # type: ignore[attr-defined]
    assert episode(memory, id_)["detail"] == "summary"
    assert memory.tasks.apply_retention() == RetentionResult()


def test_a_session_that_goes_on_has_a_whole_episode_again(memory: Memory, clock: FixedClock):
    id_ = do_task(memory, "s1", "Build the thing", STEPS)
    clock.advance(days=8)
    memory.tasks.apply_retention()
    do_task(memory, "s1", "Build the thing", [*STEPS, ran("just lint", "fine")], reply="Linted.")
    assert "detail" not in episode(memory, id_)


def test_old_episodes_are_archived_and_found_on_request(memory: Memory, clock: FixedClock):
    do_task(memory, "s1", "Rotate the signing key of the uploader", STEPS)
    clock.advance(days=31)
    do_task(memory, "s2", "Draw the logo anew", STEPS)
    assert memory.recall("signing key of the uploader", kind="episode").hits
    assert memory.tasks.apply_retention() == RetentionResult(archived=1)
    assert not memory.recall("signing key of the uploader", kind="episode").hits
    assert [one.summary for one in memory.tasks.archived("signing key")] == [
        "Rotate the signing key of the uploader"
    ]
    assert memory.tasks.archived("logo") == []
    assert len(memory.tasks.archived()) == 1
    assert memory.sessions.messages("s1")


def test_an_episode_that_a_pattern_refers_to_is_not_archived(memory: Memory, clock: FixedClock):
    id_ = do_task(memory, "s1", "Rotate the signing key of the uploader", STEPS)
    pattern = memory.store("Keys are rotated with just rotate", kind="pattern")
    memory.knowledge.link(pattern, id_, "derived_from")
    clock.advance(days=31)
    assert memory.tasks.apply_retention() == RetentionResult(summarized=1, referenced=1)
    assert memory.tasks.archived() == []


def test_what_a_caller_reported_is_never_summarized(memory: Memory, clock: FixedClock):
    actions = [{"t": 0, "action": "Read", "target": "x"}]
    id_ = memory.store("A report", kind="episode", payload={"goal": "g", "actions": actions})
    clock.advance(days=8)
    assert memory.tasks.apply_retention() == RetentionResult()
    assert episode(memory, id_)["actions"] == actions


def test_a_cycle_archives_and_its_undo_brings_back(memory: Memory, clock: FixedClock):
    do_task(memory, "s1", "Rotate the signing key of the uploader", STEPS)
    clock.advance(days=31)
    report = memory.digest.consolidate(phases=["learn"])
    assert report.phases[0].counts["archived"] == 1
    assert memory.tasks.archived()
    memory.digest.undo_cycle()
    assert memory.tasks.archived() == []


def test_an_archived_episode_survives_a_round_trip(memory: Memory, clock: FixedClock, tmp_path):
    do_task(memory, "s1", "Rotate the signing key of the uploader", STEPS)
    clock.advance(days=31)
    memory.tasks.apply_retention()
    memory.sessions.export(tmp_path / "export.jsonl")
    lines = (tmp_path / "export.jsonl").read_bytes().splitlines()
    assert any(b'"archived_at":1' in line for line in lines)


def test_a_nonsensical_age_is_refused(memory: Memory):
    with pytest.raises(InvalidInput, match="not a time"):
        memory.tasks.learnings(since="24 bananas")
