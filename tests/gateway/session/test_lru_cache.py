from __future__ import annotations

from lore.gateway.session.session_registry import LruCache


class Kept:
    """Something that can be told from another."""


def test_what_was_not_asked_for_lately_is_let_go_of():
    recent = LruCache[Kept](2)
    for name in ("a", "b"):
        recent.add(name, Kept())
    assert recent.find("a") is not None
    recent.add("c", Kept())
    assert recent.find("b") is None
    assert recent.find("a") is not None


def test_what_somebody_works_on_stays_the_same():
    recent = LruCache[Kept](2)
    in_use = recent.add("a", Kept())
    for name in ("b", "c", "d"):
        recent.add(name, Kept())
    assert recent.find("a") is in_use
    assert recent.add("a", Kept()) is in_use


def test_of_two_that_come_at_once_the_first_is_held():
    recent, first = LruCache[Kept](2), Kept()
    recent.add("a", first)
    assert recent.add("a", Kept()) is first
