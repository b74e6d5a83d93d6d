from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lore.errors import EvaluationError
from lore.evals import digest
from lore.evals.digest import QueryResult, ShownItem


def _write(folder: Path, name: str, *rows: object) -> None:
    with gzip.open(folder / f"{name}.jsonl.gz", "wt") as stream:
        for row in rows:
            stream.write(json.dumps(row) + "\n")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    said = [
        "The harbor master decided that the berth in Bergen costs 40 crowns",
        "Understood, I shall put that into the plan for the summer",
        "Never sail past the reef of Utsira at low tide",
        "I wrote that down beside the chart of the northern coast",
        "The lamp of the lighthouse has a new fuse since Monday",
        "Then the boats will find their way home again at night",
    ]
    _write(
        folder,
        "beam-tiny",
        {
            "id": "b",
            "messages": [
                {"id": i, "role": ("user", "assistant")[i % 2], "content": f"{text}.",
                 "time": "March-15-2024", "batch": 1}
                for i, text in enumerate(said)
            ],
            "questions": {
                "information_extraction": [
                    {"question": "What does the berth in Bergen cost?", "source_chat_ids": [0]}
                ]
            },
        },
    )  # fmt: skip
    _write(
        folder,
        "coding-sessions",
        *(
            {"sid": name, "created": "2026-01-05T14:00:00+01:00", "files": [],
             "turns": [["user", f"{text} {place}", "2026-01-05T13:00:00Z"] for place in range(6)]}
            for name, text in (("one", said[0]), ("two", said[4]))
        ),
    )  # fmt: skip
    _write(
        folder,
        "coding-queries",
        {
            "query": "new fuse for the lamp",
            "date": "2026-01-07T14:00:00+01:00",
            "sessions": ["two"],
        },
    )
    _write(folder, "multihop-tiny", {"passages": [], "questions": []})
    return folder


def test_every_conversation_set_is_scored_in_three_variants(data: Path, tmp_path: Path):
    result = digest.run(data, cache=tmp_path / "cache")
    assert set(result.sets) == {"beam-tiny", "coding-queries"}
    sets = result.as_json()["sets"]
    assert isinstance(sets, dict)
    for found in sets.values():
        assert found["raw"]["r10"] == found["both"]["r10"] == found["digest"]["r10"] == 1.0
        assert set(found["raw"]) == {"r10", "at_500", "at_1500", "at_4000"}
        assert found["share"] > 0
        assert len(found["halves"]) == 2
    table = result.as_table()
    assert "(c) digest alone" in table
    assert "% of raw tokens" in table


def test_sets_are_selected_by_name_prefix(data: Path, tmp_path: Path):
    assert set(digest.run(data, sets=["beam"], cache=tmp_path / "cache").sets) == {"beam-tiny"}
    with pytest.raises(EvaluationError, match="known"):
        digest.run(data, sets=["nothing"], cache=tmp_path / "cache")
    with pytest.raises(EvaluationError, match="no folder"):
        digest.run(data / "none")


def test_the_first_ten_units_and_those_within_a_budget_count():
    shown = tuple(ShownItem(100, (str(i), f"{i}b")) for i in range(10))
    found = QueryResult(0, frozenset({"0b", "4", "9b"}), shown)
    assert found.at_top() == pytest.approx(2 / 3)
    assert found.within(500) == pytest.approx(2 / 3)
    assert found.within(99) == 0
    assert found.within(1_000) == 1
