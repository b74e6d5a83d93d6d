"""Runs the lines of the README that install Lore: `python -m tests.house.readme_lines FOLDER`.

They run on a copy of the tree, with an empty home and with the programs of the system alone.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECTION = "## Try it"
SYSTEM_PATH = "/usr/bin:/bin"
PASSED_ON = re.compile(
    r"PIP_.*|UV_.*(INDEX|CACHE|CERT|LINKS|TLS|TIMEOUT).*|SSL_.*|.*_CA_.*|LANG|[a-z]+_proxy",
    re.IGNORECASE,
)
"""Variables of the network; everything else of the developer's environment stays out."""

NETWORK_FILES = {"PIP_CONFIG_FILE": ".config/pip/pip.conf", "UV_CONFIG_FILE": ".config/uv/uv.toml"}
"""Files that say which package index this machine uses."""


def lines() -> list[str]:
    """Return the shell lines of the first section, without their comments."""
    section = (ROOT / "README.md").read_text("utf-8").partition(SECTION)[2]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block, f"The README has no commands below '{SECTION}'."
    return [line.partition("  #")[0].strip() for line in block[1].splitlines() if line.strip()]


def run(folder: Path) -> None:
    """Run the lines and show their output; raise if one fails."""
    folder.mkdir(parents=True)
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True,
    ).stdout.split(b"\0")  # fmt: skip
    for name in filter(None, map(os.fsdecode, tracked)):
        source, target = ROOT / name, folder / "tree" / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    environ = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    files = {name: Path.home() / path for name, path in NETWORK_FILES.items()}
    environ = {name: str(path) for name, path in files.items() if path.exists()} | environ
    environ |= {"PATH": SYSTEM_PATH, "HOME": str(folder / "home"), "TERM": "dumb"}
    (folder / "home").mkdir()
    for command in lines():
        # the tests run anyway; here it is enough that they are found
        line = command + " --collect-only -q tests/house" * command.endswith("pytest")
        sys.stdout.write(f"$ {line}\n")
        sys.stdout.flush()
        subprocess.run(["sh", "-c", line], cwd=folder / "tree", env=environ, check=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
