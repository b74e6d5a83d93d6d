"""Routing: the wire that a request speaks, by its path, and the upstream that it is meant for."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from yarl import URL

from lore.errors import InvalidInput
from lore.gateway.exchanges import Provider, Wire
from lore.settings import Settings

_WIRES: dict[str, Wire] = {
    "/v1/messages": "anthropic",
    "/v1/messages/count_tokens": "anthropic",
    "/v1/chat/completions": "chat",
    "/chat/completions": "chat",
    "/v1/responses": "responses",
    "/responses": "responses",
    "/v1beta/openai/chat/completions": "chat",
}
"""OpenAI's paths also without a version: some clients are given an address that ends before it."""

_GENERATING = (":generateContent", ":streamGenerateContent")
_OF_GEMINI = ("/v1beta", "/v1alpha", "/upload/v1beta")
_VERSION = "/v1"

_PARAMETERS = re.compile(r";[^/]*")
"""What some servers take for no part of a path (RFC 3986, 3.3)."""

_FREE = re.compile(
    r"(?:/count_tokens|/input_tokens|:counttokens|/cancel)$"
    r"|^/v1/(?:files|uploads|moderations)(?:/|$)"
    r"|^/api/(?:event_logging|claude_|hello|oauth)",
    re.IGNORECASE,
)
"""What no provider charges for: counting, uploads, moderation, calling something off, and what
Claude Code reports of itself."""


_FETCHED = re.compile(r"(?:/v1)?/responses/(?P<id>[^/]+)(?P<off>/cancel)?", re.IGNORECASE)
"""Where OpenAI gives an answer again that it has written, or writes."""

_NAMED = 3
"""So many parts of a path tell what is asked for."""

_WORDS = frozenset({
    "api", "assistants", "audio", "batches", "beta", "cachedcontents", "chat", "complete",
    "completions", "containers", "conversations", "edits", "embeddings", "evals", "fine_tuning",
    "generations", "images", "jobs", "messages", "models", "openai", "organizations", "realtime",
    "rerank", "responses", "runs", "search", "sessions", "skills", "speech", "threads",
    "transcriptions", "translations", "tunedmodels", "v1", "v1alpha", "v1beta", "v2",
    "variations", "vector_stores", "videos",
})  # fmt: skip
"""What providers call their services; any other part of a path may be an id, or a secret."""

_OTHER = "other"


def label_of(path: str) -> str:
    """Return what a request asks for whose path is all that is known of it, without any secret."""
    named: list[str] = []
    for part in path.lower().split("/")[1 : 1 + _NAMED] or [""]:
        if part not in _WORDS:
            named.append(_OTHER)
            break
        named.append(part)
    return "/" + "/".join(named)


def spelled(path: str) -> str:
    """Return a path in the one spelling that is looked up, whatever a client writes.

    Upstreams forgive a slash too many, dots, encoded characters and the like. A request that they
    take is one to be paid for, and one of a conversation.
    """
    plain = posixpath.normpath("/" + _PARAMETERS.sub("", unquote(path)).lstrip("/"))
    return plain.lower() if plain.lower() in _WIRES else plain


_TARGET = re.compile(r"/(?!/)[!->@-\[\]-~]*(?:\?[!-~]*)?")
"""A path below an address: it begins with one slash, and nothing in it may stand for another."""


def wire_of(method: str, path: str) -> Wire:
    """Return the wire that a request speaks, or nothing if it is passed on unread."""
    if method != "POST":
        return ""
    if path.endswith(_GENERATING):
        return "gemini"
    return _WIRES.get(path, "")


def may_cost(method: str, path: str) -> bool:
    """Tell whether a provider may charge for a request: for all that is asked and not known free.

    What only looks something up, or deletes it, costs nothing.
    """
    return method == "POST" and _FREE.search(path) is None


def fetched_by(method: str, path: str) -> str:
    """Return the id of the answer that is asked for, written in the background, else ''.

    Who calls one off is told the same of it.
    """
    found = _FETCHED.fullmatch(path)
    is_asked = found is not None and method == ("POST" if found["off"] else "GET")
    return found["id"] if found is not None and is_asked else ""


def provider_of(path: str, headers: Mapping[str, str]) -> Provider:
    """Return whom a request is meant for: by its path, else by the headers of its client."""
    if path.startswith(_OF_GEMINI) or path.endswith(_GENERATING):
        return "gemini"
    if any(name.startswith("x-goog-") for name in headers):
        return "gemini"
    if path.startswith("/v1/messages") or "x-api-key" in headers:
        return "anthropic"
    if any(name.startswith("anthropic-") for name in headers):
        return "anthropic"
    if headers.get("user-agent", "").startswith("claude"):
        return "anthropic"
    return "chatgpt" if "chatgpt-account-id" in headers else "openai"


@dataclass(frozen=True, slots=True)
class Upstreams:
    """The addresses of the providers."""

    anthropic: str
    openai: str
    gemini: str
    chatgpt: str = ""

    @classmethod
    def of(cls, settings: Settings) -> Upstreams:
        """Return the addresses that are configured."""
        return cls(
            settings.gateway_anthropic_url,
            settings.gateway_openai_url,
            settings.gateway_gemini_url,
            settings.gateway_chatgpt_url,
        )

    def address(self, provider: Provider, path: str) -> str:
        """Return where a path is asked for; a version that the address has is not repeated.

        Raises `InvalidInput` where that would be another host than the one that is configured.
        """
        if not _TARGET.fullmatch(path):
            msg = "A request names a path here, one that begins with a single slash."
            raise InvalidInput(msg)
        given: dict[Provider, str] = {
            "anthropic": self.anthropic,
            "openai": self.openai,
            "chatgpt": self.chatgpt or self.openai,
            "gemini": self.gemini,
        }
        above = given[provider].rstrip("/")
        if path.startswith(f"{_VERSION}/"):
            if provider == "chatgpt" and self.chatgpt:
                path = path.removeprefix(_VERSION)
            else:
                above = above.removesuffix(_VERSION)
        if _origin(above + path) != _origin(given[provider]):
            msg = "A request goes to the provider's own address."
            raise InvalidInput(msg)
        return above + path


def _origin(address: str) -> tuple[str, str]:
    url = URL(address, encoded=True)
    return url.scheme, url.authority
