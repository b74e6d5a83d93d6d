from pathlib import Path

import pytest

from lore.embed.catalogue import Model
from lore.embed.conversion import graph_name
from lore.embed.encoder import REFUSALS, Encoder, EncoderOptions
from lore.errors import EmbedderError


def test_a_damaged_graph_is_reported_with_what_to_remove(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    graph = tmp_path / graph_name(minilm, "float32")
    graph.write_bytes(b"not a graph")
    graph.with_suffix(".data").write_bytes(b"")
    options = EncoderOptions("float32", tmp_path, threads=1, windows=1)
    with pytest.raises(EmbedderError, match="cannot load") as caught:
        Encoder(weights, minilm, options)
    assert str(graph) in caught.value.hint


def test_the_errors_of_the_runtime_are_known() -> None:
    names = {refusal.__name__ for refusal in REFUSALS}
    assert names >= {"Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoSuchFile"}
