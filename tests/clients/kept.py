"""What Lore keeps of a talk, in the form in which it can be compared with what was said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from lore.records import Message, NewMessage, Part, Role
from tests.clients.project import CANARY
from tests.clients.said import Event, Talk

SECRET_MARK = re.compile(r"\[secret:[^\]]+\]")


def read_events(messages: Iterable[Message | NewMessage]) -> list[Event]:
    """Turn messages into events; asides, pictures and what is opaque say nothing."""
    events = []
    for message in messages:
        for part in message.parts:
            event = read_event(part, message.role)
            if event:
                events.append(event)
    return events


def read_event(part: Part, role: Role) -> Event | None:
    # The only secret that was said is the canary, so a mark can stand for nothing else.
    text = SECRET_MARK.sub(CANARY, part.text)
    if part.kind == "text":
        return Event("prompt" if role == "user" else "text", text)
    if part.kind == "reasoning":
        return Event("thinking", text)
    if part.kind == "tool_call":
        return Event("call", call_id=part.call_id, name=part.name, input=read_input(text))
    if part.kind == "tool_result":
        return Event("result", text, call_id=part.call_id, failed=part.failed)
    return None


def read_input(text: str) -> object:
    """Read the input of a call, which is JSON or the text that a freeform tool takes."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def by_people(talk: Talk) -> Talk:
    """Leave out prompts that a program said in the person's place; Lore keeps them as asides.

    In the talk of a subagent the errand stays: its parent did say it.
    """
    if talk.agent:
        return talk
    spoken = [one for one in talk.events if one.kind != "prompt" or one.speaker != "agent"]
    return replace(talk, events=spoken)
