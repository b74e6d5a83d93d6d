"""A person's machine: Lore installed and running, and agents that use a scripted upstream."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lore.daemon import daemon_lock, process
from lore.proxy import address
from tests.cli.conftest import environment
from tests.clients.client import PREFIX_VARIABLE, Client, find_command
from tests.house.source import ROOT
from tests.upstream import ReceivedRequest, Upstream
from tests.waiting import eventually

BIN = Path(sys.executable).parent
"""Where `lore` is, as it is in an installation."""

PLUGIN = ROOT / "plugins" / "claude-code"

QUIET = {
    "LORE_SERVER_PORT": "0",
    "LORE_EMBED_PROVIDER": "local",
    "LORE_CAPTURE_POLL_INTERVAL_S": "86400",
    "LORE_DISTILL_IDLE_S": "86400",
    "LORE_CURATE_IDLE_S": "86400",
    "LORE_INJECT_WITHIN_MS": "4000",
}
"""The daemon does nothing unasked, so that all it knows came through an interface; and hooks wait
long for it, because a machine that runs tests is busy."""

WAIT_FOR_MCP = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "60000"}
"""Claude Code waits for MCP servers before it says the first prompt."""

HOOK_CONTEXT = re.compile(
    r"(\w+)(?::\w+)? hook additional context: <lore-memory>(.*?)</lore-memory>", re.DOTALL
)


@dataclass
class Machine:
    """The home of a person, the home of Lore, and an upstream."""

    home: Path
    lore_home: Path
    upstream: Upstream
    changes: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return the environment of programs, without settings of whoever runs the tests."""
        path = os.pathsep.join([str(BIN), os.environ["PATH"]])
        variables = {**QUIET, "HOME": str(self.home), "PATH": path, **self.changes}
        return environment(self.lore_home, **variables)

    def lore(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run `lore`, and check that it succeeds."""
        done = self.try_lore(*arguments, **changes)
        assert done.returncode == 0, done.stderr
        return done

    def try_lore(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run `lore`."""
        return subprocess.run(
            [str(BIN / "lore"), *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**self.environment(), **changes},
        )

    def start(self) -> None:
        """Start Lore and wait until it listens."""
        self.lore("up", "--detach")
        eventually(lambda: address.find_address(str(self.lore_home)))

    def stop(self) -> None:
        """Stop the daemon."""
        process.stop(self.lore_home, force=True)

    @property
    def pid(self) -> int:
        """Return the process id of the daemon."""
        holder = daemon_lock.find_holder(self.lore_home)
        assert holder
        return holder.pid

    def get(self, path: str) -> Any:
        """Return a resource of Lore's REST API."""
        daemon = address.find_address(str(self.lore_home))
        assert daemon
        request = urllib.request.Request(
            f"http://{daemon.host}:{daemon.port}/api/v1{path}",
            headers={"authorization": f"Bearer {daemon.key}"},
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=30) as response:
            return json.load(response)

    def sessions(self) -> dict[str, Any]:
        """Return the sessions that Lore knows, by the names that agents gave them."""
        return {one["external_id"]: one for one in self.get("/sessions?limit=100")["items"]}

    def texts(self, session: str) -> list[str]:
        """Return the texts of a session as Lore stores them, without calls and asides."""
        record = self.sessions().get(session)
        if record is None:
            return []
        messages = self.get(f"/sessions/{record['id']}/messages?limit=100")["items"]
        return [part["text"] for one in messages for part in one["parts"] if part["kind"] == "text"]

    def wait_until_indexed(self, session: str, text: str) -> None:
        """Wait until a text of a session is stored and embedded."""
        eventually(lambda: any(text in one for one in self.texts(session)))
        eventually(lambda: self.get("/stats")["waiting"] == 0)

    def find_session(self, text: str) -> str | None:
        """Find the session in which a text was said."""
        sessions = self.sessions()
        return next(
            (name for name in sessions if any(text in one for one in self.texts(name))), None
        )

    def client(
        self, command: str, sessions: ModuleType, project: Path, *, wait_for_mcp: bool = True
    ) -> Client:
        """Return an agent that works on a project with the home of this person."""
        executable = find_client(command)
        settings = dict(sessions.prepare(self.home, self.upstream.url))
        lore = {
            name: value
            for name, value in self.environment().items()
            if name.startswith("LORE_") or name in ("PATH", "PYTHONPYCACHEPREFIX")
        }
        lore["PATH"] = os.pathsep.join([str(executable.parent), lore["PATH"]])
        variables = settings | lore | (WAIT_FOR_MCP if wait_for_mcp else {})
        return Client(executable, self.home, project, self.upstream.url, (*variables.items(),))

    def requests(self, cue: str) -> list[ReceivedRequest]:
        """Return the requests about a cue, in order."""
        return [one for one in self.upstream.requests if one.cue == cue]


def find_client(command: str) -> Path:
    """Return an installed client, or skip the test."""
    executable = find_command(command)
    if executable is None:
        pytest.skip(f"{command} is not installed: name its npm prefix in {PREFIX_VARIABLE}")
    return executable


def write_repository(folder: Path) -> Path:
    """Write a project under version control that shares no history with another."""
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(f"# {folder.name}\n")
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", str(folder)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", f"Begin {folder.name}"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return folder


def json_texts(value: object) -> list[str]:
    """Return every text below a value of JSON, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [text for one in value for text in json_texts(one)] if isinstance(value, list) else []


def hook_contexts(request: ReceivedRequest) -> list[tuple[str, str]]:
    """Return the memory that hooks added to a request, each with its event."""
    return HOOK_CONTEXT.findall("\n".join(json_texts(request.json["messages"])))


def tool_texts(request: ReceivedRequest) -> list[str]:
    """Return all texts in the tools of a request."""
    return json_texts(request.json["tools"])
