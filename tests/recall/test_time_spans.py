from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.recall.time_spans import since, spans

NOW = datetime(2024, 5, 15, 14, 30, tzinfo=UTC)
"""A Wednesday in a leap year."""

ALWAYS = datetime.min.replace(tzinfo=UTC)
FOREVER = datetime.max.replace(tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def named(text: str, now: datetime = NOW) -> list[tuple[datetime, datetime]]:
    return [(span.start, span.end) for span in spans(text, now)]


DAYS_AND_PERIODS = [
    ("today", "2024-05-15", "2024-05-16"),
    ("tonight", "2024-05-15", "2024-05-16"),
    ("this morning", "2024-05-15", "2024-05-16"),
    ("this afternoon", "2024-05-15", "2024-05-16"),
    ("this evening", "2024-05-15", "2024-05-16"),
    ("yesterday", "2024-05-14", "2024-05-15"),
    ("last night", "2024-05-14", "2024-05-15"),
    ("day before yesterday", "2024-05-13", "2024-05-14"),
    ("the day before yesterday", "2024-05-13", "2024-05-14"),
    ("this week", "2024-05-13", "2024-05-20"),
    ("last week", "2024-05-06", "2024-05-13"),
    ("previous week", "2024-05-06", "2024-05-13"),
    ("this weekend", "2024-05-18", "2024-05-20"),
    ("last weekend", "2024-05-11", "2024-05-13"),
    ("this month", "2024-05-01", "2024-06-01"),
    ("last month", "2024-04-01", "2024-05-01"),
    ("this year", "2024-01-01", "2025-01-01"),
    ("last year", "2023-01-01", "2024-01-01"),
    ("last Monday", "2024-05-13", "2024-05-14"),
    ("last Tuesday", "2024-05-14", "2024-05-15"),
    ("last Wednesday", "2024-05-08", "2024-05-09"),
    ("last Thursday", "2024-05-09", "2024-05-10"),
    ("past Sunday", "2024-05-12", "2024-05-13"),
    ("this Monday", "2024-05-13", "2024-05-14"),
    ("this Wednesday", "2024-05-15", "2024-05-16"),
    ("this Friday", "2024-05-17", "2024-05-18"),
    ("LAST WEEK", "2024-05-06", "2024-05-13"),
    ("last\u00a0week", "2024-05-06", "2024-05-13"),
]
DATES = [
    ("2023-05-08", "2023-05-08", "2023-05-09"),
    ("2023-5-8", "2023-05-08", "2023-05-09"),
    ("2023-12-31", "2023-12-31", "2024-01-01"),
    ("2024-02-29", "2024-02-29", "2024-03-01"),
    ("8 May 2023", "2023-05-08", "2023-05-09"),
    ("8th of May, 2023", "2023-05-08", "2023-05-09"),
    ("May 8, 2023", "2023-05-08", "2023-05-09"),
    ("May 8th 2023", "2023-05-08", "2023-05-09"),
    ("1st Jan 2020", "2020-01-01", "2020-01-02"),
    ("Sept 3, 2021", "2021-09-03", "2021-09-04"),
    ("8 May", "2024-05-08", "2024-05-09"),
    ("May 15", "2024-05-15", "2024-05-16"),
    ("May 16", "2023-05-16", "2023-05-17"),
    ("24 December", "2023-12-24", "2023-12-25"),
    ("29 February", "2024-02-29", "2024-03-01"),
    ("February 29", "2024-02-29", "2024-03-01"),
]
MONTHS_AND_YEARS = [
    ("in March", "2024-03-01", "2024-04-01"),
    ("in May", "2024-05-01", "2024-06-01"),
    ("in June", "2023-06-01", "2023-07-01"),
    ("in december", "2023-12-01", "2024-01-01"),
    ("during April", "2024-04-01", "2024-05-01"),
    ("last March", "2024-03-01", "2024-04-01"),
    ("last May", "2023-05-01", "2023-06-01"),
    ("March 2023", "2023-03-01", "2023-04-01"),
    ("March of 2023", "2023-03-01", "2023-04-01"),
    ("Feb 2024", "2024-02-01", "2024-03-01"),
    ("December 2023", "2023-12-01", "2024-01-01"),
    ("in 2022", "2022-01-01", "2023-01-01"),
    ("1999", "1999-01-01", "2000-01-01"),
]
DISTANCES = [
    ("3 days ago", "2024-05-12", "2024-05-13"),
    ("a day ago", "2024-05-14", "2024-05-15"),
    ("a couple of days ago", "2024-05-13", "2024-05-14"),
    ("a few\n days ago", "2024-05-12", "2024-05-13"),
    ("two weeks ago", "2024-04-29", "2024-05-04"),
    ("a month ago", "2024-04-11", "2024-04-20"),
    ("an hour ago", "2024-05-15", "2024-05-16"),
    ("30 hours ago", "2024-05-14", "2024-05-15"),
    ("one year ago", "2023-03-25", "2023-07-08"),
    ("in the last three days", "2024-05-12T14:30", "2024-05-16T14:30"),
    ("past 2 weeks", "2024-05-01T14:30", "2024-05-16T14:30"),
    ("last couple of days", "2024-05-13T14:30", "2024-05-16T14:30"),
    ("last 48 hours", "2024-05-13T14:30", "2024-05-16T14:30"),
    ("last few months", "2024-02-15T14:30", "2024-05-16T14:30"),
]
JOINED = [
    ("between March and April", "2024-03-01", "2024-05-01"),
    ("between March and May 2023", "2023-03-01", "2023-06-01"),
    ("from November to January", "2023-11-01", "2024-02-01"),
    ("between 2024-01-01 and 2024-02-01", "2024-01-01", "2024-02-02"),
    ("between 8 May 2023 and yesterday", "2023-05-08", "2024-05-15"),
    ("from 2021 to 2022", "2021-01-01", "2023-01-01"),
    ("between 2022 and 2021", "2021-01-01", "2023-01-01"),
]


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [*DAYS_AND_PERIODS, *DATES, *MONTHS_AND_YEARS, *DISTANCES, *JOINED],
)
def test_phrase_names_expected_span(words, start, end):
    assert named(words) == [(at(start), at(end))]
    assert named(f"What did we do {words}?") == [(at(start), at(end))]


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("since 2024-01-02", at("2024-01-02"), FOREVER),
        ("since yesterday", at("2024-05-14"), FOREVER),
        ("since March", at("2024-03-01"), FOREVER),
        ("from last week", at("2024-05-06"), FOREVER),
        ("after 8 May", at("2024-05-09"), FOREVER),
        ("after the 8 May", at("2024-05-09"), FOREVER),
        ("after last week", at("2024-05-13"), FOREVER),
        ("before 2023", ALWAYS, at("2023-01-01")),
        ("before last month", ALWAYS, at("2024-04-01")),
        ("until yesterday", ALWAYS, at("2024-05-14")),
        ("till June", ALWAYS, at("2023-06-01")),
    ],
)
def test_since_and_before_open_a_span(words, start, end):
    assert named(words) == [(start, end)]


