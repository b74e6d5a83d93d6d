"""HTTP client of all upstreams: sends requests as they came, and shares connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import lru_cache
from io import BytesIO
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from lore.errors import ProviderUnavailable

Body = bytes | AsyncIterator[bytes]

CONNECT_TIMEOUT_S = 10.0
"""An upstream that takes longer to accept a connection counts as unreachable."""

KEEP_ALIVE_S = 45.0
"""Idle connections outlast the pause between two turns, and are closed before providers close them.
"""

RETRY_BACKOFF_S = (0.1, 0.4)
"""Backoff between attempts to connect where one was refused; nothing else is ever retried."""

_FINAL_STATUSES = range(200, 600)
"""Statuses that end a request (RFC 9110, 15)."""

_MAX_HEADER_BYTES = 65_536
_MAX_SINGLE_WRITE_BYTES = 1_000_000
"""aiohttp sends what is shorter in one piece."""

_NO_AUTO_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")


class UpstreamClient:
    """A client of every upstream; open it in the event loop that uses it."""

    def __init__(self, connector: aiohttp.BaseConnector | None = None) -> None:
        connector = connector or aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_NO_AUTO_HEADERS,
            auto_decompress=False,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def send(
        self, method: str, address: str, headers: Sequence[tuple[str, str]], body: Body | None
    ) -> aiohttp.ClientResponse:
        """Send a request, retrying refused connections; return the response once its status is
        known. The caller closes it."""
        # A streamed body can be sent only once.
        backoff = iter(RETRY_BACKOFF_S if isinstance(body, bytes | None) else ())
        while True:
            try:
                return await self._send_once(method, address, headers, body)
            except aiohttp.ClientConnectorError as error:
                delay_s = next(backoff, None)
                if delay_s is None:
                    raise _unreachable(address) from error
            await asyncio.sleep(delay_s)

    async def _send_once(
        self, method: str, address: str, headers: Sequence[tuple[str, str]], body: Body | None
    ) -> aiohttp.ClientResponse:
        try:
            response = await self._session.request(
                method,
                URL(address.replace("#", "%23"), encoded=True),
                headers=headers,
                data=_payload(body),
                allow_redirects=False,
                proxy=_proxy_for(*urlsplit(address)[:2]),
            )
        except aiohttp.ClientConnectorError:
            raise
        except aiohttp.ConnectionTimeoutError as error:
            raise _unreachable(address) from error
        except ValueError as error:
            msg = "The request could not be sent as it is."
            raise ProviderUnavailable(msg) from error
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            msg = "The provider's answer could not be read."
            raise ProviderUnavailable(msg) from error
        if response.status not in _FINAL_STATUSES:
            response.close()
            msg = f"The provider answered with status {response.status}, which ends no request."
            raise ProviderUnavailable(msg)
        return response


def _unreachable(address: str) -> ProviderUnavailable:
    """Return the error for an upstream that does not accept connections; it names only the host."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return ProviderUnavailable(f"The provider cannot be reached at {parts.scheme}://{host}.")


def _payload(body: Body | None) -> Body | BytesIO | None:
    long = isinstance(body, bytes) and len(body) > _MAX_SINGLE_WRITE_BYTES
    return BytesIO(body) if long and isinstance(body, bytes) else body


@lru_cache(maxsize=16)
def _proxy_for(scheme: str, host: str) -> str | None:
    """Return the HTTP proxy of this machine for an address."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    return proxy if proxy and not proxy_bypass(host) else None
