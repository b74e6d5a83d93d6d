"""Parse the time spans that a question names ('last week', 'in March', '8 May')."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from lore.errors import InvalidInput
from lore.text.regex import compile_lazy

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10, "couple of": 2, "a couple of": 2,
    "few": 3, "a few": 3,
}  # fmt: skip
_UNIT_HOURS = {
    "minute": 1 / 60, "hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24, "year": 365 * 24,
}  # fmt: skip
_FARTHEST = timedelta(days=36_500)
_LEAP_CYCLE_YEARS = 8
"""A 29 February recurs within this many years, also around 1900 and 2100."""

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_YEAR = r"(?P<year>(?:19|20)\d\d)"


class Span(NamedTuple):
    """A half-open time span, and the words that named it."""

    start: datetime
    end: datetime
    words: str


def since(text: str, now: datetime) -> datetime:
    """Return the start of the time that a text names; raise `InvalidInput` if it names none."""
    now = now if now.tzinfo else now.replace(tzinfo=UTC)
    start = (
        _parse_iso(text.strip())
        or _parse_hours_ago(text.strip(), now)
        or _parse_first_span(text, now)
    )
    if start is None:
        msg = f"'{text}' is not a time that Lore understands."
        hint = "Try 2026-05-08, 2026-05-08T14:30, 'last week' or 'three days ago'."
        raise InvalidInput(msg, hint=hint)
    return start


def _parse_iso(text: str) -> datetime | None:
    """Parse an ISO 8601 date, time or month; without a zone it is in UTC."""
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    day = match["month"] + "-01" if match["month"] else match["day"]
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(day + (match["time"] or "").upper())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _parse_hours_ago(text: str, now: datetime) -> datetime | None:
    """Parse 'ten minutes ago', for which whole days are too coarse."""
    match = _NEAR.fullmatch(text)
    return now - _distance(match) if match else None


def _parse_first_span(text: str, now: datetime) -> datetime | None:
    """Return the start of the first span, unless the text has digits outside its spans."""
    named, rest = spans(text, now), text.replace("\xa0", " ")
    for span in named:
        rest = rest.replace(span.words, " ", 1)
    return None if not named or _DIGIT.search(rest) else named[0].start


def spans(text: str, now: datetime) -> list[Span]:
    """Return the time spans that a text names, relative to `now`."""
    now = now if now.tzinfo else now.replace(tzinfo=UTC)
    text = text.replace("\xa0", " ")
    matches: list[tuple[int, int, tuple[datetime, datetime]]] = []
    used = bytearray(len(text))
    for pattern, parse_match in _PARSERS:
        for match in pattern.finditer(text):
            if any(used[match.start() : match.end()]):
                continue
            try:
                span = parse_match(match, now)
            except (ValueError, OverflowError):  # a day that no calendar has
                continue
            if span:
                used[match.start() : match.end()] = b"x" * (match.end() - match.start())
                matches.append((match.start(), match.end(), span))
    return [span for span in _join(text, matches) if span.start < span.end]


def _join(text: str, matches: list[tuple[int, int, tuple[datetime, datetime]]]) -> Iterator[Span]:
    """Apply the words before the spans: 'since', 'before', 'between … and'."""
    by_start = {start: (end, span) for start, end, span in matches}
    consumed: set[int] = set()
    for start, end, span in matches:
        if start in consumed:
            continue
        connector = _CONNECTOR.match(text, end)
        preposition = _PREPOSITION.search(text[max(0, start - _PREPOSITION_CHARS) : start])
        word = preposition[1].lower() if preposition else ""
        if word in ("between", "from") and connector and connector.end() in by_start:
            last, until = by_start[connector.end()]
            consumed.add(connector.end())
            first = min(span[0], until[0])
            yield Span(first, max(span[1], until[1]), text[start:last])
        else:
            yield Span(*_open_ended(word, span), text[start:end])


def _open_ended(word: str, span: tuple[datetime, datetime]) -> tuple[datetime, datetime]:
    """Open a span on one side for 'since', 'after', 'before' or 'until'."""
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


def _parse_date(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """Parse '8 May 2023', 'May 8' or '2023-05-08'; without a year, take the latest such day."""
    groups = match.groupdict()
    name = groups["month"].lower()
    month = int(name) if name.isdigit() else _month_number(name)
    day = int(groups["day"])
    if groups.get("year"):
        return _day(datetime(int(groups["year"]), month, day, tzinfo=UTC))
    for year in range(now.year, now.year - _LEAP_CYCLE_YEARS - 1, -1):
        with suppress(ValueError):
            date = datetime(year, month, day, tzinfo=UTC)
            if date <= now:
                return _day(date)
    return None


def _parse_month(match: re.Match[str], _now: datetime) -> tuple[datetime, datetime] | None:
    return _month(int(match["year"]), _month_number(match["month"].lower()))


def _parse_month_range(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """Parse 'between March and May' or 'from November to January 2024'."""
    first, last = _month_number(match["first"].lower()), _month_number(match["month"].lower())
    year = int(match["year"]) if match["year"] else now.year - (last > now.month)
    return _month(year - (first > last), first)[0], _month(year, last)[1]


def _month_number(name: str) -> int:
    return next(i for i, full in enumerate(MONTHS, 1) if full.startswith(name[:3]))


def _parse_year(match: re.Match[str], _now: datetime) -> tuple[datetime, datetime] | None:
    year = int(match["year"])
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)


def _parse_near_day(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    tokens = match.group(0).lower().split()
    if "before" in tokens:
        return _day(now - timedelta(days=2))
    if tokens[0] in ("yesterday", "last"):
        return _day(now - timedelta(days=1))
    return _day(now)


def _parse_period(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """Parse 'last week', 'this month' or 'last Tuesday'."""
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
    if not back:
        return _day(today + timedelta(days=_DAYS.index(unit) - today.weekday()))
    ago = (today.weekday() - _DAYS.index(unit)) % 7
    return _day(today - timedelta(days=ago or 7))


def _distance(match: re.Match[str]) -> timedelta:
    raw = " ".join(match["count"].lower().split())
    count = int(raw) if raw.isdigit() else _COUNTS[raw]
    return timedelta(hours=count * _UNIT_HOURS[match["unit"].lower()])


def _parse_ago(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """Parse 'three weeks ago', with a margin that grows with the distance."""
    distance = _distance(match)
    if distance > _FARTHEST:
        return None
    margin = timedelta(days=distance.days // 7)
    start, end = _day(now - distance)
    return start - margin, end + margin


def _parse_past(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """Parse 'in the last three days'."""
    distance = _distance(match)
    if distance > _FARTHEST:
        return None
    return now - distance, now + timedelta(days=1)


_COUNT = (
    r"(?P<count>\d{1,4}|(?:a\s+)?couple\s+of|(?:a\s+)?few|an?|one|two|three|four|five|six|seven"
    r"|eight|nine|ten)"
)
_UNIT = r"(?P<unit>hour|day|week|month|year)s?"

_NEAR = compile_lazy(
    rf"(?:since\s+)?{_COUNT}\s+(?P<unit>minute|hour)s?\s+ago", re.IGNORECASE | re.ASCII
)
_ISO = compile_lazy(
    r"(?P<month>\d{4}-\d\d)|(?P<day>\d{4}-\d\d-\d\d|\d{8})(?P<time>[T ]\d\d\S*)?",
    re.IGNORECASE | re.ASCII,
)
_DIGIT = compile_lazy(r"\d")

_FIRST_MONTH = _MONTH.replace("<month>", "<first>")
_NAMES_MONTH = (
    r"(?:(?<=\bin\s)|(?<=\bduring\s)|(?<=\bsince\s)|(?<=\bafter\s)|(?<=\bfrom\s)"
    r"|(?<=\bbefore\s)|(?<=\buntil\s)|(?<=\btill\s)|(?<=\blast\s))"
)
"""What must precede a month without a year; alone, 'may' and 'march' are verbs."""

_PREPOSITION = compile_lazy(
    r"\b(since|after|from|before|until|till|between)\s+(?:the\s+)?$", re.IGNORECASE | re.ASCII
)
_PREPOSITION_CHARS = 16
_CONNECTOR = compile_lazy(r"\s{1,4}(?:and|to|until|till)\s{1,4}", re.IGNORECASE | re.ASCII)

SpanParser = Callable[[re.Match[str], datetime], tuple[datetime, datetime] | None]


_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_PERHAPS_YEAR = rf"(?:,?\s+{_YEAR}\b)?"


def _compile_parsers() -> Iterator[tuple[re.Pattern[str], SpanParser]]:
    for pattern, parse_match in (
        (
            r"\b(?P<year>\d{4})-(?P<month>0?[1-9]|1[0-2])-(?P<day>\d{1,2})(?:\b|(?=T\d))",
            _parse_date,
        ),
        (rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}\b{_PERHAPS_YEAR}", _parse_date),
        (rf"\b{_MONTH}\s+{_DAY}\b{_PERHAPS_YEAR}", _parse_date),
        (
            rf"\b(?:between|from)\s+{_FIRST_MONTH}\s+(?:and|to|until|till)\s+{_MONTH}\b"
            + _PERHAPS_YEAR,
            _parse_month_range,
        ),
        (rf"\b(?:in\s+(?:the\s+)?)?(?:last|past)\s+{_COUNT}\s+{_UNIT}\b", _parse_past),
        (rf"\b{_COUNT}\s+{_UNIT}\s+ago\b", _parse_ago),
        (rf"\b{_MONTH}(?:\s+of)?,?\s+{_YEAR}\b", _parse_month),
        (rf"{_NAMES_MONTH}{_MONTH}\b", _parse_in_month),
        (
            r"\b(?:(?:the\s+)?day\s+before\s+yesterday|yesterday|today|last\s+night"
            r"|this\s+(?:morning|afternoon|evening)|tonight)\b",
            _parse_near_day,
        ),
        (
            r"\b(?P<which>last|this|previous|past)"
            rf"\s+(?P<unit>week|weekend|month|year|{'|'.join(_DAYS)})\b",
            _parse_period,
        ),
        (rf"\b{_YEAR}\b", _parse_year),
    ):
        yield compile_lazy(pattern, re.IGNORECASE | re.ASCII), parse_match


def _parse_in_month(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    month = _month_number(match["month"].lower())
    past = match.string[max(0, match.start() - 5) : match.start()].lower().strip() == "last"
    return _month(now.year - (month > now.month - past), month)


_PARSERS = tuple(_compile_parsers())
