"""The picture of recall by kind of question."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from lore.evals.retrieval import QueryOutcome, score_outcomes
from tests.evals import benchmark_script

picture = benchmark_script.load("recall_picture")


def _scores(*right: bool) -> dict[str, object]:
    kinds = ("fix", "fix", "rule", "unanswerable")
    outcomes = [
        QueryOutcome(kind, (frozenset({"a"}),), (frozenset({"a" if found else "b"}),), 1.0)
        for kind, found in zip(kinds, right, strict=True)
    ]
    return score_outcomes(outcomes, frozenset({"unanswerable"})).as_json()


def test_rows_are_all_questions_and_each_kind_that_has_an_answer():
    rows = picture.rows_of(
        [_scores(True, True, False, False), _scores(False, True, False, False)], "r5"
    )
    assert [(row.name, row.n) for row in rows] == [("all", 3), ("fix", 2), ("rule", 1)]
    own, other = rows[1].points
    assert (own.value, own.low, own.high) == (100, 100, 100)
    assert (other.value, other.low, other.high) == (50, 0, 100)


def test_the_picture_has_a_dot_and_a_bar_for_each_method_and_row():
    rows = picture.rows_of(
        [_scores(True, True, False, False), _scores(False, True, False, False)], "r5"
    )
    panels = {"coding-qa <x>": (["lore", "bm25"], rows)}
    svg = picture.draw(panels, "r5")
    space = {"svg": "http://www.w3.org/2000/svg"}
    root = ElementTree.fromstring(svg)
    assert len(root.findall("svg:g/svg:circle", space)) == len(rows) * 2
    titles = [one.text for one in root.findall("svg:g/svg:title", space)]
    assert "bm25, fix: 50.0 (0.0 to 100.0)" in titles
    assert "prefers-color-scheme:dark" in svg


def test_the_picture_says_where_lore_was_trained():
    assert picture.own_name("coding-qa*", held_out=False) == "lore, trained on these questions"
    assert picture.own_name("coding-qa*", held_out=True) == "lore, not trained on this project"
    assert picture.own_name("locomo", held_out=False) == "lore"


def test_held_out_scores_are_read_from_the_table_of_the_page():
    page = Path(__file__).parents[2] / "docs" / "reference" / "benchmark.md"
    scores = picture.read_held_out(page)["sets"]["coding-qa*"]
    kinds = scores["by_category"]
    assert scores["n"] == sum(kind["n"] for kind in kinds.values())
    assert {"fix", "cross", "rule"} <= set(kinds)
    assert "all" not in kinds
    for row in picture.rows_of([scores], "r5"):
        assert row.points[0].low <= row.points[0].value <= row.points[0].high


def test_a_page_without_the_table_is_refused():
    with pytest.raises(SystemExit, match="no table"):
        picture.parse_table("| kind | questions |\n")
