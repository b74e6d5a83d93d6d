"""The tree of errors and its exit codes."""

import inspect
import re

import pytest

from lore import errors
from lore.errors import LoreError

TREE = re.compile(r"^([│├└─ ]*)([A-Z]\w+) +(\d+)", re.MULTILINE)
KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, LoreError)
}


def drawn() -> dict[str, tuple[int, int]]:
    assert errors.__doc__
    return {name: (len(lead) // 4, int(code)) for lead, name, code in TREE.findall(errors.__doc__)}


def test_the_error_tree_has_every_exception_with_its_exit_code():
    depths = {
        name: (len(kind.__mro__) - len(LoreError.__mro__), kind.exit_code)
        for name, kind in KINDS.items()
    }
    assert drawn() == depths


def test_every_exception_is_a_lore_error():
    foreign = [
        name
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, Exception) and name not in KINDS
    ]
    assert not foreign


def test_every_exception_is_exported_in_order():
    assert errors.__all__ == sorted(KINDS)


def test_the_error_tree_shows_every_parent():
    above: list[str] = []
    for name, (depth, _) in drawn().items():
        del above[depth:]
        if above:
            assert KINDS[name].__mro__[1].__name__ == above[-1]
        above.append(name)


@pytest.mark.parametrize("kind", KINDS.values())
def test_every_exception_takes_a_message_and_a_hint(kind: type[LoreError]):
    error = kind("what", hint="how")
    assert (str(error), error.hint) == ("what", "how")
    assert kind.__doc__
    assert kind.__doc__.endswith(".")


def test_a_hint_names_calls_in_the_form_of_an_interface():
    error = errors.NotFound("what", hint="{search} and {recall} do.", calls=("search", "recall"))
    assert error.hint == "'lore search' and 'lore recall' do."
    assert error.hint_by("{}()".format) == "search() and recall() do."


def test_a_hint_without_calls_is_the_same_everywhere():
    error = LoreError("what", hint="'lore undo {ab' does.")
    assert error.hint == error.hint_by("{}()".format) == "'lore undo {ab' does."
