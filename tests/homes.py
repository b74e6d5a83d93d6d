"""Homes that are made once and copied, because filling one takes seconds."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def copy_home(source: Path, target: Path) -> Path:
    """Copy the home of a closed memory; model files are linked, since nobody changes them."""

    def copy(one: str, other: str) -> None:
        (os.link if Path(one).parent.parent.name == "models" else shutil.copy2)(one, other)

    shutil.copytree(source, target, copy_function=copy)
    return target
