from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.tasks import command_steps


@pytest.mark.parametrize(
    ("command", "steps"),
    [
        ("cd src && go build ./... && go test ./prompt/...", ["go build ./...", "go test <path>"]),
        ("bun run test src/a.test.ts 2>&1 | tail -5", ["bun run test <path>"]),
        ("git add a.ts && git commit -m \"$(cat <<'EOF'", ["git add <path>", "git commit -m …"]),
        ("git push -u origin feat/x", ["git push -u origin <branch>"]),
        ("ls -la && cat a.txt; git status", []),
        ("npm view lore version", []),
        ("cargo --version", []),
        ("gh pr create --title 'One' --body \"Two\"", ["gh pr create --title … --body …"]),
        ("", []),
    ],
)  # fmt: skip
def test_a_command_is_split_into_steps_that_do_something(command, steps):
    assert command_steps.split_steps(command) == steps


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("error: unrecognized subcommand 'bun'", "command"),
        ("bash: tsc: command not found", "command"),
        ("error: could not find `Cargo.toml` in `/x` or any parent directory", "place"),
        ("ERROR: file or directory not found: test_tides.py", "place"),
        ("ModuleNotFoundError: No module named 'x'", "dependency"),
        ("GraphQL: Could not resolve to a Repository with the name 'a/b'.", "repository"),
        ("error: failed to push some refs to 'x'", "remote"),
        ("Error: listen EADDRINUSE: address already in use", "lock"),
        ("--- FAIL: TestThing (0.00s)", ""),
        ("AssertionError: 1 != 2", ""),
    ],
)
def test_the_cause_of_an_error_is_told_in_our_words(message, cause):
    assert command_steps.cause_of(message) == cause


def test_only_a_text_that_is_open_at_the_end_is_cut():
    assert command_steps.whole("npx jest --only='a b'") == "npx jest --only='a b'"
    assert command_steps.whole("gh pr comment 1 --body \"$(cat <<'EOF'") == "gh pr comment 1 --body"
    assert command_steps.whole("git add \\") == ""
    assert command_steps.whole("a very long command…") == ""


def test_variants_of_a_step_have_one_identity():
    forms = ("go test ./...", "go test <path> -run … -v", "go test -count=<n> <path>")
    assert {command_steps.identity_of(form) for form in forms} == {"go test"}
    assert command_steps.identity_of("pnpm --filter web build") == "pnpm web build"


def test_each_step_stands_where_it_was_done_last():
    done = command_steps.done_steps(iter(["just lint", "just test", "ls", "just lint"]))
    assert done == ["just test", "just lint"]


@given(st.text(max_size=300))
def test_any_text_can_be_split(text):
    for step in command_steps.split_steps(text):
        assert step.strip() == step
    command_steps.whole(text)
    command_steps.cause_of(text)
