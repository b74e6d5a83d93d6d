"""The log file: constant events with fields, never contents or keys."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from lore import telemetry
from lore.config_files import read_small_file
from lore.errors import error_location

OWN_LOGGER = "lore"
"""The logger of Lore's own events: constant messages, and fields without contents."""

REPEATS, REPEATS_S = 10, 60.0
"""Rate limit: a repeated warning is logged this often within this time; the rest is counted."""

_MAX_EVENTS = 200
"""How many different warnings are tracked at a time."""

_USUAL = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

log = logging.getLogger("lore.daemon")


class LineFormatter(logging.Formatter):
    """Formats an event as one line: time, level, logger, message and fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event; for events of libraries, only where they come from."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        trace = telemetry.trace_id() if is_own(record) else ""
        field = f" trace_id={trace}" if trace else ""
        return f"{at} {record.levelname.lower():<7} {_format_message(record)}{field}"


def is_own(record: logging.LogRecord) -> bool:
    """Return whether an event is one of Lore's own."""
    return record.name == OWN_LOGGER or record.name.startswith(f"{OWN_LOGGER}.")


def _format_message(record: logging.LogRecord) -> str:
    """Return the text of a line without its time.

    Libraries put requests, paths and tracebacks into their messages, so these are left out.
    """
    if not is_own(record):
        kind = record.exc_info[0] if record.exc_info else None
        error = f" error={_plain(kind.__name__)}" if kind else ""
        return f"{_plain(record.name)}: said something place={record.module}:{record.lineno}{error}"
    fields = [
        f"{name}={_plain(value)}" for name, value in vars(record).items() if name not in _USUAL
    ]
    message = record.getMessage()
    return " ".join([
        f"{record.name}: {message if message.isprintable() else json.dumps(message)}",
        *fields,
    ])


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    return text if text.isascii() and text.isprintable() and " " not in text else json.dumps(text)


class RepeatFilter(logging.Filter):
    """Rate limit for warnings: passes a repeated one a few times a minute and counts the rest."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether an event is logged; the first after a pause says how many were dropped."""
        if record.levelno < logging.WARNING or "left_out" in vars(record):
            return True
        text, now = _format_message(record), self._clock()
        with self._lock:
            since, count = self._seen.pop(text, (now, 0))
            if now - since > REPEATS_S:
                if count > REPEATS:
                    record.left_out = count - REPEATS
                since, count = now, 0
            self._seen[text] = since, count + 1
            while len(self._seen) > _MAX_EVENTS:
                self._seen.popitem(last=False)
        return count < REPEATS


def log_uncaught_errors() -> Callable[[], None]:
    """Log uncaught errors without their contents; return a function that ends that."""
    before = (sys.excepthook, threading.excepthook, sys.unraisablehook)

    def uncaught(
        kind: type[BaseException], error: BaseException, _trace: TracebackType | None
    ) -> None:
        _log_accident("uncaught error", kind, error)

    def in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit:  # a thread may end this way
            _log_accident("thread failed", args.exc_type, args.exc_value)

    def unraisable(args: sys.UnraisableHookArgs) -> None:
        _log_accident("error could not be raised", args.exc_type, args.exc_value)

    sys.excepthook, threading.excepthook, sys.unraisablehook = uncaught, in_thread, unraisable
    logging.captureWarnings(capture=True)

    def end() -> None:
        sys.excepthook, threading.excepthook, sys.unraisablehook = before
        logging.captureWarnings(capture=False)

    return end


def _log_accident(event: str, kind: type[BaseException], error: BaseException | None) -> None:
    fields = {"error": kind.__name__, "place": error_location(error) if error else ""}
    log.error(event, extra=fields)


LOG_FILE = "lore.log"
LARGEST_BYTES, OLD_FILES = 5_000_000, 2
_MAX_READ_BYTES = 4 * LARGEST_BYTES

_POLL_S = 0.3


class LogFile(RotatingFileHandler):
    """The log file of a home, rotated when it grows large and readable by its owner only."""

    def _open(self) -> TextIOWrapper:
        """Open the file; a pipe, link or socket in its place is removed, since it could block."""
        path = Path(self.baseFilename)
        with suppress(OSError):
            if not stat.S_ISREG(mode := path.lstat().st_mode) and not stat.S_ISDIR(mode):
                path.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        flags |= os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            file = os.open(path, flags, 0o600)
        except IsADirectoryError:
            file = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        return TextIOWrapper(open(file, "ab"), "utf-8")  # noqa: PTH123 - a descriptor

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's
        """Drop the line: a full disk must not stop the daemon."""


def open_log(home: Path, *, echo: bool) -> Callable[[], None]:
    """Log events to the file of a home, and to stderr if wanted; return a function that ends that.

    Of libraries only warnings are logged. A handler on the root logger keeps libraries from
    installing their own.
    """
    own, root = logging.getLogger(OWN_LOGGER), logging.getLogger()
    path = home / LOG_FILE
    outputs: list[logging.Handler] = [
        LogFile(path, maxBytes=LARGEST_BYTES, backupCount=OLD_FILES, encoding="utf-8")
    ]
    outputs += [logging.StreamHandler()] if echo else []
    before = own.level
    for output in outputs:
        output.setFormatter(LineFormatter())
        output.addFilter(RepeatFilter())
        output.addFilter(_is_worth_a_line)
        root.addHandler(output)
    own.setLevel(logging.INFO)
    end_watch = log_uncaught_errors()

    def close() -> None:
        end_watch()
        own.setLevel(before)
        for output in outputs:
            root.removeHandler(output)
            output.close()

    return close


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    return is_own(record) or record.levelno >= logging.WARNING


def last_lines(home: Path, count: int) -> list[str]:
    """Return the last lines of the log, including the rotated file if the current one is short."""
    lines: deque[str] = deque(maxlen=count)
    for number in range(OLD_FILES, -1, -1):
        path = home / (f"{LOG_FILE}.{number}" if number else LOG_FILE)
        with suppress(OSError):
            text = read_small_file(path, _MAX_READ_BYTES).decode("utf-8", "replace")
            lines.extend(text.removesuffix("\n").split("\n") if text else ())
    return list(lines)


def follow(home: Path, wait: Callable[[float], object] = time.sleep) -> Iterator[str]:
    """Yield new lines of the log, across rotations."""
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
    """Return the size and inode of the log; a file of another kind counts as empty."""
    try:
        info = path.lstat()
    except OSError:
        return 0, 0
    return (info.st_size if stat.S_ISREG(info.st_mode) else 0), info.st_ino
