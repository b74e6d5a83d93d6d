"""Lines: what an agent writes to standard input, one message each, and how a wrong one is refused.

Both who pass messages on and who serve them in the same process read them here, so that an agent is
told the same by either.
"""

from __future__ import annotations

import json
from typing import Any

UNPARSABLE, NO_REQUEST, FAILED = -32700, -32600, -32603

Message = dict[str, Any]


class Refused(ValueError):
    """A line that is no message; `id` is that of its request, where it has a sound one."""

    def __init__(self, code: int, told: str, id_: str | int | None = None) -> None:
        super().__init__(told)
        self.code = code
        self.id = id_


def read(line: bytes) -> Message:
    """Return the message on a line, or raise `Refused`: a request has an id that can be given back.

    A line is JSON of whole characters: half of a pair, as some programs write an emoji that they
    have cut, is no text and could not be stored.
    """
    try:
        message = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(UNPARSABLE, "This line is not JSON.") from error
    if not isinstance(message, dict):
        raise Refused(NO_REQUEST, "A message is an object; batches are not served.")
    id_ = message.get("id")
    sound = id_ if type(id_) in (str, int) else None
    if b"\\u" in line and not _is_text(message):
        sound = sound if _is_text(sound) else None
        raise Refused(UNPARSABLE, "A text of this message has half a character in it.", sound)
    if "method" in message:
        if "id" in message and sound is None:
            raise Refused(NO_REQUEST, "The id of a request is a text or a whole number.")
        if not isinstance(message["method"], str):
            raise Refused(NO_REQUEST, "A method is named by a text.", sound)
    elif not message.keys() & {"result", "error"}:
        raise Refused(NO_REQUEST, "This message names no method.", sound)
    return message


def is_request(message: Message) -> bool:
    """Tell whether a message wants an answer."""
    return "id" in message and "method" in message


def refusal(id_: object, code: int, told: str) -> bytes:
    """Return the answer that tells an agent what is wrong."""
    error = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": told}}
    return json.dumps(error).encode()


def _refuse_constant(name: str) -> object:
    """Refuse what Python reads as a number and JSON does not know."""
    raise ValueError(name)


def _is_text(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
