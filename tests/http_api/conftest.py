from __future__ import annotations

import pytest

from lore.http.request_limits import Limits
from tests.http_api.live_server import serving


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    unbounded = Limits(requests_per_minute=0, anonymous_per_minute=0)
    with serving(tmp_path_factory.mktemp("home"), limits=unbounded) as running:
        yield running
