"""Embeddings computed by a service that speaks the wire format of OpenAI or of Voyage."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from lore.embed.catalogue import MODELS, Model, find_model, model_names
from lore.embed.request import Endpoint, post_json
from lore.errors import EmbedderError
from lore.proxy.address import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from lore.settings import Settings

# Services take some hundred texts and some 100,000 tokens in one request.
_BATCH_TEXTS = 128
_BATCH_BYTES = 200_000
# Tokens of dense text (CJK, base64) are hardly shorter, so a cut by bytes keeps the limit.
_BYTES_PER_TOKEN = 2
_UNKNOWN_LIMIT_TOKENS = 8191
# Services refuse an empty text.
_BLANK = "."


@dataclass(frozen=True, slots=True)
class Service:
    """The ways in which one service differs from the other."""

    base_url: str
    dimension_field: str
    query_fields: tuple[tuple[str, str], ...] = ()
    passage_fields: tuple[tuple[str, str], ...] = ()


SERVICES = {
    "openai": Service(base_url="https://api.openai.com/v1", dimension_field="dimensions"),
    "voyage": Service(
        base_url="https://api.voyageai.com/v1",
        dimension_field="output_dimension",
        query_fields=(("input_type", "query"),),
        passage_fields=(("input_type", "document"),),
    ),
}


def open_hosted(settings: Settings) -> HostedEmbedder:
    """Return the chosen service's embedder, or raise `EmbedderError` if it cannot serve.

    A model that is unknown here is asked once for the length of its vectors, unless
    `embed.dimension` tells it.
    """
    service = SERVICES[settings.embed_provider]
    url = (settings.embed_base_url or service.base_url).rstrip("/")
    _check_address(url)
    if not settings.embed_api_key and not settings.embed_base_url:
        msg = f"The provider '{settings.embed_provider}' needs an access key."
        raise EmbedderError(msg, hint="Set embed.api_key, best as LORE_EMBED_API_KEY.")
    model = _describe(settings)
    endpoint = Endpoint(f"{url}/embeddings", settings.embed_api_key)
    embedder = HostedEmbedder(model, service, endpoint, settings.embed_dimension)
    embedder.ask_dimension()
    return embedder


class HostedEmbedder:
    """One model of one service."""

    def __init__(
        self, model: Model, service: Service, endpoint: Endpoint, dimension: int = 0
    ) -> None:
        self.name = model.name
        self.dimension = dimension or model.dimension
        self._model = model
        self._service = service
        self._endpoint = endpoint

    @property
    def identity(self) -> str:
        """Model, precision and input limit, with the length that vectors are cut to."""
        model = self._model
        return f"{model.provider}:{model.name}/float32/{model.input_limit_tokens}/{self.dimension}"

    def ask_dimension(self) -> None:
        """Learn the length of a vector from the service, if nothing else tells it."""
        if not self.dimension:
            self.dimension = len(self._request([_BLANK], query=False)[0])

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return one row of length 1 for each text, in their order."""
        import numpy as np  # opening an embedder must not cost the import of numpy

        rows = np.zeros((len(texts), self.dimension), np.float32)
        start = 0
        for batch in _batches([self._prepare(text, query=query) for text in texts]):
            answer = self._request(batch, query=query)
            if any(len(vector) != self.dimension for vector in answer):
                msg = f"'{self.name}' gave vectors that are not {self.dimension} long."
                raise EmbedderError(msg, hint="Set embed.dimension to the model's own.")
            rows[start : start + len(batch)] = answer
            start += len(batch)
        lengths: NDArray[np.float32] = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            msg = f"'{self.name}' gave vectors that are not finite."
            raise EmbedderError(msg)
        rows /= np.maximum(lengths, np.finfo(np.float32).tiny)
        return rows

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    def _prepare(self, text: str, *, query: bool) -> str:
        most_bytes = self._model.input_limit_tokens * _BYTES_PER_TOKEN
        whole = self._model.prefix(query=query) + (text[:most_bytes].strip() or _BLANK)
        return whole.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")

    def _request(self, texts: list[str], *, query: bool) -> list[list[float]]:
        fields = self._service.query_fields if query else self._service.passage_fields
        body: dict[str, object] = {"model": self.name, "input": texts, **dict(fields)}
        if self._model.dimension and self.dimension != self._model.dimension:
            body[self._service.dimension_field] = self.dimension
        answer = post_json(self._endpoint, body)
        vectors = _read_vectors(answer, len(texts))
        if vectors is None:
            msg = f"The answer of {self._endpoint.host} is not a list of embeddings."
            raise EmbedderError(msg, hint="Check embed.base_url and embed.model.")
        return vectors


def _describe(settings: Settings) -> Model:
    provider, name = settings.embed_provider, settings.embed_model
    model = find_model(provider, name)
    if model is not None:
        return model
    others = {other.name for other in MODELS if other.provider != provider}
    if name in others and not settings.embed_base_url:
        msg = f"'{name}' is not a model of the provider '{provider}'."
        known = ", ".join(model_names(provider))
        raise EmbedderError(msg, hint=f"Set embed.model, to one of {known} for example.")
    return Model(provider, name, dimension=0, input_limit_tokens=_UNKNOWN_LIMIT_TOKENS)


def _check_address(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname in LOOPBACK:
        return
    msg = "embed.base_url must be an https address, or http on this machine."
    raise EmbedderError(msg, hint="Texts and the access key must not travel in the clear.")


def _batches(texts: list[str]) -> list[list[str]]:
    batches: list[list[str]] = []
    room = 0
    for text in texts:
        size = len(text.encode())
        if not batches or size > room or len(batches[-1]) == _BATCH_TEXTS:
            batches.append([])
            room = _BATCH_BYTES
        batches[-1].append(text)
        room -= size
    return batches


def _read_vectors(answer: object, count: int) -> list[list[float]] | None:
    """Return the vectors of an answer in the order of the request, None if it is another."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        return None
    vectors: dict[int, list[float]] = {}
    for place, item in enumerate(data):
        if not isinstance(item, dict):
            return None
        index, vector = item.get("index", place), item.get("embedding")
        if not isinstance(index, int) or not _is_vector(vector):
            return None
        vectors[index] = vector
    if len(data) != count or vectors.keys() != set(range(count)):
        return None
    return [vectors[place] for place in range(count)]


def _is_vector(value: object) -> TypeGuard[list[float]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(number) in (int, float) for number in value)
    )
