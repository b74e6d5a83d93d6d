"""Slips: what code raises that did not expect what it found, never a failure of the machine."""

from __future__ import annotations

SLIPS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
