"""Rules: how the value of a setting is read, and what it must fulfil beyond its type."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

Value = str | int | float | bool | tuple[str, ...] | None
"""None is the default of what has no value until someone gives it one."""

_MAYBE_FLOAT = float | None

UNWRITABLE = re.compile("[\0\ud800-\udfff]")
"""What no file of UTF-8 text and no path can hold."""


class Rule(NamedTuple):
    """What a value must fulfil beyond its type."""

    choices: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf
    pattern: str = ""
    form: str = ""

    def broken_by(self, value: Value) -> str:
        """Return what is wrong with a value, or nothing."""
        if self.choices and value not in self.choices:
            return f"is none of {', '.join(self.choices)}"
        texts = value if isinstance(value, tuple) else (str(value),)
        if self.pattern and not all(re.fullmatch(self.pattern, text) for text in texts):
            return f"is not {self.form}"
        if isinstance(value, int | float) and not self.least <= value <= self.most:
            return f"is not {self.span()}"
        return ""

    def span(self) -> str:
        """Say in which span a number must lie."""
        if self.most < math.inf:
            return f"between {self.least:g} and {self.most:g}"
        return f"at least {self.least:g}" if self.least > -math.inf else ""


NO_RULE = Rule()
NOT_NEGATIVE = Rule(least=0)
WITHIN_A_DAY = Rule(least=0, most=86_400)
WITHIN_A_MONTH = Rule(least=60, most=2_592_000)
SEGMENT = Rule(least=1_024, most=16_384)
PORT = Rule(least=0, most=65_535)
BODY = Rule(least=1_000, most=1_000_000_000)
ADDRESS = Rule(pattern=r"https?://[^\s?#]+", form="an address that begins with http")
PRECISIONS = Rule(choices=("float32", "int8"))
PATTERNS = Rule(form="a list of re2 patterns")

CHATS = Rule(
    choices=(
        "offline",
        "anthropic",
        "openai",
        "openrouter",
        "ollama",
        "vllm",
        "gemini",
        "claude-cli",
    )
)
THREE_NUMBERS = Rule(
    pattern=r"\d+(\.\d+)?(,\d+(\.\d+)?){2}", form="three numbers with commas between them"
)
PRICES = Rule(
    pattern=r"\S+( (input|output|cache_read|cache_write|cache_write_1h|window)=\d+(\.\d+)?)+",
    form='texts such as "my-model input=3 output=15 cache_read=0.3 window=200000"',
)
"""In US dollars per million tokens; the window in tokens."""


def parse(kind: type, raw: object) -> Value:
    """Return a raw value as one of a type; raise `TypeError` or `ValueError` if it is none."""
    if kind is bool:
        lowered = str(raw).lower()
        if lowered in ("1", "true", "yes", "on"):
            return True
        if lowered in ("0", "false", "no", "off"):
            return False
        raise ValueError
    if kind is int:
        return int(str(raw))
    if kind is float or kind == _MAYBE_FLOAT:
        number = float(str(raw))
        if not math.isfinite(number):
            raise ValueError
        return number
    if kind not in (str, Path):
        return tuple(_texts(raw))
    return _text(raw)


def _text(raw: object) -> str:
    if not isinstance(raw, str) or UNWRITABLE.search(raw):
        raise ValueError
    return raw


def _texts(raw: object) -> list[str]:
    """Return a list of texts; a text that is no list in JSON is a list of itself."""
    if isinstance(raw, str):
        with suppress(ValueError, RecursionError):
            parsed = json.loads(raw)
            raw = parsed if isinstance(parsed, list) else raw
    listed = [raw] if isinstance(raw, str) else raw
    if not isinstance(listed, list):
        raise TypeError
    return [_text(text) for text in listed if text]


def named(kind: type) -> str:
    """Return what a value of a type is called."""
    if kind == _MAYBE_FLOAT:
        return named(float)
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return names.get(kind, "a list of texts")
