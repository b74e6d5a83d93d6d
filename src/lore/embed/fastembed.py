"""Local models of the optional fastembed package."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from lore.embed.models import Model, find_model, model_names
from lore.embed.runtime import count_cores
from lore.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from fastembed import TextEmbedding
    from numpy.typing import NDArray

    from lore.settings import Settings

# Texts that one run may hold; fastembed pads them to the longest, up to 8,192 tokens.
_BATCH_TEXTS = 8


def open_fastembed(settings: Settings) -> FastembedEmbedder:
    """Return the chosen model; raise `EmbedderError` if it is not usable."""
    model = get_fastembed_model(settings.embed_model)
    if importlib.util.find_spec("fastembed") is None:
        hint = "Install Lore with its extra 'fastembed', or set embed.provider to local."
        msg = "fastembed is not installed."
        raise EmbedderError(msg, hint=hint)
    folder = fastembed_folder(settings)
    if not (settings.embed_download or settings.embed_model_path or folder.is_dir()):
        msg = f"fastembed has not downloaded '{model.name}' yet, and may not."
        raise EmbedderError(msg, hint="Set embed.download to true to allow it.")
    return FastembedEmbedder(model, settings)


def get_fastembed_model(name: str) -> Model:
    """Return one of fastembed's models; raise `EmbedderError` for an unknown one."""
    model = find_model("fastembed", name)
    if model is None:
        names = ", ".join(model_names("fastembed"))
        msg = f"Lore does not know fastembed's model '{name}'."
        raise EmbedderError(msg, hint=f"Set embed.model to one of {names}.")
    return model


def fastembed_folder(settings: Settings) -> Path:
    """Return the folder for fastembed's downloads."""
    return settings.models / "fastembed"


class FastembedEmbedder:
    """One of fastembed's models, loaded on first use."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self.name = model.name
        self.dimension = model.dimension
        self.identity = f"fastembed:{model.name}/float32/{model.input_limit_tokens}"
        self._model = model
        self._settings = settings
        self._lock = threading.Lock()
        self._loaded: TextEmbedding | None = None

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return one row of length 1 for each text, in their order."""
        import numpy as np  # opening an embedder must not cost the import of numpy

        # The tokenizer takes no lone surrogates, and reads no more than its limit.
        most = self._model.input_limit_tokens * 8
        prefix = self._model.prefix(query=query)
        cleaned = [prefix + text[:most].encode("utf-8", "replace").decode() for text in texts]
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for index, row in enumerate(self._get_loaded().embed(cleaned, batch_size=_BATCH_TEXTS)):
            rows[index] = row / max(float(np.linalg.norm(row)), 1e-9)
        return rows

    def close(self) -> None:
        """Unload the model."""
        with self._lock:
            self._loaded = None

    def _get_loaded(self) -> TextEmbedding:
        with self._lock:
            if self._loaded is None:
                self._loaded = load_text_embedding(self._model, self._settings)
            return self._loaded


def load_text_embedding(model: Model, settings: Settings) -> TextEmbedding:
    """Load a model, downloading it first where the settings allow that."""
    from fastembed import TextEmbedding  # an optional extra

    path = settings.embed_model_path
    try:
        return TextEmbedding(
            model.provider_name,
            cache_dir=str(fastembed_folder(settings)),
            threads=settings.embed_threads or count_cores(),
            local_files_only=not settings.embed_download,
            specific_model_path=str(Path(path).expanduser()) if path else None,
            enable_cpu_mem_arena=False,
        )
    except (OSError, ValueError) as error:
        msg = f"fastembed cannot load '{model.name}': {error}"
        hint = "Set embed.download to true to let it download the model."
        raise EmbedderError(msg, hint=hint) from error
