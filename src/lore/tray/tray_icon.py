"""The drawing of the tray icon in each state, as SVG.

A coloured tile with a white L is readable at 16 pixels, on light and on dark panels. A badge in the
corner says what the daemon does, by its shape as well as by its colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lore.tray.tray_state import State

SIZES: Final = (16, 22, 24, 32, 48, 64)
"""Pixels: what panels ask for."""

_WHOLE = "M7 0H25a7 7 0 0 1 7 7V25a7 7 0 0 1-7 7H7a7 7 0 0 1-7-7V7a7 7 0 0 1 7-7z"
_WITH_CORNER_CUT = (
    "M7 0H18.9A9.5 9.5 0 1 0 32 13.1V25a7 7 0 0 1-7 7H7a7 7 0 0 1-7-7V7a7 7 0 0 1 7-7z"
)
_LETTER = "M10 8V24H24"
_LINES = "M17 9h7M17 15h7"

_BLUE, _GREY, _RED = "#2f7fd6", "#868c95", "#d64545"

_BADGES: Final[Mapping[State, tuple[str, str]]] = {
    "capturing": ("#2a9d5c", "M24 3.4V12M20.2 8.6L24 12.4L27.8 8.6"),
    "consolidating": ("#8a5cd0", "M19.8 5.2h8.4M20.9 8.2h6.2M22.2 11.2h3.6"),
    "syncing": ("#c47a00", "M19.8 6.4h8M25.6 4l2.4 2.4M28.2 9.8h-8M22.4 12.2L20 9.8"),
    "error": (_RED, "M24 4V8M24 12.4v.1"),
}
"""Colour and drawing of the badge in the upper right corner."""

_THICK, _THIN, _MARK = 4.0, 2.4, 2.2
"""Widths of lines. At 16 pixels the letter covers whole pixels, two wide, and so stays sharp."""

_ERROR_MARK = 3.6
"""An exclamation mark must be seen at a glance."""


def draw(state: State) -> str:
    """Return the icon of a state as SVG."""
    if state == "stopped":
        body = (
            f'<rect x="1.5" y="1.5" width="29" height="29" rx="6" fill="none" stroke="{_GREY}"'
            f' stroke-width="3"/>{_stroke(_LETTER, _GREY, _THICK)}{_stroke(_LINES, _GREY, _THIN)}'
        )
    elif state in _BADGES:
        colour, drawing = _BADGES[state]
        mark = _ERROR_MARK if state == "error" else _MARK
        body = (
            f'<path d="{_WITH_CORNER_CUT}" fill="{_BLUE}"/>{_stroke(_LETTER, "#fff", _THICK)}'
            f'<circle cx="24" cy="8" r="8" fill="{colour}"/>{_stroke(drawing, "#fff", mark)}'
        )
    else:
        body = (
            f'<path d="{_WHOLE}" fill="{_BLUE}"/>{_stroke(_LETTER, "#fff", _THICK)}'
            f"{_stroke(_LINES, '#fff', _THIN)}"
        )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">{body}</svg>'


def _stroke(path: str, colour: str, width: float) -> str:
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
        ' stroke-linecap="round" stroke-linejoin="round"/>'
    )
