"""Tool calls and results as text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.records import Part
from lore.text import message_features
from lore.text.call_text import (
    MESSAGE_CHARS,
    ValueChange,
    bare_command,
    classify_result,
    error_line,
    find_value_changes,
    format_call,
    is_error_message,
    is_lore_tool,
    read_call,
)


def told(name: str, *, brief: bool = False, **fields: object) -> str:
    return format_call(name, json.dumps(fields), brief=brief)


def test_a_command_is_shown_with_its_line_breaks_and_without_how_it_is_run():
    shown = told("Bash", command="cd /code\nmake test", description="Run the tests", timeout=9)
    assert shown == "[Bash] cd /code\nmake test"
    assert told("shell", command=["bash", "-lc", "ls -l"], workdir="/code") == "[shell] ls -l"


def test_an_edit_shows_the_file_and_both_sides():
    shown = told("Edit", file_path="/code/a.py", old_string="x = 1\ny = 2", new_string="x = 3")
    assert shown == "[Edit] /code/a.py\n- x = 1\n- y = 2\n+ x = 3"
    listed = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    shown = told("MultiEdit", file_path="/code/a.py", edits=listed)
    assert shown == "[MultiEdit] /code/a.py\n- a\n+ b\n- c\n+ d"


def test_in_brief_a_long_file_is_shown_by_its_first_lines():
    content = "\n".join(f"line {n}" for n in range(20))
    shown = told("Write", file_path="/code/a.py", content=content, brief=True)
    assert shown.splitlines()[:2] == ["[Write] /code/a.py", "line 0"]
    assert shown.endswith("line 5\n… 14 more lines")
    assert told("Write", file_path="/code/a.py", content=content).endswith("line 19")


def test_a_search_shows_its_pattern_and_its_place():
    assert told("Read", file_path="/code/a.py", offset=5) == "[Read] /code/a.py\noffset: 5"
    assert told("Grep", pattern="def x", path="/code") == "[Grep] def x in /code"
    assert told("Glob", pattern="**/*.py") == "[Glob] **/*.py"


def test_a_patch_is_shown_as_it_is():
    patch = "*** Begin Patch\n*** Update File: a.py\n+x\n*** End Patch"
    assert told("apply_patch", input=patch) == f"[apply_patch] {patch}"
    assert format_call("apply_patch", patch) == f"[apply_patch] {patch}"


def test_other_calls_have_a_line_for_each_field():
    shown = told("Task", prompt="Find it.", depth=2, tags=["a"])
    assert shown == '[Task] prompt: Find it.\ndepth: 2\ntags: ["a"]'


@pytest.mark.parametrize("text", ["", "{", '{"a"', "[1]", "null", '{"edits": 1, "path": {}}'])
def test_odd_input_is_shown_all_the_same(text: str):
    assert format_call("", text).startswith("[tool]")


_FIELDS = st.sampled_from(["command", "file_path", "edits", "old_string", "content", "input", "x"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(_FIELDS, inner),
)


@given(st.dictionaries(_FIELDS, _VALUES))
def test_any_json_can_be_shown(fields: dict[str, object]):
    assert format_call("Tool", json.dumps(fields)).startswith("[Tool]")


def test_a_message_shows_its_calls_for_reading_and_keeps_them_whole():
    call = Part("tool_call", '{"command": "ls\\npwd"}', name="Bash")
    assert message_features.readable_text([call]) == "[Bash] ls\npwd"
    assert message_features.full_text([call]) == '[Bash] {"command": "ls\\npwd"}'
    assert message_features.searchable_text([call]) == 'Bash {"command": "ls\\npwd"}'


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
    assert (call.tool, call.action, call.target) == (name, deed, target)


@pytest.mark.parametrize("name", ["apply_patch", "shell"])
def test_a_patch_names_the_files_that_it_changes_and_makes(name):
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n+x\n*** End Patch"
    given = {"input": patch} if name == "apply_patch" else {"command": ["apply_patch", patch]}
    call = read_call(name, json.dumps(given))
    assert call.action == "edit"
    assert (call.changed, call.created) == (("a.py", "b.py"), ("b.py",))


def test_an_editor_that_only_looks_has_changed_nothing():
    given = json.dumps({"command": "view", "path": "/code/a.py"})
    call = read_call("str_replace_based_edit_tool", given)
    assert (call.action, call.read, call.changed) == ("read", ("/code/a.py",), ())


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


def test_retries_of_a_test_share_their_key():
    keys = {
        read_call("Bash", json.dumps({"command": command})).keys
        for command in ("pytest tests/a.py", "cd /code && uv run pytest -q 2>&1 | tail -5")
    }
    assert len(keys) == 1


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"command": 7}', "{" * 5_000, "plain words"])
def test_input_in_an_unknown_format_is_still_a_call(text):
    for name in ("Bash", "Edit", "Read", "", "whatever"):
        assert read_call(name, text).tool


def test_wrappers_around_a_command_are_removed():
    assert bare_command("cd /code && FOO=1 timeout 60 make all 2>&1 | head") == "make all"
    assert bare_command("") == ""


TEST = read_call("Bash", json.dumps({"command": "go test ./..."}))
READ = read_call("Read", json.dumps({"file_path": "/code/a.py"}))


@pytest.mark.parametrize(
    "text",
    [
        "Exit code 1\nboom",
        "--- FAIL: TestOne (0.00s)",
        "ok  \ta\t0.1s\nFAIL\tb [build failed]",
        "=== 2 failed, 3 passed in 0.1s ===",
        "Traceback (most recent call last):\n  x",
        "src/a.rs:1: error[E0425]: cannot find\nerror[E0425]: no",
    ],
)
def test_a_test_that_fails_is_recognised_behind_a_pipe(text):
    assert classify_result(TEST, text, failed=False) == "failed"


@pytest.mark.parametrize(
    "text", ["ok  \ta\t0.1s", "12 passed, 0 failed", "0 issues.", "", "no errors found"]
)
def test_a_test_that_passes_is_no_failure(text):
    assert classify_result(TEST, text, failed=False) == "ok"


def test_a_file_that_mentions_errors_is_no_failure():
    assert (
        classify_result(READ, "error: 3 failed\nTraceback (most recent call last)", failed=False)
        == "ok"
    )


def test_the_failure_flag_of_the_agent_overrides_the_text():
    assert classify_result(READ, "fine", failed=True) == "failed"


def test_a_call_that_the_user_declined_is_refused():
    text = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    assert classify_result(READ, text, failed=True) == "refused"


def test_the_error_line_is_returned():
    text = "Exit code 1\n[test] $ go test ./...\nok  \ta\n--- FAIL: TestOne (0.00s)\n    x.go:3: no"
    assert error_line(text) == "--- FAIL: TestOne (0.00s)"
    assert error_line("<tool_use_error>String to replace not found</tool_use_error>") == (
        "String to replace not found"
    )
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n'
    assert error_line(f"Exit code 1\n{traceback}KeyError: 'berth'") == "KeyError: 'berth'"
    assert error_line("") == ""
    assert len(error_line("error " + "x" * 10_000)) <= MESSAGE_CHARS


@pytest.mark.parametrize(
    "name",
    [
        "mcp__lore__recall",
        "mcp__plugin_lore_lore__store",
        "lore_recall",
        "lore.recall",
        "lore__read",
    ],
)
def test_lore_tools_are_recognised_under_every_agents_prefix(name: str):
    assert is_lore_tool(name)


@pytest.mark.parametrize(
    "name", ["", "Bash", "recall", "mcp__folklore__recall", "mcp__explore__read", "explore", "lore"]
)
def test_other_tools_are_not_lore_tools(name: str):
    assert not is_lore_tool(name)


ERROR_MESSAGES = (
    "error: undefined function get/2 (expected Web.Test to define such a function)",
    "fatal: The current branch topic has no upstream branch.",
    "src/lore/clock.py:12: error: Incompatible return value type",
    "cmd/cli/list/data.go:685:2: declared and not used: repo (typecheck)",
    "docs/general.mdx:198:81 error MD013/line-length Line length [Expected: 80; Actual: 155]",
    "src/app.ts(3,5): error TS2304: Cannot find name 'foo'.",
    "error[E0382]: borrow of moved value: `x`",
    "E   KeyError: 'berth'",
    "ModuleNotFoundError: No module named 'lore'",
    "sqlite3.OperationalError: no such table: fragments",
    "    ** (RuntimeError) Phoenix LiveView requires lazy_html as a test dependency.",
    "TypeError [ERR_INVALID_ARG]: The argument must be of type string",
    "--- FAIL: TestResume_AfterMergingMain (3.72s)",
    "FAIL\tentire.io/cli/strategy [build failed]",
    "npm ERR! code ELIFECYCLE",
    "npm error 404 Not Found - GET the package",
    "/usr/bin/bash: line 1: strings: command not found",
    "cat: notes.txt: No such file or directory",
    "Error: unknown flag: --debug",
    "panic: runtime error: index out of range [3] with length 3",
    "2 failed, 31 passed in 4.20s",
    "<tool_use_error>String to replace not found in file.",
)
CODE = (
    "throw new Error('not found')",
    "    throw new TypeError(`cannot parse ${name}`);",
    "if err != nil {",
    "\tif err != nil { return err }",
    '  946→\tif !strings.Contains(err.Error(), "checkpoint") {',
    "   61→func Load() (*Settings, error) {",
    'var ErrFilterFailed = errors.New("output filter failed")',
    'return fmt.Errorf("failed to open: %w", err)',
    "raise ValueError('failed')",
    "except (OSError, KeyError) as error:",
    "} catch (error) {",
    'console.error("Request failed", error)',
    "{:error, _} ->",
    '<h1 style="margin: 0;">Project not found</h1>',
    "// If the log file cannot be created, falls back to stderr.",
    "# an error is raised if the file is denied",
    " * Returns an error if the call failed.",
    "src/shell/bash.go:53:\tcase PromptMark, LineError, Jobs:",
    'assert html =~ "Project not found"',
    '"error": null,',
    "class NotFoundError(LoreError):",
    '+        t.Fatalf("failed to init: %v", err)',
    "- show success/error flash in UI.",
    "## Error handling",
    "Tests cover success and failure paths.",
)


@pytest.mark.parametrize("line", ERROR_MESSAGES)
def test_an_error_message_is_recognized(line: str):
    assert is_error_message(line)


@pytest.mark.parametrize("line", CODE)
def test_code_and_prose_about_errors_are_no_error_message(line: str):
    assert not is_error_message(line)


def test_an_edit_of_a_value_is_found_in_edits_patches_and_commands():
    edit = json.dumps({
        "file_path": "db.toml",
        "old_string": "[db]\npool_size = 20",
        "new_string": "[db]\npool_size = 60",
    })
    patch = "*** Begin Patch\n*** Update File: db.toml\n-pool_size = 20\n+pool_size = 60\n"
    expected = [ValueChange("db.toml", "pool_size = 20", "pool_size = 60")]
    assert find_value_changes("Edit", edit) == expected
    assert find_value_changes("apply_patch", patch) == expected
    assert find_value_changes("Bash", "sed -i s/WORKERS=4/WORKERS=16/ .env") == [
        ValueChange("", "WORKERS=4", "WORKERS=16")
    ]
    scale = "kubectl scale deploy/mailer --replicas=6"
    assert find_value_changes("Bash", scale) == [ValueChange("", "replicas", scale)]


def test_an_edit_of_code_changes_no_value():
    edit = json.dumps({
        "file_path": "a.py",
        "old_string": "def load():\n    return 1",
        "new_string": "def load(path):\n    return read(path, strict=True)",
    })
    assert find_value_changes("Edit", edit) == []
    assert find_value_changes("Bash", "grep --max-count=3 pool db.toml") == []
