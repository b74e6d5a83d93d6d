"""The upstream of a soak: answers as each request asks for in a header, and writes what it bills.

A row is written for each request: whose it was, when it came, what it took and how it ended.
"""

from __future__ import annotations

import json
import select
import sys
import time
from pathlib import Path
from typing import Any

from tests.upstream import (
    Call,
    ModelError,
    ModelReply,
    ReceivedRequest,
    ScriptedResponse,
    Text,
    Thought,
    running_upstream,
)
from tests.upstream.script import Part

from soak_material import HEADER, load_steps

SEARCH = "recall"
"""The tool that the gateway offers."""

LOOK_S = 0.2
WINDOW_TOKENS = 400_000


class Script:
    """Answers by the header, and knows when each request came."""

    def __init__(self) -> None:
        self._steps = load_steps()
        self.came_s: dict[int, float] = {}
        self.written: dict[int, int] = {}

    def __call__(self, asked: ReceivedRequest) -> ScriptedResponse:
        """Return the reply to a request."""
        self.came_s[asked.number] = time.monotonic()
        wanted = json.loads(asked.header(HEADER) or "{}")
        if wanted.get("fails"):
            kind = "rate_limit_error" if wanted["fails"] == 429 else "api_error"
            return ModelError(wanted["fails"], kind, headers={"retry-after": "1"})
        pieces = self._pieces(asked, wanted)
        tokens = 1 + sum(len(str(piece)) for piece in pieces) // 4
        self.written[asked.number] = tokens
        return ModelReply(
            *pieces,
            output_tokens=tokens,
            delay_s=wanted.get("after_s", 0.0),
            pause_s=wanted.get("gap_s", 0.0),
        )

    def _pieces(self, asked: ReceivedRequest, wanted: dict[str, Any]) -> list[Part]:
        mark, step = wanted.get("mark", ""), self._steps[wanted.get("step", 0)]
        has_searched = f"{mark}.looks".encode() in asked.body  # a further round of the same answer
        if wanted.get("searches") and not has_searched and _may_search(asked):
            query = " ".join(step.words.split()[:8]) or "upgrade"
            return [Text(f"{mark}.looks I look it up."), Call(SEARCH, {"query": query})]
        said: list[Part] = [Text(f"{mark}.said {step.words}")]
        if wanted.get("thinks"):
            said.insert(0, Thought(f"I think about {mark}.thought"))
        if step.tool:
            said.append(Call(step.tool, {"path": f"/code/{mark}.called"}))
        return said


def _may_search(asked: ReceivedRequest) -> bool:
    tools = asked.json.get("tools") or ()
    return any(SEARCH in (one.get("name"), one.get("function", {}).get("name")) for one in tools)


def row_of(asked: ReceivedRequest, script: Script) -> dict[str, Any]:
    """Return what is billed for a request that has ended."""
    wanted, use = json.loads(asked.header(HEADER) or "{}"), asked.usage
    return {
        "mark": wanted.get("mark", ""),
        "api": asked.api,
        "path": asked.path,
        "model": asked.json.get("model", "") if isinstance(asked.json, dict) else "",
        "came_s": script.came_s.pop(asked.number, 0.0),
        "input": use.total,
        "cache_read": use.read,
        "cache_write": use.written_5m,
        "cache_write_1h": use.written_1h,
        "output": script.written.pop(asked.number, 0),
        "outcome": asked.outcome,
        "problem": asked.problem,
        "bytes": len(asked.body),
    }


def main(log: Path) -> None:
    """Serve until standard input is closed, and print the port."""
    script = Script()
    with running_upstream(script, window_tokens=WINDOW_TOKENS) as served, log.open("a") as rows:
        print(served.url.rpartition(":")[2], flush=True)
        while not select.select([sys.stdin], [], [], LOOK_S)[0]:
            for asked in [one for one in served.requests if one.outcome]:
                served.requests.remove(asked)
                rows.write(json.dumps(row_of(asked, script)) + "\n")
            rows.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
