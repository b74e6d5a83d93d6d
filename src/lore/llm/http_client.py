"""The HTTP client of the provider SDKs: limit response sizes, and translate provider errors."""

from __future__ import annotations

import email.utils
import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

import httpx2

from lore import clock
from lore.errors import PromptTooLong, ProviderError, ProviderUnavailable, RateLimited
from lore.proxy.address import LOOPBACK_HOSTS
from lore.text import words

if TYPE_CHECKING:
    from lore.llm.presets import ProviderConfig

MAX_BODY_BYTES = 8 * 1024 * 1024
"""The longest expected responses have some 100 KB."""


class ResponseTooLarge(httpx2.ReadError):
    """A response was longer than the client reads."""


def open_client(url: str, timeout_s: float, *, max_bytes: int = MAX_BODY_BYTES) -> httpx2.Client:
    """Return a client for one address that limits the time and the size of every response.

    It follows no redirects: they would carry texts and the API key to another address.
    """
    inner = httpx2.HTTPTransport(proxy=_proxy_for(url), limits=httpx2.Limits(max_connections=4))
    transport = LimitedTransport(inner, timeout_s, max_bytes)
    return httpx2.Client(transport=transport, timeout=timeout_s, follow_redirects=False)


class HttpChat:
    """What the chats over HTTP share: their configuration and their HTTP client."""

    def __init__(self, choice: ProviderConfig) -> None:
        self.identity = choice.identity
        self._choice = choice
        self._http = open_client(choice.base_url, choice.timeout_s)

    def close(self) -> None:
        """Abort running requests and release all resources."""
        self._http.close()

    def _client_options(self) -> dict[str, Any]:
        """Return the options of an SDK's client."""
        return {
            "api_key": self._choice.api_key,
            "base_url": self._choice.base_url,
            "timeout": self._choice.timeout_s,
            "max_retries": 0,
            "http_client": self._http,
        }


def _proxy_for(url: str) -> str | None:
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    if host in LOOPBACK_HOSTS or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)


class LimitedTransport(httpx2.BaseTransport):
    """A transport that limits the total time and size of a request."""

    def __init__(
        self, inner: httpx2.BaseTransport, timeout_s: float, max_bytes: int = MAX_BODY_BYTES
    ) -> None:
        self._inner = inner
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._deadlines: set[_RequestDeadline] = set()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the whole response must arrive before the deadline."""
        deadline = _RequestDeadline(self._timeout_s, self._deadlines)
        request.extensions = {**request.extensions, "trace": deadline.track_socket}
        # A reused connection would be tracked by the deadline of an earlier request.
        request.headers["Connection"] = "close"
        request.headers["Accept-Encoding"] = "identity"
        try:
            response = self._inner.handle_request(request)
        except httpx2.HTTPError as error:
            deadline.cancel()
            raise deadline.explain(error) from error
        except BaseException:
            deadline.cancel()
            raise
        assert isinstance(response.stream, httpx2.SyncByteStream)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            # Compressed data can expand to a thousand times its size.
            deadline.cancel()
            response.close()
            msg = "compressed response, although not requested"
            raise httpx2.DecodingError(msg)
        return httpx2.Response(
            status_code=response.status_code,
            headers=response.headers,
            stream=_LimitedStream(response.stream, deadline, self._max_bytes),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Abort the running requests."""
        for deadline in list(self._deadlines):
            deadline.abort()
        self._inner.close()


class _RequestDeadline:
    """The deadline of one request: when it passes, the connection is shut down."""

    def __init__(self, timeout_s: float, among: set[_RequestDeadline]) -> None:
        self.is_late = False
        self._among = among
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(timeout_s, self.abort)
        self._timer.daemon = True
        self._timer.start()
        among.add(self)

    def track_socket(self, _event: str, info: dict[str, Any]) -> None:
        """Remember the connection; called when it is opened and when it is encrypted."""
        get_info = getattr(info.get("return_value"), "get_extra_info", None)
        opened = get_info("socket") if get_info else None
        if isinstance(opened, socket.socket):
            self._sockets.append(opened)
            if self.is_late:
                self.abort()

    def abort(self) -> None:
        """Shut down the connection: a thread that waits for it wakes up."""
        self.is_late = True
        for one in self._sockets:
            with suppress(OSError):
                # Not the method of the instance: an SSL socket drops its state there, under a
                # reader.
                socket.socket.shutdown(one, socket.SHUT_RDWR)

    def cancel(self) -> None:
        """Cancel the deadline."""
        self._timer.cancel()
        self._among.discard(self)

    def explain(self, error: httpx2.HTTPError) -> httpx2.HTTPError:
        """Return a timeout if the deadline was the reason, else the error itself."""
        return httpx2.ReadTimeout("too slow") if self.is_late else error


