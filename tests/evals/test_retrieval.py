"""Scores of ranked results, and the retrieval evaluation."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import EvaluationError
from lore.evals import retrieval
from lore.evals.datasets import UNDATED, open_scratch_memory
from lore.evals.retrieval import (
    QueryOutcome,
    SetOutcomes,
    bootstrap,
    score_outcomes,
    score_sets,
)
from tests.fakes import FakeEmbedder
from tests.index.qdrant_server import QdrantServer


def _write(folder: Path, name: str, *rows: object) -> None:
    with gzip.open(folder / f"{name}.jsonl.gz", "wt") as stream:
        for row in rows:
            stream.write(json.dumps(row) + "\n")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    said = ["The berth costs 40 crowns", "The lamp is broken", "Tea is at four", "Ropes are new"]
    _write(
        folder,
        "locomo",
        {
            "id": "conv",
            "speakers": ["Mara", "Ole"],
            "turns": [
                {"id": f"D1:{i}", "session": 1, "date": "1:56 pm on 8 May, 2023",
                 "speaker": "Mara", "text": text, "caption": ""}
                for i, text in enumerate(said)
            ],
            "questions": [
                {"question": "How many crowns does the berth cost?", "category": "single-hop",
                 "evidence": ["D1:0"]},
                {"question": "Who sold the lamp?", "category": "adversarial", "evidence": ["D1:3"]},
            ],
        },
    )  # fmt: skip
    _write(
        folder,
        "beam-tiny",
        {
            "id": "b",
            "messages": [
                {"id": i, "role": role, "content": text, "time": time, "batch": 1 + i // 2}
                for i, (role, text, time) in enumerate(
                    (
                        ("user", "Always answer in Danish. ->-> 1,1", "March-15-2024"),
                        ("assistant", "Understood", None),
                        ("user", "The harbor opens at six", None),
                        ("assistant", "Noted", None),
                    )
                )
            ],
            "questions": {
                "information_extraction": [
                    {"question": "When does the harbor open?", "source_chat_ids": {"a": [2]}}
                ]
            },
        },
    )  # fmt: skip
    _write(
        folder,
        "multihop-tiny",
        {
            "passages": [{"title": f"Place {i}", "text": f"{word} is a town"} for i, word in
                         enumerate(("Alba", "Brin", "Cort"))],
            "questions": [{"question": "Where is Brin?", "gold": [1]}],
        },
    )  # fmt: skip
    _write(
        folder,
        "long-session-tiny",
        {
            "session_id": "s",
            "messages": [
                {
                    "index": i,
                    "role": "assistant",
                    "content": text,
                    "timestamp": 1_771_958_565_650 + i,
                }
                for i, text in enumerate(said)
            ],
            "questions": [
                {"question": "Is the lamp broken?", "type": "detail", "message_index": 1}
            ],
        },
    )
    _write(
        folder,
        "coding-sessions",
        {"sid": "one", "created": "2026-01-05T14:00:00+01:00", "files": ["a.py"],
         "turns": [["user", "mend the clock", "2026-01-05T13:00:00Z"], ["tool", "git", None]]},
        {"sid": "two", "created": "2026-01-06T14:00:00+01:00", "files": [],
         "turns": [["user", "paint the boat", "2026-01-06T13:00:00Z"]]},
    )  # fmt: skip
    _write(
        folder,
        "coding-queries",
        {"query": "fix: mend the clock", "date": "2026-01-07T14:00:00+01:00", "sessions": ["one"]},
    )
    (folder / "README.md").write_text("not data")
    return folder


def test_every_known_file_is_scored_with_stable_json_keys(data: Path, tmp_path: Path):
    result = retrieval.run(data, cache=tmp_path / "cache", baselines=True).as_json()
    sets = result["sets"]
    assert isinstance(sets, dict)
    assert set(sets) == {
        "locomo",
        "beam-tiny",
        "multihop-tiny",
        "long-session-tiny",
        "coding-queries",
    }
    for scores in sets.values():
        assert {"n", "r5", "r10", "r20", "h1", "h5", "mrr", "by_category", "ms_p50"} <= set(scores)
        assert scores["h5"] == 1.0
    assert sets["locomo"]["n"] == 1
    assert sets["coding-queries"]["n"] == 1, "the query without its date is scored apart"
    assert set(sets["locomo"]["by_category"]) == {"single-hop", "adversarial"}


def test_the_table_has_a_line_for_each_set_and_baseline(data: Path, tmp_path: Path):
    table = retrieval.run(data, cache=tmp_path / "cache", baselines=True).as_table()
    assert "locomo" in table
    assert "= bm25" in table
    assert "100.0 (100.0 to 100.0)" in table


def test_only_the_named_sets_are_evaluated(data: Path, tmp_path: Path):
    result = retrieval.run(data, sets=["locomo", "beam"], cache=tmp_path / "cache")
    assert set(result.sets) == {"locomo", "beam-tiny"}


def test_vectors_in_qdrant_are_erased_with_the_scratch_memory():
    qdrant = QdrantServer()
    try:
        with open_scratch_memory(FakeEmbedder(), vectors=qdrant.url) as memory:
            memory.store("The berth costs 40 crowns")
            memory.maintenance.embed_waiting()
            assert len(qdrant.payloads()) == 1
            assert memory.recall("how much is the berth?").hits
            assert qdrant.searches
        assert qdrant.payloads() == []
    finally:
        qdrant.stop()


def test_commits_are_compared_with_baselines_that_know_the_date(data: Path, tmp_path: Path):
    result = retrieval.run(data, cache=tmp_path / "cache", baselines=True)
    latest = result.baselines["coding-queries"]["latest"]
    assert latest.by_category["commit"].h1 == 0.0, "session two was active last"
    assert latest.by_category["commit"].h5 == 1.0
    assert latest.by_category[UNDATED].h5 == 0.0, "without a date there is no order"
    assert "latest" not in result.baselines["locomo"]


def test_a_folder_without_known_files_is_refused(tmp_path: Path):
    with pytest.raises(EvaluationError, match="known"):
        retrieval.run(tmp_path)
    with pytest.raises(EvaluationError, match="no folder"):
        retrieval.run(tmp_path / "none")


def test_development_data_is_parsed_if_present():
    shared = Path(__file__).parents[2].parent / "shared" / "bench"
    if not shared.is_dir():
        pytest.skip("the evaluation data is not beside the project")
    from lore.evals.datasets import read_tasks

    found = {path.name: read_tasks(path, None) for path in sorted(shared.glob("*.jsonl.gz"))}
    assert sum(len(trial.queries) for trials in found.values() for trial in trials) > 1_500


def outcome(
    ranked: str,
    gold: str,
    *,
    category: str = "x",
    ms: float = 1.0,
    at_hand: str = "",
    in_budget: str = "",
    cluster: str = "",
):
    return QueryOutcome(
        category,
        tuple(frozenset({unit}) for unit in ranked),
        tuple(frozenset({unit}) for unit in gold),
        ms,
        frozenset(at_hand),
        frozenset(in_budget),
        cluster=cluster,
    )


@pytest.mark.parametrize(
    ("ranked", "gold", "k", "recall", "hit"),
    [
        ("abc", "a", 1, 1.0, 1.0),
        ("abc", "b", 1, 0.0, 0.0),
        ("abc", "b", 2, 1.0, 1.0),
        ("abcd", "bz", 4, 0.5, 1.0),
        ("abcdef", "fe", 5, 0.5, 1.0),
        ("", "a", 5, 0.0, 0.0),
        ("abc", "xyz", 3, 0.0, 0.0),
    ],
)
def test_recall_is_a_share_and_a_hit_is_any(ranked, gold, k, recall, hit):
    assert outcome(ranked, gold).recall(k) == recall
    assert outcome(ranked, gold).hit(k) == hit


@pytest.mark.parametrize(
    ("ranked", "gold", "value"),
    [("abc", "a", 1), ("abc", "c", 1 / 3), ("abc", "bc", 0.5), ("", "a", 0)],
)
def test_the_reciprocal_rank_is_that_of_the_first_gold_unit(ranked, gold, value):
    assert outcome(ranked, gold).reciprocal_rank() == pytest.approx(value)


def test_standing_instructions_count_as_found():
    found = outcome("ab", "bz", at_hand="z")
    assert found.recall(10) == 0.5
    assert found.recall_with_standing(10) == 1.0


def test_scores_are_means_over_the_outcomes():
    made = score_outcomes([
        outcome("ab", "a", ms=1),
        outcome("ab", "b", ms=5),
        outcome("ab", "z", ms=2),
    ])
    assert made.n == 3
    assert made.h1 == pytest.approx(1 / 3)
    assert made.h5 == made.r5 == made.r10 == made.r20 == pytest.approx(2 / 3)
    assert made.mrr == pytest.approx((1 + 0.5 + 0) / 3)
    assert made.ms_p50 == 2


def test_recall_at_k_uses_first_k_units():
    made = score_outcomes([outcome("abcdefghijklmnopqrstuvwxyz", "fkz")])
    assert (made.r5, made.r10, made.r20) == pytest.approx((0, 1 / 3, 2 / 3))
    assert (made.h5, made.h10) == (0, 1)


def test_categories_are_scored_separately():
    made = score_outcomes([outcome("a", "a", category="one"), outcome("a", "b", category="two")])
    assert {name: part.h1 for name, part in made.by_category.items()} == {"one": 1, "two": 0}
    assert made.h1 == 0.5
    assert made.by_category["two"].intervals["r1"] == (0, 0)


def test_separate_category_is_not_in_the_total():
    outcomes = [outcome("a", "a", category="one"), outcome("a", "b", category="odd")]
    made = score_outcomes(outcomes, frozenset({"odd"}))
    assert (made.n, made.h1) == (1, 1)
    assert made.by_category["odd"].h1 == 0


def test_all_count_if_every_category_is_separate():
    assert score_outcomes([outcome("a", "a", category="odd")], frozenset({"odd"})).n == 1


def test_no_queries_score_zero():
    assert score_outcomes([]).as_json() == {
        "n": 0, "r1": 0, "r5": 0, "r10": 0, "r20": 0, "h1": 0, "h5": 0, "h10": 0, "mrr": 0,
        "r10_standing": 0, "evidence_at_budget": 0, "answerable_refused": 0,
        "intervals": {}, "ms_p50": 0,
    }  # fmt: skip


def test_json_has_rounded_numbers_and_the_categories():
    made = score_outcomes([outcome("ba", "a"), outcome("cba", "a"), outcome("a", "a")]).as_json()
    assert made["mrr"] == 0.6111
    assert list(made) == [
        "n", "r1", "r5", "r10", "r20", "h1", "h5", "h10", "mrr", "r10_standing",
        "evidence_at_budget", "answerable_refused", "intervals", "by_category", "ms_p50",
    ]  # fmt: skip


def test_the_interval_of_independent_questions_is_that_of_the_binomial_distribution():
    outcomes = [outcome("a", "a" if place < 60 else "b") for place in range(100)]
    low, high = bootstrap(outcomes)["r1"]
    assert low == pytest.approx(0.6 - 1.96 * (0.6 * 0.4 / 100) ** 0.5, abs=0.015)
    assert high == pytest.approx(0.6 + 1.96 * (0.6 * 0.4 / 100) ** 0.5, abs=0.015)


def test_questions_of_one_session_that_agree_count_as_one():
    def width(copies: int) -> float:
        sessions = [
            outcome("a", "a" if place % 2 else "b", cluster=f"session {place}")
            for place in range(20)
            for _ in range(copies)
        ]
        low, high = bootstrap(sessions)["r1"]
        return high - low

    assert width(copies=9) == width(copies=1)


def test_questions_of_a_single_conversation_are_resampled_one_by_one():
    alone = [outcome("a", gold, cluster="") for gold in "aaabbb"]
    together = [outcome("a", gold, cluster="conversation") for gold in "aaabbb"]
    assert bootstrap(together) == bootstrap(alone)
    assert bootstrap(together)["r1"] != (0.5, 0.5)


def test_intervals_cover_evidence_in_the_default_answer():
    shown = [outcome("", "a", in_budget="a"), outcome("", "b", in_budget="")]
    assert bootstrap(shown)["evidence_at_budget"] == (0, 1)
    assert bootstrap(shown)["r10"] == (0, 0)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["", "one", "two"])),
        min_size=1,
        max_size=8,
    )
)
def test_intervals_are_stable_and_between_the_worst_and_the_best(rows):
    outcomes = [outcome("ab", gold, cluster=cluster) for gold, cluster in rows]
    intervals = bootstrap(outcomes)
    assert intervals == bootstrap(outcomes)
    assert all(0 <= low <= high <= 1 for low, high in intervals.values())


def test_questions_over_coding_sessions_are_also_scored_together():
    def answers(*golds: str) -> SetOutcomes:
        own = [outcome("a", gold) for gold in golds]
        return SetOutcomes(own, {"bm25": own[:1]}, frozenset())

    made = score_sets("learned", "", {"coding-qa": answers("a"), "coding-qa-two": answers(*"bbb")})
    assert made.sets["coding-qa*"].n == 4
    assert made.sets["coding-qa*"].r1 == 0.25
    assert made.baselines["coding-qa*"]["bm25"].r1 == 0.5
    assert set(score_sets("learned", "", {"coding-qa": answers("a")}).sets) == {"coding-qa"}


@given(st.permutations("abcdef"), st.sets(st.sampled_from("abcdefgh"), min_size=1))
def test_recall_grows_with_k(ranked, gold):
    found = outcome("".join(ranked), "".join(gold))
    recalls = [found.recall(k) for k in range(1, 8)]
    assert recalls == sorted(recalls)
    assert all(found.hit(k) >= found.recall(k) for k in range(1, 8))
    assert found.reciprocal_rank() >= found.hit(1)
