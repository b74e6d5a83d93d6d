from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lore.embed.hosted import SERVICES, Endpoint, HostedEmbedder, open_hosted
from lore.embed.models import Model
from lore.errors import EmbedderError
from lore.settings import Settings

from .service import Reply, Service, running_service, vector

KEY = "sk-secret-of-the-test"


@pytest.fixture
def service() -> Iterator[Service]:
    with running_service() as running:
        yield running


def ask(service: Service, provider: str = "openai", **changes: object) -> Settings:
    values: dict[str, object] = {
        "home": Path("/nonexistent"),
        "embed_provider": provider,
        "embed_model": "text-embedding-3-small" if provider == "openai" else "voyage-3.5",
        "embed_base_url": service.url,
        "embed_api_key": KEY,
        **changes,
    }
    return Settings(**values)  # type: ignore[arg-type]  # the test names real settings


def test_openai_request_and_response(service: Service) -> None:
    embedder = open_hosted(ask(service))
    assert (embedder.name, embedder.dimension) == ("text-embedding-3-small", 1536)
    assert service.requests == []
    service.dimension = 1536
    found = embedder.embed(["one", "three"])
    expected = np.array([vector("one", 1536), vector("three", 1536)], np.float32)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.dtype == np.float32
    (request,) = service.requests
    assert request.path == "/v1/embeddings"
    assert request.key == f"Bearer {KEY}"
    assert request.body == {"model": "text-embedding-3-small", "input": ["one", "three"]}
    embedder.close()


def test_voyage_requests_distinguish_queries_and_passages(service: Service) -> None:
    service.dimension = 1024
    embedder = open_hosted(ask(service, "voyage"))
    embedder.embed(["passage"])
    embedder.embed(["question"], query=True)
    kinds = [request.body["input_type"] for request in service.requests]
    assert kinds == ["document", "query"]


@pytest.mark.parametrize(
    ("provider", "field"), [("openai", "dimensions"), ("voyage", "output_dimension")]
)
def test_shorter_dimension_is_requested(service: Service, provider: str, field: str) -> None:
    embedder = open_hosted(ask(service, provider, embed_dimension=256))
    assert embedder.embed(["text"]).shape == (1, 256)
    assert service.requests[0].body[field] == 256
    assert embedder.identity.endswith("/256")


def test_dimension_of_unknown_model_is_requested(service: Service) -> None:
    service.dimension = 5
    embedder = open_hosted(ask(service, embed_model="house-model"))
    assert embedder.dimension == 5
    assert embedder.identity == "openai:house-model/float32/8191/5"
    assert embedder.embed(["a", "b"]).shape == (2, 5)
    assert "dimensions" not in service.requests[-1].body


def test_many_texts_go_in_several_requests_and_keep_their_order(service: Service) -> None:
    embedder = open_hosted(ask(service, embed_model="m", embed_dimension=4))
    texts = ["x" * (1 + place) for place in range(300)]
    found = embedder.embed(texts)
    assert [len(request.body["input"]) for request in service.requests] == [128, 128, 44]  # type: ignore[arg-type]  # a list
    expected = np.array([vector(text, 4) for text in texts], np.float32)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_blank_and_long_texts_are_normalized(service: Service) -> None:
    embedder = open_hosted(ask(service, embed_model="m", embed_dimension=4))
    embedder.embed(["", "  ", "é" * 10_000_000, "\ud800"])
    sent = service.requests[0].body["input"]
    assert isinstance(sent, list)
    assert sent[:2] == [".", "."]
    assert len(sent[2].encode()) <= 2 * 8191
    assert sent[3] == "?"
    assert embedder.embed([]).shape == (0, 4)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"data": []},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": ["1", "2"]}]},
        {"data": [{"index": 1, "embedding": [1.0, 2.0, 3.0, 4.0]}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": [], "embedding": [1.0, 2.0, 3.0, 4.0]}]},
        {"data": ["text"]},
    ],
    ids=str,
)
def test_malformed_response_is_an_error(service: Service, body: object) -> None:
    embedder = open_hosted(ask(service, embed_model="m", embed_dimension=4))
    service.script.append(Reply(body=body))
    with pytest.raises(EmbedderError, match="not a list of embeddings"):
        embedder.embed(["text"])


def test_vectors_of_another_length_are_an_error(service: Service) -> None:
    embedder = open_hosted(ask(service))
    with pytest.raises(EmbedderError, match="not 1536 long"):
        embedder.embed(["text"])


def test_vectors_that_are_not_finite_are_an_error(service: Service) -> None:
    embedder = open_hosted(ask(service, embed_model="m", embed_dimension=2))
    body = b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}'
    service.script.append(Reply(body=body))
    with pytest.raises(EmbedderError, match="not finite"):
        embedder.embed(["text"])


def test_hosted_service_needs_key_and_own_model() -> None:
    with pytest.raises(EmbedderError, match="access key"):
        open_hosted(Settings(embed_provider="openai", embed_model="text-embedding-3-small"))
    with pytest.raises(EmbedderError, match="not a model of") as caught:
        open_hosted(Settings(embed_provider="voyage", embed_api_key=KEY))
    assert "voyage-3.5" in caught.value.hint


@pytest.mark.parametrize(
    "url", ["http://embeddings.example/v1", "ftp://127.0.0.1", "file:///etc", "example"]
)
def test_plain_http_address_is_refused(service: Service, url: str) -> None:
    with pytest.raises(EmbedderError, match="https"):
        open_hosted(ask(service, embed_base_url=url))


def test_model_prefixes_are_added(service: Service) -> None:
    model = Model("openai", "m", 4, 512, query_prefix="query: ", passage_prefix="passage: ")
    embedder = HostedEmbedder(model, SERVICES["openai"], Endpoint(service.url + "/embeddings", ""))
    embedder.embed(["x"])
    embedder.embed(["x"], query=True)
    sent = [request.body["input"] for request in service.requests]
    assert sent == [["passage: x"], ["query: x"]]
    assert service.requests[0].key == ""
