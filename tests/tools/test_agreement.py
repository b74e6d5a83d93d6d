"""The command line, the tools and the library give the same for the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from lore.tools.tool import Caller
from lore.tools.tool_registry import call_tool
from tests.cli.conftest import Lore

QUESTIONS = ["deploy", "Which index made the arrivals query fast?", "sms quota"]


def answers(home: Path, name: str, given: dict[str, object]) -> dict[str, Any]:
    with Memory.open(home=home, embedder=NoEmbedder()) as memory:
        data = call_tool(memory, name, given, Caller()).data
    return dict(json.loads(data.model_dump_json()))


def printed(home: Path, *command: str) -> Any:
    return json.loads(Lore(home)(*command, "--json").works().out)


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in found]


@pytest.mark.parametrize("query", QUESTIONS)
def test_a_search_finds_the_same_everywhere(demo_home: Path, query: str):
    by_tool = ids(answers(demo_home, "search", {"query": query})["hits"])
    with Memory.open(home=demo_home, embedder=NoEmbedder()) as memory:
        assert by_tool == [hit.id for hit in memory.search(query)]
    assert by_tool == ids(printed(demo_home, "search", query))


@pytest.mark.parametrize("query", QUESTIONS)
def test_a_recall_finds_the_same_everywhere(demo_home: Path, query: str):
    by_tool = ids(answers(demo_home, "recall", {"query": query, "limit": 4})["hits"])
    with Memory.open(home=demo_home, embedder=NoEmbedder()) as memory:
        assert by_tool == [hit.id for hit in memory.recall(query, limit=4)][: len(by_tool)]
    assert (
        by_tool == ids(printed(demo_home, "recall", query, "--limit", "4")["hits"])[: len(by_tool)]
    )
    assert len(by_tool) >= 3


def test_trees_are_the_same_everywhere(demo_home: Path):
    roots = answers(demo_home, "list_roots", {"limit": 5})["fragments"]
    assert ids(roots) == ids(printed(demo_home, "roots", "--limit", "5"))
    (top, *_) = ids(printed(demo_home, "search", "deploy"))
    branches = answers(demo_home, "explore", {"id": top})["branches"]
    (outline,) = printed(demo_home, "explore", top)
    assert ids(branches)[0] == outline["title"]["id"]
    linked = answers(demo_home, "traverse", {"id": top, "direction": "associations"})
    assert ids(linked["fragments"]) == ids(
        printed(demo_home, "traverse", top, "--direction", "associations")
    )


def test_what_one_stores_the_others_know(tmp_path: Path):
    said = "The tide table is printed on Mondays."
    first = printed(tmp_path, "remember", said, "--everywhere")
    assert first["outcome"] == "stored"
    second = answers(tmp_path, "store", {"content": said})
    assert (second["id"], second["outcome"]) == (first["id"], "known")
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        third = memory.remember(said)
        assert (third.id, third.outcome) == (first["id"], "known")
        assert memory.maintenance.stats().fragments == 1
    assert "Already known" in Lore(tmp_path)("remember", said, "--everywhere").works().err


def test_what_one_deletes_is_gone_for_the_others(tmp_path: Path):
    id_ = printed(tmp_path, "remember", "The tide table is printed on Mondays.")["id"]
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        call_tool(memory, "delete", {"id": id_}, Caller(origin="user"))
    assert printed(tmp_path, "search", "tide") == []
    Lore(tmp_path)("undo", id_).works()
    assert ids(answers(tmp_path, "search", {"query": "tide"})["hits"]) == [id_]
