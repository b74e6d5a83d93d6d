"""Hatchling's hook: builds the explorer when the package is built, so that users need no Node."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

import build


class ExplorerHook(BuildHookInterface[Any]):
    """Builds the explorer into the package; where that is not possible, the package has none."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the installer has to provide."""
        return build.requirements(os.environ)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's
        """Build before the files are collected; an editable install builds only on demand."""
        is_required = build.is_required(os.environ)
        if version == "editable" and not is_required:
            return
        try:
            build.build()
        except build.BuildError as error:
            if is_required:
                raise
            self.app.display_warning(f"Lore's web explorer was not built: {error}.")
