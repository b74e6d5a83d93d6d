"""Print a text, through a pager if it is longer than the terminal."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as type checkers read it; importing `typing` would double the start-up

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMMANDS = frozenset(
    "recall ask search sessions standing read session roots log diff timeline episode"
    " episodes".split()
)
"""Commands whose output a terminal shows in a pager if it does not fit."""

UNPAGED = frozenset(("--json", "--review"))
"""Options with which a command prints for programs, or asks."""

_DEFAULT_PAGER = "less"
_LESS_OPTIONS = "FRX"
"""As git has it: quit if it fits on one screen, pass colours, and leave the text on the screen."""


def is_paged(words: list[str]) -> bool:
    """Return whether a command, without global options, prints a text for people to read."""
    return bool(words) and words[0] in _COMMANDS and not UNPAGED.intersection(words)


def print_paged(text: str, environ: Mapping[str, str]) -> None:
    """Print a text; on a terminal that it does not fit, show it in the user's pager."""
    pager = environ.get("PAGER", _DEFAULT_PAGER).strip()
    if not pager or pager == "cat" or not _is_longer_than_screen(text):
        sys.stdout.write(text)
        return
    import subprocess

    try:
        process = subprocess.Popen(  # noqa: S602 - the user's own command
            f"exec {pager}",
            shell=True,
            stdin=subprocess.PIPE,
            env={"LESS": _LESS_OPTIONS, **environ},
            text=True,
        )
    except OSError:
        sys.stdout.write(text)
        return
    try:
        process.communicate(text)
    except BrokenPipeError:  # closed before its end
        pass
    except KeyboardInterrupt:
        process.wait()
    if process.returncode in (126, 127):  # there is no such program
        sys.stdout.write(text)


def _is_longer_than_screen(text: str) -> bool:
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return False
    if not sys.stdin or not sys.stdin.isatty():
        return False
    rows = sum(1 + len(line) // (size.columns or 80) for line in text.split("\n")[:-1])
    return rows >= (size.lines or 24)
