"""Evaluation of injection: what is counted as right, and as given to a prompt on other matters."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lore.errors import EvaluationError
from lore.evals import injection
from lore.evals.injection import Figures, PromptResult

ANSWER = "The tide tables are printed by ops/press.sh, since the pier server has the fonts."


def write(path: Path, *rows: dict[str, Any]) -> None:
    with gzip.open(path, "wt") as stream:
        stream.write("".join(json.dumps(row) + "\n" for row in rows))


def project(folder: Path) -> Path:
    """Write a project of one session with a question that it answers and one that it does not."""
    said = ["Print the tide tables, please", ANSWER, "Thanks, and mend the login", "Done."]
    turns = [
        ["assistant" if i % 2 else "user", text, f"2026-02-01T10:00:{i:02}Z"]
        for i, text in enumerate(said)
    ]
    session = {"sid": "a", "created": "2026-02-01T10:00:00Z", "files": [], "turns": turns}
    write(folder / "coding-sessions.jsonl.gz", session)
    asked = {"id": "1", "session": "a", "kind": "howto", "style": "plain", "answer": ""}
    write(
        folder / "coding-qa.jsonl.gz",
        {**asked, "question": "Which script prints the tide tables?", "evidence": [1]},
        {
            **asked, "question": "Which bank holds the mortgage of the pier?", "evidence": [],
            "kind": "unanswerable", "session": None,
        },
    )  # fmt: skip
    return folder


def test_evidence_of_a_question_counts_as_right(tmp_path: Path):
    result = injection.run(project(tmp_path), cache=tmp_path / "cache")
    lowest = result.figures(min(injection.THRESHOLDS))
    assert lowest.prompts == 2 + len(injection.DAILY)
    assert result.projects == ["entire"]
    assert result.figures(1.0).items == 0
    assert result.as_json()["threshold"] == 0.6
    assert "0.6*" in result.as_table()
    assert len(result.cpu_ms) > 1


def test_figures_separate_precision_recall_and_unrelated_prompts():
    figures = Figures.of([
        PromptResult("p", "direct", (True, False), 90),
        PromptResult("p", "direct", (), 0),
        PromptResult("p", "unanswerable", (), 0),
        PromptResult("p", "unrelated", (False,), 30),
    ])
    assert figures.precision == pytest.approx(1 / 3)
    assert (figures.prompt_precision, figures.recall) == (0.5, 0.5)
    assert (figures.unanswerable, figures.unrelated) == (0.0, 1.0)
    assert (figures.items, figures.tokens) == (3, 60)


def test_a_folder_without_questions_is_refused(tmp_path: Path):
    with pytest.raises(EvaluationError, match="There is no file coding-qa"):
        injection.run(tmp_path)
