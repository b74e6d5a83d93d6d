from __future__ import annotations

from lore.memory.passing import LATE, Passing


def test_requests_are_counted_with_why_they_went_without_memory():
    passing = Passing()
    for why in ("", LATE, LATE, "StoreBusy"):
        passing.count(why)
    assert passing.requests == 4
    assert passing.degraded() == {LATE: 2, "StoreBusy": 1}
