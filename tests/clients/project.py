"""The little project that the clients work on, and the secret that a person lets slip."""

from __future__ import annotations

import struct
import subprocess
import zlib
from pathlib import Path

CANARY = "AKIA" + "Q3LORETEST7CANRY"
"""Shaped like an AWS access key, and no one's."""

BOOT_TEXT = "Dates in almanac are always written day first, never month first."
"""Stands in the boot file of the project: no person said it in the conversation."""

DATES = '''"""Reading of dates."""


def parse_day(text: str) -> tuple[int, int, int]:
    """Read a date written day first."""
    day, month, year = text.split("/")
    return int(month), int(day), int(year)
'''


def write_project(folder: Path) -> Path:
    """Write the project with its boot files and put it under version control."""
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "dates.py").write_text(DATES)
    (folder / "pixel.png").write_bytes(pixel())
    for boot in ("CLAUDE.md", "AGENTS.md"):
        (folder / boot).write_text(f"# almanac\n\n{BOOT_TEXT}\n")
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", str(folder)]
    for words in (["init", "-q", "-b", "trunk"], ["add", "."], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return folder


def pixel() -> bytes:
    """Make a picture of one red point."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    dot = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", dot) + chunk(b"IEND", b"")