@pytest.mark.parametrize(
    ("words", "now", "start", "end"),
    [
        ("yesterday", "2024-01-01T08:00", "2023-12-31", "2024-01-01"),
        ("last month", "2024-01-31T08:00", "2023-12-01", "2024-01-01"),
        ("last month", "2024-03-31T08:00", "2024-02-01", "2024-03-01"),
        ("last week", "2024-01-03T08:00", "2023-12-25", "2024-01-01"),
        ("this month", "2024-12-15T08:00", "2024-12-01", "2025-01-01"),
        ("yesterday", "2024-03-01T08:00", "2024-02-29", "2024-03-01"),
        ("yesterday", "2023-03-01T08:00", "2023-02-28", "2023-03-01"),
        ("last Monday", "2024-05-13T08:00", "2024-05-06", "2024-05-07"),
        ("this Monday", "2024-05-13T08:00", "2024-05-13", "2024-05-14"),
        ("last Sunday", "2024-05-13T08:00", "2024-05-12", "2024-05-13"),
        ("in March", "2024-02-10T08:00", "2023-03-01", "2023-04-01"),
        ("in March", "2024-03-10T08:00", "2024-03-01", "2024-04-01"),
        ("in March", "2024-04-10T08:00", "2024-03-01", "2024-04-01"),
        ("29 February", "2024-01-15T08:00", "2020-02-29", "2020-03-01"),
        ("29 February", "2023-06-15T08:00", "2020-02-29", "2020-03-01"),
        ("31 December", "2024-01-01T08:00", "2023-12-31", "2024-01-01"),
        ("last weekend", "2024-05-12T08:00", "2024-05-04", "2024-05-06"),
        ("this weekend", "2024-05-12T08:00", "2024-05-11", "2024-05-13"),
    ],
)
def test_spans_cross_month_and_year_ends(words, now, start, end):
    assert named(words, at(now)) == [(at(start), at(end))]


