"""What the tools share: titles, names and the arguments of a question."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lore.http.write_endpoints import Recall
from lore.records import Title
from lore.text import tokens
from lore.text.words import MAX_QUERY_CHARS
from lore.tools import tool_output
from lore.tools.search_tools import RecallArguments
from lore.tools.tool_output import MAX_HITS, Named, Question


@given(st.text(max_size=400))
def test_a_title_is_one_line_of_few_words_and_tokens(text: str):
    title = tool_output.title(text)
    assert len(title.split()) <= tool_output.TITLE_WORDS
    assert len(title.splitlines()) <= 1
    assert tokens.count(title) <= tool_output.TITLE_TOKENS


def test_voice_names_untrusted_origin():
    assert tool_output.voice("fact", "user") == "fact"
    assert tool_output.voice("fact", "web") == "fact(web)"


SHORT = {"01a1e003-d3de": "01a1e003"}


def test_name_line_follows_the_columns():
    title = Title("01a1e003-d3de", "Deploys go\nthrough ops", "decision", 1, 40, 3)
    line = tool_output.name_line(Named.model_validate(title), SHORT)
    assert line == "01a1e003 1 decision 40 3 Deploys go through ops"
    assert tool_output.COLUMNS == "id depth kind tokens children title"


DOORS: tuple[type[Question], ...] = (RecallArguments, Recall)


@pytest.mark.parametrize("door", DOORS)
def test_query_length_limit_holds_at_every_interface(door: type[Question]):
    assert door.model_validate({"query": "x" * MAX_QUERY_CHARS}).scope == "all"
    with pytest.raises(ValidationError):
        door.model_validate({"query": "x" * (MAX_QUERY_CHARS + 1)})


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "given", [{}, {"query": ""}, {"query": "a", "scope": "x"}, {"query": "a", "limit": 0}]
)
def test_invalid_question_is_refused_at_every_interface(
    door: type[Question], given: dict[str, Any]
):
    with pytest.raises(ValidationError):
        door.model_validate(given)


def test_a_program_may_ask_for_more_hits_than_a_model():
    given = {"query": "a", "limit": MAX_HITS + 1}
    assert Recall.model_validate(given).limit == MAX_HITS + 1
    with pytest.raises(ValidationError):
        RecallArguments.model_validate(given)
