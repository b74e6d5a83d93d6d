from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from typing import Any

import pytest

from lore.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A place."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Named(Point):
    """A place with a name in upper case."""

    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.upper())


@dataclass(slots=True)
class Counter:
    """A count."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class Own:
    """A class with its own equality."""

    x: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own)

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "own"


@dataclasses.dataclass(frozen=True, slots=True)
class Eager:
    """The same as Point, by the standard library."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list, compare=False, repr=False)


def test_methods_are_compiled_at_their_first_use():
    @dataclass(frozen=True, slots=True)
    class Fresh:
        """A record."""

        x: int

    assert not inspect.isfunction(vars(Fresh)["__init__"])
    Fresh(1)
    assert inspect.isfunction(vars(Fresh)["__init__"])
    assert not inspect.isfunction(vars(Fresh)["__repr__"])


def test_an_instance_is_that_of_the_standard_library():
    assert repr(Point(1)) == repr(Eager(1)).replace("Eager", "Point")
    assert Point(1, tags=["a"]) == Point(1) != Point(2)
    assert Point(1).__eq__(Eager(1)) is NotImplemented
    assert hash(Point(1)) == hash(Eager(1))
    assert inspect.signature(Point) == inspect.signature(Eager)
    assert Point.__match_args__ == Eager.__match_args__
    assert dataclasses.replace(Point(1), y=5) == Point(1, 5)
    assert dataclasses.asdict(Point(1)) == dataclasses.asdict(Eager(1))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]


def test_an_init_of_plain_fields_is_that_of_the_standard_library():
    class Sizes:
        """A width and a height, with a check."""

        width: int
        height: int | None = None
        name: str = "box"

        def __post_init__(self) -> None:
            if self.width < 0:
                raise ValueError

    namespace = {name: vars(Sizes)[name] for name in ("__annotations__", "__post_init__", "name")}
    made: list[Any] = [
        make(frozen=True)(type("Sizes", (), {**namespace, "height": None, "__doc__": "Sizes."}))
        for make in (dataclass, dataclasses.dataclass)
    ]
    lazy, eager = made
    assert inspect.signature(lazy) == inspect.signature(eager)
    assert repr(lazy(1, name="a")) == repr(eager(1, name="a"))
    assert lazy.__init__.__qualname__ == eager.__init__.__qualname__
    with pytest.raises(ValueError):  # noqa: PT011 - as the class raises it
        lazy(-1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        lazy(1, depth=2)


def test_a_frozen_instance_is_copied_and_pickled_but_never_changed():
    point = Point(1, 3, ["a"])
    assert copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x


def test_a_derived_class_has_all_fields_and_its_own_post_init():
    assert repr(Named(1, name="a")) == "Named(x=1, y=2, name='A')"
    assert Named(1) != Point(1)


def test_a_changeable_instance_has_no_hash():
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)


def test_methods_of_the_class_itself_are_kept():
    assert Own(1) == Own(2)
    assert (hash(Own(1)), repr(Own(1))) == (7, "own")
