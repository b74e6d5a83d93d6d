"""Chat through `claude -p`, for people with a subscription and no API key.

Each request is a process of its own: without tools, without the user's settings, hooks and
instructions, and without a stored session.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from lore.errors import PromptTooLong, ProviderError, ProviderUnavailable, RateLimited
from lore.llm.chat import ChatRequest, ChatResponse, Usage
from lore.llm.structured_output import (
    REFUSED,
    TRUNCATED,
    TokenCount,
    parse_response,
    schema_instruction,
)
from lore.text.words import clean

DEFAULT_MODEL = "haiku"
"""The alias of the newest small model."""

_ARGUMENTS = (
    "-p", "--output-format", "json", "--tools", "", "--no-session-persistence", "--safe-mode",
    "--strict-mcp-config", "--disable-slash-commands", "--setting-sources", "",
)  # fmt: skip

_THINKING = "MAX_THINKING_TOKENS"
_LIMIT = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"
"""Environment variables of the command; by default it thinks for up to 32,000 tokens."""

_MAX_OUTPUT_BYTES = 8 * 1024 * 1024
_MAX_MESSAGE_CHARS = 200
_RETRY_HEADING = "Your former answer, and what is wrong with it:\n\n"
_PROBLEMS = {"max_tokens": TRUNCATED, "refusal": REFUSED}
_CUT_OFF = "output token maximum"
"""How the command reports, as an error, that the output limit was reached."""

_LIMITS = ("rate limit", "usage limit", "limit reached", "overloaded", "429", "529")
_TOO_LONG = ("prompt is too long", "context window", "too large")


class _Usage(BaseModel):
    input_tokens: TokenCount = 0
    output_tokens: TokenCount = 0
    cache_read_input_tokens: TokenCount = 0
    cache_creation_input_tokens: TokenCount = 0


class _Result(BaseModel):
    """The result document that the command prints at its end."""

    type: str
    is_error: bool = False
    result: str = ""
    stop_reason: str | None = None
    usage: _Usage = _Usage()
    total_cost_usd: float | None = Field(None, ge=0, allow_inf_nan=False)


class ClaudeCliChat:
    """The command `claude`, one process per request."""

    def __init__(self, command: Path, *, model: str, folder: Path, timeout_s: float) -> None:
        self.identity = f"claude-cli:{model}"
        self._command = command
        self._model = model
        self._folder = folder
        self._timeout_s = timeout_s
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    def complete(self, request: ChatRequest) -> ChatResponse:
        """Send one request and return the response, or raise a `ProviderError`."""
        system = request.system
        if request.schema is not None:
            system = f"{system}\n\n{schema_instruction(request.schema)}"
        settings = json.dumps({"env": {_THINKING: "0", _LIMIT: str(request.max_tokens)}})
        arguments = ["--model", self._model, "--settings", settings, "--system-prompt", system]
        printed = self._run(arguments, _join_messages(request))
        try:
            result = _Result.model_validate_json(printed)
        except ValidationError:
            msg = "The output of 'claude' is not a valid result."
            raise ProviderUnavailable(msg, hint="Try 'claude -p hello'.") from None
        usage = _usage(result)
        cut_off = _CUT_OFF in result.result[:_MAX_MESSAGE_CHARS]
        if (result.is_error and not cut_off) or result.type != "result":
            failure = _error_from(result)
            failure.usage = usage if usage.input_tokens or usage.usd else None
            raise failure
        problem = TRUNCATED if cut_off else _PROBLEMS.get(result.stop_reason or "", "")
        return parse_response(result.result, usage, request.schema, problem)

    def close(self) -> None:
        """Kill the running processes; the threads that wait for them clean up."""
        with self._lock:
            for process in self._running:
                _kill(process)

    def _run(self, arguments: list[str], prompt: str) -> bytes:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A file, because a process that does not read would block the writer of a pipe.
        with tempfile.TemporaryFile() as prompt_file:
            prompt_file.write(prompt.encode("utf-8", "replace"))
            prompt_file.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - a fixed command, without a shell
                    [str(self._command), *_ARGUMENTS, *arguments],
                    cwd=self._folder,
                    stdin=prompt_file,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                msg = f"claude cannot be started: {error.strerror}."
                raise ProviderUnavailable(msg, hint="Is it installed?") from error
        with self._lock:
            self._running.add(process)
        try:
            return _read_output(process, time.monotonic() + self._timeout_s)
        finally:
            with self._lock:
                self._running.discard(process)
            _kill(process)
            process.wait()
            if process.stdout:
                process.stdout.close()


def _read_output(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """Return the output of a process, or raise after the deadline."""
    assert process.stdout
    pieces: list[bytes] = []
    size = 0
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
            msg = "claude took too long to answer."
            hint = "Increase chat.timeout_s if answers need longer."
            raise ProviderUnavailable(msg, hint=hint, billed=True)
        piece = os.read(process.stdout.fileno(), 65_536)
        if not piece:
            return b"".join(pieces)
        size += len(piece)
        if size > _MAX_OUTPUT_BYTES:
            msg = "The output of 'claude' is too large."
            raise ProviderUnavailable(msg, billed=True)
        pieces.append(piece)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # After the wait, the pid may belong to another process.
    if process.returncode is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def _join_messages(request: ChatRequest) -> str:
    """Return the messages as one prompt: the command takes a single one."""
    texts = [one.text for one in request.messages]
    return texts[0] if len(texts) == 1 else "\n\n".join([texts[0], _RETRY_HEADING, *texts[1:]])


def _usage(result: _Result) -> Usage:
    usage = result.usage
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    input_tokens = usage.input_tokens + read + written
    return Usage(input_tokens, usage.output_tokens, read, written, result.total_cost_usd)


def _error_from(result: _Result) -> ProviderError:
    message = " ".join(clean(result.result).split())[:_MAX_MESSAGE_CHARS]
    lowered = message.lower()
    msg = f"claude failed: {message}" if message else "claude failed without an error message."
    if any(words in lowered for words in _TOO_LONG):
        return PromptTooLong(msg)
    if any(words in lowered for words in _LIMITS):
        return RateLimited(msg, hint="Try again later.")
    return ProviderUnavailable(msg, hint="Try 'claude -p hello'.")
