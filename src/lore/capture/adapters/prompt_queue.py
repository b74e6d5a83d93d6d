"""Prompts that a person types while Claude Code works, from their queue to their delivery.

Claude Code logs its queue: a prompt is enqueued; then it is dequeued for a turn of its own and
follows as a user record, or removed for the running turn, or popped back into the editor. Only
newer versions write a removed prompt once more, as an attachment beside the operation; of older
ones the queue has the only copy. So a removed prompt is a message unless the same text arrives
before the agent goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from lore.capture.adapter_protocol import TYPED_STATE
from lore.capture.adapters import json_fields
from lore.capture.adapters.json_fields import as_dict, as_list, as_text

STATE_NAME = f"{TYPED_STATE}queue"
"""Where the state of a transcript holds the queue."""

_MOST_PROMPTS = 20
"""Prompts that wait at once; a person queues a handful."""

_LONGEST_PROMPT = 100_000
"""A longer prompt is pasted text; it would grow the watermark, which is written with each batch."""

Line = dict[str, Any]
State = dict[str, str]
Stage = Literal["queued", "dequeued", "attached", "removed"]


@dataclass(frozen=True, slots=True)
class QueuedPrompt:
    """A prompt in the queue: its text, when it was typed, and the key of its message."""

    text: str
    typed_at: str
    key: str
    stage: Stage = "queued"


def apply_operation(line: Line, state: State, *, is_typed: bool) -> None:
    """Apply a `queue-operation` line to the queue; a notice of a program is not typed."""
    queue = _load(state)
    operation, text = as_text(line.get("operation")), as_text(line.get("content")).strip()
    if operation == "enqueue":
        if is_typed and 0 < len(text) <= _LONGEST_PROMPT:
            key = f"queue:{json_fields.digest(line)}"
            queue.append(QueuedPrompt(text, as_text(line.get("timestamp")), key))
    elif operation == "dequeue":
        _move_first(queue, text, ("queued",), "dequeued")
    elif operation == "remove":
        if not _drop_first(queue, text, ("attached",)):
            _move_first(queue, text, ("queued", "dequeued"), "removed")
    elif operation == "popAll":
        queue = [one for one in queue if one.stage != "queued"]
    _save(state, queue[-_MOST_PROMPTS:])


def note_attachment(content: Any, state: State) -> None:
    """Record that a queued prompt arrived as an attachment, which may precede its removal."""
    queue, text = _load(state), _text_of(content).strip()
    if text and not _drop_first(queue, text, ("removed",)):
        _move_first(queue, text, ("queued", "dequeued"), "attached")
    _save(state, queue)


def note_user_record(content: Any, state: State, *, is_typed: bool) -> None:
    """Drop the prompts that a user record has; several prompts can arrive as one.

    A typed record that has none of them means that the queue was empty: of the prompts of an
    earlier run, which Claude Code drops at its end. A notice says nothing about prompts.
    """
    text = _text_of(content)
    queue = _load(state)
    left = [one for one in queue if not _has_prompt(text, one.text)]
    if is_typed and len(left) == len(queue):
        ended = "dequeued" if any(one.stage == "dequeued" for one in left) else "queued"
        left = [one for one in left if one.stage != ended]
    elif not is_typed:
        left = [replace(one, stage="queued") if one.stage == "dequeued" else one for one in left]
    _save(state, left)


def take_delivered(state: State) -> list[QueuedPrompt]:
    """Return the removed prompts of which no other record is, and drop them from the queue."""
    queue = _load(state)
    _save(state, [one for one in queue if one.stage in ("queued", "dequeued")])
    return [one for one in queue if one.stage == "removed"]


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(as_text(as_dict(block).get("text")) for block in as_list(content))


def _has_prompt(text: str, prompt: str) -> bool:
    """Return whether a text has a prompt as whole lines, or as the slash command that it is."""
    if f"\n{prompt}\n" in f"\n{text.strip()}\n":
        return True
    return prompt.startswith("/") and f"<command-name>{prompt.split()[0]}</command-name>" in text


def _find(queue: list[QueuedPrompt], text: str, stages: Iterable[Stage]) -> int:
    for stage in stages:
        for place, one in enumerate(queue):
            if one.stage == stage and text in ("", one.text):
                return place
    return -1


def _move_first(
    queue: list[QueuedPrompt], text: str, stages: Iterable[Stage], stage: Stage
) -> None:
    place = _find(queue, text, stages)
    if place >= 0:
        queue[place] = replace(queue[place], stage=stage)


def _drop_first(queue: list[QueuedPrompt], text: str, stages: Iterable[Stage]) -> bool:
    place = _find(queue, text, stages)
    if place >= 0:
        del queue[place]
    return place >= 0


def _load(state: State) -> list[QueuedPrompt]:
    try:
        return [QueuedPrompt(*fields) for fields in orjson.loads(state.get(STATE_NAME) or "[]")]
    except (orjson.JSONDecodeError, TypeError):  # a part of it was redacted as a secret
        return []


def _save(state: State, queue: list[QueuedPrompt]) -> None:
    if queue:
        state[STATE_NAME] = json_fields.to_json([
            [one.text, one.typed_at, one.key, one.stage] for one in queue
        ])
    else:
        state.pop(STATE_NAME, None)
