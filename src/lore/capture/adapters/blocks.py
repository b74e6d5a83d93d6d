"""Blocks: the content lists that chat APIs share, as parts of a message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lore.capture.adapters import asides, fields, payloads, tools
from lore.records import Origin, Part
from lore.text import own_tools

_SECRET = ("signature", "encrypted_content", "encrypted_index", "thoughtSignature")
"""Fields that only the provider can read."""

REFERENCES = frozenset(
    "image image_url input_image image_file document file input_file input_audio".split()
)
TEXTS = frozenset("text input_text output_text refusal summary_text reasoning_text".split())

_MOST_CALLS = 50
"""Calls whose result is still to come; agents have a handful open at a time."""


def typed(content: Any, *, aside: bool = False, origin: Origin | None = None) -> tuple[Part, ...]:
    """Return the parts of a content in a person's place: a text, or a list of blocks."""
    if isinstance(content, str):
        return _typed(content, aside=aside, origin=origin)
    parts: list[Part] = []
    for block in fields.items(content):
        if isinstance(block, str):
            parts += _typed(block, aside=aside, origin=origin)
        elif isinstance(block, dict):
            sort = block.get("type")
            if sort in TEXTS if isinstance(sort, str) else "text" in block:
                parts += _typed(words(block), aside=aside, origin=origin)
            elif isinstance(sort, str) and sort in REFERENCES:
                part = payloads.reference(block, origin)
                parts.append(asides.aside(part.text, part.name) if aside else part)
            else:
                parts.append(opaque(block))
    return tuple(parts)


def brought(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return what stands behind the result of a tool: the tool brought its images and documents."""
    return tuple(
        replace(part, origin=part.origin or "tool") if part.kind in ("image", "document") else part
        for part in parts
    )


def _typed(text: str, *, aside: bool, origin: Origin | None) -> tuple[Part, ...]:
    if aside:
        return (asides.aside(text),) if text.strip() else ()
    return asides.typed(text, origin)


def spoken(block: Any, state: dict[str, str]) -> tuple[Part, ...]:
    """Return the parts of one block of an assistant; sealed thoughts leave nothing.

    `state` remembers the names of calls for their results.
    """
    told = {"type": "text", "text": block} if isinstance(block, str) else fields.table(block)
    sort = fields.text(told.get("type"))
    if sort in TEXTS:
        return asides.said(words(told))
    if sort in ("thinking", "reasoning"):
        return thought(fields.text(told.get("thinking")) or words(told))
    if sort.endswith("tool_use"):
        return (remembered(call(told.get("name"), told.get("input"), told.get("id")), state),)
    if sort.endswith("tool_result"):
        return answered(told, state, told.get("tool_use_id"), name=sort)
    if sort == "redacted_thinking" or not told:
        return ()
    # a model writes text: images and documents in its answer come from a program
    return typed([told], origin="tool" if sort in REFERENCES else "assistant")


def thought(text: str) -> tuple[Part, ...]:
    """Return a thought of an assistant, or nothing if it is sealed."""
    return (Part("reasoning", text),) if text.strip() else ()


def remembered(part: Part, state: dict[str, str]) -> Part:
    """Write down the name of a call for its result, and return the call."""
    remember(state, f"call:{part.call_id}", part.name, _MOST_CALLS)
    return part


def remember(state: dict[str, str], name: str, value: str, most: int) -> None:
    """Write something down for later; of its kind, the oldest goes when there are too many."""
    kind = name.partition(":")[0] + ":"
    state.pop(name, None)
    held = [each for each in state if each.startswith(kind)]
    for each in held[: max(0, len(held) + 1 - most)]:
        del state[each]
    state[name] = value


def answered(
    block: dict[str, Any], state: dict[str, str], call_id: Any, *, name: str = ""
) -> tuple[Part, ...]:
    """Return the parts of a block with a result, with the name of the tool that was called."""
    told_id = fields.text(call_id)
    called = state.pop(f"call:{told_id}", "") or name
    failed = block.get("is_error") is True
    return result(block.get("content"), called, told_id, failed=failed)


def words(block: dict[str, Any]) -> str:
    """Return the text of a block of text."""
    return fields.text(block.get("text")) or fields.text(block.get("refusal"))


def call(name: Any, given: Any, call_id: Any) -> Part:
    """Return a call of a tool, its input as JSON on one line or as the text that it is."""
    text = given if isinstance(given, str) else fields.compact(given)
    return Part("tool_call", payloads.without(text), fields.text(name), fields.text(call_id))


def result(content: Any, name: str, call_id: str, *, failed: bool = False) -> tuple[Part, ...]:
    """Return the result of a tool: its text, then images, documents and asides of it."""
    origin = tools.origin_of(name)
    text, references = "", []
    if isinstance(content, str):
        text = content
    elif isinstance(content, list):
        texts = []
        for block in content:
            sort = block.get("type") if isinstance(block, dict) else None
            if isinstance(sort, str) and sort in REFERENCES:
                references.append(payloads.reference(block, origin))
            else:
                texts.append(_plain(block))
        text = "\n".join(texts)
    elif content is not None:
        text = _plain(content)
    if own_tools.is_own(name):
        # What is forgotten must not stay where it was once given.
        text, references = asides.GIVEN, []
    part = Part("tool_result", text, name, call_id, origin, failed)
    return (*asides.result(part), *references)


def _plain(block: Any) -> str:
    """Return a piece of a result as text."""
    if isinstance(block, dict):
        if isinstance(block.get("text"), str):
            return str(block["text"])
        return fields.compact({name: value for name, value in block.items() if name not in _SECRET})
    return fields.text(block) or fields.compact(block)


def opaque(block: dict[str, Any]) -> Part:
    """Return a block that nobody knows, as JSON without bytes and signatures."""
    kept = {name: value for name, value in block.items() if name not in _SECRET}
    return Part("opaque", payloads.without(fields.compact(kept)), fields.text(block.get("type")))
