"""Refusing: an agent whose Lore cannot be had is told so in words of the protocol."""

from __future__ import annotations

import os
import select
import time

from lore.proxy import lines
from lore.proxy.lines import FAILED, Refused

ASKED_S = 10.0
"""An agent asks at once; who has said nothing by then does not wait for an answer."""

_CHUNK = 65_536


def answer_first(told: str, given: int, out: int, within_s: float = ASKED_S) -> None:
    """Answer the first request that comes in on a file descriptor with what is wrong."""
    held, until = b"", time.monotonic() + within_s
    while select.select([given], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(given, _CHUNK)
        *whole, held = (held + part).split(b"\n")
        for line in filter(bytes.strip, whole):
            try:
                message = lines.read(line)
            except Refused as refused:
                _print(out, lines.refusal(refused.id, refused.code, str(refused)))
                continue
            if lines.is_request(message):
                _print(out, lines.refusal(message["id"], FAILED, told))
                return
        if not part:
            return


def _print(out: int, line: bytes) -> None:
    try:
        os.write(out, line + b"\n")
    except OSError:
        return  # the agent has gone: nobody is left to be told
