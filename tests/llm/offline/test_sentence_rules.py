"""Rules about single sentences: reasons, changes and replaced values."""

from __future__ import annotations

import pytest

from lore.llm.offline import sentence_rules
from lore.llm.offline.sentence_rules import decision_payload


@pytest.mark.parametrize(
    ("text", "rationale"),
    [
        ("We use nylon because hemp rots.", "hemp rots"),
        ("We use nylon to prevent knots in salt water.", "knots in salt water"),
        ("We use nylon Since hemp rots", "hemp rots"),
    ],
)
def test_a_decision_has_the_reason_that_it_names(text: str, rationale: str):
    assert decision_payload(text) == {"decision": text, "rationale": rationale}


def test_a_decision_names_what_it_was_chosen_over():
    assert decision_payload("We switched from hemp to nylon in March")["alternatives"] == ["hemp"]


def test_a_decision_without_a_reason_is_only_itself():
    assert decision_payload("We use nylon") == {"decision": "We use nylon"}


@pytest.mark.parametrize(
    ("statement", "former"),
    [
        ("We switched from npm to pnpm.", "npm"),
        ("I moved the launch from May 3 to May 9.", "May 3"),
        ("Replaced `requests` with `httpx`.", "requests"),
        ("We no longer use Jenkins.", "Jenkins"),
        ("We use tabs instead of spaces.", "spaces"),
        ("We use tabs.", ""),
    ],
)
def test_the_former_state_is_what_the_statement_names(statement, former):
    assert sentence_rules.replaced_value(statement) == former
