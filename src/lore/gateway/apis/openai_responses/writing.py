"""Writing a prompt for OpenAI's Responses by a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lore.gateway.apis import arranging, shapes
from lore.gateway.apis.arranging import Words
from lore.gateway.apis.openai_responses.reading import head_of, items_of, parts_of
from lore.gateway.apis.shapes import Json, text
from lore.gateway.apis.wire import Request, Texts, Tool
from lore.records.dialogues import Plan


def rewrite(request: Request, plan: Plan, texts: Texts) -> bytes:
    """Return the prompt by a plan; the very bytes of the client where nothing changes."""
    if arranging.is_untouched(request, plan, texts):
        return request.body
    document = dict(request.document)
    given = items_of(document)
    items = arranging.arrange(given, request, plan, texts, _WORDS)
    instructions = text(document.get("instructions"))
    if texts.knowledge and instructions:
        document["instructions"] = f"{instructions}\n\n{texts.knowledge}"
    elif texts.knowledge:
        items.insert(head_of(given), _message("developer", texts.knowledge))
    document["input"] = items
    if texts.recall:
        document["tools"] = [*shapes.found(document.get("tools")), offer(texts.recall)]
    return shapes.written(document)


def offer(tool: Tool) -> Json:
    """Return a tool in the words of this wire."""
    said = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", **said, "strict": False}


def _message(role: str, *texts: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": one} for one in texts]
    return {"type": "message", "role": role, "content": content}


def _user(texts: Sequence[str]) -> Json:
    return _message("user", *texts)


def _assistant(said: str) -> Json:
    return _message("assistant", said)


def _normal(item: Json, annotations: Mapping[int, str]) -> Json:
    """Return an item with parts as its content; the type of a message is told."""
    if annotations:
        return {**item, "output": annotations[0]}
    if text(item.get("type")) not in ("", "message") or not isinstance(item.get("content"), str):
        return item
    role = text(item.get("role"))
    return {**item, **_message(role, item["content"])}


def _noted(item: Json, note: str) -> list[Json]:
    if item.get("role") != "user":
        return [item, _message("user", note)]
    content = [*parts_of(item.get("content")), {"type": "input_text", "text": note}]
    return [{**item, "content": content}]


_WORDS = Words(_user, _assistant, _normal, _noted)
