from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lore.recall import features
from lore.recall.texts import plain


def test_a_needle_is_the_beginning_that_a_word_shares_with_its_stem():
    assert features.needle("deployments", "deploy") == " deploy"
    assert features.needle("ran", "ran") == " ran "
    assert features.needle("flies", "fli") == " flies"


def test_words_far_apart_cover_less_than_words_close_together():
    needles = [" alpha", " beta"]
    weights = np.array([0.5, 0.5])
    near = plain("x " * 400 + "alpha beta")
    far = plain("alpha " + "x " * 400 + "beta")
    own = np.ones((2, 2), bool)
    close = features._closest([near, far], own, needles, weights)
    assert close.tolist() == [1.0, 0.5]


@given(st.lists(st.tuples(st.integers(1, 4), st.floats(0, 1)), max_size=30))
def test_session_features_agree_with_a_plain_reckoning(pairs: list[tuple[int, float]]):
    pool = _Pool([session for session, _ in pairs], [base for _, base in pairs])
    found = features._session(pool, np.zeros(len(pairs), np.bool_))  # type: ignore[arg-type]
    for place, (session, own) in enumerate(pairs):
        others = sorted(
            (b for i, (s, b) in enumerate(pairs) if s == session and i != place), reverse=True
        )
        assert np.isclose(found["session_best"][place], others[0] if others else 0.0)
        assert found["session_next"][place] <= sum([*others[:3], own]) / 3 + 1e-9


def test_logs_and_messages_of_one_session_are_reckoned_apart():
    pool = _Pool([1, 1, 1], [0.2, 0.4, 0.9])
    found = features._session(pool, np.array([False, False, True]))  # type: ignore[arg-type]
    assert found["session_best"].tolist() == [0.4, 0.2, 0.0]


class _Pool:
    def __init__(self, sessions: list[int], base: list[float]) -> None:
        self.base = np.array(base, float)
        self.cosine = self.base
        self.rows = self
        self.sessions = np.array(sessions, np.int64)
