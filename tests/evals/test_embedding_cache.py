from __future__ import annotations

import numpy as np

from lore.evals.replay import CachedEmbedder
from tests.fakes import FakeEmbedder


def test_what_was_embedded_before_is_not_asked_again(tmp_path):
    inner = FakeEmbedder()
    cached = CachedEmbedder(inner, tmp_path)
    first = cached.embed(["one", "two", "one"])
    second = cached.embed(["two", "three"])
    assert inner.asked == ["one", "two", "three"]
    assert np.array_equal(first, FakeEmbedder().embed(["one", "two", "one"]))
    assert np.array_equal(second, FakeEmbedder().embed(["two", "three"]))


def test_a_second_instance_asks_nothing(tmp_path):
    made = CachedEmbedder(FakeEmbedder(), tmp_path / "new" / "folder").embed(["one", "two"])
    inner = FakeEmbedder()
    again = CachedEmbedder(inner, tmp_path / "new" / "folder").embed(["two", "one"])
    assert inner.asked == []
    assert np.array_equal(again, made[::-1])


def test_questions_and_passages_are_kept_apart(tmp_path):
    inner = FakeEmbedder()
    cached = CachedEmbedder(inner, tmp_path)
    cached.embed(["one"])
    cached.embed(["one"], query=True)
    assert inner.asked == ["one", "one"]


def test_vectors_of_two_embedders_are_kept_apart(tmp_path):
    CachedEmbedder(FakeEmbedder("a/b"), tmp_path).embed(["one"])
    other = FakeEmbedder("other")
    CachedEmbedder(other, tmp_path).embed(["one"])
    assert other.asked == ["one"]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_torn_record_at_the_end_is_ignored(tmp_path):
    CachedEmbedder(FakeEmbedder(), tmp_path).embed(["one", "two"])
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    inner = FakeEmbedder()
    cached = CachedEmbedder(inner, tmp_path)
    assert np.array_equal(cached.embed(["one", "two"]), FakeEmbedder().embed(["one", "two"]))
    assert inner.asked == ["two"]


def test_what_is_written_after_a_torn_record_is_read_back_right(tmp_path):
    CachedEmbedder(FakeEmbedder(), tmp_path).embed(["one", "two"])
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    CachedEmbedder(FakeEmbedder(), tmp_path).embed(["three", "four"])
    inner = FakeEmbedder()
    made = CachedEmbedder(inner, tmp_path).embed(["one", "three", "four"])
    assert np.array_equal(made, FakeEmbedder().embed(["one", "three", "four"]))
    assert inner.asked == []


def test_it_is_known_by_the_name_of_the_real_one_and_closes_it(tmp_path):
    inner = FakeEmbedder("real", 16)
    cached = CachedEmbedder(inner, tmp_path)
    assert (cached.name, cached.identity, cached.dimension) == ("real", "real", 16)
    cached.close()
    assert inner.closed


def test_text_that_is_no_unicode_is_embedded_too(tmp_path):
    inner = FakeEmbedder()
    assert CachedEmbedder(inner, tmp_path).embed(["half \ud800"]).shape == (1, 32)


def test_no_texts_give_no_rows(tmp_path):
    assert CachedEmbedder(FakeEmbedder(), tmp_path).embed([]).shape == (0, 32)
