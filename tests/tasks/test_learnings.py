from __future__ import annotations

import pytest

from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.store import items, task_memories
from lore.store.sql_connection import Connection
from tests.fakes import FixedClock
from tests.tasks.sessions import do_task, edited, ran, stored

STEPS = [
    ran("cargo test", "!error: could not find `Cargo.toml` in `/code/app`"),
    ran("cd core && cargo test", "test result: ok"),
    ("Edit", "/code/app/a.py", "!String to replace not found in file."),
    edited("/code/app/a.py"),
]


def test_resolved_errors_are_learnings_of_their_day(memory: Memory, clock: FixedClock):
    id_ = do_task(memory, "s1", "Fix the core", STEPS)
    (one,) = memory.tasks.learnings()
    assert one.message == "error: could not find `Cargo.toml` in `/code/app`"
    assert one.resolution == "cd core && cargo test"
    assert (one.episode_id, one.at.date()) == (id_, clock().date())
    assert len(memory.tasks.learnings(everything=True)) == 2
    clock.advance(days=8)
    assert memory.tasks.learnings(since="7d") == []
    assert len(memory.tasks.learnings(since="2w", project="/code/app")) == 1


def use(memory: Memory, id_: str, *outcomes: str) -> None:
    """Let tasks use a memory and end with these outcomes."""

    def work(db: Connection) -> None:
        n = items.resolve(db, id_).n
        for place, outcome in enumerate(outcomes):
            values = dict.fromkeys(("name", "agent", "phase", "action", "profile", "reason"), "")
            task_n = db.insert_numbered(
                "tasks", id=f"{id_}-{place}", goal="g", type="debugging", state="done",
                outcome=outcome, started_at=0, **values,
            )  # fmt: skip
            db.insert(
                "task_memories", task_n=task_n, item_n=n, given_as="pattern", tokens=9, used=1,
                at=0,
            )  # fmt: skip
        task_memories.count_use(db, [n], now=memory.database.now())

    memory.database.write(work)


def test_unused_and_harmful_patterns_are_listed_for_review(memory: Memory, clock: FixedClock):
    unused = memory.store("Always rebase first", kind="pattern")
    used = memory.store("Run just gen after a change", kind="pattern")
    harmful = memory.store("Delete the cache first", kind="anti_pattern")
    memory.store("A plain fact", kind="fact")
    assert memory.tasks.review() == []
    clock.advance(days=50)
    use(memory, used, "success", "failure")
    use(memory, harmful, "failure", "failure")
    clock.advance(days=11)
    entries = memory.tasks.review()
    assert [(entry.fragment.id, entry.reason) for entry in entries] == [
        (harmful, "used and followed by failure 2 times"),
        (unused, "not used for 61 days"),
    ]


def test_a_use_counts_and_is_dated(memory: Memory):
    id_ = memory.store("Run just gen", kind="pattern", payload={"pattern": "x", "usage_count": 4})
    use(memory, id_, "success")
    fragment = stored(memory, id_)
    assert fragment.payload["usage_count"] == 5
    assert fragment.payload["last_used"] == memory.database.now().isoformat()


PAGE = """\
# Skill: Release

Publish a version.

## Steps

1. Tag the commit
2. Run `just publish`

## Exit Criteria

- The package is in the index
"""


def test_a_skill_is_stored_from_markdown_and_shown_again(memory: Memory):
    skill = memory.tasks.add_skill(PAGE, project="/code/app")
    assert skill.payload["steps"] == ["Tag the commit", "Run `just publish`"]
    assert skill.content == "Release: Publish a version. 1. Tag the commit; 2. Run `just publish`"
    assert memory.tasks.skill_page("release") == PAGE
    assert memory.tasks.skill_page(skill.id) == PAGE
    assert memory.tasks.add_skill(PAGE, project="/code/app").id == skill.id
    assert memory.recall("publish a version", project="/code/app", kind="skill").hits


def test_a_new_page_supersedes_the_skill_of_that_name(memory: Memory):
    first = memory.tasks.add_skill(PAGE)
    second = memory.tasks.add_skill(PAGE.replace("Tag the commit", "Bump the version"))
    assert [one.id for one in memory.tasks.lessons("skill")] == [second.id]
    assert stored(memory, first.id).superseded_by == second.id
    other = memory.tasks.add_skill(PAGE, project="/code/app")
    assert {one.id for one in memory.tasks.lessons("skill")} == {second.id, other.id}


def test_what_a_page_says_besides_is_kept(memory: Memory):
    page = f"{PAGE}\n## Background\n\nWe publish on Mondays.\n"
    memory.tasks.add_skill(page)
    assert memory.tasks.skill_page("Release") == page


def test_a_page_without_steps_is_refused_and_loses_nothing(memory: Memory):
    memory.tasks.add_skill(PAGE)
    with pytest.raises(InvalidInput, match="no steps"):
        memory.tasks.add_skill("# Skill: Release\n")
    assert memory.tasks.skill_page("Release") == PAGE
    with pytest.raises(NotFound):
        memory.tasks.skill_page("ffffffff-ffff")
    with pytest.raises(InvalidInput, match="kind of lesson"):
        memory.tasks.lessons("fact")
