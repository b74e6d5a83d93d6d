"""Putting calls of recall back into a request of Anthropic's Messages, where markers stand."""

from __future__ import annotations

from collections.abc import Iterator

from lore.gateway.apis import markers, shapes
from lore.gateway.apis.anthropic.reading import bare, blocks_of, is_said, read, read_document
from lore.gateway.apis.markers import Marker
from lore.gateway.apis.shapes import Json, text
from lore.gateway.apis.wire import FindMarker, Request

Atom = Json | Marker


def expand(request: Request, find: FindMarker) -> Request:
    """Put calls of recall and their results back where markers stand."""
    return _put_back(request, find, 0)


def mend(body: bytes, find: FindMarker) -> bytes:
    """Return a prompt that goes out without memory so that its thoughts are what they were.

    Thoughts of a turn that waits for results are checked. Before that, markers are texts.
    """
    if not markers.may_have_markers(body):
        return body
    request = read(body)
    made = _put_back(request, find, _turn_begins(shapes.tables(request.document["messages"])))
    return shapes.written(made.document) if made.is_expanded else body


def _put_back(request: Request, find: FindMarker, since: int) -> Request:
    """Put back what markers from a message on stand for."""
    if not markers.may_have_markers(request.body):
        return request
    find = markers.once(find)
    given = shapes.tables(request.document["messages"])
    turn = _turn_begins(given)
    messages: list[Json] = []
    waiting: list[Json] = []
    for at, message in enumerate(given):
        held = list(_atoms(message, find)) if at >= since else []
        atoms = _as_thought(held) if at >= turn else held
        if len(atoms) < len(held) or any(isinstance(atom, Marker) for atom in atoms):
            made, waiting = _expanded(message, list(filter(_is_said, atoms)))
            messages += made
        elif waiting and message.get("role") == "user":
            content = [*waiting, *blocks_of(message.get("content"))]
            messages.append({**message, "content": content})
            waiting = []
        else:
            messages.append(message)
    if waiting:
        messages.append({"role": "user", "content": waiting})
    if messages == given:
        return request
    return read_document(request.body, {**request.document, "messages": messages}, is_expanded=True)


def _turn_begins(messages: list[Json]) -> int:
    """Return where the turn begins that waits for results: behind the last words of the user."""
    for at in range(len(messages) - 1, -1, -1):
        blocks = blocks_of(messages[at].get("content"))
        is_result = any(one.get("type") == "tool_result" for one in blocks)
        if messages[at].get("role") == "user" and not is_result:
            return at + 1
    return 0


def _as_thought(atoms: list[Atom]) -> list[Atom]:
    """Return the last answer alone, where those before it end in a marker that nobody knows.

    Together they are no answer that the model gave, and its thoughts may not be joined.
    """
    thoughts = [at for at, atom in enumerate(atoms) if _is_thought(atom)]
    last = thoughts[-1] if thoughts else 0
    lost = [at for at in range(last) if _names_marker(atoms[at])]
    return atoms[lost[-1] + 1 :] if lost else atoms


def _is_thought(atom: Atom) -> bool:
    return isinstance(atom, dict) and text(atom.get("type")).endswith("thinking")


def _names_marker(atom: Atom) -> bool:
    return isinstance(atom, dict) and any(found for found, _ in markers.split(_said(atom)))


def _said(block: Json) -> str:
    return text(block.get("text")) if block.get("type") == "text" else ""


def _is_said(atom: Atom) -> bool:
    return isinstance(atom, Marker) or is_said(atom)


def _atoms(message: Json, find: FindMarker) -> Iterator[Atom]:
    """Yield the blocks of an assistant's message, with markers for the texts that name one."""
    if message.get("role") != "assistant":
        return
    for block in blocks_of(message.get("content")):
        said = _said(block)
        if not markers.may_have_markers(said.encode(errors="replace")):
            yield block
            continue
        yield from _with_last_breakpoint(block, list(_taken_apart(block, said, find)))


def _taken_apart(block: Json, said: str, find: FindMarker) -> Iterator[Atom]:
    for marker_id, piece in markers.split(said):
        found = markers.read(find(marker_id)) if marker_id else None
        if found is not None:
            yield found
        elif piece.strip():
            yield {**bare(block), "text": piece}


def _with_last_breakpoint(block: Json, atoms: list[Atom]) -> list[Atom]:
    """Return the pieces of a text with its breakpoint on the last: they are few, and counted."""
    if "cache_control" in block:
        for at in range(len(atoms) - 1, -1, -1):
            atom = atoms[at]
            if isinstance(atom, dict):
                atoms[at] = {**atom, "cache_control": block["cache_control"]}
                break
    return atoms


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
