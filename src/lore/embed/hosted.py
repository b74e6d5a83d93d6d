"""Embeddings from a hosted service with the API of OpenAI or Voyage, with timeout and retry."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Never, TypeGuard

from lore.embed.models import MODELS, Model, find_model, model_names
from lore.errors import EmbedderError
from lore.proxy.address import LOOPBACK_HOSTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from email.message import Message

    import numpy as np
    from numpy.typing import NDArray

    from lore.settings import Settings


ATTEMPTS = 4
TIMEOUT_S = 30.0

_FIRST_BACKOFF_S = 0.5
# A service may ask for a longer delay than a caller will wait.
_MAX_DELAY_S = 20.0
# 128 vectors of 3,072 numbers are 8 MB of JSON.
_MAX_RESPONSE_BYTES = 64 * 1024 * 1024
_MAX_REASON_CHARS = 200
_BAD_KEY = (401, 403)
_RATE_LIMITED = 429


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a service; the key never appears in the repr."""

    url: str
    key: str = field(repr=False)
    timeout_s: float = TIMEOUT_S
    sleep: Callable[[float], None] = time.sleep

    @property
    def host(self) -> str:
        """The host name of the service."""
        return urllib.parse.urlsplit(self.url).hostname or ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: they would send texts and key to an address that nobody chose."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> None:
        """Return None, so that the response counts as an error."""


def post_json(endpoint: Endpoint, body: Mapping[str, object]) -> object:
    """Post a JSON request with retry and exponential backoff; return the parsed response.

    Raise `EmbedderError`, without the key in it, when the last attempt fails.
    """
    request = urllib.request.Request(  # noqa: S310 - the address was checked at opening
        endpoint.url,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Accept": "application/json"},
    )
    if endpoint.key:
        # Not sent to a proxy.
        request.add_unredirected_header("Authorization", f"Bearer {endpoint.key}")
    backoff_s = _FIRST_BACKOFF_S
    for attempt in range(1, ATTEMPTS + 1):
        last = attempt == ATTEMPTS
        try:
            return json.loads(_send(endpoint, request))
        except urllib.error.HTTPError as error:
            with error:
                if last or not _is_retryable(error.code):
                    _raise_refusal(endpoint, error)
                delay_s = _retry_after_s(error.headers) or backoff_s
        except (OSError, http.client.HTTPException) as error:
            if last:
                msg = f"{endpoint.host} cannot be reached: {_reason(error)}"
                raise EmbedderError(msg, hint="Check the network and embed.base_url.") from None
            delay_s = backoff_s
        except ValueError as error:
            msg = f"The response of {endpoint.host} is not JSON."
            raise EmbedderError(msg, hint="Check embed.base_url.") from error
        endpoint.sleep(min(delay_s, _MAX_DELAY_S))
        backoff_s *= 2
    raise AssertionError


def _send(endpoint: Endpoint, request: urllib.request.Request) -> bytes:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if endpoint.url.startswith("http://"):
        # Plain http is allowed for this machine only, where no proxy is needed.
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    with opener.open(request, timeout=endpoint.timeout_s) as response:
        content: bytes = response.read(_MAX_RESPONSE_BYTES)
        return content


def _is_retryable(status: int) -> bool:
    return status == _RATE_LIMITED or status >= 500


def _retry_after_s(headers: Message) -> float:
    try:
        return max(0.0, float(headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0


def _raise_refusal(endpoint: Endpoint, error: urllib.error.HTTPError) -> Never:
    if error.code in _BAD_KEY:
        # Services repeat parts of the key in this answer, so it is not quoted.
        msg = f"{endpoint.host} refuses the access key (status {error.code})."
        raise EmbedderError(msg, hint="Check embed.api_key.") from None
    detail = error.read(4096).decode("utf-8", "replace")
    if endpoint.key:
        detail = detail.replace(endpoint.key, "…")
    detail = " ".join(detail.split())[:_MAX_REASON_CHARS]
    msg = f"{endpoint.host} answers with status {error.code}: {detail}"
    hint = "Try again later." if _is_retryable(error.code) else "Check embed.model."
    raise EmbedderError(msg, hint=hint) from None


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(inner) or type(inner).__name__


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
    """The differences between the APIs of the services."""

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
    """Return the chosen service's embedder; raise `EmbedderError` if it is not usable.

    The dimension of an unknown model is requested once, unless `embed.dimension` is set.
    """
    service = SERVICES[settings.embed_provider]
    url = (settings.embed_base_url or service.base_url).rstrip("/")
    _check_address(url)
    if not settings.embed_api_key and not settings.embed_base_url:
        msg = f"The provider '{settings.embed_provider}' needs an access key."
        raise EmbedderError(msg, hint="Set embed.api_key, best as LORE_EMBED_API_KEY.")
    model = _find_or_describe_model(settings)
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
        """Model, precision, input limit and dimension."""
        model = self._model
        return f"{model.provider}:{model.name}/float32/{model.input_limit_tokens}/{self.dimension}"

    def ask_dimension(self) -> None:
        """Request one embedding to learn the dimension, if it is unknown."""
        if not self.dimension:
            self.dimension = len(self._request([_BLANK], query=False)[0])

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return one row of length 1 for each text, in their order."""
        import numpy as np  # opening an embedder must not cost the import of numpy

        rows = np.zeros((len(texts), self.dimension), np.float32)
        start = 0
        for batch in _batches([self._prepare(text, query=query) for text in texts]):
            vectors = self._request(batch, query=query)
            if any(len(vector) != self.dimension for vector in vectors):
                msg = f"'{self.name}' gave vectors that are not {self.dimension} long."
                raise EmbedderError(msg, hint="Set embed.dimension to the model's own.")
            rows[start : start + len(batch)] = vectors
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
        response = post_json(self._endpoint, body)
        vectors = _read_vectors(response, len(texts))
        if vectors is None:
            msg = f"The response of {self._endpoint.host} is not a list of embeddings."
            raise EmbedderError(msg, hint="Check embed.base_url and embed.model.")
        return vectors


def _find_or_describe_model(settings: Settings) -> Model:
    provider, name = settings.embed_provider, settings.embed_model
    model = find_model(provider, name)
    if model is not None:
        return model
    others = {other.name for other in MODELS if other.provider != provider}
    if name in others and not settings.embed_base_url:
        msg = f"'{name}' is not a model of the provider '{provider}'."
        names = ", ".join(model_names(provider))
        raise EmbedderError(msg, hint=f"Set embed.model, to one of {names} for example.")
    return Model(provider, name, dimension=0, input_limit_tokens=_UNKNOWN_LIMIT_TOKENS)


def _check_address(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS:
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


def _read_vectors(response: object, count: int) -> list[list[float]] | None:
    """Return the vectors in the order of the request, or None for a malformed response."""
    data = response.get("data") if isinstance(response, dict) else None
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
