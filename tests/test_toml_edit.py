from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore import toml_edit
from lore.errors import InvalidInput
from tests.setup.files import CODEX, as_on_windows

TABLE_PLACE = ("mcp_servers", "lore")
TABLE = {"command": "/code/bin/lore", "args": ["mcp"]}


def lore_table(text):
    return tomllib.loads(text).get("mcp_servers", {}).get("lore")


def test_put_adds_a_table_at_the_end_of_the_file():
    after = toml_edit.put(CODEX, TABLE_PLACE, TABLE)
    assert after.startswith(CODEX)
    assert lore_table(after) == TABLE


def test_putting_a_table_twice_changes_nothing():
    once = toml_edit.put(CODEX, TABLE_PLACE, TABLE)
    assert toml_edit.put(once, TABLE_PLACE, TABLE) == once


@pytest.mark.parametrize(
    "text", ["", "\n", "a = 1\n", "a = 1\n\n", "a = 1\n\n\n", "# only this\n", CODEX]
)
def test_dropping_a_new_table_restores_every_byte(text):
    assert toml_edit.drop(toml_edit.put(text, TABLE_PLACE, TABLE), TABLE_PLACE) == text


@pytest.mark.parametrize(
    "written",
    [
        '[mcp_servers.lore]\ncommand = "old"\n',
        '[mcp_servers."lore"] # mine\ncommand = "old"\nenv = { A = "[b]" }\n',
        '[ mcp_servers . lore ]\ncommand = "old"\n[mcp_servers.lore.env]\nA = "1"\n',
    ],
)
def test_put_replaces_an_existing_table_completely(written):
    after = toml_edit.put(f"a = 1\n{written}\n[z]\nb = 2\n", TABLE_PLACE, TABLE)
    assert tomllib.loads(after) == {"a": 1, "z": {"b": 2}, "mcp_servers": {"lore": TABLE}}


def test_a_table_header_inside_a_string_is_no_header():
    text = 'a = """\n[mcp_servers.lore]\ncommand = "quoted"\n"""\n'
    after = toml_edit.put(text, TABLE_PLACE, TABLE)
    assert tomllib.loads(after)["a"] == tomllib.loads(text)["a"]
    assert toml_edit.drop(after, TABLE_PLACE) == text


@pytest.mark.parametrize(
    "later", ["\n[mine]\nb = 2\n", "\n\n# about mine\n[mine]\nb = 2\n", "[mine]\n", "# a note\n"]
)
def test_drop_keeps_comments_and_tables_below_the_table(later):
    after = toml_edit.put("a = 1\n", TABLE_PLACE, TABLE) + later
    assert toml_edit.drop(after, TABLE_PLACE) == f"a = 1\n{later}"


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
def test_put_refuses_a_table_that_it_cannot_write(text):
    with pytest.raises(InvalidInput):
        toml_edit.put(text, TABLE_PLACE, TABLE)


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
def test_drop_is_the_inverse_of_put(chosen, newline, ended):
    text = "\n".join(line.format(n) for n, line in enumerate(chosen)).replace("\n", newline)
    text += newline if ended else ""
    tree = tomllib.loads(text)
    after = toml_edit.put(text, TABLE_PLACE, TABLE)
    assert lore_table(after) == TABLE
    assert tomllib.loads(toml_edit.drop(after, TABLE_PLACE)) == tree
    if ended:
        assert toml_edit.drop(after, TABLE_PLACE) == text


KEY, URL = "openai_base_url", "http://127.0.0.1:3207/v1"
KEY_PLACE = (KEY,)
TEXTS = [
    "",
    "# only a remark\n",
    'model = "x"',
    "\n\n[table]\na = 1\n",
    CODEX,
    as_on_windows(CODEX).decode("utf-8-sig"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_put_adds_a_top_level_key_and_drop_restores_the_text(text):
    after = toml_edit.put(text, KEY_PLACE, URL)
    assert tomllib.loads(after) == {**tomllib.loads(text), KEY: URL}
    assert toml_edit.put(after, KEY_PLACE, URL) == after
    assert toml_edit.drop(after, KEY_PLACE) == text


def test_put_replaces_a_value_in_place_and_keeps_its_comment():
    text = f'model = "x"\n{KEY} = "http://x/v1" # mine\n'
    after = toml_edit.put(text, KEY_PLACE, URL)
    assert after == f'model = "x"\n{KEY} = "{URL}" # mine\n'
    assert toml_edit.restore(after, KEY_PLACE, text) == text
    assert toml_edit.restore(after, KEY_PLACE, "") == 'model = "x"\n'


def test_a_key_of_a_table_is_not_the_top_level_key():
    text = f'[profiles.a]\n{KEY} = "http://x/v1"\n'
    assert toml_edit.read(text, KEY_PLACE) is None
    assert toml_edit.drop(text, KEY_PLACE) == text
    assert tomllib.loads(toml_edit.put(text, KEY_PLACE, URL))["profiles"]["a"][KEY] == "http://x/v1"


@pytest.mark.parametrize(
    "text", [f'a = """\n{KEY} = "x"\n"""\n', f'{KEY} = """\nhttp://x/v1"""\n', f'"{KEY}"\n']
)
def test_put_refuses_a_key_that_it_cannot_change_safely(text):
    with pytest.raises(InvalidInput):
        toml_edit.put(text, KEY_PLACE, URL)


FILE = '# mine\n\n[recall]\nmax_hits = 3  # few\n\n[embed]\nmodel = "x"\n'


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("recall.max_hits", 4, "max_hits = 4  # few"),
        ("embed.model", "y", 'model = "y"'),
        ("embed.download", True, "download = true"),
        ("search.recipe", "rrf", 'search.recipe = "rrf"'),
    ],
)
def test_set_line_changes_one_line_only(key: str, value: str | int, line: str):
    before, after = FILE.splitlines(), toml_edit.set_line(FILE, key, value).splitlines()
    assert line in after
    assert len(set(before) - set(after)) <= 1


def test_set_line_removes_a_key():
    assert toml_edit.set_line(FILE, "embed.model", None) == FILE.replace('model = "x"\n', "")
    assert toml_edit.set_line(FILE, "embed.threads", None) == FILE
