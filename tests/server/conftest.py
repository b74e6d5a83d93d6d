from __future__ import annotations

import pytest

from tests.server.served import Served, serving


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path / "server") as running:
        yield running


@pytest.fixture
def ann(served: Served) -> str:
    return served.add("ann")


@pytest.fixture
def ben(served: Served) -> str:
    return served.add("ben")
