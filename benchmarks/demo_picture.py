"""Draw docs/pictures/demo.svg: the first answer of `lore demo`, as a terminal shows it."""

from __future__ import annotations

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).parents[1] / "docs" / "pictures" / "demo.svg"
COLUMNS = 124
QUESTION = re.compile(r"^\? ")
HEADING = re.compile(r"^\d\. ")
REASON = re.compile(r"^   (keywords|meaning) ")


def main() -> None:
    """Run the demo and write the picture of its first question and answer."""
    demo = subprocess.run(
        [sys.executable, "-m", "lore.cli", "demo"], capture_output=True, text=True, check=True
    )
    TARGET.write_text(draw(first_answer(demo.stdout)), "utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


def first_answer(output: str) -> list[str]:
    """Return the opening line, the first question and its hits."""
    lines = output.splitlines()
    questions = [place for place, line in enumerate(lines) if QUESTION.match(line)]
    return lines[: questions[1] - 1]


def draw(lines: list[str]) -> str:
    """Return an SVG of a terminal; it names no font on another host."""
    console = Console(record=True, width=COLUMNS, force_terminal=True, file=StringIO())
    console.print(Text("$ uv run lore demo", style="bold green"))
    for line in lines:
        console.print(Text(line, style=style_of(line)), soft_wrap=False)
    template = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="lore demo", code_format=template, unique_id="lore")


def style_of(line: str) -> str:
    """Return the style of one line: questions and headings stand out, reasons step back."""
    if QUESTION.match(line):
        return "bold cyan"
    if HEADING.match(line):
        return "bold"
    return "dim" if REASON.match(line) else ""


if __name__ == "__main__":
    main()
