from __future__ import annotations

import pytest

from tests.llm.wire import running_provider


@pytest.fixture
def provider():
    with running_provider() as running:
        yield running
