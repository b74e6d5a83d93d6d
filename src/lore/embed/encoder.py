"""MiniLM in memory: a tokenizer and an ONNX runtime session.

A module of its own, imported on first use: numpy, onnxruntime and tokenizers are slow to import.
"""

from __future__ import annotations

import mmap
import re
import string
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime as ort
import orjson
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

from lore.embed.conversion import WORDS, converted_graph, map_words
from lore.embed.models import TOKENIZER, Model
from lore.embed.runtime import count_cores
from lore.errors import EmbedderError
from lore.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from tokenizers import Tokenizer as LibraryTokenizer

    from lore.embed.conversion import Precision


# Characters first read for each token wanted: English and code have 3 to 5.
_CHARS_PER_TOKEN = 8
_WIDENING = 8
# Past this many characters a text that still has too few tokens is blank or noise.
_MOST_CHARS = 200_000
# The longest word that the tokenizer splits; its `max_input_chars_per_word`.
_LONGEST_WORD_CHARS = 100
# Characters that Python tokenizes before the tokenizers library is loaded, which takes 30 ms.
_PYTHON_CHARS = 4_000

Encode = Callable[[str], list[int]]


class AsciiTokenizer:
    """Tokenizes ASCII text like the tokenizers library, which takes long to load."""

    def __init__(self, tokenizer_file: Path) -> None:
        content = orjson.loads(tokenizer_file.read_bytes())
        self.ids: dict[str, int] = content["model"]["vocab"]
        self._special = [token["content"] for token in content["added_tokens"]]

    def can_encode(self, text: str) -> bool:
        """Return whether a text is ASCII without special tokens."""
        return text.isascii() and not any(token in text for token in self._special)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of an ASCII text."""
        words = _ASCII_WORD.findall(text.translate(_NO_CONTROLS).lower())
        return [id_ for word in words for id_ in self._encode_word(word)]

    def _encode_word(self, word: str) -> list[int]:
        """Return the ids of the longest known pieces, from the start of a word on."""
        unknown = [self.ids["[UNK]"]]
        if len(word) > _LONGEST_WORD_CHARS:
            return unknown
        ids: list[int] = []
        start, end = 0, len(word)
        while start < end:
            id_ = self.ids.get(f"##{word[start:end]}" if start else word[:end])
            if id_ is None:
                end -= 1
            else:
                ids.append(id_)
                start, end = end, len(word)
        return ids if start == len(word) else unknown


_ASCII_WORD = re.compile(rf"[a-z0-9]+|[{re.escape(string.punctuation)}]")
_NO_CONTROLS = {code: None for code in (*range(32), 127) if chr(code) not in "\t\n\r"}


class Tokenizer:
    """Tokenizes texts as a tokenizer file says; models with the same file share one."""

    def __init__(self, tokenizer_file: Path) -> None:
        self._file = tokenizer_file
        self._ascii: AsciiTokenizer | None = AsciiTokenizer(tokenizer_file)
        self._library: LibraryTokenizer | None = None
        self._chars = 0
        self.first_id = self._ascii.ids["[CLS]"]
        self.last_id = self._ascii.ids["[SEP]"]

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens."""
        ascii_tokenizer = self._ascii
        if ascii_tokenizer is not None:
            self._chars += len(text)
            if self._chars <= _PYTHON_CHARS and ascii_tokenizer.can_encode(text):
                return ascii_tokenizer.encode(text)
        if self._library is None:
            self._library = _load_tokenizer(self._file)
            self._ascii = None  # its 30,000 words take 4 MB
        # A lone surrogate has no UTF-8, and the tokenizer takes nothing else.
        sound = text.encode("utf-8", "replace").decode()
        return self._library.encode(sound, add_special_tokens=False).ids


_tokenizers: WeakValueDictionary[Path, Tokenizer] = WeakValueDictionary()


def open_tokenizer(tokenizer_file: Path) -> Tokenizer:
    """Return the tokenizer of a file, which is loaded once while a model uses it."""
    tokenizer = _tokenizers.get(tokenizer_file)
    if tokenizer is None:
        tokenizer = _tokenizers[tokenizer_file] = Tokenizer(tokenizer_file)
    return tokenizer


class WindowTokenizer:
    """Tokenizes texts into windows of token ids; the cost does not grow with the text."""

    def __init__(self, tokenizer_file: Path, limit_tokens: int, windows: int) -> None:
        self._tokenizer = open_tokenizer(tokenizer_file)
        self._first = [self._tokenizer.first_id]
        self._last = [self._tokenizer.last_id]
        self._window = limit_tokens - 2
        self._wanted = self._window * windows

    def windows(self, text: str) -> list[list[int]]:
        """Return the windows of a text with their special tokens; an empty text has one."""
        ids = first_ids(self._tokenizer.encode, text, self._wanted)
        starts = range(0, max(len(ids), 1), self._window)
        return [self._first + ids[at : at + self._window] + self._last for at in starts]


