"""Hatchling's hook: builds the explorer when the package is built, so that users need no Node."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

import build

REQUIRED = "LORE_REQUIRE_EXPLORER"
"""With this in the environment a build without the explorer fails."""


class ExplorerHook(BuildHookInterface[Any]):
    """Builds the explorer into the package; without npm's registry the package has none."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return Node as a build dependency where the machine has none."""
        return [] if build.is_current() or build.has_node() else [build.NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's
        """Build before the files are collected; an editable install builds only on demand."""
        is_required = os.environ.get(REQUIRED, "") not in ("", "0")
        if version == "editable" and not is_required:
            return
        try:
            build.build()
        except build.BuildError as error:
            if is_required:
                raise
            self.app.display_warning(f"Lore is built without its web explorer: {error}.")
