"""Sizing: tokens by the ratio of a session."""

from __future__ import annotations

from lore.context.sizing import Measure
from lore.text.tokens import UNCALIBRATED
from tests.context.talks import entry, result, text


def test_an_entry_has_the_tokens_of_its_blocks():
    measure = Measure(0.5)
    assert measure.of_entry(entry("user", text("abcd"), result("c", 100))) == 2 + 50


def test_before_anything_was_reported_more_is_assumed():
    assert Measure().of_chars(400) == 100 * UNCALIBRATED
