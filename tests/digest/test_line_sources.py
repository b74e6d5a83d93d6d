from __future__ import annotations

from lore.digest import distillation
from lore.records import LogLine, Segment
from tests.digest.conversations import message_text

SEGMENT = Segment(
    "s",
    (
        message_text(4, "The berth in Bergen costs 40 crowns"),
        message_text(5, "The lamp of the lighthouse has a new fuse"),
        message_text(6, "It was 2026-05-13"),
    ),
)


def sources(*lines: LogLine) -> list[tuple[int, ...]]:
    return [line.sources for line in distillation.verify_sources(lines, SEGMENT)]


def test_sources_outside_the_segment_are_not_believed():
    assert sources(LogLine("They spoke of okapis for long", (4, 99))) == [(4,)]


def test_a_line_without_sources_is_traced_by_its_words():
    told = LogLine("Mara learned that the Bergen berth costs 40 crowns now")
    assert sources(told, LogLine("okapis zebras giraffes")) == [(4,), ()]


def test_a_heading_has_no_sources():
    assert sources(LogLine("2026-05-13"), LogLine("Decisions:")) == [(), ()]


def test_a_line_with_false_sources_is_traced_too():
    assert sources(LogLine("The lamp has a new fuse", (77,))) == [(5,)]
