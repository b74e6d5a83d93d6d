"""Registers: the parts of a record that change on their own, and the rule that merges two states.

A register has a value and the stamp of its last change. The stamp is a hybrid logical clock: the
time of the change, but later than the stamp of the value that it replaced. So a change wins over
what its author had seen, whatever the clocks say. Everything here is pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

LARGEST_WINS = frozenset({"use"})
"""Registers whose value only grows: the day of the last use."""

MOST_PAST = 8
"""Stamps of former values that a register carries; they tell a later edit from a concurrent one."""

LATEST_US = 253_402_300_799_999_999
"""The last moment that a clock can show: the end of the year 9999."""

LATEST_STAMP = LATEST_US + 2**52
"""Stamps go on beyond all clocks: an edit of a value that a clock at its end stamped is still
later, and nobody makes as many edits as there is room for."""

REJECTED = "rejected"
"""The state of an instruction that only a person sets, and only a person changes."""


class Stamp(NamedTuple):
    """When and where a register was changed."""

    us: int
    machine: str


class Register(NamedTuple):
    """A value, the stamp of its last change, and the stamps of the values before."""

    us: int
    machine: str
    value: Any
    past: tuple[Stamp, ...] = ()

    @property
    def stamp(self) -> Stamp:
        """Return the stamp."""
        return Stamp(self.us, self.machine)


class KnownRegister(NamedTuple):
    """What a home remembers of a register beside its value, which is in its own tables."""

    us: int
    machine: str
    digest: str
    past: tuple[Stamp, ...] = ()


Values = Mapping[str, tuple[Any, int | None]]
"""Values as they are stored, each with the time of its change if that is stored too."""

Registers = dict[str, Register]


def digest_value(value: Any) -> str:
    """Return a digest of a JSON value."""
    packed = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(packed, digest_size=10).hexdigest()


def rank(name: str, register: Register, kind: str = "") -> tuple[Any, ...]:
    """Return what orders the states of a register: the highest is the state that holds."""
    by_stamp = (
        register.us,
        register.machine,
        digest_value([register.value, _pairs(register.past)]),
    )
    if name in LARGEST_WINS:
        return (register.value or 0, *by_stamp)
    if kind == "task":
        return (not _is_open(register.value), *by_stamp)
    return by_stamp


def _is_open(task: Any) -> bool:
    """Return whether a task is open: no task is opened again once it is done or removed."""
    return isinstance(task, dict) and task.get("state") == "open"


def merge(one: Mapping[str, Register], other: Mapping[str, Register], kind: str = "") -> Registers:
    """Return the state of a record of a kind after both states are known.

    The order and the number of merges do not matter.
    """
    merged = dict(one)
    for name, register in other.items():
        own = merged.get(name)
        if own is None or rank(name, register, kind) > rank(name, own, kind):
            merged[name] = register
    return merged


def stamp_changes(
    known: Mapping[str, KnownRegister],
    values: Values,
    *,
    machine: str,
    now_us: int,
) -> Registers:
    """Return the registers of a record as it is stored now; changed ones get a new stamp."""
    registers: Registers = {}
    for name, (value, at) in values.items():
        before = known.get(name)
        if before is not None and before.digest == digest_value(value):
            registers[name] = Register(before.us, before.machine, value, before.past)
        elif before is None:
            first = now_us if at is None or value == REJECTED else min(at, now_us)
            registers[name] = Register(max(0, first), machine, value)
        else:
            us = _next_us(before, value, at, now_us)
            past = (Stamp(before.us, before.machine), *before.past)[:MOST_PAST]
            registers[name] = Register(us, machine, value, past)
    return registers


_DERIVED_STATES = frozenset({"stands", "suggested", "confirmed"})


def _next_us(before: KnownRegister, value: Any, at: int | None, now_us: int) -> int:
    """Return the time of a change, later than that of the value before.

    A rule that is said twice is confirmed by the machine itself. That must not win over a person
    who rejected it elsewhere, so it counts as the smallest step.
    """
    is_state = isinstance(value, str) and value in _DERIVED_STATES
    next_us = min(before.us + 1, LATEST_STAMP)
    if is_state and before.digest != digest_value(REJECTED):
        return next_us
    if at is not None and before.us < at <= now_us:
        return at
    return max(now_us, next_us)


def is_concurrent(one: Register, other: Register) -> bool:
    """Return whether neither of two changes knew of the other."""
    if one.stamp == other.stamp:
        return False
    return one.stamp not in other.past and other.stamp not in one.past


def known_registers(registers: Mapping[str, Register]) -> dict[str, KnownRegister]:
    """Return what is remembered of registers."""
    return {
        name: KnownRegister(one.us, one.machine, digest_value(one.value), one.past)
        for name, one in registers.items()
    }


def pack_known(known: Mapping[str, KnownRegister]) -> str:
    """Return what is remembered as stored JSON."""
    packed = {
        name: [one.us, one.machine, one.digest, _pairs(one.past)] for name, one in known.items()
    }
    return orjson.dumps(packed).decode()


def unpack_known(packed: str) -> dict[str, KnownRegister]:
    """Return what `pack_known` encoded."""
    return {
        name: KnownRegister(us, machine, digest, _stamps(past))
        for name, (us, machine, digest, past) in orjson.loads(packed).items()
    }


def to_wire(registers: Mapping[str, Register]) -> dict[str, list[Any]]:
    """Return registers as they travel."""
    return {
        name: [one.us, one.machine, one.value, *([_pairs(one.past)] if one.past else [])]
        for name, one in registers.items()
    }


def from_wire(registers: Mapping[str, Sequence[Any]]) -> Registers:
    """Return registers that have travelled; their form was checked before."""
    return {
        name: Register(one[0], one[1], one[2], _stamps(one[3] if len(one) > 3 else ()))
        for name, one in registers.items()
    }


def _pairs(past: Sequence[Stamp]) -> list[list[Any]]:
    return [[us, machine] for us, machine in past]


def _stamps(past: Sequence[Sequence[Any]]) -> tuple[Stamp, ...]:
    return tuple(Stamp(us, machine) for us, machine in past)
