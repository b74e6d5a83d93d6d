"""Loading: tools that were found by a search stay loaded where a prompt leaves the search out.

A client that defers its tools sends them all, and the API shows the model those that a result
refers to. A call of another one may be refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from lore.gateway.apis import shapes
from lore.gateway.apis.anthropic.reading import bare, blocks_of
from lore.gateway.apis.shapes import Json, table, text

_REFERENCE = "tool_reference"
_SEARCHED = "tool_search_tool_result"
"""What the API's own search finds; it stands behind its call, in the same message."""


class Loaded(NamedTuple):
    """Searches that are said again: the client's as messages, and the API's own as blocks."""

    messages: list[Json]
    blocks: list[Json]


def loaded(messages: Sequence[Json], tools: Collection[str]) -> Loaded:
    """Return the searches of messages that are left out, as far as they found tools there are."""
    calls: dict[str, Json] = {}
    found: dict[str, Json] = {}
    pair: list[Json] = []
    own: list[Json] = []
    for block in (bare(one) for told in messages for one in blocks_of(told.get("content"))):
        call = calls.get(text(block.get("tool_use_id")))
        if block.get("type") in ("tool_use", "server_tool_use"):
            calls[text(block.get("id"))] = block
        elif call is None:
            continue
        elif refers(block):
            known = {_name(one): one for one in _references(block) if _name(one) in tools}
            new = {name: one for name, one in known.items() if name not in found}
            found |= new
            pair = pair or ([call, block] if new else [])
        elif block.get("type") == _SEARCHED:
            names = {_name(one) for one in _references(block)}
            own += [call, block] if names and names <= set(tools) else []
    if not pair:
        return Loaded([], own)
    call, result = pair
    return Loaded(
        [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{**result, "content": list(found.values())}]},
        ],
        own,
    )


def refers(block: Json) -> bool:
    """Tell whether a block is a result that loads tools."""
    return block.get("type") == "tool_result" and any(_references(block))


def _references(block: Json) -> Iterator[Json]:
    content = block.get("content")
    given = table(content).get("tool_references") if isinstance(content, dict) else content
    return (bare(one) for one in shapes.found(given) if one.get("type") == _REFERENCE)


def _name(reference: Json) -> str:
    return text(reference.get("tool_name"))
