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

LIVES_S = {"5m": 300.0, "1h": 3600.0}
LOOKS_BACK = 20
MOST_BREAKPOINTS = 4
LEAST_TOKENS = 1024
STEP_TOKENS = 128
AUTOMATIC_S = 600.0
CHARS_PER_TOKEN = 4


@dataclass(frozen=True)
class Use:
    """The tokens of one prompt, each counted once."""

    fresh: int
    read: int = 0
    written_5m: int = 0
    written_1h: int = 0

    @property
    def total(self) -> int:
        return self.fresh + self.read + self.written_5m + self.written_1h


@dataclass(frozen=True)
class Stretch:
    """One block of a prompt, and how long it is to be cached up to here, if it is."""

    text: str
    ttl: str = ""


class Breakpoints:
    """The cache of Anthropic."""

    def __init__(self, clock: Callable[[], float], *, least_tokens: int = LEAST_TOKENS) -> None:
        self._clock = clock
        self._least = least_tokens
        self._until: dict[str, tuple[float, str]] = {}

    def use(self, tree: Mapping[str, Any]) -> Use:
        """Return what a prompt reads and writes, and remember it."""
        stretches = list(stretches_of(tree))
        ends = _ends(stretches)
        digests = _digests(str(tree.get("model")), stretches)
        marks = [number for number, one in enumerate(stretches) if one.ttl]
        read = self._find(digests, marks)
        read_tokens = ends[read] if read >= 0 else 0
        written = {"5m": 0, "1h": 0}
        done = read_tokens
        for mark in marks:
            if ends[mark] < self._least:
                continue
            ttl = stretches[mark].ttl
            self._until[digests[mark]] = (self._clock() + LIVES_S[ttl], ttl)
            written[ttl] += max(0, ends[mark] - done)
            done = max(done, ends[mark])
        total = ends[-1] if ends else 0
        return Use(total - done, read_tokens, written["5m"], written["1h"])

    def _find(self, digests: list[str], marks: list[int]) -> int:
        """Return the last block of the longest cached prefix, whose life begins anew."""
        for mark in reversed(marks):
            for number in range(mark, max(-1, mark - LOOKS_BACK), -1):
                until, ttl = self._until.get(digests[number], (0.0, ""))
                if until > self._clock():
                    self._until[digests[number]] = (self._clock() + LIVES_S[ttl], ttl)
                    return number
        return -1


class Automatic:
    """The cache of OpenAI, and of Gemini."""

    def __init__(self, clock: Callable[[], float], *, least_tokens: int = LEAST_TOKENS) -> None:
        self._clock = clock
        self._least = least_tokens
        self._until: dict[str, float] = {}

    def use(self, model: str, text: str) -> Use:
        """Return what a prompt reads, and remember it."""
        total = tokens_of(text)
        running = hashlib.sha256(model.encode())
        step = STEP_TOKENS * CHARS_PER_TOKEN
        read, still = 0, True
        for number in range(1, total // STEP_TOKENS + 1):
            running.update(text[(number - 1) * step : number * step].encode(errors="surrogatepass"))
            digest = running.hexdigest()
            still = still and self._until.get(digest, 0.0) > self._clock()
            if still:
                read = number * STEP_TOKENS
            self._until[digest] = self._clock() + AUTOMATIC_S
        if read < self._least:
            read = 0
        return Use(total - read, read)


def tokens_of(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def canonical(value: object) -> str:
    """Return JSON without breakpoints, as a prompt is cached."""
    return json.dumps(_bare(value), ensure_ascii=False, separators=(",", ":"))


def stretches_of(tree: Mapping[str, Any]) -> Iterator[Stretch]:
    """Yield the blocks of a request to Anthropic in the order in which they are cached."""
    found = [*_of_tools(tree), *_of_system(tree), *_of_messages(tree)]
    automatic = tree.get("cache_control")
    if automatic and found:
        found[-1] = Stretch(found[-1].text, _ttl(automatic))
    yield from found


def _of_tools(tree: Mapping[str, Any]) -> Iterator[Stretch]:
    for tool in tree.get("tools") or ():
        yield _stretch("tool", tool)


def _of_system(tree: Mapping[str, Any]) -> Iterator[Stretch]:
    for block in _blocks(tree.get("system") or []):
        yield _stretch("system", block)


def _of_messages(tree: Mapping[str, Any]) -> Iterator[Stretch]:
    how = canonical([tree.get("tool_choice"), tree.get("thinking")])
    for message in tree.get("messages") or ():
        for block in _blocks(message["content"]):
            yield _stretch(f"{how}{message['role']}", block)


def _stretch(where: str, block: Any) -> Stretch:
    return Stretch(where + canonical(block), _ttl(block.get("cache_control")))


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _ttl(control: Any) -> str:
    return str(control.get("ttl", "5m")) if control else ""


def _bare(value: object) -> object:
    if isinstance(value, dict):
        return {key: _bare(inner) for key, inner in value.items() if key != "cache_control"}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def _ends(stretches: list[Stretch]) -> list[int]:
    ends, chars = [], 0
    for one in stretches:
        chars += len(one.text)
        ends.append(-(-chars // CHARS_PER_TOKEN))
    return ends


def _digests(model: str, stretches: list[Stretch]) -> list[str]:
    running, digests = hashlib.sha256(model.encode()), []
    for one in stretches:
        running.update(one.text.encode(errors="surrogatepass") + b"\0")
        digests.append(running.hexdigest())
    return digests
