import pytest

from lore.toml_edit import set_line

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
def test_one_line_changes_and_the_others_stay(key: str, value: str | int, line: str) -> None:
    before, after = FILE.splitlines(), set_line(FILE, key, value).splitlines()
    assert line in after
    assert len(set(before) - set(after)) <= 1


def test_a_key_is_taken_out() -> None:
    assert set_line(FILE, "embed.model", None) == FILE.replace('model = "x"\n', "")
    assert set_line(FILE, "embed.threads", None) == FILE
