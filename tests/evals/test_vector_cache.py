from __future__ import annotations

import numpy as np

from lore.evals.vector_cache import DiskCachedEmbedder
from tests.fakes import FakeEmbedder


def test_cached_vectors_are_not_embedded_again(tmp_path):
    inner = FakeEmbedder()
    cached = DiskCachedEmbedder(inner, tmp_path)
    first = cached.embed(["one", "two", "one"])
    second = cached.embed(["two", "three"])
    assert inner.asked == ["one", "two", "three"]
    assert np.array_equal(first, FakeEmbedder().embed(["one", "two", "one"]))
    assert np.array_equal(second, FakeEmbedder().embed(["two", "three"]))


def test_second_instance_reads_vectors_from_disk(tmp_path):
    made = DiskCachedEmbedder(FakeEmbedder(), tmp_path / "new" / "folder").embed(["one", "two"])
    inner = FakeEmbedder()
    again = DiskCachedEmbedder(inner, tmp_path / "new" / "folder").embed(["two", "one"])
    assert inner.asked == []
    assert np.array_equal(again, made[::-1])


def test_queries_and_passages_have_separate_entries(tmp_path):
    inner = FakeEmbedder()
    cached = DiskCachedEmbedder(inner, tmp_path)
    cached.embed(["one"])
    cached.embed(["one"], query=True)
    assert inner.asked == ["one", "one"]


def test_embedders_have_separate_files(tmp_path):
    DiskCachedEmbedder(FakeEmbedder("a/b"), tmp_path).embed(["one"])
    other = FakeEmbedder("other")
    DiskCachedEmbedder(other, tmp_path).embed(["one"])
    assert other.asked == ["one"]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_torn_record_at_the_end_is_ignored(tmp_path):
    DiskCachedEmbedder(FakeEmbedder(), tmp_path).embed(["one", "two"])
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    inner = FakeEmbedder()
    cached = DiskCachedEmbedder(inner, tmp_path)
    assert np.array_equal(cached.embed(["one", "two"]), FakeEmbedder().embed(["one", "two"]))
    assert inner.asked == ["two"]


def test_records_after_a_torn_record_are_intact(tmp_path):
    DiskCachedEmbedder(FakeEmbedder(), tmp_path).embed(["one", "two"])
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    DiskCachedEmbedder(FakeEmbedder(), tmp_path).embed(["three", "four"])
    inner = FakeEmbedder()
    made = DiskCachedEmbedder(inner, tmp_path).embed(["one", "three", "four"])
    assert np.array_equal(made, FakeEmbedder().embed(["one", "three", "four"]))
    assert inner.asked == []


def test_cache_has_name_of_wrapped_embedder_and_closes_it(tmp_path):
    inner = FakeEmbedder("real", 16)
    cached = DiskCachedEmbedder(inner, tmp_path)
    assert (cached.name, cached.identity, cached.dimension) == ("real", "real", 16)
    cached.close()
    assert inner.closed


def test_lone_surrogates_are_embedded(tmp_path):
    inner = FakeEmbedder()
    assert DiskCachedEmbedder(inner, tmp_path).embed(["half \ud800"]).shape == (1, 32)


def test_no_texts_give_no_rows(tmp_path):
    assert DiskCachedEmbedder(FakeEmbedder(), tmp_path).embed([]).shape == (0, 32)
