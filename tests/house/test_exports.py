"""The public names of the package."""

import importlib
import subprocess
import sys

import lore


def test_public_names_are_sorted_and_unique():
    assert list(lore.__all__) == sorted(set(lore.__all__))


def test_the_package_has_few_public_names():
    assert len(lore.__all__) <= 20


def test_every_public_name_is_there_and_documented():
    for name in lore.__all__:
        assert name == "__version__" or getattr(lore, name).__doc__, name


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(lore, "Nonsense")


def test_every_export_list_is_sorted_and_true():
    for name in ("lore.errors", "lore.cli", "lore.embed", "lore.store.database"):
        module = importlib.import_module(name)
        assert list(module.__all__) == sorted(module.__all__)
        assert all(hasattr(module, public) for public in module.__all__)


def test_importing_the_package_loads_nothing_else():
    script = "import lore, sys; print(*[m for m in sys.modules if m.startswith('lore.')])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not done.stdout.strip()
