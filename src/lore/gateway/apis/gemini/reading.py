"""Reading a request of Gemini's generateContent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from lore.gateway.apis import keys, models, shapes
from lore.gateway.apis.keys import Piece
from lore.gateway.apis.shapes import Json, table, text
from lore.gateway.apis.wire import Request
from lore.records.dialogues import Block, BlockKind, Dialogue, Entry, Voice

PICTURE_CHARS = 1_032
"""258 tokens for an image or a tile of one (Google's pages)."""

_PATH = re.compile(r"/models/([^:/?]+):(\w+)")
_CACHED = ("cachedContent", "cached_content")
_DECLARING = ("functionDeclarations", "function_declarations")
_MODALITIES = ("responseModalities", "response_modalities")
_WORDS: tuple[object, ...] = (None, [], ["TEXT"])
_USUAL: dict[tuple[str, str], tuple[object, ...]] = {
    ("candidateCount", "candidate_count"): (None, 1),
    ("responseMimeType", "response_mime_type"): (None, "", "text/plain"),
    _MODALITIES: _WORDS,
}
"""What answers are like that can call functions, in either spelling that the API takes."""


class Numbering:
    """Gives ids to calls and results that have none: the nth of a name answers the nth."""

    def __init__(self) -> None:
        self._met: Counter[tuple[str, str]] = Counter()

    def id_of(self, side: str, told: Json) -> str:
        """Return the id of a call or a result."""
        if text(told.get("id")):
            return text(told["id"])
        name = text(told.get("name"))
        self._met[side, name] += 1
        return keys.numbered_call(name, self._met[side, name])


def read(body: bytes, path: str = "") -> Request:
    """Read a request to a path, or raise `InvalidInput` if it has another shape."""
    found = _PATH.search(path)
    model, verb = (found[1], found[2]) if found else ("", "")
    is_stream = verb.startswith("stream")
    streams = is_stream and "alt=sse" in path
    request = read_document(body, shapes.read(body), model=model, streams=streams)
    return request if streams or not is_stream else replace(request, may_recall=False)


def read_document(
    body: bytes,
    document: Json,
    *,
    model: str = "",
    streams: bool = False,
    is_expanded: bool = False,
) -> Request:
    """Read a request out of its document."""
    contents = shapes.tables(document.get("contents"))
    tools = shapes.found(document.get("tools"))
    system = document.get("systemInstruction", document.get("system_instruction"))
    fixed = [*map(shapes.dumped, tools), shapes.dumped(system)]
    places = _places(contents)
    numbering = Numbering()
    return Request(
        body=body,
        document=document,
        dialogue=Dialogue(
            model=model or text(document.get("model")),
            entries=keys.numbered(entry_of(contents[at:end], numbering) for at, end in places),
            fixed_chars=sum(map(len, fixed)),
        ),
        places=places,
        streams=streams,
        tools=frozenset(_names(tools)),
        is_expanded=is_expanded,
        has_history=not any(document.get(name) for name in _CACHED),
        may_recall=_can_call(document, tools) and models.can_call(model),
    )


def _can_call(document: Json, tools: list[Json]) -> bool:
    """Tell whether the one answer to a request may have calls of functions in it.

    Many models refuse functions beside tools of the provider's own, and with answers in JSON.
    """
    config = field(document, "generationConfig")
    has_others = any(set(tool) - set(_DECLARING) for tool in tools)
    return not has_others and all(
        config.get(name) in usual for names, usual in _USUAL.items() for name in names
    )


def asks_for_media(document: Json) -> bool:
    """Tell whether an answer shall be more than words: all that is said goes into it."""
    config = field(document, "generationConfig")
    return any(config.get(name) not in _WORDS for name in _MODALITIES)


def _names(tools: list[Json]) -> Iterator[str]:
    for tool in tools:
        for one in _DECLARING:
            yield from (text(told.get("name")) for told in shapes.found(tool.get(one)))


def _places(contents: list[Json]) -> tuple[tuple[int, int], ...]:
    """Return where entries stand: an answer is one, in however many pieces a client keeps it."""
    return keys.places([one.get("role") for one in contents], ("model",))


def joined(contents: list[Json]) -> list[Json]:
    """Return contents with each answer in one."""
    return [
        _joined(contents[at:end]) if end > at + 1 else contents[at] for at, end in _places(contents)
    ]


def _joined(pieces: list[Json]) -> Json:
    parts: list[Json] = []
    for piece in pieces:
        for part in shapes.found(piece.get("parts")):
            add_part(parts, part)
    return {**pieces[0], "parts": parts}


def add_part(parts: list[Json], part: Json) -> None:
    """Put the next part of an answer to the others; texts of one kind become one."""
    last = parts[-1] if parts else {}
    if _kind(part) is not None and _kind(part) == _kind(last):
        parts[-1] = {**last, **part, "text": last["text"] + part["text"]}
    elif part.get("text") != "" or len(part) > 1:
        parts.append(part)


def _kind(part: Json) -> tuple[bool, bool] | None:
    """Return of which kind a text is; what follows a signature is another, it was signed alone."""
    if not isinstance(part.get("text"), str):
        return None
    return part.get("thought") is True, "thoughtSignature" in part


def entry_of(contents: list[Json], numbering: Numbering) -> Entry:
    """Return the contents of one side as an entry."""
    voice: Voice = "assistant" if contents[0].get("role") == "model" else "user"
    parts: list[Json] = []
    for part in (part for content in contents for part in shapes.found(content.get("parts"))):
        if voice == "assistant":
            # Clients join texts whether they are signed or not.
            unsigned = {name: part[name] for name in part if name != "thoughtSignature"}
            add_part(parts, unsigned)
        else:
            parts.append(part)
    pieces = [_piece(part, numbering) for part in parts]
    if contents[0].get("role") == "function":  # what is said there, a program says
        pieces = [_unsaid(piece) for piece in pieces]
    return keys.entry(voice, pieces)


def _unsaid(piece: Piece) -> Piece:
    block = piece.block
    kind: BlockKind = "other" if block.kind == "text" else block.kind
    return piece._replace(block=replace(block, kind=kind))


def field(part: Json, name: str) -> Json:
    """Return a field of a part, in either spelling that the API takes."""
    spelled = re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)
    return table(part.get(name)) or table(part.get(spelled))


