"""Reading a request of OpenAI's Responses."""

from __future__ import annotations

from typing import Literal

from lore.errors import InvalidInput
from lore.gateway.apis import keys, models, shapes
from lore.gateway.apis.keys import Piece
from lore.gateway.apis.openai_chat.reading import PICTURE_CHARS, PROGRAM
from lore.gateway.apis.shapes import Json, table, text
from lore.gateway.apis.wire import Request
from lore.records.dialogues import Block, BlockKind, Dialogue, Entry, Voice

Side = Literal["user", "assistant", "system", "results"]

_TEXTS = frozenset("text input_text output_text refusal summary_text reasoning_text".split())
_PICTURES = frozenset("input_image input_file input_audio".split())
_TOOLS = "additional_tools"
_SETTINGS = frozenset({_TOOLS, "configuration_update"})
"""How Codex tells its newer models what else they may call, and how hard they are to think."""

_KEPT = ("previous_response_id", "conversation")
"""How a client says that the provider has its history."""

_VOICES: dict[Side, Voice] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "results": "user",
}


def read(body: bytes, path: str = "") -> Request:  # noqa: ARG001 (Gemini's says more)
    """Read a request to a path, or raise `InvalidInput` if it has another shape."""
    return read_document(body, shapes.read(body))


def read_document(body: bytes, document: Json, *, is_expanded: bool = False) -> Request:
    """Read a request out of its document; what the program says first is no entry."""
    items = items_of(document)
    head = head_of(items)
    # An answer is one entry, and so are the results of parallel calls.
    places = keys.places([side_of(one) for one in items], ("assistant", "results"), head)
    names: dict[str, str] = {}
    is_kept = any(document.get(name) for name in _KEPT)
    tools = shapes.found(document.get("tools"))
    fixed = [shapes.dumped(one) for one in tools]
    fixed.append(text(document.get("instructions")))
    fixed += ["\n".join(_texts(one.get("content"))) for one in items[:head] if "content" in one]
    fixed += [shapes.dumped(one) for one in items[:head] if "content" not in one]
    more = [tool for one in items if _is_tools(one) for tool in shapes.found(one.get("tools"))]
    return Request(
        body=body,
        document=document,
        dialogue=Dialogue(
            model=text(document.get("model")),
            entries=keys.numbered(entry_of(items[at:end], names) for at, end in places),
            fixed_chars=sum(map(len, fixed)),
        ),
        places=places,
        streams=document.get("stream") is True,
        tools=frozenset(name for tool in (*tools, *more) for name in _names(tool)),
        is_expanded=is_expanded,
        has_history=not is_kept,
        # Answers that the provider stores are named by their ids, and two have no common one.
        # Nobody has said what becomes of tools beside those that stand among the items.
        may_recall=(
            document.get("store") is False and not is_kept and not more and _can_call(document)
        ),
    )


def _can_call(document: Json) -> bool:
    """Tell whether the answer to a request may have calls of ours in it, on every server.

    Tools of a request hold in the place of those that a kept prompt has.
    """
    form = table(table(document.get("text")).get("format")).get("type")
    is_plain = form in (None, "text") or bool(document.get("tools"))
    return is_plain and not document.get("prompt") and models.can_call(text(document.get("model")))


def items_of(document: Json) -> list[Json]:
    """Return what a request says as items, whichever form the client chose."""
    given = document.get("input")
    if isinstance(given, str) and given:
        return [{"type": "message", "role": "user", "content": given}]
    if given is None and isinstance(document.get("prompt"), dict):
        msg = "The prompt is kept by the provider."
        raise InvalidInput(msg)
    return shapes.tables(given)


def side_of(item: Json) -> Side:
    """Return whose an item is; results come from the user's side, but begin nothing."""
    kind, role = text(item.get("type")) or "message", item.get("role")
    if role in PROGRAM or kind in _SETTINGS:
        return "system"
    if kind == "message":
        return "user" if role == "user" else "assistant"
    return "results" if kind.endswith("_output") else "assistant"


def _is_tools(item: Json) -> bool:
    return item.get("type") == _TOOLS


def _names(tool: Json) -> list[str]:
    """Return the names of a tool, or of those in a group of them."""
    name = text(tool.get("name"))
    return [name, *(f"{name}.{text(one.get('name'))}" for one in shapes.found(tool.get("tools")))]


def head_of(items: list[Json]) -> int:
    """Return how many items of the program stand before all others."""
    for at, one in enumerate(items):
        if side_of(one) != "system":
            return at
    return len(items)


def entry_of(items: list[Json], names: dict[str, str]) -> Entry:
    """Return the items of one side as an entry.

    `names` holds the tools of calls for the results that follow.
    """
    voice = _VOICES[side_of(items[0])]
    return keys.entry(voice, [piece for item in items for piece in _pieces(item, names)])


def _pieces(item: Json, names: dict[str, str]) -> list[Piece]:
    kind = text(item.get("type")) or "message"
    if kind == "message":
        return [_part(part) for part in parts_of(item.get("content"))]
    if kind.endswith("_output"):
        return [_result(item, names)]
    call_id = text(item.get("call_id"))
    if kind.endswith("_call") and call_id:
        given = text(item.get("arguments")) or text(item.get("input"))
        given = given or shapes.dumped(item.get("action"))
        name = names[call_id] = text(item.get("name")) or kind
        return [Piece(Block("call", len(given) + len(name), given, call_id, name), call_id)]
    if kind == "reasoning":
        thought = "\n".join(_texts(item.get("summary")))
        sealed = text(item.get("encrypted_content"))
        size = len(thought) or len(sealed) // 2
        return [Piece(Block("reasoning", size, thought), text(item.get("id")) or sealed)]
    told = shapes.dumped(item)
    sort: BlockKind = "text" if kind in _SETTINGS else "other"  # They hold until the next ones do.
    return [Piece(Block(sort, len(told), told, tool=kind), text(item.get("id")) or told)]


def parts_of(content: object, kind: str = "input_text") -> list[Json]:
    """Return a content as parts, whichever form the client chose; a text is one of a kind."""
    if isinstance(content, str):
        return [{"type": kind, "text": content}] if content else []
    return shapes.found(content)


def _texts(content: object) -> list[str]:
    return [text(part.get("text")) for part in parts_of(content)]


def _part(part: Json) -> Piece:
    sort = text(part.get("type"))
    if sort in _TEXTS:
        said = text(part.get("text")) or text(part.get("refusal"))
        return Piece(Block("text", len(said), said), keys.without_reminders(said))
    told = shapes.dumped(part)
    size = PICTURE_CHARS if sort in _PICTURES else len(told)
    return Piece(Block("other", size, f"[{sort}]", tool=sort), keys.digest(told))


def _result(item: Json, names: dict[str, str]) -> Piece:
    output, chars = item.get("output"), 0
    if isinstance(output, str):
        said, chars = output, len(output)
    elif isinstance(output, list):
        pieces = [_part(part).block for part in shapes.found(output)]
        said, chars = "\n".join(one.text for one in pieces), sum(one.chars for one in pieces)
    else:
        said = shapes.dumped(output)
        chars = len(said)
    call_id = text(item.get("call_id"))
    tool = names.get(call_id, "")
    return Piece(Block("result", chars, said, call_id, tool), call_id or said)
