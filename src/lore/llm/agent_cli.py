"""Chat through an agent's command line, for people with a subscription and no API key.

Each request is a process of its own. All processes of a home take turns, so that a subscription
never serves more than one request of Lore at a time.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from lore.errors import PromptTooLong, ProviderError, ProviderUnavailable, RateLimited
from lore.llm import process_tree
from lore.llm.chat import ChatRequest, ChatResponse
from lore.llm.command_table import AgentCommand, CommandCall, CommandOutput, Invocation
from lore.llm.structured_output import parse_response, schema_instruction
from lore.text.words import clean

_LOCK_FILE = "lock"
_LOCK_POLL_S = 0.1

_MAX_OUTPUT_BYTES = 8 * 1024 * 1024
_MAX_ERROR_BYTES = 20_000
_MAX_MESSAGE_CHARS = 200
_RETRY_HEADING = "Your former answer, and what is wrong with it:\n\n"

_SAFE_AT = "\N{FULLWIDTH COMMERCIAL AT}"
"""Stands for '@' in the prompts of commands that would read the file '@path' names.

A conversation can name any file of this machine, and not everyone in it may read that file.
"""

_TOO_LONG = (
    "prompt is too long", "context window", "context length", "too large", "token count exceeds",
)  # fmt: skip
_LIMITS = (
    "rate limit", "usage limit", "limit reached", "overloaded", "too many requests", "quota",
    "exhausted", "429", "529",
)  # fmt: skip
_LOGIN = (
    "not logged in", "log in", "login", "logged out", "api key", "unauthorized", "401",
    "authenticat", "auth method", "credentials",
)  # fmt: skip
"""Words and numbers by which the commands report what is wrong; they have no codes in common."""


class AgentCliChat:
    """An agent's command, one process per request and one request at a time."""

    def __init__(
        self, agent: AgentCommand, path: Path, *, model: str, folder: Path, timeout_s: float
    ) -> None:
        """Use the command at a path; in the folder, no project lies that it could read."""
        self.identity = f"{agent.provider}:{model}"
        self._agent = agent
        self._path = path
        self._model = model
        self._folder = folder
        self._timeout_s = timeout_s
        self._running: dict[subprocess.Popen[bytes], str] = {}
        self._lock = threading.Lock()
        self._closings = 0

    def complete(self, request: ChatRequest) -> ChatResponse:
        """Send one request and return the response, or raise a `ProviderError`."""
        if request.schema is not None and not self._agent.has_schema:
            system = f"{request.system}\n\n{schema_instruction(request.schema)}"
            request = replace(request, system=system)
        try:
            printed, errors = self._ask(request)
        except OSError as error:
            msg = f"{self._agent.command} cannot be run: {error.strerror}."
            raise ProviderUnavailable(msg, hint=f"Can {self._folder} be written?") from error
        output = self._agent.read(printed, errors)
        if output is None:
            raise self._error(_last_line(errors), unreadable=True)
        if output.error is not None:
            raise self._with_usage(self._error(output.error), output)
        text = output.text.replace(_SAFE_AT, "@") if self._agent.reads_mentions else output.text
        return parse_response(text, output.usage, request.schema, output.problem)

    def _ask(self, request: ChatRequest) -> tuple[bytes, bytes]:
        """Run the command when it is its turn; return what it printed, and its errors."""
        closings = self._closings
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._take_turn(closings):
            # Files are in a folder of this command alone, and rewritten for each request.
            folder = self._folder / self._agent.command
            folder.mkdir(mode=0o700, exist_ok=True)
            invocation = self._agent.invoke(CommandCall(self._model, folder, request))
            prompt = _join_messages(request)
            if self._agent.reads_mentions:
                prompt = prompt.replace("@", _SAFE_AT)
            return self._run(invocation, folder, prompt, closings)

    def close(self) -> None:
        """Kill the running processes; the threads that wait for them clean up."""
        with self._lock:
            self._closings += 1
            for process, mark in self._running.items():
                process_tree.kill_tree(process, mark)

    def _check_open(self, closings: int) -> None:
        """Raise if the chat was closed since there were so many closings."""
        if self._closings != closings:
            msg = f"The request to '{self._agent.command}' was cancelled."
            raise ProviderUnavailable(msg)

    @contextmanager
    def _take_turn(self, closings: int) -> Iterator[None]:
        """Hold the lock of this home while the command runs."""
        deadline = time.monotonic() + self._timeout_s
        with (self._folder / _LOCK_FILE).open("ab") as file:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                self._check_open(closings)
                if time.monotonic() > deadline:
                    msg = f"Another request to '{self._agent.command}' takes too long."
                    raise RateLimited(msg, hint="Try again later.")
                time.sleep(_LOCK_POLL_S)
            yield

    def _run(
        self, invocation: Invocation, folder: Path, prompt: str, closings: int
    ) -> tuple[bytes, bytes]:
        # Files, because a process that does not read would block the writer of a pipe.
        with tempfile.TemporaryFile() as prompt_file, tempfile.TemporaryFile() as error_file:
            prompt_file.write(prompt.encode("utf-8", "replace"))
            prompt_file.seek(0)
            mark = process_tree.new_mark()
            with self._lock:  # who closes in between would not see the process
                self._check_open(closings)
                process = self._start(invocation, folder, mark, prompt_file, error_file)
                self._running[process] = mark
            try:
                printed = self._read_output(process, error_file)
            except BaseException:
                process_tree.kill_tree(process, mark)
                raise
            finally:
                with self._lock:
                    self._running.pop(process, None)
                process_tree.kill_group(process)
                process.wait()
                if process.stdout:
                    process.stdout.close()
            return printed, _tail(error_file)

    def _start(
        self,
        invocation: Invocation,
        folder: Path,
        mark: str,
        prompt_file: IO[bytes],
        error_file: IO[bytes],
    ) -> subprocess.Popen[bytes]:
        """Start the command as a group of its own, whose processes have a mark."""
        marked = {**invocation.environ, process_tree.MARK: mark}
        try:
            return subprocess.Popen(  # noqa: S603 - a fixed command, without a shell
                [str(self._path), *invocation.arguments],
                cwd=folder,
                env={**os.environ, **marked},  # noqa: TID251 - for another program
                stdin=prompt_file,
                stdout=subprocess.PIPE,
                stderr=error_file,
                start_new_session=True,
            )
        except OSError as error:
            msg = f"{self._agent.command} cannot be started: {error.strerror}."
            raise ProviderUnavailable(msg, hint="Is it installed?") from error

    def _read_output(self, process: subprocess.Popen[bytes], error_file: IO[bytes]) -> bytes:
        """Return the output of a process, or raise after the deadline."""
        assert process.stdout
        deadline = time.monotonic() + self._timeout_s
        pieces: list[bytes] = []
        size = 0
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
                raise self._timeout(_tail(error_file))
            piece = os.read(process.stdout.fileno(), 65_536)
            if not piece:
                return b"".join(pieces)
            size += len(piece)
            if size > _MAX_OUTPUT_BYTES:
                msg = f"The output of '{self._agent.command}' is too large."
                raise ProviderUnavailable(msg, billed=True)
            pieces.append(piece)

    def _timeout(self, errors: bytes) -> ProviderError:
        """Return the error of a command that did not end: some retry a rate limit for minutes."""
        if _says(errors.decode("utf-8", "replace"), _LIMITS):
            return RateLimited(f"{self._agent.command} is rate-limited.", hint="Try again later.")
        msg = f"{self._agent.command} took too long to answer."
        hint = "Increase chat.timeout_s if answers need longer."
        return ProviderUnavailable(msg, hint=hint, billed=True)

    def _error(self, message: str, *, unreadable: bool = False) -> ProviderError:
        command, title = self._agent.command, self._agent.title
        message = " ".join(clean(message).split())[:_MAX_MESSAGE_CHARS]
        msg = f"{command} failed: {message}" if message else f"{command} failed without a message."
        if _says(message, _TOO_LONG):
            return PromptTooLong(msg)
        if _says(message, _LIMITS):
            return RateLimited(msg, hint="Try again later.")
        if _says(message, _LOGIN):
            return ProviderUnavailable(
                msg, hint=f"Log in to {title}, then try '{self._agent.check}'."
            )
        if unreadable and not message:
            msg = f"The output of '{command}' is not a valid result."
        return ProviderUnavailable(msg, hint=f"Try '{self._agent.check}'.")

    @staticmethod
    def _with_usage(error: ProviderError, output: CommandOutput) -> ProviderError:
        used = output.usage
        error.usage = used if used.input_tokens or used.usd else None
        return error


def _says(message: str, signs: Sequence[str]) -> bool:
    """Return whether a message has one of some words, or one of some numbers as a whole."""
    lowered = message.lower()
    numbers = re.findall(r"\b\d+\b", lowered)
    return any(sign in (numbers if sign.isdigit() else lowered) for sign in signs)


def _tail(file: IO[bytes]) -> bytes:
    """Return the end of a file that a process has written to."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), _MAX_ERROR_BYTES, max(0, size - _MAX_ERROR_BYTES))


def _last_line(errors: bytes) -> str:
    lines = [line.strip() for line in errors.decode("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _join_messages(request: ChatRequest) -> str:
    """Return the messages as one prompt: the commands take a single one."""
    texts = [one.text for one in request.messages]
    return texts[0] if len(texts) == 1 else "\n\n".join([texts[0], _RETRY_HEADING, *texts[1:]])
