"""What a request would have taken without Lore: an estimate, by what its provider reported."""

from __future__ import annotations

from dataclasses import replace

from lore.records.dialogues import TokenUse


def without_additions(used: TokenUse, *, standing_tokens: int, new_tokens: int) -> TokenUse:
    """Return what a prompt would have taken that was sent whole, less what Lore added to it.

    `standing_tokens` of that stood in the prompt before, where the cache is read first;
    `new_tokens` stood in no prompt yet, and are paid as what is not read.
    """
    read = used.cache_read_tokens
    from_read = min(standing_tokens, read)
    left = standing_tokens - from_read + new_tokens
    anew = _less(used, left)
    left -= used.input_tokens - anew.input_tokens
    return replace(anew, cache_read_tokens=max(0, read - from_read - left))


def without_shortening(
    used: TokenUse,
    *,
    whole_tokens: int,
    known_tokens: int,
    new_tokens: int,
    busts: bool,
    cold: bool,
    caches: bool,
) -> TokenUse:
    """Return what the whole dialogue would have taken in place of the shorter prompt.

    The cache would have done with it what it did with the prompt that was sent: what that read
    the whole would have read, and what that missed the whole would have missed. Only where Lore
    itself has changed the beginning (`busts`) would the whole have found there what it had the
    turn before, which is `known_tokens`, unless the cache is `cold` or the provider never
    `caches`. What Lore has newly added to the prompt, it would not have taken.
    """
    rest, read = _less(used, new_tokens), used.cache_read_tokens
    tail = min(whole_tokens, rest.input_tokens - rest.cache_read_tokens)
    if busts:
        known = known_tokens if caches and not cold else 0
        tail = whole_tokens - min(whole_tokens, max(known, read))
    elif not read:
        tail = whole_tokens
    return _anew(used, read=whole_tokens - tail, tail=tail)


def _less(used: TokenUse, tokens: int) -> TokenUse:
    """Return a use with so many tokens less of what was not read from the cache."""
    short = min(tokens, used.cache_write_1h_tokens)
    long_left, tokens = used.cache_write_1h_tokens - short, tokens - short
    short = min(tokens, used.cache_write_tokens)
    written_left, tokens = used.cache_write_tokens - short, tokens - short
    return replace(
        used,
        fresh_tokens=max(0, used.fresh_tokens - tokens),
        cache_write_tokens=written_left,
        cache_write_1h_tokens=long_left,
    )


def _anew(used: TokenUse, *, read: int, tail: int) -> TokenUse:
    """Return a use that reads so much and has a tail, which is paid as that of another use."""
    if used.cache_write_1h_tokens > used.cache_write_tokens:
        return TokenUse(0, read, 0, tail, used.output_tokens)
    if used.cache_write_tokens:
        return TokenUse(0, read, tail, 0, used.output_tokens)
    return TokenUse(tail, read, output_tokens=used.output_tokens)
