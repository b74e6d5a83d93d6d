"""The task lists of agents, as their tools write them."""

import json

import pytest

from lore.tasks.agent_task_list import (
    ListedTask,
    apply_call,
    is_subagent_tool,
    is_task_tool,
)


def test_a_todo_list_is_sent_whole():
    todos = [
        {"content": "Mend the parser", "status": "completed", "id": "1"},
        {"content": "Write tests", "status": "in_progress", "id": "2"},
        {"content": "Ship it", "status": "pending", "id": "3"},
        {"content": "Dance", "status": "cancelled", "id": "4"},
    ]
    tasks = apply_call((), "TodoWrite", json.dumps({"todos": todos}))
    assert tasks == (
        ListedTask("Mend the parser", "completed", "1"),
        ListedTask("Write tests", "in_progress", "2"),
        ListedTask("Ship it", "pending", "3"),
    )
    assert apply_call(tasks, "todowrite", json.dumps({"todos": todos[:1]})) == tasks[:1]


def test_a_plan_of_codex_has_steps_and_no_ids():
    plan = '{"plan": [{"step": "Read the parser", "status": "in_progress"}]}'
    assert apply_call((), "update_plan", plan) == (ListedTask("Read the parser", "in_progress"),)


@pytest.mark.parametrize(
    "result", ["Task #4 created successfully: Mend it", '{"task":{"id":"4","subject":"Mend it"}}']
)
def test_a_task_of_claude_code_is_created_begun_and_done(result: str):
    tasks = apply_call((), "TaskCreate", '{"subject": "Mend it", "description": "Now"}', result)
    assert tasks == (ListedTask("Mend it", "pending", "4"),)
    tasks = apply_call(tasks, "TaskUpdate", '{"taskId": "4", "status": "in_progress"}')
    assert tasks[0].status == "in_progress"
    tasks = apply_call(tasks, "TaskUpdate", '{"taskId": "4", "subject": "Mend all of it"}')
    assert tasks[0] == ListedTask("Mend all of it", "in_progress", "4")
    assert apply_call(tasks, "TaskUpdate", '{"taskId": "4", "status": "deleted"}') == ()


def test_tasks_without_a_known_number_are_counted():
    tasks = apply_call((), "TaskCreate", '{"subject": "One"}')
    tasks = apply_call(tasks, "TaskCreate", '{"subject": "Two"}')
    assert [task.id for task in tasks] == ["1", "2"]


def test_the_goal_of_codex_is_one_task():
    tasks = apply_call((), "create_goal", '{"objective": "Print the almanac"}')
    assert tasks == (ListedTask("Print the almanac", "in_progress", "goal"),)
    [done] = apply_call(tasks, "update_goal", '{"status": "complete"}')
    assert done.status == "completed"


def test_a_list_that_is_merged_keeps_the_rest():
    tasks = (ListedTask("One", "pending", "1"), ListedTask("Two", "pending", "2"))
    given = {"merge": True, "todos": [{"id": "2", "content": "Two", "status": "completed"}]}
    assert [task.status for task in apply_call(tasks, "todo_write", json.dumps(given))] == [
        "pending", "completed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("TodoWrite", "no json"), ("TodoWrite", '{"todos": 3}'), ("TodoWrite", '{"todos": ["x"]}'),
        ("TaskUpdate", "{}"), ("TaskUpdate", '{"taskId": "9", "status": "completed"}'),
        ("TaskCreate", "{}"), ("create_goal", "{}"), ("Bash", '{"command": "ls"}'),
    ],
)  # fmt: skip
def test_what_does_not_fit_changes_nothing(tool: str, given: str):
    tasks = (ListedTask("Mend it", "pending", "1"),)
    assert apply_call(tasks, tool, given) == tasks


def test_tools_are_recognised_by_their_name():
    assert all(map(is_task_tool, ("TodoWrite", "todowrite", "update_plan", "TaskUpdate")))
    assert not is_task_tool("Bash")
    assert is_subagent_tool("Agent")
    assert not is_subagent_tool("TaskUpdate")
