"""Every API that a route names has an adapter."""

from __future__ import annotations

from typing import get_args

from lore.gateway.apis import ADAPTERS
from lore.gateway.plugin_protocol import ApiName


def test_every_wire_that_a_path_may_lead_to_can_be_spoken():
    assert set(ADAPTERS) == set(get_args(ApiName)) - {""}
