"""Which commands become procedures."""

from __future__ import annotations

import pytest

from tests.llm.offline.exchanges import WORK, SpokenLine, contents, extract_all

PASSED = ("tool", "ok  all passed")


def run(command: str) -> SpokenLine:
    return ("assistant", f"[Bash] {command}")


@pytest.mark.parametrize(
    "command",
    [
        "golangci-lint run --help",
        "ruff check --version",
        "just test | grep -i skipped",
        "just test || true",
        "just test --dry-run",
    ],
)
def test_a_command_that_only_looks_is_no_procedure(command):
    assert contents(("user", "go on"), run(command), PASSED) == []


def test_a_variant_with_options_that_is_run_once_is_no_procedure():
    assert contents(("user", "go on"), run("just lint --timeout=30m"), PASSED) == []


def test_options_that_come_again_belong_to_the_procedure():
    again = [run("just lint --strict"), PASSED]
    found = extract_all(("user", "go on"), run("just lint --strict"), PASSED, later=again)
    assert [one.payload["command"] for one in found] == ["just lint --strict"]


def test_an_item_of_what_is_still_to_be_done_is_no_procedure():
    said = "### Next steps\n\n1. Run `just test` to get a baseline of all results"
    assert contents(("user", "go on"), WORK, ("assistant", said)) == []
