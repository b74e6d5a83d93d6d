"""Replaying: a session with one strategy after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from lore.evals.long_talks import Talk, read_talks
from lore.evals.replaying import Client, Setting, replay
from lore.evals.strategies import Moment, Prompt
from lore.records.dialogues import Dialogue, Pins, Plan
from tests.evals.harbour import PRICE, logs, outcomes, write


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return read_talks(write(tmp_path))[0]


def test_layers_cost_less_than_full_context_and_keep_the_current_turn(talk: Talk):
    found = outcomes(talk)
    assert found["full"].busts == 0
    assert found["gradient_horizon"].usd < found["gradient_seed"].usd < found["full"].usd
    assert found["gradient_horizon"].busts > 0
    longest = max(size.tokens for size in found["gradient_horizon"].sizes)
    assert longest < 40_000


def test_a_provider_that_caches_by_itself_is_replayed_too(talk: Talk):
    found = outcomes(talk, "gpt-5.1")
    assert found["gradient_horizon"].usd < found["full"].usd


def test_only_what_goes_through_lore_has_recall(talk: Talk):
    found = outcomes(talk)
    assert found["full"].by_recall == 0
    assert found["full"].by_prompt == 1
    assert found["gradient_horizon"].by_recall == 1
    assert found["gradient_horizon"].available == 1


def test_what_a_client_says_before_the_talk_is_paid_for_with_every_request(talk: Talk):
    bare, full = outcomes(talk), outcomes(talk, client=Client(fixed_tokens=10_000))
    extra = full["full"].tokens_in - bare["full"].tokens_in
    assert extra == pytest.approx(10_000 * len(talk.requests), rel=0.01)
    assert all(one.usd > bare[name].usd for name, one in full.items())
    assert full["gradient_horizon"].usd < full["full"].usd


class Noting:
    """Makes no prompt, and notes what it was to make one of."""

    def __init__(self) -> None:
        self.sent: list[Dialogue] = []

    def prompt(self, moment: Moment) -> Prompt:
        self.sent.append(moment.sent)
        return Prompt((), Plan(0, Pins()))


def test_what_a_client_says_before_the_talk_stands_before_the_last_question_too(talk: Talk):
    noting = Noting()
    setting = Setting("claude", PRICE, logs(talk), client=Client(fixed_tokens=10_000))
    replay(talk, "full", setting, noting)
    assert len(noting.sent) == len(talk.requests) + 1
    assert len({(one.fixed_chars, one.breakpoints, one.model) for one in noting.sent}) == 1
