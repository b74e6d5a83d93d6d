from __future__ import annotations

from typing import get_args

import pytest

from lore import payloads
from lore.errors import InvalidInput
from lore.records import FragmentKind


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("workflow", {"command": "just test", "trigger": "before a push", "dependencies": ["uv"]}),
        ("preference", {"category": "style", "examples": ["tabs"]}),
        ("bug_fix", {"symptom": "it hangs", "solution": "set a timeout", "root_cause": "none"}),
        ("architecture", {"decision": "SQLite", "rationale": "one file", "alternatives": ["PG"]}),
        ("decision", {"decision": "SQLite"}),
        ("config", {"setting": "port", "value": "5432", "location": "app.toml"}),
        ("fact", {"details": "more", "keywords": ["a"], "context": "where"}),
    ],
)
def test_a_payload_that_fits_its_kind_is_kept_as_it_is(kind, payload):
    assert payloads.validate_payload(kind, payload, summary="s") == (
        kind,
        {"summary": "s", **payload},
    )


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("bug_fix", {"symptom": "it hangs"}),
        ("bug_fix", {"symptom": "", "solution": "x"}),
        ("config", {"value": "5432"}),
        ("architecture", {"rationale": "because"}),
        ("workflow", {"command": ["just", "test"]}),
        ("fact", {"unknown": "field"}),
        ("preference", {"category": 3}),
        ("workflow", {"command": "x" * 5_000}),
        ("episode", {"goal": "x"}),
        ("insight", {}),
    ],
)
def test_a_wrong_payload_becomes_a_fact(kind, payload):
    assert payloads.validate_payload(kind, payload, summary="s") == ("fact", {"summary": "s"})


def test_what_every_payload_has_survives_in_the_fact():
    given = {"symptom": "it hangs", "keywords": ["a"], "details": "more"}
    assert payloads.validate_payload("bug_fix", given, summary="s") == (
        "fact",
        {"summary": "s", "details": "more", "keywords": ["a"]},
    )


def test_without_a_summary_there_is_nothing_to_keep():
    assert payloads.validate_payload("fact", {}, summary=" ") is None


def test_every_kind_that_may_be_extracted_has_a_schema():
    assert set(payloads.SCHEMA_OF) == set(get_args(FragmentKind)) - {"episode", "insight"}
    assert set(payloads.SCHEMA_OF.values()) == set(payloads.SCHEMAS)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("pattern", {"pattern": "Test first", "links": [{"to": "a", "relation": "supersedes"}]}),
        ("anti_pattern", {"what_fails": "npm test", "prevention": "npm ci", "own": {"field": 1}}),
        ("skill", {"name": "Release", "steps": ["tag"], "common_errors": [{"error": "e"}]}),
        ("episode", {"goal": "Fix it", "outcome": "failure", "actions": [{"action": "run"}]}),
    ],
)  # fmt: skip
def test_a_task_memory_that_fits_its_kind_is_kept_with_unknown_fields(kind, payload):
    assert payloads.require_task_payload(kind, payload) == payload


@pytest.mark.parametrize(
    ("kind", "payload", "said"),
    [
        ("pattern", {}, "'pattern': field required"),
        ("pattern", {"pattern": "x", "confidence": 2}, "'confidence'"),
        ("anti_pattern", {"why": "x"}, "'what_fails': field required"),
        ("skill", {"name": "x", "steps": []}, "'steps'"),
        ("skill", {"name": "x", "steps": ["a", ""]}, "'steps.1'"),
        ("episode", {"goal": "x", "outcome": "perfect"}, "'outcome'"),
        ("fact", {}, "not a kind of task memory"),
    ],
)
def test_a_wrong_task_memory_is_refused_with_the_field(kind, payload, said):
    with pytest.raises(InvalidInput, match=said):
        payloads.require_task_payload(kind, payload)
