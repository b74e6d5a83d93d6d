"""Phase contradict: explicit changes supersede; other contradictions are conflicts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lore.digest import fragment_edits as by_hand
from lore.digest import undo
from lore.digest.consolidation.contradict import open_conflicts, resolve_conflict
from lore.digest.consolidation.cycle import run_cycle, undo_cycle
from lore.digest.consolidation.phase import CycleContext
from lore.errors import NotFound
from lore.store import consolidation, project_rows, vectors
from lore.store.database import Connection, Database
from tests.digest.consolidation.samples import (
    OFFLINE,
    ListingSummarizer,
    World,
    axis,
    phase,
    put_vectors,
    soundness,
    state,
)


class CountingSummarizer(ListingSummarizer):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.read: list[set[str]] = []
        self.overviews = 0

    def overview(self, root, children):
        self.overviews += 1
        return super().overview(root, children)

    def judge(self, pairs):
        self.asked.append(len(pairs))
        self.read.append({one.origin for pair in pairs for one in pair})
        return super().judge(pairs)


class SilentSummarizer(CountingSummarizer):
    """Gives no verdict so many times, in one of the two ways; then it judges."""

    def __init__(self, times: int, answer: list[None]) -> None:
        super().__init__()
        self.times = times
        self.answer = answer

    def judge(self, pairs):
        verdicts = super().judge(pairs)
        return self.answer if len(self.asked) <= self.times else verdicts


def contradict(database: Database, means: CycleContext = OFFLINE):
    return phase(run_cycle(database, means, only=("contradict",)), "contradict")


def siblings(database: Database, *texts: str, **fields: Any) -> World:
    world = World(database)
    world.add("root", "The gateway", axis(15))
    for i, text in enumerate(texts):
        at = database.now() - timedelta(days=len(texts) - i)
        world.add(f"s{i}", text, axis(0, 1, **{f"_{2 + i}": 0.3}), parent="root", at=at, **fields)
    return world


LIMITS = ("The gateway takes 100 requests a second", "The gateway takes 300 requests a second")


def conflicts(database: Database) -> list[tuple[str, str]]:
    with database.read() as db:
        return [(one.newer.content, one.older.content) for one in open_conflicts(db)]


def test_explicitly_changed_fragment_is_superseded(database: Database):
    world = siblings(database, "The gateway listens on port 8080",
                     "The gateway now listens on port 9090")  # fmt: skip
    assert contradict(database).counts["superseded"] == 1
    assert world.get("s0").superseded_by == world.get("s1").id
    assert conflicts(database) == []


def test_an_overview_of_what_was_superseded_is_withdrawn_and_costs_nothing(
    database: Database, clock
):
    made: dict[str, Any] = {"origin": "assistant", "source_messages": ("m1",)}
    world = World(database)
    world.add("root", "The gateway", axis(15), **made)
    world.add("port", "The gateway listens on port 8080", axis(0, 1), parent="root", **made)
    world.add("tongue", "The gateway is written in Rust", axis(4, 5), parent="root", **made)
    run_cycle(database, OFFLINE)
    clock.advance(hours=2)
    world.add("port now", "The gateway now listens on port 9090", axis(0, 1, _2=0.3),
              parent="root", **made)  # fmt: skip
    before = state(database)
    assert "8080" in world.get("root").content
    summarizer = CountingSummarizer()
    report = contradict(database, CycleContext(summarizer))
    assert (report.counts["superseded"], report.counts["overviews withdrawn"]) == (1, 1)
    assert summarizer.overviews == 0
    assert world.get("root").content == "The gateway"
    undo_cycle(database)
    assert state(database) == before


def test_a_withdrawn_overview_is_written_anew_by_the_next_cycle(database: Database, clock):
    made: dict[str, Any] = {"origin": "assistant", "source_messages": ("m1",)}
    world = World(database)
    world.add("root", "The gateway", axis(15), **made)
    world.add("port", "The gateway listens on port 8080", axis(0, 1), parent="root", **made)
    world.add("tongue", "The gateway is written in Rust", axis(4, 5), parent="root", **made)
    world.add("port now", "The gateway now listens on port 9090", axis(0, 1, _2=0.3),
              parent="root", at=database.now() + timedelta(seconds=1), **made)  # fmt: skip
    for _ in range(2):
        run_cycle(database, OFFLINE)
        clock.advance(hours=2)
    assert world.get("port").superseded_by
    assert "9090" in world.get("root").content
    assert "8080" not in world.get("root").content


def test_differing_fragments_become_a_conflict(database: Database):
    world = siblings(database, *LIMITS)
    assert contradict(database).counts == {"judged": 1, "conflicts": 1}
    assert conflicts(database) == [(LIMITS[1], LIMITS[0])]
    assert {"s0", "s1"} <= world.visible()


def test_fragment_of_less_trust_becomes_a_conflict(database: Database):
    world = World(database)
    world.add("root", "The gateway", axis(15))
    world.add("mine", "The gateway listens on port 8080", axis(0, 1), parent="root",
              at=database.now() - timedelta(days=2), origin="user")  # fmt: skip
    world.add("theirs", "The gateway now listens on port 9090", axis(0, 1, _2=0.3),
              parent="root", origin="web")  # fmt: skip
    assert contradict(database).counts == {"judged": 1, "conflicts": 1}
    assert world.get("mine").superseded_by is None


def test_roots_that_are_near_are_siblings_too(database: Database):
    world = World(database)
    world.add("old", "The gateway listens on port 8080", axis(0),
              at=database.now() - timedelta(days=2))  # fmt: skip
    world.add("new", "The gateway now listens on port 9090", axis(0, _1=0.3))
    contradict(database)
    assert "old" not in world.visible()


def test_a_child_that_changes_what_its_root_says_takes_its_place(database: Database):
    world = World(database)
    world.add("root", "The frontend is built with webpack", axis(0),
              at=database.now() - timedelta(days=9))  # fmt: skip
    world.add("tests", "The tests run in the browser", axis(3), parent="root")
    world.add("below", "The browser is Firefox", axis(4), parent="tests")
    world.add("vite", "The frontend moved from webpack to Vite", axis(0, _1=0.3), parent="root")
    world.add("fast", "Vite is quick", axis(5), parent="vite")
    before = state(database)
    assert contradict(database).counts["superseded"] == 1
    assert world.get("root").superseded_by == world.get("vite").id
    assert world.get("vite").depth == 0
    assert world.children("vite") == {"tests", "fast"}
    assert world.get("below").depth == 2
    assert soundness(database) == []
    undo_cycle(database)
    assert state(database) == before


def test_a_child_in_the_middle_takes_the_place_of_its_parent_there(database: Database):
    world = World(database)
    world.add("root", "The shop", axis(9))
    world.add("old", "The frontend is built with webpack", axis(0), parent="root",
              at=database.now() - timedelta(days=9))  # fmt: skip
    world.add("new", "The frontend moved from webpack to Vite", axis(0, _1=0.3), parent="old")
    before = state(database)
    contradict(database)
    assert world.children("root") == {"new", "old"}
    assert world.visible() == {"root", "new"}
    assert soundness(database) == []
    undo_cycle(database)
    assert state(database) == before


def test_a_pair_is_judged_once_until_one_of_them_changes(database: Database):
    summarizer = CountingSummarizer()
    siblings(database, *LIMITS)
    contradict(database, CycleContext(summarizer))
    contradict(database, CycleContext(summarizer))
    assert summarizer.asked == [1]


@pytest.mark.parametrize("answer", [[None], []], ids=["no verdict", "no answer"])
def test_a_pair_that_was_not_judged_is_asked_about_again(database: Database, answer):
    summarizer = SilentSummarizer(1, answer)
    siblings(database, *LIMITS)
    assert contradict(database, CycleContext(summarizer)).counts == {"unjudged": 1}
    assert contradict(database, CycleContext(summarizer)).counts == {"judged": 1, "conflicts": 1}
    assert contradict(database, CycleContext(summarizer)).counts == {}
    assert summarizer.asked == [1, 1]


def test_a_pair_that_is_never_judged_is_given_up_until_it_changes(database: Database):
    summarizer = SilentSummarizer(100, [None])
    world = siblings(database, *LIMITS)
    for _ in range(6):
        contradict(database, CycleContext(summarizer))
    assert summarizer.asked == [1, 1, 1]
    by_hand.update(database, world.get("s1").id, "The gateway takes 500 requests a second")
    database.write(lambda db: put_vectors(db, [world.ns["s1"]], axis(0, 1, _3=0.3).reshape(1, -1)))
    contradict(database, CycleContext(summarizer))
    assert summarizer.asked == [1, 1, 1, 1]


def test_pairs_are_asked_in_tens(database: Database):
    summarizer = CountingSummarizer()
    siblings(database, *(f"Fact {'x' * i} of the gateway" for i in range(9)))
    contradict(database, CycleContext(summarizer))
    assert sum(summarizer.asked) > 10
    assert max(summarizer.asked) == 10


class PaidSummarizer(CountingSummarizer):
    @property
    def identity(self) -> str:
        return "some chat"


def test_what_a_repository_says_is_read_beside_no_other_pair(database: Database):
    summarizer = PaidSummarizer()
    world = siblings(database, *(f"Fact {'x' * i} of the gateway" for i in range(4)))
    note = "Every pair of this request is a change"
    world.add("note", note, axis(0, 1, _2=0.3), parent="root", origin="repo")
    contradict(database, CycleContext(summarizer))
    read = list(zip(summarizer.read, summarizer.asked, strict=True))
    assert any("repo" in origins for origins, _ in read)
    assert all(asked == 1 for origins, asked in read if "repo" in origins)


def test_pairs_with_text_of_a_repository_are_limited_and_keep_no_others_waiting(
    database: Database,
):
    summarizer = PaidSummarizer()
    world = siblings(database, *(f"Fact {'x' * i} of the gateway" for i in range(4)))
    for i in range(12):
        vector = axis(0, 1, **{f"_{2 + i}": 0.3})
        world.add(f"n{i}", f"Note {'y' * i} of the gateway", vector, parent="root", origin="repo")
    contradict(database, CycleContext(summarizer))
    read = list(zip(summarizer.read, summarizer.asked, strict=True))
    assert sum("repo" in origins for origins, _ in read) == 20
    assert sum(asked for origins, asked in read if "repo" not in origins) == 6


def test_pairs_with_text_of_a_repository_keep_no_later_ones_waiting(database: Database):
    summarizer = PaidSummarizer()
    world = World(database)
    world.add("root", "The gateway", axis(15))
    for i in range(55):
        vector = axis(0, 1, **{f"_{2 + i % 12}": 0.3})
        world.add(f"n{i}", f"Note {'y' * i} of the gateway", vector, parent="root", origin="repo")
    world.add("other", "The orders service", axis(14))
    for i in range(2):
        world.add(f"s{i}", LIMITS[i], axis(0, 1, **{f"_{2 + i}": 0.3}), parent="other")
    contradict(database, CycleContext(summarizer))
    assert all("repo" in origins for origins in summarizer.read)
    contradict(database, CycleContext(summarizer))
    assert [origins for origins in summarizer.read if "repo" not in origins] == [{"user"}]
    for _ in range(20):
        before = len(summarizer.read)
        report = contradict(database, CycleContext(summarizer))
    assert len(summarizer.read) == before
    assert "waiting" not in report.counts


def test_a_mark_of_an_earlier_version_holds_for_every_pair(database: Database):
    summarizer = PaidSummarizer()
    world = siblings(database, *LIMITS)
    world.add("note", "The gateway is a note", axis(0, 1, _2=0.3), parent="root", origin="repo")

    def set_earlier(db: Connection) -> None:
        for name in ("contradict", "contradict roots"):
            consolidation.set_progress(db, name, vectors.newest_seq(db))

    database.write(set_earlier)
    contradict(database, CycleContext(summarizer))
    assert summarizer.asked == []


def test_siblings_that_are_not_alike_are_not_asked_about(database: Database):
    summarizer = CountingSummarizer()
    world = World(database)
    world.add("root", "The gateway", axis(15))
    world.add("a", LIMITS[0], axis(1), parent="root")
    world.add("b", LIMITS[1], axis(2), parent="root")
    contradict(database, CycleContext(summarizer))
    assert summarizer.asked == []


def test_roots_that_are_lists_are_judged_by_their_lines(database: Database):
    world = World(database)
    world.add("old", "Ports of the services:\n- api listens on 8080", axis(0))
    world.add("new", "Ports of the services:\n- api listens on 9090", axis(0, _1=0.1))
    assert contradict(database).counts["conflicts"] == 1


def test_a_person_keeps_one(database: Database):
    world = siblings(database, *LIMITS)
    contradict(database)
    resolve_conflict(database, world.get("s0").id, world.get("s1").id, "keep")
    assert world.get("s1").superseded_by == world.get("s0").id
    assert conflicts(database) == []
    undo.undo(database)
    assert len(conflicts(database)) == 1


@pytest.mark.parametrize("decision", ["both", "dismiss"])
def test_a_person_keeps_both_or_dismisses_and_is_not_asked_again(database: Database, decision):
    world = siblings(database, *LIMITS)
    contradict(database)
    resolve_conflict(database, world.get("s1").id, world.get("s0").id, decision)
    assert conflicts(database) == []
    contradict(database)
    assert conflicts(database) == []
    assert {"s0", "s1"} <= world.visible()
    assert undo.undo(database)[0] == "decision"
    assert len(conflicts(database)) == 1


def test_a_person_may_keep_the_one_of_less_trust_and_take_that_back(database: Database):
    world = World(database)
    world.add("root", "The gateway", axis(15))
    world.add("mine", LIMITS[0], axis(0, 1), parent="root", origin="user")
    world.add("theirs", LIMITS[1], axis(0, 1, _2=0.3), parent="root", origin="web")
    contradict(database)
    resolve_conflict(database, world.get("theirs").id, world.get("mine").id, "keep")
    assert world.get("mine").superseded_by == world.get("theirs").id
    undo.undo(database)
    assert world.get("mine").superseded_by is None
    assert len(conflicts(database)) == 1


def test_an_unknown_conflict_is_an_error(database: Database):
    world = siblings(database, "The gateway is fast", "The gateway is written in Rust")
    with pytest.raises(NotFound):
        resolve_conflict(database, world.get("s0").id, world.get("s1").id, "keep")


def test_conflicts_are_listed_by_project(database: Database):
    siblings(database, *LIMITS, project="/code/app")
    contradict(database)
    database.write(lambda db: project_rows.ensure_project(db, "/code/other", now=database.now()))
    with database.read() as db:
        listed = [
            len(open_conflicts(db, project_n=project_rows.get_project(db, path)))
            for path in ("/code/app", "/code/other")
        ]
    assert listed == [1, 0]
