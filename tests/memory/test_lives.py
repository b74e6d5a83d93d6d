"""What this process knows of sessions: nothing of it outlives what was forgotten or silenced."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from lore.errors import StoreBusy, StoreError
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.memory.conversing import HELD, Conversing
from lore.memory.lives import Lives
from lore.records import Distilled, Held, Injection, Measured, Speaker
from lore.settings import load
from lore.store.dialogues import Name
from tests.fakes import FakeEmbedder, FixedClock
from tests.memory.test_composing import TALK, USED, memory, said
from tests.memory.test_conversing import talk
from tests.waiting import PATIENCE_S

__all__ = ["memory"]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another process"])
def test_what_is_forgotten_is_not_said_again(memory: Memory, elsewhere: bool):
    composer = Composer(memory)
    kept = memory.remember("The staging port is 5436", kind="decision", project=TALK.project)
    entries = talk(2)
    note = Injection("The staging port is 5436.")
    first = composer.compose(TALK, said(entries[:1]), note=note)
    composer.use(TALK, first)
    assert "5436" in first.knowledge
    if elsewhere:
        with Memory.open(config=memory.settings, embedder=FakeEmbedder()) as other:
            other.forget(id=kept.id)
    else:
        memory.forget(id=kept.id)
    again = composer.compose(TALK, said(entries[:5]))
    assert "5436" not in again.knowledge
    assert not again.notes
    composer.use(TALK, again)
    composer.settle(TALK, said(entries[:5]), again, USED)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    held = composer.desk.held(TALK)
    assert "5436" not in f"{held.knowledge} {held.notes}"


def test_a_marker_that_is_kept_late_is_known_at_once_and_after_a_restart(
    tmp_path: Path, clock: FixedClock
):
    config = load({}, home=tmp_path).settings
    release = threading.Event()
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        lives = Lives(Conversing(memory))
        lives.keep_markers(TALK, {"m1": "Port 5436."})
        holding_up = memory.database.submit(lambda _db: release.wait(PATIENCE_S))
        with pytest.raises(StoreBusy):
            lives.keep_markers(TALK, {"m2": "Port 5437."}, within_s=0.01)
        at_hand = lives.markers(TALK, at_hand=True)
        release.set()
        holding_up.result(PATIENCE_S)
        found = lives.markers(TALK)
        memory.database.write(lambda db: db.rows("SELECT 1"))
        again = Lives(Conversing(memory)).markers(TALK)
    assert at_hand == found == again == {"m1": "Port 5436.", "m2": "Port 5437."}


def test_markers_that_are_looked_up_take_nothing_back_that_is_kept_meanwhile(memory: Memory):
    kept = threading.Event()
    Conversing(memory).keep_markers(TALK, {"m1": "Port 5436."})

    class Slow(Conversing):
        def markers(self, speaker: Speaker) -> dict[str, str]:
            found = super().markers(speaker)
            kept.wait(PATIENCE_S)
            return found

    slow = Lives(Slow(memory))
    looking = threading.Thread(target=slow.markers, args=[TALK])
    looking.start()
    slow.keep_markers(TALK, {"m2": "Port 5437."})
    kept.set()
    looking.join()
    assert slow.markers(TALK) == {"m1": "Port 5436.", "m2": "Port 5437."}


def test_a_session_without_markers_is_looked_up_once(memory: Memory):
    asked: list[str] = []

    class Counting(Conversing):
        def markers(self, speaker: Speaker) -> dict[str, str]:
            asked.append(speaker.session)
            return super().markers(speaker)

    lives = Lives(Counting(memory))
    assert [lives.markers(TALK), lives.markers(TALK)] == [{}, {}]
    lives.keep_markers(TALK, {"m1": "Port 5436."})
    assert lives.markers(TALK) == {"m1": "Port 5436."}
    assert len(asked) == 1


def test_a_marker_of_the_first_answer_is_known_by_the_later_name_of_a_talk(memory: Memory):
    lives, named = Lives(Conversing(memory)), replace(TALK, session="t-2", began=TALK.session)
    assert lives.markers(TALK) == {}
    memory.database.full = True
    with pytest.raises(StoreError):
        lives.keep_markers(TALK, {"m1": "Port 5436."})
    assert lives.markers(named) == lives.markers(named, at_hand=True) == {"m1": "Port 5436."}


class Pausing(Conversing):
    """A desk whose answer on how a session stands is on its way for a while."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.pauses, self.has_read, self.may_go_on = False, threading.Event(), threading.Event()

    def standing(self, speaker: Speaker) -> tuple[str, bool]:
        found = super().standing(speaker)
        if self.pauses:
            self.pauses = False
            self.has_read.set()
            self.may_go_on.wait(PATIENCE_S)
        return found


