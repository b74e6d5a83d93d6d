from __future__ import annotations

import pytest

from tests.llm.provider_server import running_provider


@pytest.fixture
def provider():
    with running_provider() as running:
        yield running
