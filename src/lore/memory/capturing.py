"""The desk for what comes in: messages, transcript files, imports, and episodes told of them.

Adapters and the telling of episodes are imported when they are used: they would cost every
command, also the smallest, a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lore.capture import messages
from lore.capture.messages import Conversation
from lore.checking import Count, checked_class
from lore.memory.desk import Desk
from lore.recall import time_spans
from lore.records import (
    Captured,
    CaptureEstimate,
    Channel,
    Episode,
    Imported,
    KeptEpisode,
    NewMessage,
)
from lore.redaction import home_key

if TYPE_CHECKING:
    from lore.capture.gathering import Found

Progress = Callable[[int, int], None]
"""Told how many bytes of how many were read."""


@checked_class
class Capturing(Desk):
    """For what comes in."""

    __slots__ = ()

    def capture(
        self, session: str, new: Sequence[NewMessage], *, agent: str = "library",
        project: str = "", title: str = "", branch: str = "", parent: str = "",
        files: Sequence[str] = (), channel: Channel = "push",
    ) -> list[str]:  # fmt: skip
        """Store messages of a session, each once, and return their ids in order.

        A session stays in the project that was named first; `lore doctor` names the sessions
        for which another one was named later.
        """
        named = (title, branch, parent, tuple(files), channel)
        conversation = Conversation(session, agent, project, *named)
        return messages.capture(self.database, conversation, new, redactor=self.redactor)

    def estimate_capture(self, paths: Sequence[Path] = (), *, since: str = "") -> CaptureEstimate:
        """Return how much `capture_files` would read, and how long that may take."""
        from lore.capture import gathering

        return gathering.estimate(self.database, self._transcripts(paths, since), self.redactor)

    def capture_files(
        self, paths: Sequence[Path] = (), *, since: str = "", dry_run: bool = False,
        progress: Progress | None = None, stopping: Callable[[], bool] = lambda: False,
    ) -> Captured:  # fmt: skip
        """Bring in transcript files and folders, by default all that agents keep here."""
        from lore.capture import gathering
        from lore.capture.adapters import registry
        from lore.capture.files import FileReading

        how = FileReading(
            self.database, registry.find_adapter,
            redactor=self.redactor, dry_run=dry_run, stopping=stopping,
        )  # fmt: skip
        return gathering.capture_files(how, self._transcripts(paths, since), progress=progress)

    def _transcripts(self, paths: Sequence[Path], since: str) -> list[Found]:
        from lore.capture import gathering
        from lore.capture.adapters import registry

        after = time_spans.since(since, self.database.now()) if since else None
        return gathering.find_files(paths, registry.ADAPTERS, Path.home(), since=after)

    def import_lines(
        self, lines: Iterable[bytes], *, trust: bool | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Imported:  # fmt: skip
        """Bring in an export and count what was added and what was not.

        What another home wrote is refused, unless `trust` says whether to believe it; if not, it
        comes in as a peer's word and deletes nothing.
        """
        from lore.capture import exchange

        return exchange.import_lines(
            self.database, lines, key=home_key(self.settings, "export"), trust=trust,
            redactor=self.redactor, progress=progress,
        )  # fmt: skip

    def episode(self, session: str) -> Episode | None:
        """Tell a session as an episode and keep that as its fragment; None if nothing was done.

        A memory that is open for reading only tells it and keeps nothing. Nor is an episode kept
        whose fragment a person has deleted or revoked: it is told, and stays away.
        The id of that fragment names the session, too.
        """
        from lore.curate import episodes

        with self.database.read() as db:
            session = episodes.session_of(db, self.redactor.redact(session))
        told = episodes.derive(self.database, session)
        if told and not self.database.read_only:
            episodes.keep(self.database, session, told)
        return told

    def episodes(self, *, project: str = "", limit: Count = 20) -> list[KeptEpisode]:
        """Return the latest episodes that were kept, newest first."""
        from lore.curate import episodes

        with self.database.read() as db:
            return episodes.newest(db, project=self.redactor.redact(project), limit=limit)
