"""Tokens that the scripted upstream reports: counted, and split as prefix caching would."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.clients.script import Asked, Reply

CHARACTERS_PER_TOKEN = 4
"""The usual estimate for English and code."""

LOOK_BACK = 20
"""How many blocks before a breakpoint Anthropic looks for a cached prefix (its documentation)."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Input tokens by how they are billed, and output tokens."""

    fresh: int
    written: int
    read: int
    output: int

    @property
    def input(self) -> int:
        """All tokens of the prompt."""
        return self.fresh + self.written + self.read


def count(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@dataclass
class PrefixCache:
    """The prefixes seen so far; entries do not expire."""

    known: set[str] = field(default_factory=set)

    def bill(self, asked: Asked, reply: Reply) -> Usage:
        """Count a request, and remember its prefixes up to the breakpoints."""
        said = reply.text + reply.thinking + "".join(str(call) for call in reply.calls)
        output = max(1, count(said))
        sizes = [count(block) for block in asked.blocks]
        if reply.input_tokens is not None:
            return Usage(min(reply.input_tokens, 12), 0, max(0, reply.input_tokens - 12), output)
        marks = chain(asked.blocks)
        read = 0
        for place in asked.breakpoints:
            reach = range(max(0, place - LOOK_BACK), place + 1)
            read = max([read, *(at + 1 for at in reach if marks[at] in self.known)])
        self.known.update(marks[place] for place in asked.breakpoints)
        end = max((place + 1 for place in asked.breakpoints), default=0)
        return Usage(
            fresh=sum(sizes[max(end, read) :]),
            written=sum(sizes[read:end]),
            read=sum(sizes[:read]),
            output=output,
        )


def chain(blocks: tuple[str, ...]) -> list[str]:
    digest = hashlib.sha256()
    marks = []
    for block in blocks:
        digest.update(block.encode())
        marks.append(digest.hexdigest())
    return marks
