"""Taking: what a request took, as its answers say, or as near as can be told without.

Where a stream breaks off before its end, and where a provider reports nothing or what it says
cannot be read, the prompt is as long as it was estimated before, and the answer as long as what
came of it. Thoughts that are not shown are in no such estimate. What is written only later may
take all that was set aside. What the provider refused took nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from lore.gateway.apis.faults import UNREADABLE
from lore.gateway.apis.wire import Reply
from lore.gateway.keeping import WELL
from lore.records import TokenUse
from lore.text.tokens import TOKENS_PER_CHAR


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer of upstream, and whether it was cut off by either side."""

    status: int
    reply: Reply
    is_cut: bool = False

    @property
    def is_free(self) -> bool:
        """Tell whether upstream refused to answer; what cannot be read may be an answer."""
        if self.status not in WELL:
            return True
        return not (self.reply.fault is None or self.reply.chars or is_unreadable(self.reply))


def is_unreadable(reply: Reply) -> bool:
    """Tell whether an answer says neither what it took nor, in any words, what went wrong."""
    fault = reply.fault
    is_silent = fault is not None and fault.kind == UNREADABLE and not fault.message
    return is_silent and not reply.use.input_tokens


@dataclass(frozen=True, slots=True)
class Taken:
    """What all answers to a request took together; `estimated` if any of them did not say."""

    use: TokenUse
    estimated: bool = False
    rounds: tuple[TokenUse, ...] = ()
    """What each of several took: the price of a prompt may depend on its length."""
    service: str = ""


def take(answers: Sequence[Answered], prompt: TokenUse) -> Taken:
    """Return what answers took to a prompt that is about so long."""
    taken = [_taken(one, prompt) for one in answers]
    uses = [one.use for one in taken]
    use = TokenUse(
        sum(use.fresh_tokens for use in uses),
        sum(use.cache_read_tokens for use in uses),
        sum(use.cache_write_tokens for use in uses),
        sum(use.cache_write_1h_tokens for use in uses),
        sum(use.output_tokens for use in uses),
    )
    services = [one.reply.service for one in answers if one.reply.service]
    return Taken(
        use,
        any(one.estimated for one in taken),
        tuple(uses) if len(uses) > 1 else (),
        services[-1] if services else "",
    )


def _taken(answered: Answered, prompt: TokenUse) -> Taken:
    reply = answered.reply
    use, is_told = reply.use, reply.use.input_tokens > 0
    # What was written is told in full with the reason for which it ended, not before.
    if is_told and reply.stop:
        return Taken(use)
    if not is_told and answered.is_free:
        return Taken(use)
    written = max(use.output_tokens, _written(reply, prompt.output_tokens))
    if is_told:
        return Taken(replace(use, output_tokens=written), written > use.output_tokens)
    return Taken(replace(prompt, output_tokens=written), estimated=True)


def _written(reply: Reply, most: int) -> int:
    """Return about how much a model has written; `most` 0 where no limit is known."""
    if reply.goes_on:
        return most
    written = ceil(reply.chars * TOKENS_PER_CHAR)
    return min(written, most) if most else written
