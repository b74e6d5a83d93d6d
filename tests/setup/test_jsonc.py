from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.setup import jsonc

COMMENTED = """\
// mine
{
    // servers
    "mcpServers": {
        "other": { "command": "x" } // keep
    },
    /* a, b: "c" */
    "theme": "dark", // trailing
}
"""
VALUE = {"command": "lore", "args": ["mcp"]}
PATH = ("mcpServers", "lore")


def test_put_adds_a_member_beside_the_others():
    after = jsonc.put(COMMENTED, PATH, VALUE)
    for kept in COMMENTED.replace(" // keep", "").splitlines():
        assert kept.rstrip(",").strip() in after
    assert "// keep" in after
    assert jsonc.read(after, PATH) == VALUE
    assert jsonc.read(after, ("mcpServers", "other")) == {"command": "x"}
    assert '        "lore": {\n            "command": "lore",' in after


def test_comments_stay_beside_their_members():
    after = jsonc.put(COMMENTED, PATH, VALUE)
    assert '"other": { "command": "x" }, // keep' in after
    after = jsonc.put(COMMENTED, ("new",), 1)
    assert '"theme": "dark", // trailing\n    "new": 1,\n}' in after


@pytest.mark.parametrize("path", [PATH, ("new",), ("new", "lore")])
def test_drop_restores_commas_and_comments(path):
    assert jsonc.drop(jsonc.put(COMMENTED, path, VALUE), path) == COMMENTED


def test_a_second_edit_changes_nothing():
    once = jsonc.put(COMMENTED, PATH, VALUE)
    assert jsonc.put(once, PATH, VALUE) == once


def test_put_replaces_a_value():
    after = jsonc.put(jsonc.put(COMMENTED, PATH, {"command": "old"}), PATH, VALUE)
    assert jsonc.read(after, PATH) == VALUE
    assert "old" not in after


def test_drop_restores_the_bytes():
    assert jsonc.drop(jsonc.put(COMMENTED, PATH, VALUE), PATH) == COMMENTED


@pytest.mark.parametrize(
    "text", ["", "{}", "{}\n", "{ }\n", '{\n  "a": 1\n}\n', "{\n  // nothing yet\n}\n"]
)
def test_put_works_in_nearly_empty_files(text):
    after = jsonc.put(text, PATH, VALUE)
    assert jsonc.read(after, PATH) == VALUE
    emptied = jsonc.drop(after, PATH)
    assert jsonc.read(emptied) == jsonc.read(text or "{}")


@pytest.mark.parametrize(
    "text", ["{", "[1,]", '{"a" 1}', "{a: 1}", '{"a": 1} x', "[" * 5_000, "null"]
)
def test_invalid_json_is_refused(text):
    with pytest.raises(InvalidInput):
        jsonc.put(text, PATH, VALUE)


def test_a_path_through_a_non_object_is_refused():
    with pytest.raises(InvalidInput, match="mcpServers"):
        jsonc.put('{"mcpServers": []}', PATH, VALUE)


names = st.text(max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(names, values, max_size=4), names, values, st.sampled_from([None, 1, 2, "\t"])
)
def test_drop_is_the_inverse_of_put(tree, name, value, indent):
    text = json.dumps(tree, indent=indent, ensure_ascii=False)
    after = jsonc.put(text, ("new-room", name), value)
    assert jsonc.read(after) == {**tree, "new-room": {name: value}}
    assert jsonc.read(jsonc.drop(after, ("new-room", name))) == tree


@given(st.dictionaries(names, values, min_size=1, max_size=4), st.data())
def test_drop_keeps_everything_else(tree, data):
    name = data.draw(st.sampled_from(sorted(tree)))
    text = json.dumps(tree, indent=2)
    rest = {key: value for key, value in tree.items() if key != name}
    assert jsonc.read(jsonc.drop(text, (name,))) == rest


HOOK = {"hooks": [{"type": "command", "command": "lore hook Stop"}]}
HOOKS = ("hooks", "Stop")


def is_ours(item):
    return item == HOOK


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{\n  "hooks": {\n    "Stop": []\n  }\n}\n',
        '{\n  "hooks": {\n    "Stop": [\n      { "a": 1 } // mine\n    ]\n  }\n}\n',
        '{"hooks": {"Stop": [1, 2,], "Start": [3]}}',
    ],
)
def test_append_adds_an_item_once(text):
    before = jsonc.read(text or "{}", HOOKS) or []
    once = jsonc.append(text, HOOKS, HOOK)
    assert jsonc.read(once, HOOKS) == [*before, HOOK]
    assert jsonc.append(once, HOOKS, HOOK) == once
    assert ("// mine" in once) is ("// mine" in text)
    undone = jsonc.drop_items(once, HOOKS, is_ours)
    assert (jsonc.read(undone, HOOKS) or []) == before


def test_append_refuses_a_value_that_is_no_list():
    with pytest.raises(InvalidInput, match="not a list"):
        jsonc.append('{"hooks": {"Stop": {}}}', HOOKS, HOOK)


@given(st.lists(st.integers(0, 3), max_size=6), st.sampled_from([None, 2]))
def test_drop_items_keeps_the_order_of_the_others(items, indent):
    text = json.dumps({"a": items, "b": 1}, indent=indent)
    left = jsonc.drop_items(text, ("a",), lambda item: item == 0)
    assert (jsonc.read(left, ("a",)) or []) == [item for item in items if item]
    assert jsonc.read(left, ("b",)) == 1
