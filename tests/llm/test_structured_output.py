from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore import payloads
from lore.llm.chat_summarizer import clean_output
from lore.llm.quote_check import Grounding
from lore.llm.structured_output import MAX_FACTS, Facts, facts_to_extracts
from lore.records import Extract
from tests.llm.fakes import fact, message_text

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

    def sources_of(self, content, named, *, beside=""):
        return tuple(named)


def extracted(*listed: dict[str, Any]) -> list[Extract]:
    found = Facts.model_validate({"facts": list(listed)})
    return facts_to_extracts(found, Grounding(TALK), clean_output)


def names(extracts: list[Extract] | tuple[Extract, ...]) -> list[Any]:
    return [(one.summary, names(one.children)) if one.children else one.summary for one in extracts]


def test_facts_become_a_tree():
    listed = [fact(1, "harbor"), fact(2, "deploy", under=1), fact(3, "Fridays", under=2)]
    assert names(extracted(*listed)) == [("harbor", [("deploy", ["Fridays"])])]


def test_what_lies_too_deep_is_raised_beside_its_parent():
    listed = [fact(n, f"deploy {n}", under=n - 1) for n in range(1, 6)]
    tree = extracted(*listed)
    assert names(tree) == [("deploy 1", [("deploy 2", ["deploy 3", "deploy 4", "deploy 5"])])]


@pytest.mark.parametrize(
    "under", [{1: 2, 2: 1}, {1: 1, 2: 2}, {1: 99, 2: -1}], ids=["circle", "itself", "nothing"]
)
def test_a_tree_that_is_none_becomes_roots(under):
    listed = [fact(n, f"deploy {n}", under=above) for n, above in under.items()]
    assert names(extracted(*listed)) == ["deploy 1", "deploy 2"]


def test_there_are_ten_facts_at_most_and_none_twice():
    listed = [fact(n % 15, f"deploy {n}") for n in range(40)]
    assert len(extracted(*listed)) == MAX_FACTS


def test_a_fact_whose_sources_are_invented_is_left_out_and_its_children_rise():
    listed = [fact(1, "harbor", sources=[7]), fact(2, "deploy", under=1, sources=[2])]
    assert names(extracted(*listed)) == ["deploy"]


def test_a_detail_without_sources_has_those_of_what_it_belongs_to():
    listed = [fact(1, "harbor", sources=[1, 99]), fact(2, "deploy", under=1, sources=[])]
    (root,) = extracted(*listed)
    assert root.sources == root.children[0].sources == ("id-1",)


def test_a_root_without_sources_is_left_out():
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
        ("config", {"form": "fact"}, {}),
    ],
)
def test_a_payload_has_the_form_of_its_kind(kind, payload, kept):
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


def test_everything_is_bounded():
    long = "deploy " * 10_000
    payload = {"form": "preference", "category": long, "examples": [long] * 500}
    (extract,) = extracted(
        fact(1, long, summary=long, corrects=long, kind="preference", payload=payload,
             relations=[{"kind": "supports", "to": 2}] * 500, keywords=["port"] * 500),
    )  # fmt: skip
    assert len(repr(extract)) < 40_000
    assert len(extract.summary) <= 120


def test_a_blank_fact_is_none_and_a_blank_summary_is_made():
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
def test_what_a_chat_fills_in_is_stored_as_the_kind_that_it_is(listed):
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
    form = Facts.model_json_schema()["$defs"]["ArchitectureForm"]
    assert form["required"] == ["form", "decision", "rationale", "alternatives", "tradeoffs"]
    assert form["properties"]["tradeoffs"]["items"] == {"type": "string"}
