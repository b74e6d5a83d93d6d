"""The local embedder: loads its model on first use and unloads it when idle."""

from __future__ import annotations

import ctypes
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from lore.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from lore.embed.encoder import Encoder
    from lore.embed.models import Model
    from lore.settings import Settings

# Windows of a long text that are embedded, from its start; the rest is not.
WINDOWS = 1


class LocalEmbedder:
    """MiniLM on this machine.

    A text without a word gets the model's vector for the empty text. For a `short_lived` process it
    loads faster, and embeds slower.
    """

    def __init__(
        self,
        model: Model,
        folder: Path,
        settings: Settings,
        *,
        windows: int = WINDOWS,
        short_lived: bool = False,
    ) -> None:
        self.name = model.name
        self.dimension = model.dimension
        limit = f"{model.input_limit_tokens}" + (f"x{windows}" if windows > 1 else "")
        version = f"@{model.delta.sha256[:8]}" if model.delta else ""
        self.identity = f"{model.name}{version}/{settings.embed_precision}/{limit}"
        self._model = model
        self._folder = folder
        self._settings = settings
        self._windows = windows
        self._short_lived = short_lived
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._encoder: Encoder | None = None
        self._used_s = 0.0

    def is_loaded(self) -> bool:
        """Return whether the model is in memory."""
        return self._encoder is not None

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return one row of length 1 for each text, in their order."""
        prefix = self._model.prefix(query=query)
        vectors = self._get_encoder().encode([prefix + text for text in texts])
        self._used_s = time.monotonic()
        return vectors

    def close(self) -> None:
        """Unload the model for good."""
        self._closed.set()
        with self._lock:
            self._encoder = None

    def _get_encoder(self) -> Encoder:
        with self._lock:
            if self._closed.is_set():
                msg = "The embedder is closed."
                raise EmbedderError(msg)
            self._used_s = time.monotonic()
            if self._encoder is None:
                self._encoder = self._load()
                if self._settings.embed_idle_unload_s > 0:
                    threading.Thread(
                        target=self._unload_when_idle, name="embedder-idle", daemon=True
                    ).start()
            return self._encoder

    def _load(self) -> Encoder:
        try:
            # The runtime is slow to import: not before the first text.
            from lore.embed.encoder import Encoder, EncoderOptions
        except ImportError as error:
            msg = f"The local embedder cannot be imported: {error}"
            hint = "Install onnxruntime and tokenizers anew, or set embed.provider to none."
            raise EmbedderError(msg, hint=hint) from error
        options = EncoderOptions(
            precision="int8" if self._settings.embed_precision == "int8" else "float32",
            cache=self._settings.models / self._model.name,
            threads=self._settings.embed_threads,
            windows=self._windows,
            packed=not self._short_lived,
        )
        try:
            return Encoder(self._folder, self._model, options)
        except OSError as error:
            msg = f"The local model cannot be read: {error}"
            hint = "'lore model install' brings it back; converting it takes 100 MB of disk."
            raise EmbedderError(msg, hint=hint) from error

    def _unload_when_idle(self) -> None:
        rest_s = idle_s = self._settings.embed_idle_unload_s
        while not self._closed.wait(rest_s):
            with self._lock:
                rest_s = self._used_s + idle_s - time.monotonic()
                if rest_s <= 0:
                    self._encoder = None
                    _return_memory()
                    return


def _return_memory() -> None:
    """Return freed memory to the system: glibc keeps 85 MB of a model unless it is asked."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
