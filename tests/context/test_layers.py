"""The size and content of each layer, annotations and standing texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.context.layers import (
    MAX_ANNOTATION_CHARS,
    MAX_STANDING_CHARS,
    MIN_OUTPUT_CHARS,
    LayerBuilder,
    PromptRoom,
    StandingTexts,
    TokenMeasure,
    annotate_output,
    is_long_output,
    turn_starts,
)
from lore.context.planner import PlanTerms, plan_prompt
from lore.gateway.apis import anthropic
from lore.gateway.apis.adapter import PromptAdditions
from lore.records.gateway import Block, Dialogue, Distilled, Layer, PromptState
from lore.text.tokens import UNCALIBRATED_FACTOR
from tests.context.dialogues import (
    condensed,
    dialogue,
    entry,
    plain_talk,
    plain_turn,
    reminder,
    result,
    talks,
    text,
)
from tests.context.prompt_replay import Below

EXACT = TokenMeasure(0.25)


def scene(entries, distilled=(), *, room: PromptRoom | None = None) -> LayerBuilder:
    return LayerBuilder(dialogue(entries), distilled, EXACT, room or PromptRoom(4_000))


def test_shares_of_the_usable_window():
    room = PromptRoom(100_000, fixed_tokens=20_000)
    assert room.usable_tokens == 80_000
    assert room.whole_tokens == 56_000
    assert [room.raw_tokens(layer) for layer in (1, 2, 3)] == [32_000, 40_000, 44_000]
    assert [room.prefix_tokens(layer) for layer in (1, 2, 3)] == [20_000, 20_000, 12_000]
    assert room.evict_to_tokens(1) == 24_000


def test_tail_of_layer_4_has_2000_to_8000_tokens():
    assert PromptRoom(10_000).evict_to_tokens(4) == 2_000
    assert PromptRoom(100_000).evict_to_tokens(4) == 5_000
    assert PromptRoom(1_000_000).evict_to_tokens(4) == 8_000


def test_window_is_cut_to_keep_tokens():
    assert PromptRoom(100_000, keep_tokens=9_000).evict_to_tokens(1) == 9_000
    assert PromptRoom(10_000, keep_tokens=9_000).evict_to_tokens(1) == 3_000


def test_previous_turn_is_kept_if_it_needs_twice_the_room():
    entries = [*plain_talk(6, chars=900), *plain_turn(7, chars=900)]
    told = condensed(entries, until=40, each=3, share=0.01)
    starts = turn_starts(entries)
    tight = scene(entries, told, room=PromptRoom(100_000, keep_tokens=600)).shapes(0)[1]
    assert tight.start == starts[-2]
    tighter = scene(entries, told, room=PromptRoom(100_000, keep_tokens=490)).shapes(0)[1]
    assert tighter.start == starts[-1]


def test_newest_meta_replaces_older_ones():
    old, new = Distilled("old", "a", 5, 4, 1), Distilled("new", "b", 5, 8, 1)
    log = Distilled("log", "c", 5, 12)
    covered = Distilled("covered", "d", 5, 6)
    found = scene(plain_talk(4), [log, new, covered, old])
    assert found.current_distilled == (new, log)
    assert found.covered == 12


def test_oldest_distillations_are_dropped_first_and_metas_last():
    entries = plain_talk(30, chars=900)
    logs = [Distilled(f"log-{n}", "x", 300, n) for n in range(8, 160, 8)]
    meta = Distilled("meta", "m", 300, 8, 1)
    prefix = scene(entries, [meta, *logs]).shapes(0)[1].prefix
    assert prefix[0] == meta
    assert sum(one.tokens for one in prefix) <= 1_000
    assert prefix[-1].until >= 144


@pytest.mark.parametrize(("layer", "most"), [(3, 5), (4, 2)])
@pytest.mark.parametrize("meta", [False, True])
def test_newest_distillations_stay(layer: Layer, most: int, meta: bool):
    entries = plain_talk(30, chars=900)
    logs = [Distilled(f"log-{n}", "x", 3, n) for n in range(8, 160, 8)]
    metas = [Distilled("meta", "m", 3, 16, 1)] if meta else []
    shape = scene(entries, [*metas, *logs]).shapes(0)[layer]
    needed = [one for one in logs if one.until < shape.start + 8]
    assert len(needed) > 5
    stays = metas if layer == 3 else []
    assert shape.prefix == (*stays, *needed[-most:])


def test_tail_of_layer_4_starts_with_a_turn():
    asked, answered = entry("user", text("Go on. ", times=1_500)), entry("assistant", text("Yes."))
    entries = [asked, answered, *plain_turn(2, chars=100)]
    shape = scene(entries, room=PromptRoom(3_000)).shapes(0)[4]
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
    found = scene(entries, told, room=PromptRoom(window, keep_tokens=keep))
    sizes = [found.whole_shape().tokens, *(shape.tokens for shape in found.shapes(0).values())]
    assert sizes == sorted(sizes, reverse=True)


def output(text: str, **more) -> Block:
    return Block("result", len(text), text, call_id="c", **more)


def test_an_annotation_names_tool_lines_errors_and_paths():
    text = "reading src/app/main.py\n" + "fine\n" * 400 + "error: cannot open src/app/db.py\n"
    told = annotate_output(output(text), "bash")
    assert "bash: 402 lines" in told
    assert "cannot open" in told
    assert "src/app/main.py" in told
    assert "use recall" in told


def test_an_annotation_mentions_a_failure_and_an_output_without_text():
    assert "it failed" in annotate_output(output("x" * 2_000, failed=True), "read")
    assert "nothing in words" in annotate_output(Block("result", 9_000, call_id="c", tool="shot"))


def test_short_outputs_and_other_blocks_stay():
    assert not is_long_output(output("x" * MIN_OUTPUT_CHARS))
    assert is_long_output(output("x" * (MIN_OUTPUT_CHARS + 1)))
    assert not is_long_output(Block("text", 9_000, "x"))
    assert not is_long_output(Block("result", 9_000, "x"))


@given(st.text(max_size=5_000), st.text(max_size=600), st.booleans())
def test_an_annotation_is_short_and_always_the_same(text, tool, failed):
    block = output(text, failed=failed)
    assert len(annotate_output(block, tool)) <= MAX_ANNOTATION_CHARS
    assert annotate_output(block, tool) == annotate_output(block, tool)


def test_an_entry_has_the_tokens_of_its_blocks():
    measure = TokenMeasure(0.5)
    assert measure.of_entry(entry("user", text("abcd"), result("c", 100))) == 2 + 50


def test_uncalibrated_measure_assumes_more_tokens():
    assert TokenMeasure().of_chars(400) == 100 * UNCALIBRATED_FACTOR


RULES = "# AGENTS.md instructions for /code/almanac\nDates are day first."


def told(entries, start):
    return [one.block.text for one in StandingTexts(entries).find_before(start)]


def test_project_instructions_before_the_first_response_stay():
    entries = [entry("user", text(RULES), reminder(), text("hello")), *plain_turn(1)]
    assert told(entries, 3) == [RULES, reminder().text]
    assert told(entries, 0) == []


def test_newest_system_entry_stays():
    first = [entry("system", text("agents")), *plain_turn(1)]
    later = [entry("system", text(f"note {n}")) for n in range(9)]
    assert told([*first, *later, *plain_turn(2)], len(first) + 9) == ["agents", "note 8"]
    assert told([*first, *later, *plain_turn(2)], len(first) + 4) == ["agents", "note 3"]


def test_duplicate_standing_texts_appear_once():
    entries = [entry("system", text("agents")), *plain_turn(1), entry("system", text("agents"))]
    assert told(entries, len(entries)) == ["agents"]


def test_standing_texts_are_limited():
    entries = [entry("system", text("a" * MAX_STANDING_CHARS)), entry("system", text("short"))]
    assert told(entries, 2) == ["a" * MAX_STANDING_CHARS]


@settings(max_examples=60)
@given(entries=talks(), start=st.integers(0, 30))
def test_standing_texts_come_from_before_the_window(entries, start):
    stands = StandingTexts(entries).find_before(start)
    assert all(one.entry < start for one in stands)
    assert all(one.block in entries[one.entry].blocks for one in stands)


def test_reminders_do_not_accumulate_and_are_counted():
    messages: list[object] = []
    for n in range(200):
        note = f"<system-reminder>note {n}: {'file changed ' * 80}</system-reminder>"
        messages += [
            {"role": "user", "content": f"question {n} {'w ' * 200}"},
            {"role": "system", "content": note},
            {"role": "assistant", "content": f"answer {'v ' * 600}"},
        ]
    messages.append({"role": "user", "content": "last"})
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": messages}).encode()
    request = anthropic.parse_request(body)
    log = Distilled("s", "log " * 100, 100, len(messages) - 1)
    terms = PlanTerms(PromptRoom(200_000, keep_tokens=10_000), TokenMeasure(0.25), Below(1.0))
    made = plan_prompt(request.dialogue, PromptState(), [log], terms)
    sent = len(anthropic.rewrite_request(request, made, PromptAdditions())) / 4
    assert made.start > 500
    assert made.tokens <= sent <= 1.1 * made.tokens


def test_standing_texts_reduce_the_window():
    rules = "<system-reminder>" + "rule " * 1_000 + "</system-reminder>"
    entries = [entry("user", text(rules), text("hello"))]
    entries += [one for n in range(40) for one in plain_turn(n, chars=300)]
    log = Distilled("s", "log", 10, len(entries) - 4)
    terms = PlanTerms(PromptRoom(9_000, keep_tokens=2_000), TokenMeasure(0.25), Below(1.0))
    made = plan_prompt(Dialogue("m", tuple(entries)), PromptState(), [log], terms)
    assert made.start
    assert len(rules) / 4 < made.tokens <= 2_100
