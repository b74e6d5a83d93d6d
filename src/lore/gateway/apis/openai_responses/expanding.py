"""Putting calls of recall back into a request of OpenAI's Responses, where markers stand."""

from __future__ import annotations

from collections.abc import Iterator

from lore.gateway.apis import markers
from lore.gateway.apis.markers import Marker
from lore.gateway.apis.openai_responses.reading import items_of, parts_of, read_document
from lore.gateway.apis.shapes import Json, text
from lore.gateway.apis.wire import FindMarker, Request

Atom = Json | Marker

_OF_THE_WHOLE = ("annotations", "logprobs")
"""What is told of a text by the places of its letters."""


def expand(request: Request, find: FindMarker) -> Request:
    """Put calls of recall and their results back where markers stand."""
    if not markers.may_have_markers(request.body):
        return request
    find = markers.once(find)
    items: list[Json] = []
    is_expanded = False
    for item in items_of(request.document):
        atoms = list(_atoms(item, find))
        if any(isinstance(atom, Marker) for atom in atoms):
            items += _expanded(item, atoms)
            is_expanded = True
        else:
            items.append(item)
    if not is_expanded:
        return request
    return read_document(request.body, {**request.document, "input": items}, is_expanded=True)


def _atoms(item: Json, find: FindMarker) -> Iterator[Atom]:
    """Yield what an assistant said, with markers for the texts that name one."""
    if item.get("role") != "assistant":
        return
    for part in parts_of(item.get("content"), "output_text"):
        said = text(part.get("text"))
        if not markers.may_have_markers(said.encode(errors="replace")):
            yield part
            continue
        unplaced: Json = {name: [] for name in _OF_THE_WHOLE if name in part}
        for marker_id, piece in markers.split(said):
            found = markers.read(find(marker_id)) if marker_id else None
            yield {**part, **unplaced, "text": piece} if found is None else found


def _expanded(item: Json, atoms: list[Atom]) -> Iterator[Json]:
    """Yield the items that one was made of, each call with its result.

    One of them has its id: none may stand twice.
    """
    held: list[Json] = []
    for atom in (*atoms, None):
        if isinstance(atom, dict):
            held.append(atom)
            continue
        if any(part.get("text") != "" for part in held):
            yield _message(item, held)
            item = unnamed(item)
        held = []
        if atom is not None:
            yield from called(atom)


def _message(item: Json, parts: list[Json]) -> Json:
    """Return some parts of an item in the form that it has."""
    if isinstance(item.get("content"), str):
        return {**item, "content": "".join(text(part.get("text")) for part in parts)}
    return {**item, "content": parts}


def called(marker: Marker) -> Iterator[Json]:
    """Yield a call and its result, as they are sent upstream each time.

    By its id a call would be bound to a thought, which the client may not keep.
    """
    said = marker.result or markers.FAILED
    yield unnamed(marker.call)
    call_id = marker.call.get("call_id")
    yield {"type": "function_call_output", "call_id": call_id, "output": said}


def unnamed(item: Json) -> Json:
    """Return an item without its id."""
    return {name: value for name, value in item.items() if name != "id"}
