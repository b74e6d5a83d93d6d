"""Arranging: a prompt as a list of items, for the wires that keep no breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lore.gateway.apis import framing
from lore.gateway.apis.shapes import Json
from lore.gateway.apis.wire import Request, Texts
from lore.records.dialogues import Plan


@dataclass(frozen=True, slots=True)
class Words:
    """How a wire says what the gateway adds, and the one form that it gives an item."""

    user: Callable[[Sequence[str]], Json]
    assistant: Callable[[str], Json]
    normal: Callable[[Json, Mapping[int, str]], Json]
    """Takes an item, and annotations by the number of the block in its entry."""
    noted: Callable[[Json, str], list[Json]]
    """Puts a note behind what an item says."""


def is_untouched(request: Request, plan: Plan, texts: Texts) -> bool:
    """Tell whether a plan changes nothing of what a client sent."""
    framing.check(request.dialogue, plan)
    if plan.start or plan.prefix or plan.annotated or request.is_expanded:
        return False
    is_told = texts.knowledge or texts.recall
    return not is_told and not framing.notes_of(request, plan, texts)


def arrange(
    items: Sequence[Json], request: Request, plan: Plan, texts: Texts, words: Words
) -> list[Json]:
    """Return the items of a prompt: the head, what stands for the past, and the window."""
    head = list(items[: request.places[0][0]] if request.places else items)
    notes = framing.notes_of(request, plan, texts)
    is_raw = not (plan.start or plan.prefix or plan.annotated)
    order: dict[str, int] = {}
    window: list[Json] = []
    for at in range(plan.start, len(request.places)):
        first, end = request.places[at]
        given = list(items[first:end])
        if not is_raw:
            given = _normal(given, request, plan, texts, words, at, order)
        if note := notes.get(at):
            given[-1:] = words.noted(given[-1], note)
        window += given
    return [*head, *_before(items, request, plan, words), *window]


def _before(items: Sequence[Json], request: Request, plan: Plan, words: Words) -> list[Json]:
    """Return what stands for the entries that are left out; what the program said still holds."""
    told = framing.before(plan)
    if not told:
        return []
    systems = framing.standing_systems(request.dialogue, plan)
    standing = framing.standing(request.dialogue, plan)
    return [
        *(words.normal(items[request.places[at][0]], {}) for at in systems),
        words.user([*standing, told]),
        words.assistant(framing.ACKNOWLEDGEMENT),
    ]


def _normal(
    given: list[Json],
    request: Request,
    plan: Plan,
    texts: Texts,
    words: Words,
    at: int,
    order: dict[str, int],
) -> list[Json]:
    """Return the items of an entry in their one form, results in the order of their calls."""
    blocks = request.dialogue.entries[at].blocks
    for block in blocks:
        if block.kind == "call":
            order[block.call_id] = len(order)
    annotated = {
        number: texts.annotate(block)
        for number, block in enumerate(blocks)
        if block.kind == "result" and block.call_id in plan.annotated
    }
    is_row = len(blocks) == len(given) and all(block.kind == "result" for block in blocks)
    if len(given) == 1 or not is_row:
        return [words.normal(item, annotated) for item in given]
    made = [
        (order.get(block.call_id, len(order)), number, item)
        for number, (block, item) in enumerate(zip(blocks, given, strict=True))
    ]
    made.sort(key=lambda one: one[:2])
    return [
        words.normal(item, {0: annotated[number]} if number in annotated else {})
        for _, number, item in made
    ]
