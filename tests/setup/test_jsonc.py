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


def test_a_member_is_put_beside_what_a_person_wrote():
    after = jsonc.put(COMMENTED, PATH, VALUE)
    for kept in COMMENTED.replace(" // keep", "").splitlines():
        assert kept.rstrip(",").strip() in after
    assert "// keep" in after
    assert jsonc.read(after, PATH) == VALUE
    assert jsonc.read(after, ("mcpServers", "other")) == {"command": "x"}
    assert '        "lore": {\n            "command": "lore",' in after


def test_a_remark_stays_beside_what_it_is_about():
    after = jsonc.put(COMMENTED, PATH, VALUE)
    assert '"other": { "command": "x" }, // keep' in after
    after = jsonc.put(COMMENTED, ("new",), 1)
    assert '"theme": "dark", // trailing\n    "new": 1,\n}' in after


@pytest.mark.parametrize("path", [PATH, ("new",), ("new", "lore")])
def test_commas_and_remarks_come_back(path):
    assert jsonc.drop(jsonc.put(COMMENTED, path, VALUE), path) == COMMENTED


def test_twice_is_once():
    once = jsonc.put(COMMENTED, PATH, VALUE)
    assert jsonc.put(once, PATH, VALUE) == once


def test_another_value_replaces_the_former():
    after = jsonc.put(jsonc.put(COMMENTED, PATH, {"command": "old"}), PATH, VALUE)
    assert jsonc.read(after, PATH) == VALUE
    assert "old" not in after


def test_taking_out_gives_back_the_bytes():
    assert jsonc.drop(jsonc.put(COMMENTED, PATH, VALUE), PATH) == COMMENTED


@pytest.mark.parametrize(
    "text", ["", "{}", "{}\n", "{ }\n", '{\n  "a": 1\n}\n', "{\n  // nothing yet\n}\n"]
)
def test_a_file_that_has_little_takes_it_too(text):
    after = jsonc.put(text, PATH, VALUE)
    assert jsonc.read(after, PATH) == VALUE
    emptied = jsonc.drop(after, PATH)
    assert jsonc.read(emptied) == jsonc.read(text or "{}")


@pytest.mark.parametrize(
    "text", ["{", "[1,]", '{"a" 1}', "{a: 1}", '{"a": 1} x', "[" * 5_000, "null"]
)
def test_what_cannot_be_edited_is_refused(text):
    with pytest.raises(InvalidInput):
        jsonc.put(text, PATH, VALUE)


def test_what_is_no_object_on_the_way_is_refused():
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
def test_put_and_drop_are_each_others_inverse(tree, name, value, indent):
    text = json.dumps(tree, indent=indent, ensure_ascii=False)
    after = jsonc.put(text, ("new-room", name), value)
    assert jsonc.read(after) == {**tree, "new-room": {name: value}}
    assert jsonc.read(jsonc.drop(after, ("new-room", name))) == tree


@given(st.dictionaries(names, values, min_size=1, max_size=4), st.data())
def test_dropping_leaves_all_else(tree, data):
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
def test_an_item_is_added_to_a_list_once(text):
    before = jsonc.read(text or "{}", HOOKS) or []
    once = jsonc.append(text, HOOKS, HOOK)
    assert jsonc.read(once, HOOKS) == [*before, HOOK]
    assert jsonc.append(once, HOOKS, HOOK) == once
    assert ("// mine" in once) is ("// mine" in text)
    undone = jsonc.drop_items(once, HOOKS, is_ours)
    assert (jsonc.read(undone, HOOKS) or []) == before


def test_what_is_no_list_is_refused():
    with pytest.raises(InvalidInput, match="not a list"):
        jsonc.append('{"hooks": {"Stop": {}}}', HOOKS, HOOK)


@given(st.lists(st.integers(0, 3), max_size=6), st.sampled_from([None, 2]))
def test_items_that_are_not_ours_stay_in_order(items, indent):
    text = json.dumps({"a": items, "b": 1}, indent=indent)
    left = jsonc.drop_items(text, ("a",), lambda item: item == 0)
    assert (jsonc.read(left, ("a",)) or []) == [item for item in items if item]
    assert jsonc.read(left, ("b",)) == 1
