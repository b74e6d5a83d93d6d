"""What a request would have taken without Lore: an estimate, by what the provider does."""

from __future__ import annotations

from lore.records.dialogues import TokenUse


def without_lore(
    used: TokenUse, *, whole_tokens: int, known_tokens: int, cold: bool, window_tokens: int
) -> TokenUse:
    """Return what the whole dialogue would have taken in place of the prompt that was sent.

    `known_tokens` of it had been sent the turn before, and would be read from the cache unless
    that is `cold`; the rest would be written. A provider that caches nothing reads all anew. An
    agent cannot send more than the window, and would have compacted before.
    """
    whole = max(0, min(whole_tokens, window_tokens))
    written = used.cache_write_tokens + used.cache_write_1h_tokens
    if not written and not used.cache_read_tokens:
        return TokenUse(fresh_tokens=whole, output_tokens=used.output_tokens)
    read = 0 if cold else min(known_tokens, whole)
    if not written:
        return TokenUse(whole - read, read, output_tokens=used.output_tokens)
    is_long = used.cache_write_1h_tokens > used.cache_write_tokens
    rest = whole - read
    return TokenUse(0, read, 0 if is_long else rest, rest if is_long else 0, used.output_tokens)
