"""Handoffs and checkpoints as tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.settings import Settings
from lore.tools.tool import Caller
from lore.tools.tool_registry import call_tool
from tests.fakes import FakeEmbedder


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("handoff_write", {"what_was_done": "Printed it."}), ("checkpoint", {"agent": "x"})],
)
def test_nothing_of_an_excluded_folder_is_stored(
    tmp_path: Path, tool: str, arguments: dict[str, str]
):
    folder, home = tmp_path / "secret", tmp_path / "home"
    folder.mkdir()
    settings = Settings(home=home, capture_exclude=(str(folder),))
    with Memory.open(config=settings, embedder=FakeEmbedder()) as memory:
        with pytest.raises(InvalidInput, match=r"capture\.exclude"):
            call_tool(memory, tool, arguments, Caller(project=str(folder)))
        assert memory.handoffs.recent(project=str(folder)) == []
        assert memory.handoffs.ledgers(project=str(folder)) == []


def test_a_few_characters_name_no_handoff(tmp_path: Path):
    with Memory.open(home=tmp_path / "home", embedder=FakeEmbedder()) as memory:
        handoff = memory.handoffs.write(what_was_done="Printed it.", project=str(tmp_path))
        with pytest.raises(NotFound):
            call_tool(memory, "handoff_read", {"id": handoff.id[:4]}, Caller())
        assert (
            "Printed" in call_tool(memory, "handoff_read", {"id": handoff.id[:13]}, Caller()).text
        )
