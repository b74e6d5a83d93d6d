from __future__ import annotations

from lore.gateway.cache_invalidation import RecentMarkers


def test_the_latest_markers_are_known_and_older_ones_are_not():
    latest = RecentMarkers(max_size=2)
    for name in "abc":
        latest.add({name: f"call {name}"})
    assert [latest.find(name) for name in "abc"] == [None, "call b", "call c"]
    latest.clear()
    assert latest.find("c") is None
