"""What a terminal can show, by its environment."""

from __future__ import annotations

from collections.abc import Mapping


def wants_colour(environ: Mapping[str, str]) -> bool:
    """Return whether a terminal may get color."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


_LINKING_PROGRAMS = frozenset({
    "iTerm.app",
    "WezTerm",
    "vscode",
    "ghostty",
    "Hyper",
    "Tabby",
    "rio",
})
"""Values of TERM_PROGRAM of terminals that show links."""

_LINKING_TERMS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "contour")
_LINKING_SIGNS = ("WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM", "WEZTERM_PANE")
_VTE_LINKS = 5_000
"""GNOME Terminal and others show links from this version of their library on."""


def shows_links(environ: Mapping[str, str]) -> bool:
    """Return whether a terminal with this environment shows links; FORCE_HYPERLINK decides first.

    Terminal multiplexers hide what they run in, and older ones print links as text.
    """
    forced = environ.get("FORCE_HYPERLINK", "")
    if forced:
        return forced != "0"
    term = environ.get("TERM", "")
    if term == "dumb" or environ.get("TMUX") or environ.get("STY") or environ.get("CI"):
        return False
    vte = environ.get("VTE_VERSION", "")
    return (
        environ.get("TERM_PROGRAM", "") in _LINKING_PROGRAMS
        or term.startswith(_LINKING_TERMS)
        or any(environ.get(name) for name in _LINKING_SIGNS)
        or (vte.isdecimal() and int(vte) >= _VTE_LINKS)
    )
