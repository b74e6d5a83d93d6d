"""The memories that agents keep in files of their own: read, compared, and given back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lore.memory.context import MemoryPart
from lore.records import NativeCount, NativeResult, NativeShare, OutdatedNote
from lore.validation import validate_methods


@validate_methods
class Native(MemoryPart):
    """Read agents' memories and instructions, list outdated notes, and share knowledge back."""

    def capture(
        self, *, dry_run: bool = False, stopping: Callable[[], bool] = lambda: False
    ) -> NativeResult:
        """Read what changed in the memories of agents; nothing if `capture.native` is off.

        A memory that is open for reading only reads nothing either.
        """
        from lore.digest import native_memories

        if not self._settings.capture_native or (self._database.read_only and not dry_run):
            return NativeResult()
        options = native_memories.CaptureOptions(
            Path.home(), self._redactor, self._settings.capture_exclude, dry_run, stopping
        )
        result = native_memories.capture_notes(self._database, options)
        if result.retired or result.changed:
            self._sources.drop_hidden()
        if not dry_run and (result.added or result.changed or result.restored):
            self._context.suggest_reworded()
        return result

    def count(self) -> list[NativeCount]:
        """Return how many memories the agents of this person have in their files."""
        from lore.capture import native_files

        return native_files.count_memories(Path.home())

    def outdated(self, *, project: str = "") -> list[OutdatedNote]:
        """Return the notes in agents' files that something newer replaced."""
        from lore.digest import native_memories

        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            return native_memories.find_outdated(db, project_n=project_n)

    def plan_share(self, agent: str, project: str, *, undo: bool = False) -> NativeShare:
        """Return how an agent's memory of a project would change, without changing it.

        It gets one file of Lore's own and one line in its index; `undo` takes both out again.
        """
        from lore.digest import native_share

        if undo:
            return native_share.plan_undo(agent, Path.home(), project)
        with self._database.read() as db:
            name = self._redactor.redact(project)
            return native_share.plan_share(db, agent, Path.home(), project, name)

    def share(self, plan: NativeShare) -> None:
        """Apply a plan that a person has approved."""
        from lore.digest import native_share

        native_share.apply(plan)
