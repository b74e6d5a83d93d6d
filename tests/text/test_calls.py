from __future__ import annotations

import json

import pytest

from lore.text.calls import bare_command, read_call


@pytest.mark.parametrize(
    ("name", "given", "deed", "target"),
    [
        ("Bash", {"command": "go test ./... 2>&1 | tail -20"}, "run", "go test ./..."),
        ("shell", {"command": ["bash", "-lc", "cd /code && ls -la"]}, "run", "ls -la"),
        ("shell", {"command": ["git", "status"]}, "run", "git status"),
        ("exec_command", {"cmd": "CI=1 pytest -q"}, "run", "pytest -q"),
        ("Read", {"file_path": "/code/a.py"}, "read", "/code/a.py"),
        ("read", {"filePath": "/code/a.py"}, "read", "/code/a.py"),
        ("Edit", {"file_path": "/code/a.py", "old_string": "x"}, "edit", "/code/a.py"),
        ("write", {"filePath": "/code/b.py", "content": "x"}, "write", "/code/b.py"),
        ("Grep", {"pattern": "def main"}, "look", "def main"),
        ("WebFetch", {"url": "https://example.org"}, "fetch", "https://example.org"),
        ("mcp__linear__get_issue", {"id": "ENT-1"}, "other", "ENT-1"),
        ("Task", {"description": "Review the branch", "prompt": "…"}, "other", "Review the branch"),
    ],
)
def test_a_call_is_understood_whatever_the_agent(name, given, deed, target):
    call = read_call(name, json.dumps(given))
    assert (call.tool, call.deed, call.target) == (name, deed, target)


@pytest.mark.parametrize("name", ["apply_patch", "shell"])
def test_a_patch_names_the_files_that_it_changes_and_makes(name):
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n+x\n*** End Patch"
    given = {"input": patch} if name == "apply_patch" else {"command": ["apply_patch", patch]}
    call = read_call(name, json.dumps(given))
    assert call.deed == "edit"
    assert (call.changed, call.created) == (("a.py", "b.py"), ("b.py",))


def test_an_editor_that_only_looks_has_changed_nothing():
    given = json.dumps({"command": "view", "path": "/code/a.py"})
    call = read_call("str_replace_based_edit_tool", given)
    assert (call.deed, call.read, call.changed) == ("read", ("/code/a.py",), ())


@pytest.mark.parametrize(
    ("command", "check"),
    [
        ("mise run test:ci", "test"),
        ("cd /code && uv run pytest -q tests", "test"),
        ("npm test", "test"),
        ("golangci-lint run ./...", "lint"),
        ("uv run ruff check .", "lint"),
        ("cargo build --release", "build"),
        ("git commit -m 'make test pass'", ""),
        ("git add . && make test", "test"),
        ("ls tests", ""),
    ],
)
def test_tests_linters_and_builds_are_recognised(command, check):
    assert read_call("Bash", json.dumps({"command": command})).check == check


def test_two_tries_of_the_same_test_are_the_same_thing():
    keys = {
        read_call("Bash", json.dumps({"command": command})).keys
        for command in ("pytest tests/a.py", "cd /code && uv run pytest -q 2>&1 | tail -5")
    }
    assert len(keys) == 1


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"command": 7}', "{" * 5_000, "plain words"])
def test_an_input_of_no_known_form_is_still_a_call(text):
    for name in ("Bash", "Edit", "Read", "", "whatever"):
        assert read_call(name, text).tool


def test_what_stands_around_a_command_is_left_out():
    assert bare_command("cd /code && FOO=1 timeout 60 make all 2>&1 | head") == "make all"
    assert bare_command("") == ""
