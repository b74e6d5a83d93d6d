from __future__ import annotations

import pytest

from lore.text.money import dollars


@pytest.mark.parametrize(
    ("usd", "told"),
    [(0, "$0.00"), (10, "$10.00"), (0.3, "$0.30"), (0.045, "$0.045"), (-0.0012, "-$0.0012")],
)
def test_an_amount_has_cents_and_their_parts_where_there_are_any(usd: float, told: str):
    assert dollars(usd) == told
