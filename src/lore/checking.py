"""Checking: what callers hand over is held against the annotations, once, at the front desk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from datetime import UTC, datetime
from functools import cache, wraps
from inspect import signature
from numbers import Integral, Real
from types import FunctionType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    BinaryIO,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from lore.errors import InvalidInput
from lore.records import ORIGINS

_Called = TypeVar("_Called", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)
_Check = Callable[[Any], Any]

_LARGEST = 2**63 - 1
"""The store keeps whole numbers in 64 bits."""


class Bounds(NamedTuple):
    """How small and how large a number may be; `Annotated[int, Bounds(least=1)]`."""

    least: float = -_LARGEST
    most: float = _LARGEST

    def __str__(self) -> str:
        """Say it as it follows 'a number'."""
        if self.most < _LARGEST:
            return f" between {self.least:g} and {self.most:g}"
        return f" of at least {self.least:g}" if self.least > -_LARGEST else ""


_UNBOUNDED = Bounds()

Count = Annotated[int, Bounds(least=1)]
Seconds = Annotated[float, Bounds(least=0)]
Whole = Annotated[int, Bounds(least=0)]


class _Misfit(Exception):
    """A value that is not what its annotation says; `path` leads to it from the argument."""

    def __init__(self, wanted: str, value: object) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.value = value
        self.path = ""

    def within(self, step: str) -> _Misfit:
        """Return itself, one step further out."""
        self.path = step + self.path
        return self


def checked_class(cls: _Class) -> _Class:
    """Check what the public methods of a class are given."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, checked(member))
        elif isinstance(member, classmethod):
            setattr(cls, name, classmethod(checked(member.__func__)))
    return cls


def checked(function: _Called) -> _Called:
    """Check what a function is given: a wrong type is `InvalidInput`, said in a sentence."""
    names = tuple(signature(function).parameters)

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        checks = _checks_of(function)
        fit = [
            _fit(function, name, checks, value) for name, value in zip(names, given, strict=False)
        ]
        for name, value in named.items():
            named[name] = _fit(function, name, checks, value)
        return function(*fit, *given[len(fit) :], **named)

    return call  # type: ignore[return-value]  # it takes and gives what the function does


@cache
def _checks_of(function: Callable[..., Any]) -> dict[str, _Check]:
    hints = get_type_hints(function, include_extras=True)
    return {name: _check_for(hint) for name, hint in hints.items() if name != "return"}


def _fit(
    function: Callable[..., Any], name: str, checks: Mapping[str, _Check], value: object
) -> Any:
    if name not in checks:
        return value
    try:
        return checks[name](value)
    except _Misfit as misfit:
        place = f"{name}{misfit.path}"
        shown = _shown(misfit.value)
        msg = f"{function.__name__}() takes {misfit.wanted} as '{place}', not {shown}."
        raise InvalidInput(msg) from None


def _shown(value: object) -> str:
    """Return a value as an error names it: small numbers whole, of all else only the type."""
    if isinstance(value, int) and abs(value) > _LARGEST:
        return "one that large"
    if value is None or isinstance(value, int | float):
        return str(value)
    if isinstance(value, datetime):
        return "one without" if value.utcoffset() is None else "one that far away"
    return f"a value of type {type(value).__name__}"


def check_origin(origin: str) -> None:
    """Refuse what is no origin."""
    if origin not in ORIGINS:
        msg = f"'{origin}' is no origin."
        raise InvalidInput(msg, hint=f"Origins: {', '.join(ORIGINS)}.")


MOST_VALUES, DEEPEST_VALUES, MOST_VALUE_CHARS = 1_000, 8, 200_000
"""Of the fields beside a text. The largest schema of a kind has some 130 values on two levels, and
the characters are those that the text itself may have."""


def check_tree(name: str, tree: Mapping[str, Any]) -> None:
    """Refuse nested values that are too many, too deep or too long for what stands beside a text.

    Each of them is looked at by itself, so their number counts as much as their size.
    """
    level: list[Any] = [tree]
    depth = values = chars = 0
    while level:
        depth += 1
        inner = [one for value in level for one in _within(value)]
        names = [str(key) for value in level if isinstance(value, Mapping) for key in value]
        values += len(inner)
        chars += sum(map(len, names)) + sum(len(one) for one in inner if isinstance(one, str))
        level = [one for one in inner if isinstance(one, Mapping | list | tuple)]
        for size, most, told in (
            (values, MOST_VALUES, "values"),
            (depth, DEEPEST_VALUES, "levels"),
            (chars, MOST_VALUE_CHARS, "characters"),
        ):
            if size > most:
                msg = f"The {name} has more than {most:,} {told}."
                raise InvalidInput(msg, hint="Say the most of it in the text itself.")


