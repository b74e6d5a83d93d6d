from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.index import quantization as scan


def planes_of(vectors: np.ndarray) -> np.ndarray:
    """Sign planes in whole blocks, as the file holds them."""
    codes, scales = scan.encode(scan.unit_rows(vectors))
    flat = scan.sign_planes(codes, scales, np.zeros(vectors.shape[1], np.float32))
    blocks = -(-len(vectors) // scan.BLOCK_ROWS)
    padded = np.zeros((flat.shape[0], blocks * scan.BLOCK_ROWS), np.uint64)
    padded[:, : len(vectors)] = flat
    return padded.reshape(flat.shape[0], blocks, -1).transpose(1, 0, 2)


@pytest.mark.parametrize("dimension", [3, 64, 100])
@pytest.mark.parametrize("wanted", [1, 40, 17_000, 90_000])
def test_the_nearest_signs_are_those_that_brute_force_finds(dimension, wanted):
    draw = np.random.default_rng(1)
    vectors = draw.choice(np.array([-1, 1], np.float32), (20_000, dimension))
    allowed = draw.random(20_000) < 0.7
    planes = planes_of(vectors)
    found = scan.nearest_by_sign(planes, planes[0, :, 5], allowed, wanted)
    distances = ((vectors > 0) != (vectors[5] > 0)).sum(axis=1)
    expected = np.sort(distances[allowed])[:wanted]
    assert allowed[found].all()
    assert (np.diff(found) > 0).all()
    assert np.sort(distances[found]).tolist() == expected.tolist()


@given(st.lists(st.integers(-3, 3)), st.integers(-1, 12))
def test_best_first_is_a_stable_descending_sort(values, k):
    scores = np.array(values, np.float32)
    expected = sorted(range(len(values)), key=lambda at: -values[at])[: max(k, 0)]
    assert scan.best_first(scores, k).tolist() == expected


@pytest.mark.parametrize("levels", [2, 50, 1_000_000])
@pytest.mark.parametrize("k", [1, 240, 2_990])
def test_best_first_of_many_scores_is_a_stable_descending_sort(levels, k):
    scores = np.random.default_rng(levels).integers(0, levels, 3_000).astype(np.float32)
    assert scan.best_first(scores, k).tolist() == np.argsort(-scores, kind="stable")[:k].tolist()


def test_the_best_scores_are_found_where_a_sample_misses_them():
    scores = np.zeros(3_000, np.float32)
    scores[scan.SAMPLE_STEP + 1 :: scan.SAMPLE_STEP] = 1
    assert set(scan.best_first(scores, 100).tolist()) <= set(np.flatnonzero(scores).tolist())


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=4), st.lists(st.integers(0, 9)))
def test_a_lookup_finds_every_slot_of_a_number(parts, wanted):
    tail: list[int] = parts[-1] if parts else []
    lookup = scan.SlotLookup()
    for part in parts[:-1]:
        lookup.extend(np.array(part, np.int64))
    found = lookup.find(np.unique(np.array(wanted, np.int64)), np.array(tail, np.int64))
    numbers = [n for part in parts for n in part]
    assert sorted(found.tolist()) == [at for at, n in enumerate(numbers) if n in wanted]


@given(st.integers(0, 7), st.integers(0, 15), st.integers(1, 255))
def test_one_changed_byte_changes_the_checksum_of_its_row_alone(at, byte, change):
    codes = np.random.default_rng(2).integers(-127, 127, (8, 16)).astype(np.int8)
    numbers = np.arange(8)
    before = scan.row_checksums(codes, numbers)
    codes.view(np.uint8)[at, byte] ^= np.uint8(change)
    assert np.flatnonzero(scan.row_checksums(codes, numbers) != before).tolist() == [at]


@pytest.mark.parametrize("dimension", [1, 3, 384])
def test_packed_rows_are_unpacked_as_closely_as_codes_allow(dimension):
    rows = np.random.default_rng(2).normal(0, 3, (5, dimension)).astype(np.float32)
    packed = scan.pack_rows(rows)
    assert len(packed) == 5 * (dimension + scan.SCALE_BYTES)
    unpacked = scan.unpack_rows(packed, dimension)
    steps = np.abs(rows).max(axis=1, keepdims=True) / 127
    assert (np.abs(unpacked - rows) <= steps * 0.51).all()
    again = scan.unpack_rows(scan.pack_rows(unpacked), dimension)
    assert np.allclose(again, unpacked, rtol=1e-5)


def test_a_vector_without_numbers_is_packed_as_zeros():
    rows = np.array([[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0], [0.0, 2.0]])
    assert scan.unpack_rows(scan.pack_rows(rows), 2).tolist() == [[0, 0], [0, 0], [0, 0], [0, 2]]
    assert scan.unpack_rows(b"", 7).shape == (0, 7)
