"""The log file: constant events with fields, never contents or keys; and reading it."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG_FILE = "lore.log"
LARGEST_BYTES, OLD_FILES = 5_000_000, 2

_POLL_S = 0.3
_USUAL = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogLine(logging.Formatter):
    """One line for an event: when, how bad, where, what, and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        fields = [
            f"{name}={_plain(value)}" for name, value in vars(record).items() if name not in _USUAL
        ]
        head = f"{at} {record.levelname.lower():<7} {record.name}: {record.getMessage()}"
        return " ".join([head, *fields])


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    return text if text.isascii() and text.isprintable() and " " not in text else json.dumps(text)


class LogFile(RotatingFileHandler):
    """The log of a home, renewed when it has grown large, and for its owner only."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return TextIOWrapper(open(os.open(self.baseFilename, flags, 0o600), "ab"), "utf-8")  # noqa: PTH123

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's
        """Lose the line: a full disk is no reason to stop."""


def open_log(home: Path, *, echo: bool) -> Callable[[], None]:
    """Write Lore's events to the log of a home, and to stderr if wanted; return how to end that."""
    logger = logging.getLogger("lore")
    path = home / LOG_FILE
    outputs: list[logging.Handler] = [
        LogFile(path, maxBytes=LARGEST_BYTES, backupCount=OLD_FILES, encoding="utf-8")
    ]
    outputs += [logging.StreamHandler()] if echo else []
    before = logger.level
    for output in outputs:
        output.setFormatter(LogLine())
        logger.addHandler(output)
    logger.setLevel(logging.INFO)

    def close() -> None:
        logger.setLevel(before)
        for output in outputs:
            logger.removeHandler(output)
            output.close()

    return close


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
