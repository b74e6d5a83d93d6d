"""Tool results: whether one tells of an error, and the line that says which."""

from __future__ import annotations

import re
from typing import Literal

from lore.text import lines
from lore.text.calls import Call
from lore.text.later import compile_later

Verdict = Literal["ok", "failed", "refused"]

MESSAGE_CHARS = 160
_HEAD, _TAIL = 3_000, 3_000
"""Errors stand at the beginning of an output or at its end."""

_NOT_RUN = compile_later(
    r"Sibling tool call errored|The user doesn't want to (?:proceed|take this action)"
    r"|user (?:rejected|declined|denied)"
    r"|\[Request interrupted by user|tool use was rejected",
    re.IGNORECASE,
)
"""Signs that a call was not made: a person or the failure of one beside it kept it back."""

_FAILED = compile_later(
    r"""^\s*(?:<tool_use_error>|Exit\ code\ [1-9]|"?exit_code"?:\ ?[1-9]|ENOENT|EACCES
        |exit(?:ed)?\ (?:with\ )?(?:code|status)[:\ ]\ ?[1-9]|InputValidationError
        |Process\ exited\ with\ code\ [1-9])""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_BROKEN = compile_later(
    r"""^(?:---\ FAIL|FAIL\b|=+\ .{0,40}\b[1-9]\d*\ failed|FAILED\b|Traceback\ \(most\ recent
          |panic:|error\[E\d+\]|error:|fatal:|npm\ ERR!|Error:\ |make:\ \*\*\*)
      | \b[1-9]\d*\ (?:failed|failing|failures?|errors?|issues:)\b|\b[1-9]\d*\ issues?:\n
      | \[build\ failed\]|command\ not\ found|Compilation\ failed|undefined:\ \w|SyntaxError:
      | \b(?:test|lint|build|check)\S{0,20}\ (?:task\ )?failed\b|typecheck\)""",
    re.MULTILINE | re.VERBOSE,
)
"""Signs in the output of a test, a linter or a compiler: pipes hide the exit code."""

_TELLING = compile_later(
    r"\b(?:error|fail(?:ed|s|ure)?|cannot|can't|could not|undefined|expected|not found|no such"
    r"|panic|denied|invalid|unknown|unused|unexpected|missing|exception|traceback|conflict)\b"
    r"|--- FAIL|FAIL\b|\b\w{2,60}(?:Error|Exception):",
    re.IGNORECASE,
)
_NOISE = compile_later(
    r"^\s*(?:Exit code \d+|\[[\w:-]+\] (?:\$ |ERROR|Finished).{0,300}|=== \w+.*|<error>|\$ .*"
    r"|\?\s+\S+\s+\[no test files\]|ok\s+\S+.*|Traceback \(most recent call last\):)?\s*$"
)
_TAG = compile_later(r"</?(?:tool_use_error|error|output|stdout|stderr)>")


def verdict_of(call: Call, text: str, *, failed: bool) -> Verdict:
    """Tell how a call went by what came back."""
    head = text[:_HEAD]
    if _NOT_RUN.search(head[:400]):
        return "refused"
    if failed or _FAILED.match(head):
        return "failed"
    if call.check and _BROKEN.search(_ends(text)):
        return "failed"
    return "ok"


def message_of(text: str) -> str:
    """Return the line of an output that says what went wrong."""
    told = [_TAG.sub("", line).strip() for line in _ends(text).splitlines()]
    told = [line for line in told if line and not _NOISE.match(line[:400])]
    telling = next((line for line in told if _TELLING.search(line[:400])), None)
    return lines.one_line(telling or (told[0] if told else ""), MESSAGE_CHARS)


def _ends(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"
