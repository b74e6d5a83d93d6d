"""Validation of arguments by their annotations, at the public methods of the library.

Own code, because importing pydantic's `validate_call` takes over 100 ms (this module: some 2 ms),
and msgspec accepts records and streams without checking their contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from datetime import UTC, datetime
from functools import cache, wraps
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
"""The store has 64-bit integers."""


class Bounds(NamedTuple):
    """The range of a number: `Annotated[int, Bounds(least=1)]`."""

    least: float = -_LARGEST
    most: float = _LARGEST

    def __str__(self) -> str:
        """Return the range as it follows 'a number' in a message."""
        if self.most < _LARGEST:
            return f" between {self.least:g} and {self.most:g}"
        return f" of at least {self.least:g}" if self.least > -_LARGEST else ""


_UNBOUNDED = Bounds()

Count = Annotated[int, Bounds(least=1)]
Seconds = Annotated[float, Bounds(least=0, most=1e9)]
"""At most some 30 years: locks and events overflow on more."""

Whole = Annotated[int, Bounds(least=0)]


class _TypeMismatch(Exception):
    """A value that does not match its annotation; `path` leads to it from the argument."""

    def __init__(self, wanted: str, value: object) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.value = value
        self.path = ""

    def prefixed(self, step: str) -> _TypeMismatch:
        """Return the error with one more step in front of its path."""
        self.path = step + self.path
        return self


def validate_methods(cls: _Class) -> _Class:
    """Validate the arguments of all public methods of a class."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, validate_arguments(member))
        elif isinstance(member, classmethod):
            setattr(cls, name, classmethod(validate_arguments(member.__func__)))
    return cls


def validate_arguments(function: _Called) -> _Called:
    """Validate the arguments of a function; raise `InvalidInput` for a wrong type."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]

    @wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        checks = _checks_of(function)
        fit = [
            _convert_argument(function, name, checks, value)
            for name, value in zip(names, positional, strict=False)
        ]
        for name, value in named.items():
            named[name] = _convert_argument(function, name, checks, value)
        return function(*fit, *positional[len(fit) :], **named)

    return call  # type: ignore[return-value]  # it takes and gives what the function does


@cache
def _checks_of(function: Callable[..., Any]) -> dict[str, _Check]:
    hints = get_type_hints(function, include_extras=True)
    return {name: _check_for(hint) for name, hint in hints.items() if name != "return"}


def _convert_argument(
    function: Callable[..., Any], name: str, checks: Mapping[str, _Check], value: object
) -> Any:
    if name not in checks:
        return value
    try:
        return checks[name](value)
    except _TypeMismatch as misfit:
        place = f"{name}{misfit.path}"
        shown = _describe_value(misfit.value)
        msg = f"{function.__name__}() takes {misfit.wanted} as '{place}', not {shown}."
        raise InvalidInput(msg) from None


def _describe_value(value: object) -> str:
    """Return a value for a message: small numbers as they are, of others only the type."""
    if isinstance(value, int) and abs(value) > _LARGEST:
        return "one that large"
    if value is None or isinstance(value, int | float):
        return str(value)
    if isinstance(value, datetime):
        return "one without" if value.utcoffset() is None else "one that far away"
    return f"a value of type {type(value).__name__}"


def check_origin(origin: str) -> None:
    """Raise an error if a text is not an origin."""
    if origin not in ORIGINS:
        raise InvalidInput(f"'{origin}' is not an origin.", hint=f"Origins: {', '.join(ORIGINS)}.")


MOST_VALUES, DEEPEST_VALUES, MOST_VALUE_CHARS = 1_000, 8, 200_000
"""Limits of a payload.

