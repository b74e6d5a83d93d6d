"""Starting a client: found by its npm prefix, in a clean environment, with its own home."""

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

PREFIX_VARIABLE = "LORE_TEST_CLIENTS"
"""Names the npm prefix that the clients were installed into."""

COLLECTED_VARIABLE = "LORE_TEST_COLLECTED"
"""Names the folder of an earlier run, to be looked at instead of running the clients."""

LONGEST_RUN_S = 180
"""A run takes seconds; a client that waits for something is ended."""

HEARS_INTERRUPTS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""A shell starts its background jobs deaf to SIGINT, and their children inherit that."""


def find_command(name: str) -> Path | None:
    """Find an installed client below the npm prefix, or on the path."""
    prefix = os.environ.get(PREFIX_VARIABLE)
    if prefix:
        command = Path(prefix, "node_modules", ".bin", name)
        return command if command.exists() else None
    found = shutil.which(name)
    return Path(found) if found else None


class Run(NamedTuple):
    """One process of a client: what it was given and what it printed."""

    words: list[str]
    given: str
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
        """Name everything that the client may know; the proxy refuses whatever leaves here."""
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

    def run(self, *words: str, given: str = "") -> Run:
        """Run the client once, to its end."""
        done = subprocess.run(
            [str(self.command), *words],
            cwd=self.project,
            env=self.environment(),
            input=given,
            capture_output=True,
            text=True,
            timeout=LONGEST_RUN_S,
            check=False,
        )
        return Run(list(words), given, done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the client for a talk over its pipes."""
        running = subprocess.Popen(
            [sys.executable, "-c", HEARS_INTERRUPTS, str(self.command), *words],
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        end = threading.Timer(LONGEST_RUN_S, running.kill)
        end.daemon = True
        end.start()
        return running

    def wait_for_answer(self, cue: str) -> None:
        """Wait until the provider is in the middle of its answer to a prompt."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(LONGEST_RUN_S * 20):
            with direct.open(self.upstream_url + "/scripted/answering") as told:
                if cue in json.load(told):
                    return
            time.sleep(0.05)
        raise TimeoutError(cue)

    def version(self) -> str:
        """Ask the client for its version."""
        printed = self.run("--version").stdout
        return next(word for word in printed.split() if word[:1].isdigit())
