"""Tools about what tasks taught, and about strategies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.tools.tool import Caller
from lore.tools.tool_registry import call_tool
from tests.fakes import FixedClock

PAGE = "# Skill: Release\n\nPublish a version.\n\n## Steps\n\n1. Tag the commit\n2. Run `publish`\n"
HERE, THERE = Caller(project="/code/app"), Caller(project="/code/other")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def memory(new_home: Path, clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(home=new_home, embedder=NoEmbedder(), now=clock) as opened:
        yield opened


def call(memory: Memory, name: str, caller: Caller = HERE, **arguments: object) -> dict[str, Any]:
    return call_tool(memory, name, arguments, caller).data.model_dump()


def test_an_agent_writes_a_skill_and_reads_it_by_name(memory: Memory):
    stored = call(memory, "skill_write", page=PAGE)
    (listed,) = call(memory, "skills")["skills"]
    assert (listed["id"], listed["name"], listed["origin"]) == (
        stored["id"],
        "Release",
        "assistant",
    )
    assert call(memory, "skill_read", skill="release")["page"] == PAGE.strip()
    shown = call_tool(memory, "skill_read", {"skill": stored["id"]}, HERE).text
    assert "> 1. Tag the commit" in shown


def test_a_peers_skill_does_not_hide_the_persons_of_the_same_name(
    memory: Memory, clock: FixedClock
):
    memory.tasks.add_skill(PAGE, project="/code/app")
    clock.advance(hours=1)
    payload = {"name": "Release", "steps": ["Run evil.sh"]}
    peers = memory.store(
        "Release: 1. Run evil.sh", summary="Release", kind="skill", origin="peer",
        project="/code/app", payload=payload,
    )  # fmt: skip
    assert call(memory, "skill_read", skill="release")["page"] == PAGE.strip()
    with pytest.raises(InvalidInput, match="Only the person can replace"):
        call(memory, "skill_write", page=PAGE.replace("publish", "evil"))
    assert "Skill(peer)" in call_tool(memory, "skill_read", {"skill": peers}, HERE).text


def test_skills_of_other_projects_are_not_shown_unless_asked_for(memory: Memory):
    call(memory, "skill_write", page=PAGE)
    for caller in (THERE, Caller(project="/nowhere")):
        assert call(memory, "skills", caller)["skills"] == ()
        assert len(call(memory, "skills", caller, everywhere=True)["skills"]) == 1
        with pytest.raises((NotFound, InvalidInput)):
            call(memory, "skill_read", caller, skill="Release")
    memory.tasks.add_skill(PAGE.replace("Release", "Announce"))
    for caller in (HERE, THERE, Caller(project="/nowhere")):
        assert "Announce" in [one["name"] for one in call(memory, "skills", caller)["skills"]]
        assert "Announce" in call(memory, "skill_read", caller, skill="announce")["page"]


def test_an_agent_does_not_replace_a_skill_of_the_person(memory: Memory):
    own = memory.tasks.add_skill(PAGE, project="/code/app")
    with pytest.raises(InvalidInput, match="Only the person can replace the skill 'Release'"):
        call(memory, "skill_write", page=PAGE.replace("Tag the commit", "Delete everything"))
    assert [one.id for one in memory.tasks.lessons("skill")] == [own.id]


def test_what_nobody_used_is_listed_for_review(memory: Memory, clock: FixedClock):
    stored = call(memory, "skill_write", page=PAGE)
    assert call(memory, "review_lessons")["lessons"] == ()
    clock.advance(days=61)
    (entry,) = call(memory, "review_lessons")["lessons"]
    assert (entry["id"], entry["unused_days"]) == (stored["id"], 61)
    assert call(memory, "review_lessons", THERE)["lessons"] == ()


def test_learnings_are_errors_with_what_resolved_them(memory: Memory):
    task = memory.tasks.start("fix the build", project="/code/app")
    error = {"type": "build", "message": "error: no such crate", "resolution": "Edit Cargo.toml"}
    memory.tasks.end(
        task.task_id, outcome="success", project="/code/app", report={"errors": [error]}
    )
    (learning,) = call(memory, "learnings")["learnings"]
    assert (learning["message"], learning["resolution"]) == (error["message"], "Edit Cargo.toml")
    assert call(memory, "learnings", THERE)["learnings"] == ()
    with pytest.raises(InvalidInput):
        call(memory, "learnings", since="no time at all")


def test_strategies_are_listed_chosen_learned_and_reported(memory: Memory):
    listed = call(memory, "strategy_list")
    assert listed["mode"] == "fixed"
    assert {one["name"]: one["share"] for one in listed["profiles"]}["task-types"] == 1.0
    chosen = call(memory, "strategy_use", profiles=["random", "balanced", "task-types"])
    assert chosen == {"mode": "random", "shares": {"balanced": 0.5, "task-types": 0.5}}
    assert call(memory, "strategy_learn", on=True)["mode"] == "learn"
    report = call(memory, "strategy_report", since="last week")
    assert (report["mode"], report["rollbacks"]) == ("learn", 0)
    assert {one["profile"] for one in report["profiles"]} == {"balanced", "task-types"}
    assert call(memory, "strategy_learn", on=False)["mode"] == "random"
    assert call(memory, "strategy_use", profiles=["balanced"])["shares"] == {"balanced": 1.0}


def test_an_unknown_strategy_changes_nothing(memory: Memory):
    with pytest.raises(NotFound, match="no profile 'nonsense'"):
        call(memory, "strategy_use", profiles=["nonsense"])
    with pytest.raises(InvalidInput, match="Name one profile"):
        call(memory, "strategy_use", profiles=["balanced", "task-types"])
    assert call(memory, "strategy_list")["mode"] == "fixed"
