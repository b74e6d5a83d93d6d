from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from lore.llm.chat import Usage
from lore.llm.structured_output import (
    MAX_RESPONSE_CHARS,
    Facts,
    Insight,
    Verdicts,
    parse_response,
    parse_value,
    schema_instruction,
)
from tests.llm.fakes import fact, facts


class Number(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    n: int


@given(st.text())
def test_no_text_is_more_than_a_problem(text):
    value, problem = parse_value(text, Number)
    assert bool(value) != bool(problem)


@given(st.integers(-1000, 1000), st.text(alphabet="ab`\n ", max_size=20))
def test_a_value_is_found_between_fences(number, around):
    value, _ = parse_value(f'{around}\n```json\n{{"n": {number}}}\n```\n', Number)
    assert value == Number(n=number)


def test_of_several_candidates_the_first_that_fits_counts():
    text = '```json\n{"m": 1}\n```\nor rather\n```json\n{"n": 2}\n```'
    assert parse_value(text, Number)[0] == Number(n=2)


def test_an_endless_answer_is_a_problem_and_is_cut():
    reply = parse_response("a" * (MAX_RESPONSE_CHARS + 1), Usage(), None)
    assert reply.problem
    assert len(reply.text) == MAX_RESPONSE_CHARS


def test_many_errors_are_described_briefly():
    text = facts(*[{**fact(n, "x"), "kind": "nonsense"} for n in range(200)])
    _, problem = parse_value(text, Facts)
    assert len(problem) < 2_000
    assert "and 195 more" in problem


def forms(schema: object) -> list[dict[str, object]]:
    """Return every object of a schema."""
    found = []
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            found.append(schema)
        for inner in schema.values():
            found += forms(inner)
    elif isinstance(schema, list):
        for inner in schema:
            found += forms(inner)
    return found


@pytest.mark.parametrize("schema", [Facts, Insight, Verdicts])
def test_a_form_is_one_that_providers_can_be_held_to(schema):
    made = schema.model_json_schema()
    for form in forms(made):
        assert form["additionalProperties"] is False
        properties = form.get("properties", {})
        assert isinstance(properties, dict)
        assert form.get("required", []) == list(properties)
    told = json.dumps(made)
    assert "oneOf" not in told
    assert "maxLength" not in told
    assert told.count('"$ref": "#/$defs/Found"') <= 1


def test_a_schema_can_be_asked_for_in_words():
    assert '"required":["n"]' in schema_instruction(Number)
