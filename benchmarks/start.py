"""What does it cost to start: `lore --help`, a setting, a question, `lore mcp` and `lore hook`?

Processor time of the whole process, as a ratio to an interpreter that does nothing, and to one that
imports typer (what `lore --help` is made of) or the SDK of MCP (what `lore mcp` does without), all
in the same run; what opens the memory also as a ratio to `lore --version`, which does not. `lore
mcp` and `lore hook` speak with a daemon that runs, which is how agents start them; `lore mcp` is
timed to its answer to `initialize`. Then the same without a daemon: with a greeting that the home
keeps, and without; and the first call, for which the daemon has to be up.
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
from lore.proxy.cached_handshake import HANDSHAKE_FILE

PROGRAM = (sys.executable, "-c", "from lore.cli import main; main()")
"""As the installed command does it."""

INITIALIZE: dict[str, object] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}
LIST: dict[str, object] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
RECALL: dict[str, object] = {
    "jsonrpc": "2.0",
    "id": 3,
    "method": "tools/call",
    "params": {"name": "recall", "arguments": {"query": "how do we deploy?"}},
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
    "lore --version": ((*PROGRAM, "--version"), None),
    "lore recall": ((*PROGRAM, "recall", "how do we deploy?"), None),
    "lore remember": ((*PROGRAM, "remember", "We deploy with ops/deploy.sh"), None),
    "lore roots": ((*PROGRAM, "roots"), None),
    "lore status": ((*PROGRAM, "status"), None),
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
    version = statistics.median(cpu for cpu, _ in spent["lore --version"])
    return {
        name: {
            "cpu_ms": round(min(cpu for cpu, _ in found), 1),
            "of_python": round(min(cpu for cpu, _ in found) / least, 1),
            "of_version": round(statistics.median(cpu for cpu, _ in found) / version, 1),
            "first_line_ms": round(statistics.median(took for _, took in found), 1),
        }
        for name, found in spent.items()
    }


def ask_cold(home: Path, *, kept: bool) -> dict[str, float]:
    """Start `lore mcp` where no daemon runs; return how long it took to its answers, ms."""
    if not kept:
        (home / ".lore" / HANDSHAKE_FILE).unlink()
    started = time.perf_counter()
    took = {}
    with subprocess.Popen(
        (*PROGRAM, "mcp"),
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin
        assert process.stdout
        for asked in (INITIALIZE, LIST, RECALL):
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
            process.stdout.readline()
            took[str(asked["method"])] = (time.perf_counter() - started) * 1000
    return took


def measure_cold(home: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Start without a daemon, in turns with and without a greeting, and return the middle."""
    found: dict[str, list[dict[str, float]]] = {"with greeting": [], "without": []}
    for _ in range(rounds):
        for name, kept in (("with greeting", True), ("without", False)):
            found[name].append(ask_cold(home, kept=kept))
            lore(home, "down")
    return {
        name: {
            method: round(statistics.median(one[method] for one in took), 1) for method in took[0]
        }
        for name, took in found.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--cold-rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ.pop("LORE_HOME", None)
        lore(home, "config", "server.port", "0")
        lore(home, "remember", "We deploy with ops/deploy.sh")
        with daemon(home):
            print(json.dumps(measure(home, options.rounds), indent=1))
        cold = {"no daemon, ms to the answer": measure_cold(home, options.cold_rounds)}
        print(json.dumps(cold | {"load": os.getloadavg()}, indent=1))


if __name__ == "__main__":
    main()
