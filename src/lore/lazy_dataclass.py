"""Dataclasses whose methods are compiled at their first use.

`dataclasses` compiles up to six functions for each class when its module is imported. A command
uses few of the records that it imports, and compiling the rest took a fifth of its time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass"]

if TYPE_CHECKING:
    # Type checkers know what the decorator of the standard library does.
    from dataclasses import dataclass
else:
    T = TypeVar("T")

    def dataclass(*, frozen: bool = False, slots: bool = False, **options: Any) -> Any:
        """Return a decorator like `dataclasses.dataclass` with these options."""

        def decorate(cls: type[T]) -> type[T]:
            return _add_methods(cls, frozen=frozen, slots=slots, **options)

        return decorate


_GENERATED = ("__init__", "__repr__", "__eq__")


class _LazyMethod:
    """Stands for a method until its first access, then replaces itself by the compiled one."""

    def __init__(self, name: str, cls: type, *, frozen: bool) -> None:
        self._name, self._class, self._frozen = name, cls, frozen

    def __get__(self, instance: object, owner: type) -> Any:
        method = _compile(self._class, self._name, frozen=self._frozen)
        if vars(self._class).get(self._name) is self:
            setattr(self._class, self._name, method)
        return method.__get__(instance, owner)


def _add_methods(cls: type, *, frozen: bool, slots: bool, **options: Any) -> type:
    own = vars(cls).keys()
    wants_eq = options.pop("eq", True)
    # Without `frozen` nothing is compiled; but a frozen class allows no other class below it.
    is_derived = any(dataclasses.is_dataclass(base) for base in cls.__bases__)
    made: type = dataclasses.dataclass(
        init=False, repr=False, eq=False, frozen=frozen and is_derived, slots=slots, **options
    )(cls)
    names = [name for name in _GENERATED if name not in own and (wants_eq or name != "__eq__")]
    if wants_eq and "__hash__" not in own:
        if frozen:
            names.append("__hash__")
        else:
            made.__hash__ = None  # type: ignore[assignment]  # as for any class with `__eq__`
    for name in names:
        setattr(made, name, _LazyMethod(name, made, frozen=frozen))
    if frozen:
        _freeze(made, has_state=slots)
    return made


def _freeze(cls: Any, *, has_state: bool) -> None:
    """Refuse changes of attributes, and let `copy` and `pickle` restore them."""
    cls.__dataclass_params__.frozen = True  # for derived classes
    cls.__setattr__, cls.__delattr__ = _refuse_set, _refuse_delete
    if has_state:
        cls.__getstate__, cls.__setstate__ = _get_state, _set_state


def _refuse_set(self: object, name: str, value: object) -> None:  # noqa: ARG001 - as Python calls it
    msg = f"cannot assign to field {name!r}"
    raise dataclasses.FrozenInstanceError(msg)


def _refuse_delete(self: object, name: str) -> None:  # noqa: ARG001 - as Python calls it
    msg = f"cannot delete field {name!r}"
    raise dataclasses.FrozenInstanceError(msg)


def _get_state(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _compile(cls: Any, name: str, *, frozen: bool) -> Any:
    """Return a method of a dataclass as the standard library writes it."""
    fields = dataclasses.fields(cls)
    if name == "__init__" and all(map(_is_plain, fields)):
        return _compile_init(cls, fields, frozen=frozen)
    body: dict[str, Any] = {field.name: field for field in fields}
    body["__annotations__"] = {field.name: field.type for field in fields}
    body["__module__"], body["__qualname__"] = cls.__module__, cls.__qualname__
    body["__doc__"] = cls.__doc__  # otherwise a signature is computed for it
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = cls.__post_init__
    # A twin of the class, because the class itself keeps the methods that it has.
    is_init = name == "__init__"
    twin: type = dataclasses.dataclass(
        init=is_init,
        repr=name == "__repr__",
        eq=name == "__eq__",
        unsafe_hash=name == "__hash__",
        frozen=frozen and is_init,  # the other methods are the same, and it compiles two more
    )(type(cls.__name__, (), body))
    return vars(twin)[name]


def _is_plain(field: dataclasses.Field[Any]) -> bool:
    has_factory = field.default_factory is not dataclasses.MISSING
    return field.init and not field.kw_only and not has_factory


def _compile_init(cls: Any, fields: tuple[dataclasses.Field[Any], ...], *, frozen: bool) -> Any:
    """Return the `__init__` of a class whose fields are plain: a third of the time of the twin."""
    names = [field.name for field in fields]
    template = "_set(self, {0!r}, {0})" if frozen else "self.{0} = {0}"
    body = [template.format(name) for name in names]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    source = f"def __init__(self, {', '.join(names)}):\n " + "\n ".join(body or ["pass"])
    made: dict[str, Any] = {}
    exec(source, {"_set": object.__setattr__}, made)  # noqa: S102 - as `dataclasses` does
    init = made["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    defaults = [field.default for field in fields if field.default is not dataclasses.MISSING]
    init.__defaults__ = tuple(defaults)
    return init
