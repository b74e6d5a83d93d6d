"""The comparison with other memories: what a peer is given, and how its ranks are scored."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

from lore.evals.datasets import Document, Query, RetrievalTask
from tests.evals import benchmark_script
from tests.fakes import FakeEmbedder

peers = benchmark_script.load("peers")


def _task(*texts: str, gold: str) -> RetrievalTask:
    return RetrievalTask(
        name="harbour",
        documents=tuple(Document(str(place), text) for place, text in enumerate(texts)),
        queries=(Query("where is the lamp?", "where", frozenset(gold), cluster="one"),),
        fill=lambda _memory: {},
        rank=lambda *_: [],
    )


def test_a_result_shows_every_document_of_the_same_text():
    task = _task("rope", "lamp", "lamp", "tea", gold="2")
    (outcome,) = peers.outcomes_of(task, [[0, 1, 2, 3]])
    assert outcome.ranked == (frozenset("0"), frozenset("12"), frozenset("3"))
    assert (outcome.recall(1), outcome.recall(2)) == (0, 1)
    assert (outcome.category, outcome.cluster) == ("where", "one")


def test_embeddings_are_served_one_by_one_and_in_batches():
    embedder = FakeEmbedder()
    with peers.serve_embeddings(embedder) as url:
        alone = httpx.post(f"{url}/embeddings", json={"input": "lamp"}).json()["data"]
        batch = httpx.post(f"{url}/embeddings", json={"input": ["rope", "lamp"]}).json()["data"]
    assert [one["index"] for one in batch] == [0, 1]
    assert alone[0]["embedding"] == batch[1]["embedding"]
    assert np.array(batch[1]["embedding"], np.float32) == pytest.approx(embedder.embed(["lamp"])[0])


PEER = """
import json, sys, urllib.request

content = json.load(open(sys.argv[1]))

def embed(text):
    url = content["embeddings"] + "/embeddings"
    body = json.dumps({"input": text, "model": content["model"]}).encode()
    return json.load(urllib.request.urlopen(url, body))["data"][0]["embedding"]

def rank(task, question):
    query = embed(question)
    near = [sum(a * b for a, b in zip(query, embed(one["text"]))) for one in task["documents"]]
    return sorted(range(len(near)), key=lambda place: -near[place])

ranks = [[rank(task, question) for question in task["questions"]] for task in content["tasks"]]
json.dump({"small peer": ranks}, open(sys.argv[2], "w"))
"""


@pytest.mark.skipif(not shutil.which("uv"), reason="peers run in environments that uv makes")
def test_a_peer_runs_in_an_environment_of_its_own(tmp_path: Path):
    script = tmp_path / "peer.py"
    script.write_text(PEER)
    tasks = [_task("the rope is new", "the lamp is here", gold="1"), _task("lamp", gold="0")]
    arguments = ["--python", sys.executable, str(script)]
    outcomes = peers.run_peer(tasks, FakeEmbedder(), arguments, "rrf")
    assert [one.recall(1) for one in outcomes["small peer"]] == [1, 1]


@pytest.mark.skipif(not shutil.which("uv"), reason="peers run in environments that uv makes")
def test_a_peer_that_fails_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tmp_path / "peer.py"
    script.write_text("raise SystemExit('needs a database')")
    arguments = ["--python", sys.executable, str(script)]
    assert peers.run_peer([_task("lamp", gold="0")], FakeEmbedder(), arguments, "rrf") == {}
    assert str(script) in capsys.readouterr().err