@pytest.mark.parametrize("ends", [False, True], ids=["begins", "ends"])
def test_amnesia_is_not_undone_by_what_was_read_before_it(memory: Memory, ends: bool):
    desk = Pausing(memory)
    lives = Lives(desk)
    lives.get(TALK)
    if ends:
        lives.begin_amnesia(TALK)
    desk.pauses = True
    reading = threading.Thread(target=lives.get, args=[TALK])
    reading.start()
    assert desk.has_read.wait(PATIENCE_S)
    if ends:
        lives.end_amnesia(TALK, said(talk(1)))
    else:
        lives.begin_amnesia(TALK)
    desk.may_go_on.set()
    reading.join()
    live = lives.find(TALK)
    assert live is not None
    assert live.held.amnesic is not ends


def test_texts_are_not_dropped_by_an_era_that_is_over(memory: Memory):
    desk = Pausing(memory)
    lives = Lives(desk)
    lives.get(TALK)
    desk.pauses = True
    reading = threading.Thread(target=lives.get, args=[TALK])
    reading.start()
    assert desk.has_read.wait(PATIENCE_S)
    memory.forget(id=memory.remember("The staging port is 5436").id)
    live = lives.get(TALK)
    era = live.era
    live.held = replace(live.held, knowledge="The staging port is 5437")
    desk.may_go_on.set()
    reading.join()
    assert (live.era, live.held.knowledge) == (era, "The staging port is 5437")


