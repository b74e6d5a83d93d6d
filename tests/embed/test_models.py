"""Known models, their weights and verification."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from lore.embed.models import (
    MODELS,
    STAMPS,
    Model,
    ModelFile,
    find_model,
    find_weights,
    model_names,
    verify_weights,
    whole_file,
)
from lore.errors import WeightsRejected
from lore.settings import Settings


def test_model_names_are_unique_per_provider() -> None:
    names = [(model.provider, model.name) for model in MODELS]
    assert len(names) == len(set(names))


def test_a_model_is_found_by_either_name() -> None:
    short = find_model("fastembed", "nomic-embed-text-v1.5")
    assert short is not None
    assert short is find_model("fastembed", "nomic-ai/nomic-embed-text-v1.5")
    assert short.prefix(query=True) == "search_query: "
    assert short.prefix(query=False) == "search_document: "


def test_a_model_belongs_to_its_provider_only() -> None:
    assert find_model("local", "text-embedding-3-small") is None
    assert "text-embedding-3-small" in model_names("openai")


# SHA-256 of the two small files that stand for a model here.
FILES = (
    ModelFile(
        "model.safetensors", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    ),
    ModelFile("tokenizer.json", "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"),
)
SMALL = Model("local", "small", 1, 8, module="no_such_module", files=FILES)


def place(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_text("test")
    (folder / "tokenizer.json").write_text("test2")
    return folder


def test_the_chosen_folder_comes_before_the_home(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert find_weights(settings, SMALL) is None
    at_home = place(settings.models / "small")
    assert find_weights(settings, SMALL) == at_home
    chosen = replace(settings, embed_model_path=str(tmp_path / "chosen"))
    assert find_weights(chosen, SMALL) == at_home
    place(tmp_path / "chosen")
    assert find_weights(chosen, SMALL) == tmp_path / "chosen"


def test_a_folder_with_one_file_missing_does_not_count(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    (place(settings.models / "small") / "tokenizer.json").unlink()
    assert find_weights(settings, SMALL) is None


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_changed_file_is_rejected_by_name_and_hash(tmp_path: Path, file: ModelFile) -> None:
    folder = place(tmp_path / "model")
    (folder / file.name).write_text("tampered")
    with pytest.raises(WeightsRejected, match=f"{file.name}.*{file.sha256}"):
        verify_weights(folder, SMALL, tmp_path / "cache")


def test_the_real_weights_are_rejected_after_one_changed_byte(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    raw = bytearray((weights / "model.safetensors").read_bytes())
    raw[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(raw)
    (tmp_path / "tokenizer.json").write_bytes((weights / "tokenizer.json").read_bytes())
    with pytest.raises(WeightsRejected, match=minilm.files[0].sha256):
        verify_weights(tmp_path, minilm, tmp_path / "cache")


def test_a_verified_file_is_not_read_again(tmp_path: Path) -> None:
    folder, cache = place(tmp_path / "model"), tmp_path / "cache"
    verify_weights(folder, SMALL, cache)
    path = folder / "model.safetensors"
    before = path.stat()
    path.write_text("TEST")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    verify_weights(folder, SMALL, cache)  # same size and time: the stamp holds
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(WeightsRejected):
        verify_weights(folder, SMALL, cache)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 1}'])
def test_unreadable_stamps_are_rewritten(tmp_path: Path, content: str) -> None:
    folder, cache = place(tmp_path / "model"), tmp_path / "cache"
    cache.mkdir()
    (cache / STAMPS).write_text(content)
    verify_weights(folder, SMALL, cache)
    assert str(folder / "model.safetensors") in json.loads((cache / STAMPS).read_text())


def test_read_only_cache_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    verify_weights(place(tmp_path / "model"), SMALL, tmp_path / "file" / "cache")


def test_file_is_written_atomically(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    with whole_file(path) as opened:
        opened.write(b"content")
        assert not path.exists()
    assert path.read_bytes() == b"content"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]
    assert path.parent.parent.stat().st_mode & 0o777 == 0o700


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError), whole_file(path) as opened:
        opened.writelines([b"half", None])  # type: ignore[list-item]  # what fails midway
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