class _LimitedStream(httpx2.SyncByteStream):
    def __init__(
        self, inner: httpx2.SyncByteStream, deadline: _RequestDeadline, max_bytes: int
    ) -> None:
        self._inner = inner
        self._deadline = deadline
        self._max_bytes = max_bytes

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            for piece in self._inner:
                size += len(piece)
                if size > self._max_bytes:
                    msg = "too large"
                    raise ResponseTooLarge(msg)
                yield piece
        except httpx2.HTTPError as error:
            raise self._deadline.explain(error) from error
        if self._deadline.is_late:
            msg = "too slow"
            raise httpx2.ReadTimeout(msg)

    def close(self) -> None:
        """Close the connection and cancel the deadline."""
        self._deadline.cancel()
        self._inner.close()


_TOO_LONG = (
    "too long", "too large", "context length", "context window", "context_length_exceeded",
    "maximum context", "request_too_large", "max_model_len", "exceeds the available context",
    "input token count",
)  # fmt: skip
"""How services and local servers say in a 400 response that a prompt is too long."""

_NO_MONEY = ("insufficient_quota", "credit balance", "billing")
_BUSY = (429, 503, 529)
_BAD_KEY = (401, 403)
_MAX_MESSAGE_CHARS = 200
_MAX_RETRY_AFTER_S = 86_400.0


def error_from_status(
    name: str, status: int, message: str, headers: Mapping[str, str]
) -> ProviderError:
    """Translate an error status into a `ProviderError`."""
    lowered = message.lower()
    text = f"{name} answers with status {status}" + (f": {message}" if message else ".")
    if status == 413 or (status == 400 and any(sign in lowered for sign in _TOO_LONG)):
        return PromptTooLong(text)
    if any(sign in lowered for sign in _NO_MONEY):
        return ProviderUnavailable(text, hint="Check your account with the provider.")
    if status in _BUSY:
        return RateLimited(text, hint="Try again later.", retry_after_s=_retry_after_s(headers))
    if status in _BAD_KEY:
        msg = f"{name} rejects the API key (status {status})."
        return ProviderUnavailable(msg, hint="Check chat.api_key.")
    hint = "Check chat.model and chat.base_url." if status < 500 else "Try again later."
    return ProviderUnavailable(text, hint=hint)


_VENDORS = {"anthropic": "Anthropic", "openai": "OpenAI"}
"""The vendors of the SDKs by module name."""


def translate_sdk_error(sdk: ModuleType, error: Exception, name: str, key: str) -> ProviderError:
    """Translate an error of an SDK into a `ProviderError`, without the API key in it.

    One generator writes the SDKs of Anthropic and OpenAI, so they name their errors alike.
    """
    if isinstance(error, sdk.APIStatusError):
        message = error_message(error.body, key)
        return error_from_status(name, error.status_code, message, error.response.headers)
    if isinstance(error, sdk.APITimeoutError):
        msg = f"{name} took too long to answer."
        hint = "Increase chat.timeout_s if answers need longer."
        return ProviderUnavailable(msg, hint=hint, billed=True)
    if isinstance(error, sdk.APIConnectionError):
        msg = f"{name} cannot be reached ({type(error.__cause__ or error).__name__})."
        return ProviderUnavailable(msg, hint="Check the network and chat.base_url.")
    return ProviderUnavailable(f"{_VENDORS[sdk.__name__]}'s SDK failed ({type(error).__name__}).")


def error_message(body: object, *secrets: str) -> str:
    """Return the message of an error document on one line, without the secrets in it.

    Return '' for anything else: it may quote the request.
    """
    inner = body.get("error", body) if isinstance(body, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else inner
    kinds = [inner.get(name) for name in ("type", "code")] if isinstance(inner, dict) else []
    if not isinstance(message, str):
        return ""
    line = words.clean(" ".join([*(kind for kind in kinds if isinstance(kind, str)), message]))
    for secret in secrets:
        line = line.replace(secret, "…") if secret else line
    return " ".join(line.split())[:_MAX_MESSAGE_CHARS]


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """Return how long the provider asks to wait, from seconds or from a date."""
    value = headers.get("retry-after-ms", "")
    if value.isascii() and value.isdigit():
        return min(int(value[:12]) / 1000, _MAX_RETRY_AFTER_S)
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.replace(".", "", 1).isdigit():
        return min(float(value[:12]), _MAX_RETRY_AFTER_S)
    date = email.utils.parsedate_tz(value)
    if date is None:
        return 0.0
    try:
        until = email.utils.mktime_tz(date)
    except (OverflowError, ValueError):
        return 0.0
    return min(max(until - clock.now().timestamp(), 0.0), _MAX_RETRY_AFTER_S)
