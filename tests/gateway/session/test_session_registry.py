"""What this process knows of sessions: nothing of it outlives what was forgotten or silenced."""

from __future__ import annotations

import gc
import threading
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from lore.capture.message_capture import Conversation
from lore.errors import StoreBusy, StoreError
from lore.gateway.session.prompt_composer import PromptComposer
from lore.gateway.session.session_state import SessionRegistry
from lore.gateway.session.session_store import SNAPSHOT_FIELDS, SessionStore
from lore.memory import Memory
from lore.records import ClientSession, Distilled, Injection, Measured, SessionSnapshot
from lore.settings import load
from lore.store.dialogue_state import StateName
from tests.fakes import FakeEmbedder, FixedClock
from tests.gateway.session.test_prompt_composer import TALK, USED, memory, said
from tests.gateway.session.test_session_store import talk
from tests.waiting import PATIENCE_S

__all__ = ["memory"]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another process"])
def test_forgotten_texts_are_not_sent_again(memory: Memory, elsewhere: bool):
    composer = PromptComposer(memory)
    kept = memory.remember("The staging port is 5436", kind="decision", project=TALK.project)
    entries = talk(2)
    note = Injection("The staging port is 5436.")
    first = composer.compose(TALK, said(entries[:1]), note=note)
    composer.mark_sent(TALK, first)
    assert "5436" in first.knowledge
    if elsewhere:
        with Memory.open(config=memory.settings, embedder=FakeEmbedder()) as other:
            other.forget(id=kept.id)
    else:
        memory.forget(id=kept.id)
    again = composer.compose(TALK, said(entries[:5]))
    assert "5436" not in again.knowledge
    assert not again.notes
    composer.mark_sent(TALK, again)
    composer.record_usage(TALK, said(entries[:5]), again, USED)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    snapshot = composer.store.load(TALK)
    assert "5436" not in f"{snapshot.knowledge} {snapshot.notes}"


def test_marker_that_is_stored_late_is_cached_and_survives_a_restart(
    tmp_path: Path, clock: FixedClock
):
    config = load({}, home=tmp_path).settings
    release = threading.Event()
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        registry = SessionRegistry(SessionStore(memory))
        registry.save_markers(TALK, {"m1": "Port 5436."})
        holding_up = memory.database.submit(lambda _db: release.wait(PATIENCE_S))
        with pytest.raises(StoreBusy):
            registry.save_markers(TALK, {"m2": "Port 5437."}, timeout_s=0.01)
        from_cache = registry.markers(TALK, from_cache=True)
        release.set()
        holding_up.result(PATIENCE_S)
        found = registry.markers(TALK)
        memory.database.write(lambda db: db.rows("SELECT 1"))
        again = SessionRegistry(SessionStore(memory)).markers(TALK)
    assert from_cache == found == again == {"m1": "Port 5436.", "m2": "Port 5437."}


def test_loading_markers_keeps_those_saved_meanwhile(memory: Memory):
    kept = threading.Event()
    SessionStore(memory).save_markers(TALK, {"m1": "Port 5436."})

    class Slow(SessionStore):
        def load_markers(self, client: ClientSession) -> dict[str, str]:
            found = super().load_markers(client)
            kept.wait(PATIENCE_S)
            return found

    slow = SessionRegistry(Slow(memory))
    looking = threading.Thread(target=slow.markers, args=[TALK])
    looking.start()
    slow.save_markers(TALK, {"m2": "Port 5437."})
    kept.set()
    looking.join()
    assert slow.markers(TALK) == {"m1": "Port 5436.", "m2": "Port 5437."}


def test_markers_are_loaded_once(memory: Memory):
    asked: list[str] = []

    class Counting(SessionStore):
        def load_markers(self, client: ClientSession) -> dict[str, str]:
            asked.append(client.session)
            return super().load_markers(client)

    registry = SessionRegistry(Counting(memory))
    assert [registry.markers(TALK), registry.markers(TALK)] == [{}, {}]
    registry.save_markers(TALK, {"m1": "Port 5436."})
    assert registry.markers(TALK) == {"m1": "Port 5436."}
    assert len(asked) == 1


def test_marker_of_the_first_response_is_found_under_the_conversation_id(memory: Memory):
    registry, named = (
        SessionRegistry(SessionStore(memory)),
        replace(TALK, session="t-2", began=TALK.session),
    )
    assert registry.markers(TALK) == {}
    memory.database.full = True
    with pytest.raises(StoreError):
        registry.save_markers(TALK, {"m1": "Port 5436."})
    assert (
        registry.markers(named) == registry.markers(named, from_cache=True) == {"m1": "Port 5436."}
    )


