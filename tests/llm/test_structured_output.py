"""Answers of a chat become extracts, whatever they look like."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from lore import payloads
from lore.llm.chat import Usage
from lore.llm.chat_summarizer import clean_output
from lore.llm.quote_check import Grounding
from lore.llm.structured_output import (
    MAX_FACTS,
    MAX_RESPONSE_CHARS,
    Facts,
    Found,
    Insight,
    Verdicts,
    complete_schema,
    facts_to_extracts,
    parse_response,
    parse_value,
    schema_instruction,
)
from lore.records import Extract
from tests.llm.fakes import fact, facts, message_text

TALK = (
    message_text(
        1, "We deploy harbor with ops/deploy.sh; never on Fridays. Port 8443 replaces 8080."
    ),
    message_text(2, "Understood: harbor deploys with ops/deploy.sh, not on Fridays.", "assistant"),
)


WORKFLOW = {
    "form": "workflow",
    "command": "ops/deploy.sh",
    "trigger": "Fridays",
    "dependencies": [],
}
PREFERENCE = {"form": "preference", "category": "deploy", "examples": ["Fridays"]}
BUG_FIX = {
    "form": "bug_fix",
    "symptom": "deploy",
    "root_cause": "",
    "solution": "port",
    "prevention": "",
}
ARCHITECTURE = {
    "form": "architecture",
    "decision": "port 8443",
    "rationale": "",
    "alternatives": ["8080", ""],
    "tradeoffs": [],
}
CONFIG = {"form": "config", "setting": "port", "location": "", "value": "8443", "purpose": "deploy"}


class AnyGrounds(Grounding):
    """Takes the named messages for the sources, whatever was said in them."""

    def sources_of(self, content, named, *, beside="", known_words=frozenset()):
        return tuple(named)


def extracted(*listed: dict[str, Any]) -> list[Extract]:
    found = Facts.model_validate({"facts": list(listed)})
    return facts_to_extracts(found, Grounding(TALK), clean_output)


def names(extracts: list[Extract] | tuple[Extract, ...]) -> list[Any]:
    return [(one.summary, names(one.children)) if one.children else one.summary for one in extracts]


def test_facts_become_a_tree():
    listed = [fact(1, "harbor"), fact(2, "deploy", under=1), fact(3, "Fridays", under=2)]
    assert names(extracted(*listed)) == [("harbor", [("deploy", ["Fridays"])])]


def test_a_fact_below_the_depth_limit_moves_beside_its_parent():
    listed = [fact(n, f"deploy {n}", under=n - 1) for n in range(1, 6)]
    tree = extracted(*listed)
    assert names(tree) == [("deploy 1", [("deploy 2", ["deploy 3", "deploy 4", "deploy 5"])])]


@pytest.mark.parametrize(
    "under", [{1: 2, 2: 1}, {1: 1, 2: 2}, {1: 99, 2: -1}], ids=["circle", "itself", "nothing"]
)
def test_facts_in_a_cycle_become_roots(under):
    listed = [fact(n, f"deploy {n}", under=above) for n, above in under.items()]
    assert names(extracted(*listed)) == ["deploy 1", "deploy 2"]


def test_at_most_ten_facts_are_kept_without_duplicates():
    listed = [fact(n % 15, f"deploy {n}") for n in range(40)]
    assert len(extracted(*listed)) == MAX_FACTS


def test_a_fact_with_invented_sources_is_replaced_by_its_children():
    listed = [fact(1, "harbor", sources=[7]), fact(2, "deploy", under=1, sources=[2])]
    assert names(extracted(*listed)) == ["deploy"]


def test_a_child_without_sources_inherits_them():
    listed = [fact(1, "harbor", sources=[1, 99]), fact(2, "deploy", under=1, sources=[])]
    (root,) = extracted(*listed)
    assert root.sources == root.children[0].sources == ("id-1",)


def test_null_is_an_empty_field():
    needed = {"content": "Port 8443.", "kind": "config", "importance": "low", "sources": [1]}
    optional = set(Found.model_fields) - needed.keys()
    nulls = dict.fromkeys(optional)
    form = {"form": "config", "setting": "port", "value": None}
    for listed in (needed | nulls, needed | {"payload": form}):
        value, problem = parse_value(json.dumps({"facts": [listed]}), Facts)
        assert (problem, value is not None) == ("", True)
    value, problem = parse_value(json.dumps({"facts": [needed | {"content": None}]}), Facts)
    assert value is None
    assert "facts.0.content" in problem


def test_a_root_without_sources_is_dropped():
    assert extracted(fact(1, "harbor", sources=[])) == []


@pytest.mark.parametrize(
    ("kind", "payload", "kept"),
    [
        ("workflow", WORKFLOW, {"command": "ops/deploy.sh", "trigger": "Fridays"}),
        ("skill", WORKFLOW, {"command": "ops/deploy.sh", "trigger": "Fridays"}),
        ("preference", PREFERENCE, {"category": "deploy", "examples": ["Fridays"]}),
        ("bug_fix", BUG_FIX, {"symptom": "deploy", "solution": "port"}),
        ("decision", ARCHITECTURE, {"decision": "port 8443", "alternatives": ["8080"]}),
        ("architecture", ARCHITECTURE, {"decision": "port 8443", "alternatives": ["8080"]}),
        ("config", CONFIG, {"setting": "port", "value": "8443", "purpose": "deploy"}),
        ("fact", CONFIG, {}),
        ("pattern", {"form": "fact"}, {}),
        ("config", {"form": "fact"}, {"setting": "deploy"}),
        ("decision", None, {"decision": "deploy"}),
    ],
)
def test_a_payload_has_the_fields_of_its_kind(kind, payload, kept):
    (extract,) = extracted(fact(1, "deploy", kind=kind, payload=payload, keywords=["port", " "]))
    assert extract.payload == {"summary": "deploy", "keywords": ["port"], **kept}


def test_relations_name_other_facts_by_their_summaries():
    links = [
        {"kind": "supports", "to": 2},
        {"kind": "supports", "to": 9},
        {"kind": "supports", "to": 1},
    ]
    first, _ = extracted(fact(1, "deploy", relations=links), fact(2, "Fridays"))
    assert first.edges == (("supports", "Fridays"),)


def test_every_field_is_bounded():
    long = "deploy " * 10_000
    payload = {"form": "preference", "category": long, "examples": [long] * 500}
    (extract,) = extracted(
        fact(1, long, summary=long, corrects=long, kind="preference", payload=payload,
             relations=[{"kind": "supports", "to": 2}] * 500, keywords=["port"] * 500),
    )  # fmt: skip
    assert len(repr(extract)) < 40_000
    assert len(extract.summary) <= 120


def test_a_blank_fact_is_dropped_and_a_blank_summary_derived():
    assert extracted(fact(1, " \n")) == []
    (extract,) = extracted(fact(1, "Harbor deploys on port 8443. Always.", summary=" "))
    assert extract.summary == "Harbor deploys on port 8443."


TEXTS = st.text("abc 8443é", min_size=1, max_size=30).filter(str.strip)


@st.composite
def filled(draw: st.DrawFn) -> dict[str, Any]:
    """A fact of any kind, with the form of its kind filled in."""
    kind = draw(st.sampled_from(sorted(payloads.SCHEMA_OF)))
    name = payloads.SCHEMA_OF[kind]
    schema = payloads.SCHEMAS[name]
    payload: dict[str, Any] = {"form": name}
    for field, info in schema.model_fields.items():
        if field not in payloads.Payload.model_fields:
            payload[field] = draw(TEXTS if info.annotation is str else st.lists(TEXTS, max_size=50))
    return fact(1, "deploy", kind=kind, payload=payload, keywords=draw(st.lists(TEXTS)))


@given(filled())
def test_an_extracted_payload_is_valid_for_its_kind(listed):
    extract = facts_to_extracts(
        Facts.model_validate({"facts": [listed]}), AnyGrounds(TALK), clean_output
    )[0]
    checked = payloads.validate_payload(extract.kind, extract.payload, summary=extract.summary)
    assert checked is not None
    kind, payload = checked
    assert kind == listed["kind"]
    told = {name for name, value in listed["payload"].items() if name != "form" and value}
    assert told <= set(payload)


def test_a_form_has_every_field_of_its_schema_in_plain_types():
    form = complete_schema(Facts)["$defs"]["ArchitectureForm"]
    assert form["required"] == ["form", "decision", "rationale", "alternatives", "tradeoffs"]
    assert form["properties"]["tradeoffs"]["items"] == {"type": "string"}


class Number(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    n: int


@given(st.text())
def test_any_text_parses_to_a_value_or_a_problem(text):
    value, problem = parse_value(text, Number)
    assert bool(value) != bool(problem)


@given(st.integers(-1000, 1000), st.text(alphabet="ab`\n ", max_size=20))
def test_a_value_between_fences_is_parsed(number, around):
    value, _ = parse_value(f'{around}\n```json\n{{"n": {number}}}\n```\n', Number)
    assert value == Number(n=number)


def test_the_first_valid_candidate_is_used():
    text = '```json\n{"m": 1}\n```\nor rather\n```json\n{"n": 2}\n```'
    assert parse_value(text, Number)[0] == Number(n=2)


def test_a_too_long_answer_is_truncated_with_a_problem():
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
def test_every_schema_is_supported_by_structured_output(schema):
    made = complete_schema(schema)
    for form in forms(made):
        assert form["additionalProperties"] is False
        properties = form.get("properties", {})
        assert isinstance(properties, dict)
        assert form.get("required", []) == list(properties)
    told = json.dumps(made)
    assert "oneOf" not in told
    assert "maxLength" not in told
    assert told.count('"$ref": "#/$defs/Found"') <= 1


def test_a_schema_can_be_sent_as_an_instruction():
    assert '"required":["n"]' in schema_instruction(Number)
