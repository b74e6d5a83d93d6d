from __future__ import annotations

import pytest

from lore.budget.counterfactual import without_lore
from lore.records.dialogues import TokenUse


@pytest.mark.parametrize(
    ("used", "whole", "known", "cold", "without"),
    [
        # What was sent before is read, the rest is written.
        (TokenUse(5, 30_000, 1_000, 0, 7), 101_000, 100_000, False, (0, 100_000, 1_000, 0, 7)),
        # After a pause all is written.
        (TokenUse(5, 0, 31_000, 0, 7), 101_000, 100_000, True, (0, 0, 101_000, 0, 7)),
        # For an hour, where the client asks for that.
        (TokenUse(0, 30_000, 0, 900, 7), 101_000, 100_000, False, (0, 100_000, 0, 1_000, 7)),
        # A cache that costs nothing to write.
        (TokenUse(900, 30_000, 0, 0, 7), 101_000, 100_000, False, (1_000, 100_000, 0, 0, 7)),
        # No cache at all.
        (TokenUse(31_000, 0, 0, 0, 7), 101_000, 100_000, False, (101_000, 0, 0, 0, 7)),
        # An agent sends no more than the window.
        (TokenUse(5, 30_000, 1_000, 0, 7), 900_000, 890_000, False, (0, 200_000, 0, 0, 7)),
        # The history was shortened.
        (TokenUse(5, 30_000, 1_000, 0, 7), 80_000, 100_000, False, (0, 80_000, 0, 0, 7)),
    ],
)
def test_what_a_request_would_have_taken(used, whole, known, cold, without):
    found = without_lore(
        used, whole_tokens=whole, known_tokens=known, cold=cold, window_tokens=200_000
    )
    assert found == TokenUse(*without)
