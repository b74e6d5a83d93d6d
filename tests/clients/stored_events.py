"""What Lore keeps of a conversation, in the form in which it can be compared with what was said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from lore.records import Message, NewMessage, Part, Role
from tests.clients.conversation import Conversation, Event
from tests.clients.project import CANARY

WEB_TOOLS = ("webfetch",)
"""The tools of the script that bring in the web."""

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


def name_of(agent: str, conversation: Conversation) -> str:
    """Return what Lore calls the session of a conversation."""
    if not conversation.agent:
        return conversation.session
    return (
        f"{conversation.session}/agent-{conversation.agent}"
        if agent == "claude-code"
        else conversation.agent
    )


def misattributed(messages: Iterable[Message], *, subagent: bool) -> list[str]:
    """List what is kept as said by somebody else: by its role, its origin and its speaker."""
    asked = ("assistant", "agent") if subagent else ("user", "")
    found = []
    for message in messages:
        kinds = {part.kind for part in message.parts}
        web = any(part.name.lower() in WEB_TOOLS for part in message.parts)
        right: tuple[str, str] = {
            "user": asked,
            "assistant": ("assistant", ""),
            "tool": ("web" if web else "tool", ""),
            "system": ("tool", ""),
        }[message.role]
        beside = message.role == "system"
        if (message.origin, message.speaker) != right or beside != (kinds <= {"aside"}):
            found.append(f"{message.role} {message.origin} {message.speaker}: {message.parts}")
    return found


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
    """Read the input of a call: JSON, the text of a freeform tool, or nothing if it is unknown."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def by_people(conversation: Conversation) -> Conversation:
    """Leave out prompts that a program said in the person's place; Lore keeps them as asides.

    In the conversation of a subagent the errand stays: its parent did say it.
    """
    if conversation.agent:
        return conversation
    spoken = [one for one in conversation.events if one.kind != "prompt" or one.speaker != "agent"]
    return replace(conversation, events=spoken)
