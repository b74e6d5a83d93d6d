"""Putting calls of recall back into a request of Gemini's, where markers stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lore.gateway.apis import markers, shapes
from lore.gateway.apis.gemini.reading import joined, read_document
from lore.gateway.apis.markers import Marker
from lore.gateway.apis.shapes import Json, table, text
from lore.gateway.apis.wire import FindMarker, Request

Atom = Json | Marker


def expand(request: Request, find: FindMarker) -> Request:
    """Put calls of recall and their results back where markers stand."""
    if not markers.may_have_markers(request.body):
        return request
    find = markers.once(find)
    contents: list[Json] = []
    waiting: list[Json] = []
    is_expanded = False
    for content in joined(shapes.tables(request.document["contents"])):
        atoms = list(_atoms(content, find))
        if any(isinstance(atom, Marker) for atom in atoms):
            made, waiting = _expanded(content, atoms)
            contents += made
            is_expanded = True
        elif waiting and content.get("role") != "model":
            parts = [*waiting, *shapes.found(content.get("parts"))]
            contents.append({**content, "parts": parts})
            waiting = []
        else:
            contents.append(content)
    if not is_expanded:
        return request
    if waiting:
        contents.append({"role": "user", "parts": waiting})
    expanded = read_document(
        request.body,
        {**request.document, "contents": contents},
        model=request.dialogue.model,
        streams=request.streams,
        is_expanded=True,
    )
    return replace(expanded, may_recall=request.may_recall)


def _atoms(content: Json, find: FindMarker) -> Iterator[Atom]:
    """Yield the parts of the model's content, with markers for the texts that name one."""
    if content.get("role") != "model":
        return
    for part in shapes.found(content.get("parts")):
        said = text(part.get("text"))
        if not markers.may_have_markers(said.encode(errors="replace")):
            yield part
            continue
        for marker_id, piece in markers.split(said):
            found = markers.read(find(marker_id)) if marker_id else None
            if found is not None:
                yield found
            elif piece:
                yield {**part, "text": piece}


def _expanded(content: Json, atoms: list[Atom]) -> tuple[list[Json], list[Json]]:
    """Return the contents that one was made of, and the results for the next of the user.

    Turns have to alternate: results with nothing of the model behind them wait, too.
    """
    apart = markers.take_apart(atoms)
    made: list[Json] = []
    for parts, answered in apart.closed:
        made.append({**content, "parts": parts})
        made.append({"role": "user", "parts": [result_of(one) for one in answered]})
    waiting = [result_of(one) for one in apart.waiting]
    if apart.rest:
        made.append({**content, "parts": apart.rest})
    elif made:
        waiting = made.pop()["parts"]
    return made, waiting


def result_of(marker: Marker) -> Json:
    """Return the result of a call as a part."""
    call = table(marker.call.get("functionCall"))
    told = {name: call[name] for name in ("id", "name") if name in call}
    said = marker.result or markers.FAILED
    return {"functionResponse": {**told, "response": {"output": said}}}
