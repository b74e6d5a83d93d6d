"""One JSON request to a service, tried again where that may help."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Never

from lore.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from email.message import Message

ATTEMPTS = 4
TIMEOUT_S = 30.0

_FIRST_PAUSE_S = 0.5
# A service may ask for a longer pause than a caller will sit through.
_LONGEST_PAUSE_S = 20.0
# 128 vectors of 3,072 numbers are 8 MB of JSON.
_LONGEST_ANSWER_BYTES = 64 * 1024 * 1024
_LONGEST_REASON_CHARS = 200
_BAD_KEY = (401, 403)
_TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go; the key appears in no text that this object makes."""

    url: str
    key: str = field(repr=False)
    timeout_s: float = TIMEOUT_S
    sleep: Callable[[float], None] = time.sleep

    @property
    def host(self) -> str:
        """The name of the service's machine."""
        return urllib.parse.urlsplit(self.url).hostname or ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry texts and key to an address that nobody chose."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> None:
        """Refuse, so that the answer counts as an error."""


def post_json(endpoint: Endpoint, body: Mapping[str, object]) -> object:
    """Return the service's answer, or raise `EmbedderError` without the key in it."""
    request = urllib.request.Request(  # noqa: S310 - the address was checked at opening
        endpoint.url,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Accept": "application/json"},
    )
    if endpoint.key:
        # Not sent to a proxy on the way.
        request.add_unredirected_header("Authorization", f"Bearer {endpoint.key}")
    pause_s = _FIRST_PAUSE_S
    for attempt in range(1, ATTEMPTS + 1):
        last = attempt == ATTEMPTS
        try:
            return json.loads(_send(endpoint, request))
        except urllib.error.HTTPError as error:
            with error:
                if last or not _is_passing(error.code):
                    _refuse(endpoint, error)
                wait_s = _retry_after_s(error.headers) or pause_s
        except (OSError, http.client.HTTPException) as error:
            if last:
                msg = f"{endpoint.host} cannot be reached: {_reason(error)}"
                raise EmbedderError(msg, hint="Check the network and embed.base_url.") from None
            wait_s = pause_s
        except ValueError as error:
            msg = f"The answer of {endpoint.host} is not JSON."
            raise EmbedderError(msg, hint="Check embed.base_url.") from error
        endpoint.sleep(min(wait_s, _LONGEST_PAUSE_S))
        pause_s *= 2
    raise AssertionError


def _send(endpoint: Endpoint, request: urllib.request.Request) -> bytes:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if endpoint.url.startswith("http://"):
        # Plain http is for this machine alone, to which no proxy leads.
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    with opener.open(request, timeout=endpoint.timeout_s) as answer:
        content: bytes = answer.read(_LONGEST_ANSWER_BYTES)
        return content


def _is_passing(status: int) -> bool:
    return status == _TOO_MANY or status >= 500


def _retry_after_s(headers: Message) -> float:
    try:
        return max(0.0, float(headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0


def _refuse(endpoint: Endpoint, error: urllib.error.HTTPError) -> Never:
    if error.code in _BAD_KEY:
        # Services repeat parts of the key in this answer, so it is not quoted.
        msg = f"{endpoint.host} refuses the access key (status {error.code})."
        raise EmbedderError(msg, hint="Check embed.api_key.") from None
    said = error.read(4096).decode("utf-8", "replace")
    if endpoint.key:
        said = said.replace(endpoint.key, "…")
    said = " ".join(said.split())[:_LONGEST_REASON_CHARS]
    msg = f"{endpoint.host} answers with status {error.code}: {said}"
    hint = "Try again later." if _is_passing(error.code) else "Check embed.model."
    raise EmbedderError(msg, hint=hint) from None


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(inner) or type(inner).__name__
