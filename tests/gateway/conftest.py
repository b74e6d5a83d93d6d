from __future__ import annotations

import pytest

from tests.gateway.gateway_server import proxied
from tests.upstream import running_upstream


@pytest.fixture(scope="module")
def up():
    with running_upstream() as served:
        yield served


@pytest.fixture(scope="module")
def gateway(up, tmp_path_factory):
    with proxied(tmp_path_factory.mktemp("home"), up.url) as served:
        yield served
