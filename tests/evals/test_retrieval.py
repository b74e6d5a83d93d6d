from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lore.errors import EvaluationError
from lore.evals import retrieval


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


def test_every_known_file_is_scored_under_the_keys_that_programs_read(data: Path, tmp_path: Path):
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
    assert set(sets["locomo"]["by_category"]) == {"single-hop", "adversarial"}


def test_the_table_has_a_line_for_each_set_and_baseline(data: Path, tmp_path: Path):
    table = retrieval.run(data, cache=tmp_path / "cache", baselines=True).as_table()
    assert "locomo" in table
    assert "= bm25" in table


def test_a_folder_without_known_files_is_refused(tmp_path: Path):
    with pytest.raises(EvaluationError, match="known"):
        retrieval.run(tmp_path)
    with pytest.raises(EvaluationError, match="no folder"):
        retrieval.run(tmp_path / "none")


def test_the_development_data_is_read_where_it_is_at_hand():
    shared = Path(__file__).parents[2].parent / "shared" / "bench"
    if not shared.is_dir():
        pytest.skip("the evaluation data is not beside the project")
    from lore.evals.trials import trials_of

    found = {path.name: trials_of(path, None) for path in sorted(shared.glob("*.jsonl.gz"))}
    assert sum(len(trial.asks) for trials in found.values() for trial in trials) > 1_500
