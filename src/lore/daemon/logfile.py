"""The log file: constant events with fields, never contents or keys; and reading it."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from lore.daemon import loglines
from lore.daemon.loglines import LogLine, Repeats

LOG_FILE = "lore.log"
LARGEST_BYTES, OLD_FILES = 5_000_000, 2

_POLL_S = 0.3


class LogFile(RotatingFileHandler):
    """The log of a home, renewed when it has grown large, and for its owner only."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return TextIOWrapper(open(os.open(self.baseFilename, flags, 0o600), "ab"), "utf-8")  # noqa: PTH123

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's
        """Lose the line: a full disk is no reason to stop."""


def open_log(home: Path, *, echo: bool) -> Callable[[], None]:
    """Write events to the log of a home, and to stderr if wanted; return how to end that.

    Of libraries only warnings are told, and where they come from. That the root has an output
    keeps each of them from making one of its own.
    """
    own, root = logging.getLogger(loglines.OWN), logging.getLogger()
    path = home / LOG_FILE
    outputs: list[logging.Handler] = [
        LogFile(path, maxBytes=LARGEST_BYTES, backupCount=OLD_FILES, encoding="utf-8")
    ]
    outputs += [logging.StreamHandler()] if echo else []
    before = own.level
    for output in outputs:
        output.setFormatter(LogLine())
        output.addFilter(Repeats())
        output.addFilter(_is_worth_a_line)
        root.addHandler(output)
    own.setLevel(logging.INFO)
    end_watch = loglines.watch_for_accidents()

    def close() -> None:
        end_watch()
        own.setLevel(before)
        for output in outputs:
            root.removeHandler(output)
            output.close()

    return close


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    return loglines.is_own(record) or record.levelno >= logging.WARNING


def last_lines(home: Path, count: int) -> list[str]:
    """Return the last lines of the log, of an old one too if the present one is short."""
    lines: deque[str] = deque(maxlen=count)
    for number in range(OLD_FILES, -1, -1):
        path = home / (f"{LOG_FILE}.{number}" if number else LOG_FILE)
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            lines.extend(line.rstrip("\n") for line in file)
    return list(lines)


def follow(home: Path, wait: Callable[[float], object] = time.sleep) -> Iterator[str]:
    """Yield the lines that are written from now on, through every renewal of the file."""
    path = home / LOG_FILE
    position, inode = _place(path)
    rest = ""
    while True:
        size, present = _place(path)
        if present != inode or size < position:
            position, inode, rest = 0, present, ""
        if size > position:
            with suppress(OSError), path.open("rb") as file:
                file.seek(position)
                data = file.read(size - position)
                position += len(data)
                *lines, rest = (rest + data.decode("utf-8", "replace")).split("\n")
                yield from lines
        else:
            wait(_POLL_S)


def _place(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_ino
