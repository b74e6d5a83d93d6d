"""Tests of SQLite itself run on it alone."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Do not run these tests on another engine."""
