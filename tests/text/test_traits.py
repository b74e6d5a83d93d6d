from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text import traits
from lore.text.traits import traits_of

ALL = (
    traits.EMPTY,
    traits.ASKS,
    traits.LEAVES_QUESTION,
    traits.HAS_TIME,
    traits.HAS_NUMBER,
    traits.FIRST_PERSON,
    traits.STANDING,
    traits.FROM_USER,
    traits.FROM_ASSISTANT,
)


@pytest.mark.parametrize(
    ("text", "trait"),
    [
        ("", traits.EMPTY),
        ("  \n", traits.EMPTY),
        ("Is it?", traits.ASKS | traits.LEAVES_QUESTION),
        ("Is it? Yes.", traits.LEAVES_QUESTION),
        ("It rained yesterday", traits.HAS_TIME),
        ("Back on Monday", traits.HAS_TIME),
        ("In 1999", traits.HAS_TIME | traits.HAS_NUMBER),
        ("About 30000", traits.HAS_NUMBER),
        ("a dozen eggs", traits.HAS_NUMBER),
        ("I think so", traits.FIRST_PERSON),
        ("OUR plan", traits.FIRST_PERSON),
        ("plain", 0),
        ("lasting yearly mayor someone", 0),
    ],
)
def test_a_text_has_these_traits(text, trait):
    assert traits_of(text, "tool") == trait


@pytest.mark.parametrize(
    ("role", "trait"),
    [
        ("user", traits.FROM_USER),
        ("assistant", traits.FROM_ASSISTANT),
        ("tool", 0),
        ("system", 0),
    ],
)
def test_the_role_is_a_trait(role, trait):
    assert traits_of("plain", role) == trait


def test_a_standing_instruction_is_a_trait():
    assert traits_of("plain", "tool", standing=True) == traits.STANDING


def test_a_question_far_from_the_end_is_answered_by_the_text_itself():
    assert traits_of("Is it? " + "x" * 300, "tool") == 0


def test_each_trait_has_a_bit_of_its_own():
    assert sum(ALL) == (1 << len(ALL)) - 1


@given(st.text(), st.sampled_from(["user", "assistant", "tool", "system"]), st.booleans())
def test_traits_of_anything_are_a_sum_of_traits(text, role, standing):
    assert 0 <= traits_of(text, role, standing=standing) <= sum(ALL)
