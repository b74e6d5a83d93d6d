"""Writing a prompt for Anthropic's Messages by a plan, with the breakpoints of its cache."""

from __future__ import annotations

from lore.context import breakpoints
from lore.context.breakpoints import MOST, PREFIX
from lore.gateway.apis import framing, shapes
from lore.gateway.apis.anthropic import loading
from lore.gateway.apis.anthropic.reading import bare, blocks_of
from lore.gateway.apis.shapes import Json, text
from lore.gateway.apis.wire import Request, Texts, Tool
from lore.records.dialogues import Plan

_MARKABLE = frozenset("text image document tool_use tool_result".split())
"""Blocks that may carry a breakpoint; thoughts may not."""


def rewrite(request: Request, plan: Plan, texts: Texts) -> bytes:
    """Return the prompt by a plan; the very bytes of the client where nothing changes."""
    framing.check(request.dialogue, plan)
    notes = framing.notes_of(request, plan, texts)
    is_raw = not (plan.start or plan.prefix or plan.annotated)
    is_told = texts.knowledge or texts.recall or notes
    if is_raw and not is_told and not request.is_expanded:
        return request.body
    document = dict(request.document)
    if texts.knowledge:
        known = {"type": "text", "text": texts.knowledge}
        document["system"] = [*blocks_of(document.get("system")), known]
    if texts.recall:
        document["tools"] = [*shapes.found(document.get("tools")), offer(texts.recall)]
    if is_raw:
        given = shapes.tables(document["messages"])
        document["messages"] = [_noted(one, notes.get(at, "")) for at, one in enumerate(given)]
        return shapes.written(document)
    prefix = _prefix(request, plan)
    document["messages"] = [*prefix, *_window(request, plan, texts, notes)]
    places = [
        len(prefix) - 1 if at == PREFIX else len(prefix) + at - plan.start
        for at in breakpoints.useful(request.dialogue.entries, plan)
    ]
    _set_breakpoints(document, places)
    return shapes.written(document)


def offer(tool: Tool) -> Json:
    """Return a tool in the words of this wire."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _noted(message: Json, note: str) -> Json:
    if not note:
        return message
    return {**message, "content": [*blocks_of(message.get("content")), _said(note)]}


def _said(told: str) -> Json:
    return {"type": "text", "text": told}


def _prefix(request: Request, plan: Plan) -> list[Json]:
    """Return what stands for the entries before the window.

    What the program said among them still holds, and may stand behind a user alone.
    """
    told = framing.before(plan)
    if not told:
        return []
    told_before = [*framing.standing(request.dialogue, plan), told]
    held = framing.standing_systems(request.dialogue, plan).values()
    system = {"role": "system", "content": [_said(one) for texts in held for one in texts]}
    left_out = shapes.tables(request.document["messages"])[: plan.start]
    searches = loading.loaded(left_out, request.tools)
    return [
        {"role": "user", "content": [_said(one) for one in told_before]},
        *([system] if held else []),
        *searches.messages,
        {"role": "assistant", "content": [*searches.blocks, _said(framing.ACKNOWLEDGEMENT)]},
    ]


def _window(request: Request, plan: Plan, texts: Texts, notes: dict[int, str]) -> list[Json]:
    """Return the entries that are kept, each in the one form that it has from turn to turn."""
    annotations = framing.annotations_of(request, plan, texts)
    order: dict[str, int] = {}
    window: list[Json] = []
    for at, message in enumerate(shapes.tables(request.document["messages"])):
        if at < plan.start:
            continue
        blocks = [_normal(one, annotations) for one in blocks_of(message.get("content"))]
        for one in blocks:
            if one.get("type") == "tool_use":
                order[text(one.get("id"))] = len(order)
        if note := notes.get(at):
            blocks.append(_said(note))
        window.append({**message, "content": _in_order(blocks, order)})
    return window


def _normal(block: Json, annotations: dict[str, str]) -> Json:
    block = bare(block)
    if block.get("type") != "tool_result":
        return block
    annotation = annotations.get(text(block.get("tool_use_id")))
    if annotation is not None and not loading.refers(block):
        return {**block, "content": [_said(annotation)]}
    if isinstance(block.get("content"), str):
        return {**block, "content": blocks_of(block["content"])}
    if isinstance(block.get("content"), list):
        return {**block, "content": [bare(one) for one in shapes.found(block["content"])]}
    return block


def _in_order(blocks: list[Json], order: dict[str, int]) -> list[Json]:
    """Return blocks with the results in the order of their calls, at the places of results."""
    places = [at for at, one in enumerate(blocks) if one.get("type") == "tool_result"]
    results = [blocks[at] for at in places]
    results.sort(key=lambda one: order.get(text(one.get("tool_use_id")), len(order)))
    ordered = list(blocks)
    for at, one in zip(places, results, strict=True):
        ordered[at] = one
    return ordered


def _set_breakpoints(document: Json, places: list[int]) -> None:
    """Set ours behind messages, as many as there may be.

    The client's on tools and system stay, as long as one is left for us.
    """
    taken = 1 if document.get("cache_control") else 0
    fixed = [
        (name, at)
        for name in ("tools", "system")
        for at, one in enumerate(document.get(name) or ())
        if isinstance(one, dict) and "cache_control" in one
    ]
    while len(fixed) + taken >= MOST:
        name, at = fixed.pop(0)
        blocks = list(document[name])
        blocks[at] = bare(blocks[at])
        document[name] = blocks
    controls = [document[name][at]["cache_control"] for name, at in fixed]
    control = _control(controls, document.get("cache_control"))
    left = breakpoints.left(len(fixed) + taken)
    messages = document["messages"]
    for at in places:
        if left and _mark(messages, at, control):
            left -= 1


def _control(fixed: list[Json], automatic: object) -> Json:
    """Return our breakpoints' kind: none may live longer than one that stands before it.

    Where the API sets one itself, at the end, ours live as long: another kind there is refused.
    """
    told = [automatic] if automatic else fixed
    if told and all(shapes.table(one).get("ttl") == "1h" for one in told):
        return {"type": "ephemeral", "ttl": "1h"}
    return {"type": "ephemeral"}


def _mark(messages: list[Json], at: int, control: Json) -> bool:
    """Set a breakpoint on the last block of a message that can carry one."""
    blocks = messages[at]["content"]
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks[place]
        if block.get("type") in _MARKABLE and (block.get("type") != "text" or block.get("text")):
            marked = [*blocks[:place], {**block, "cache_control": control}, *blocks[place + 1 :]]
            messages[at] = {**messages[at], "content": marked}
            return True
    return False
