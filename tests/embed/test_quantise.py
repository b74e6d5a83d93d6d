import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lore.embed.quantise import quantise


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-4, 1.0, 50.0]))
def test_no_weight_moves_by_more_than_half_a_step(seed: int, size: float) -> None:
    weight = (np.random.default_rng(seed).standard_normal((8, 5)) * size).astype(np.float32)
    levels, scales = quantise(weight)
    assert levels.dtype == np.int8
    assert scales.shape == (5,)
    assert np.all(np.abs(levels * scales - weight) <= scales * 0.5001)


def test_a_column_of_zeros_stays_zero() -> None:
    levels, scales = quantise(np.zeros((4, 2), np.float32))
    assert not levels.any()
    assert np.isfinite(scales).all()