def _piece(part: Json, numbering: Numbering) -> Piece:
    call, result = field(part, "functionCall"), field(part, "functionResponse")
    if call:
        given = shapes.dumped(call.get("args"))
        name, call_id = text(call.get("name")), numbering.id_of("call", call)
        # Clients give ids to calls that come without.
        block = Block("call", len(given) + len(name), given, call_id, name, by_id=False)
        return Piece(block, keys.digest(name, given))
    if result:
        said, call_id = _said(result), numbering.id_of("result", result)
        name = text(result.get("name"))
        return Piece(Block("result", len(said), said, call_id, name), call_id)
    if isinstance(part.get("text"), str):
        said = part["text"]
        if part.get("thought") is True:
            return Piece(Block("reasoning", len(said), said), said)
        return Piece(Block("text", len(said), said), keys.without_reminders(said))
    told = shapes.dumped(part)
    is_picture = bool(field(part, "inlineData") or field(part, "fileData"))
    size = PICTURE_CHARS if is_picture else len(told)
    sort = next(iter(part), "")
    return Piece(Block("other", size, f"[{sort}]", tool=sort), keys.digest(told))


def _said(result: Json) -> str:
    """Return the text of a result, which programs put into one of two fields or beside them."""
    response = table(result.get("response"))
    for name in ("output", "result", "error"):
        if len(response) == 1 and isinstance(response.get(name), str):
            return text(response[name])
    return shapes.dumped(response)
