"""The lock file, and the pins that `uv run` takes from it.

`uv run` does not read requirements.lock, so its versions also stand in pyproject.toml as
constraints. `python -m tests.house.lock --write` writes them there.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PIN = re.compile(r"^([A-Za-z0-9][\w.\-]*)==(\S+?)(?: ; (.+?))? \\$", re.MULTILINE)
_BLOCK = re.compile(r"constraint-dependencies = \[\n.*?\]\n", re.DOTALL)


def pins() -> list[str]:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    return [
        f"{name}=={version}" + (f" ; {marker}" if marker else "")
        for name, version, marker in _PIN.findall(lock)
    ]


def block() -> str:
    lines = "".join(f'    "{pin}",\n' for pin in pins())
    return f"constraint-dependencies = [\n{lines}]\n"


def write() -> None:
    path = ROOT / "pyproject.toml"
    text = path.read_text("utf-8")
    path.write_text(_BLOCK.sub(lambda _: block(), text), "utf-8")


if __name__ == "__main__" and "--write" in sys.argv:
    write()