class Deferring(Conversing):
    """A desk whose writes end when, and as, the test says."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.writes: list[tuple[set[str], Future[None]]] = []

    def hold(
        self, speaker: Speaker, held: Held, *, era: str, names: Collection[Name] = HELD
    ) -> Future[None]:
        del speaker, held, era
        self.writes.append(({*names}, Future()))
        return self.writes[-1][1]


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
def test_what_could_not_be_written_is_written_with_the_next(
    memory: Memory, outcomes: tuple[str, str], left: set[str]
):
    desk = Deferring(memory)
    lives = Lives(desk)
    live = lives.get(TALK)
    lives.hold(TALK, live)
    desk.writes[0][1].set_result(None)
    for change in ({"knowledge": "Port 5436."}, {"bare": True}):
        live.held = replace(live.held, **change)
        lives.hold(TALK, live)
    assert [names for names, _ in desk.writes[1:]] == [{"knowledge"}, {"knowledge", "bare"}]
    for outcome, (_, writing) in zip(outcomes, desk.writes[1:], strict=True):
        if outcome == "fails":
            writing.set_exception(StoreBusy("locked"))
        elif outcome == "ends":
            writing.set_result(None)
    live.held = replace(live.held, measured=Measured(turns=2))
    lives.hold(TALK, live)
    assert desk.writes[3][0] == {"measured"} | left


def test_what_is_as_it_was_is_not_written_again(memory: Memory):
    desk = Deferring(memory)
    lives = Lives(desk)
    live = lives.get(TALK)
    lives.hold(TALK, live)
    desk.writes[0][1].set_result(None)
    lives.hold(TALK, live)
    assert len(desk.writes) == 1


def test_what_is_under_way_to_the_store_is_not_written_again(memory: Memory):
    desk = Deferring(memory)
    lives = Lives(desk)
    live = lives.get(TALK)
    lives.hold(TALK, live)
    lives.hold(TALK, live)
    assert len(desk.writes) == 1
    desk.writes[0][1].set_exception(StoreError("busy"))
    lives.hold(TALK, live)
    assert len(desk.writes) == 2


def test_texts_of_all_sessions_are_let_go_of_without_a_request(memory: Memory):
    composer = Composer(memory)
    kept = memory.remember("The staging port is 5436", kind="decision", project=TALK.project)
    lives = Lives(composer.desk)
    live = lives.get(TALK)
    live.held = replace(live.held, knowledge="The staging port is 5436")
    live.distilled = (Distilled("d", "The staging port is 5436", 9, 1),)
    lives.let_go(composer.desk.era())
    assert live.held.knowledge
    assert live.distilled
    memory.forget(id=kept.id)
    lives.let_go(composer.desk.era())
    assert not any((live.held.knowledge, live.distilled, live.markers))


def test_a_prompt_of_what_is_at_hand_has_no_log_of_what_is_forgotten(memory: Memory):
    composer, entries = Composer(memory), talk(2)
    first = composer.compose(TALK, said(entries[:1]))
    composer.use(TALK, first)
    composer.settle(TALK, said(entries[:1]), first, USED)
    live = first.step.live if first.step else None
    assert live is not None
    live.distilled = (Distilled("d", "The staging port is 5436", 9, 1),)
    memory.forget(id=memory.remember("The staging port is 5436").id)
    assert composer.compose_held(TALK, said(entries[:5])) is not None
    assert not live.distilled


def test_what_texts_told_that_were_dropped_as_something_else_was_forgotten_may_be_told_again(
    memory: Memory,
):
    composer, entries = Composer(memory), talk(2)
    memory.remember("The staging port is 5436", project=TALK.project)

    def found() -> Injection:
        memory.database.write(lambda db: db.rows("SELECT 1"))
        question, whose = "What is the staging port?", TALK
        return memory.for_prompt(
            question, session=whose.session, project=whose.project, threshold=0.0, counts=False
        )

    first = composer.compose(TALK, said(entries[:1]), note=found(), gives_memory=False)
    composer.use(TALK, first)
    assert first.notes
    assert not found().text
    memory.forget(id=memory.remember("The ledger is closed on Fridays").id)
    composer.use(TALK, composer.compose(TALK, said(entries[:5]), gives_memory=False))
    assert "5436" in found().text


def kept_of(memory: Memory) -> str:
    """Return all that the store has of what sessions hold on to, as one text."""
    memory.database.write(lambda db: db.rows("SELECT 1"))
    with memory.database.read() as db:
        states = db.rows("SELECT name, value FROM dialogue_states")
        return str([*states, *db.rows("SELECT * FROM recall_markers")])


@pytest.mark.parametrize("turns", [0, 1])
def test_amnesia_that_another_process_begins_during_a_request_leaves_nothing_of_it(
    memory: Memory, turns: int
):
    composer, entries = Composer(memory), talk(2)
    for _ in range(turns):
        before = composer.compose(TALK, said(entries[:1]))
        composer.use(TALK, before)
        composer.settle(TALK, said(entries[:1]), before, USED)
        composer.record(TALK, entries[:1])
    under_way = composer.compose(TALK, said(entries[:5]), note=Injection("A note."))
    composer.use(TALK, under_way)
    with Memory.open(config=memory.settings, embedder=FakeEmbedder()) as other:
        Composer(other).begin_amnesia(TALK)
    composer.keep_markers(TALK, {"m1": "Port 5436."})
    composer.settle(TALK, said(entries[:5]), under_way, USED)
    assert composer.record(TALK, entries[:6]) == 0
    for entry in entries[1:6]:
        assert entry.key not in kept_of(memory)
    assert "5436" not in kept_of(memory)
    assert "amnesia" in kept_of(memory)
