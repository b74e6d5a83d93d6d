"""What does it cost to start: `lore --help`, a setting, `lore mcp` and `lore hook`?

Processor time of the whole process, as a ratio to an interpreter that does nothing, and to one that
imports typer (what `lore --help` is made of) or the SDK of MCP (what `lore mcp` does without), all
in the same run. `lore mcp` and `lore hook` speak with a daemon that runs, which is how agents start
them; `lore mcp` is timed to its answer to `initialize`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from daemon import daemon, environment, lore

PROGRAM = (sys.executable, "-c", "from lore.cli import main; main()")
"""As the installed command does it."""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}
PROMPT: dict[str, object] = {
    "session_id": "benchmark",
    "transcript_path": "",
    "cwd": "/code/demo",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "how do we deploy?",
}
STARTS: dict[str, tuple[tuple[str, ...], dict[str, object] | None]] = {
    "python -c pass": ((sys.executable, "-c", "pass"), None),
    "import typer": ((sys.executable, "-c", "import typer"), None),
    "import mcp.server": ((sys.executable, "-c", "import mcp.server"), None),
    "lore --help": ((*PROGRAM, "--help"), None),
    "lore config KEY": ((*PROGRAM, "config", "recall.max_hits"), None),
    "lore mcp, first answer": ((*PROGRAM, "mcp"), INITIALIZE),
    "lore hook": ((*PROGRAM, "hook", "UserPromptSubmit"), PROMPT),
}


def start(
    command: tuple[str, ...], told: dict[str, object] | None, env: dict[str, str]
) -> tuple[float, float]:
    """Run a command to its end; return its processor time and how long the first line took, ms."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin
        assert process.stdout
        if told is not None:
            process.stdin.write(json.dumps(told).encode() + b"\n")
            process.stdin.flush()
        if told is not INITIALIZE:
            process.stdin.close()
        process.stdout.readline()
        took_s = time.perf_counter() - started
        process.stdin.close()
        process.stdout.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s * 1000, took_s * 1000


def measure(home: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Start each in turn, round after round, and return the least and the middle of each."""
    env = {**environment(home), "PYTHONDONTWRITEBYTECODE": ""}
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in STARTS}
    for _ in range(rounds):
        for name, (command, told) in STARTS.items():
            spent[name].append(start(command, told, env))
    least = min(cpu for cpu, _ in spent["python -c pass"])
    return {
        name: {
            "cpu_ms": round(min(cpu for cpu, _ in found), 1),
            "of_python": round(min(cpu for cpu, _ in found) / least, 1),
            "first_line_ms": round(statistics.median(took for _, took in found), 1),
        }
        for name, found in spent.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ.pop("LORE_HOME", None)
        lore(home, "config", "server.port", "0")
        lore(home, "remember", "We deploy with ops/deploy.sh")
        with daemon(home):
            print(json.dumps(measure(home, options.rounds), indent=1))


if __name__ == "__main__":
    main()
