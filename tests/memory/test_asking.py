from __future__ import annotations

from pathlib import Path

from lore import settings
from lore.memory import Memory


def test_without_a_model_the_notice_comes_once_with_each_answer(tmp_path: Path):
    config = settings.load({"LORE_EMBED_MODEL": "no-such-model"}, home=tmp_path).settings
    with Memory.open(config=config) as memory:
        memory.store("Deploys are blue green")
        answer = memory.recall("deploy")
    assert "keywords only" in answer.notice
    assert len(answer.hits) == 1
