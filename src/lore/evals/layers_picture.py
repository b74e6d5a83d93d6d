"""A picture of the layers: how long each prompt of a replayed session was, and of what."""

from __future__ import annotations

from lore.evals.economics import Result


def draw(result: Result) -> str:
    return str(result)
