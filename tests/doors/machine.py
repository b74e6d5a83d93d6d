"""A person's machine: Lore installed and running, agents that talk to a provider by a script."""

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
from tests.clients.upstream import Exchange, Upstream
from tests.house.source import ROOT
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
"""The daemon looks for nothing by itself, so that all it knows came through a door; and it is
waited for, because a machine that runs tests does much else."""

PATIENT = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "60000"}
"""Claude Code waits for MCP servers before it says the first prompt."""

GIVEN = re.compile(
    r"(\w+)(?::\w+)? hook additional context: <lore-memory>(.*?)</lore-memory>", re.DOTALL
)


@dataclass
class Machine:
    """A home of a person, a project in it, the home of Lore, and a provider."""

    home: Path
    lore_home: Path
    upstream: Upstream
    changes: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return what programs of this machine know; settings of whoever runs the tests are not."""
        path = os.pathsep.join([str(BIN), os.environ["PATH"]])
        given = {**QUIET, "HOME": str(self.home), "PATH": path, **self.changes}
        return environment(self.lore_home, **given)

    def lore(self, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run the command, and check that it went well."""
        done = self.try_lore(*words, **changes)
        assert done.returncode == 0, done.stderr
        return done

    def try_lore(self, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        return subprocess.run(
            [str(BIN / "lore"), *words], capture_output=True, text=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL, env={**self.environment(), **changes},
        )  # fmt: skip

    def start(self) -> None:
        """Start Lore and wait until it listens."""
        self.lore("up", "--detach")
        eventually(lambda: address.find_address(str(self.lore_home)))

    def stop(self) -> None:
        """End whatever Lore runs here."""
        process.stop(self.lore_home, force=True)

    @property
    def pid(self) -> int:
        """Return the process of Lore."""
        holder = daemon_lock.find_holder(self.lore_home)
        assert holder
        return holder.pid

    def ask(self, path: str) -> Any:
        """Return what Lore says at an address of its own."""
        found = address.find_address(str(self.lore_home))
        assert found
        asked = urllib.request.Request(
            f"http://{found.host}:{found.port}/api/v1{path}",
            headers={"authorization": f"Bearer {found.key}"},
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(asked, timeout=30) as answer:
            return json.load(answer)

    def sessions(self) -> dict[str, Any]:
        """Return the sessions that Lore knows, by the names that agents gave them."""
        return {one["external_id"]: one for one in self.ask("/sessions?limit=100")["items"]}

    def said(self, session: str) -> list[str]:
        """Return what was said in a session as Lore has it, without calls and asides."""
        found = self.sessions().get(session)
        if found is None:
            return []
        messages = self.ask(f"/sessions/{found['id']}/messages?limit=100")["items"]
        return [part["text"] for one in messages for part in one["parts"] if part["kind"] == "text"]

    def wait_until_known(self, session: str, text: str) -> None:
        """Wait until a text of a session can be found by its meaning, too."""
        eventually(lambda: any(text in one for one in self.said(session)))
        eventually(lambda: self.ask("/stats")["waiting"] == 0)

    def client(
        self, command: str, sessions: ModuleType, project: Path, *, patient: bool = True
    ) -> Client:
        """Return an agent that works on a project with the home of this person."""
        found = find_client(command)
        settings = dict(sessions.prepare(self.home, self.upstream.url))
        lore = {
            name: value
            for name, value in self.environment().items()
            if name.startswith("LORE_") or name in ("PATH", "PYTHONPYCACHEPREFIX")
        }
        lore["PATH"] = os.pathsep.join([str(found.parent), lore["PATH"]])
        known = settings | lore | (PATIENT if patient else {})
        return Client(found, self.home, project, self.upstream.url, (*known.items(),))

    def asked(self, cue: str) -> list[Exchange]:
        """Return the requests that a cue led to, in order."""
        return [one for one in self.upstream.exchanges if one.cue == cue and one.body]


def find_client(command: str) -> Path:
    """Return an installed client, or skip the test."""
    found = find_command(command)
    if found is None:
        pytest.skip(f"{command} is not installed: name its npm prefix in {PREFIX_VARIABLE}")
    return found


def write_folder(folder: Path) -> Path:
    """Write a project under version control that shares no history with another."""
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(f"# {folder.name}\n")
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", str(folder)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", f"Begin {folder.name}"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return folder


def texts_of(value: object) -> list[str]:
    """Return every text below a value of JSON, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [text for one in value for text in texts_of(one)] if isinstance(value, list) else []


def given(exchange: Exchange) -> list[tuple[str, str]]:
    """Return what hooks put into a request: the event, and the memory."""
    assert exchange.body
    return GIVEN.findall("\n".join(texts_of(exchange.body["messages"])))


def offered(exchange: Exchange) -> list[str]:
    """Return all that a request says about tools."""
    assert exchange.body
    return texts_of(exchange.body["tools"])
