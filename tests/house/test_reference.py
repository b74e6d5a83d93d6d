"""The reference pages say what the code does."""

import pytest

from lore import errors
from tests.house.reference import FOLDER, command_names, pages


@pytest.mark.parametrize("name", pages())
def test_a_page_is_what_the_code_makes_of_it(name: str):
    stored = (FOLDER / name).read_text("utf-8")
    assert stored == pages()[name], "run: python -m tests.house.reference --write"


@pytest.mark.parametrize("command", command_names())
def test_every_command_is_documented(command: str):
    assert f"\n## {command}\n" in (FOLDER / "cli.md").read_text("utf-8")


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_has_its_exit_code_on_the_page(name: str):
    page = (FOLDER / "exit-codes.md").read_text("utf-8")
    code = getattr(errors, name).exit_code
    assert any(line.startswith(f"| {code} |") and f"`{name}`" in line for line in page.splitlines())
