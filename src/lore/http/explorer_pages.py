"""The pages of the explorer: one HTML file for all of them, its scripts, styles and icons."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lore import __version__
from lore.http import explorer_build, middleware

PAGES: Final = (
    "/", "/search", "/ask", "/graph", "/timeline", "/sessions", "/spend", "/review", "/tasks",
    "/health",
)  # fmt: skip
"""Pages without an item. `/health` is also a public answer for programs."""

ITEM_PAGES: Final = ("/fragments/{id}", "/sessions/{id}", "/messages/{id}", "/tasks/{id}")
"""Pages of one item."""

ASSETS: Final = "/assets/"

FILES: Final = ("/icon.svg", "/LICENSES.txt")
"""Files beside the pages."""

_PAGE = re.compile(
    r"/(?:|(?:search|ask|graph|timeline|sessions|spend|review|tasks|health)/?"
    r"|(?:fragments|sessions|messages|tasks)/[^/\x00-\x20\x7f\\]+)"
)

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'; require-trusted-types-for 'script'"
)
"""Only files of this server are loaded, and no text becomes a script."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
    ".map": "application/json",
}
"""Files of other types are not served."""

_ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Compressed variants beside a file, the smallest first."""


def is_page(path: str) -> bool:
    """Return whether a path is that of a page."""
    return _PAGE.fullmatch(path) is not None


def is_explorer_path(path: str) -> bool:
    """Return whether a path is that of a page or of a file that pages load."""
    return is_page(path) or path.startswith(ASSETS) or path in FILES


def page_target(target: str) -> str:
    """Return where a login leads: a page of this server with its query, or else the first page."""
    # Browsers drop tabs and line breaks, and read a backslash as a slash.
    if not target.startswith("/") or re.search(r"[\x00-\x20\x7f\\]", target):
        return "/"
    try:
        parts = urlsplit(target)
    except ValueError:
        return "/"
    if parts.scheme or parts.netloc or not is_page(parts.path):
        return "/"
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


@dataclass(frozen=True, slots=True)
class _File:
    """A file that is served, with its variants by encoding."""

    path: Path
    media_type: str
    variants: dict[str, Path]
    tag: str


class ExplorerFiles:
    """The built files of the explorer; a new build is noticed by its HTML file."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder is not None else explorer_build.FOLDER
        self._built = 0
        self._files: dict[str, _File] = {}

    @property
    def is_built(self) -> bool:
        """Return whether there are pages to serve."""
        return explorer_build.is_built(self._folder)

    def find(self, name: str) -> _File | None:
        """Return a file by its path below the folder; only files that were built are found."""
        try:
            built = (self._folder / "index.html").stat().st_mtime_ns
        except OSError:
            return None
        if built != self._built:
            self._files, self._built = self._list_files(), built
        return self._files.get(name)

    def _list_files(self) -> dict[str, _File]:
        files = {}
        for path in sorted((*self._folder.glob("*"), *self._folder.glob("assets/*"))):
            media_type = _TYPES.get(path.suffix)
            if media_type is None or path.is_symlink() or not path.is_file():
                continue
            beside = {name: Path(f"{path}{end}") for name, end in _ENCODINGS.items()}
            variants = {name: one for name, one in beside.items() if one.is_file()}
            digest = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
            name = path.relative_to(self._folder).as_posix()
            files[name] = _File(path, media_type, variants, digest)
        return files


def serve_page(files: ExplorerFiles, welcome: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Return the handler of all pages; without a build they show the welcome page."""

    async def serve(request: Request) -> Response:
        middleware.require_scope(request.scope, "read")
        index = await to_thread.run_sync(files.find, "index.html")
        if index is None:
            response: Response = await welcome(request)
            return response
        return await _file_response(request, index, _PAGE_HEADERS)

    return serve


_PAGE_HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "private, no-cache",
    "cross-origin-opener-policy": "same-origin",
}


def serve_health(files: ExplorerFiles) -> Callable[[Request], Any]:
    """Return the handler of `/health`: a page for a browser, and JSON for all others.

    It needs no key, and the page holds nothing before it has asked for it with one.
    """

    async def serve(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            index = await to_thread.run_sync(files.find, "index.html")
            if index is not None:
                return await _file_response(request, index, _PAGE_HEADERS)
        return JSONResponse({"ok": True, "version": __version__})

    return serve


def serve_asset(files: ExplorerFiles) -> Callable[[Request], Any]:
    """Return the handler of the files that pages load; their names hold a digest of them."""

    async def serve(request: Request) -> Response:
        middleware.require_scope(request.scope, "read")
        asset = await to_thread.run_sync(files.find, request.url.path.removeprefix("/"))
        if asset is None:
            raise HTTPException(404, "There is no such file.")
        is_hashed = request.url.path.startswith(ASSETS)
        lasting = "private, max-age=31536000, immutable" if is_hashed else "private, no-cache"
        headers = {
            "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
            "cache-control": lasting,
            "cross-origin-resource-policy": "same-origin",
        }
        return await _file_response(request, asset, headers)

    return serve


async def _file_response(request: Request, file: _File, headers: dict[str, str]) -> Response:
    """Return a file in the best encoding that the client takes, or 304 if it has it."""
    wanted = _accepted_encodings(",".join(request.headers.getlist("accept-encoding")))
    encoding = next((name for name in file.variants if name in wanted), "")
    tag = f'"{file.tag}{"-" + encoding if encoding else ""}"'
    headers = {**headers, "etag": tag, "vary": "accept-encoding"}
    if tag in [one.strip() for one in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    path = file.variants[encoding] if encoding else file.path
    if encoding:
        headers["content-encoding"] = encoding
    try:
        body = await to_thread.run_sync(path.read_bytes)
    except OSError as error:
        raise HTTPException(404, "There is no such file.") from error
    return Response(body, 200, headers, file.media_type)


def _accepted_encodings(header: str) -> set[str]:
    accepted = set()
    for part in header.split(","):
        name, _, options = part.strip().partition(";")
        quality = re.fullmatch(r"\s*q\s*=\s*([0-9.]+)\s*", options)
        if quality is None or quality.group(1).strip("0.") != "":
            accepted.add(name.strip().lower())
    return accepted
