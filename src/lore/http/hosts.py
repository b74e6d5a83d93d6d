"""Hosts: by which names this server may be called, and from which pages.

A page of another site can reach a server on this machine by its address, or by a name of its own
that it lets point here. Its browser then sends a foreign Origin or a foreign Host; both are
refused, whatever address the server is bound to.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from lore.proxy.address import LOOPBACK

ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - they are recognised, not bound
_USUAL_PORTS = {"http": 80, "https": 443}
"""What an address means that names no port."""


def allowed_names(bound: str, also: Iterable[str] = ()) -> frozenset[str]:
    """Return the names by which a server bound to an address may be called."""
    named = (name.strip().strip("[]").rstrip(".").lower() for name in (*LOOPBACK, bound, *also))
    return frozenset(named) - frozenset(ANYWHERE)


def why_refused(headers: Headers, names: frozenset[str], *, by_cookie: bool) -> str:
    """Return what is wrong with the Host or Origin of a request, or nothing."""
    hosts = headers.getlist("host")
    host, port = _split(f"//{hosts[0]}") if len(hosts) == 1 else ("", None)
    if host not in names:
        return "The server is not called by that host. Setting server.allowed_hosts names others."
    origins = headers.getlist("origin")
    if len(origins) > 1 or (origins and not _is_same(origins[0], host, port)):
        return "The request comes from a page of another origin."
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and (
        by_cookie or origins
    ):
        return "The request comes from a page of another site."
    return ""


def _is_same(origin: str, host: str, port: int | None) -> bool:
    scheme = origin.partition(":")[0]
    if scheme not in _USUAL_PORTS or (scheme == "https" and host in LOOPBACK):
        return False  # this server speaks plain HTTP; only who stands before it speaks the other
    usual = _USUAL_PORTS[scheme]
    name, given = _split(origin)
    return (name, given or usual) == (host, port or usual)


def _split(address: str) -> tuple[str, int | None]:
    """Return host and port of an address; no host if it is none or has more than these."""
    if not (address.isascii() and address.isprintable() and " " not in address):
        return "", None  # what splits it would leave out tabs, and find a name that was not said
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return "", None
    return host.removesuffix("."), port
