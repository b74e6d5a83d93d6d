"""Overviews and insights by rules: in the words of what they are made of."""

from __future__ import annotations

from datetime import timedelta

from lore.llm import Digester
from lore.llm.offline.digester import OfflineDigester
from lore.llm.offline.overview import overview
from lore.llm.offline.reflecting import reflect
from lore.records import Fragment
from tests.fakes import NOON


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


def test_an_overview_begins_with_the_root_and_tells_what_matters_first():
    said = overview(
        ROOT, [fragment("It logs calls", importance=0.2), fragment("It signs keys", importance=0.9)]
    )
    assert said.split("\n") == ["The gateway takes requests", "- It signs keys", "- It logs calls"]


def test_of_two_that_say_the_same_the_newer_is_told():
    said = overview(ROOT, [fragment("The port is 8080"), fragment("8080 is the port", day=1)])
    assert said.split("\n")[1:] == ["- 8080 is the port"]


def test_a_root_that_is_a_list_keeps_its_lines():
    said = overview(fragment("The ports:\n- api has 8080"), [fragment("It logs calls")])
    assert said.split("\n") == ["The ports:", "- api has 8080", "- It logs calls"]


def test_an_overview_is_no_longer_than_can_be_read():
    many = [fragment(f"Fact {'abcdefghijklmnopqrstuvwxyz'[i]}{i} stands alone") for i in range(26)]
    assert len(overview(ROOT, many).split("\n")) <= 13


def test_an_insight_names_what_is_shared_and_quotes_the_rest():
    said = reflect([
        fragment("Deploys need a review"), fragment("Deploys run at noon"),
        fragment("Deploys are logged"),
    ])  # fmt: skip
    assert "deploys" in said.split("\n")[0].lower()
    assert "- Deploys run at noon" in said


def test_what_shares_nothing_yields_no_insight():
    assert (
        reflect([fragment("Alpha beta"), fragment("Gamma delta"), fragment("Epsilon zeta")]) == ""
    )


def test_the_offline_digester_is_a_digester():
    digester: Digester = OfflineDigester()
    assert digester.identity == "offline"
