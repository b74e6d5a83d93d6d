"""The task lists of agents, as their tools write them."""

from lore.tasks.task_list import TaskChange, parse_task_list


def test_a_todo_list_says_what_began_and_what_is_done():
    todos = [
        {"content": "Mend the parser", "status": "completed", "id": "1"},
        {"content": "Write tests", "status": "in_progress", "id": "2"},
        {"content": "Ship it", "status": "pending", "id": "3"},
    ]
    assert parse_task_list("TodoWrite", {"todos": todos}, None) == [
        TaskChange("todo 1", "done", "Mend the parser"),
        TaskChange("todo 2", "begun", "Write tests"),
    ]


def test_a_plan_of_codex_has_steps_and_no_ids():
    plan = '{"plan": [{"step": "Read the parser", "status": "in_progress"}]}'
    [change] = parse_task_list("update_plan", plan, None)
    assert (change.state, change.goal) == ("begun", "Read the parser")
    assert [change] == parse_task_list("update_plan", plan, None)


def test_a_created_task_has_its_number_from_the_response():
    given = {"subject": "Mend the parser", "description": "Leap years fail."}
    [change] = parse_task_list("TaskCreate", given, "Task #4 created successfully")
    assert change == TaskChange("task 4", "begun", "Mend the parser. Leap years fail.")
    [same] = parse_task_list("TaskCreate", given, {"task": {"id": "4"}})
    assert same == change
    done = {"taskId": "4", "status": "completed"}
    assert parse_task_list("TaskUpdate", done, None) == [TaskChange("task 4", "done")]


def test_what_is_no_list_changes_nothing():
    for given in (None, "", "no json", {"todos": ["a", 3]}, {"todos": [{"status": "done"}]}):
        assert parse_task_list("TodoWrite", given, None) == []
    assert parse_task_list("TaskUpdate", {"status": "completed"}, None) == []
