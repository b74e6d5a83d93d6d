"""What all phases share: answers of a chat are cleaned, limited and stored one by one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lore.digest.consolidation.cycle import run_cycle, undo_cycle
from lore.digest.consolidation.phase import MAX_LINES, CycleContext, PhaseRun
from lore.store import consolidation, fragments
from lore.store.database import Database
from tests.digest.consolidation.samples import (
    OFFLINE,
    ListingSummarizer,
    World,
    axis,
    full_world,
    phase,
    state,
)

MADE: dict[str, Any] = {"origin": "assistant", "source_messages": ("m1",)}
SECRET = "ghp_" + "R4nd0mLettersAndDigits0123456789abcd"


class Chat(ListingSummarizer):
    """Answers as the rules do, but as a chat would: with a name, and maybe with a secret."""

    def __init__(self) -> None:
        super().__init__()
        self.judged = 0

    @property
    def identity(self) -> str:
        return "some chat"

    def overview(self, root, children):
        return f"{super().overview(root, children)}\n- The key is {SECRET}\x00"

    def judge(self, pairs):
        self.judged += len(pairs)
        return super().judge(pairs)


def test_chat_output_of_a_phase_is_redacted(database: Database):
    world = World(database)
    world.add("root", "The gateway takes requests", None, **MADE)
    world.add("one", "It listens", None, parent="root", **MADE)
    world.add("two", "It answers", None, parent="root", **MADE)
    run_cycle(database, CycleContext(Chat()))
    said = world.get("root").content
    assert "It listens" in said
    assert SECRET not in said
    assert "\x00" not in said


def test_a_chat_judges_so_many_pairs_a_cycle_and_the_rest_in_the_next(database: Database):
    world = World(database)
    for i in range(40):
        name = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"[i]
        world.add(f"r{i}", f"Fact about {name * 5}", axis(0, 1, **{f"_{2 + i % 14}": 0.4}))
    chat = Chat()
    report = run_cycle(database, CycleContext(chat), only=("contradict",))
    assert chat.judged == 200
    waiting = phase(report, "contradict").counts["waiting"]
    run_cycle(database, CycleContext(chat), only=("contradict",))
    assert chat.judged == 200 + min(200, waiting)
    while "waiting" in phase(report, "contradict").counts:
        report = run_cycle(database, CycleContext(chat), only=("contradict",))
    before = chat.judged
    run_cycle(database, CycleContext(chat), only=("contradict",))
    assert chat.judged == before


def test_more_lines_than_can_be_read_are_counted_only(database: Database):
    work = PhaseRun(database, OFFLINE, "merge", 0, database.now())
    for i in range(3 * MAX_LINES):
        work.report_line(f"line {i}")
    assert len(work.report().told) == MAX_LINES + 1


def test_cycle_stopped_long_ago_resumes_and_can_be_undone(database: Database, clock):
    full_world(database)
    before = state(database)

    class Killed(BaseException):
        pass

    def dies(name: str, _done: int, _total: int) -> None:
        if name == "prune_edges":
            raise Killed

    with pytest.raises(Killed):
        run_cycle(database, OFFLINE, progress=dies)
    clock.advance(days=3)
    run_cycle(database, OFFLINE)
    with database.read() as db:
        assert len(consolidation.recent_reports(db, limit=3)) == 1
    assert undo_cycle(database).left == 0
    database.write(lambda db: fragments.decay_relevance(db, now=clock() - timedelta(days=3)))
    assert state(database) == before


def test_an_insight_is_not_reworded(database: Database):
    world = World(database)
    text = "3 things belong together:\n- one\n- two\n- three"
    world.add("root", text, None, kind="insight", **MADE)
    world.add("one", "It listens", None, parent="root", **MADE)
    world.add("two", "It answers", None, parent="root", **MADE)
    run_cycle(database, OFFLINE)
    assert world.get("root").content == text


def test_work_left_for_the_next_cycle_is_counted(database: Database):
    world = World(database)
    for i in range(52):
        world.add(f"r{i}", f"The part number {i}", axis(15), **MADE)
        for child in ("one", "two"):
            place = axis(0, **{f"_{1 + i % 14}": 0.4})
            world.add(f"{child}{i}", f"Says {child} of {i}", place, parent=f"r{i}", **MADE)
    report = run_cycle(database, CycleContext(Chat()), only=("resummarize", "contradict"))
    assert phase(report, "resummarize").counts["waiting"] == 2
    assert phase(report, "contradict").counts["children waiting"] == 54
