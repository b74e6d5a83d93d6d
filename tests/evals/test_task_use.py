"""What counts as used by a task, and what does not."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from lore.evals import task_use
from lore.evals.task_use import Thing
from lore.records import Message, Part

AT = datetime(2026, 1, 6, tzinfo=UTC)


def _call(name: str, **inputs: str) -> Message:
    part = Part("tool_call", json.dumps(inputs), name=name)
    return Message("m", "s", 0, "assistant", (part,), 0, AT, "assistant")


def _say(text: str) -> Message:
    return Message("m", "s", 0, "assistant", (Part("text", text),), 0, AT, "assistant")


def _result(text: str) -> Message:
    return Message("m", "s", 0, "tool", (Part("tool_result", text),), 0, AT, "tool")


def test_files_are_known_by_folder_and_name() -> None:
    things = task_use.find_things([_call("Edit", file_path="/home/kim/app/src/Routes/todos.ts")])
    assert things == {Thing("file", "routes/todos.ts")}
    assert task_use.named(things, "Changed: app/src/routes/todos.ts, and more") == things
    assert task_use.named(things, "see todos.ts") == things
    assert task_use.named(things, "see other-todos.ts or todos.tsx") == set()
    assert task_use.named(things, "src\\Routes\\todos.ts") == things


def test_a_name_that_many_folders_have_counts_with_its_folder_only() -> None:
    things = task_use.find_things([_call("Read", file_path="/app/cli/README.md")])
    assert task_use.named(things, "Read README.md first") == set()
    assert task_use.named(things, "Read cli/README.md first") == things


def test_commands_count_by_their_first_words_and_everyday_ones_do_not() -> None:
    command = "cd /app && mise run test:integration 2>&1 | tail -80 && git status && ls -la src"
    things = task_use.find_things([_call("Bash", command=command)])
    assert {thing.name for thing in things if thing.kind == "command"} == {
        "mise run test:integration"
    }
    assert task_use.named(things, "Run `mise run test:integration` before a commit.") == things
    assert task_use.named(things, "Run mise run test.") == set()


def test_a_command_on_one_file_and_git_in_another_folder_do_not_count() -> None:
    command = "git -C /app log --oneline && rtk git diff && xxd /app/a.bin && python3 -c pass"
    assert task_use.find_things([_call("Bash", command=command)]) == {Thing("file", "app/a.bin")}


def test_quoted_text_in_a_command_is_no_command() -> None:
    things = task_use.find_things([
        _call("Bash", command="sed -n '3640;3712p' a.zsh | grep 'x|y z'")
    ])
    assert [thing for thing in things if thing.kind == "command"] == []


def test_an_error_is_the_same_in_another_line_and_folder() -> None:
    things = task_use.find_things([
        _result("Error: cannot open file '/home/a/init.12.yash': No such file or directory")
    ])  # fmt: skip
    text = "Error: cannot open file '/srv/b/init.99.yash': No such file or directory → create it"
    assert {thing.kind for thing in task_use.named(things, text)} == {"fix"}


def test_names_and_versions_that_the_agent_states_are_decisions() -> None:
    things = task_use.find_things([_say("I use retry_budget with TokenSigner and 4.1.2.")])
    assert {thing.name for thing in things} == {"retry_budget", "tokensigner", "4.1.2"}
    assert {t.name for t in task_use.named(things, "We chose retry_budget.")} == {"retry_budget"}


def test_names_and_errors_that_most_tasks_have_are_left_out() -> None:
    common, rare = Thing("decision", "our_product"), Thing("decision", "retry_budget")
    error, file = Thing("fix", "file has not been read yet"), Thing("file", "a/b.go")
    tasks = [{common, error, file} for _ in range(29)] + [{common, error, file, rare}]
    assert task_use.rare_only(tasks, 0.1)[-1] == {file, rare}