class Pausing(SessionStore):
    """A desk whose answer on how a session stands is on its way for a while."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.pauses, self.has_read, self.may_go_on = False, threading.Event(), threading.Event()

    def generation_and_privacy(self, client: ClientSession) -> tuple[str, bool]:
        found = super().generation_and_privacy(client)
        if self.pauses:
            self.pauses = False
            self.has_read.set()
            self.may_go_on.wait(PATIENCE_S)
        return found


@pytest.mark.parametrize("ends", [False, True], ids=["begins", "ends"])
def test_older_read_does_not_end_private_mode(memory: Memory, ends: bool):
    store = Pausing(memory)
    registry = SessionRegistry(store)
    registry.get(TALK)
    if ends:
        registry.begin_private_mode(TALK)
    store.pauses = True
    reading = threading.Thread(target=registry.get, args=[TALK])
    reading.start()
    assert store.has_read.wait(PATIENCE_S)
    if ends:
        registry.end_private_mode(TALK, said(talk(1)))
    else:
        registry.begin_private_mode(TALK)
    store.may_go_on.set()
    reading.join()
    state = registry.find(TALK)
    assert state is not None
    assert state.snapshot.is_private is not ends


def test_older_generation_drops_no_texts(memory: Memory):
    store = Pausing(memory)
    registry = SessionRegistry(store)
    registry.get(TALK)
    store.pauses = True
    reading = threading.Thread(target=registry.get, args=[TALK])
    reading.start()
    assert store.has_read.wait(PATIENCE_S)
    memory.forget(id=memory.remember("The staging port is 5436").id)
    state = registry.get(TALK)
    generation = state.generation
    state.snapshot = replace(state.snapshot, knowledge="The staging port is 5437")
    store.may_go_on.set()
    reading.join()
    assert (state.generation, state.snapshot.knowledge) == (generation, "The staging port is 5437")


class Deferring(SessionStore):
    """A desk whose writes end when, and as, the test says."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.write_count: list[tuple[set[str], Future[None]]] = []

    def save(
        self,
        client: ClientSession,
        snapshot: SessionSnapshot,
        *,
        generation: str,
        names: Collection[StateName] = SNAPSHOT_FIELDS,
    ) -> Future[None]:
        del client, snapshot, generation
        self.write_count.append(({*names}, Future()))
        return self.write_count[-1][1]


@pytest.mark.parametrize(
    ("outcomes", "left"),
    [
        (("fails", "fails"), {"knowledge", "bare"}),
        (("ends", "fails"), {"knowledge", "bare"}),
        (("fails", "ends"), set()),
        (("ends", "ends"), set()),
        (("pends", "ends"), set()),
        (("fails", "pends"), {"knowledge", "bare"}),
    ],
)
def test_failed_write_is_repeated_with_the_next(
    memory: Memory, outcomes: tuple[str, str], left: set[str]
):
    store = Deferring(memory)
    registry = SessionRegistry(store)
    state = registry.get(TALK)
    registry.save(TALK, state)
    store.write_count[0][1].set_result(None)
    for change in ({"knowledge": "Port 5436."}, {"bare": True}):
        state.snapshot = replace(state.snapshot, **change)
        registry.save(TALK, state)
    assert [names for names, _ in store.write_count[1:]] == [{"knowledge"}, {"knowledge", "bare"}]
    for outcome, (_, pending_write) in zip(outcomes, store.write_count[1:], strict=True):
        if outcome == "fails":
            pending_write.set_exception(StoreBusy("locked"))
        elif outcome == "ends":
            pending_write.set_result(None)
    state.snapshot = replace(state.snapshot, measured=Measured(turns=2))
    registry.save(TALK, state)
    assert store.write_count[3][0] == {"measured"} | left


def test_unchanged_fields_are_not_written_again(memory: Memory):
    store = Deferring(memory)
    registry = SessionRegistry(store)
    state = registry.get(TALK)
    registry.save(TALK, state)
    store.write_count[0][1].set_result(None)
    registry.save(TALK, state)
    assert len(store.write_count) == 1


def test_pending_write_is_not_repeated(memory: Memory):
    store = Deferring(memory)
    registry = SessionRegistry(store)
    state = registry.get(TALK)
    registry.save(TALK, state)
    registry.save(TALK, state)
    assert len(store.write_count) == 1
    store.write_count[0][1].set_exception(StoreError("busy"))
    registry.save(TALK, state)
    assert len(store.write_count) == 2


