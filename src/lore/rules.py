"""Rules: what the value of a setting must fulfil beyond its type."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

Value = str | int | float | bool | tuple[str, ...]


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
        if self.pattern and not re.fullmatch(self.pattern, str(value)):
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
