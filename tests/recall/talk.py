"""Small conversations to recall from."""

from __future__ import annotations

from datetime import datetime, timedelta

from lore.memory import Memory
from lore.records import NewMessage, Part, Role
from tests.fakes import NOON


def say(
    memory: Memory,
    session: str,
    *said: str,
    at: datetime = NOON,
    speakers: tuple[str, ...] = (),
    project: str = "",
    title: str = "",
    agent: str = "test",
) -> list[str]:
    """Store what was said, the user and the assistant in turn."""
    roles: tuple[Role, ...] = ("user", "assistant")
    new = [
        NewMessage(
            "user" if speakers else roles[place % 2],
            (Part("text", text),),
            at + timedelta(minutes=place),
            speaker=speakers[place % len(speakers)] if speakers else "",
        )
        for place, text in enumerate(said)
    ]
    return memory.capture(session, new, project=project, title=title, agent=agent)
