"""Putting calls of recall back into a request of OpenAI's Responses, where markers stand."""

from __future__ import annotations

from collections.abc import Iterator

from lore.gateway.wires import markers
from lore.gateway.wires.markers import Marker
from lore.gateway.wires.responses.reading import items_of, parts_of, read_document
from lore.gateway.wires.shapes import Json, text
from lore.gateway.wires.wire import FindMarker, Request


def expand(request: Request, find: FindMarker) -> Request:
    """Put calls of recall and their results back where markers stand."""
    if not markers.may_have_markers(request.body):
        return request
    find = markers.once(find)
    items: list[Json] = []
    is_expanded = False
    for item in items_of(request.document):
        made = list(_expanded(item, find)) if item.get("role") == "assistant" else [item]
        is_expanded = is_expanded or made != [item]
        items += made
    if not is_expanded:
        return request
    return read_document(request.body, {**request.document, "input": items}, is_expanded=True)


def _expanded(item: Json, find: FindMarker) -> Iterator[Json]:
    """Yield an item of the assistant, each call with its result where it names one."""
    parts: list[Json] = []
    for part in parts_of(item.get("content")):
        for marker_id, piece in markers.split(text(part.get("text"))) if "text" in part else ():
            found = markers.read(find(marker_id)) if marker_id else None
            if found is None:
                parts.append({**part, "text": piece})
                continue
            if parts:
                yield {**item, "content": parts}
                parts = []
            yield from called(found)
        if "text" not in part:
            parts.append(part)
    if parts:
        yield {**item, "content": parts}


def called(marker: Marker) -> Iterator[Json]:
    """Yield a call and its result, as they are sent upstream each time."""
    said = marker.result or markers.FAILED
    yield marker.call
    call_id = marker.call.get("call_id")
    yield {"type": "function_call_output", "call_id": call_id, "output": said}
