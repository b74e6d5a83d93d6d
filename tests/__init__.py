"""Tests, and where Python keeps what it compiled for them and for the programs that they start."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

BYTECODE = Path(tempfile.gettempdir()) / f"lore-tests-bytecode-{os.getuid()}"


def compile_once() -> None:
    """Keep bytecode: without it, a command takes three times the processor time to start."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(BYTECODE)
    sys.dont_write_bytecode = False


compile_once()
