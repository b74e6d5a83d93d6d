"""The choice of the embedder."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lore
import lore.embed
from lore.embed import describe_source, open_embedder
from lore.embed.embedder import NoEmbedder
from lore.embed.local import LocalEmbedder
from lore.errors import EmbedderError
from lore.settings import Settings


def test_vectors_have_no_columns() -> None:
    embedder = NoEmbedder()
    vectors = embedder.embed(["one", "two"], query=True)
    assert vectors.shape == (2, 0)
    assert vectors.dtype == np.float32
    assert embedder.dimension == 0
    embedder.close()


SOURCE = Path(lore.__file__).parents[1]
OPEN = """
import sys
from pathlib import Path
from lore.embed import open_embedder
from lore.settings import Settings
opened = open_embedder(Settings(home=Path(sys.argv[1])))
print(opened.embedder.name, opened.embedder.dimension, opened.notice, sep="|")
print(sorted({"numpy", "onnxruntime", "tokenizers", "urllib.request"} & set(sys.modules)))
"""


def open_elsewhere(home: Path, *paths: Path, site: bool = True) -> list[str]:
    """Open the default embedder in a process that sees only these folders."""
    done = subprocess.run(
        [sys.executable, *([] if site else ["-S"]), "-c", OPEN, str(home)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (SOURCE, *paths)))},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_package_exports_are_sorted() -> None:
    assert lore.embed.__all__ == sorted(lore.embed.__all__)
    assert all(hasattr(lore.embed, name) for name in lore.embed.__all__)


def test_the_local_model_is_the_default(weights: Path, tmp_path: Path) -> None:
    opened = open_embedder(Settings(home=tmp_path))
    assert isinstance(opened.embedder, LocalEmbedder)
    assert opened.notice == ""
    assert opened.embedder.identity == "lore-mini@f65cf8bb/float32/256"
    assert opened.embedder.dimension == 384
    assert not opened.embedder.is_loaded()
    assert not list(tmp_path.iterdir())


def test_the_source_of_an_embedder_names_setting_base_and_folder(
    weights: Path, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path)
    text = describe_source(settings, open_embedder(settings).embedder)
    assert "embed.model 'lore-mini'" in text
    assert "lore-mini is all-MiniLM-L6-v2" in text
    assert str(weights) in text
    nothing = Settings(home=tmp_path, embed_provider="none")
    assert describe_source(nothing, open_embedder(nothing).embedder) == (
        "Named by embed.provider 'none'."
    )


def test_opening_imports_nothing_heavy(weights: Path, tmp_path: Path) -> None:
    assert open_elsewhere(tmp_path) == ["lore-mini|384|", "[]"]


def test_missing_weights_fall_back_to_keywords_with_notice(tmp_path: Path) -> None:
    for name in ("onnxruntime", "tokenizers"):
        (tmp_path / "bare" / name).mkdir(parents=True)
        (tmp_path / "bare" / name / "__init__.py").touch()
    assert open_elsewhere(tmp_path, tmp_path / "bare", site=False) == [
        "none|0|No embedding model is installed: searching by keywords only. "
        "'lore model install' adds it.",
        "[]",
    ]


def test_missing_runtime_falls_back_to_keywords_with_notice(tmp_path: Path) -> None:
    assert open_elsewhere(tmp_path, site=False) == [
        "none|0|onnxruntime is not installed: searching by keywords only.",
        "[]",
    ]


def test_unknown_local_model_falls_back_to_keywords(tmp_path: Path) -> None:
    opened = open_embedder(Settings(home=tmp_path, embed_model="large"))
    assert isinstance(opened.embedder, NoEmbedder)
    assert "'large'" in opened.notice
    assert "all-MiniLM-L6-v2" in opened.notice


def test_provider_none_has_no_notice(tmp_path: Path) -> None:
    opened = open_embedder(Settings(home=tmp_path, embed_provider="none"))
    assert isinstance(opened.embedder, NoEmbedder)
    assert opened.notice == ""


@pytest.mark.parametrize("provider", ["fastembed", "openai", "voyage"])
def test_unusable_provider_is_an_error_with_a_hint(tmp_path: Path, provider: str) -> None:
    with pytest.raises(EmbedderError) as caught:
        open_embedder(Settings(home=tmp_path, embed_provider=provider, embed_model="x"))
    assert caught.value.hint
