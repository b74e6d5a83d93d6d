import socket
from collections.abc import Iterator

import pytest

from lore.embed.hosted import ATTEMPTS, Endpoint, post_json
from lore.errors import EmbedderError

from .service import Reply, Service, running_service

KEY = "sk-secret-of-the-test"
BODY = {"model": "m", "input": ["x"]}


@pytest.fixture
def service() -> Iterator[Service]:
    with running_service() as running:
        yield running


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def endpoint(service: Service, pauses: list[float]) -> Endpoint:
    return Endpoint(service.url, KEY, sleep=pauses.append)


@pytest.fixture
def impatient(service: Service, pauses: list[float]) -> Endpoint:
    return Endpoint(service.url, KEY, timeout_s=1.0, sleep=pauses.append)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_temporary_error_is_retried(
    service: Service, endpoint: Endpoint, pauses: list[float], status: int
) -> None:
    service.script += [Reply(status, {}), Reply(status, {})]
    assert isinstance(post_json(endpoint, BODY), dict)
    assert len(service.requests) == 3
    assert pauses == [0.5, 1.0]


def test_retry_after_is_honored_up_to_a_limit(
    service: Service, endpoint: Endpoint, pauses: list[float]
) -> None:
    service.script += [
        Reply(429, {}, headers=(("Retry-After", "3"),)),
        Reply(429, {}, headers=(("Retry-After", "86400"),)),
        Reply(429, {}, headers=(("Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"),)),
    ]
    post_json(endpoint, BODY)
    assert pauses == [3.0, 20.0, 2.0]


def test_persistent_error_is_reported_after_last_attempt(
    service: Service, endpoint: Endpoint
) -> None:
    service.script += [Reply(503, {"detail": "too busy"})] * ATTEMPTS
    with pytest.raises(EmbedderError, match=r"503.*too busy"):
        post_json(endpoint, BODY)
    assert len(service.requests) == ATTEMPTS


def test_permanent_error_is_not_retried(service: Service, endpoint: Endpoint) -> None:
    service.script.append(Reply(400, {"error": {"message": f"no such model ({KEY})"}}))
    with pytest.raises(EmbedderError, match=r"400.*no such model") as caught:
        post_json(endpoint, BODY)
    assert len(service.requests) == 1
    assert KEY not in str(caught.value) + caught.value.hint


def test_key_is_not_in_the_error(service: Service, endpoint: Endpoint) -> None:
    said = {"error": {"message": f"Incorrect API key provided: {KEY[:9]}***"}}
    service.script.append(Reply(401, said))
    with pytest.raises(EmbedderError, match="refuses the access key") as caught:
        post_json(endpoint, BODY)
    assert KEY[:9] not in str(caught.value)
    assert KEY not in repr(endpoint)


def test_a_redirect_is_not_followed(service: Service, endpoint: Endpoint) -> None:
    with running_service() as elsewhere:
        service.script.append(Reply(302, {}, headers=(("Location", elsewhere.url),)))
        with pytest.raises(EmbedderError, match="302"):
            post_json(endpoint, BODY)
        assert elsewhere.requests == []


def test_timeout_is_reported(service: Service, impatient: Endpoint) -> None:
    service.script += [Reply(delay_s=1.5)] * ATTEMPTS
    with pytest.raises(EmbedderError, match=r"cannot be reached.*timed out"):
        post_json(impatient, BODY)
    assert len(service.requests) == ATTEMPTS


def test_timeout_is_retried(service: Service, impatient: Endpoint) -> None:
    service.script.append(Reply(delay_s=1.5))
    assert isinstance(post_json(impatient, BODY), dict)


def test_connection_error_is_reported(pauses: list[float]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = Endpoint(f"http://127.0.0.1:{port}", KEY, sleep=pauses.append)
    with pytest.raises(EmbedderError, match="cannot be reached"):
        post_json(endpoint, BODY)
    assert len(pauses) == ATTEMPTS - 1


def test_an_answer_that_is_not_json_is_an_error(service: Service, endpoint: Endpoint) -> None:
    service.script.append(Reply(body=b"<html>hello</html>"))
    with pytest.raises(EmbedderError, match="not JSON"):
        post_json(endpoint, BODY)
