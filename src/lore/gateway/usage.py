"""Usage of a request: the tokens that its responses report, or an estimate where they do not.

If a stream breaks off, or a provider reports nothing readable, the prompt counts as estimated
before and the output by its length; hidden reasoning is not included. A deferred response may use
the whole reservation. A refused request used nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from lore.gateway.apis.adapter import UNREADABLE_ERROR, Reply
from lore.gateway.observer import SUCCESS
from lore.records import TokenUse
from lore.text.tokens import TOKENS_PER_CHAR


@dataclass(frozen=True, slots=True)
class UpstreamResponse:
    """One response of upstream, and whether either side cut it off."""

    status: int
    reply: Reply
    is_cut: bool = False

    @property
    def is_free(self) -> bool:
        """Return whether upstream refused to answer; an unreadable response may be an answer."""
        if self.status not in SUCCESS:
            return True
        return not (self.reply.error is None or self.reply.chars or is_unreadable(self.reply))


def is_unreadable(reply: Reply) -> bool:
    """Return whether a response contains neither usage nor an error message."""
    fault = reply.error
    is_silent = fault is not None and fault.kind == UNREADABLE_ERROR and not fault.message
    return is_silent and not reply.usage.input_tokens


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """The usage of all responses to a request; `estimated` if any of them did not report it."""

    use: TokenUse
    estimated: bool = False
    rounds: tuple[TokenUse, ...] = ()
    """Usage of each of several responses: the price may depend on the length of a prompt."""
    service: str = ""


def measure_usage(answers: Sequence[UpstreamResponse], prompt: TokenUse) -> RequestUsage:
    """Return the usage of responses to a prompt; `prompt` is its estimated usage."""
    usages = [_measure_response(one, prompt) for one in answers]
    uses = [one.use for one in usages]
    use = TokenUse(*map(sum, zip(*(one.classes for one in uses), strict=True)))
    services = [one.reply.service_tier for one in answers if one.reply.service_tier]
    return RequestUsage(
        use,
        any(one.estimated for one in usages),
        tuple(uses) if len(uses) > 1 else (),
        services[-1] if services else "",
    )


def _measure_response(answered: UpstreamResponse, prompt: TokenUse) -> RequestUsage:
    reply = answered.reply
    use, is_told = reply.usage, reply.usage.input_tokens > 0
    # The full output is only reported together with the stop reason.
    if is_told and reply.stop_reason:
        return RequestUsage(use)
    if not is_told and answered.is_free:
        return RequestUsage(use)
    written = max(use.output_tokens, _estimate_output(reply, prompt.output_tokens))
    if is_told:
        return RequestUsage(replace(use, output_tokens=written), written > use.output_tokens)
    return RequestUsage(replace(prompt, output_tokens=written), estimated=True)


def _estimate_output(reply: Reply, most: int) -> int:
    """Return the estimated output tokens; `most` is 0 if there is no known limit."""
    if reply.in_background:
        return most
    written = ceil(reply.chars * TOKENS_PER_CHAR)
    return min(written, most) if most else written
