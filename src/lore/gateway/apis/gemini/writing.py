"""Writing a prompt for Gemini's generateContent by a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lore.gateway.apis import arranging, models, shapes
from lore.gateway.apis.arranging import Words
from lore.gateway.apis.gemini.reading import asks_for_media, field
from lore.gateway.apis.shapes import Json, table, text
from lore.gateway.apis.wire import Request, Texts, Tool
from lore.records.dialogues import Plan

_KEYWORDS = ("type", "description", "enum", "required")
"""What every version of the API takes in the parameters of a function, beside what is nested."""


def rewrite(request: Request, plan: Plan, texts: Texts) -> bytes:
    """Return the prompt by a plan; the very bytes of the client where nothing changes."""
    is_wordless = models.is_wordless(request.dialogue.model) or asks_for_media(request.document)
    if is_wordless or arranging.is_untouched(request, plan, texts):
        return request.body
    document = dict(request.document)
    given = shapes.tables(document["contents"])
    document["contents"] = arranging.arrange(given, request, plan, texts, _WORDS)
    if texts.knowledge and not models.is_bare(request.dialogue.model):
        name = "system_instruction" if "system_instruction" in document else "systemInstruction"
        system = table(document.get(name))
        parts = [*shapes.found(system.get("parts")), {"text": texts.knowledge}]
        document[name] = {**system, "parts": parts}
    if texts.recall:
        document["tools"] = [*shapes.found(document.get("tools")), offer(texts.recall)]
    return shapes.written(document)


def offer(tool: Tool) -> Json:
    """Return a tool in the words of this wire."""
    parameters = _plain(tool.schema)
    said = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"functionDeclarations": [said]}


def _plain(schema: Json) -> Json:
    """Return a schema in those words of JSON Schema that this wire has; a whole request is
    refused because of others."""
    variants = [one for one in shapes.found(schema.get("anyOf")) if one.get("type") != "null"]
    told = {**schema, **variants[0]} if variants else schema
    kept = {name: told[name] for name in _KEYWORDS if name in told}
    for name, given in table(told.get("properties")).items():
        kept.setdefault("properties", {})[name] = _plain(table(given))
    if "items" in told:
        kept["items"] = _plain(table(told["items"]))
    return kept


def _user(texts: Sequence[str]) -> Json:
    return {"role": "user", "parts": [{"text": one} for one in texts]}


def _assistant(said: str) -> Json:
    return {"role": "model", "parts": [{"text": said}]}


def _normal(content: Json, annotations: Mapping[int, str]) -> Json:
    """Return a content with the results that have ids in the order of these."""
    parts = [
        _annotated(part, annotations[at]) if at in annotations else part
        for at, part in enumerate(shapes.found(content.get("parts")))
    ]
    places = [at for at, part in enumerate(parts) if field(part, "functionResponse")]
    results = [parts[at] for at in places]
    results.sort(key=lambda part: text(field(part, "functionResponse").get("id")))
    for at, part in zip(places, results, strict=True):
        parts[at] = part
    return {**content, "parts": parts}


def _annotated(part: Json, annotation: str) -> Json:
    name = "functionResponse" if "functionResponse" in part else "function_response"
    result = {**field(part, "functionResponse"), "response": {"output": annotation}}
    return {**part, name: result}


def _noted(content: Json, note: str) -> list[Json]:
    return [{**content, "parts": [*shapes.found(content.get("parts")), {"text": note}]}]


_WORDS = Words(_user, _assistant, _normal, _noted)
