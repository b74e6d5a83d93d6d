"""Reading a request of OpenAI's Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator

from lore.gateway.apis import keys, models, shapes
from lore.gateway.apis.keys import Piece
from lore.gateway.apis.shapes import Json, table, text
from lore.gateway.apis.wire import Request
from lore.records.dialogues import Block, Dialogue, Entry

PICTURE_CHARS = 4_000
"""About 1,000 tokens: a picture of 1024 × 1024 at high detail takes 765 (OpenAI's pages)."""

PROGRAM = ("system", "developer")

_INSTEAD = ("functions", "function_call", "prediction", "web_search_options")
"""What a request has in the place of tools, or is refused for beside them (OpenAI's pages)."""


def read(body: bytes, path: str = "") -> Request:  # noqa: ARG001 (Gemini's says more)
    """Read a request to a path, or raise `InvalidInput` if it has another shape."""
    return read_document(body, shapes.read(body))


def read_document(body: bytes, document: Json, *, is_expanded: bool = False) -> Request:
    """Read a request out of its document; what the program says first is no entry."""
    messages = shapes.tables(document.get("messages"))
    head = head_of(messages)
    # The results of parallel calls are one entry.
    places = keys.places([one.get("role") for one in messages], ("tool",), head)
    names: dict[str, str] = {}
    tools = shapes.found(document.get("tools"))
    fixed = [shapes.dumped(one) for one in tools]
    fixed += ["\n".join(_texts(one.get("content"))) for one in messages[:head]]
    return Request(
        body=body,
        document=document,
        dialogue=Dialogue(
            model=text(document.get("model")),
            entries=keys.numbered(entry_of(messages[at:end], names) for at, end in places),
            fixed_chars=sum(map(len, fixed)),
        ),
        places=places,
        streams=document.get("stream") is True,
        tools=frozenset(text(table(tool.get("function")).get("name")) for tool in tools),
        is_expanded=is_expanded,
        may_recall=_can_call(document) and models.can_call(text(document.get("model"))),
    )


def _can_call(document: Json) -> bool:
    """Tell whether the one answer to a request may have calls in it, on every server.

    Some refuse tools with answers in JSON; a client that has both asks one that does not.
    """
    if document.get("n") not in (None, 1) or any(document.get(name) for name in _INSTEAD):
        return False
    form = table(document.get("response_format")).get("type")
    speaks = document.get("modalities") not in (None, [], ["text"])
    return not speaks and (form in (None, "text") or bool(document.get("tools")))


def head_of(messages: list[Json]) -> int:
    """Return how many messages of the program stand before all others."""
    for at, one in enumerate(messages):
        if one.get("role") not in PROGRAM:
            return at
    return len(messages)


def entry_of(messages: list[Json], names: dict[str, str]) -> Entry:
    """Return messages as one entry: one of anybody, or several of tools.

    `names` holds the tools of calls for the results that follow.
    """
    role = messages[0].get("role")
    if role == "tool":
        return keys.entry("user", [_result(one, names) for one in messages])
    if role == "assistant":
        return keys.entry("assistant", list(_spoken(messages[0], names)))
    pieces = [_piece(part) for part in parts_of(messages[0].get("content"))]
    return keys.entry("user" if role == "user" else "system", pieces)


def parts_of(content: object) -> list[Json]:
    """Return a content as parts, whichever form the client chose."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return shapes.found(content)


def _texts(content: object) -> list[str]:
    return [text(part.get("text")) for part in parts_of(content)]


def _spoken(message: Json, names: dict[str, str]) -> Iterator[Piece]:
    thought = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    if thought:
        yield Piece(Block("reasoning", len(thought), thought), thought)
    for part in parts_of(message.get("content")):
        yield _piece(part)
    for call in shapes.found(message.get("tool_calls")):
        yield _call(call, names)


def _piece(part: Json) -> Piece:
    sort = text(part.get("type"))
    if sort in ("text", "refusal"):
        said = text(part.get("text")) or text(part.get("refusal"))
        return Piece(Block("text", len(said), said), keys.without_reminders(said))
    told = shapes.dumped(part)
    size = PICTURE_CHARS if sort in ("image_url", "input_audio", "file") else len(told)
    return Piece(Block("other", size, f"[{sort}]", tool=sort), keys.digest(told))


def _call(call: Json, names: dict[str, str]) -> Piece:
    said = table(call.get("function")) or table(call.get("custom"))
    given = text(said.get("arguments")) or text(said.get("input"))
    name, call_id = text(said.get("name")), text(call.get("id"))
    names[call_id] = name
    return Piece(Block("call", len(given) + len(name), given, call_id, name), call_id or given)


def _result(message: Json, names: dict[str, str]) -> Piece:
    parts = parts_of(message.get("content"))
    said = "\n".join(text(part.get("text")) or f"[{part.get('type')}]" for part in parts)
    call_id = text(message.get("tool_call_id"))
    tool = names.get(call_id, "")
    return Piece(Block("result", len(said), said, call_id, tool), call_id or said)
