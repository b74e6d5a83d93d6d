"""The file layout `.loki`: imported as memories of a project, and exported again."""

from __future__ import annotations

from pathlib import Path

from lore import projects
from lore.errors import NotFound
from lore.memory.context import MemoryPart
from lore.projects import ProjectFinder
from lore.records import LayoutExport, LayoutImport
from lore.tasks import layout_transfer
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
        files = layout_transfer.read_files(folder)
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
        """Write the memories of a project to a `.loki` folder; an imported one comes back whole."""
        named = self._redactor.redact(project or str(folder.resolve()))
        with self._database.read() as db:
            project_n = projects.find_project_number(db, named, ProjectFinder().find(named))
            if project_n is None:
                msg = f"Nothing is known of the project {named}."
                raise NotFound(msg, hint="--project names another one.")
            files = layout_transfer.export_layout(db, project_n)
        return layout_transfer.write_files(folder, files, overwrite=overwrite)
