"""The public names of the package."""

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import lore
from lore.memory import Memory

RECORDS = "lore.records."


def test_public_names_are_sorted_and_stand_once():
    assert list(lore.__all__) == sorted(set(lore.__all__))


def types_in(hint: Any) -> Iterator[type]:
    """Yield the types that an annotation names, also those within it."""
    if isinstance(hint, type) and not get_args(hint):
        yield hint
    for inner in get_args(hint):
        yield from types_in(inner)


def test_every_record_that_the_memory_takes_or_returns_is_public():
    named: set[str] = set()
    for name, method in inspect.getmembers(Memory, inspect.isroutine):
        if not name.startswith("_"):
            function = inspect.unwrap(getattr(method, "__func__", method))
            for hint in get_type_hints(function).values():
                found = (kind for kind in types_in(hint) if kind.__module__.startswith(RECORDS))
                named |= {kind.__name__ for kind in found}
    assert {"Answer", "Captured", "Job", "NewMessage"} <= named
    assert named <= set(lore.__all__)


def test_every_public_name_is_there_and_documented():
    for name in lore.__all__:
        found = getattr(lore, name)
        assert name == "__version__" or found.__doc__, name


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(lore, "Nonsense")


def test_every_export_list_is_sorted_and_true():
    for name in ("lore.errors", "lore.cli", "lore.embed", "lore.store.db"):
        module = importlib.import_module(name)
        assert list(module.__all__) == sorted(module.__all__)
        assert all(hasattr(module, public) for public in module.__all__)


def test_importing_the_package_loads_nothing_else():
    script = "import lore, sys; print(*[m for m in sys.modules if m.startswith('lore.')])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not done.stdout.strip()
