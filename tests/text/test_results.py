from __future__ import annotations

import json

import pytest

from lore.text.calls import read_call
from lore.text.results import MESSAGE_CHARS, message_of, verdict_of

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
    assert verdict_of(TEST, text, failed=False) == "failed"


@pytest.mark.parametrize(
    "text", ["ok  \ta\t0.1s", "12 passed, 0 failed", "0 issues.", "", "no errors found"]
)
def test_a_test_that_passes_is_no_failure(text):
    assert verdict_of(TEST, text, failed=False) == "ok"


def test_a_file_that_speaks_of_errors_is_no_failure():
    assert (
        verdict_of(READ, "error: 3 failed\nTraceback (most recent call last)", failed=False) == "ok"
    )


def test_the_mark_of_the_agent_counts_whatever_the_text_says():
    assert verdict_of(READ, "fine", failed=True) == "failed"


def test_what_a_person_declined_is_no_error():
    text = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    assert verdict_of(READ, text, failed=True) == "refused"


def test_the_telling_line_is_quoted():
    text = "Exit code 1\n[test] $ go test ./...\nok  \ta\n--- FAIL: TestOne (0.00s)\n    x.go:3: no"
    assert message_of(text) == "--- FAIL: TestOne (0.00s)"
    assert message_of("<tool_use_error>String to replace not found</tool_use_error>") == (
        "String to replace not found"
    )
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n'
    assert message_of(f"Exit code 1\n{traceback}KeyError: 'berth'") == "KeyError: 'berth'"
    assert message_of("") == ""
    assert len(message_of("error " + "x" * 10_000)) <= MESSAGE_CHARS
