"""Putting calls of recall back into a request of Chat Completions, where markers stand."""

from __future__ import annotations

from collections.abc import Iterator

from lore.gateway.apis import markers, shapes
from lore.gateway.apis.markers import Marker
from lore.gateway.apis.openai_chat.reading import parts_of, read_document
from lore.gateway.apis.shapes import Json, text
from lore.gateway.apis.wire import FindMarker, Request

_OWN = ("role", "content", "tool_calls")


def expand(request: Request, find: FindMarker) -> Request:
    """Put calls of recall and their results back where markers stand."""
    if not markers.may_have_markers(request.body):
        return request
    find = markers.once(find)
    messages: list[Json] = []
    is_expanded = False
    for message in shapes.tables(request.document["messages"]):
        atoms = list(_atoms(message, find)) if message.get("role") == "assistant" else []
        if any(isinstance(atom, Marker) for atom in atoms):
            messages += _expanded(message, atoms)
            is_expanded = True
        else:
            messages.append(message)
    if not is_expanded:
        return request
    return read_document(request.body, {**request.document, "messages": messages}, is_expanded=True)


def _atoms(message: Json, find: FindMarker) -> Iterator[str | Marker]:
    """Yield what an assistant said, with markers for the texts that name one."""
    said = "".join(text(part.get("text")) for part in parts_of(message.get("content")))
    for marker_id, piece in markers.split(said):
        found = markers.read(find(marker_id)) if marker_id else None
        yield piece if found is None else found


def _expanded(message: Json, atoms: list[str | Marker]) -> list[Json]:
    """Return the messages that one was made of."""
    made: list[Json] = []
    said = ""
    waiting: list[Marker] = []
    extras = [dict(message)]
    for atom in atoms:
        if waiting and (isinstance(atom, str) or atom.round != waiting[0].round):
            made += _round(said, waiting, extras)
            said, waiting = "", []
        if isinstance(atom, str):
            said += atom
        else:
            waiting.append(atom)
    if waiting and not waiting[0].is_mixed:
        made += _round(said, waiting, extras)
        said, waiting = "", []
    calls = shapes.found(message.get("tool_calls"))
    for marker in waiting:
        calls.insert(marker.place, marker.call)
    others = [part for part in parts_of(message.get("content")) if "text" not in part]
    parts = [*([{"type": "text", "text": said}] if said else []), *others]
    last: Json = {**extras[0], "content": parts if others else said or None}
    if calls:
        last["tool_calls"] = calls
    if parts or calls:
        made += [last, *map(result_of, waiting)]
    return made


def _round(said: str, waiting: list[Marker], extras: list[Json]) -> list[Json]:
    """Return an answer that called recall alone, with its results.

    What it said beside its content is taken from what the client has of all answers.
    """
    extra = waiting[0].extra
    for name, value in extra.items():
        held = extras[0].get(name)
        if isinstance(held, str) and isinstance(value, str) and held.startswith(value):
            extras[0][name] = held[len(value) :]
            if not extras[0][name]:
                del extras[0][name]
    return [spoken(said, waiting, extra), *map(result_of, waiting)]


def spoken(said: str, waiting: list[Marker], extra: Json) -> Json:
    """Return the message that called recall, as it is sent upstream each time."""
    content = said.strip("\n") or None
    calls = [marker.call for marker in waiting]
    return {"role": "assistant", "content": content, **extra, "tool_calls": calls}


def extra_of(message: Json) -> Json:
    """Return what a message says beside its content and its calls."""
    return {name: value for name, value in message.items() if name not in _OWN}


def result_of(marker: Marker) -> Json:
    """Return the result of a call as a message."""
    said = marker.result or markers.FAILED
    return {"role": "tool", "tool_call_id": marker.call.get("id"), "content": said}
