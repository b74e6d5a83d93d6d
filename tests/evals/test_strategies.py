"""Strategies: what each makes of the same request."""

from __future__ import annotations

from lore.context.sizing import Measure
from lore.evals.strategies import (
    COMPACTED_AT,
    COMPACTED_TOKENS,
    Compaction,
    FullContext,
    Moment,
    pieces_of,
)
from lore.records.dialogues import Distilled, Pins, Plan
from tests.context.talks import dialogue, plain_talk

EXACT = Measure(0.25)


def moment(turns: int) -> Moment:
    return Moment(dialogue(plain_talk(turns, chars=900)), 0.0, cold=False, known=())


def test_full_context_is_everything_and_begins_as_before():
    strategy = FullContext(EXACT)
    before, after = strategy.prompt(moment(2)), strategy.prompt(moment(3))
    keys = [piece.key for piece in before.pieces]
    assert [piece.key for piece in after.pieces][: len(keys)] == keys
    assert sum(piece.tokens for piece in after.pieces) > 3 * 450


def test_compaction_waits_for_the_window_and_then_asks_for_a_summary():
    strategy = Compaction(EXACT, 4_000)
    assert not strategy.prompt(moment(3)).asked
    made = strategy.prompt(moment(9))
    assert sum(piece.tokens for piece in made.asked) > COMPACTED_AT * 4_000
    assert made.written_tokens == COMPACTED_TOKENS
    assert made.plan.busts
    assert len(made.pieces) == 2


def test_an_annotated_output_makes_another_and_shorter_piece():
    sent = dialogue(plain_talk(3, chars=4_000))
    whole = pieces_of(sent, Plan(0, Pins()), EXACT)
    short = pieces_of(sent, Plan(2, Pins(), annotated=frozenset({"c0.0"})), EXACT)
    differing = [n for n in range(len(whole)) if whole[n].key != short[n].key]
    assert differing == [2]
    assert short[2].tokens < whole[2].tokens / 4


def test_summaries_stand_before_the_window():
    sent = dialogue(plain_talk(3), breakpoints=2)
    told = Distilled("s", "told", 30, 6)
    made = pieces_of(sent, Plan(1, Pins(), 6, (told,)), EXACT)
    assert made[0].key == "distillation s"
    assert made[0].marked
    assert made[-1].marked
