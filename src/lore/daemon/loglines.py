"""Lines of the log: one for each event, whoever logs it, and never the contents of anything."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType

from lore.errors import place_of

OWN = "lore"
"""The logger of Lore's own events; what it says is constant, and its fields hold no contents."""

REPEATS, REPEATS_S = 10, 60.0
"""The same trouble is told so often within so long; what more of it came is told as a number."""

_MOST_KNOWN = 200
"""So many different troubles are told apart at a time."""

_USUAL = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

log = logging.getLogger("lore.daemon")


class LogLine(logging.Formatter):
    """One line for an event: when, how bad, where, what, and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event; of a library's, only where it comes from."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"{at} {record.levelname.lower():<7} {_told(record)}"


def is_own(record: logging.LogRecord) -> bool:
    """Tell whether an event is one of Lore's own."""
    return record.name == OWN or record.name.startswith(f"{OWN}.")


def _told(record: logging.LogRecord) -> str:
    """Return what a line says beside its time.

    Libraries put requests, paths and tracebacks into their messages, so none of that is told.
    """
    if not is_own(record):
        kind = record.exc_info[0] if record.exc_info else None
        error = f" error={_plain(kind.__name__)}" if kind else ""
        return f"{_plain(record.name)}: said something place={record.module}:{record.lineno}{error}"
    fields = [
        f"{name}={_plain(value)}" for name, value in vars(record).items() if name not in _USUAL
    ]
    said = record.getMessage()
    return " ".join([f"{record.name}: {said if said.isprintable() else json.dumps(said)}", *fields])


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    return text if text.isascii() and text.isprintable() and " " not in text else json.dumps(text)


class Repeats(logging.Filter):
    """Lets the same trouble through a few times a minute, and counts the rest of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether an event is written; the first after many says how many were not."""
        if record.levelno < logging.WARNING or "left_out" in vars(record):
            return True
        told, now = _told(record), self._clock()
        with self._lock:
            since, count = self._seen.pop(told, (now, 0))
            if now - since > REPEATS_S:
                if count > REPEATS:
                    record.left_out = count - REPEATS
                since, count = now, 0
            self._seen[told] = since, count + 1
            while len(self._seen) > _MOST_KNOWN:
                self._seen.popitem(last=False)
        return count < REPEATS


def watch_for_accidents() -> Callable[[], None]:
    """Log what would else be printed with all it quotes; return how to end that."""
    before = (sys.excepthook, threading.excepthook, sys.unraisablehook)

    def uncaught(
        kind: type[BaseException], error: BaseException, _trace: TracebackType | None
    ) -> None:
        _log_accident("uncaught error", kind, error)

    def in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit:  # that is how a thread may end
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
    fields = {"error": kind.__name__, "place": place_of(error) if error else ""}
    log.error(event, extra=fields)
