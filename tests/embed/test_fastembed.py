import importlib.util
from pathlib import Path

import pytest

from lore.embed.fastembed import open_fastembed
from lore.errors import EmbedderError
from lore.settings import Settings

INSTALLED = importlib.util.find_spec("fastembed") is not None


def ask(home: Path, model: str, *, download: bool = False) -> Settings:
    return Settings(
        home=home, embed_provider="fastembed", embed_model=model, embed_download=download
    )


def test_an_unknown_model_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="'other'") as caught:
        open_fastembed(ask(tmp_path, "other"))
    assert "nomic-embed-text-v1.5" in caught.value.hint


@pytest.mark.skipif(INSTALLED, reason="fastembed is installed")
def test_without_the_extra_the_hint_names_it(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="not installed") as caught:
        open_fastembed(ask(tmp_path, "bge-small-en-v1.5"))
    assert "extra 'fastembed'" in caught.value.hint


@pytest.mark.skipif(not INSTALLED, reason="fastembed, an optional extra, is not installed")
def test_no_download_happens_unless_allowed(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="may not") as caught:
        open_fastembed(ask(tmp_path, "bge-small-en-v1.5"))
    assert "embed.download" in caught.value.hint


@pytest.mark.skipif(not INSTALLED, reason="fastembed, an optional extra, is not installed")
def test_an_empty_cache_is_reported_at_first_use(tmp_path: Path) -> None:
    (tmp_path / "models" / "fastembed").mkdir(parents=True)
    embedder = open_fastembed(ask(tmp_path, "nomic-embed-text-v1.5"))
    assert embedder.dimension == 768
    assert embedder.identity == "fastembed:nomic-embed-text-v1.5/float32/8192"
    with pytest.raises(EmbedderError, match="cannot load"):
        embedder.embed(["hello"])
    embedder.close()
