"""The pair model: reads two texts together, on this machine.

It says what a newer statement does to an older one, how likely a passage answers a question, and
what a sentence is worth after the one before it.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lore.embed.local import LocalEmbedder
from lore.embed.models import DATA, PAIR_MODEL, find_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from lore.embed.embedder import Embedder
    from lore.settings import Settings

RELATIONS = ("none", "same", "partly", "replaces")
"""What a newer statement does to an older one: the columns of `PairModel.relations`."""

SIDE_CHARS = 440
"""Characters of each text that are read: two sides fill the model's 256 tokens."""

IDLE_S = 30.0
"""Seconds after which the unused model is unloaded: new items are judged in the background, where
loading it again keeps nobody waiting."""

_HEADS = DATA / "pairs.json"
_BETWEEN = "[SEP]"
_SPECIAL = ("[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]")


class PairModel:
    """Scores pairs of texts; safe to use from several threads."""

    def __init__(
        self, encoder: Embedder, heads: dict[str, Any], idle_unload_s: float = IDLE_S
    ) -> None:
        self._encoder = encoder
        self._heads = heads
        self.idle_unload_s = idle_unload_s

    def relations(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return the probability of each of `RELATIONS` for pairs (older, newer)."""
        import numpy as np  # importing numpy is slow, and opening must be fast

        scores = self._score("relations", pairs)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances: NDArray[np.float32] = powers / powers.sum(axis=1, keepdims=True)
        return chances

    def answers(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return a score for pairs (question, passage): the log odds that the passage answers."""
        return self._score("answers", pairs)[:, 0]

    def statements(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return for pairs (context, statement) the log odds of a worth of 1 and of 2, and kinds.

        The columns are those that `benchmarks/train_pairs.py` trains.
        """
        return self._score("statements", pairs)

    def vectors(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return the vectors of pairs, which the heads score."""
        return self._encoder.embed([
            f"{_side(one)} {_BETWEEN} {_side(other)}" for one, other in pairs
        ])

    def close(self) -> None:
        """Unload the model."""
        self._encoder.close()

    def _score(self, head: str, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        import numpy as np

        weight = np.array(self._heads[f"{head}.weight"], np.float32)
        bias = np.array(self._heads[f"{head}.bias"], np.float32)
        if not pairs:
            return np.zeros((0, len(bias)), np.float32)
        scores: NDArray[np.float32] = self.vectors(pairs) @ weight.T + bias
        return scores


def _side(text: str) -> str:
    """Return the beginning of a text, without what the tokenizer takes for special tokens."""
    text = text[:SIDE_CHARS]
    for token in _SPECIAL:
        text = text.replace(token, " ")
    return text


def open_pair_model(settings: Settings) -> PairModel | None:
    """Return the pair model, or None if it is not at hand; nothing is loaded yet."""
    if settings.embed_provider == "none" or not _HEADS.is_file():
        return None
    assert PAIR_MODEL.delta_path is not None
    if not PAIR_MODEL.delta_path.is_file():
        return None
    if any(importlib.util.find_spec(name) is None for name in ("onnxruntime", "tokenizers")):
        return None
    folder = find_weights(settings, PAIR_MODEL)
    if folder is None:
        return None
    heads = json.loads(_HEADS.read_bytes())["heads"]
    # int8 takes half of the time; the heads were measured with it.
    own = replace(
        settings,
        embed_precision="int8",
        embed_idle_unload_s=min(IDLE_S, settings.embed_idle_unload_s),
    )
    encoder = LocalEmbedder(PAIR_MODEL, folder, own)
    return PairModel(encoder, heads, own.embed_idle_unload_s)
