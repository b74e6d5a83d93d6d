"""Verdicts by rules: what changes, what contradicts, and what does neither."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lore.llm.offline.summarizer import (
    OfflineSummarizer,
    compare_statements,
)
from lore.records import Fragment
from lore.text import entities
from tests.fakes import NOON

CHANGES = [
    ("We use MySQL for the orders database",
     "We switched from MySQL to PostgreSQL for the orders database"),
    ("The API listens on port 8080", "The API no longer listens on port 8080"),
    ("Deploys run with Jenkins", "We replaced Jenkins with GitHub Actions for deploys"),
    ("The project uses yarn", "The project now uses pnpm instead of yarn"),
    ("The API listens on port 8080", "The API now listens on port 9090"),
    ("The request timeout is 30 seconds", "The request timeout was raised from 30 to 60 seconds"),
    ("We deploy on Fridays", "From now on we deploy on Mondays, not on Fridays any more"),
    ("Python 3.10 is the oldest version we support",
     "Python 3.11 is now the oldest version we support"),
    ("The cache lives in Memcached", "Memcached was replaced by Redis for the cache"),
    ("The frontend is built with webpack", "The frontend moved from webpack to vite"),
    ("Logs are kept for 30 days", "Logs are now kept for 90 days"),
    ("Sessions are stored in Redis", "We stopped using Redis for sessions"),
]  # fmt: skip
CONTRADICTS = [
    ("The API listens on port 8080", "The API listens on port 9090"),
    ("Tests must run before every commit", "Tests must not run before every commit"),
    ("The request timeout is 30 seconds", "The request timeout is 60 seconds"),
    ("The gateway takes 100 requests a second", "The gateway takes 300 requests a second"),
    ("The staging database runs version 14.2", "The staging database runs version 15.1"),
    ("The request cache is on", "The request cache is off"),
    ("The audit log is enabled", "The audit log is disabled"),
    ("The gateway opens three ports at start", "The gateway opens 4 ports at start"),
]
AGREES = [
    ("Step 1: run the linter on the code", "Step 2: run the linter on the code"),
    ("Issue #12 was fixed in the parser", "Issue #13 was fixed in the parser"),
    ("The API uses Redis", "The worker uses Redis"),
    ("The API uses Redis", "The API uses Postgres"),
    ("The frontend is written in TypeScript", "The backend has 12 endpoints now"),
    ("Released on 2026-01-03 with the parser fix", "Released on 2026-02-03 with the parser fix"),
    ("We deploy on Fridays", "Never deploy without a rollback plan"),
    ("Alice owns the billing service", "Bob owns the search service"),
    ("Use Postgres for the orders database",
     "Use Postgres for the orders database with pgvector 0.8"),
    ("The parser reads YAML files", "The parser now also writes a report"),
    ("The API listens on port 8080", "The API listens on port 8080"),
    ("Backups run nightly at the data centre", "The nightly backups are checked by a script"),
    ("", "The API listens on port 8080"),
    ("Does the API listen on port 8080?", "Does the API listen on port 9090?"),
    ("Now let me add logging to `resumeSession`", "Now let me add logging to `restoreSession`"),
    ("It reads from stdin instead of a terminal",
     "The key is that it reads from stdin instead of a terminal"),
    ("The gateway opens three ports at start", "The gateway opens 3 ports at start"),
    ("Ran 19 tests across 89 files", "Ran 152 tests across 5 files"),
]  # fmt: skip


@pytest.mark.parametrize(("older", "newer"), CHANGES)
def test_a_statement_of_a_change_changes_the_older_one(older, newer):
    assert compare_statements(older, newer) == "changes"


@pytest.mark.parametrize(("older", "newer"), CONTRADICTS)
def test_another_value_or_a_negation_contradicts(older, newer):
    assert compare_statements(older, newer) == "contradicts"


@pytest.mark.parametrize(("older", "newer"), AGREES)
def test_anything_else_agrees(older, newer):
    assert compare_statements(older, newer) == "agrees"


def test_a_long_text_is_not_replaced_by_one_change_in_it():
    long = "The project uses yarn. " + "It has many more rules that hold still. " * 20
    assert compare_statements(long, "The project now uses pnpm instead of yarn") != "changes"


def test_a_change_of_one_part_of_a_statement_contradicts_it():
    older = "The frontend is a React app built with webpack"
    assert compare_statements(older, "The frontend moved from webpack to Vite") == "contradicts"


@pytest.mark.parametrize(("one", "other"), CONTRADICTS)
def test_contradicting_statements_have_different_values(one, other):
    assert not entities.values_agree(one, other)
    assert not entities.values_agree(other, one)


def fragment(content: str, *, importance: float = 0.5, day: int = 0) -> Fragment:
    at = NOON + timedelta(days=day)
    return Fragment(
        id="", content=content, summary=content, depth=0, kind="fact", payload={},
        importance=importance, confidence=0.7, decay_rate=0.04, access_count=0,
        last_accessed=None, last_reinforced=at, relevance=0.5, origin="assistant", trust=2,
        project_id=None, session_id=None, source_messages=(), superseded_by=None,
        valid_from=None, valid_to=None, created_at=at, updated_at=at, version=1,
        parent_id=None, metadata={},
    )  # fmt: skip


ROOT = fragment("The gateway takes requests")


def test_there_is_no_overview_without_a_chat():
    children = [fragment("It logs calls"), fragment("It signs keys")]
    assert OfflineSummarizer().overview(ROOT, children) == ROOT.content


def test_there_is_no_insight_without_a_chat():
    cluster = [fragment("Deploys run at noon"), fragment("Deploys need a review")]
    assert OfflineSummarizer().reflect(cluster) == ""
