"""A person's machine whose agents reach their models through the gateway."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.client import Client
from tests.clients.machine import Machine, find_client, json_texts
from tests.upstream import ModelReply, ReceivedRequest, ScriptedResponse, Upstream, running_upstream
from tests.waiting import eventually

GATEWAY_SETTINGS = {
    "LORE_CONTEXT_MAX_LAYER0_TOKENS": "36000",
    "LORE_GATEWAY_WITHIN_MS": "4000",
}
"""Sessions are shortened early, so that a test sees it; the prompts of agents begin with 20,000
tokens."""

TITLE_PROMPT = "You are a title generator"

CueReplies = Mapping[
    str, Sequence[ScriptedResponse | Callable[[ReceivedRequest], ScriptedResponse]]
]


@dataclass
class CueScript:
    """Replies by the last cue in a request, one after the other; the last one is repeated."""

    replies: CueReplies
    steps: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: ReceivedRequest) -> ScriptedResponse:
        """Return the reply to a request."""
        if TITLE_PROMPT in json.dumps(request.json):
            return ModelReply("A title")
        request.cue = self._find_cue(request)
        request.step = self.steps[request.cue]
        self.steps[request.cue] += 1
        replies = self.replies.get(request.cue, (ModelReply("Understood."),))
        reply = replies[min(request.step, len(replies) - 1)]
        return reply(request) if callable(reply) else reply

    def _find_cue(self, request: ReceivedRequest) -> str:
        text = typed_text(request)
        places = {cue: text.rfind(cue) for cue in self.replies}
        cue = max(places, key=lambda one: places[one])
        return cue if places[cue] >= 0 else ""


def message_text(request: ReceivedRequest) -> str:
    """Return all texts of a request, without the system prompt and the tools."""
    document = request.json or {}
    return "\n".join(json_texts(document.get("messages") or document.get("input") or []))


_MEMORY = re.compile(r"<lore-memory>.*?</lore-memory>", re.DOTALL)


def typed_text(request: ReceivedRequest) -> str:
    """Return the texts of the user in a request, without results and memory."""
    document = request.json or {}
    texts = []
    for one in document.get("messages") or document.get("input") or document.get("contents") or []:
        if one.get("role") == "user":
            content = one.get("content") or one["parts"]
            blocks = [content] if isinstance(content, str) else content
            texts += [each for each in blocks if isinstance(each, str) or "text" in each]
    return _MEMORY.sub("", "\n".join(json_texts(texts)))


@dataclass
class GatewayMachine:
    """A machine with a daemon, and the upstream behind its gateway."""

    machine: Machine
    up: Upstream

    @property
    def url(self) -> str:
        """Return the address of the gateway."""
        return f"http://127.0.0.1:{self.machine.changes['LORE_SERVER_PORT']}"

    def requests(self, cue: str) -> list[ReceivedRequest]:
        """Return the requests about a cue, in order."""
        return [one for one in self.up.model_requests if one.cue == cue]

    def client(self, command: str, project: Path, settings: Mapping[str, str]) -> Client:
        """Return an agent; requests to other hosts are refused and recorded."""
        variables = {
            name: value
            for name, value in self.machine.environment().items()
            if name.startswith("LORE_") or name in ("PATH", "PYTHONPYCACHEPREFIX")
        }
        executable = find_client(command)
        path = os.pathsep.join([str(executable.parent), variables["PATH"]])
        variables |= {"PATH": path, **settings}
        return Client(executable, self.machine.home, project, self.up.url, tuple(variables.items()))

    def kill(self) -> None:
        """Kill the daemon."""
        pid = self.machine.pid
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))

    def wait_until_condensed(self, session: str) -> None:
        """Wait until the messages of a session are stored and condensed as far as they will be."""
        record = self.machine.sessions().get(session)
        if record is None:
            return

        def count() -> tuple[int, int]:
            path = f"/distillations?session={record['id']}&limit=100"
            return len(self.messages(session)), len(self.machine.get(path)["items"])

        before = count()
        for _ in range(20):
            time.sleep(0.1)
            now = count()
            if now == before:
                return
            before = now

    def messages(self, session: str) -> list[Any]:
        """Return the messages of a session as Lore stores them."""
        record = self.machine.sessions().get(session)
        if record is None:
            return []
        return list(self.machine.get(f"/sessions/{record['id']}/messages?limit=500")["items"])


def _is_zombie(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()


@contextmanager
def running_gateway_machine(
    place: Path,
    replies: CueReplies,
    *,
    window_tokens: int = 200_000,
    **settings: str,
) -> Iterator[GatewayMachine]:
    """Provide a machine with a gateway in front of a scripted upstream."""
    with running_upstream(CueScript(replies), window_tokens=window_tokens) as up:
        changes = {
            **GATEWAY_SETTINGS,
            "LORE_SERVER_PORT": str(free_port()),
            "LORE_GATEWAY_ANTHROPIC_URL": up.url,
            "LORE_GATEWAY_OPENAI_URL": up.url,
            "LORE_GATEWAY_GEMINI_URL": up.url,
            **settings,
        }
        machine = Machine(place / "person", place / "lore", up, changes)
        try:
            yield GatewayMachine(machine, up)
        finally:
            machine.stop()


def free_port() -> int:
    """Return a free port, so that a daemon that is started again has the same one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def without_breakpoints(value: Any) -> Any:
    """Return a part of a request as it is cached."""
    if isinstance(value, dict):
        content = value.get("content")
        if isinstance(content, str) and "role" in value:
            value = {**value, "content": [{"type": "text", "text": content}]}
        return {
            key: without_breakpoints(one) for key, one in value.items() if key != "cache_control"
        }
    return [without_breakpoints(one) for one in value] if isinstance(value, list) else value


_BILLING = re.compile(r"x-anthropic-billing-header[^\"]*")


def system_text(request: ReceivedRequest) -> str:
    """Return the system prompt of a request, without what Claude Code changes for each run."""
    return _BILLING.sub("", json.dumps(without_breakpoints(request.json.get("system"))))
