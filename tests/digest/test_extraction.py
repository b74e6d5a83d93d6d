"""A session becomes knowledge: once, in steps, and never from what a person took back."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import pytest

from lore.digest import extraction, undo
from lore.digest import fragment_edits as by_hand
from lore.digest.drafts import CurationContext
from lore.errors import LoreError
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.records import CurationResult, Extract, Segment
from lore.store import (
    consolidation,
    distillations,
    hard_delete,
    items,
    reversible_changes,
    sessions,
    vectors,
)
from lore.store.database import Connection
from lore.store.hard_delete import ForgetSelection
from tests.digest.world import ScriptedSummarizer, World, fact
from tests.fakes import FakeEmbedder
from tests.store.samples import count_vectors


def forget(id_: str, now: datetime, db: Connection) -> list[str]:
    return hard_delete.forget(db, ForgetSelection((items.resolve(db, id_).n,)), now=now)


LASTING = "We switched from npm to pnpm in March."


def test_messages_become_fragments_with_sources(world: World):
    said = world.say(LASTING)
    made = world.curate()
    kept = world.standing()
    assert [one.content for one in kept] == [LASTING]
    assert made.stored == (kept[0].id,)
    assert kept[0].source_messages == (said,)
    assert (kept[0].origin, kept[0].kind) == ("user", "decision")
    assert kept[0].session_id == world.messages()[0].session_id


def test_a_session_is_curated_once(world: World):
    world.say(LASTING)
    world.curate()
    assert world.curate() == CurationResult(world.messages()[0].session_id)
    assert world.contents() == [LASTING]


def test_later_messages_are_curated_later(world: World):
    world.say(LASTING)
    world.curate()
    world.say("I prefer short commit messages without emojis.")
    assert len(world.curate().stored) == 1
    assert len(world.contents()) == 2


def test_the_last_exchange_of_a_session_that_goes_on_waits(world: World):
    world.say(LASTING)
    world.say("fine", role="assistant")
    world.say("I prefer short commit messages without emojis.")
    world.curate(idle_s=300)
    assert world.contents() == [LASTING]
    world.curate()
    assert len(world.contents()) == 2


def test_an_answer_has_the_question_of_an_earlier_exchange(world: World):
    world.say("Build the calendar, please.")
    asked = world.say(
        "1. **Rooms**: Should the calendar show the numbers of the rooms?\n2. Which colors?",
        role="assistant",
    )
    world.curate()
    said = world.say("1. no, it only shows how many rooms are taken on a day in `calendar.ex`")
    world.say("Let me check the code.", role="assistant")
    world.curate()
    (kept,) = world.standing()
    assert kept.content == (
        "Rooms: Should the calendar show the numbers of the rooms?"
        " no, it only shows how many rooms are taken on a day in `calendar.ex`"
    )
    assert set(kept.source_messages) == {asked, said}
    assert kept.origin == "assistant"  # the words of the agent are in it


def test_empty_messages_are_skipped(world: World):
    world.say("<system-reminder>x</system-reminder>")
    world.curate()
    with world.database.read() as db:
        n = sessions.get_session_number(db, "s")
        assert distillations.curated_up_to(db, n) == world.messages()[-1].ordinal


def test_idle_sessions_are_due(world: World):
    world.say("hello")
    with world.database.read() as db:
        assert extraction.due_sessions(db, now=world.clock()) == []
        later = world.clock() + timedelta(seconds=300)
        assert len(extraction.due_sessions(db, now=later)) == 1
    world.curate()
    with world.database.read() as db:
        assert extraction.due_sessions(db, now=later) == []


def test_a_session_that_goes_on_is_due_after_enough_requests(world: World):
    for n in range(4):
        world.say(f"request {n}")
        world.say("done", role="assistant")
    with world.database.read() as db:
        assert extraction.due_sessions(db, now=world.clock(), turns=4) == []
        assert len(extraction.due_sessions(db, now=world.clock(), turns=3)) == 1


def test_a_failed_extraction_loses_nothing(world: World):
    world.say(LASTING)

    def fail(_: Segment) -> list[Extract]:
        msg = "the chat is away"
        raise LoreError(msg)

    with pytest.raises(LoreError):
        world.curate(fail)
    assert world.contents() == []
    world.curate()
    assert world.contents() == [LASTING]


def test_a_failure_in_the_middle_keeps_what_came_before(world: World):
    for n in range(3):
        world.say(f"request {n} " + "word " * 1_200)
        world.say("done", role="assistant")
    read: list[Segment] = []

    def once(exchange: Segment) -> list[Extract]:
        read.append(exchange)
        if len(read) == 2:
            msg = "killed"
            raise LoreError(msg)
        return [fact(f"learned {exchange.messages[0].text[:9]}")]

    with pytest.raises(LoreError):
        world.curate(once)
    assert world.contents() == ["learned request 0"]
    world.curate(once)
    assert world.contents() == ["learned request 0", "learned request 1", "learned request 2"]


def test_two_processes_do_the_work_of_one(world: World):
    world.say(LASTING)

    def slow(_: Segment) -> list[Extract]:
        world.curate()
        return [fact("too late")]

    assert world.curate(slow).stored == ()
    assert world.contents() == [LASTING]


def test_short_exchanges_are_read_together_and_long_ones_alone(world: World):
    for n in range(3):
        world.say(f"short request {n}")
        world.say("done", role="assistant")
    world.say("long " + "word " * 1_500)
    summarizer = ScriptedSummarizer(lambda _: [])
    means = world.means()
    extraction.curate_session(
        world.database, "s", type(means)(summarizer, means.embedder, means.nearest)
    )
    assert [len(one.messages) for one in summarizer.asked] == [6, 1]


def test_a_fragment_has_its_vector_at_once(world: World):
    world.learn(fact("The port of the database is 5432."))
    with world.database.read() as db:
        embedder_n = vectors.find_embedder(db, "fake")
        assert embedder_n is not None
        assert count_vectors(db, embedder_n) == 1


def test_curation_works_without_an_embedder(world: World):
    world.embedder.dimension = 0
    world.say(LASTING)
    world.curate(OfflineSummarizer().extract)
    world.say(LASTING, session="t")
    world.curate(OfflineSummarizer().extract, session="t")
    kept = world.standing()
    assert [one.content for one in kept] == [LASTING]
    assert len(kept[0].source_messages) == 2


def test_deleted_fragment_is_not_extracted_again_from_the_same_messages(world: World):
    world.say(LASTING)
    made = world.curate()
    by_hand.delete(world.database, made.stored[0])
    world.database.write(lambda db: db.run("DELETE FROM curations"))
    assert world.curate().refused == 1
    assert world.contents() == []
    undo.undo(world.database, made.stored[0])
    assert world.contents() == [LASTING]


def test_pruned_fragment_may_be_learned_again(world: World):
    world.say(LASTING)
    made = world.curate()

    def prune(db: Connection) -> None:
        n = items.resolve(db, made.stored[0]).n
        recorder = consolidation.step_recorder(consolidation.begin_cycle(db, [], now=world.clock()))
        reversible_changes.hide_fragment(db, n, now=world.clock(), recorder=recorder)
        db.run("DELETE FROM curations")

    world.database.write(prune)
    assert world.contents() == []
    assert len(world.curate().stored) == 1
    assert world.contents() == [LASTING]


def test_curating_the_same_messages_again_changes_nothing(world: World):
    world.say(LASTING)
    world.curate()
    before = world.standing()
    world.database.write(lambda db: db.run("DELETE FROM curations"))
    assert world.curate().known == 1
    assert world.standing() == before


def test_messages_forgotten_meanwhile_yield_no_fragment(world: World):
    said = world.say(LASTING)

    def forgotten(_: Segment) -> list[Extract]:
        world.database.write(partial(forget, said, world.clock()))
        return [fact("learned", said)]

    assert world.curate(forgotten).dropped == 1
    assert world.contents() == []


def test_forgetting_a_message_forgets_what_was_learned_of_it(world: World):
    said = world.say(LASTING)
    world.curate()
    world.database.write(partial(forget, said, world.clock()))
    assert world.contents() == []


def test_every_change_is_recorded_for_the_cycle(world: World):
    told: list[tuple[str, int]] = []
    world.say(LASTING)
    world.curate(recorder=lambda _db, step: told.append((step.verb, step.fragment_n or 0)))
    with world.database.read() as db:
        n = items.resolve(db, world.standing()[0].id).n
    assert told[0] == ("added", n)


def test_chat_output_is_redacted(world: World):
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    world.learn(fact(f"The deploy token is {key}."))
    assert key not in world.contents()[0]


class CountingEmbedder(FakeEmbedder):
    """Counts the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__(dimension=256)
        self.texts: list[str] = []

    def embed(self, texts, *, query=False):
        self.texts += texts
        return super().embed(texts, query=query)


