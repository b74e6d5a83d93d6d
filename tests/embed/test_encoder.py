"""The encoder and its tokenizer."""

from pathlib import Path
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as LibraryTokenizer

from lore.embed.conversion import graph_name
from lore.embed.encoder import (
    RUNTIME_ERRORS,
    AsciiTokenizer,
    Encoder,
    EncoderOptions,
    Tokenizer,
    WindowTokenizer,
    first_ids,
)
from lore.embed.models import Model
from lore.errors import EmbedderError


def test_a_damaged_graph_is_reported_with_what_to_remove(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    graph = tmp_path / graph_name(minilm, "float32")
    graph.write_bytes(b"not a graph")
    graph.with_suffix(".data").write_bytes(b"")
    options = EncoderOptions("float32", tmp_path, threads=1, windows=1)
    with pytest.raises(EmbedderError, match="cannot load") as caught:
        Encoder(weights, minilm, options)
    assert str(graph) in caught.value.hint


def test_the_errors_of_the_runtime_are_known() -> None:
    names = {refusal.__name__ for refusal in RUNTIME_ERRORS}
    assert names >= {"Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoSuchFile"}


CLS, SEP = 101, 102


@pytest.fixture(scope="module")
def tokens(weights: Path) -> WindowTokenizer:
    return WindowTokenizer(weights / "tokenizer.json", 256, 1)


def test_a_window_is_marked_at_both_ends(tokens: WindowTokenizer) -> None:
    assert tokens.windows("hello world") == [[CLS, 7592, 2088, SEP]]


@pytest.mark.parametrize("text", ["", " \n\t ", "\0"])
def test_a_text_without_words_has_one_empty_window(tokens: WindowTokenizer, text: str) -> None:
    assert tokens.windows(text) == [[CLS, SEP]]


def test_nul_bytes_and_lone_surrogates_are_harmless(tokens: WindowTokenizer) -> None:
    assert tokens.windows("hello\0 world") == tokens.windows("hello world")
    assert tokens.windows("hello \ud800 world") == tokens.windows("hello ? world")


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps over the lazy dog. " * 200,
        "    return value\n" * 400,
        "x" * 5000 + " and then the words " * 300,
        " " * 9000 + "late words " * 300,
        "naïve café 数据库 " * 300,
        "a1b2c3d4e5f6" * 8 + " " + "antidisestablishmentarianism " * 150,
    ],
    ids=["prose", "code", "one long word", "blank start", "accents", "long words"],
)
def test_reading_a_part_gives_the_tokens_of_the_whole(
    tokens: WindowTokenizer, weights: Path, text: str
) -> None:
    whole = LibraryTokenizer.from_file(str(weights / "tokenizer.json"))
    whole.no_padding()
    whole.enable_truncation(256)
    assert tokens.windows(text) == [whole.encode(text).ids]


def test_further_windows_go_on_where_the_last_one_ended(weights: Path) -> None:
    three = WindowTokenizer(weights / "tokenizer.json", 256, 3)
    text = " ".join(str(number % 10) for number in range(600))
    windows = three.windows(text)
    assert [len(window) for window in windows] == [256, 256, 600 - 2 * 254 + 2]
    assert len(three.windows(text * 20)) == 3


@pytest.mark.parametrize("text", ["word " * 2_000_000, "x" * 10_000_000, " " * 10_000_000])
def test_ten_megabytes_cost_no_more_than_a_page(weights: Path, text: str) -> None:
    whole = LibraryTokenizer.from_file(str(weights / "tokenizer.json"))
    whole.no_truncation()
    whole.no_padding()
    read: list[int] = []

    def encode(part: str) -> list[int]:
        read.append(len(part))
        return whole.encode(part, add_special_tokens=False).ids

    assert len(first_ids(encode, text, 254)) <= 254
    assert sum(read) < 2_000_000


@pytest.fixture(scope="module")
def plain(weights: Path) -> AsciiTokenizer:
    return AsciiTokenizer(weights / "tokenizer.json")


@pytest.fixture(scope="module")
def library(weights: Path) -> LibraryTokenizer:
    tokenizer = LibraryTokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


_WORDS = st.from_regex(r"[a-zA-Z]{1,12}|[ -~]{1,6}|[\x00-\x7f]{1,3}", fullmatch=True)


@given(st.lists(_WORDS, max_size=12).map(" ".join))
def test_ascii_is_tokenized_as_by_the_library(
    plain: AsciiTokenizer, library: LibraryTokenizer, text: str
) -> None:
    if plain.can_encode(text):
        assert plain.encode(text) == library.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize(
    "text", ["z" * 100, "z" * 101, "antidisestablishmentarianism", "ops/deploy.sh --dry-run"]
)
def test_long_and_compound_words_are_tokenized_as_by_the_library(
    plain: AsciiTokenizer, library: LibraryTokenizer, text: str
) -> None:
    assert plain.can_encode(text)
    assert plain.encode(text) == library.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("text", ["naïve", "数据库", "what is [MASK]?"])
def test_other_texts_are_left_to_the_library(plain: AsciiTokenizer, text: str) -> None:
    assert not plain.can_encode(text)


def test_the_tokens_of_a_text_are_the_same_before_and_after_the_library_is_loaded(
    weights: Path,
) -> None:
    tokens = Tokenizer(weights / "tokenizer.json")
    first = tokens.encode("How do we deploy?")
    tokens.encode("naïve")
    assert tokens.encode("How do we deploy?") == first


def test_models_with_the_same_tokenizer_share_it_while_one_is_loaded(weights: Path) -> None:
    file = weights / "tokenizer.json"
    one, other = WindowTokenizer(file, 256, 1), WindowTokenizer(file, 128, 1)
    assert one._tokenizer is other._tokenizer
    shared = ref(one._tokenizer)
    del one
    assert shared() is other._tokenizer


def test_vectors_without_packed_weights_are_the_same_but_for_rounding(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    packed, unpacked = (
        Encoder(weights, minilm, EncoderOptions("float32", tmp_path, 1, 1, packed=is_packed))
        for is_packed in (True, False)
    )
    texts = ["How do we deploy?", "The harbour was quiet. " * 60]
    np.testing.assert_allclose(unpacked.encode(texts), packed.encode(texts), atol=1e-6)
