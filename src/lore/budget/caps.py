"""The cap of layer 0: how long a prompt may grow before it is compressed for its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lore.records.dialogues import ModelPrice

TARGET_USD_PER_TURN = 0.10
"""A hundred turns a day then read from the cache for $10."""

LEAST_TOKENS = 40_000
"""Enough for the work at hand, whatever a model costs."""

FIRST_TURN_SHARE = 0.7
"""The first turn writes all of its prompt, and may be the last one."""

TURNS_WITHOUT_WRITES = 3
"""After so many of them a provider is taken to charge nothing for writing, or not to cache."""

SHARE_WITHOUT_WRITES = 0.65
"""There is no dear write to put off then; what is left has room for long outputs of tools."""

_MILLION = 1_000_000


def cap_of_layer_0(
    price: ModelPrice,
    *,
    target_usd_per_turn: float = TARGET_USD_PER_TURN,
    pinned_tokens: int = 0,
    calibrated: bool = True,
    turns_without_writes: int = 0,
    billed_read_usd: float | None = None,
) -> int:
    """Return how many tokens a prompt of layer 0 may have.

    A target of 0 leaves it to the window of the model. `billed_read_usd` is what a million tokens
    of the known prefix really cost, where that has been seen.
    """
    most_tokens = price.window_tokens
    if pinned_tokens:
        return min(pinned_tokens, most_tokens)
    if not target_usd_per_turn:
        return most_tokens
    if turns_without_writes >= TURNS_WITHOUT_WRITES:
        return int(most_tokens * SHARE_WITHOUT_WRITES)
    read_usd = price.cache_read_usd if billed_read_usd is None else billed_read_usd
    affordable = target_usd_per_turn * _MILLION / read_usd if read_usd else float(most_tokens)
    usual = affordable
    for start, longer in price.longer:
        if affordable > start and longer.cache_read_usd:
            # What is dearer beyond a length is dearer from its first token on.
            beyond = usual * price.cache_read_usd / longer.cache_read_usd
            affordable = max(float(start), min(affordable, beyond))
    cap = max(affordable, float(LEAST_TOKENS))
    return int(min(cap, most_tokens) * (1.0 if calibrated else FIRST_TURN_SHARE))