@pytest.mark.parametrize(
    "words",
    [
        "",
        "nothing about time",
        "I may march on",
        "may I ask",
        "0000-01-01",
        "9999-12-31",
        "31 April",
        "0 May",
        "9999 years ago",
        "12345",
        "v2.2023x",
        "lastweek",
        "before 0001-01-01",
        "1 \u017fept",
        "last \u017funday",
        "last fr\u0130day",
        "weekends",
        "ago",
        "since when",
    ],
)
def test_phrase_names_no_span(words):
    assert named(words) == []


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("30 February 2024", "2024-02-01", "2024-03-01"),
        ("2023-02-30", "2023-01-01", "2024-01-01"),
        ("2023-13-01", "2023-01-01", "2024-01-01"),
    ],
)
def test_invalid_day_falls_back_to_month_or_year(words, start, end):
    assert named(words) == [(at(start), at(end))]


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ("2024-05-08", "2024-05-08"),
        (" 2024-05-08 ", "2024-05-08"),
        ("20240508", "2024-05-08"),
        ("2024-05", "2024-05-01"),
        ("2024", "2024-01-01"),
        ("2024-05-08T12:00", "2024-05-08T12:00"),
        ("2024-05-08 12:00", "2024-05-08T12:00"),
        ("2024-05-08T12:00:30.5", "2024-05-08T12:00:30.500"),
        ("2024-05-08T12:00:30Z", "2024-05-08T12:00:30"),
        ("2024-05-08t12:00:30z", "2024-05-08T12:00:30"),
        ("2024-05-08T12:00+02:00", "2024-05-08T10:00"),
        ("3 hours ago", "2024-05-15T11:30"),
        ("since an hour ago", "2024-05-15T13:30"),
        ("20 hours ago", "2024-05-14T18:30"),
        ("5 minutes ago", "2024-05-15T14:25"),
        ("since yesterday", "2024-05-14"),
        ("3 days ago", "2024-05-12"),
        ("last week", "2024-05-06"),
        ("the last 2 days", "2024-05-13T14:30"),
        ("between 2024-01-01 and 2024-02-01", "2024-01-01"),
    ],
)
def test_since_returns_start_of_named_time(words, start):
    assert since(words, NOW) == at(start)


@pytest.mark.parametrize(
    "words",
    [
        "whenever", "", "2024/05/08", "08.05.2024", "2024-05-08x", "2024-5-8x", "2024-02-30",
        "2024-13", "2024-05-08T25:00", "2024-05-08T12:00x", "2024-05-08 at 5", "2024-Q2", "5",
        "yesterday 14:00", "99999 hours ago", "9999 years ago", "0001-01-01T00:00+14:00",
    ],
)  # fmt: skip
def test_since_refuses_text_without_a_time(words):
    with pytest.raises(InvalidInput, match="not a time that Lore understands"):
        since(words, NOW)


def test_relative_hours_use_utc_without_a_zone():
    assert since("2 hours ago", NOW.replace(tzinfo=None)) == NOW - timedelta(hours=2)


def test_timestamp_in_question_names_its_day():
    assert named("What broke at 2023-05-08T12:00:00Z?") == [(at("2023-05-08"), at("2023-05-09"))]


def test_each_span_keeps_its_words():
    found = spans("Was it on 8 May 2023, last week or 3 days ago?", NOW)
    assert sorted(span.words for span in found) == ["3 days ago", "8 May 2023", "last week"]


def test_now_without_zone_is_utc():
    assert named("8 May", NOW.replace(tzinfo=None)) == named("8 May")


def test_day_starts_at_midnight_of_the_zone_of_now():
    eastern = timezone(timedelta(hours=9))
    assert named("today", datetime(2024, 5, 16, 1, tzinfo=eastern)) == [
        (datetime(2024, 5, 16, tzinfo=eastern), datetime(2024, 5, 17, tzinfo=eastern))
    ]


PIECES = [
    "since ", "before ", "between ", " and ", "from ", " to ", "last ", "this ", "week", "May ",
    "march ", "in ", "2024", "2023-05-08", "0001-01-01", "9999-12-31", "29 ", "31 ", "Feb ", "3 ",
    "days ", "years ", "hours ", "ago", "a few ", "Monday", "yesterday", "day before ", "the ",
    "٣ ", "\u017f", "\u0130", "\u00a0", "x", ", ",
]  # fmt: skip


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=8).map("".join)),
    st.integers(0, 80_000).map(lambda days: NOW.replace(year=1970) + timedelta(days=days)),
)
def test_any_text_parses_into_spans_of_positive_length(text, now):
    for span in spans(text, now):
        assert span.start < span.end
        assert span.start.tzinfo is not None
        assert span.end.tzinfo is not None
        assert span.words in text.replace("\u00a0", " ")
    with suppress(InvalidInput):
        assert since(text, now).tzinfo is not None