The largest schema has some 130 values on two levels; the text itself may have as many characters.
"""


def check_nested_values(name: str, tree: Mapping[str, Any]) -> None:
    """Raise an error if a payload has too many values, levels or characters."""
    level: list[Any] = [tree]
    depth = values = chars = 0
    while level:
        depth += 1
        inner = [one for value in level for one in _within(value)]
        names = [str(key) for value in level if isinstance(value, Mapping) for key in value]
        values += len(inner)
        chars += sum(map(len, names)) + sum(len(one) for one in inner if isinstance(one, str))
        level = [one for one in inner if isinstance(one, Mapping | list | tuple)]
        for size, most, unit in (
            (values, MOST_VALUES, "values"),
            (depth, DEEPEST_VALUES, "levels"),
            (chars, MOST_VALUE_CHARS, "characters"),
        ):
            if size > most:
                msg = f"The {name} has more than {most:,} {unit}."
                raise InvalidInput(msg, hint="Put most of it into the text itself.")


def _within(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value


def _check_for(hint: Any) -> _Check:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _number(*inner[:2])
    if origin is Literal:
        return _check_predicate("a text", _is(str))  # the callee checks which texts are valid
    if origin is Callable:
        return _check_predicate("a function", callable)
    if origin in _COMPOSED:
        return _COMPOSED[origin](*(_check_for(arg) for arg in inner if arg is not Ellipsis))
    if isinstance(hint, type) and is_dataclass(hint):
        return _record(hint)
    return _PLAIN.get(hint) or _check_predicate(f"a value of type {hint.__name__}", _is(hint))


def _check_predicate(wanted: str, fits: Callable[[Any], bool]) -> _Check:
    def check(value: Any) -> Any:
        if not fits(value):
            raise _TypeMismatch(wanted, value)
        return value

    return check


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _number(kind: type[int] | type[float], bounds: Bounds = _UNBOUNDED) -> _Check:
    wanted = f"a whole number{bounds}" if kind is int else f"a number{bounds}"
    is_number = _is(Integral if kind is int else Real)

    def check(value: Any) -> Any:
        is_exact = type(value) is kind  # the abstract classes take ten times as long
        if not is_exact and (isinstance(value, bool) or not is_number(value)):
            raise _TypeMismatch(wanted, value)
        if not bounds.least <= value <= bounds.most:  # this refuses NaN too
            raise _TypeMismatch(wanted, value)
        return kind(value)

    return check


def _is_aware(value: Any) -> bool:
    """Return whether a datetime has a time zone and is valid in UTC too."""
    if not isinstance(value, datetime):
        return False
    if value.tzinfo is UTC:
        return True
    if value.utcoffset() is None:
        return False
    with suppress(OverflowError):
        return bool(value.astimezone(UTC))
    return False


def _is_writable(value: Any) -> bool:
    return callable(getattr(value, "write", None))


def _any_of(*checks: _Check) -> _Check:
    is_optional = _PLAIN[NoneType] in checks

    def check(value: Any) -> Any:
        if value is None and is_optional:
            return None
        wanted = []
        for one in checks:
            try:
                return one(value)
            except _TypeMismatch as misfit:
                if misfit.path:
                    raise
                wanted.append(misfit.wanted)
        raise _TypeMismatch(" or ".join(wanted), value)

    return check


def _sequence(check_item: _Check) -> _Check:
    def check(value: Any) -> Any:
        return tuple(_check_items(check_list(value), check_item))

    check_list = _check_predicate("a list", lambda v: isinstance(v, Sequence) and not _is_text(v))
    return check


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bytes | bytearray | memoryview)


def _iterable(check_item: _Check) -> _Check:
    """Check the items of a stream when they arrive."""

    def check(value: Any) -> Any:
        return _check_lazily(check_stream(value), check_item)

    check_stream = _check_predicate(
        "a list or a stream", lambda v: isinstance(v, Iterable) and not _is_text(v)
    )
    return check


def _check_items(values: Iterable[Any], check_item: _Check) -> Iterator[Any]:
    for place, value in enumerate(values):
        try:
            yield check_item(value)
        except _TypeMismatch as misfit:
            raise misfit.prefixed(f"[{place}]") from None


def _check_lazily(values: Iterable[Any], check_item: _Check) -> Iterator[Any]:
    try:
        yield from _check_items(values, check_item)
    except _TypeMismatch as misfit:
        msg = f"{misfit.wanted} was expected at {misfit.path}, not {_describe_value(misfit.value)}."
        raise InvalidInput(msg[0].upper() + msg[1:]) from None


def _mapping(check_key: _Check, check_value: _Check) -> _Check:
    def check(value: Any) -> Any:
        for key, inner in check_mapping(value).items():
            try:
                check_key(key)
                check_value(inner)
            except _TypeMismatch as misfit:
                raise misfit.prefixed(f"[{key!r:.40}]") from None
        return value

    check_mapping = _check_predicate("a mapping", _is(Mapping))
    return check


def _record(kind: type) -> _Check:
    """Check a record and its fields; pass on the record itself."""

    def check(value: Any) -> Any:
        if not isinstance(value, kind):
            raise _TypeMismatch(f"a {kind.__name__}", value)
        for name, check_field in _fields_of(kind).items():
            try:
                check_field(getattr(value, name))
            except _TypeMismatch as misfit:
                raise misfit.prefixed(f".{name}") from None
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
    str: _check_predicate("a text", _is(str)),
    bytes: _check_predicate("bytes", _is(bytes)),
    bool: _check_predicate("True or False", _is(bool)),
    int: _number(int),
    float: _number(float),
    NoneType: _check_predicate("None", _is(NoneType)),
    datetime: _check_predicate("a datetime with a time zone", _is_aware),
    BinaryIO: _check_predicate("a binary file", _is_writable),
}
