"""Was a memory that was given used in what followed?"""

import json
from datetime import timedelta

import pytest

from lore.memory import Memory
from lore.records import Fragment, Message, Part
from lore.tasks.memory_usage import WhatFollowed, find_sign, follow_messages, follow_report
from tests.fakes import NOON, FakeEmbedder

ID = "01a1eaa7-854a-72ba-b49b-e2e8451fbfb6"


def fragment_of(memory: Memory, id_: str) -> Fragment:
    [reading] = memory.read([id_], reinforce=False)
    assert reading.fragment
    return reading.fragment


@pytest.fixture
def memory(new_home):
    with Memory.open(home=new_home, embedder=FakeEmbedder()) as opened:
        yield opened


def stored(memory: Memory, content: str, **fields) -> Fragment:
    return fragment_of(memory, memory.store(content, **fields))


def said(*parts: Part, role="assistant") -> Message:
    return Message("m1", "s", 0, role, parts, 1, NOON + timedelta(seconds=1), "assistant")


def call(name: str, **given: object) -> Part:
    return Part("tool_call", json.dumps(given), name)


def test_a_file_that_a_memory_names_is_used_when_it_is_edited(memory: Memory):
    fragment = stored(memory, "Leap years are handled in `src/dates.py`, line 40.")
    followed = follow_messages([said(call("Edit", file_path="/code/src/dates.py"))])
    assert find_sign(fragment, followed) == "path"
    other = follow_messages([said(call("Edit", file_path="/code/lib/dates.py"))])
    assert find_sign(fragment, other) is None


def test_a_name_that_many_folders_have_identifies_no_file(memory: Memory):
    fragment = stored(memory, "The rules stand in README.md.")
    followed = follow_messages([said(call("Read", file_path="/code/README.md"))])
    assert find_sign(fragment, followed) is None


def test_a_command_is_used_when_it_is_run(memory: Memory):
    fragment = stored(memory, "Tests need `uv run pytest -n 1` here.")
    followed = follow_messages([said(call("Bash", command="cd x && uv run  pytest -n 1 tests"))])
    assert find_sign(fragment, followed) == "command"
    common = stored(memory, "Look with `git status` first.")
    seen = follow_messages([said(call("Bash", command="git status"))])
    assert find_sign(common, seen) is None


def test_reading_and_citing_count_by_id(memory: Memory):
    fragment = stored(memory, "The tide table is printed on Mondays.")
    read = follow_messages([said(call("mcp__lore__read", ids=[fragment.id]))])
    assert find_sign(fragment, read) == "read"
    cited = follow_messages([said(Part("text", f"As [{fragment.id[:18]}] says, on Mondays."))])
    assert find_sign(fragment, cited) == "cited"
    assert find_sign(fragment, WhatFollowed(cited=frozenset({ID}))) is None


def test_words_of_a_person_are_no_use(memory: Memory):
    fragment = stored(memory, "Leap years are handled in `src/dates.py`.")
    asked = said(Part("text", f"[{fragment.id}] src/dates.py"), role="user")
    assert find_sign(fragment, follow_messages([asked])) is None


def test_a_report_of_an_agent_counts_like_its_messages(memory: Memory):
    fragment = stored(memory, "Leap years are handled in `src/dates.py`.")
    by_file = follow_report([], ["src/dates.py"], [])
    assert find_sign(fragment, by_file) == "path"
    by_id = follow_report([], [], [fragment.id[:13]])
    assert find_sign(fragment, by_id) == "cited"


def test_a_warning_is_used_by_what_it_recommends_and_not_by_the_mistake(memory: Memory):
    payload = {"what_fails": "`bun run tests`", "prevention": "Run `cd web` first"}
    content = "`bun run tests` fails. Run `cd web` first."
    fragment = stored(memory, content, kind="anti_pattern", payload=payload)
    mistake = follow_messages([said(call("Bash", command="bun run tests"))])
    assert find_sign(fragment, mistake) is None
    heeded = follow_messages([said(call("Bash", command="cd web && bun run tests"))])
    assert find_sign(fragment, heeded) == "command"
