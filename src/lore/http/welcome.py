"""The welcome page at `/`: that Lore runs, what the memory holds, and how an agent is connected.

It has no script, and nothing that it shows can become one: all text is escaped, and the policy
that goes with it allows its own style and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from html import escape
from importlib import resources
from string import Template
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lore import __version__
from lore.http import gate
from lore.memory import Memory
from lore.records import Stats

Rows = Iterable[tuple[str, str]]
"""Names and values to show; any text."""

_FIGURES = {
    "sessions": "sessions",
    "messages": "messages",
    "distillations": "logs",
    "fragments": "fragments",
    "edges": "edges",
    "standing": "standing instructions",
}


def serve_welcome(memory: Memory, about: Callable[[], Rows]) -> Callable[[Request], Any]:
    """Return the endpoint of the welcome page; `about` tells of the process that serves."""
    template = Template(_read("welcome.html"))
    style = _read("welcome.css")
    headers = {"content-security-policy": _policy(style), "cache-control": "no-store"}

    async def serve(request: Request) -> Response:
        gate.require(request.scope, "read")
        stats, rows = await to_thread.run_sync(lambda: (memory.stats(), tuple(about())))
        address = f"{request.url.scheme}://{request.url.netloc}"
        return HTMLResponse(_filled(template, style, stats, rows, address), headers=headers)

    return serve


def _filled(template: Template, style: str, stats: Stats, rows: Rows, address: str) -> str:
    figures = ((told, f"{getattr(stats, name):,}") for name, told in _FIGURES.items())
    return template.substitute(
        style=style,
        version=escape(__version__),
        figures="".join(f"<div>{_pair(*figure)}</div>" for figure in figures),
        path=escape(stats.path),
        size=escape(f"{stats.bytes / 1e6:,.1f} MB"),
        notice=f'<p class="notice">{escape(stats.notice)}</p>' if stats.notice else "",
        daemon="".join(_pair(*row) for row in rows),
        address=escape(address),
    )


def _pair(name: str, value: str) -> str:
    return f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"


def _policy(style: str) -> str:
    """Return what a browser may load for the page: nothing but its own style."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _read(name: str) -> str:
    return (resources.files("lore") / "data" / name).read_text("utf-8")
