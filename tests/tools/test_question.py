from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lore.http.doing import Recall
from lore.text.words import MAX_QUERY_CHARS
from lore.tools.finding import RecallArguments
from lore.tools.question import MOST_HITS, Question

DOORS: tuple[type[Question], ...] = (RecallArguments, Recall)


@pytest.mark.parametrize("door", DOORS)
def test_a_question_is_as_long_as_recall_reads_at_every_door(door: type[Question]):
    assert door.model_validate({"query": "x" * MAX_QUERY_CHARS}).scope == "all"
    with pytest.raises(ValidationError):
        door.model_validate({"query": "x" * (MAX_QUERY_CHARS + 1)})


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "given", [{}, {"query": ""}, {"query": "a", "scope": "x"}, {"query": "a", "limit": 0}]
)
def test_what_is_no_question_is_none_at_any_door(door: type[Question], given: dict[str, Any]):
    with pytest.raises(ValidationError):
        door.model_validate(given)


def test_a_program_may_ask_for_more_hits_than_a_model():
    given = {"query": "a", "limit": MOST_HITS + 1}
    assert Recall.model_validate(given).limit == MOST_HITS + 1
    with pytest.raises(ValidationError):
        RecallArguments.model_validate(given)
