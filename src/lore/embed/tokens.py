"""The way from a text to windows of token ids, at a cost that does not grow with the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

# Characters first read for each token wanted: English and code have 3 to 5.
_CHARS_PER_TOKEN = 8
_WIDENING = 8
# Past this many characters a text that still has too few tokens is blank or noise.
_MOST_CHARS = 200_000
# The longest word that the tokenizer splits; its `max_input_chars_per_word`.
_LONGEST_WORD_CHARS = 100

Encode = Callable[[str], list[int]]


class Tokens:
    """A tokenizer and the windows it cuts."""

    def __init__(self, tokenizer_file: Path, limit_tokens: int, windows: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer_file))
        # The file asks for 128 tokens, cut and padded.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._first = [_id(self._tokenizer, "[CLS]")]
        self._last = [_id(self._tokenizer, "[SEP]")]
        self._window = limit_tokens - 2
        self._wanted = self._window * windows

    def windows(self, text: str) -> list[list[int]]:
        """Return the windows of a text, each with its marks; an empty text has one."""
        ids = first_ids(self._encode, text, self._wanted)
        starts = range(0, max(len(ids), 1), self._window)
        return [self._first + ids[at : at + self._window] + self._last for at in starts]

    def _encode(self, text: str) -> list[int]:
        # A lone surrogate has no UTF-8, and the tokenizer takes nothing else.
        sound = text.encode("utf-8", "replace").decode()
        return self._tokenizer.encode(sound, add_special_tokens=False).ids


def first_ids(encode: Encode, text: str, wanted: int) -> list[int]:
    """Return the first token ids of a text, of which no more is read than they take."""
    chars = wanted * _CHARS_PER_TOKEN
    while True:
        ids = encode(text[:chars])
        # A cut through a word changes no more than that word's own tokens.
        enough = len(ids) >= wanted + _LONGEST_WORD_CHARS
        if enough or chars >= min(len(text), _MOST_CHARS):
            return ids[:wanted]
        chars *= _WIDENING


def _id(tokenizer: Tokenizer, mark: str) -> int:
    found = tokenizer.token_to_id(mark)
    assert found is not None
    return found
