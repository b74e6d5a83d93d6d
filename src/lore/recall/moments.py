"""Moments: the spans of time that a question speaks of ('last week', 'in March', '8 May')."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10, "couple of": 2, "a couple of": 2,
    "few": 3, "a few": 3,
}  # fmt: skip
_UNIT_DAYS = {"hour": 0, "day": 1, "week": 7, "month": 30, "year": 365}

_MONTH = r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
_YEAR = r"(?P<year>(?:19|20)\d\d)"


class Span(NamedTuple):
    """A stretch of time, its end not included, and the words that named it."""

    start: datetime
    end: datetime
    words: str


def spans(text: str, now: datetime) -> list[Span]:
    """Return the stretches of time that a text names, relative to `now`."""
    found: list[Span] = []
    taken: list[tuple[int, int]] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            span = read(match, now)
            if span:
                taken.append((match.start(), match.end()))
                found.append(Span(*_opened(text, match.start(), span), match.group(0)))
    return found


def _opened(
    text: str, place: int, span: tuple[datetime, datetime]
) -> tuple[datetime, datetime]:
    """Let 'since' and 'before' in front of a moment open the span on one side."""
    before = text[max(0, place - 12) : place].lower().split()
    word = before[-1] if before else ""
    if word in ("since", "after", "from"):
        return (span[1] if word == "after" else span[0], datetime.max.replace(tzinfo=UTC))
    if word in ("before", "until", "till"):
        return (datetime.min.replace(tzinfo=UTC), span[0])
    return span


def _day(moment: datetime, days: int = 1) -> tuple[datetime, datetime]:
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return start, start + timedelta(days=days)


def _month(year: int, month: int) -> tuple[datetime, datetime]:
    start = datetime(year, month, 1, tzinfo=UTC)
    end = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    return start, end


def _read_date(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """Read '8 May 2023', 'May 8', '2023-05-08'; without a year the latest such day."""
    groups = match.groupdict()
    name = groups["month"].lower()
    month = int(name) if name.isdigit() else _month_number(name)
    year = int(groups["year"]) if groups.get("year") else None
    try:
        if year is None:
            date = datetime(now.year, month, int(groups["day"]), tzinfo=UTC)
            if date > now:
                date = date.replace(year=now.year - 1)
        else:
            date = datetime(year, month, int(groups["day"]), tzinfo=UTC)
    except ValueError:
        return None
    return _day(date)


def _read_month(match: re.Match[str], _now: datetime) -> tuple[datetime, datetime] | None:
    return _month(int(match["year"]), _month_number(match["month"].lower()))


def _month_number(name: str) -> int:
    return next(i for i, full in enumerate(_MONTHS, 1) if full.startswith(name[:3]))


def _read_year(match: re.Match[str], _now: datetime) -> tuple[datetime, datetime] | None:
    year = int(match["year"])
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)


def _read_near(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    word = match.group(0).lower()
    if word.startswith(("yesterday", "last night")):
        return _day(now - timedelta(days=1))
    if word.startswith("day before"):
        return _day(now - timedelta(days=2))
    return _day(now)


def _read_period(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """Read 'last week', 'this month', 'last Tuesday'."""
    back = 0 if match["which"].lower() == "this" else 1
    unit = match["unit"].lower()
    today, _ = _day(now)
    if unit == "week":
        start = today - timedelta(days=today.weekday() + 7 * back)
        return start, start + timedelta(days=7)
    if unit == "weekend":
        start = today - timedelta(days=today.weekday() + 7 * back - 5)
        return start, start + timedelta(days=2)
    if unit == "month":
        months = now.year * 12 + now.month - 1 - back
        return _month(months // 12, months % 12 + 1)
    if unit == "year":
        return (
            datetime(now.year - back, 1, 1, tzinfo=UTC),
            datetime(now.year - back + 1, 1, 1, tzinfo=UTC),
        )
    ago = (today.weekday() - _DAYS.index(unit)) % 7
    return _day(today - timedelta(days=ago or 7))


def _read_ago(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """Read 'three weeks ago', with a margin that grows with the distance."""
    raw = match["count"].lower()
    count = int(raw) if raw.isdigit() else _COUNTS.get(raw, 1)
    days = count * _UNIT_DAYS[match["unit"].lower()]
    if days > 36_500:
        return None
    middle = now - timedelta(days=days)
    margin = timedelta(days=max(0, days // 7))
    start, end = _day(middle)
    return start - margin, end + margin


def _read_past(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """Read 'in the last three days'."""
    raw = (match["count"] or "one").strip().lower()
    count = int(raw) if raw.isdigit() else _COUNTS.get(raw, 1)
    days = count * max(1, _UNIT_DAYS[match["unit"].lower()])
    if days > 36_500:
        return None
    return now - timedelta(days=days), now + timedelta(days=1)


_COUNT = r"(?P<count>\d{1,4}|(?:a\s+)?couple\s+of|(?:a\s+)?few|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_UNIT = r"(?P<unit>hour|day|week|month|year)s?"

Reader = Callable[[re.Match[str], datetime], tuple[datetime, datetime] | None]


def _compiled() -> Iterator[tuple[re.Pattern[str], Reader]]:
    for pattern, read in (
        (r"\b(?P<year>\d{4})-(?P<month>0?[1-9]|1[0-2])-(?P<day>\d{1,2})\b", _read_date),
        (rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b(?:,?\s+{_YEAR})?", _read_date),
        (rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+{_YEAR})?", _read_date),
        (rf"\b(?:in\s+(?:the\s+)?)?(?:last|past)\s+{_COUNT}\s+{_UNIT}\b", _read_past),
        (rf"\b{_COUNT}\s+{_UNIT}\s+ago\b", _read_ago),
        (rf"\b{_MONTH}(?:\s+of)?,?\s+{_YEAR}\b", _read_month),
        (rf"\b(?<=in\s){_MONTH}\b|\b(?<=during\s){_MONTH.replace('month', 'month2')}\b", _read_in_month),
        (r"\b(?:the\s+)?day before yesterday\b|\byesterday\b|\btoday\b|\blast night\b|\bthis (?:morning|afternoon|evening)\b|\btonight\b", _read_near),
        (rf"\b(?P<which>last|this|previous|past)\s+(?P<unit>week|weekend|month|year|{'|'.join(_DAYS)})\b", _read_period),
        (rf"\b{_YEAR}\b", _read_year),
    ):  # fmt: skip
        yield re.compile(pattern, re.IGNORECASE), read


def _read_in_month(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    name = (match["month"] or match["month2"]).lower()
    month = _month_number(name)
    return _month(now.year - (month > now.month), month)


_READERS = tuple(_compiled())