def test_a_long_session_is_cut_by_the_vectors_that_its_messages_have(world: World):
    embedder = CountingEmbedder()
    means = CurationContext(OfflineSummarizer(), embedder, world.sources.nearest)
    for i in range(14):
        world.say(f"What about number {i}?")
        world.say(f"It is {i}.", role="assistant")
    with world.database.read() as db:
        ns = [one.n for one in vectors.pending_items(db, limit=100)]

    def put(db: Connection) -> None:
        vectors.set_active_embedder(db, embedder.identity, 256)
        n = vectors.ensure_embedder(db, embedder.identity, 256)
        vectors.put(db, n, ns[:-2], FakeEmbedder(dimension=256).embed([str(n) for n in ns[:-2]]))

    world.database.write(put)
    extraction.curate_session(world.database, "s", means)
    assert embedder.texts == ["What about number 0?\nIt is 0."]


def test_an_exchange_is_read_with_what_follows_it_even_what_waits(world: World):
    asked: list[Segment] = []

    def read(exchange: Segment) -> list[Extract]:
        asked.append(exchange)
        return []

    world.say("Which file wins?")
    world.say("`app.local.json` wins.", role="assistant")
    world.say("Are you sure?")
    world.curate(read, idle_s=300)
    assert [[one.text for one in each.later] for each in asked] == [["Are you sure?"]]
