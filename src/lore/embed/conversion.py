"""The conversion of a model's weights to the graph that the runtime reads, done once."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lore import clock
from lore.embed.catalogue import WEIGHTS, Model
from lore.embed.graph import GRAPH_VERSION, Precision, write_graph
from lore.embed.safetensors import read_tensors
from lore.embed.weights import verify_weights
from lore.embed.whole_file import PART, whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator

# A conversion takes a second; what is older was left by a process that was killed.
_ABANDONED = timedelta(hours=1)


@contextmanager
def converted_graph(
    folder: Path, model: Model, precision: Precision, cache: Path
) -> Iterator[Path]:
    """Give the path of the verified and converted graph, for as long as it takes to load.

    The graph stays in `cache`. Where that cannot be written, it lives in a private
    temporary folder until it is loaded.
    """
    verify_weights(folder, model, cache)
    graph = cache / graph_name(model, precision)
    if graph.is_file() and _data(graph).is_file():
        yield graph
        return
    try:
        _remove_abandoned(cache)
        _convert(folder / WEIGHTS, graph, precision)
    except OSError:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as private:
            graph = Path(private) / graph.name
            _convert(folder / WEIGHTS, graph, precision)
            yield graph
    else:
        yield graph


def graph_name(model: Model, precision: Precision) -> str:
    """Return the file name of a graph: other weights or another writer give another name."""
    weights = next(file for file in model.files if file.name == WEIGHTS)
    return f"{precision}-{weights.sha256[:12]}-{GRAPH_VERSION}.onnx"


def _data(graph: Path) -> Path:
    return graph.with_suffix(".data")


def _convert(weights: Path, graph: Path, precision: Precision) -> None:
    # Two processes that convert at once write the same bytes, so the later rename does no
    # harm; the graph appears last and only beside its whole data.
    data = _data(graph)
    with whole_file(data) as opened:
        content = write_graph(read_tensors(weights), opened, data.name, precision)
    with whole_file(graph) as opened:
        opened.write(content)


def _remove_abandoned(cache: Path) -> None:
    for part in cache.glob(f"{PART}*"):
        # A part that is gone was finished by its process in between.
        with suppress(FileNotFoundError):
            changed = datetime.fromtimestamp(part.stat().st_mtime, UTC)
            if clock.now() - changed > _ABANDONED:
                part.unlink()
