from __future__ import annotations

import json
from pathlib import Path

import pytest

from lore.embed import open_embedder
from lore.memory import Memory
from lore.records import UNASKED_TRUST, Fragment
from lore.settings import Settings
from lore.store import graph, items, task_memories
from tests.fakes import FixedClock
from tests.llm.fakes import ScriptedChat, summarizer
from tests.tasks.sessions import do_task, edited, open_tasks, ran, stored, use_chat

PROJECT = "/code/app"
NO_BUN = ran("rtk bun run test", "!Exit code 2\nerror: unrecognized subcommand 'bun'")
CHECKED = (ran("bun run test", "12 pass\n0 fail"), ran("bun run lint", "Checked 12 files."))


def work(memory: Memory, name: str, goal: str, *files: str, project: str = PROJECT) -> str:
    """Do a task that changes files, stumbles over a command, and ends well."""
    steps = [edited(f"{project}/{file}") for file in files]
    return do_task(memory, name, goal, [*steps, NO_BUN, *CHECKED], project=project)


def fill(memory: Memory) -> list[str]:
    return [
        work(memory, "s1", "Add dark mode to the settings page", "web/settings.ts", "web/theme.ts"),
        work(memory, "s2", "Add light mode to the settings page", "web/settings.ts", "web/ui.ts"),
        work(memory, "s3", "Rotate the signing key of the uploader", "api/keys.py"),
    ]


def lesson(memory: Memory, kind: str) -> Fragment:
    (found,) = memory.tasks.lessons(kind, project=PROJECT)  # type: ignore[arg-type]
    return found


def test_episodes_become_a_pattern_a_warning_and_a_skill(memory: Memory):
    ids = fill(memory)
    result = memory.tasks.consolidate()
    assert [len(one) for one in (result.patterns, result.anti_patterns, result.skills)] == [1, 1, 1]
    pattern = lesson(memory, "pattern")
    assert pattern.content == (
        "Tasks like “Add dark mode to the settings page” change `web/settings.ts`"
        " (also “Add light mode to the settings page”)."
        " Before one counts as done, run `bun run test` and `bun run lint`."
    )
    assert pattern.confidence == pytest.approx(0.8)
    assert pattern.payload["source_episodes"] == ids[:2]
    warning = lesson(memory, "anti_pattern")
    assert warning.payload["prevention"] == "Leave out `rtk`: `bun run test` works"
    assert set(warning.payload["source_episodes"]) == set(ids)
    skill = lesson(memory, "skill")
    assert skill.payload["steps"] == ["Run `bun run test`", "Run `bun run lint`"]


def test_lessons_may_be_given_unasked_but_not_those_of_a_peer(memory: Memory):
    fill(memory)
    memory.database.write(lambda db: db.run("UPDATE fragments SET origin = 'peer', trust = 1"))
    assert memory.tasks.consolidate().patterns == ()
    memory.database.write(lambda db: db.run("UPDATE fragments SET origin = 'tool', trust = 1"))
    memory.tasks.consolidate()
    assert all(one.trust >= UNASKED_TRUST for one in memory.tasks.lessons())


def test_lessons_are_linked_to_their_episodes(memory: Memory):
    ids = fill(memory)
    memory.tasks.consolidate()
    pattern = lesson(memory, "pattern")
    with memory.database.read() as db:
        edges = graph.edges_of_fragment(db, items.resolve(db, pattern.id).n)
    assert {edge.target for edge in edges if edge.kind == "derived_from"} == set(ids[:2])


def test_a_lesson_has_the_date_of_its_last_episode(memory: Memory, clock: FixedClock):
    ids = fill(memory)
    clock.advance(days=200)
    memory.tasks.consolidate()
    with memory.database.read() as db:
        times = items.times_of(db, [items.resolve(db, id_).n for id_ in ids])
    assert lesson(memory, "anti_pattern").created_at == max(times.values())
    assert memory.tasks.review() == []


def test_consolidating_again_changes_nothing(memory: Memory):
    fill(memory)
    memory.tasks.consolidate()
    before = memory.tasks.lessons()
    again = memory.tasks.consolidate()
    assert (again.patterns, again.confirmed, again.links) == ((), (), 0)
    assert memory.tasks.lessons() == before


