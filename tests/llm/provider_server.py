"""A provider server that sends scripted bytes, also what no provider should send."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from lore.llm.presets import PRESETS, ProviderConfig
from tests.upstream import Text, anthropic, openai_chat
from tests.upstream.prompt_cache import PromptUsage
from tests.upstream.script import Response

Json = dict[str, Any]

USAGE = PromptUsage(fresh=100, read=20)
OUTPUT_TOKENS = 30


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """What a provider sends on one connection: pieces with pauses between them, and its end."""

    pieces: tuple[bytes, ...]
    pause_s: float = 0.0
    reset: bool = False
    hold_s: float = 0.0
    """How long the connection stays open after the last piece."""


def scripted_answer(
    body: bytes | Json | list[Any],
    status: int = 200,
    headers: tuple[tuple[str, str], ...] = (),
    *,
    kind: str = "application/json",
    length: int | None = None,
    **more: Any,
) -> ScriptedAnswer:
    """Write an answer of HTTP; a length that is not the body's is a lie."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    size = len(raw) if length is None else length
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {size}"]
    lines += [f"{name}: {value}" for name, value in headers]
    head = "\r\n".join([*lines, "", ""]).encode()
    return ScriptedAnswer((head, raw), **more)


def messages_body(text: str, **changed: Any) -> Json:
    """Return an answer of Anthropic's Messages."""
    response = Response("anthropic", (Text(text),), "msg_n", "m", USAGE, OUTPUT_TOKENS)
    return {**anthropic.response_document(response), **changed}


def chat_body(text: str | None, **changed: Any) -> Json:
    """Return a chat completion; what is changed is changed in its choice."""
    response = Response("chat", (Text(text or ""),), "chatcmpl-n", "m", USAGE, OUTPUT_TOKENS)
    whole = openai_chat.response_document(response)
    whole["choices"][0].update(changed)
    return whole


@dataclass
class Provider:
    """A running provider: what it still has to say, and the requests it had."""

    url: str
    script: list[ScriptedAnswer] = field(default_factory=list)
    requests: list[Json] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def choice(self, provider: str, timeout_s: float = 20.0, model: str = "m") -> ProviderConfig:
        """Return the choice of this provider in place of a real one."""
        url = self.url if provider == "anthropic" else f"{self.url}/v1"
        return ProviderConfig(provider, PRESETS[provider], model, url, "sk-secret", timeout_s)

    def serve(self, line: socket.socket) -> None:
        with line, suppress(OSError):
            self._note(line)
            answer = self.script.pop(0) if self.script else scripted_answer(b"", 500)
            for piece in answer.pieces:
                line.sendall(piece)
                if answer.pause_s and self.stopping.wait(answer.pause_s):
                    return
            if answer.hold_s:
                self.stopping.wait(answer.hold_s)
            if answer.reset:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _note(self, line: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = line.recv(65_536)
            if not piece:
                return
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        told = head.decode()
        size = next(
            (
                int(one.split(":")[1])
                for one in told.split("\r\n")
                if "content-length" in one.lower()
            ),
            0,
        )
        while len(body) < size:
            body += line.recv(65_536)
        self.heads.append(told)
        self.requests.append(json.loads(body) if body else {})


@contextmanager
def running_provider() -> Iterator[Provider]:
    """Run a provider on a free port for as long as the block lasts."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        provider = Provider(f"http://127.0.0.1:{server.getsockname()[1]}")

        def accept() -> None:
            with suppress(OSError):
                while True:
                    line, _ = server.accept()
                    threading.Thread(target=provider.serve, args=(line,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            provider.stopping.set()
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()