def test_clear_caches_drops_texts_of_all_sessions(memory: Memory):
    composer = PromptComposer(memory)
    kept = memory.remember("The staging port is 5436", kind="decision", project=TALK.project)
    registry = SessionRegistry(composer.store)
    state = registry.get(TALK)
    state.snapshot = replace(state.snapshot, knowledge="The staging port is 5436")
    state.distilled = (Distilled("d", "The staging port is 5436", 9, 1),)
    registry.clear_caches(composer.store.generation())
    assert state.snapshot.knowledge
    assert state.distilled
    memory.forget(id=kept.id)
    registry.clear_caches(composer.store.generation())
    assert not any((state.snapshot.knowledge, state.distilled, state.markers))


def test_prompt_from_cache_has_no_forgotten_distillation(memory: Memory):
    composer, entries = PromptComposer(memory), talk(2)
    first = composer.compose(TALK, said(entries[:1]))
    composer.mark_sent(TALK, first)
    composer.record_usage(TALK, said(entries[:1]), first, USED)
    state = first.change.state if first.change else None
    assert state is not None
    state.distilled = (Distilled("d", "The staging port is 5436", 9, 1),)
    memory.forget(id=memory.remember("The staging port is 5436").id)
    assert composer.compose_from_cache(TALK, said(entries[:5])) is not None
    assert not state.distilled


def test_memory_of_dropped_texts_may_be_given_again(
    memory: Memory,
):
    composer, entries = PromptComposer(memory), talk(2)
    memory.remember("The staging port is 5436", project=TALK.project)

    def found() -> Injection:
        memory.database.write(lambda db: db.rows("SELECT 1"))
        question, whose = "What is the staging port?", TALK
        return memory.prompts.for_prompt(
            question, session=whose.session, project=whose.project, threshold=0.0, counts=False
        )

    first = composer.compose(TALK, said(entries[:1]), note=found(), gives_memory=False)
    composer.mark_sent(TALK, first)
    assert first.notes
    assert not found().text
    memory.forget(id=memory.remember("The ledger is closed on Fridays").id)
    composer.mark_sent(TALK, composer.compose(TALK, said(entries[:5]), gives_memory=False))
    assert "5436" in found().text


def kept_of(memory: Memory) -> str:
    """Return all that the store has of what sessions hold on to, as one text."""
    memory.database.write(lambda db: db.rows("SELECT 1"))
    with memory.database.read() as db:
        states = db.rows("SELECT name, value FROM dialogue_states")
        return str([*states, *db.rows("SELECT * FROM recall_markers")])


@pytest.mark.parametrize("turns", [0, 1])
def test_private_mode_of_another_process_applies_to_a_running_request(memory: Memory, turns: int):
    composer, entries = PromptComposer(memory), talk(2)
    for _ in range(turns):
        before = composer.compose(TALK, said(entries[:1]))
        composer.mark_sent(TALK, before)
        composer.record_usage(TALK, said(entries[:1]), before, USED)
        composer.record(TALK, entries[:1])
    under_way = composer.compose(TALK, said(entries[:5]), note=Injection("A note."))
    composer.mark_sent(TALK, under_way)
    with Memory.open(config=memory.settings, embedder=FakeEmbedder()) as other:
        PromptComposer(other).sessions.begin_private_mode(TALK)
    composer.sessions.save_markers(TALK, {"m1": "Port 5436."})
    composer.record_usage(TALK, said(entries[:5]), under_way, USED)
    assert composer.record(TALK, entries[:6]) == 0
    for entry in entries[1:6]:
        assert entry.key not in kept_of(memory)
    assert "5436" not in kept_of(memory)
    assert "amnesia" in kept_of(memory)


def test_cached_names_are_dropped_once_anything_is_forgotten(memory: Memory):
    composer = PromptComposer(memory)
    composer.record(TALK, talk(1))
    assert names_in(composer.store) >= {TALK.session, TALK.project}
    composer.sessions.clear_caches("another generation")
    assert not names_in(composer.store)


def names_in(store: SessionStore) -> set[str]:
    """Return the names that a store has in its caches, as the garbage collector finds them."""
    caches = [one for one in vars(store).values() if hasattr(one, "cache_clear")]
    found, queue = set[str](), [*caches]
    while queue:
        for one in gc.get_referents(queue.pop()):
            if isinstance(one, str):
                found.add(one)
            elif isinstance(one, dict | tuple | Conversation):
                queue.append(one)
    return {name for name in found if TALK.session in name or TALK.project in name}
