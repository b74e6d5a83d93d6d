from __future__ import annotations

import tomllib

import pytest

from lore import toml_edit
from lore.errors import InvalidInput
from tests.setup.files import CODEX, as_on_windows

KEY, URL = "openai_base_url", "http://127.0.0.1:3207/v1"
TEXTS = [
    "",
    "# only a remark\n",
    'model = "x"',
    "\n\n[table]\na = 1\n",
    CODEX,
    as_on_windows(CODEX).decode("utf-8-sig"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_key_stands_in_no_table_and_can_be_taken_out_again(text):
    after = toml_edit.put_key(text, KEY, URL)
    assert tomllib.loads(after) == {**tomllib.loads(text), KEY: URL}
    assert toml_edit.put_key(after, KEY, URL) == after
    assert toml_edit.drop_key(after, KEY) == text


def test_a_value_is_changed_where_it_stands_and_its_remark_stays():
    text = f'model = "x"\n{KEY} = "http://x/v1" # mine\n'
    after = toml_edit.put_key(text, KEY, URL)
    assert after == f'model = "x"\n{KEY} = "{URL}" # mine\n'
    assert toml_edit.restore_key(after, KEY, text) == text
    assert toml_edit.restore_key(after, KEY, "") == 'model = "x"\n'


def test_a_key_of_a_table_is_another():
    text = f'[profiles.a]\n{KEY} = "http://x/v1"\n'
    assert toml_edit.find_key(text, KEY) is None
    assert toml_edit.drop_key(text, KEY) == text
    assert tomllib.loads(toml_edit.put_key(text, KEY, URL))["profiles"]["a"][KEY] == "http://x/v1"


@pytest.mark.parametrize(
    "text", [f'a = """\n{KEY} = "x"\n"""\n', f'{KEY} = """\nhttp://x/v1"""\n', f'"{KEY}"\n']
)
def test_what_cannot_be_changed_without_harm_is_refused(text):
    with pytest.raises(InvalidInput):
        toml_edit.put_key(text, KEY, URL)
