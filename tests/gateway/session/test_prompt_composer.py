"""Prompts of a session: what it is told once, when its cache is cold, what all of it would cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.gateway.session.prompt_composer import PromptComposer
from lore.gateway.session.session_state import ComposedPrompt
from lore.memory import Memory
from lore.records import ClientSession, Dialogue, Entry, Injection, PromptState, TokenUse
from lore.settings import load
from lore.text.tokens import count
from tests.context.dialogues import plain_turn, requests
from tests.fakes import FakeEmbedder, FixedClock
from tests.gateway.session.test_session_store import entry, exchange, talk, words

TALK = ClientSession("s-1", "claude-code", "/code/almanac")
PARTS = ("clock", "tide", "moon", "press", "index", "cover", "chart", "ledger")
USED = TokenUse(cache_write_tokens=400, output_tokens=9)


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    config = load({}, home=tmp_path / "home").settings
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def said(entries: list[Entry]) -> Dialogue:
    return Dialogue("claude-sonnet-4-5", tuple(entries), fixed_chars=100)


def used(composer: PromptComposer, dialogue: Dialogue) -> ComposedPrompt:
    """Compose a prompt that goes out."""
    composed = composer.compose(TALK, dialogue)
    composer.mark_sent(TALK, composed)
    return composed


def test_knowledge_is_chosen_at_the_start_and_kept_until_a_bust(memory: Memory):
    composer = PromptComposer(memory)
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    first = used(composer, said(talk(1)[:1]))
    memory.remember("Deploys go through ops/other.sh now", kind="decision", project=TALK.project)
    assert "ops/deploy.sh" in first.knowledge
    assert composer.compose(TALK, said(talk(2)[:5])).knowledge == first.knowledge


@pytest.mark.parametrize(("window", "most"), [(200_000, 1_000), (3_000, 150), (20, 0)])
def test_knowledge_is_limited_to_a_twentieth_of_a_small_window(
    tmp_path: Path, clock: FixedClock, window: int, most: int
):
    prices = (f"claude-sonnet-4-5 input=1 output=5 window={window}",)
    config = replace(load({}, home=tmp_path / "home").settings, prices=prices)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        for n in range(40):
            fact = f"Rule {n}: {PARTS[n % 8]} number {n} is deployed by ops/{n}.sh, never by hand"
            memory.remember(fact, kind="decision", project=TALK.project)
        knowledge = PromptComposer(memory).compose(TALK, said(talk(1)[:1])).knowledge
    assert bool(knowledge) is bool(most)
    assert count(knowledge) <= most


def test_long_session_without_memory_gets_no_knowledge(memory: Memory):
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    assert not PromptComposer(memory).compose(TALK, said(talk(250))).knowledge


def test_session_without_knowledge_gets_none_after_a_restart(memory: Memory):
    assert not used(PromptComposer(memory), said(talk(1)[:1])).knowledge
    memory.database.write(lambda db: db.rows("SELECT 1"))
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    assert not PromptComposer(memory).compose(TALK, said(talk(2)[:5])).knowledge


def test_cold_session_gets_current_knowledge(memory: Memory, clock: FixedClock):
    composer, dialogue = PromptComposer(memory), said(talk(1)[:1])
    composer.record_usage(TALK, dialogue, used(composer, dialogue), USED)
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    assert not composer.compose(TALK, dialogue).knowledge
    clock.advance(seconds=301)
    assert "ops/deploy.sh" in composer.compose(TALK, dialogue).knowledge


def test_subagent_gets_no_knowledge(memory: Memory):
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    helper = ClientSession("s-1/agent-2", "claude-code", TALK.project, "s-1")
    assert not PromptComposer(memory).compose(helper, said(talk(1)[:1])).knowledge


def test_cache_is_cold_after_its_lifetime(memory: Memory, clock: FixedClock):
    composer = PromptComposer(memory)
    dialogue = said(talk(1)[:1])
    composed = used(composer, dialogue)
    assert composer.cache_left_s(TALK) is None
    composer.record_usage(TALK, dialogue, composed, USED)
    clock.advance(seconds=100)
    assert composer.cache_left_s(TALK) == 200.0
    assert not composer.compose(TALK, dialogue).cold
    clock.advance(seconds=201)
    assert composer.cache_left_s(TALK) is None
    assert composer.compose(TALK, dialogue).cold


def test_raised_floor_survives_a_restart(memory: Memory):
    PromptComposer(memory).raise_floor(TALK, 210_345, 200_000)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    again = PromptComposer(memory)
    again.compose(TALK, said(talk(8)))
    assert "Layer" in again.describe(TALK, said(talk(8)))
    assert again.store.load(TALK).pins.floor == 2


def test_cost_without_lore_is_at_least_the_cost_of_the_prompt(memory: Memory):
    composer = PromptComposer(memory)
    dialogue = said(talk(4))
    composed = composer.compose(TALK, dialogue)
    without = composer.record_usage(TALK, dialogue, composed, USED)
    assert without.input_tokens >= USED.input_tokens


def test_failing_store_costs_no_session_its_prompt(memory: Memory):
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    memory.database.full = True
    assert "ops/deploy.sh" in PromptComposer(memory).compose(TALK, said(talk(1)[:1])).knowledge


def test_notes_on_omitted_entries_are_dropped(tmp_path: Path, clock: FixedClock):
    config = replace(load({}, home=tmp_path).settings, context_max_layer0_tokens=2_000)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        composer, entries = PromptComposer(memory), talk(60)
        for end, note in ((1, "An old note."), (len(entries) - 3, "A new note.")):
            noted = composer.compose(TALK, said(entries[:end]), note=Injection(note))
            composer.mark_sent(TALK, noted)
        composer.record(TALK, entries)
        memory.distill(TALK.session)
        composed = composer.compose(TALK, said(entries))
    assert composed.plan.busts
    assert composed.plan.start
    assert list(composed.notes) == [entries[-4].key]


PORT = "The staging port is 5436"


def asked_for_port(memory: Memory) -> Injection:
    """Return what a session is told of the port, if it does not count as told."""
    memory.database.write(lambda db: db.rows("SELECT 1"))
    return memory.prompts.for_prompt(
        "What is the staging port?",
        session=TALK.session,
        project=TALK.project,
        threshold=0.0,
        counts=False,
    )


@pytest.mark.parametrize("restarts", [False, True])
def test_memory_of_a_dropped_note_may_be_given_again(
    tmp_path: Path, clock: FixedClock, restarts: bool
):
    config = replace(load({}, home=tmp_path).settings, context_max_layer0_tokens=2_000)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        composer, entries = PromptComposer(memory), talk(60)
        compose = partial(composer.compose, TALK, gives_memory=False)
        memory.remember(PORT, project=TALK.project)
        composer.mark_sent(TALK, compose(said(entries[:1]), note=asked_for_port(memory)))
        assert not asked_for_port(memory).text
        composer.record(TALK, entries)
        memory.distill(TALK.session)
        if restarts:
            composer = PromptComposer(memory)
            compose = partial(composer.compose, TALK, gives_memory=False)
        bust = compose(said(entries))
        assert (bust.plan.busts, bust.notes) == (True, {})
        assert not asked_for_port(memory).text  # It has not gone out yet.
        composer.mark_sent(TALK, bust)
        again = asked_for_port(memory)
        assert PORT in again.text
        more = [*entries, *exchange(60)]
        told = compose(said(more[:-3]), note=again)
        composer.mark_sent(TALK, told)
        assert PORT in told.notes[more[-4].key]
        assert not asked_for_port(memory).text


def test_knowledge_of_a_bust_replaces_notes_with_the_same_memory(tmp_path: Path, clock: FixedClock):
    config = replace(load({}, home=tmp_path).settings, context_max_layer0_tokens=2_000)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        composer, entries = PromptComposer(memory), talk(60)
        first = said(entries[:1])
        composer.record_usage(TALK, first, used(composer, first), USED)
        memory.remember(PORT, kind="decision", project=TALK.project)
        end = len(entries) - 3
        noted = composer.compose(TALK, said(entries[:end]), note=asked_for_port(memory))
        composer.mark_sent(TALK, noted)
        assert PORT in noted.notes[entries[end - 1].key]
        composer.record(TALK, entries)
        memory.distill(TALK.session)
        bust = composer.compose(TALK, said(entries))
        assert bust.plan.busts
        assert PORT in bust.knowledge
        assert not bust.notes
        composer.mark_sent(TALK, bust)
        assert not asked_for_port(memory).text
        after = composer.compose(TALK, said(entries))
        assert (after.knowledge, after.notes) == (bust.knowledge, {})


def test_memory_in_the_prompt_is_not_given_again(tmp_path: Path, clock: FixedClock):
    config = replace(load({}, home=tmp_path).settings, context_max_layer0_tokens=2_000)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        composer, entries = PromptComposer(memory), talk(60)
        compose = partial(composer.compose, TALK, gives_memory=False)
        composer.mark_sent(TALK, compose(said(entries[:1])))
        memory.remember(PORT, project=TALK.project)
        end = len(entries) - 3
        composer.mark_sent(TALK, compose(said(entries[:end]), note=asked_for_port(memory)))
        composer.record(TALK, entries)
        memory.distill(TALK.session)
        bust = compose(said(entries))
        composer.mark_sent(TALK, bust)
        assert bust.plan.busts
        assert PORT in bust.notes[entries[end - 1].key]
        assert not asked_for_port(memory).text


SUM_UP = entry("user", words("CRITICAL: Respond with TEXT ONLY. Sum up."))
BOTH_SIZES = pytest.mark.parametrize("tokens", [120_000, 250_000])
"""Below and above what the model can read, which is 200,000."""


def long_talk(tokens: int) -> list[Entry]:
    """Return a talk of about so many tokens, nearly all of them in outputs of tools."""
    found: list[Entry] = []
    for n in range(tokens // 1_000):
        asked, called, given, answered = exchange(n)
        given = replace(given, blocks=(replace(given.blocks[0], chars=3_800),))
        found += [asked, called, given, answered]
    return [*found, *exchange(9_999)[:1]]


def billed(chars: int) -> TokenUse:
    """Return what a provider reports that counts a token for four characters."""
    return TokenUse(cache_write_tokens=chars // 4, output_tokens=9)


@BOTH_SIZES
def test_compaction_gets_the_whole_dialogue(memory: Memory, tokens: int):
    plan = PromptComposer(memory).compose_full(TALK, said([*long_talk(tokens), SUM_UP])).plan
    assert (plan.layer, plan.start, plan.prefix, plan.annotated) == (0, 0, (), frozenset())


@BOTH_SIZES
def test_strategy_off_omits_nothing(tmp_path: Path, clock: FixedClock, tokens: int):
    config = replace(load({}, home=tmp_path).settings, context_strategy="off")
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        composed = PromptComposer(memory).compose(TALK, said(long_talk(tokens)), min_layer=2)
    plan = composed.plan
    assert (plan.layer, plan.start, plan.prefix, plan.annotated) == (0, 0, (), frozenset())
    assert (plan.state, plan.busts) == (PromptState(), False)
    assert composed.whole_tokens >= tokens


@BOTH_SIZES
def test_private_mode_omits_nothing(memory: Memory, tokens: int):
    composer = PromptComposer(memory)
    composer.sessions.begin_private_mode(TALK)
    for composed in (
        composer.compose(TALK, said(long_talk(tokens)), min_layer=2),
        composer.compose_full(TALK, said([*long_talk(tokens), SUM_UP])),
    ):
        plan = composed.plan
        assert composed.is_private
        assert (plan.layer, plan.start, plan.prefix, plan.annotated) == (0, 0, (), frozenset())


@BOTH_SIZES
def test_compaction_of_a_session_beyond_the_window_is_shortened(
    tmp_path: Path, clock: FixedClock, tokens: int
):
    config = replace(load({}, home=tmp_path).settings, context_max_layer0_tokens=20_000)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        composer, entries = PromptComposer(memory), long_talk(tokens)
        composer.record(TALK, entries)
        memory.distill(TALK.session)
        last = used(composer, said(entries))
        assert last.plan.start
        composer.record_usage(TALK, said(entries), last, billed(last.chars))
        composed = composer.compose_full(TALK, said([*entries, SUM_UP]))
    if tokens < 200_000:
        assert (composed.plan.layer, composed.plan.start) == (0, 0)
        return
    assert composed.plan.tokens < 200_000 < composed.whole_tokens
    assert (composed.plan.start, composed.plan.prefix) == (last.plan.start, last.plan.prefix)
    assert composed.plan.annotated == last.plan.annotated
    assert not composed.plan.busts


def test_private_turn_does_not_calibrate_later_turns(memory: Memory):
    composer, entries = PromptComposer(memory), long_talk(20_000)
    for end in (37, 41):
        composed = composer.compose(TALK, said(entries[:end]))
        composer.record_usage(TALK, said(entries[:end]), composed, billed(composed.chars))
    before = composer.compose(TALK, said(entries)).whole_tokens
    composer.sessions.begin_private_mode(TALK)
    for end in (45, 49):
        composed = composer.compose(TALK, said(entries[:end]))
        without = composer.record_usage(TALK, said(entries[:end]), composed, billed(50_000))
        assert without.input_tokens >= 12_500
    composer.sessions.end_private_mode(TALK, said(entries[:49]))
    after = composer.compose(TALK, said(entries))
    assert after.whole_tokens == before
    composer.record_usage(TALK, said(entries), after, billed(after.chars))
    memory.database.write(lambda db: db.rows("SELECT 1"))
    assert composer.store.load(TALK).measured.tokens_per_char == pytest.approx(0.25, rel=0.1)


def test_unused_plan_leaves_the_session_unchanged(tmp_path: Path, clock: FixedClock):
    config = replace(load({}, home=tmp_path).settings, context_max_layer0_tokens=2_000)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        composer, entries = PromptComposer(memory), talk(60)
        first = said(entries[:1])
        composer.record_usage(TALK, first, used(composer, first), USED)
        composer.record(TALK, entries)
        memory.distill(TALK.session)
        late = composer.compose(TALK, said(entries))
        assert (late.plan.busts, bool(late.plan.layer)) == (True, True)
        again = composer.compose(TALK, said(entries))
        assert (again.plan, again.notes) == (late.plan, late.notes)
        snapshot = composer.compose_from_cache(TALK, said(entries))
        assert snapshot is not None
        assert snapshot.plan.busts
        composer.mark_sent(TALK, snapshot)
        after = composer.compose(TALK, said(entries))
        assert (after.plan.busts, after.plan.start) == (False, snapshot.plan.start)


def test_unsent_note_is_given_once_with_the_next_prompt(memory: Memory):
    composer, entries = PromptComposer(memory), talk(2)
    memory.remember("The staging port is 5436", project=TALK.project)

    def noted(count: int) -> ComposedPrompt:
        found = memory.prompts.for_prompt(
            "What is the staging port?",
            session=TALK.session,
            project=TALK.project,
            threshold=0.0,
            counts=False,
        )
        return composer.compose(TALK, said(entries[:count]), note=found, gives_memory=False)

    late = noted(1)
    assert "5436" in late.notes[entries[0].key]
    assert noted(1).notes == late.notes
    snapshot = composer.compose(TALK, said(entries[:1]), gives_memory=False)
    assert not snapshot.notes
    composer.mark_sent(TALK, snapshot)
    assert not noted(1).notes
    told = noted(5)
    assert list(told.notes) == [entries[4].key]
    composer.mark_sent(TALK, told)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    assert noted(5).notes == told.notes
    assert not memory.prompts.for_prompt(
        "What is the staging port?", session=TALK.session, project=TALK.project, threshold=0.0
    ).text


def test_unsent_knowledge_may_be_given_in_a_note(memory: Memory):
    fact = "The staging port is 5436"
    memory.remember(fact, project=TALK.project)
    composer = PromptComposer(memory)
    assert fact in composer.compose(TALK, said(talk(1)[:1])).knowledge
    memory.database.write(lambda db: db.rows("SELECT 1"))
    found = memory.prompts.for_prompt(
        "What is the staging port?", session=TALK.session, project=TALK.project, threshold=0.0
    )
    assert fact in found.text


def test_late_plan_does_not_undo_later_changes(memory: Memory):
    composer, entries = PromptComposer(memory), talk(2)
    first, second = composer.compose(TALK, said(entries[:1])), None
    composer.raise_floor(TALK, 210_345, 200_000)
    second = composer.compose(TALK, said(entries[:5]), note=Injection("A note."))
    composer.mark_sent(TALK, second)
    composer.sessions.begin_private_mode(TALK)
    composer.mark_sent(TALK, first)
    assert composer.compose(TALK, said(entries[:5])).is_private
    composer.sessions.end_private_mode(TALK, said(entries[:1]))
    again = composer.compose(TALK, said(entries[:5]))
    assert again.notes == second.notes
    assert again.plan.state.floor == 2


LEDGER = "The ledger is closed on Fridays"


def shortened(
    memory: Memory, composer: PromptComposer, *, between: str = ""
) -> list[ComposedPrompt]:
    """Return a session's first prompt and the one that busts, by which time it knows more."""
    entries = talk(60)
    first = replace(said(entries[:1]), fixed_chars=50_000)
    begun = used(composer, first)
    composer.record_usage(TALK, first, begun, billed(begun.chars))
    composer.record(TALK, entries)
    memory.distill(TALK.session)
    if between:
        memory.remember(between, kind="decision", project=TALK.project)
    return [begun, used(composer, replace(said(entries), fixed_chars=50_000))]


