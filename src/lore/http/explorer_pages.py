"""The pages of the web explorer: one document for all of them, and its hashed assets."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from lore.http import middleware

FOLDER = Path(__file__).parents[1] / "data" / "explorer"
"""What `explorer/build.py` builds; a package without it shows the welcome page alone."""

PAGES = ("search", "ask", "sessions", "review", "timeline", "graph", "tasks", "spend", "doctor")
"""Pages without an id; `/health` is for programs, hence `/doctor`."""

ITEMS = ("fragments", "sessions", "messages", "items")
"""Pages of one item, by its id."""

_NEXT = re.compile(
    rf"/(?:(?:{'|'.join(PAGES)})?|(?:{'|'.join(ITEMS)})/[\w.~%-]{{1,400}})(?:\?[\w.~%&=+:-]{{1,4000}})?"
)

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'; require-trusted-types-for 'script'"
)

_PAGE_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cache-control": "no-cache",
    "vary": "accept-encoding",
}

_ASSET_HEADERS = {
    # The name of an asset has a digest of its content.
    "cache-control": "private, max-age=31536000, immutable",
    "vary": "accept-encoding",
}

_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))
"""Compressed copies beside each file, the smallest first."""

Handler = Callable[[Request], Any]


def is_page(path: str) -> bool:
    """Return whether a path, with its query, is a page of the explorer; a login may lead there."""
    return _NEXT.fullmatch(path) is not None


@dataclass(frozen=True)
class BuiltExplorer:
    """The files of a built explorer, read once."""

    folder: Path = FOLDER

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The contents of the files by their path in the folder."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file()
        }

    def is_built(self) -> bool:
        """Return whether there is an explorer to serve."""
        return (self.folder / "index.html").is_file()

    def respond(self, name: str, accepted: str, headers: dict[str, str]) -> Response:
        """Return a file in the best encoding that the caller accepts."""
        if name not in self.files:
            raise HTTPException(404, "There is no such file.")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        offered = {one.partition(";")[0].strip() for one in accepted.lower().split(",")}
        for encoding, suffix in _ENCODINGS:
            if encoding in offered and f"{name}{suffix}" in self.files:
                encoded = {**headers, "content-encoding": encoding}
                return Response(self.files[f"{name}{suffix}"], 200, encoded, kind)
        return Response(self.files[name], 200, headers, kind)


def _accepted_encodings(request: Request) -> str:
    return ",".join(request.headers.getlist("accept-encoding"))


def page_routes(welcome: Handler, explorer: BuiltExplorer | None = None) -> list[BaseRoute]:
    """Return the routes of the explorer, or of the `welcome` page where it is not built."""
    built = explorer or BuiltExplorer()
    if not built.is_built():
        return [Route("/", welcome, methods=["GET"])]

    async def page(request: Request) -> Response:
        middleware.require_scope(request.scope, "read")
        return built.respond("index.html", _accepted_encodings(request), _PAGE_HEADERS)

    async def asset(request: Request) -> Response:
        middleware.require_scope(request.scope, "read")
        name = request.url.path.removeprefix("/")
        return built.respond(name, _accepted_encodings(request), _ASSET_HEADERS)

    paths = ["/", *(f"/{name}" for name in PAGES), *(f"/{name}/{{id}}" for name in ITEMS)]
    return [
        *(Route(path, page, methods=["GET"]) for path in paths),
        Route("/assets/{name}", asset, methods=["GET"]),
        Route("/icon.svg", asset, methods=["GET"]),
        Route("/LICENSES.txt", asset, methods=["GET"]),
    ]