def test_a_known_pattern_gets_the_evidence_of_a_new_episode(memory: Memory):
    fill(memory)
    memory.tasks.consolidate()
    new = work(memory, "s4", "Add high contrast mode to the settings page", "web/settings.ts")
    result = memory.tasks.learn_from(new)
    assert result.patterns == ()
    pattern = lesson(memory, "pattern")
    assert pattern.id in result.confirmed
    assert new in pattern.payload["source_episodes"]
    assert pattern.payload["usage_count"] == 1
    assert pattern.confidence == pytest.approx(0.95)


def test_a_lesson_that_a_person_deleted_is_not_learned_again(memory: Memory):
    fill(memory)
    memory.tasks.consolidate()
    memory.knowledge.delete(lesson(memory, "pattern").id)
    work(memory, "s4", "Add high contrast mode to the settings page", "web/settings.ts")
    assert memory.tasks.consolidate().patterns == ()
    assert memory.tasks.lessons("pattern") == []


def test_a_text_that_a_person_changed_stays(memory: Memory):
    fill(memory)
    memory.tasks.consolidate()
    memory.knowledge.update(lesson(memory, "pattern").id, "Settings pages need a design review.")
    work(memory, "s4", "Add high contrast mode to the settings page", "web/settings.ts")
    memory.tasks.consolidate()
    pattern = lesson(memory, "pattern")
    assert pattern.content == "Settings pages need a design review."
    assert len(pattern.payload["source_episodes"]) == 3


def test_projects_do_not_mix(memory: Memory):
    work(memory, "s1", "Add dark mode to the settings page", "web/settings.ts")
    work(memory, "s2", "Add light mode to the settings page", "web/settings.ts", project="/other")
    assert memory.tasks.consolidate().patterns == ()
    do_task(memory, "s3", "Ask something", [NO_BUN, *CHECKED], project="")
    do_task(memory, "s4", "Ask something else", [NO_BUN, *CHECKED], project="")
    memory.tasks.consolidate()
    everywhere = memory.tasks.lessons(project="/other")
    assert {one.kind for one in everywhere} == {"anti_pattern"}


def test_only_episodes_since_a_time_are_consolidated(memory: Memory, clock: FixedClock):
    fill(memory)
    clock.advance(hours=30)
    assert memory.tasks.consolidate(since="24h").episodes == 0
    assert memory.tasks.consolidate(since="2d").episodes == 3


def test_duplicates_are_merged_into_the_more_certain_one(memory: Memory):
    fields = {"pattern": "Run `just gen` after a change of `api.yaml`", "usage_count": 2}
    text = "Run `just gen` after a change of `api.yaml`."
    with memory.database.read() as db:
        assert task_memories.lessons(db) == []
    first = memory.store(
        text, kind="pattern", origin="assistant", project=PROJECT, confidence=0.7,
        payload={**fields, "source_episodes": ["a"]},
    )  # fmt: skip
    second = memory.store(
        text.replace("Run", "Do run"), kind="pattern", origin="assistant", project=PROJECT,
        confidence=0.9, payload={**fields, "source_episodes": ["b"]},
    )  # fmt: skip
    fill(memory)
    result = memory.tasks.consolidate()
    assert result.merged == (first,)
    kept = stored(memory, second)
    assert kept.payload["source_episodes"] == ["b", "a"]
    assert kept.payload["usage_count"] == 4
    assert stored(memory, first).superseded_by == second


def test_the_real_encoder_finds_tasks_in_other_words(tmp_path: Path, clock: FixedClock):
    config = Settings(home=tmp_path)
    embedder = open_embedder(config).embedder
    with open_tasks(tmp_path, clock, embedder) as memory:
        work(memory, "s1", "Show a confirmation dialog before files are deleted", "web/files.ts")
        work(memory, "s2", "Ask the user to confirm before a file is removed", "web/files.ts")
        work(memory, "s3", "Rotate the signing key of the uploader", "api/keys.py")
        result = memory.tasks.consolidate()
        assert len(result.patterns) == 1


@pytest.fixture
def learned(memory: Memory) -> Memory:
    fill(memory)
    return memory


