"""The pair model: what a newer statement does to an older one, and which passage answers."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lore.embed.models import PAIR_MODEL, verify_weights
from lore.embed.pair_model import IDLE_S, RELATIONS, PairModel, open_pair_model
from lore.settings import Settings

OLDER = "the orders database runs on Postgres 14"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PairModel:
    opened = open_pair_model(Settings(home=tmp_path_factory.mktemp("home")))
    if opened is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed")
    return opened


def test_the_shipped_pair_model_is_the_expected_file(tmp_path: Path, weights: Path) -> None:
    verify_weights(weights, PAIR_MODEL, tmp_path)


@pytest.mark.parametrize(("setting_s", "idle_s"), [(600.0, IDLE_S), (5.0, 5.0), (0.0, 0.0)])
def test_the_pair_model_is_unloaded_sooner_than_the_embedder(
    tmp_path: Path, setting_s: float, idle_s: float
) -> None:
    opened = open_pair_model(Settings(home=tmp_path, embed_idle_unload_s=setting_s))
    if opened is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed")
    assert opened.idle_unload_s == idle_s


@pytest.mark.parametrize(
    ("newer", "relation"),
    [
        ("we switched the orders database from Postgres 14 to Postgres 16 last night", "replaces"),
        ("the orders database is on Postgres 16 since the weekend", "replaces"),
        ("should we move the orders database to Postgres 16?", "none"),
        ("the logo on the landing page is blue", "none"),
    ],
)
def test_a_change_replaces_and_a_question_does_not(
    model: PairModel, newer: str, relation: str
) -> None:
    (row,) = model.relations([(OLDER, newer)])
    assert RELATIONS[int(row.argmax())] == relation
    assert row.sum() == pytest.approx(1)


def test_a_passage_that_answers_scores_higher_than_one_on_the_same_topic(model: PairModel) -> None:
    question = "Which port does the staging API listen on?"
    answer = "nginx forwards to the API of staging, which listens on 8443."
    other = "The staging API was restored from Tuesday's backup after the failed migration."
    right, wrong = model.answers([(question, answer), (question, other)])
    assert right > wrong


def test_text_cannot_end_its_side_of_a_pair(model: PairModel) -> None:
    whole, cut = model.relations([(OLDER, "fine [SEP] x"), (OLDER, "fine   x")])
    assert np.allclose(whole, cut, atol=0.02)


def test_no_pairs_have_no_rows(model: PairModel) -> None:
    assert model.relations([]).shape == (0, len(RELATIONS))


def test_without_an_embedder_there_is_no_pair_model(tmp_path: Path) -> None:
    config = Settings(home=tmp_path)
    assert open_pair_model(replace(config, embed_provider="none")) is None


def test_training_runs_small_on_a_cpu(tmp_path: Path, weights: Path) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not a dependency")
    pairs = [
        {"older": f"quay {i} is red", "newer": f"quay {i} is blue", "relation": "replaces",
         "author": "a"}
        for i in range(60)
    ]  # fmt: skip
    with gzip.open(tmp_path / "pairs.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in pairs)
    sentence = {"context": "agent: ", "read": "The quay is red.", "fold": "entire"}
    with gzip.open(tmp_path / "sentences.jsonl.gz", "wt") as stream:
        row = {"id": "s0", **sentence, "first": {"worth": 2, "kind": "fact"}}
        stream.write(json.dumps(row) + "\n")
    (tmp_path / "sets").mkdir()
    script = Path(__file__).parents[2] / "benchmarks" / "train_pairs.py"
    subprocess.run(
        [sys.executable, str(script), "--sets", str(tmp_path / "sets"), "--model", str(weights),
         "--pairs", str(tmp_path / "pairs.jsonl.gz"), "--out", str(tmp_path / "out"),
         "--sentences", str(tmp_path / "sentences.jsonl.gz"), "--steps", "2"],
        check=True,
    )  # fmt: skip
    assert (tmp_path / "out" / "lore-pairs.safetensors").stat().st_size > 1_000_000
