"""Features of the candidates, and hits of distillations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lore.memory import Memory
from lore.recall import features
from lore.recall.candidates import Bounds
from lore.recall.question import parse
from lore.recall.ranking import Ranked, rank
from lore.recall.sources import plain
from lore.store import items
from tests.fakes import NOON, FakeEmbedder
from tests.recall.talk import say


def test_needle_is_prefix_shared_with_the_stem():
    assert features.needle("deployments") == " deploy"
    assert features.needle("ran") == " ran "
    assert features.needle("flies") == " flies"


def test_words_far_apart_cover_less_than_words_close_together():
    needles = [" alpha", " beta"]
    weights = np.array([0.5, 0.5])
    near = plain("x " * 400 + "alpha beta")
    far = plain("alpha " + "x " * 400 + "beta")
    own = np.ones((2, 2), bool)
    close = features._closest([near, far], own, needles, weights)
    assert close.tolist() == [1.0, 0.5]


@given(st.lists(st.tuples(st.integers(1, 4), st.floats(0, 1)), max_size=30))
def test_session_features_agree_with_a_simple_computation(pairs: list[tuple[int, float]]):
    pool = _Pool([session for session, _ in pairs], [base for _, base in pairs])
    found = features._session(pool, np.zeros(len(pairs), np.bool_))  # type: ignore[arg-type]
    for place, (session, own) in enumerate(pairs):
        others = sorted(
            (b for i, (s, b) in enumerate(pairs) if s == session and i != place), reverse=True
        )
        assert np.isclose(found["session_best"][place], others[0] if others else 0.0)
        assert found["session_next"][place] <= sum([*others[:3], own]) / 3 + 1e-9


def test_logs_and_messages_of_a_session_are_separate():
    pool = _Pool([1, 1, 1], [0.2, 0.4, 0.9])
    found = features._session(pool, np.array([False, False, True]))  # type: ignore[arg-type]
    assert found["session_best"].tolist() == [0.4, 0.2, 0.0]


class _Pool:
    def __init__(self, sessions: list[int], base: list[float]) -> None:
        self.base = np.array(base, float)
        self.cosine = self.base
        self.rows = self
        self.sessions = np.array(sessions, np.int64)


SAID = (
    "The harbor master decided that the berth in Bergen costs 40 crowns",
    "That is cheaper than I thought it would be in such a season",
    "Never sail past the reef of Utsira at low tide",
    "I wrote that down beside the chart of the northern coast",
    "The lamp of the lighthouse has a new fuse since Monday",
    "Then the boats will find their way home again at night",
)


def ranked(memory: Memory, question: str, bounds: Bounds | None = None) -> Ranked:
    with memory.database.read() as db:
        return rank(memory.sources, db, parse(question, NOON), bounds or Bounds(), "learned")


def test_log_features_are_zero_without_distillations(memory: Memory):
    say(memory, "talk", *SAID)
    found = ranked(memory, "What does the berth cost?")
    assert all(not found.features[name].any() for name in features.LOG_FEATURES)


def test_log_and_its_source_messages_share_features(memory: Memory):
    say(memory, "talk", *SAID)
    memory.digest(knowledge=False)
    found = ranked(memory, "berth in Bergen crowns")
    log = found.pool.rows.types == items.type_number("distillation")
    assert log.sum() == 1
    assert found.features["line"][log][0] > 0
    assert found.features["tells"][log][0] > 0
    assert found.features["told"][~log].max() > 0
    assert not found.features["told"][log].any()


def test_log_hit_shows_matching_line_and_its_sources(memory: Memory):
    ids = say(memory, "talk", *SAID)
    memory.digest(knowledge=False)
    answer = memory.recall("berth in Bergen crowns", types=("distillation",))
    (hit,) = answer.hits
    assert "berth in Bergen costs 40 crowns" in hit.text
    assert "fuse" not in hit.text
    assert hit.sources == (ids[0],)


def test_a_line_is_shown_beside_many_messages_that_share_the_words(memory: Memory):
    told, *_ = say(memory, "talk", *SAID)
    memory.digest(knowledge=False)
    say(memory, "later", *(f"Berth, Bergen, crowns: item{n} is pending{n}" for n in range(40)))
    hits = memory.recall("Bergen berth: crowns pending?", limit=5).hits
    assert [hit.type for hit in hits] == [*["message"] * 4, "distillation"]
    assert hits[-1].sources == (told,)


def test_message_quoted_by_a_shown_line_is_not_repeated(memory: Memory):
    ids = say(memory, "talk", *SAID)
    memory.digest(knowledge=False)
    hits = memory.recall("berth in Bergen crowns").hits
    telling_it = [hit for hit in hits if hit.id == ids[0] or ids[0] in (*hit.sources, *hit.same)]
    assert len(telling_it) == 1


def test_types_limit_the_hits(memory: Memory):
    say(memory, "talk", *SAID)
    memory.digest(knowledge=False)
    for type_ in ("message", "distillation"):
        hits = memory.recall("berth in Bergen crowns", types=(type_,)).hits
        assert {hit.type for hit in hits} == {type_}
    assert memory.recall("berth in Bergen crowns", types=("fragment",)).hits == ()


def test_session_hit_shows_log_and_log_alone_finds_session(memory: Memory):
    say(memory, "talk", *SAID)
    say(memory, "other", *(f"Something else was said here, number {i}" for i in range(6)))
    memory.digest(knowledge=False)
    for types in (("message", "distillation"), ("distillation",)):
        first, *_ = memory.search.find_sessions("the berth in Bergen", types=types)
        assert {hit.type for hit in first.best} == {"distillation"}
        assert "40 crowns" in first.best[0].text


def test_archived_log_ranks_below_its_unarchived_copy(tmp_path: Path):
    with Memory.open(home=tmp_path / "home", embedder=FakeEmbedder()) as memory:
        say(memory, "one", *SAID)
        say(memory, "two", *SAID)
        memory.digest(knowledge=False)
        rows = "UPDATE distillations SET archived = 1 WHERE n = (SELECT min(n) FROM distillations)"
        memory.database.write(lambda db: db.run(rows))
        found = ranked(memory, "berth in Bergen crowns", Bounds(types=("distillation",)))
        archived = found.features["archived"] > 0
        assert found.scores[archived].max() < found.scores[~archived].max()
