"""The simulated cache, the strategies and the evidence of a replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from lore.context.layers import TokenMeasure
from lore.evals.datasets import EvidenceQuestion, ReplaySession, read_long_sessions
from lore.evals.replay import (
    COMPACTION_SHARE,
    COMPACTION_TOKENS,
    LONG_CACHE_TTL_S,
    CachedPiece,
    Compaction,
    FullContext,
    PrefixCache,
    ReplayClient,
    ReplaySetting,
    RequestMoment,
    StrategyPrompt,
    find_specifics,
    has_evidence_in_prompt,
    pieces_of,
    replay_session,
)
from lore.records.gateway import Dialogue, Distilled, ModelPrice, Plan, PromptState, TokenUse
from tests.context.dialogues import dialogue, plain_talk
from tests.evals.sample_session import PRICE, logs, outcomes, write


def prompt(*sizes: int, marked: tuple[int, ...] = (-1,), name: str = "") -> list[CachedPiece]:
    marks = {place % len(sizes) for place in marked}
    return [CachedPiece(f"{name}{n}", size, marked=n in marks) for n, size in enumerate(sizes)]


def test_a_prompt_is_written_once_and_then_read():
    cache = PrefixCache()
    assert cache.send(prompt(2_000, 500), 0) == TokenUse(0, 0, 2_500)
    assert cache.send(prompt(2_000, 500, 300), 10) == TokenUse(0, 2_500, 300)


def test_tokens_after_last_breakpoint_are_fresh():
    cache = PrefixCache()
    assert cache.send(prompt(2_000, 500, marked=(0,)), 0) == TokenUse(500, 0, 2_000)


def test_a_read_renews_the_ttl_and_a_pause_expires_it():
    cache = PrefixCache()
    cache.send(prompt(2_000), 0)
    assert cache.send(prompt(2_000), 299).cache_read_tokens == 2_000
    assert cache.send(prompt(2_000), 598).cache_read_tokens == 2_000
    assert cache.send(prompt(2_000), 899).cache_read_tokens == 0


def test_one_hour_cache_writes_have_their_own_price():
    cache = PrefixCache(lifetime_s=LONG_CACHE_TTL_S)
    assert cache.send(prompt(2_000), 0) == TokenUse(cache_write_1h_tokens=2_000)
    assert cache.send(prompt(2_000), 3_000) == TokenUse(cache_read_tokens=2_000)


def test_changed_prefix_misses_the_cache():
    cache = PrefixCache()
    cache.send(prompt(2_000, 500), 0)
    assert cache.send(prompt(2_000, 500, name="b"), 1) == TokenUse(0, 0, 2_500)


def test_earlier_prompt_is_still_cached():
    cache = PrefixCache()
    cache.send(prompt(2_000, 500), 0)
    cache.send(prompt(2_000, 500, name="b"), 1)
    assert cache.send(prompt(2_000, 500), 2).cache_read_tokens == 2_500


def test_short_prompts_are_not_cached():
    cache = PrefixCache()
    assert cache.send(prompt(1_000), 0) == TokenUse(1_000)
    assert cache.send(prompt(1_000), 1) == TokenUse(1_000)


def test_a_lookup_goes_back_twenty_blocks_only():
    cache = PrefixCache()
    cache.send(prompt(2_000), 0)
    near = prompt(2_000, *[10] * 20)
    far = prompt(2_000, *[10] * 22)
    assert cache.send(near, 1).cache_read_tokens == 2_000
    assert PrefixCache().send(far, 1).cache_read_tokens == 0
    fresh = PrefixCache()
    fresh.send(prompt(2_000), 0)
    assert fresh.send(far, 1).cache_read_tokens == 0


def test_automatic_caching_needs_no_breakpoints():
    cache = PrefixCache(automatic=True)
    cache.send(prompt(2_000, 10, marked=()), 0)
    use = cache.send(prompt(2_000, *[10] * 40, marked=()), 1)
    assert use == TokenUse(0, 2_010, 390)


def test_cost_depends_on_token_use():
    price = ModelPrice(3, 15, 0.3, 3.75, 6)
    use = TokenUse(1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000)
    assert price.cost(use) == pytest.approx(3 + 0.3 + 3.75 + 6 + 15)


@pytest.fixture
def talk(tmp_path: Path) -> ReplaySession:
    return read_long_sessions(write(tmp_path))[0]


def test_layers_cost_less_than_full_context_and_keep_the_current_turn(talk: ReplaySession):
    found = outcomes(talk)
    assert found["full"].busts == 0
    assert found["gradient_horizon"].usd < found["gradient_seed"].usd < found["full"].usd
    assert found["gradient_horizon"].busts > 0
    longest = max(size.tokens for size in found["gradient_horizon"].sizes)
    assert longest < 40_000


def test_automatic_caching_is_replayed(talk: ReplaySession):
    found = outcomes(talk, "gpt-5.1")
    assert found["gradient_horizon"].usd < found["full"].usd


def test_only_lore_strategies_have_recall(talk: ReplaySession):
    found = outcomes(talk)
    assert found["full"].by_recall == 0
    assert found["full"].by_prompt == 1
    assert found["gradient_horizon"].by_recall == 1
    assert found["gradient_horizon"].available == 1


def test_a_question_is_missed_if_neither_prompt_nor_recall_has_its_evidence(talk: ReplaySession):
    setting = ReplaySetting("claude", PRICE, logs(talk), (False,))
    by_prompt = replay_session(talk, "full", setting)
    assert (by_prompt.by_prompt, by_prompt.missed) == (1, [])
    lost = replay_session(talk, "gradient_horizon", setting)
    assert lost.missed == [talk.questions[0].text]


def test_the_fixed_prompt_is_paid_for_with_every_request(talk: ReplaySession):
    bare, full = outcomes(talk), outcomes(talk, client=ReplayClient(fixed_tokens=10_000))
    extra = full["full"].tokens_in - bare["full"].tokens_in
    assert extra == pytest.approx(10_000 * len(talk.requests), rel=0.01)
    assert all(one.usd > bare[name].usd for name, one in full.items())
    assert full["gradient_horizon"].usd < full["full"].usd


class Noting:
    """Makes no prompt, and notes what it was to make one of."""

    def __init__(self) -> None:
        self.sent: list[Dialogue] = []

    def prompt(self, moment: RequestMoment) -> StrategyPrompt:
        self.sent.append(moment.sent)
        return StrategyPrompt((), Plan(0, PromptState()))


def test_the_fixed_prompt_precedes_the_last_question_too(
    talk: ReplaySession,
):
    noting = Noting()
    setting = ReplaySetting("claude", PRICE, logs(talk), client=ReplayClient(fixed_tokens=10_000))
    replay_session(talk, "full", setting, noting)
    assert len(noting.sent) == len(talk.requests) + 1
    assert len({(one.fixed_chars, one.breakpoints, one.model) for one in noting.sent}) == 1


EXACT = TokenMeasure(0.25)


def moment(turns: int) -> RequestMoment:
    return RequestMoment(dialogue(plain_talk(turns, chars=900)), 0.0, cold=False, known=())


def test_full_context_keeps_its_prefix():
    strategy = FullContext(EXACT)
    before, after = strategy.prompt(moment(2)), strategy.prompt(moment(3))
    keys = [piece.key for piece in before.pieces]
    assert [piece.key for piece in after.pieces][: len(keys)] == keys
    assert sum(piece.tokens for piece in after.pieces) > 3 * 450


def test_compaction_waits_for_the_window_and_then_asks_for_a_summary():
    strategy = Compaction(EXACT, 4_000)
    assert not strategy.prompt(moment(3)).asked
    made = strategy.prompt(moment(9))
    assert sum(piece.tokens for piece in made.asked) > COMPACTION_SHARE * 4_000
    assert made.written_tokens == COMPACTION_TOKENS
    assert made.plan.busts
    assert len(made.pieces) == 2


def test_annotated_output_is_a_shorter_piece():
    sent = dialogue(plain_talk(3, chars=4_000))
    whole = pieces_of(sent, Plan(0, PromptState()), EXACT)
    short = pieces_of(sent, Plan(2, PromptState(), annotated=frozenset({"c0.0"})), EXACT)
    differing = [n for n in range(len(whole)) if whole[n].key != short[n].key]
    assert differing == [2]
    assert short[2].tokens < whole[2].tokens / 4


def test_summaries_precede_raw_entries():
    sent = dialogue(plain_talk(3), breakpoints=2)
    told = Distilled("s", "told", 30, 6)
    made = pieces_of(sent, Plan(1, PromptState(), 6, (told,)), EXACT)
    assert made[0].key == "distillation s"
    assert made[0].marked
    assert made[-1].marked


def test_evidence_is_found_by_message_or_specifics(talk: ReplaySession):
    question = talk.questions[0]
    start = talk.entries_of(question.message).start
    assert has_evidence_in_prompt(talk, question, Plan(1, PromptState(), start))
    later = Plan(1, PromptState(), start + 2)
    assert not has_evidence_in_prompt(talk, question, later)
    told = Distilled("s", "Looking at pier 2.3, berth fee 203 crowns", 9, start + 2)
    vague = Distilled("v", "Looking at berth fee of a pier in crowns", 9, start + 2)
    assert has_evidence_in_prompt(talk, question, Plan(1, PromptState(), start + 2, (told,)))
    assert not has_evidence_in_prompt(talk, question, Plan(1, PromptState(), start + 2, (vague,)))


def test_annotated_output_is_no_evidence(talk: ReplaySession):
    question = talk.questions[0]
    own = talk.entries_of(question.message)
    hidden = talk.entries[own[-1]].blocks[0].call_id
    assert not has_evidence_in_prompt(
        talk, question, Plan(2, PromptState(), annotated=frozenset({hidden}))
    )


def test_specifics_are_numbers_names_in_code_and_paths():
    told = "It is 49.20% in src/lib/app.ts, see releaseChannel and 'the old way'."
    assert find_specifics(told) == {"49.20%", "src/lib/app.ts", "releasechannel", "the old way"}


def test_a_question_without_specifics_is_not_answered_by_summaries(talk: ReplaySession):
    question = EvidenceQuestion("Who?", "The harbour master", 4)
    told = Distilled("s", "The harbour master", 9, 99)
    assert not has_evidence_in_prompt(talk, question, Plan(1, PromptState(), 99, (told,)))