def test_a_cycle_learns_first_and_can_be_undone(learned: Memory):
    report = learned.digest.consolidate()
    assert report.phases[0].phase == "learn"
    assert report.phases[0].state == "done"
    counts = report.phases[0].counts
    assert (counts["patterns"], counts["anti-patterns"], counts["skills"]) == (1, 1, 1)
    assert learned.tasks.lessons()
    learned.digest.undo_cycle()
    assert learned.tasks.lessons() == []
    assert len(learned.sessions.episodes()) == 3


def test_a_cycle_sees_each_episode_once(learned: Memory):
    learned.digest.consolidate()
    again = learned.digest.consolidate(phases=["learn"])
    assert again.phases[0].counts == {}


def test_forgetting_a_session_forgets_what_it_taught(learned: Memory):
    learned.tasks.consolidate()
    learned.forget(session="s1")
    assert [one.kind for one in learned.tasks.lessons()] == []


def test_a_chat_is_asked_about_similar_tasks(learned: Memory):
    reply = {
        "patterns": [
            {"pattern": "Pages read their theme from `web/theme.ts`", "from_items": [1, 2]},
            {"pattern": "A single task proves nothing", "from_items": [1]},
        ],
        "anti_patterns": [
            {"what_fails": "Inline styles", "prevention": "Use tokens", "from_items": [2]}
        ],
        "skills": [
            {"name": "Theme a page", "steps": ["Add the token", "Use it"], "from_items": [1, 2]}
        ],
    }  # fmt: skip
    chat = ScriptedChat(json.dumps(reply))
    use_chat(learned, summarizer(chat))
    learned.tasks.consolidate()
    texts = [one.content for one in learned.tasks.lessons()]
    assert "Pages read their theme from `web/theme.ts`." in texts
    assert "Inline styles fails. Use tokens." in texts
    assert "Theme a page: 1. Add the token; 2. Use it." in texts
    assert "A single task proves nothing." not in texts
    (request,) = chat.asked
    shown = request.messages[0].text
    assert "Add dark mode to the settings page" in shown
    assert "unrecognized subcommand" not in shown
    assert "Failed: `rtk bun run test` (the command or option does not exist here)" in shown


def test_without_an_answer_of_the_chat_the_rules_stand(learned: Memory):
    use_chat(learned, summarizer(ScriptedChat("no JSON", "no JSON", "no JSON")))
    assert len(learned.tasks.consolidate().patterns) == 1


def finish(memory: Memory, session: str, goal: str, *files: str) -> str:
    """End a task of a session as an agent would, in words of its own."""
    task = memory.tasks.start(goal, session=session, project=PROJECT)
    report = {"files_changed": [f"{PROJECT}/{file}" for file in files]}
    return memory.tasks.end(
        task.task_id, outcome="success", session=session, project=PROJECT, report=report
    ).episode_id


def test_the_episodes_of_a_task_and_of_its_session_are_one_piece_of_evidence(memory: Memory):
    work(memory, "s1", "Add dark mode to the settings page", "web/settings.ts", "web/theme.ts")
    own = finish(memory, "s1", "Add a dark mode to the settings page soon", "web/settings.ts")
    assert memory.tasks.consolidate().patterns == ()
    assert memory.tasks.lessons("skill") == []
    other = work(
        memory, "s2", "Add light mode to the settings page", "web/settings.ts", "web/ui.ts"
    )
    memory.tasks.consolidate()
    pattern = lesson(memory, "pattern")
    assert set(pattern.payload["source_episodes"]) == {own, other}
    assert pattern.confidence == pytest.approx(0.8)


def test_a_task_that_ends_after_its_session_was_learned_from_adds_no_evidence(memory: Memory):
    fill(memory)
    memory.tasks.consolidate()
    before = lesson(memory, "pattern")
    warned = lesson(memory, "anti_pattern")
    finish(memory, "s1", "Add a dark mode to the settings page soon", "web/settings.ts")
    memory.tasks.consolidate()
    assert lesson(memory, "pattern").confidence == before.confidence
    assert len(lesson(memory, "pattern").payload["source_episodes"]) == 2
    assert lesson(memory, "anti_pattern").confidence == warned.confidence
