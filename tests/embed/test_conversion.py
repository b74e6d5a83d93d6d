import os
import subprocess
import sys
from pathlib import Path

import pytest

import lore
from lore.embed.catalogue import Model
from lore.embed.conversion import converted_graph, graph_name
from lore.embed.weights import STAMPS
from lore.errors import WeightsRejected

SOURCE = Path(lore.__file__).parents[1]
CONVERT = """
import sys
from pathlib import Path
from lore.embed.catalogue import find_model
from lore.embed.conversion import converted_graph
sys.stdin.readline()
model = find_model("local", "all-MiniLM-L6-v2")
with converted_graph(Path(sys.argv[1]), model, "int8", Path(sys.argv[2])) as graph:
    print(graph.stat().st_size, graph.with_suffix(".data").stat().st_size)
"""


def test_a_graph_is_converted_once(tmp_path: Path, weights: Path, minilm: Model) -> None:
    cache = tmp_path / "cache"
    with converted_graph(weights, minilm, "int8", cache) as graph:
        first = graph.stat()
    names = {path.name for path in cache.iterdir()}
    assert names == {graph.name, graph.with_suffix(".data").name, STAMPS}
    with converted_graph(weights, minilm, "int8", cache) as again:
        assert again.stat().st_mtime_ns == first.st_mtime_ns
    graph.with_suffix(".data").unlink()
    with converted_graph(weights, minilm, "int8", cache) as whole:
        assert whole.with_suffix(".data").is_file()


def test_processes_that_convert_at_once_do_not_disturb_each_other(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CONVERT, str(weights), str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        for _ in range(2)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    answers = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert answers[0] == answers[1]
    assert not list(tmp_path.glob(".part-*"))
    assert (tmp_path / graph_name(minilm, "int8")).is_file()


def test_where_nothing_can_be_written_the_graph_lives_until_it_is_loaded(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    (tmp_path / "file").write_text("")
    with converted_graph(weights, minilm, "int8", tmp_path / "file" / "cache") as graph:
        assert graph.is_file()
    assert not graph.parent.exists()


def test_what_a_killed_process_left_is_removed(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    old, recent = tmp_path / ".part-old", tmp_path / ".part-recent"
    old.write_text("")
    recent.write_text("")
    os.utime(old, (0, 0))
    with converted_graph(weights, minilm, "int8", tmp_path):
        pass
    assert not old.exists()
    assert recent.exists()


def test_rejected_weights_are_not_converted(tmp_path: Path, weights: Path, minilm: Model) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_text("tampered")
    (folder / "tokenizer.json").write_text("tampered")
    with (
        pytest.raises(WeightsRejected),
        converted_graph(folder, minilm, "float32", tmp_path / "cache"),
    ):
        pass
    assert not (tmp_path / "cache").exists()
