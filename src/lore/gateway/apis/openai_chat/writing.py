"""Writing a prompt for OpenAI's Chat Completions by a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lore.gateway.apis import arranging, models, shapes
from lore.gateway.apis.arranging import Words
from lore.gateway.apis.openai_chat.reading import head_of, parts_of
from lore.gateway.apis.shapes import Json
from lore.gateway.apis.wire import Request, Texts, Tool
from lore.records.dialogues import Plan


def rewrite(request: Request, plan: Plan, texts: Texts) -> bytes:
    """Return the prompt by a plan; the very bytes of the client where nothing changes."""
    is_wordless = models.is_wordless(request.dialogue.model)
    if is_wordless or arranging.is_untouched(request, plan, texts):
        return request.body
    document = dict(request.document)
    given = shapes.tables(document["messages"])
    messages = arranging.arrange(given, request, plan, texts, _WORDS)
    head = head_of(given)
    if texts.knowledge and (head or not models.is_bare(request.dialogue.model)):
        messages = _known(messages, head, texts.knowledge)
    document["messages"] = messages
    if texts.recall:
        document["tools"] = [*shapes.found(document.get("tools")), offer(texts.recall)]
    return shapes.written(document)


def offer(tool: Tool) -> Json:
    """Return a tool in the words of this wire."""
    said = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": said}


def _known(messages: list[Json], head: int, knowledge: str) -> list[Json]:
    """Put knowledge at the end of the system prompt: not all servers take a second one."""
    if not head:
        return [{"role": "system", "content": knowledge}, *messages]
    last = messages[head - 1]
    content = last.get("content")
    if isinstance(content, list):
        told: object = [*content, {"type": "text", "text": knowledge}]
    else:
        told = f"{content}\n\n{knowledge}"
    return [*messages[: head - 1], {**last, "content": told}, *messages[head:]]


def _user(texts: Sequence[str]) -> Json:
    return {"role": "user", "content": "\n\n".join(texts)}


def _assistant(said: str) -> Json:
    return {"role": "assistant", "content": said}


def _normal(message: Json, annotations: Mapping[int, str]) -> Json:
    """Return a message with a text as its content, where it has nothing but one."""
    if annotations:
        return {**message, "content": annotations[0]}
    content = message.get("content")
    part = shapes.table(content[0]) if isinstance(content, list) and len(content) == 1 else {}
    if part.keys() == {"type", "text"}:
        return {**message, "content": part["text"]}
    return message


def _noted(message: Json, note: str) -> list[Json]:
    if message.get("role") != "user":
        return [message, {"role": "user", "content": note}]
    content = message.get("content")
    if isinstance(content, str):
        return [{**message, "content": f"{content}\n\n{note}"}]
    return [{**message, "content": [*parts_of(content), {"type": "text", "text": note}]}]


_WORDS = Words(_user, _assistant, _normal, _noted)
