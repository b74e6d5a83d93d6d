"""Layers: what each leaves of a dialogue, and how much room each has."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.context.layers import Room, Scene
from lore.context.sizing import Measure
from lore.context.turns import turn_starts
from lore.records.dialogues import Distilled, Layer
from tests.context.talks import (
    condensed,
    dialogue,
    entry,
    plain_talk,
    plain_turn,
    talks,
    text,
)

EXACT = Measure(0.25)


def scene(entries, distilled=(), *, room: Room | None = None) -> Scene:
    return Scene(dialogue(entries), distilled, EXACT, room or Room(4_000))


def test_the_shares_of_the_usable_window():
    room = Room(100_000, fixed_tokens=20_000)
    assert room.usable_tokens == 80_000
    assert room.whole_tokens == 56_000
    assert [room.raw_tokens(layer) for layer in (1, 2, 3)] == [32_000, 40_000, 44_000]
    assert [room.prefix_tokens(layer) for layer in (1, 2, 3)] == [20_000, 20_000, 12_000]
    assert room.evict_to_tokens(1) == 24_000


def test_the_tail_of_an_emergency_has_two_to_eight_thousand_tokens():
    assert Room(10_000).evict_to_tokens(4) == 2_000
    assert Room(100_000).evict_to_tokens(4) == 5_000
    assert Room(1_000_000).evict_to_tokens(4) == 8_000


def test_a_window_is_cut_to_what_is_to_be_kept():
    assert Room(100_000, keep_tokens=9_000).evict_to_tokens(1) == 9_000
    assert Room(10_000, keep_tokens=9_000).evict_to_tokens(1) == 3_000


def test_the_turn_before_the_current_one_is_kept_where_it_needs_twice_the_room():
    entries = [*plain_talk(6, chars=900), *plain_turn(7, chars=900)]
    told = condensed(entries, until=40, each=3, share=0.01)
    starts = turn_starts(entries)
    tight = scene(entries, told, room=Room(100_000, keep_tokens=600)).shapes(0)[1]
    assert tight.start == starts[-2]
    tighter = scene(entries, told, room=Room(100_000, keep_tokens=490)).shapes(0)[1]
    assert tighter.start == starts[-1]


def test_of_several_metas_the_newest_stands():
    old, new = Distilled("old", "a", 5, 4, 1), Distilled("new", "b", 5, 8, 1)
    log = Distilled("log", "c", 5, 12)
    covered = Distilled("covered", "d", 5, 6)
    found = scene(plain_talk(4), [log, new, covered, old])
    assert found.standing == (new, log)
    assert found.covered == 12


def test_distillations_that_do_not_fit_go_the_oldest_first_and_metas_last():
    entries = plain_talk(30, chars=900)
    logs = [Distilled(f"log-{n}", "x", 300, n) for n in range(8, 160, 8)]
    meta = Distilled("meta", "m", 300, 8, 1)
    prefix = scene(entries, [meta, *logs]).shapes(0)[1].prefix
    assert prefix[0] == meta
    assert sum(one.tokens for one in prefix) <= 1_000
    assert prefix[-1].until >= 144


@pytest.mark.parametrize(("layer", "most"), [(3, 5), (4, 2)])
@pytest.mark.parametrize("meta", [False, True])
def test_of_many_distillations_the_newest_stay(layer: Layer, most: int, meta: bool):
    entries = plain_talk(30, chars=900)
    logs = [Distilled(f"log-{n}", "x", 3, n) for n in range(8, 160, 8)]
    metas = [Distilled("meta", "m", 3, 16, 1)] if meta else []
    shape = scene(entries, [*metas, *logs]).shapes(0)[layer]
    needed = [one for one in logs if one.until < shape.start + 8]
    assert len(needed) > 5
    stays = metas if layer == 3 else []
    assert shape.prefix == (*stays, *needed[-most:])


def test_the_tail_of_an_emergency_begins_with_a_turn_and_so_may_be_shorter():
    asked, answered = entry("user", text("Go on. ", times=1_500)), entry("assistant", text("Yes."))
    entries = [asked, answered, *plain_turn(2, chars=100)]
    shape = scene(entries, room=Room(3_000)).shapes(0)[4]
    assert shape.start == turn_starts(entries)[-1]
    assert shape.raw_tokens < 2_000


@settings(max_examples=200)
@given(
    entries=talks(),
    window=st.sampled_from([200, 2_000, 20_000]),
    keep=st.sampled_from([0, 100, 3_000]),
    share=st.sampled_from([0.01, 0.3, 2.0]),
    each=st.integers(1, 7),
)
def test_a_higher_layer_is_never_larger(entries, window, keep, share, each):
    until = (turn_starts(entries) or (0,))[-1]
    told = condensed(entries, until=until, each=each, meta_after=3, share=share)
    found = scene(entries, told, room=Room(window, keep_tokens=keep))
    sizes = [found.whole().tokens, *(shape.tokens for shape in found.shapes(0).values())]
    assert sizes == sorted(sizes, reverse=True)