@pytest.fixture
def capped(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    """Open a memory that shortens prompts early."""
    config = replace(load({}, home=tmp_path).settings, context_max_layer0_tokens=2_000)
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def test_knowledge_of_a_bust_is_measured(capped: Memory):
    capped.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    composer = PromptComposer(capped)
    composer.mark_passthrough(TALK)
    bare, busting = shortened(capped, composer)
    assert (bare.bare, bare.knowledge) == (True, "")
    assert busting.plan.busts
    assert "ops/deploy.sh" in busting.knowledge
    after = composer.compose(TALK, replace(said(talk(60)), fixed_chars=50_000))
    assert not after.plan.busts
    assert busting.plan.tokens == after.plan.tokens


def test_bust_chooses_new_knowledge(capped: Memory):
    capped.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    composer = PromptComposer(capped)
    begun, busting = shortened(capped, composer, between=LEDGER)
    assert LEDGER not in begun.knowledge
    assert (busting.cold, busting.plan.busts) == (False, True)
    assert LEDGER in busting.knowledge
    after = composer.compose(TALK, replace(said(talk(60)), fixed_chars=50_000))
    assert (after.knowledge, after.plan.busts) == (busting.knowledge, False)
    capped.database.write(lambda db: db.rows("SELECT 1"))
    again = PromptComposer(capped).compose(TALK, replace(said(talk(60)), fixed_chars=50_000))
    assert again.knowledge == busting.knowledge


def test_equal_knowledge_stays_at_a_bust(capped: Memory):
    capped.remember("Deploys go through ops/deploy.sh", kind="decision", project=TALK.project)
    begun, busting = shortened(capped, PromptComposer(capped))
    assert busting.plan.busts
    assert busting.knowledge == begun.knowledge
    assert busting.change is not None
    assert not any(one.text for one in busting.change.injections)


def test_bust_ends_a_bare_session_without_knowledge(capped: Memory):
    composer = PromptComposer(capped)
    composer.mark_passthrough(TALK)
    bare, busting = shortened(capped, composer)
    assert [bare.bare, busting.bare] == [True, False]
    assert [bare.knowledge, busting.knowledge] == ["", ""]


def first_bust(memory: Memory, *, cached: bool) -> int:
    """Return how long the prompt of a session is when it is first cut to save money."""
    composer = PromptComposer(memory)
    client = replace(TALK, session=f"cached-{cached}")
    before = 0
    for n in range(1, 200):
        dialogue = said(talk(12 * n))
        composed = composer.compose(client, dialogue)
        composer.mark_sent(client, composed)
        if composed.plan.why == "cost":
            return composed.whole_tokens
        tokens = composed.whole_tokens
        use = TokenUse(cache_read_tokens=before, cache_write_tokens=tokens - before)
        composer.record_usage(client, dialogue, composed, use if cached else TokenUse(tokens))
        composer.record(client, dialogue.entries)
        if composer.claim_distillation(composed):
            memory.distill(client.session)
        before = tokens
    raise AssertionError


def test_a_provider_that_reports_no_cache_reads_is_sent_shorter_prompts(memory: Memory):
    assert first_bust(memory, cached=False) < first_bust(memory, cached=True)


SMALL_WINDOW_TOKENS = 12_000


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    fixed_chars=st.integers(0, 16_000),
    turns=st.lists(st.tuples(st.integers(0, 3), st.integers(200, 2_400)), min_size=30, max_size=40),
)
def test_tiers_work_on_a_window_of_12_000_tokens(
    fixed_chars: int, turns: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
):
    prices = (f"claude-sonnet-4-5 input=3 output=15 window={SMALL_WINDOW_TOKENS}",)
    config = load({}, home=tmp_path_factory.mktemp("home")).settings
    config = replace(config, prices=prices, context_strategy="tiered")
    entries = [
        one
        for n, (steps, chars) in enumerate(turns)
        for one in plain_turn(n, steps=steps, chars=chars)
    ]
    plans = []
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        composer = PromptComposer(memory)
        for end in requests(entries):
            dialogue = replace(said(entries[:end]), fixed_chars=fixed_chars)
            composed = used(composer, dialogue)
            plans.append(composed.plan)
            tokens = composed.chars // 4
            composer.record_usage(TALK, dialogue, composed, TokenUse(cache_write_tokens=tokens))
            composer.record(TALK, entries[: end + 1])
            if composer.claim_distillation(composed):
                memory.distill(TALK.session)
    assert all(plan.layer <= 1 and not plan.notes for plan in plans)
    assert all(plan.tokens <= 0.75 * SMALL_WINDOW_TOKENS + fixed_chars / 4 for plan in plans)
    assert sum(plan.busts for plan in plans) < len(plans) / 3
    whole_tokens = sum(one.chars for one in entries) / 4
    if whole_tokens > SMALL_WINDOW_TOKENS:
        assert plans[-1].prefix


def test_a_session_is_distilled_again_only_once_it_has_grown(memory: Memory):
    composer = PromptComposer(memory)
    claimed, sizes = [], []
    for n in range(100, 160):
        composed = composer.compose(TALK, said(talk(n)))
        sizes.append(composed.whole_tokens)
        claimed.append(composer.claim_distillation(composed))
    assert sizes[-1] > 10_000
    assert 1 < sum(claimed) < len(claimed) / 4


def test_only_the_entries_after_a_recorded_request_are_converted(memory: Memory):
    composer, entries = PromptComposer(memory), talk(4)
    reminder = entry("system", words("Answer briefly."))
    assert composer.record(TALK, entries[:8]) > 1
    assert composer.record(TALK, [reminder, *entries[:8], reminder]) == 0
    assert composer.record(TALK, [reminder, *entries[:9]]) == 1
    forked = [*entries[:8], *talk(6)[-2:]]
    assert composer.record(TALK, forked) == composer.record(
        replace(TALK, session="s-2"), forked[8:]
    )
    stored = len(memory.sessions.messages(TALK.session))
    assert composer.record(TALK, entries[2:9]) > 1
    assert len(memory.sessions.messages(TALK.session)) == stored