def _load_tokenizer(tokenizer_file: Path) -> LibraryTokenizer:
    try:
        from tokenizers import Tokenizer as LibraryTokenizer
    except ImportError as error:
        msg = f"The local embedder cannot be imported: {error}"
        hint = "Install tokenizers anew, or set embed.provider to none."
        raise EmbedderError(msg, hint=hint) from error
    tokenizer = LibraryTokenizer.from_file(str(tokenizer_file))
    # The file asks for 128 tokens, cut and padded.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def first_ids(encode: Encode, text: str, wanted: int) -> list[int]:
    """Return the first token ids of a text, reading no more of it than needed."""
    chars = wanted * _CHARS_PER_TOKEN
    while True:
        ids = encode(text[:chars])
        # A cut through a word changes no more than that word's own tokens.
        enough = len(ids) >= wanted + _LONGEST_WORD_CHARS
        if enough or chars >= min(len(text), _MOST_CHARS):
            return ids[:wanted]
        chars *= _WIDENING


# Padded tokens that one run may hold: more is no quicker, and memory grows with it.
BATCH_TOKENS = 512

_ERRORS_ONLY = 3
# The runtime's errors have no common ancestor, and each version adds some.
RUNTIME_ERRORS = tuple(
    kind
    for kind in vars(runtime).values()
    if isinstance(kind, type) and issubclass(kind, Exception)
)
# Data that is too short cannot be mapped.
LOAD_ERRORS: tuple[type[Exception], ...] = (*RUNTIME_ERRORS, ValueError)


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """How to load a model; `cache` is the folder for its graph, 0 threads means all cores.

    Packing the weights for the processor takes 45 ms, and saves 6 ms for each text. Vectors differ
    by 2e-7 without it.
    """

    precision: Precision
    cache: Path
    threads: int
    windows: int
    packed: bool = True


class Encoder:
    """A loaded model; several threads may use it at once."""

    def __init__(self, folder: Path, model: Model, options: EncoderOptions) -> None:
        self._dimension = model.dimension
        # int8 sets its scale by all that is in a run, so each text runs alone: a vector
        # must not depend on what happened to be embedded beside it.
        self._batch_tokens = BATCH_TOKENS if options.precision == "float32" else 1
        with converted_graph(folder, model, options.precision, options.cache) as graph:
            try:
                self._mapping, words = map_words(folder, graph)
                # The session uses the value without a copy, so it must live as long.
                self._words = ort.OrtValue.ortvalue_from_numpy(words)
                self._session = _open_session(graph, self._words, options)
            except LOAD_ERRORS as error:
                msg = f"The ONNX runtime cannot load {graph}: {error}"
                hint = f"Remove {graph}; the model is then converted again."
                raise EmbedderError(msg, hint=hint) from error
        limit = model.input_limit_tokens
        self._tokens = WindowTokenizer(folder / TOKENIZER, limit, options.windows)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text."""
        windows: list[list[int]] = []
        owners: list[int] = []
        for index, text in enumerate(texts):
            cut = self._tokens.windows(text)
            windows += cut
            owners += [index] * len(cut)
        vectors = self._encode_windows(windows)
        if len(windows) == len(texts):
            return vectors
        return _average(vectors, windows, owners, len(texts))

    def _encode_windows(self, windows: list[list[int]]) -> NDArray[np.float32]:
        vectors = np.empty((len(windows), self._dimension), np.float32)
        for batch in _batches(windows, self._batch_tokens):
            shape = (len(batch), len(windows[batch[-1]]))
            ids, mask = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
            for row, index in enumerate(batch):
                length = len(windows[index])
                ids[row, :length] = windows[index]
                mask[row, :length] = 1
            vectors[batch] = self._session.run(None, {"ids": ids, "mask": mask})[0]
        # Unmap the words that were read: up to 47 MB, because the system maps those around each
        # of them too. Mapping a dozen again for the next text takes microseconds.
        if hasattr(mmap, "MADV_DONTNEED"):
            self._mapping.madvise(mmap.MADV_DONTNEED)
        return vectors


def _batches(windows: list[list[int]], most_tokens: int) -> Iterator[list[int]]:
    """Yield batches of windows of similar length, each within the token limit once padded."""
    batch: list[int] = []
    for index in sorted(range(len(windows)), key=lambda place: len(windows[place])):
        if batch and (len(batch) + 1) * len(windows[index]) > most_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _average(
    vectors: NDArray[np.float32], windows: list[list[int]], owners: list[int], count: int
) -> NDArray[np.float32]:
    """Return the mean over each text's windows, weighted by their token counts."""
    weights = np.array([len(window) for window in windows], np.float32)
    sums = np.zeros((count, vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors * weights[:, None])
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return sums


def _open_session(
    graph: Path, words: ort.OrtValue, encoder_options: EncoderOptions
) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_initializer(WORDS, words)
    options.intra_op_num_threads = encoder_options.threads or count_cores()
    options.inter_op_num_threads = 1
    # Waiting threads sleep: spinning takes the core from whoever is being waited for.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not encoder_options.packed:
        options.add_session_config_entry("session.disable_prepacking", "1")
    # The arena would keep the memory of the largest batch ever seen.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = _ERRORS_ONLY
    return ort.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
