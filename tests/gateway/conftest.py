from __future__ import annotations

import pytest

from tests.gateway.proxied import proxied
from tests.gateway.upstream import upstream


@pytest.fixture(scope="module")
def up():
    with upstream() as served:
        yield served


@pytest.fixture(scope="module")
def gateway(up, tmp_path_factory):
    with proxied(tmp_path_factory.mktemp("home"), up.url) as served:
        yield served
