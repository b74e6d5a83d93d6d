from __future__ import annotations

import pytest

from tests.engines import postgres_url as postgres_url
from tests.server.served import Served, database_of, serving


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path):
    """A server; on PostgreSQL for tests that `on_both_engines` marks."""
    with serving(tmp_path / "server", url=database_of(request)) as running:
        yield running


@pytest.fixture
def ann(served: Served) -> str:
    return served.add("ann")


@pytest.fixture
def ben(served: Served) -> str:
    return served.add("ben")
