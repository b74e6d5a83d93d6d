"""Sessions with many messages, and summarizers that fail on purpose."""

from __future__ import annotations

from datetime import datetime, timedelta

from lore.errors import LoreError
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.memory import Memory
from lore.records import Log, LogLine, MessageText, NewMessage, Origin, Part, Role, Segment
from lore.text import tokens
from tests.fakes import NOON

TOPICS = (
    "The harbor master decided that berth {i} costs {i}0 crowns from now on, paid in advance",
    "I mended the lamp of lighthouse {i} with a new fuse, because the old one was corroded",
    "Never sail past reef {i} at low tide: the chart 'reefs-{i}.pdf' shows why",
    "The crew of boat {i} switched from hemp ropes to nylon after the storm in March",
)


def numbered_sentence(i: int) -> str:
    """Return something that was said, different for each number."""
    return TOPICS[i // 8 % len(TOPICS)].format(i=i) + f". It was noted under entry {i}."


def capture_messages(
    memory: Memory, count: int, *, session: str = "talk", start: int = 0
) -> list[str]:
    """Store so many messages of a session, the user and the assistant in turn."""
    roles: tuple[Role, ...] = ("user", "assistant")
    new = [
        NewMessage(
            roles[i % 2], (Part("text", numbered_sentence(i)),), NOON + timedelta(seconds=20 * i)
        )
        for i in range(start, start + count)
    ]
    return memory.capture(session, new, agent="test")


def message_text(
    i: int, text: str = "", *, voice: str = "user", at: datetime = NOON
) -> MessageText:
    """Return one message as a summarizer reads it."""
    text = text or numbered_sentence(i)
    origin: Origin = "assistant" if voice == "assistant" else "user"
    return MessageText(
        f"m{i}", i, at + timedelta(seconds=20 * i), voice, text, origin, tokens.count(text)
    )


class FailingSummarizer(OfflineSummarizer):
    """An offline summarizer that gives up at its n-th log."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after
        self.asked = 0

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        """Write a log, or fail as a chat without a network does."""
        self.asked += 1
        if not self.left:
            msg = "The network is gone."
            raise LoreError(msg)
        self.left -= 1
        return super().observe(segment, limit_tokens=limit_tokens)


class VerboseSummarizer:
    """A summarizer whose logs are longer than what they tell."""

    identity = "scripted"

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        """Write too much."""
        return Log((LogLine("word " * (segment.tokens + 10)),))
