"""A person's machine whose agents talk to their models through the gateway."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients import upstream as plain
from tests.clients.client import Client
from tests.doors.machine import Machine, find_client, texts_of
from tests.gateway.upstream import Asked, Reply, Says, Upstream, upstream
from tests.waiting import eventually

GATED = {
    "LORE_CONTEXT_MAX_LAYER0_TOKENS": "36000",
    "LORE_GATEWAY_WITHIN_MS": "4000",
}
"""Sessions are shortened early, so that a test sees it; agents say 20,000 tokens before anybody
has spoken."""

TITLE = "You are a title generator"

Told = Reply | Callable[[Asked], Reply]


@dataclass
class Stage:
    """What the model says: by the cue that was said last, one reply after the other."""

    scenes: Mapping[str, tuple[Told, ...]]
    at: dict[str, int] = field(default_factory=dict)
    cues: dict[int, str] = field(default_factory=dict)
    """Which cue a request was about, by its number."""

    def __call__(self, asked: Asked) -> Reply:
        """Return the reply to a request."""
        if TITLE in json.dumps(asked.tree):
            return Says("A title")
        cue = self.cue_of(asked)
        self.cues[asked.number] = cue
        replies = self.scenes.get(cue, (Says("Understood."),))
        at = self.at.get(cue, 0)
        self.at[cue] = at + 1
        told = replies[min(at, len(replies) - 1)]
        return told(asked) if callable(told) else told

    def cue_of(self, asked: Asked) -> str:
        """Return the cue that stands nearest to the end of a request."""
        said = typed_in(asked)
        found = {cue: said.rfind(cue) for cue in self.scenes}
        cue = max(found, key=lambda one: found[one])
        return cue if found[cue] >= 0 else ""


def said_of(asked: Asked) -> str:
    """Return all that a request says, without the agent's own prompt and its tools."""
    tree = asked.tree or {}
    return "\n".join(texts_of(tree.get("messages") or tree.get("input") or []))


_GIVEN = re.compile(r"<lore-memory>.*?</lore-memory>", re.DOTALL)


def typed_in(asked: Asked) -> str:
    """Return what stands in a person's place, without results and memory."""
    tree = asked.tree or {}
    told = []
    for one in tree.get("messages") or tree.get("input") or tree.get("contents") or []:
        if one.get("role") == "user":
            content = one.get("content") or one["parts"]
            blocks = [content] if isinstance(content, str) else content
            told += [each for each in blocks if isinstance(each, str) or "text" in each]
    return _GIVEN.sub("", "\n".join(texts_of(told)))


@dataclass
class Gated:
    """A machine with a daemon, and the provider behind its gateway."""

    machine: Machine
    up: Upstream
    stage: Stage

    @property
    def url(self) -> str:
        """Return where the gateway is, or was."""
        return f"http://127.0.0.1:{self.machine.changes['LORE_SERVER_PORT']}"

    def asked(self, cue: str) -> list[Asked]:
        """Return the requests that were about a cue, in order."""
        return [one for one in self.up.turns if self.stage.cues.get(one.number) == cue]

    def client(self, command: str, project: Path, settings: Mapping[str, str]) -> Client:
        """Return an agent; what it asks of others than its model is refused and seen."""
        known = {
            name: value
            for name, value in self.machine.environment().items()
            if name.startswith("LORE_") or name in ("PATH", "PYTHONPYCACHEPREFIX")
        }
        found = find_client(command)
        known["PATH"] = os.pathsep.join([str(found.parent), known["PATH"]])
        told = {**known, **settings}
        return Client(found, self.machine.home, project, self.up.url, tuple(told.items()))

    def kill(self) -> None:
        """End the daemon as a crash would."""
        pid = self.machine.pid
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not Path(f"/proc/{pid}").exists() or _is_gone(pid))

    def wait_until_condensed(self, session: str) -> None:
        """Wait until what was said is stored and told by logs as far as it will be."""
        name = self.machine.sessions().get(session)
        if name is None:
            return

        def count() -> tuple[int, int]:
            told = self.machine.ask(f"/distillations?session={name['id']}&limit=100")["items"]
            return len(self.messages(session)), len(told)

        before = count()
        for _ in range(20):
            time.sleep(0.1)
            now = count()
            if now == before:
                return
            before = now

    def messages(self, session: str) -> list[Any]:
        """Return the messages of a session as Lore has them."""
        found = self.machine.sessions().get(session)
        if found is None:
            return []
        return list(self.machine.ask(f"/sessions/{found['id']}/messages?limit=500")["items"])


def _is_gone(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()


@contextmanager
def gated(
    place: Path,
    scenes: Mapping[str, tuple[Told, ...]],
    *,
    window_tokens: int = 200_000,
    **settings: str,
) -> Iterator[Gated]:
    """Give a machine with a gateway in front of a provider that follows a script."""
    stage = Stage(scenes)
    with upstream(stage, window_tokens=window_tokens) as up:
        changes = {
            **GATED,
            "LORE_SERVER_PORT": str(free_port()),
            "LORE_GATEWAY_ANTHROPIC_URL": up.url,
            "LORE_GATEWAY_OPENAI_URL": up.url,
            "LORE_GATEWAY_GEMINI_URL": up.url,
            **settings,
        }
        known = plain.Upstream(up.url, ())
        machine = Machine(place / "person", place / "lore", known, changes)
        try:
            yield Gated(machine, up, stage)
        finally:
            machine.stop()


def free_port() -> int:
    """Return a port that nobody has; a daemon that is started again comes back to it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def bare(value: Any) -> Any:
    """Return a part of a request as it is cached: breakpoints are no part of that."""
    if isinstance(value, dict):
        content = value.get("content")
        if isinstance(content, str) and "role" in value:
            value = {**value, "content": [{"type": "text", "text": content}]}
        return {key: bare(one) for key, one in value.items() if key != "cache_control"}
    return [bare(one) for one in value] if isinstance(value, list) else value


_BILLING = re.compile(r"x-anthropic-billing-header[^\"]*")


def system_of(asked: Asked) -> str:
    """Return the system prompt of a request, without what Claude Code changes for each run."""
    return _BILLING.sub("", json.dumps(bare(asked.tree.get("system"))))
