"""A chat without a project, beside projects that it says nothing about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.records import NewMessage, Part
from tests.fakes import NOON, FakeEmbedder, FixedClock

RULE = "Always answer in metric units."
FACT = "The trajectory parser runs its tests with tox and pixel fixtures."
SHARED = "Every parser is tested with fuzzed input."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=FakeEmbedder(), now=FixedClock()) as opened:
        for name in ("spotter", "new"):
            (tmp_path / name).mkdir()
        capture(opened, "chat", RULE, FACT)
        capture(opened, "work", "The parser of spotter reads birds.", project=spotter(tmp_path))
        opened.store(FACT, session="chat", kind="decision")
        opened.store(SHARED, kind="decision")
        yield opened


def spotter(tmp_path: Path) -> str:
    return str(tmp_path / "spotter")


def capture(memory: Memory, session: str, *texts: str, project: str = "") -> None:
    new = [NewMessage("user", (Part("text", text),), NOON) for text in texts]
    memory.capture(session, new, project=project)


def start(memory: Memory, project: str) -> str:
    return memory.prompts.begin_session("next", project=project).text


@pytest.mark.parametrize("folder", ["spotter", "new"])
def test_a_session_in_a_folder_starts_without_it(memory: Memory, tmp_path: Path, folder: str):
    given = start(memory, str(tmp_path / folder))
    assert SHARED in given
    assert FACT not in given
    assert RULE not in given


def test_a_session_without_a_folder_starts_with_it(memory: Memory):
    given = start(memory, "")
    assert RULE in given
    assert FACT in given
    assert SHARED in given


def test_a_project_recalls_none_of_it(memory: Memory, tmp_path: Path):
    answer = memory.recall("How is the parser tested?", project=spotter(tmp_path))
    assert {hit.text for hit in answer.hits} >= {SHARED}
    assert FACT not in {hit.text for hit in answer.hits}
    assert not answer.standing
    found = memory.search("parser tests", project=spotter(tmp_path))
    assert FACT not in {hit.text for hit in found}
    assert not memory.search.instructions(project=spotter(tmp_path))


def test_recall_without_a_project_finds_it(memory: Memory):
    answer = memory.recall("How does the trajectory parser run its tests?")
    assert FACT in {hit.text for hit in answer.hits}
    assert [hit.text for hit in answer.standing] == [RULE]


def test_what_is_then_remembered_for_all_projects_applies_to_them(memory: Memory, tmp_path: Path):
    assert memory.remember(FACT, kind="decision").outcome == "stored"
    assert FACT in start(memory, spotter(tmp_path))


def test_a_fragment_of_it_can_be_promoted(memory: Memory, tmp_path: Path):
    [hit] = [hit for hit in memory.search("trajectory parser") if FACT in hit.text]
    memory.knowledge.promote(hit.id)
    assert FACT in start(memory, spotter(tmp_path))


def test_a_rule_said_again_in_a_project_applies_to_it(memory: Memory, tmp_path: Path):
    capture(memory, "work", RULE, project=spotter(tmp_path))
    capture(memory, "chat again", RULE)
    assert RULE in start(memory, spotter(tmp_path))
