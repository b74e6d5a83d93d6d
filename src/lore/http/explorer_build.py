"""Where the built explorer is, for the server and for commands that start without one."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

FOLDER: Final = Path(str(resources.files("lore"))) / "data" / "explorer"
"""The built pages in the package."""

NOT_BUILT: Final = (
    "The explorer is not part of this installation, and a plain page stands in for it:"
    " 'python explorer/build.py' in a checkout of Lore builds it."
)


def is_built(folder: Path = FOLDER) -> bool:
    """Return whether there are pages to serve."""
    return (folder / "index.html").is_file()
