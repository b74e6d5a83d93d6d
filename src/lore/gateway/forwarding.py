"""Forwarding: requests to upstream as they came, and the connections that they share."""

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

CONNECT_S = 10.0
"""An upstream that takes longer to accept a connection counts as unreachable."""

KEEP_ALIVE_S = 45.0
"""An idle connection is kept for the pause between two turns, and closed before providers do."""

PAUSES_S = (0.1, 0.4)
"""Before another attempt to connect where one was refused; nothing else is ever tried again."""

_ENDING = range(200, 600)
"""What an answer may have for a status (RFC 9110, 15)."""

_LONGEST_HEADER_BYTES = 65_536
_WHOLE_AT_ONCE_BYTES = 1_000_000
"""aiohttp sends what is shorter in one piece."""

_UNASKED = ("accept", "accept-encoding", "content-type", "user-agent")


class Forwarding:
    """A client of every upstream; open it in the loop that it is used in."""

    def __init__(self, connector: aiohttp.BaseConnector | None = None) -> None:
        connector = connector or aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_UNASKED,
            auto_decompress=False,
            max_line_size=_LONGEST_HEADER_BYTES,
            max_field_size=_LONGEST_HEADER_BYTES,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def ask(
        self, method: str, address: str, headers: Sequence[tuple[str, str]], body: Body | None
    ) -> aiohttp.ClientResponse:
        """Return the answer of upstream once its status is known; the caller closes it."""
        # a body that is still to come from the client can be sent once
        pauses = iter(PAUSES_S if isinstance(body, bytes | None) else ())
        while True:
            try:
                return await self._sent(method, address, headers, body)
            except aiohttp.ClientConnectorError as error:
                pause_s = next(pauses, None)
                if pause_s is None:
                    raise _unreachable(address) from error
            await asyncio.sleep(pause_s)

    async def _sent(
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
        if response.status not in _ENDING:
            response.close()
            msg = f"The provider answered with status {response.status}, which ends no request."
            raise ProviderUnavailable(msg)
        return response


def _unreachable(address: str) -> ProviderUnavailable:
    """Return what is told where nobody listens; of an address it names no more than the host."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return ProviderUnavailable(f"The provider cannot be reached at {parts.scheme}://{host}.")


def _payload(body: Body | None) -> Body | BytesIO | None:
    long = isinstance(body, bytes) and len(body) > _WHOLE_AT_ONCE_BYTES
    return BytesIO(body) if long and isinstance(body, bytes) else body


@lru_cache(maxsize=16)
def _proxy_for(scheme: str, host: str) -> str | None:
    """Return the proxy that this machine uses for an address."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    return proxy if proxy and not proxy_bypass(host) else None
