import numpy as np

from lore.embed.none import NoEmbedder


def test_vectors_have_no_columns() -> None:
    embedder = NoEmbedder()
    vectors = embedder.embed(["one", "two"], query=True)
    assert vectors.shape == (2, 0)
    assert vectors.dtype == np.float32
    assert embedder.dimension == 0
    embedder.close()
