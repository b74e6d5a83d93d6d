"""The file layout `.loki`: imported as memories of a project, and exported again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lore import projects
from lore.errors import NotFound
from lore.memory.context import MemoryPart
from lore.memory.handoffs import Handoffs
from lore.memory.tasks import Tasks
from lore.projects import ProjectFinder
from lore.records import LayoutExport, LayoutImport
from lore.tasks import layout_folder, layout_transfer, loki_layout
from lore.tasks.loki_layout import LayoutRecord
from lore.validation import validate_methods


@validate_methods
class Layout(MemoryPart):
    """Read and write `.loki/memory` and `.loki/metrics`."""

    def import_folder(
        self, folder: Path, *, project: str = "", trust: bool = False
    ) -> LayoutImport:
        """Store what a `.loki` folder holds as memories of a project.

        The project is that of the folder unless another is given. Without `trust` the knowledge is
        a peer's, which is found only by asking, and ledgers, handoffs and metrics stay files.
        """
        files = layout_folder.read_files(folder)
        home = folder.parent if folder.name == ".loki" else folder
        named = project or str(home.resolve())
        result = layout_transfer.import_layout(
            self._database, files, project=self._redactor.redact(named), trusted=trust,
            redactor=self._redactor,
        )  # fmt: skip
        if result.changed:
            self._sources.drop_hidden()
        return result

    def export_folder(
        self, folder: Path, *, project: str = "", overwrite: bool = False
    ) -> LayoutExport:
        """Write the memories of a project to a `.loki` folder; an imported one comes back whole.

        A memory of Lore's own has the whole layout: also index, timeline, learnings and metrics.
        """
        named = self._redactor.redact(project or str(folder.resolve()))
        with self._database.read() as db:
            project_n = projects.find_project_number(db, named, ProjectFinder().find(named))
            if project_n is None:
                msg = f"Nothing is known of the project {named}."
                raise NotFound(msg, hint="--project names another one.")
            files = layout_transfer.export_layout(db, project_n, partial(self._summarize, named))
        return layout_folder.write_files(folder, files, overwrite=overwrite)

    def _summarize(
        self, project: str, names: Mapping[str, str], records: Sequence[LayoutRecord]
    ) -> dict[str, dict[str, Any]]:
        """Return the layers, learnings and metrics of a project as files of the layout."""
        now, tasks, handoffs = self._database.now(), Tasks(self._context), Handoffs(self._context)
        index = tasks.index(project=project, whole=True)
        timeline = tasks.timeline(project=project)
        economics = tasks.economics(project=project)
        return {
            loki_layout.INDEX: loki_layout.format_index(index, names, now),
            loki_layout.TIMELINE: loki_layout.format_timeline(timeline, names, now),
            loki_layout.ECONOMICS: loki_layout.format_economics(economics, now),
            loki_layout.EPISODE_INDEX: loki_layout.format_episode_index(records, now),
            **loki_layout.format_learnings(records, now),
            **loki_layout.format_metrics(handoffs.measure_tasks(project=project), now),
        }
