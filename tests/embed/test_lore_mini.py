"""lore-mini: the base model with what training changed."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lore.embed import open_embedder
from lore.embed.conversion import add_delta, read_tensors
from lore.embed.models import WEIGHTS, ModelFile, find_model, verify_weights
from lore.errors import WeightsRejected
from lore.settings import Settings

QUESTION = "How long do we let Apple take before the release gives up on signing approval?"
ANSWER = "I raised the notarize timeout to 45m in .goreleaser.yaml."
OTHER = "Apples and pears were released from the long list of fruit that signs of autumn bring."


def test_the_shipped_difference_is_the_expected_file(tmp_path: Path, weights: Path) -> None:
    model = find_model("local", "lore-mini")
    assert model is not None
    assert model.delta_path is not None
    verify_weights(weights, model, tmp_path)
    wrong = replace(model, delta=ModelFile("lore-mini.safetensors", "0" * 64))
    with pytest.raises(WeightsRejected):
        verify_weights(weights, wrong, tmp_path / "other")


def test_what_training_changed_is_added_to_the_base(weights: Path) -> None:
    model = find_model("local", "lore-mini")
    assert model is not None
    assert model.delta_path is not None
    base = read_tensors(weights / WEIGHTS)
    changed = add_delta(base, model.delta_path)
    assert changed.keys() == base.keys()
    name = "encoder.layer.0.attention.self.query.weight"
    levels = read_tensors(model.delta_path, "I8")[name]
    scale = read_tensors(model.delta_path)[f"{name}.scale"]
    assert np.allclose(changed[name] - base[name], levels * scale[:, None], atol=1e-7)
    words = "embeddings.word_embeddings.weight"
    assert changed[words] is base[words]


def test_an_answer_without_the_questions_words_is_nearer_than_an_echo(tmp_path: Path) -> None:
    scores = {}
    for name in ("lore-mini", "all-MiniLM-L6-v2"):
        config = Settings(home=tmp_path, embed_model=name)
        embedder = open_embedder(config).embedder
        question, answer, other = embedder.embed([QUESTION, ANSWER, OTHER])
        scores[name] = float(question @ answer - question @ other)
        embedder.close()
    assert scores["lore-mini"] > 0.1
    assert scores["lore-mini"] > scores["all-MiniLM-L6-v2"]


def test_training_runs_small_on_a_cpu(tmp_path: Path, weights: Path) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not a dependency")
    passages = [
        [f"The {noun} of harbour {i} is {i} metres"] for i in range(40) for noun in ("quay",)
    ]
    rows = [{"name": "x", "passages": passages}] + [
        {"question": f"How long is harbour {i}?", "category": "value", "groups": [[i]],
         "bm25": [[j, 1.0] for j in range(40)]}
        for i in range(40)
    ]  # fmt: skip
    with gzip.open(tmp_path / "coding-qa-x.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    script = Path(__file__).parents[2] / "benchmarks" / "train_encoder.py"
    subprocess.run(
        [sys.executable, str(script), "--sets", str(tmp_path), "--model", str(weights),
         "--out", str(tmp_path / "out"), "--steps", "2", "--batch", "8"],
        check=True,
    )  # fmt: skip
    assert (tmp_path / "out" / "lore-mini.safetensors").stat().st_size > 1_000_000
