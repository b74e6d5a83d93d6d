"""What a provider would have cached of a prompt: computed from the prefix that was really sent.

Anthropic: a prefix is cached where a breakpoint stands, for 5 minutes or an hour from its last
use; a request finds it at one of its own breakpoints or up to 20 blocks before it. OpenAI and
Gemini: every prefix from 1,024 tokens on, in steps of 128, without being asked. A breakpoint is
no part of what is cached. Token counts are characters of the canonical JSON over a fixed ratio.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

TTLS_S = {"5m": 300.0, "1h": 3600.0}
LOOK_BACK_BLOCKS = 20
MAX_BREAKPOINTS = 4
MIN_TOKENS = 1024
STEP_TOKENS = 128
AUTOMATIC_TTL_S = 600.0
CHARS_PER_TOKEN = 4


@dataclass(frozen=True)
class PromptUsage:
    """The tokens of one prompt, each counted once."""

    fresh: int
    read: int = 0
    written_5m: int = 0
    written_1h: int = 0

    @property
    def total(self) -> int:
        return self.fresh + self.read + self.written_5m + self.written_1h


@dataclass(frozen=True)
class PromptBlock:
    """One block of a prompt, and how long it is to be cached up to here, if it is."""

    text: str
    ttl: str = ""


class BreakpointCache:
    """The cache of Anthropic."""

    def __init__(self, clock: Callable[[], float], *, min_tokens: int = MIN_TOKENS) -> None:
        self._clock = clock
        self._min_tokens = min_tokens
        self._expiry: dict[str, tuple[float, str]] = {}

    def record(self, document: Mapping[str, Any]) -> PromptUsage:
        """Return what a prompt reads and writes, and remember it."""
        blocks = list(prompt_blocks(document))
        ends = _end_tokens(blocks)
        digests = _digests(str(document.get("model")), blocks)
        marks = [number for number, one in enumerate(blocks) if one.ttl]
        read = self._find(digests, marks)
        read_tokens = ends[read] if read >= 0 else 0
        written = {"5m": 0, "1h": 0}
        done = read_tokens
        for mark in marks:
            if ends[mark] < self._min_tokens:
                continue
            ttl = blocks[mark].ttl
            self._expiry[digests[mark]] = (self._clock() + TTLS_S[ttl], ttl)
            written[ttl] += max(0, ends[mark] - done)
            done = max(done, ends[mark])
        total = ends[-1] if ends else 0
        return PromptUsage(total - done, read_tokens, written["5m"], written["1h"])

    def _find(self, digests: list[str], marks: list[int]) -> int:
        """Return the last block of the longest cached prefix, and renew its life."""
        for mark in reversed(marks):
            for number in range(mark, max(-1, mark - LOOK_BACK_BLOCKS), -1):
                until, ttl = self._expiry.get(digests[number], (0.0, ""))
                if until > self._clock():
                    self._expiry[digests[number]] = (self._clock() + TTLS_S[ttl], ttl)
                    return number
        return -1


class AutomaticCache:
    """The cache of OpenAI, and of Gemini."""

    def __init__(self, clock: Callable[[], float], *, min_tokens: int = MIN_TOKENS) -> None:
        self._clock = clock
        self._min_tokens = min_tokens
        self._expiry: dict[str, float] = {}

    def record(self, model: str, text: str) -> PromptUsage:
        """Return what a prompt reads, and remember it."""
        total = count_tokens(text)
        running = hashlib.sha256(model.encode())
        step = STEP_TOKENS * CHARS_PER_TOKEN
        read, still = 0, True
        for number in range(1, total // STEP_TOKENS + 1):
            running.update(text[(number - 1) * step : number * step].encode(errors="surrogatepass"))
            digest = running.hexdigest()
            still = still and self._expiry.get(digest, 0.0) > self._clock()
            if still:
                read = number * STEP_TOKENS
            self._expiry[digest] = self._clock() + AUTOMATIC_TTL_S
        if read < self._min_tokens:
            read = 0
        return PromptUsage(total - read, read)


def count_tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def canonical(value: object) -> str:
    """Return JSON without breakpoints, as a prompt is cached."""
    return json.dumps(_bare(value), ensure_ascii=False, separators=(",", ":"))


def prompt_blocks(document: Mapping[str, Any]) -> Iterator[PromptBlock]:
    """Yield the blocks of a request to Anthropic in the order in which they are cached."""
    blocks = [*_tool_blocks(document), *_system_blocks(document), *_message_blocks(document)]
    automatic = document.get("cache_control")
    if automatic and blocks:
        blocks[-1] = PromptBlock(blocks[-1].text, _ttl(automatic))
    yield from blocks


def _tool_blocks(document: Mapping[str, Any]) -> Iterator[PromptBlock]:
    for tool in document.get("tools") or ():
        yield _prompt_block("tool", tool)


def _system_blocks(document: Mapping[str, Any]) -> Iterator[PromptBlock]:
    for block in content_blocks(document.get("system") or []):
        yield _prompt_block("system", block)


def _message_blocks(document: Mapping[str, Any]) -> Iterator[PromptBlock]:
    how = canonical([document.get("tool_choice"), document.get("thinking")])
    for message in document.get("messages") or ():
        for block in content_blocks(message["content"]):
            yield _prompt_block(f"{how}{message['role']}", block)


def _prompt_block(where: str, block: Any) -> PromptBlock:
    return PromptBlock(where + canonical(block), _ttl(block.get("cache_control")))


def content_blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _ttl(control: Any) -> str:
    return str(control.get("ttl", "5m")) if control else ""


def _bare(value: object) -> object:
    if isinstance(value, dict):
        return {key: _bare(inner) for key, inner in value.items() if key != "cache_control"}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def _end_tokens(blocks: list[PromptBlock]) -> list[int]:
    ends, chars = [], 0
    for one in blocks:
        chars += len(one.text)
        ends.append(-(-chars // CHARS_PER_TOKEN))
    return ends


def _digests(model: str, blocks: list[PromptBlock]) -> list[str]:
    running, digests = hashlib.sha256(model.encode()), []
    for one in blocks:
        running.update(one.text.encode(errors="surrogatepass") + b"\0")
        digests.append(running.hexdigest())
    return digests
