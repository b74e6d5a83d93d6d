"""Command server: execute the commands of clients in the daemon, which has everything loaded.

The output is that of the same code in a process of its own. Where the surroundings of the client
differ from the daemon's in a way that would show, the daemon declines and the client executes the
command itself.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from lore import __version__
from lore.cli.fast_path import home_of
from lore.cli.invocation import Invocation, run_for
from lore.errors import LoreError
from lore.proxy.command_client import COMMANDS, PROCESS_VARIABLES
from lore.settings import Settings, load

if TYPE_CHECKING:
    from lore.memory import Memory


def run_command(memory: Memory, body: bytes) -> bytes | None:
    """Execute the command of a client; return its output as JSON, or None to decline."""
    request = json.loads(body)
    _, rest = home_of(request["arguments"])
    if not rest or rest[0] not in COMMANDS:
        return None
    invocation = Invocation(memory, request["environ"], request["folder"], request["stdin"])
    if request["version"] != __version__ or not _can_run(invocation, Path(request["home"])):
        return None
    from lore.cli import app

    recorder = _Recorder(request["terminals"])
    with run_for(invocation), _record_output(recorder):
        code = app.run(request["arguments"])
    return json.dumps({"code": code, "output": recorder.parts}).encode()


def _can_run(invocation: Invocation, home: Path) -> bool:
    """Return whether the command has the same result here as in the process of the client.

    A degraded memory may have recovered since the daemon opened it.
    """
    memory, environ = invocation.memory, invocation.environ
    if memory.notice or not memory.settings.database.exists():
        return False
    own = os.environ  # noqa: TID251 - not settings, but what Python itself reads
    if any(environ.get(name) != own.get(name) for name in PROCESS_VARIABLES):
        return False
    try:
        settings = load(environ, home=home, project_dir=Path(invocation.folder)).settings
    except LoreError:
        return False
    return _comparable(settings) == _comparable(memory.settings)


def _comparable(settings: Settings) -> Settings:
    """Return settings without the key that may come from a variable of the provider."""
    return replace(settings, chat_api_key="")


class _Recorder:
    """The output of one command: pairs of file descriptor and text, in their order."""

    def __init__(self, terminals: list[bool]) -> None:
        self.parts: list[tuple[int, str]] = []
        self.terminals = dict(zip((1, 2), terminals, strict=True))

    def write(self, number: int, text: str) -> None:
        if self.parts and self.parts[-1][0] == number:
            text = self.parts.pop()[1] + text
        self.parts.append((number, text))


_RECORDER: ContextVar[_Recorder | None] = ContextVar("lore_recorder", default=None)


class _Stream(io.TextIOBase):
    """Standard output or error of the daemon: a thread that executes a command writes its own."""

    encoding = "utf-8"

    def __init__(self, number: int, usual: TextIO) -> None:
        self.number = number
        self.usual = usual

    def write(self, text: str, /) -> int:
        recorder = _RECORDER.get()
        if recorder is None:
            return self.usual.write(text)
        recorder.write(self.number, text)
        return len(text)

    def isatty(self) -> bool:
        recorder = _RECORDER.get()
        return self.usual.isatty() if recorder is None else recorder.terminals[self.number]

    def flush(self) -> None:
        if _RECORDER.get() is None:
            self.usual.flush()

    def fileno(self) -> int:
        return self.usual.fileno()


class _Streams:
    """Replaces the standard streams as long as commands run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    @contextmanager
    def routed(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                sys.stdout, sys.stderr = _Stream(1, sys.stdout), _Stream(2, sys.stderr)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    sys.stdout, sys.stderr = _usual(sys.stdout), _usual(sys.stderr)


def _usual(stream: TextIO) -> TextIO:
    return stream.usual if isinstance(stream, _Stream) else stream


_STREAMS = _Streams()


@contextmanager
def _record_output(recorder: _Recorder) -> Iterator[None]:
    """Record what this thread prints."""
    with _STREAMS.routed():
        token = _RECORDER.set(recorder)
        try:
            yield
        finally:
            _RECORDER.reset(token)
