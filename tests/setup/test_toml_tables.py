from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore import toml_edit
from lore.errors import InvalidInput
from tests.setup.files import CODEX

NAME = "mcp_servers.lore"
TABLE = {"command": "/code/bin/lore", "args": ["mcp"]}


def read(text):
    return tomllib.loads(text).get("mcp_servers", {}).get("lore")


def test_a_table_is_added_below_what_a_person_wrote():
    after = toml_edit.put_table(CODEX, NAME, TABLE)
    assert after.startswith(CODEX)
    assert read(after) == TABLE


def test_twice_is_once():
    once = toml_edit.put_table(CODEX, NAME, TABLE)
    assert toml_edit.put_table(once, NAME, TABLE) == once


@pytest.mark.parametrize(
    "text", ["", "\n", "a = 1\n", "a = 1\n\n", "a = 1\n\n\n", "# only this\n", CODEX]
)
def test_taking_out_gives_back_the_bytes(text):
    assert toml_edit.drop_table(toml_edit.put_table(text, NAME, TABLE), NAME) == text


@pytest.mark.parametrize(
    "written",
    [
        '[mcp_servers.lore]\ncommand = "old"\n',
        '[mcp_servers."lore"] # mine\ncommand = "old"\nenv = { A = "[b]" }\n',
        '[ mcp_servers . lore ]\ncommand = "old"\n[mcp_servers.lore.env]\nA = "1"\n',
    ],
)
def test_a_former_table_is_replaced_whole(written):
    after = toml_edit.put_table(f"a = 1\n{written}\n[z]\nb = 2\n", NAME, TABLE)
    assert tomllib.loads(after) == {"a": 1, "z": {"b": 2}, "mcp_servers": {"lore": TABLE}}


def test_what_looks_like_a_table_within_a_text_stays():
    text = 'a = """\n[mcp_servers.lore]\ncommand = "quoted"\n"""\n'
    after = toml_edit.put_table(text, NAME, TABLE)
    assert tomllib.loads(after)["a"] == tomllib.loads(text)["a"]
    assert toml_edit.drop_table(after, NAME) == text


@pytest.mark.parametrize(
    "later", ["\n[mine]\nb = 2\n", "\n\n# about mine\n[mine]\nb = 2\n", "[mine]\n", "# a note\n"]
)
def test_what_a_person_wrote_below_stays_as_it_is(later):
    after = toml_edit.put_table("a = 1\n", NAME, TABLE) + later
    assert toml_edit.drop_table(after, NAME) == f"a = 1\n{later}"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.lore.command = "old"\n',
        'mcp_servers = { lore = { command = "old" } }\n',
        'mcp_servers = { docs = { command = "x" } }\n',
        "mcp_servers = 1\n",
        "a = \n",
        "[a\n",
        "\0",
        f"a = {'[' * 3_000}{']' * 3_000}\n",
    ],
)
def test_what_cannot_be_edited_is_refused(text):
    with pytest.raises(InvalidInput):
        toml_edit.put_table(text, NAME, TABLE)


lines = st.sampled_from([
    "a{} = 1",
    "# note",
    "",
    "[t{}]",
    "[[l{}]]",
    'b{} = "x"',
    "[mcp_servers.o{}]",
    "c{} = [\n 1,\n]",
])


@given(st.lists(lines, max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_put_and_drop_are_each_others_inverse(chosen, newline, ended):
    text = "\n".join(line.format(n) for n, line in enumerate(chosen)).replace("\n", newline)
    text += newline if ended else ""
    tree = tomllib.loads(text)
    after = toml_edit.put_table(text, NAME, TABLE)
    assert read(after) == TABLE
    assert tomllib.loads(toml_edit.drop_table(after, NAME)) == tree
    if ended:
        assert toml_edit.drop_table(after, NAME) == text
