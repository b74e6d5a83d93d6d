"""A database with messages, a fake embedder and a scripted summarizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from lore import settings
from lore.capture.message_capture import Conversation, capture
from lore.digest import extraction
from lore.digest.drafts import CurationContext
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.recall.sources import Sources
from lore.records import (
    CurationResult,
    Extract,
    Fragment,
    FragmentKind,
    Message,
    NewMessage,
    Origin,
    Part,
    Role,
    Segment,
)
from lore.store import fragments, messages, sessions
from lore.store.consolidation import StepRecorder, ignore_step
from lore.store.database import Database
from tests.fakes import FakeEmbedder, FixedClock

Reader = Callable[[Segment], list[Extract]]


class ScriptedSummarizer(OfflineSummarizer):
    """Extracts what it is told to."""

    def __init__(self, read: Reader) -> None:
        super().__init__()
        self._script = read
        self.asked: list[Segment] = []

    def extract(self, exchange: Segment) -> list[Extract]:
        """Return what the script gives for an exchange."""
        self.asked.append(exchange)
        return self._script(exchange)


def fact(
    content: str, *sources: str, kind: FragmentKind = "fact", importance: float = 0.5,
    corrects: str = "", children: Sequence[Extract] = (),
) -> Extract:  # fmt: skip
    """Return an extract with a payload that fits most kinds."""
    return Extract(content, content, kind, importance, sources, {}, corrects, (), tuple(children))


class World:
    """Everything that curating a session needs."""

    def __init__(self, database: Database, clock: FixedClock, folder: Path) -> None:
        self.database = database
        self.clock = clock
        self.embedder = FakeEmbedder(dimension=256)
        config = settings.load(home=folder).settings
        self.sources = Sources(database, self.embedder, config)

    def means(self, read: Reader | None = None) -> CurationContext:
        """Return means with a scripted reader, or with the rules."""
        reader = (
            OfflineSummarizer(self.embedder.embed) if read is None else ScriptedSummarizer(read)
        )
        return CurationContext(reader, self.embedder, self.sources.nearest)

    def say(
        self, text: str, *, role: Role = "user", session: str = "s", project: str = "/code/app",
        origin: Origin | None = None, speaker: str = "",
    ) -> str:  # fmt: skip
        """Store one message, a second after the last, and return its id."""
        self.clock.advance(seconds=1)
        kind = "tool_result" if role == "tool" else "text"
        part = Part(kind, text)  # type: ignore[arg-type]
        new = NewMessage(role, (part,), self.clock(), speaker=speaker, origin=origin)
        return capture(self.database, Conversation(session, project=project), [new])[0]

    def curate(
        self, read: Reader | None = None, *, session: str = "s", idle_s: float = 0.0,
        recorder: StepRecorder = ignore_step,
    ) -> CurationResult:  # fmt: skip
        """Curate a session."""
        return extraction.curate_session(
            self.database, session, self.means(read), idle_s=idle_s, recorder=recorder
        )

    def learn(self, *extracts: Extract, session: str = "s", **said: str) -> CurationResult:
        """Say something and let the reader find these in it."""
        self.say(said.pop("text", "hello"), session=session, **said)  # type: ignore[arg-type]
        self.clock.advance(minutes=10)
        return self.curate(lambda _: list(extracts), session=session)

    def standing(self) -> list[Fragment]:
        """Return the fragments that are shown, in the order in which they were learned."""
        with self.database.read() as db:
            ns = fragments.filter_visible(db, fragments.FragmentFilter())
            return list(dict(sorted(fragments.by_number(db, sorted(ns)).items())).values())

    def contents(self) -> list[str]:
        """Return what the fragments that are shown say."""
        return [one.content for one in self.standing()]

    def messages(self, session: str = "s") -> list[Message]:
        """Return the messages of a session."""
        with self.database.read() as db:
            return messages.messages_of_session(db, sessions.get_session_number(db, session))

    def wait(self, **by: float) -> None:
        """Let time pass."""
        self.clock.moment += timedelta(**by)
