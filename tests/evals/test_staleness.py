"""Scenarios of replaced values: what counts as stale, found and hidden."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lore.cli.app import app
from lore.errors import EvaluationError
from lore.evals import staleness
from lore.evals.staleness import Entry

SCENARIO: dict[str, Any] = {
    "id": "T1",
    "kind": "rule withdrawn",
    "project": "shop",
    "sessions": [
        {"project": "shop", "date": "2026-02-01", "turns": [
            ["user", "we use Sentry for error tracking, project name shop-backend."],
            ["user", "error reports are kept for 90 days"],
            ["tool", "Bash: cat sentry.toml"],
            ["result", "dsn = 1"],
        ]},
        {"project": "shop", "date": "2026-03-01", "turns": [
            ["user", "we no longer use Sentry for errors, we changed to GlitchTip."],
        ]},
    ],
    "question": "What do we use for error tracking?",
    "prompt": "add error tracking to the worker",
    "old": "Sentry(?!.*GlitchTip)",
    "new": "GlitchTip",
    "valid": ["90 days"],
}  # fmt: skip


def write(folder: Path, *scenarios: dict[str, Any]) -> Path:
    path = folder / "stale-own.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in scenarios), "utf-8")
    return path


def test_a_replaced_value_that_is_marked_is_not_stale(tmp_path: Path) -> None:
    result = staleness.run(write(tmp_path, SCENARIO), cache=tmp_path / "cache")
    (outcome,) = result.outcomes
    assert outcome.passes
    assert result.totals()["old_shown_as_current"] == 0
    assert result.totals()["valid"] == 1
    assert "scenarios passed whole    1 of 1" in result.as_table()


def test_a_value_that_nothing_replaced_is_stale_and_the_missing_one_not_found(
    tmp_path: Path,
) -> None:
    scenario = SCENARIO | {"sessions": SCENARIO["sessions"][:1]}
    (outcome,) = staleness.run(write(tmp_path, scenario), cache=tmp_path / "cache").outcomes
    assert not outcome.passes
    assert "recall" in outcome.stale
    assert "recall" not in outcome.shows_new


def test_a_folder_is_read_whole_and_compressed_files_too(tmp_path: Path) -> None:
    write(tmp_path, SCENARIO)
    with gzip.open(tmp_path / "stale-more.jsonl.gz", "wt") as stream:
        stream.write(json.dumps(SCENARIO | {"id": "T2"}) + "\n")
    result = staleness.run(tmp_path, cache=tmp_path / "cache")
    assert [one.id for one in result.outcomes] == ["T2", "T1"]


def test_an_unreadable_file_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="neither a file"):
        staleness.run(tmp_path)
    (tmp_path / "stale.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(EvaluationError, match="cannot be read"):
        staleness.run(tmp_path)


@pytest.mark.parametrize(
    ("entries", "is_stale"),
    [
        ([Entry("we use Sentry", False)], True),
        ([Entry("we use Sentry", True)], False),
        ([Entry("Sentry gave way to GlitchTip", False)], False),
        ([Entry("GlitchTip it is", False), Entry("we use Sentry", False)], False),
        ([Entry("GlitchTip it is", True), Entry("we use Sentry", False)], True),
        ([Entry("do we use Sentry?", False)], False),
        ([Entry("hello", False)], False),
    ],
)
def test_old_counts_as_current_unless_marked_asked_or_behind_the_new_value(
    tmp_path: Path, entries: list[Entry], *, is_stale: bool
) -> None:
    raw = SCENARIO | {"old": "Sentry"}
    (scenario,) = staleness.read_scenarios(write(tmp_path, raw))
    assert bool(staleness.find_stale(scenario, entries)) == is_stale


def test_the_command_prints_totals_as_json(tmp_path: Path) -> None:
    arguments = ["eval", "stale", "--data", str(write(tmp_path, SCENARIO)), "--totals", "--json"]
    result = CliRunner().invoke(app, [*arguments, "--cache", str(tmp_path / "cache")])
    assert json.loads(result.stdout)["totals"]["passed"] == 1
