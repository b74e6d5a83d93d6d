"""A client: found by its npm prefix, run in a clean environment with its own home."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.upstream.server import STREAMING_PATH

PREFIX_VARIABLE = "LORE_TEST_CLIENTS"
"""Names the npm prefix that the clients were installed into."""

RECORDING_VARIABLE = "LORE_TEST_RECORDING"
"""Names the folder of an earlier run, to be looked at instead of running the clients."""

MAX_RUN_S = 180
"""A run takes seconds; a client that waits for something is ended."""

RESTORE_SIGINT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""A shell starts its background jobs with SIGINT ignored, and their children inherit that."""


def find_command(name: str) -> Path | None:
    """Find an installed client below the npm prefix, or on the path."""
    prefix = os.environ.get(PREFIX_VARIABLE)
    if prefix:
        command = Path(prefix, "node_modules", ".bin", name)
        return command if command.exists() else None
    found = shutil.which(name)
    return Path(found) if found else None


class Run(NamedTuple):
    """One process of a client: its arguments, its input and its output."""

    arguments: list[str]
    input: str
    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Client:
    """An installed client with a home and a project of its own, and a provider to talk to."""

    command: Path
    home: Path
    project: Path
    upstream_url: str
    settings: tuple[tuple[str, str], ...] = ()

    def environment(self) -> dict[str, str]:
        """Return the whole environment; the proxy refuses requests to other machines."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "HTTP_PROXY": self.upstream_url,
            "HTTPS_PROXY": self.upstream_url,
            "NO_PROXY": "127.0.0.1,localhost",
            **dict(self.settings),
        }

    def run(self, *arguments: str, input: str = "") -> Run:
        """Run the client once, to its end."""
        done = subprocess.run(
            [str(self.command), *arguments],
            cwd=self.project,
            env=self.environment(),
            input=input,
            capture_output=True,
            text=True,
            timeout=MAX_RUN_S,
            check=False,
        )
        return Run(list(arguments), input, done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the client for a conversation over its pipes."""
        running = subprocess.Popen(
            [sys.executable, "-c", RESTORE_SIGINT, str(self.command), *arguments],
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        timer = threading.Timer(MAX_RUN_S, running.kill)
        timer.daemon = True
        timer.start()
        return running

    def wait_for_answer(self, cue: str) -> None:
        """Wait until the upstream streams its reply to a prompt."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(MAX_RUN_S * 20):
            with direct.open(self.upstream_url + STREAMING_PATH) as response:
                if cue in json.load(response):
                    return
            time.sleep(0.05)
        raise TimeoutError(cue)

    def version(self) -> str:
        """Ask the client for its version."""
        printed = self.run("--version").stdout
        return next(word for word in printed.split() if word[:1].isdigit())