def _within(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value


def _check_for(hint: Any) -> _Check:
    """Return the check for one annotation."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _number(*inner[:2])
    if origin is Literal:
        return _fitting("a text", _is(str))  # which one it must be, the rooms say themselves
    if origin is Callable:
        return _fitting("a function", callable)
    if origin in _COMPOSED:
        return _COMPOSED[origin](*(_check_for(arg) for arg in inner if arg is not Ellipsis))
    if isinstance(hint, type) and is_dataclass(hint):
        return _record(hint)
    return _PLAIN.get(hint) or _fitting(f"a value of type {hint.__name__}", _is(hint))


def _fitting(wanted: str, fits: Callable[[Any], bool]) -> _Check:
    def check(value: Any) -> Any:
        if not fits(value):
            raise _Misfit(wanted, value)
        return value

    return check


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _number(kind: type[int] | type[float], bounds: Bounds = _UNBOUNDED) -> _Check:
    wanted = f"a whole number{bounds}" if kind is int else f"a number{bounds}"
    is_number = _is(Integral if kind is int else Real)

    def check(value: Any) -> Any:
        if isinstance(value, bool) or not is_number(value):
            raise _Misfit(wanted, value)
        if not bounds.least <= value <= bounds.most:  # nor is it NaN, then
            raise _Misfit(wanted, value)
        return kind(value)

    return check


def _is_aware(value: Any) -> bool:
    """Tell whether a moment has a time zone, and lies within the calendar in UTC too."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        return False
    with suppress(OverflowError):
        return bool(value.astimezone(UTC))
    return False


def _is_writable(value: Any) -> bool:
    return callable(getattr(value, "write", None))


def _any_of(*checks: _Check) -> _Check:
    def check(value: Any) -> Any:
        wanted = []
        for one in checks:
            try:
                return one(value)
            except _Misfit as misfit:
                if misfit.path:
                    raise
                wanted.append(misfit.wanted)
        raise _Misfit(" or ".join(wanted), value)

    return check


def _sequence(check_item: _Check) -> _Check:
    def check(value: Any) -> Any:
        return tuple(_each(check_list(value), check_item))

    check_list = _fitting("a list", lambda v: isinstance(v, Sequence) and not _is_text(v))
    return check


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bytes | bytearray | memoryview)


def _iterable(check_item: _Check) -> _Check:
    """What comes one by one is checked when it comes."""

    def check(value: Any) -> Any:
        return _late(check_stream(value), check_item)

    check_stream = _fitting(
        "a list or a stream", lambda v: isinstance(v, Iterable) and not _is_text(v)
    )
    return check


def _each(values: Iterable[Any], check_item: _Check) -> Iterator[Any]:
    for place, value in enumerate(values):
        try:
            yield check_item(value)
        except _Misfit as misfit:
            raise misfit.within(f"[{place}]") from None


def _late(values: Iterable[Any], check_item: _Check) -> Iterator[Any]:
    try:
        yield from _each(values, check_item)
    except _Misfit as misfit:
        msg = f"{misfit.wanted} was expected at {misfit.path}, not {_shown(misfit.value)}."
        raise InvalidInput(msg[0].upper() + msg[1:]) from None


def _mapping(check_key: _Check, check_value: _Check) -> _Check:
    def check(value: Any) -> Any:
        for key, inner in check_mapping(value).items():
            try:
                check_key(key)
                check_value(inner)
            except _Misfit as misfit:
                raise misfit.within(f"[{key!r:.40}]") from None
        return value

    check_mapping = _fitting("a mapping", _is(Mapping))
    return check


def _record(kind: type) -> _Check:
    """Check a record with its fields; the record itself is handed on as it is."""

    def check(value: Any) -> Any:
        if not isinstance(value, kind):
            raise _Misfit(f"a {kind.__name__}", value)
        for name, check_field in _fields_of(kind).items():
            try:
                check_field(getattr(value, name))
            except _Misfit as misfit:
                raise misfit.within(f".{name}") from None
        return value

    return check


@cache
def _fields_of(kind: type) -> dict[str, _Check]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: _check_for(hint) for name, hint in hints.items()}


_COMPOSED: dict[Any, Callable[..., _Check]] = {
    Union: _any_of,
    UnionType: _any_of,
    tuple: _sequence,
    list: _sequence,
    Sequence: _sequence,
    Iterable: _iterable,
    dict: _mapping,
    Mapping: _mapping,
}

_PLAIN: dict[Any, _Check] = {
    Any: lambda value: value,
    str: _fitting("a text", _is(str)),
    bytes: _fitting("bytes", _is(bytes)),
    bool: _fitting("True or False", _is(bool)),
    int: _number(int),
    float: _number(float),
    NoneType: _fitting("None", _is(NoneType)),
    datetime: _fitting("a datetime with a time zone", _is_aware),
    BinaryIO: _fitting("a binary file", _is_writable),
}
