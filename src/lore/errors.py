"""Every exception that Lore raises, and the exit code each one has on the command line.

LoreError                       1
├── InvalidInput                2   the request itself is wrong
│   ├── UnknownSetting          2
│   └── AmbiguousId             2   a prefix that matches several ids
├── NotFound                    3   no such id, file or project
├── StoreError                  4   the database operation failed
│   ├── StoreBusy               4   timeout: another process holds the write lock
│   ├── StoreFull               5   no disk space left; reads still work
│   ├── StoreReadOnly           6   no permission to write the database
│   ├── StoreDamaged            7   the file is not a sound database
│   ├── SchemaTooNew            8   written by a newer Lore
│   ├── IndexUnavailable        4   the vector database cannot be reached, or refuses
│   └── StoreUnreachable       19   the database server cannot be reached now; retry later
├── EmbedderError               9   the configured embedder does not work
│   └── WeightsRejected         9   a model file fails its SHA-256
├── EvaluationError            10   evaluation data cannot be read
├── CaptureError               11   a given transcript cannot be read
├── DaemonError                12   the daemon cannot be started or stopped
│   └── AlreadyRunning         12   another daemon serves this home
├── ProviderError              13   a model call failed
│   ├── ProviderUnavailable    13   no connection, key refused, or timeout
│   ├── RateLimited            13   rate limit reached; retry later
│   ├── PromptTooLong          13   the prompt exceeds the context window
│   └── BadReply               13   the response is invalid, even after a retry
├── BudgetSpent                14   the daily budget is spent
├── CycleRunning               15   another process runs a consolidation cycle
├── TrayUnavailable            16   a tray icon cannot be shown here
└── SyncError                  17   the other side of a sync refuses or sends what is invalid
    └── PeerUnreachable        18   the other side cannot be reached now; retry later
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime


class LoreError(Exception):
    """Base class of all errors that Lore reports; `hint` says what to do next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", calls: Sequence[str] = ()) -> None:
        super().__init__(message)
        self._hint = hint
        self._calls = calls
        self.hint = self.hint_by("'lore {}'".format)

    def hint_by(self, naming: Callable[[str], str]) -> str:
        """Return the hint with command names in the form of an interface.

        Names of `calls` stand in the hint in braces; `hint` shows them as commands.
        """
        if not self._calls:
            return self._hint
        return self._hint.format_map({call: naming(call) for call in self._calls})


class InvalidInput(LoreError):
    """The request itself is wrong."""

    exit_code = 2


class UnknownSetting(InvalidInput):
    """A setting does not exist, or may not be set there."""


class AmbiguousId(InvalidInput):
    """A prefix matches several ids; `candidates` has them with the beginnings of their texts."""

    def __init__(
        self, message: str, *, hint: str = "", candidates: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.candidates = candidates


class NotFound(LoreError):
    """An id, a file, a session or a version does not exist."""

    exit_code = 3


class StoreError(LoreError):
    """The database operation failed."""

    exit_code = 4


class StoreBusy(StoreError):
    """Timeout: another process holds the write lock."""


class StoreFull(StoreError):
    """There is no space left to write."""

    exit_code = 5


class StoreReadOnly(StoreError):
    """The database cannot be written."""

    exit_code = 6


class StoreDamaged(StoreError):
    """The file is not a sound database."""

    exit_code = 7


class SchemaTooNew(StoreError):
    """The database was written by a newer program."""

    exit_code = 8


class StoreUnreachable(StoreError):
    """The database server cannot be reached now; nothing that was stored is lost."""

    exit_code = 19


class IndexUnavailable(StoreError):
    """The vector database cannot be reached, or refuses; the memory itself is sound."""


class EmbedderError(LoreError):
    """The configured embedder does not work."""

    exit_code = 9


class WeightsRejected(EmbedderError):
    """A model file has the wrong SHA-256."""


class EvaluationError(LoreError):
    """Evaluation data is missing or cannot be read."""

    exit_code = 10


class CaptureError(LoreError):
    """A given transcript cannot be read."""

    exit_code = 11


class DaemonError(LoreError):
    """The daemon cannot be started or stopped."""

    exit_code = 12


class AlreadyRunning(DaemonError):
    """Another daemon serves this home."""


class ProviderError(LoreError):
    """A model call failed."""

    exit_code = 13

    usage: object = None
    """The token usage of the failed call, if it is known."""


class ProviderUnavailable(ProviderError):
    """The provider cannot be reached or refuses; `billed` if it may charge anyway."""

    def __init__(self, message: str, *, hint: str = "", billed: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.billed = billed


class RateLimited(ProviderError):
    """The rate limit is reached; `retry_after_s` is 0 if the provider gives no delay."""

    def __init__(self, message: str, *, hint: str = "", retry_after_s: float = 0.0) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class PromptTooLong(ProviderError):
    """The prompt exceeds the context window of the model."""


class BadReply(ProviderError):
    """The response is invalid, and so was the one to a retry."""


class BudgetSpent(LoreError):
    """The daily budget is spent; `until` is when requests may resume."""

    exit_code = 14

    def __init__(self, message: str, *, hint: str = "", until: datetime | None = None) -> None:
        super().__init__(message, hint=hint)
        self.until = until


class CycleRunning(LoreError):
    """Another process runs a consolidation cycle on this memory."""

    exit_code = 15


class TrayUnavailable(LoreError):
    """Qt is not installed, or the desktop has no place for tray icons."""

    exit_code = 16


class SyncError(LoreError):
    """The other side of a sync refuses, or a bundle is foreign, changed, cut off or of no use."""

    exit_code = 17


class PeerUnreachable(SyncError):
    """The other side of a sync cannot be reached now; the change log keeps what waits."""

    exit_code = 18


def describe_error(error: Exception) -> str:
    """Return a message for an error; those of foreign errors are hidden: they may quote secrets."""
    if not isinstance(error, LoreError):
        return f"{type(error).__name__} in {error_location(error)}"
    return f"{error} {error.hint}" if error.hint else str(error)


def error_location(error: BaseException) -> str:
    """Return the file and line in which an error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


__all__ = sorted(
    name
    for name, value in list(globals().items())
    if isinstance(value, type) and issubclass(value, LoreError)
)
