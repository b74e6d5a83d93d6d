"""Comparing: what a prompt would have taken without Lore, by what the provider said of it."""

from __future__ import annotations

from lore.budget.counterfactual import without_additions, without_shortening
from lore.context.sizing import Measure
from lore.memory.holding import Composed, Live
from lore.records import Dialogue, TokenUse


def without_lore(
    live: Live, dialogue: Dialogue, composed: Composed, use: TokenUse, *, tool_chars: int = 0
) -> TokenUse:
    """Return what a request would have taken; `live` is what was known before it was answered."""
    plan, before = composed.plan, live.held.measured
    last = dialogue.entries[before.entries :]
    new_chars = sum(len(composed.notes.get(entry.key, "")) for entry in last)
    added_chars = len(composed.knowledge) + tool_chars + sum(map(len, composed.notes.values()))
    if not before.turns or composed.cold or plan.busts:
        new_chars = added_chars
    chars = composed.chars + tool_chars
    # What a provider counts beside the characters, such as pictures, Lore has not added.
    ratio = min(use.input_tokens / chars, Measure().tokens_per_char) if composed.chars else 0.0
    new_tokens, added_tokens = round(new_chars * ratio), round(added_chars * ratio)
    if not (plan.start or plan.prefix or plan.annotated):
        return without_additions(
            use, standing_tokens=added_tokens - new_tokens, new_tokens=new_tokens
        )
    return without_shortening(
        use,
        # An agent cannot send more than the window, and would have compacted before.
        whole_tokens=min(composed.whole_tokens, composed.price.window_tokens),
        known_tokens=before.whole_tokens,
        new_tokens=new_tokens,
        busts=plan.busts,
        cold=composed.cold,
        caches=any(_is_cached(one.use) for one in live.calibration.turns) or _is_cached(use),
    )


def _is_cached(use: TokenUse) -> bool:
    return use.cache_read_tokens + use.cache_write_tokens + use.cache_write_1h_tokens > 0
