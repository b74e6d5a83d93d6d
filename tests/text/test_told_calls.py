from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.records import Part
from lore.text import parts
from lore.text.told_calls import tell


def told(name: str, *, brief: bool = False, **fields: object) -> str:
    return tell(name, json.dumps(fields), brief=brief)


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


def test_looking_shows_what_was_sought_and_where():
    assert told("Read", file_path="/code/a.py", offset=5) == "[Read] /code/a.py\noffset: 5"
    assert told("Grep", pattern="def x", path="/code") == "[Grep] def x in /code"
    assert told("Glob", pattern="**/*.py") == "[Glob] **/*.py"


def test_a_patch_is_shown_as_it_is():
    patch = "*** Begin Patch\n*** Update File: a.py\n+x\n*** End Patch"
    assert told("apply_patch", input=patch) == f"[apply_patch] {patch}"
    assert tell("apply_patch", patch) == f"[apply_patch] {patch}"


def test_other_calls_have_a_line_for_each_field():
    shown = told("Task", prompt="Find it.", depth=2, tags=["a"])
    assert shown == '[Task] prompt: Find it.\ndepth: 2\ntags: ["a"]'


@pytest.mark.parametrize("text", ["", "{", '{"a"', "[1]", "null", '{"edits": 1, "path": {}}'])
def test_odd_input_is_shown_all_the_same(text: str):
    assert tell("", text).startswith("[tool]")


_FIELDS = st.sampled_from(["command", "file_path", "edits", "old_string", "content", "input", "x"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(_FIELDS, inner),
)


@given(st.dictionaries(_FIELDS, _VALUES))
def test_any_json_can_be_shown(fields: dict[str, object]):
    assert tell("Tool", json.dumps(fields)).startswith("[Tool]")


def test_a_message_shows_its_calls_for_reading_and_keeps_them_whole():
    call = Part("tool_call", '{"command": "ls\\npwd"}', name="Bash")
    assert parts.readable([call]) == "[Bash] ls\npwd"
    assert parts.whole([call]) == '[Bash] {"command": "ls\\npwd"}'
    assert parts.searchable([call]) == 'Bash {"command": "ls\\npwd"}'
