"""Putting calls of recall back into a request of Anthropic's Messages, where markers stand."""

from __future__ import annotations

from collections.abc import Iterator

from lore.gateway.wires import markers, shapes
from lore.gateway.wires.anthropic.reading import blocks_of, read_document
from lore.gateway.wires.markers import Marker
from lore.gateway.wires.shapes import Json, text
from lore.gateway.wires.wire import FindMarker, Request

Atom = Json | Marker


def expand(request: Request, find: FindMarker) -> Request:
    """Put calls of recall and their results back where markers stand."""
    if not markers.may_have_markers(request.body):
        return request
    messages: list[Json] = []
    waiting: list[Json] = []
    is_expanded = False
    for message in shapes.tables(request.document["messages"]):
        atoms = list(_atoms(message, find))
        if any(isinstance(atom, Marker) for atom in atoms):
            made, waiting = _expanded(message, atoms)
            messages += made
            is_expanded = True
        elif waiting and message.get("role") == "user":
            content = [*waiting, *blocks_of(message.get("content"))]
            messages.append({**message, "content": content})
            waiting = []
        else:
            messages.append(message)
    if not is_expanded:
        return request
    if waiting:
        messages.append({"role": "user", "content": waiting})
    return read_document(request.body, {**request.document, "messages": messages}, is_expanded=True)


def _atoms(message: Json, find: FindMarker) -> Iterator[Atom]:
    """Yield the blocks of an assistant's message, with markers for the texts that name one."""
    if message.get("role") != "assistant":
        return
    for block in blocks_of(message.get("content")):
        said = text(block.get("text")) if block.get("type") == "text" else ""
        if not markers.may_have_markers(said.encode(errors="replace")):
            yield block
            continue
        for marker_id, piece in markers.split(said):
            found = markers.read(find(marker_id)) if marker_id else None
            if found is not None:
                yield found
            elif piece.strip():
                yield {**block, "text": piece}


def _expanded(message: Json, atoms: list[Atom]) -> tuple[list[Json], list[Json]]:
    """Return the messages that one was made of, and the results for the next of the user."""
    apart = markers.take_apart(atoms)
    made: list[Json] = []
    for blocks, answered in apart.closed:
        made.append({**message, "content": blocks})
        made.append({"role": "user", "content": [result_of(one) for one in answered]})
    if apart.rest:
        made.append({**message, "content": apart.rest})
    return made, [result_of(one) for one in apart.waiting]


def result_of(marker: Marker) -> Json:
    """Return the result of a call as a block."""
    content = [{"type": "text", "text": marker.result or markers.FAILED}]
    return {"type": "tool_result", "tool_use_id": marker.call.get("id"), "content": content}
