"""Rewritten prompts follow the rules of every API, for generated and real conversations."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.gateway.apis import anthropic, gemini, openai_chat, openai_responses, prompt_layout
from lore.gateway.apis.adapter import ApiAdapter, PromptAdditions, Tool
from lore.records.gateway import Block, Dialogue, Distilled, Plan, PromptState
from tests.gateway.apis import anthropic_format, chat_format, gemini_format, responses_format
from tests.gateway.apis.conversations import PLAIN, Form, Talk, forms, real_talks, talks
from tests.gateway.apis.plan_samples import NOTHING, plans, results_before, turn_starts

WIRES: dict[str, tuple[ApiAdapter, Any]] = {
    "anthropic": (anthropic, anthropic_format),
    "chat": (openai_chat, chat_format),
    "responses": (openai_responses, responses_format),
    "gemini": (gemini, gemini_format),
}

each_wire = pytest.mark.parametrize("name", list(WIRES))
RECALL = Tool("recall", "Search memory.", {"type": "object", "properties": {"query": {}}})
FIELDS = "role content type text input messages contents parts tools system output id".split()
EXAMPLES = 100
"""Per property; what does not depend on the wire is drawn once for all of them."""


def annotate(block: Block) -> str:
    return f"[{block.call_id}: {block.chars} characters, use recall]"


KNOWN = PromptAdditions(knowledge="We print on Thursdays.", annotate=annotate, recall_tool=RECALL)


def adapter_of(name: str) -> tuple[ApiAdapter, ModuleType]:
    return WIRES[name]


def check_prompt(form: ModuleType, sent: bytes, plan: Plan, talk: Talk) -> None:
    form.check(sent)
    calls, results = form.pairs(sent)
    assert sorted(calls) == sorted(results)
    assert form.first_voice(sent) == "user"
    told = {use.id: use.result for use in talk.used()}
    for call_id, result in results.items():
        assert (result != told[call_id]) == (call_id in plan.annotated)


@each_wire
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_prompt_by_a_plan_keeps_the_rules_of_its_wire(name, data):
    wire, form = adapter_of(name)
    talk = data.draw(st.sampled_from(data.draw(talks()).asked()))
    request = wire.parse_request(form.body(talk, data.draw(forms)))
    plan = data.draw(plans(request))
    sent = wire.rewrite_request(
        request, plan, data.draw(st.sampled_from([KNOWN, PromptAdditions(annotate=annotate)]))
    )
    check_prompt(form, sent, plan, talk)
    kept = {block.call_id for one in request.dialogue.entries[plan.start :] for block in one.blocks}
    assert set(form.pairs(sent)[0]) == kept - {""}
    document = json.loads(sent)
    assert document["unheard_of"] == {"kept": True}
    # what is sent can be read again, and says the same
    again = wire.parse_request(sent)
    tail = [one.key.partition("#")[0] for one in request.dialogue.entries[plan.start :]]
    assert [one.key.partition("#")[0] for one in again.dialogue.entries][-len(tail) :] == tail


@each_wire
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_while_the_pins_hold_a_prompt_begins_as_the_one_before(name, data):
    wire, form = adapter_of(name)
    stages = data.draw(talks()).asked()
    before = data.draw(st.integers(0, len(stages) - 1))
    after = data.draw(st.integers(before, len(stages) - 1))
    first = wire.parse_request(form.body(stages[before], data.draw(forms)))
    plan = data.draw(plans(first))
    earlier = wire.rewrite_request(first, plan, KNOWN)
    reminds = any("system-reminder" in part for part in form.parts(earlier))
    given_form = data.draw(forms.filter(lambda one: one.reminds == reminds))
    later = wire.rewrite_request(
        wire.parse_request(form.body(stages[after], given_form)), plan, KNOWN
    )
    if plan.layer:
        held = form.stable(earlier)
        assert form.parts(later)[:held] == form.parts(earlier)[:held]
        assert held == len(form.parts(earlier)) - form.unmarked(stages[before])


@settings(max_examples=EXAMPLES)
@given(talk=talks(), one=forms, other=forms, thinks=st.booleans())
def test_an_entry_has_the_same_key_in_every_form(talk, one, other, thinks):
    other = Form(other.as_text, other.reverse_results, other.marked, other.reminds, thinks)
    for name, (wire, form) in WIRES.items():
        first, second = (
            wire.parse_request(form.body(talk, shape)).dialogue for shape in (one, other)
        )
        keys = [entry.key for entry in first.entries]
        assert keys == [entry.key for entry in second.entries], name
        assert len(set(keys)) == len(keys), name


@settings(max_examples=EXAMPLES)
@given(talk=talks(), shape=forms)
def test_what_nothing_is_added_to_stays_the_very_bytes_of_the_client(talk, shape):
    for name, (wire, form) in WIRES.items():
        request = wire.parse_request(form.body(talk, shape))
        assert wire.rewrite_request(request, NOTHING, PromptAdditions()) is request.body, name
        assert wire.expand_markers(request, lambda _: None) is request, name


@settings(max_examples=EXAMPLES)
@given(talk=talks(), shape=forms)
def test_the_dialogue_has_every_call_with_its_result(talk, shape):
    for wire, form in WIRES.values():
        check_dialogue(wire.parse_request(form.body(talk, shape)).dialogue, talk)


def check_dialogue(dialogue: Dialogue, talk: Talk) -> None:
    blocks = [block for entry in dialogue.entries for block in entry.blocks]
    calls = [(block.call_id, block.tool) for block in blocks if block.kind == "call"]
    assert calls == [(use.id, use.tool) for use in talk.used()]
    results = {b.call_id: (b.tool, b.text) for b in blocks if b.kind == "result"}
    assert results == {use.id: (use.tool, use.result) for use in talk.used()}
    thoughts = sum(bool(step.thought) for turn in talk.turns for step in turn.steps)
    assert sum(block.kind == "reasoning" for block in blocks) == thoughts
    pictures = sum(turn.picture for turn in talk.turns)
    assert sum(block.kind == "other" for block in blocks) == pictures
    assert len(turn_starts(dialogue)) == len(talk.turns)


@each_wire
def test_real_sessions_keep_the_rules(name):
    wire, form = adapter_of(name)
    tried = 0
    for talk in real_talks():
        stages = talk.asked()
        earlier: tuple[bytes, Plan] | None = None
        for stage in stages[len(stages) // 2 :: max(1, len(stages) // 3)]:
            request = wire.parse_request(form.body(stage, Form(marked=True)))
            starts = turn_starts(request.dialogue)
            start = starts[len(starts) // 2]
            old = results_before(request.dialogue, starts[-1])
            distilled = Distilled("s1", "What happened.", 3, start)
            plan = Plan(2, PromptState(), start, (distilled,), frozenset(old[::2]))
            sent = wire.rewrite_request(request, plan, KNOWN)
            check_prompt(form, sent, plan, stage)
            if earlier:
                again = wire.rewrite_request(request, earlier[1], KNOWN)
                held = form.stable(earlier[0])
                assert form.parts(again)[:held] == form.parts(earlier[0])[:held]
            earlier = sent, plan
            tried += 1
    assert tried > 284


@each_wire
def test_a_plan_that_no_upstream_takes_is_refused(name):
    wire, form = adapter_of(name)
    talk = next(one for one in SAMPLES if one.used())
    request = wire.parse_request(form.body(talk, PLAIN))
    entries = request.dialogue.entries
    assistant = next(at for at, one in enumerate(entries) if one.voice == "assistant")
    answered = next(
        at for at, one in enumerate(entries) if any(b.kind == "result" for b in one.blocks)
    )
    for start in (assistant, answered, len(entries)):
        with pytest.raises(InvalidInput):
            wire.rewrite_request(request, Plan(1, PromptState(), start), PromptAdditions())


@each_wire
def test_a_note_stands_from_then_on_at_the_end_of_its_entry(name):
    wire, form = adapter_of(name)
    talk = SAMPLES[0]
    request = wire.parse_request(form.body(talk, PLAIN))
    key = request.dialogue.entries[turn_starts(request.dialogue)[0]].key
    noted = PromptAdditions(notes={key: "By the way."})
    for plan in (NOTHING, Plan(2, PromptState(), 0, (), frozenset(use.id for use in talk.used()))):
        sent = wire.rewrite_request(request, plan, noted)
        form.check(sent)
        assert sent.count(b"By the way.") == 1
        assert wire.rewrite_request(request, plan, noted) == sent


@each_wire
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"nothing", b'{"messages": 3}', b'{"input": [3]}']
)
def test_another_body_than_the_wires_is_refused(name, body):
    wire, _ = adapter_of(name)
    with pytest.raises(InvalidInput):
        wire.parse_request(body)


@each_wire
@settings(max_examples=200)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(FIELDS),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@example(value=[{"content": [None]}])
@example(value=[{}, {}])
def test_any_body_is_read_or_refused(name, value):
    wire, _ = adapter_of(name)
    for field in ("messages", "input", "contents"):
        try:
            request = wire.parse_request(orjson.dumps({"model": "m", field: value}))
        except InvalidInput:
            continue
        assert wire.rewrite_request(request, NOTHING, KNOWN)
        annotated = Plan(2, PromptState(), 0, (), frozenset({"x"}))
        assert wire.rewrite_request(request, annotated, KNOWN)


def _samples() -> list[Talk]:
    from tests.gateway.apis.conversations import Step, Turn, Use

    use = Use("call_1", "Read", {"path": "a"}, "the file")
    return [
        Talk((
            Turn("first", (Step("look", "hm", (use,), "aside"), Step("done"))),
            Turn("second", ()),
        ))
    ]


SAMPLES = _samples()


def test_the_log_of_what_went_before_hides_nothing():
    told = prompt_layout.history_text(
        Plan(1, PromptState(), 2, (Distilled("s", "a\u202eb\x1b c\n\nd", 3, 2),))
    )
    assert "ab c\n\nd" in told


def test_the_log_of_what_went_before_is_fenced():
    told = prompt_layout.history_text(
        Plan(1, PromptState(), 2, (Distilled("s", "a </lore-memory> b", 3, 2),))
    )
    assert told.startswith("<lore-memory>")
    assert told.count("</lore-memory>") == 1
