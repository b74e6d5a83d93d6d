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

from tests.gateway.replies import Piece
from tests.gateway.upstream import Asked, Call, Fails, Reply, Says, Text, Thought, upstream

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

    def __call__(self, asked: Asked) -> Reply:
        """Return the reply to a request."""
        self.came_s[asked.number] = time.monotonic()
        wanted = json.loads(asked.header(HEADER) or "{}")
        if wanted.get("fails"):
            kind = "rate_limit_error" if wanted["fails"] == 429 else "api_error"
            return Fails(wanted["fails"], kind, headers={"retry-after": "1"})
        pieces = self._pieces(asked, wanted)
        tokens = 1 + sum(len(str(piece)) for piece in pieces) // 4
        self.written[asked.number] = tokens
        return Says(
            *pieces,
            output_tokens=tokens,
            after_s=wanted.get("after_s", 0.0),
            gap_s=wanted.get("gap_s", 0.0),
        )

    def _pieces(self, asked: Asked, wanted: dict[str, Any]) -> list[Piece]:
        mark, step = wanted.get("mark", ""), self._steps[wanted.get("step", 0)]
        has_searched = f"{mark}.looks".encode() in asked.body  # a further round of the same answer
        if wanted.get("searches") and not has_searched and _may_search(asked):
            query = " ".join(step.words.split()[:8]) or "upgrade"
            return [Text(f"{mark}.looks I look it up."), Call(SEARCH, {"query": query})]
        said: list[Piece] = [Text(f"{mark}.said {step.words}")]
        if wanted.get("thinks"):
            said.insert(0, Thought(f"I think about {mark}.thought"))
        if step.tool:
            said.append(Call(step.tool, {"path": f"/code/{mark}.called"}))
        return said


def _may_search(asked: Asked) -> bool:
    tools = asked.tree.get("tools") or ()
    return any(SEARCH in (one.get("name"), one.get("function", {}).get("name")) for one in tools)


def row_of(asked: Asked, script: Script) -> dict[str, Any]:
    """Return what is billed for a request that has ended."""
    wanted, use = json.loads(asked.header(HEADER) or "{}"), asked.use
    return {
        "mark": wanted.get("mark", ""),
        "wire": asked.wire,
        "path": asked.path,
        "model": asked.tree.get("model", "") if isinstance(asked.tree, dict) else "",
        "came_s": script.came_s.pop(asked.number, 0.0),
        "input": use.total,
        "cache_read": use.read,
        "cache_write": use.written_5m,
        "cache_write_1h": use.written_1h,
        "output": script.written.pop(asked.number, 0),
        "ended": asked.ended,
        "problem": asked.problem,
        "bytes": len(asked.body),
    }


def main(log: Path) -> None:
    """Serve until standard input is closed, and print the port."""
    script = Script()
    with upstream(script, window_tokens=WINDOW_TOKENS) as served, log.open("a") as rows:
        print(served.url.rpartition(":")[2], flush=True)
        while not select.select([sys.stdin], [], [], LOOK_S)[0]:
            for asked in [one for one in served.asked if one.ended]:
                served.asked.remove(asked)
                rows.write(json.dumps(row_of(asked, script)) + "\n")
            rows.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
