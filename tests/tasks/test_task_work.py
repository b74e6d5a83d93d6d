"""Tasks from their start to their end."""

import json
from datetime import timedelta

import pytest

from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.records import Fragment, NewMessage, Part
from tests.fakes import FakeEmbedder, FixedClock

HERE = "/code/almanac"


@pytest.fixture
def clock():
    return FixedClock()


def fragment_of(memory: Memory, id_: str) -> Fragment:
    [reading] = memory.read([id_], reinforce=False)
    assert reading.fragment
    return reading.fragment


@pytest.fixture
def memory(new_home, clock):
    with Memory.open(home=new_home, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def message(clock: FixedClock, role, seconds: int, *parts: Part) -> NewMessage:
    return NewMessage(role, parts, clock() + timedelta(seconds=seconds))


def test_a_task_leaves_an_episode_and_what_was_used(memory: Memory):
    pattern = memory.store(
        "Tide heights are parsed in `src/tides.py`",
        kind="pattern",
        project=HERE,
        payload={"pattern": "Tide heights are parsed in `src/tides.py`"},
    )
    briefing = memory.tasks.start("Add tide heights below zero", project=HERE, name="t-1")
    assert [one.id for one in briefing.relevant_patterns] == [pattern]
    errors = [{"type": "ValueError", "message": "no sign", "resolution": "read the sign"}]
    ended = memory.tasks.end(
        "t-1", outcome="success", report={"files_changed": ["src/tides.py"], "errors": errors}
    )
    [used] = ended.memories
    assert (used.used, used.sign, used.helped) == (True, "path", True)
    episode = fragment_of(memory, ended.episode_id)
    assert episode.kind == "episode"
    assert episode.payload["errors"] == errors
    assert episode.payload["task_id"] == "t-1"
    counted = fragment_of(memory, pattern).payload
    assert counted["usage_count"] == 1
    assert counted["last_used"]
    task, given = memory.tasks.show(briefing.task_id)
    assert (task.state, task.outcome, task.episode_id) == ("done", "success", ended.episode_id)
    assert given == ended.memories


def test_an_end_told_twice_counts_once(memory: Memory):
    memory.store("Tide heights", kind="pattern", project=HERE, payload={"pattern": "Tide heights"})
    briefing = memory.tasks.start("Add tide heights", project=HERE)
    [given] = briefing.relevant_patterns
    first = memory.tasks.end(briefing.task_id, outcome="success", used=[given.id])
    again = memory.tasks.end(briefing.task_id, outcome="success", used=[given.id])
    assert again.episode_id == first.episode_id
    assert fragment_of(memory, given.id).payload["usage_count"] == 1


def test_what_is_not_reported_is_derived_from_the_messages(memory: Memory, clock: FixedClock):
    memory.capture("work", [message(clock, "user", 0, Part("text", "Mend the tide parser"))],
                   project=HERE, agent="codex")  # fmt: skip
    clock.advance(seconds=1)
    memory.tasks.start("Mend the tide parser", session="work")
    clock.advance(seconds=60)
    edit = Part("tool_call", json.dumps({"file_path": "/code/tides.py"}), "Edit", "1")
    run = Part("tool_call", json.dumps({"command": "pytest"}), "Bash", "2")
    failed = Part("tool_result", "1 failed", "", "2", failed=True)
    memory.capture("work", [
        message(clock, "assistant", 1, edit),
        message(clock, "tool", 2, Part("tool_result", "updated", "", "1")),
        message(clock, "assistant", 3, run),
        message(clock, "tool", 4, failed),
    ], project=HERE, agent="codex")  # fmt: skip
    ended = memory.tasks.end(outcome="success", session="work")
    assert ended.task.outcome == "partial"
    assert "called a success, but" in ended.task.reason
    payload = fragment_of(memory, ended.episode_id).payload
    assert payload["files_changed"] == ["/code/tides.py"]
    assert payload["calls"] == 2


def test_bad_input_is_refused_and_the_task_stays_open(memory: Memory):
    briefing = memory.tasks.start("Mend the tide parser", project=HERE)
    with pytest.raises(InvalidInput, match=r"valid episode: 'errors\.0\.message'"):
        memory.tasks.end(briefing.task_id, report={"errors": [{"type": "x"}]})
    with pytest.raises(InvalidInput, match="needs a goal"):
        memory.tasks.start("  ", project=HERE)
    with pytest.raises(NotFound, match="no task 'nope'"):
        memory.tasks.end("nope")
    with pytest.raises(NotFound, match="No task is open here"):
        memory.tasks.end(project="/code/elsewhere")
    assert memory.tasks.show(briefing.task_id)[0].state == "open"
    assert [one.goal for one in memory.tasks(state="open")] == ["Mend the tide parser"]


def test_secrets_of_a_goal_are_not_stored(memory: Memory):
    secret = "ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAB7c"
    briefing = memory.tasks.start(f"Rotate the token {secret}", project=HERE)
    memory.tasks.end(briefing.task_id, report={"artifacts": [f"token {secret}"]})
    assert secret not in str(memory.tasks.show(briefing.task_id))
    assert secret not in str(memory.tasks.list_tasks())
    assert secret not in (memory.database.path.read_bytes()).decode("latin-1")


def test_a_task_list_begins_and_ends_tasks(memory: Memory, clock: FixedClock):
    id_ = memory.store("Tide heights are parsed with Decimal", project=HERE, origin="assistant")
    todo = {"content": "Parse tide heights below zero", "id": "1", "status": "in_progress"}

    def write(todo: dict[str, str]) -> str:
        return memory.prompts.for_task_call(
            "TodoWrite", json.dumps({"todos": [todo]}), "", session="s1", project=HERE,
            agent="claude-code",
        )  # fmt: skip

    told = write(todo)
    assert told.startswith("<lore-memory>\n")
    assert "Tide heights are parsed with Decimal" in told
    assert write(todo) == ""
    assert write({**todo, "status": "completed"}) == ""
    [task] = memory.tasks()
    assert (task.state, task.agent) == ("open", "claude-code")
    clock.moment += timedelta(seconds=1)
    said = NewMessage("assistant", (Part("text", "All of it is parsed."),), clock.moment)
    memory.capture("s1", [said], agent="claude-code", project=HERE)
    memory.prompts.end_turn("s1")
    record, given = memory.tasks.show(task.id)
    assert (record.state, record.outcome) == ("done", "unknown")
    assert [one.item_id for one in given] == [id_]


def test_the_end_of_a_session_ends_its_tasks(memory: Memory, clock: FixedClock):
    todo = {"content": "Parse tide heights below zero", "id": "1", "status": "in_progress"}
    given = json.dumps({"todos": [todo]})
    memory.prompts.for_task_call("TodoWrite", given, "", session="s1", project=HERE)
    said = NewMessage("assistant", (Part("text", "I begin."),), clock.moment)
    memory.capture("s1", [said], agent="claude-code", project=HERE)
    memory.prompts.end_turn("s1")
    assert [task.state for task in memory.tasks()] == ["open"]
    memory.prompts.end_session("s1")
    assert [task.state for task in memory.tasks()] == ["done"]


def test_subagents_that_start_together_have_each_their_own_task(memory: Memory):
    for task in ("Count the tide tables of May", "Read the harbour manual"):
        given = json.dumps({"prompt": task, "subagent_type": "general-purpose"})
        memory.prompts.note_delegation("Agent", given, session="s1")
    memory.prompts.note_delegation("Bash", '{"command": "ls"}', session="s1")
    for number in (1, 2, 3):
        memory.prompts.for_subagent(f"s1/agent-{number}", project=HERE)
    assert sorted(task.goal for task in memory.tasks()) == [
        "Count the tide tables of May", "Read the harbour manual",
    ]  # fmt: skip


def test_forgetting_a_project_forgets_its_tasks(memory: Memory):
    memory.tasks.start("Mend the zanzibar parser", project=HERE)
    memory.tasks.end(project=HERE, outcome="success")
    memory.forget(match="zanzibar")
    assert memory.tasks.list_tasks() == []
    assert b"zanzibar" not in memory.database.path.read_bytes()


def test_the_name_of_a_task_is_one_of_its_own_project(memory: Memory):
    theirs = memory.tasks.start("Print the secret tide tables", project="/code/other", name="1")
    with pytest.raises(NotFound):
        memory.tasks.end("1", outcome="success", project=HERE)
    memory.tasks.start("Add tide heights", project=HERE, name="1")
    assert memory.tasks.end("1", outcome="success", project=HERE).task.goal == "Add tide heights"
    by_id = memory.tasks.end(theirs.task_id, outcome="success", project=HERE)
    [own] = [one for one in memory.sessions.projects() if one.path == "/code/other"]
    assert fragment_of(memory, by_id.episode_id).project_id == own.id


def test_a_task_takes_as_long_as_it_took(memory: Memory, clock: FixedClock):
    briefing = memory.tasks.start("Add tide heights", project=HERE)
    clock.advance(days=2, seconds=5)
    ended = memory.tasks.end(briefing.task_id, outcome="success")
    assert fragment_of(memory, ended.episode_id).payload["duration_s"] == 172_805
    briefing = memory.tasks.start("Add tide depths", project=HERE)
    clock.advance(seconds=-90)
    ended = memory.tasks.end(briefing.task_id, outcome="success")
    assert fragment_of(memory, ended.episode_id).payload["duration_s"] == 0


def test_an_error_that_a_task_reports_warns_the_next_one(memory: Memory):
    error = {
        "type": "TypeScript compilation",
        "message": "Missing return type annotation of a route handler",
        "resolution": "Add an explicit void to the handler",
    }
    first = memory.tasks.start("Add a route handler for todos", project=HERE)
    memory.tasks.end(first.task_id, outcome="success", project=HERE, report={"errors": [error]})
    (lesson,) = memory.tasks.lessons(project=HERE)
    assert (lesson.kind, lesson.payload["what_fails"]) == ("anti_pattern", error["type"])
    briefing = memory.tasks.start(f"Fix this error: {lesson.content}", project=HERE)
    assert [one for one in briefing.critical_avoid if "explicit void" in one.text]
