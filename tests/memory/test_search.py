"""TODO."""

from __future__ import annotations

from pathlib import Path

from lore import settings
from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from tests.recall.talk import say


def test_without_a_model_the_notice_comes_once_with_each_answer(tmp_path: Path):
    config = settings.load({"LORE_EMBED_MODEL": "no-such-model"}, home=tmp_path).settings
    with Memory.open(config=config) as memory:
        memory.store("Deploys are blue green")
        answer = memory.recall("deploy")
    assert "keywords only" in answer.notice
    assert len(answer.hits) == 1


def test_a_session_is_read_in_order(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        ids = say(memory, "s", "one", "two", "three")
        assert [m.id for m in memory.sessions.messages("s")] == ids
        assert [m.ordinal for m in memory.sessions.messages("s", first=1)] == [1, 2]
