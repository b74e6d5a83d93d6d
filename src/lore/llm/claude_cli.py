"""A chat through `claude -p`, where there is a subscription and no key.

Each question is a process of its own: without tools, without the person's own settings, hooks
and instructions, and without a session that anybody would read again.
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

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lore.errors import PromptTooLong, ProviderError, ProviderUnavailable, RateLimited
from lore.llm.chat import Ask, Reply, Usage
from lore.llm.reading import REFUSED, TRUNCATED, Count, read_reply, schema_request
from lore.text.words import clean

USUAL_MODEL = "haiku"
"""The name that the command itself has for the newest small model."""

_WORDS = (
    "-p", "--output-format", "json", "--tools", "", "--no-session-persistence", "--safe-mode",
    "--strict-mcp-config", "--disable-slash-commands", "--setting-sources", "",
)  # fmt: skip

_THINKING = "MAX_THINKING_TOKENS"
_LIMIT = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"
"""Variables that the command knows; by itself it thinks for up to 32,000 tokens."""

_LARGEST_OUTPUT_BYTES = 8 * 1024 * 1024
_LONGEST_SAID_CHARS = 200
_AGAIN = "Your former answer, and what is wrong with it:\n\n"
_PROBLEMS = {"max_tokens": TRUNCATED, "refusal": REFUSED}
_CUT_OFF = "output token maximum"
"""How the command says, as an error, that an answer was longer than it may be."""

_LIMITS = ("rate limit", "usage limit", "limit reached", "overloaded", "429", "529")
_TOO_LONG = ("prompt is too long", "context window", "too large")


class _Usage(BaseModel):
    model_config = ConfigDict(extra="ignore")
    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_input_tokens: Count = 0
    cache_creation_input_tokens: Count = 0


class _Result(BaseModel):
    """What the command prints at its end."""

    model_config = ConfigDict(extra="ignore")
    type: str
    is_error: bool = False
    result: str = ""
    stop_reason: str | None = None
    usage: _Usage = _Usage()
    total_cost_usd: float | None = Field(None, ge=0, allow_inf_nan=False)


class ClaudeCliChat:
    """The command `claude`, asked one question at a time."""

    def __init__(self, command: Path, *, model: str, folder: Path, timeout_s: float) -> None:
        self.identity = f"claude-cli:{model}"
        self._command = command
        self._model = model
        self._folder = folder
        self._timeout_s = timeout_s
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    def ask(self, ask: Ask) -> Reply:
        """Ask once, and return the answer or raise a `ProviderError`."""
        system = ask.system
        if ask.schema is not None:
            system = f"{system}\n\n{schema_request(ask.schema)}"
        given = json.dumps({"env": {_THINKING: "0", _LIMIT: str(ask.max_tokens)}})
        words = ["--model", self._model, "--settings", given, "--system-prompt", system]
        printed = self._run(words, _joined(ask))
        try:
            result = _Result.model_validate_json(printed)
        except ValidationError:
            msg = "claude printed something that is no result."
            raise ProviderUnavailable(msg, hint="Try 'claude -p hello'.") from None
        usage = _usage(result)
        cut_off = _CUT_OFF in result.result[:_LONGEST_SAID_CHARS]
        if (result.is_error and not cut_off) or result.type != "result":
            failure = _failure(result)
            failure.usage = usage if usage.input_tokens or usage.usd else None
            raise failure
        problem = TRUNCATED if cut_off else _PROBLEMS.get(result.stop_reason or "", "")
        return read_reply(result.result, usage, ask.schema, problem)

    def close(self) -> None:
        """End the processes that are under way; whoever waits for them clears up."""
        with self._lock:
            for process in self._running:
                _kill(process)

    def _run(self, words: list[str], prompt: str) -> bytes:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A file, because a process that does not read would block whoever writes to it.
        with tempfile.TemporaryFile() as given:
            given.write(prompt.encode("utf-8", "replace"))
            given.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - a fixed command, without a shell
                    [str(self._command), *_WORDS, *words],
                    cwd=self._folder,
                    stdin=given,
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
            return _output(process, time.monotonic() + self._timeout_s)
        finally:
            with self._lock:
                self._running.discard(process)
            _kill(process)
            process.wait()
            if process.stdout:
                process.stdout.close()


def _output(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """Return what a process prints until its end."""
    assert process.stdout
    pieces: list[bytes] = []
    size = 0
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
            msg = "claude took too long to answer."
            hint = "chat.timeout_s says how long an answer may take."
            raise ProviderUnavailable(msg, hint=hint, billed=True)
        piece = os.read(process.stdout.fileno(), 65_536)
        if not piece:
            return b"".join(pieces)
        size += len(piece)
        if size > _LARGEST_OUTPUT_BYTES:
            msg = "claude printed more than any answer is long."
            raise ProviderUnavailable(msg, billed=True)
        pieces.append(piece)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process with everything that it started."""
    # Once it was waited for, its number may belong to another.
    if process.returncode is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def _joined(ask: Ask) -> str:
    """Return the messages as one prompt: the command takes a single one."""
    told = [one.text for one in ask.messages]
    return told[0] if len(told) == 1 else "\n\n".join([told[0], _AGAIN, *told[1:]])


def _usage(result: _Result) -> Usage:
    told = result.usage
    read, written = told.cache_read_input_tokens, told.cache_creation_input_tokens
    given = told.input_tokens + read + written
    return Usage(given, told.output_tokens, read, written, result.total_cost_usd)


def _failure(result: _Result) -> ProviderError:
    said = " ".join(clean(result.result).split())[:_LONGEST_SAID_CHARS]
    lowered = said.lower()
    msg = f"claude failed: {said}" if said else "claude failed without a word."
    if any(words in lowered for words in _TOO_LONG):
        return PromptTooLong(msg)
    if any(words in lowered for words in _LIMITS):
        return RateLimited(msg, hint="Try again later.")
    return ProviderUnavailable(msg, hint="Try 'claude -p hello'.")
