from __future__ import annotations

import pytest

from lore.llm.offline.reasons import decision


@pytest.mark.parametrize(
    ("text", "rationale"),
    [
        ("We use nylon because hemp rots.", "hemp rots"),
        ("We use nylon to prevent knots in salt water.", "knots in salt water"),
        ("We use nylon Since hemp rots", "hemp rots"),
    ],
)
def test_a_decision_has_the_reason_that_it_names(text: str, rationale: str):
    assert decision(text) == {"decision": text, "rationale": rationale}


def test_a_decision_names_what_it_was_chosen_over():
    assert decision("We switched from hemp to nylon in March")["alternatives"] == ["hemp"]


def test_a_decision_without_a_reason_is_only_itself():
    assert decision("We use nylon") == {"decision": "We use nylon"}
