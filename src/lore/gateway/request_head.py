"""Route a request by its path to an API and an upstream, and filter headers in both directions."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import msgspec
from starlette.types import Scope
from yarl import URL

from lore.errors import InvalidInput
from lore.gateway.plugin_protocol import ApiName, ClientRequest, Provider
from lore.settings import Settings
from lore.text.json_strings import find_string_end

_APIS: dict[str, ApiName] = {
    "/v1/messages": "anthropic",
    "/v1/messages/count_tokens": "anthropic",
    "/v1/chat/completions": "chat",
    "/chat/completions": "chat",
    "/v1/responses": "responses",
    "/responses": "responses",
    "/v1beta/openai/chat/completions": "chat",
}
"""OpenAI's paths also without a version: some clients are given an address that ends before it."""

_GEMINI_ACTIONS = (":generateContent", ":streamGenerateContent")
_GEMINI_PATHS = ("/v1beta", "/v1alpha", "/upload/v1beta")
_VERSION = "/v1"

_PARAMETERS = re.compile(r";[^/]*")
"""Path parameters, which some servers ignore (RFC 3986, 3.3)."""

_FREE_PATHS = re.compile(
    r"(?:/count_tokens|/input_tokens|:counttokens|/cancel)$"
    r"|^/v1/(?:files|uploads|moderations)(?:/|$)"
    r"|^/api/(?:event_logging|claude_|hello|oauth)",
    re.IGNORECASE,
)
"""What no provider charges for: counting, uploads, moderation, cancelling, and the telemetry of
Claude Code."""


_BACKGROUND_PATH = re.compile(r"(?:/v1)?/responses/(?P<id>[^/]+)(?P<off>/cancel)?", re.IGNORECASE)
"""Where OpenAI returns a response that is written in the background."""

_MAX_LABEL_PARTS = 3

_KNOWN_PARTS = frozenset({
    "api", "assistants", "audio", "batches", "beta", "cachedcontents", "chat", "complete",
    "completions", "containers", "conversations", "edits", "embeddings", "evals", "fine_tuning",
    "generations", "images", "jobs", "messages", "models", "openai", "organizations", "realtime",
    "rerank", "responses", "runs", "search", "sessions", "skills", "speech", "threads",
    "transcriptions", "translations", "tunedmodels", "v1", "v1alpha", "v1beta", "v2",
    "variations", "vector_stores", "videos",
})  # fmt: skip
"""Path parts that name services; any other part may be an id or a secret."""

_OTHER = "other"

_FIRST_PARTS = _KNOWN_PARTS - {"api"} | {"anthropic", "files", "moderations", "upload", "uploads"}
_ANY_VERSION = re.compile(r"v\d+(?:alpha|beta)?\d*")


def path_label(path: str) -> str:
    """Return a label of a path that contains no secret."""
    parts: list[str] = []
    for part in path.lower().split("/")[1 : 1 + _MAX_LABEL_PARTS] or [""]:
        if part not in _KNOWN_PARTS:
            parts.append(_OTHER)
            break
        parts.append(part)
    return "/" + "/".join(parts)


def is_provider_path(path: str) -> bool:
    """Return whether a path begins like one of a provider; '/api' alone says nothing."""
    if _FREE_PATHS.search(path) or path.endswith(_GEMINI_ACTIONS):
        return True
    first = path.lower().split("/")[1]
    return first in _FIRST_PARTS or _ANY_VERSION.fullmatch(first) is not None


def normalize_path(path: str) -> str:
    """Return a path in one spelling for lookups.

    Upstreams forgive extra slashes, dots, encoded characters and the like. A request that they
    accept must be paid for, and belongs to a conversation.
    """
    plain = posixpath.normpath("/" + _PARAMETERS.sub("", unquote(path)).lstrip("/"))
    return plain.lower() if plain.lower() in _APIS else plain


_TARGET = re.compile(r"/(?!/)[!->@-\[\]-~]*(?:\?[!-~]*)?")
"""A path below an address: it begins with one slash, and nothing in it may stand for a host."""


def api_of(method: str, path: str) -> ApiName:
    """Return the API of a request, or '' if it is forwarded unread."""
    if method != "POST":
        return ""
    if path.endswith(_GEMINI_ACTIONS):
        return "gemini"
    return _APIS.get(path, "")


def may_cost(method: str, path: str) -> bool:
    """Return whether a provider may charge for a request: every POST not known to be free."""
    return method == "POST" and _FREE_PATHS.search(path) is None


def background_response_id(method: str, path: str) -> str:
    """Return the id of the background response that a request fetches, else ''.

    Cancelling one returns it too.
    """
    match = _BACKGROUND_PATH.fullmatch(path)
    is_fetch = match is not None and method == ("POST" if match["off"] else "GET")
    return match["id"] if match is not None and is_fetch else ""


def provider_of(path: str, headers: Mapping[str, str]) -> Provider:
    """Return the provider of a request: by its path, else by the headers of its client."""
    if path.startswith(_GEMINI_PATHS) or path.endswith(_GEMINI_ACTIONS):
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
        """Return the configured addresses."""
        return cls(
            settings.gateway_anthropic_url,
            settings.gateway_openai_url,
            settings.gateway_gemini_url,
            settings.gateway_chatgpt_url,
        )

    @property
    def is_openai(self) -> bool:
        """Return whether OpenAI itself is at its address.

        Another server there may have any path, and need no key.
        """
        return URL(self.openai).host == _OPENAI_HOST

    def address(self, provider: Provider, path: str) -> str:
        """Return the URL of a path; a version that the address ends with is not repeated.

        Raises `InvalidInput` if that would be another host than the configured one.
        """
        if not _TARGET.fullmatch(path):
            msg = "A request names a path here, one that begins with a single slash."
            raise InvalidInput(msg)
        addresses: dict[Provider, str] = {
            "anthropic": self.anthropic,
            "openai": self.openai,
            "chatgpt": self.chatgpt or self.openai,
            "gemini": self.gemini,
        }
        base = addresses[provider].rstrip("/")
        if path.startswith(f"{_VERSION}/"):
            if provider == "chatgpt" and self.chatgpt:
                path = path.removeprefix(_VERSION)
            else:
                base = base.removesuffix(_VERSION)
        if _origin(base + path) != _origin(addresses[provider]):
            msg = "A request goes to the provider's own address."
            raise InvalidInput(msg)
        return base + path


def _origin(address: str) -> tuple[str, str]:
    url = URL(address, encoded=True)
    return url.scheme, url.authority


RawHeaders = Iterable[tuple[bytes, bytes]]

HOP_BY_HOP = frozenset({
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
})
"""Headers of a single connection (RFC 9110, 7.6.1)."""

_NOT_FOR_UPSTREAM = HOP_BY_HOP | {b"host", b"content-length", b"expect", b"cookie"}
"""Headers that are set anew for the upstream."""

VISIBLE_HEADERS = frozenset({
    "content-encoding",
    "originator",
    "session-id",
    "session_id",
    "thread-id",
    "thread_id",
    "user-agent",
    "x-claude-code-agent-id",
    "x-claude-code-session-id",
    "x-codex-turn-metadata",
    "x-lore-project",
    "x-lore-relay",
    "x-parent-session-id",
    "x-session-id",
})
"""Headers that memory reads: who asks, and how the body is encoded. Nobody can list all headers in
which keys are sent, so nothing else is shown."""

_VISIBLE_PARAMETER = "alt"
"""Gemini states with it whether it streams."""

_LORE_HEADERS = b"x-lore-"
_LORE_COOKIE = "lore_"
_LORE_KEY = b"lore_"

_SECRET_NAME = re.compile(rb"key|auth|token|secret")
"""Part of the names of headers and parameters that may hold a provider's key."""

_OPENAI_HOST = "api.openai.com"
_OPENAI_HEADERS = b"openai-"


def upstream_headers(
    headers: RawHeaders, *, identity: bool, changed: bool = False
) -> list[tuple[str, str]]:
    """Return the headers of a client for the upstream.

    `identity` asks for a response without encoding; a `changed` body has no encoding.
    """
    pairs = list(headers)
    dropped = _NOT_FOR_UPSTREAM | _named_by_connection(pairs)
    if identity:
        dropped |= {b"accept-encoding"}
    if changed:
        dropped |= {b"content-encoding"}
    sent = [
        (name.decode("latin-1"), _decoded(value))
        for name, value in pairs
        if name not in dropped and not name.startswith(_LORE_HEADERS)
    ]
    cookies = (_decoded(value) for name, value in pairs if name == b"cookie")
    sent += [("cookie", others) for others in map(_without_lore_cookies, cookies) if others]
    return [*sent, ("accept-encoding", "identity")] if identity else sent


def client_headers(headers: RawHeaders, *, rewritten: bool = False) -> list[tuple[bytes, bytes]]:
    """Return the headers of the upstream for the client; the server adds its own date.

    A `rewritten` response has another length, and no encoding.
    """
    pairs = [(name.lower(), value) for name, value in headers]
    dropped = HOP_BY_HOP | _named_by_connection(pairs) | {b"date"}
    if rewritten:
        dropped |= {b"content-length", b"content-encoding"}
    return [(name, value) for name, value in pairs if name not in dropped]


def visible_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that the plugin may see."""
    return {name: value for name, value in headers.items() if name in VISIBLE_HEADERS}


def visible_query(query: str) -> str:
    """Return the query parameters that the plugin may see."""
    return urlencode([pair for pair in parse_qsl(query) if pair[0] == _VISIBLE_PARAMETER])


def has_lore_key(headers: RawHeaders, target: str) -> bool:
    """Return whether a client sends a key of Lore as if it were its provider's."""
    query = target.partition("?")[2].encode("latin-1")
    pairs = [(name, value) for name, value in headers if not name.startswith(_LORE_HEADERS)]
    pairs += [(name.lower(), value) for name, value in parse_qsl(query)]
    # A scheme such as Bearer may precede it.
    words = [word for name, value in pairs if _SECRET_NAME.search(name) for word in value.split()]
    return any(word.startswith(_LORE_KEY) for word in words)


def names_provider(headers: RawHeaders, target: str) -> bool:
    """Return whether a client sends a key, or a header of OpenAI's."""
    names = [name for name, _ in headers if not name.startswith(_LORE_HEADERS)]
    query = target.partition("?")[2].encode("latin-1")
    names += [name.lower() for name, _ in parse_qsl(query)]
    return any(_SECRET_NAME.search(name) or name.startswith(_OPENAI_HEADERS) for name in names)


def _decoded(value: bytes) -> str:
    """Decode a value so that encoding it as UTF-8 gives the same bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _named_by_connection(headers: RawHeaders) -> frozenset[bytes]:
    values = [value for name, value in headers if name == b"connection"]
    return frozenset(one.strip().lower() for value in values for one in value.split(b","))


def _without_lore_cookies(cookies: str) -> str:
    """Return cookies without those of Lore's own pages."""
    pairs = [pair for pair in cookies.split(";") if not pair.strip().startswith(_LORE_COOKIE)]
    return ";".join(pairs).strip()


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Method, path and headers of a request, and where it is routed."""

    method: str
    target: str
    path: str
    """Normalized for lookups; the target is forwarded as it came."""
    api: ApiName
    provider: Provider
    raw_headers: list[tuple[bytes, bytes]]
    headers: dict[str, str]

    @classmethod
    def of(cls, scope: Scope) -> RequestHead:
        """Read the head of a request."""
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        plain = normalize_path(path)
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        by_name = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        return cls(
            scope["method"],
            f"{path}?{query}" if query else path,
            plain,
            api_of(scope["method"], plain),
            provider_of(plain, by_name),
            headers,
            by_name,
        )

    @property
    def has_body(self) -> bool:
        """Return whether a body follows."""
        return "transfer-encoding" in self.headers or self.headers.get("content-length", "0") != "0"

    @property
    def is_for_provider(self) -> bool:
        """Return whether anything shows that a client means its provider, and not Lore's server."""
        if self.provider != "openai" or is_provider_path(self.path):
            return True
        return names_provider(self.raw_headers, self.target)

    @property
    def may_cost(self) -> bool:
        """Return whether a provider may charge for it."""
        return may_cost(self.method, self.path)

    @property
    def background_response_id(self) -> str:
        """Return the id of the background response that it fetches, else ''."""
        return background_response_id(self.method, self.path)

    def incoming(self, body: bytes, max_bytes: int) -> ClientRequest:
        """Return the request as the plugin sees it."""
        _, _, query = self.target.partition("?")
        return ClientRequest(
            self.api,
            self.path,
            visible_query(query),
            visible_headers(self.headers),
            body,
            max_bytes,
            self.provider,
            self.background_response_id,
        )


_LONG_CACHE = re.compile(rb'"ttl"\s*:\s*"1h"')
_PATH_MODEL = re.compile(r"/models/([^/:]{1,200}):")
_STREAMING = "alt=sse"
"""Without it, Gemini sends a stream as one list."""

_COMMAND = b"lore:"
"""Start of a command to Lore, in any case."""

_LAST_MESSAGES = 4
"""A command is the last typed message: agents put a message or two of their own behind it."""

_NESTED_NAMES = (b"maxOutputTokens", b"candidateCount")
"""Names that Gemini nests in `generationConfig`."""


class _Head(msgspec.Struct):
    """The top-level fields of a request in any API; the rest is skipped."""

    model: Any = ""
    stream: Any = False
    max_tokens: Any = None
    max_completion_tokens: Any = None
    max_output_tokens: Any = None
    n: Any = None
    service_tier: Any = None
    speed: Any = None
    generationConfig: Any = None  # noqa: N815 - as Gemini spells it


class _Conversation(msgspec.Struct):
    """The messages, as each API names them; not parsed further."""

    messages: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    contents: msgspec.Raw = msgspec.Raw()


_PART = re.compile(
    rb'"(%b)"\s*+:|([\[{]++)|([\]}]++)|"'
    % b"|".join((*(one.encode() for one in _Head.__struct_fields__), *_NESTED_NAMES))
)
"""The next known name, brackets, or the beginning of another string."""
_VALUE = re.compile(rb'\s*(?:"([^"]{0,200})"|(\d++)(?![.eE])|(true)\b)')
"""What follows a name: a text, a number or `true`."""
_MAX_DEPTH = 2
_MAX_DIGITS = 20
"""A longer number is as good as none."""


@dataclass(frozen=True, slots=True)
class CostPeek:
    """The model of a request, what it asks for, and its decoded length."""

    model: str
    asks: dict[str, object]
    streams: bool
    length: int
    long: bool = False
    """Whether it asks for a cache of one hour."""


def peek_cost(incoming: ClientRequest) -> CostPeek:
    """Return what a request says of its cost, as far as it can be found."""
    try:
        body = incoming.body()
    except InvalidInput:
        body = incoming.raw
    try:
        head = msgspec.structs.asdict(msgspec.json.decode(body, type=_Head))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Upstreams accept some malformed JSON, and deeper nesting.
        head = {"model": "", "stream": False, **_scan(body)}
    path_model = _PATH_MODEL.search(incoming.path)
    match = head.pop("model")
    model = match if isinstance(match, str) and match else path_model[1] if path_model else ""
    streams = head.pop("stream") is True or _STREAMING in incoming.target
    return CostPeek(model, head, streams, len(body), has_long_cache(body))


def may_be_command(incoming: ClientRequest) -> bool:
    """Return whether a request may end with a command to Lore; 1 MB takes a millisecond."""
    try:
        body = incoming.body()
    except InvalidInput:
        return False
    try:
        conversation = msgspec.json.decode(body, type=_Conversation)
        messages = bytes(conversation.messages or conversation.input or conversation.contents)
        parts = msgspec.json.decode(messages, type=list[msgspec.Raw])[-_LAST_MESSAGES:]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _COMMAND in body.lower()
    return any(_COMMAND in bytes(part).lower() for part in parts)


def has_long_cache(body: bytes) -> bool:
    """Return whether a request asks for a cache of one hour."""
    return b'"1h"' in body and _LONG_CACHE.search(body) is not None


def _scan(body: bytes) -> dict[str, object]:
    """Return the top-level fields of a body that is no valid JSON, as far as they are plain."""
    top: dict[str, object] = {}
    inner: dict[str, object] = {}
    depth = 0
    at = 0
    while at >= 0 and (part := _PART.search(body, at)):
        name, opening, closing = part.groups()
        is_string = not (name or opening or closing)
        at = find_string_end(body, part.end()) if is_string else part.end()
        if opening:
            depth += len(opening)
        elif closing:
            depth -= len(closing)
            if depth <= 0:
                break
        elif name and depth <= _MAX_DEPTH and (match := _VALUE.match(body, part.end())):
            if depth == 1 and name not in _NESTED_NAMES:
                top[name.decode()] = _value(match)
            elif depth > 1 and name in _NESTED_NAMES:
                inner[name.decode()] = _value(match)
    return {**top, "generationConfig": inner} if inner else top


def _value(match: re.Match[bytes]) -> object:
    text, number, _ = match.groups()
    if text is not None:
        return text.decode(errors="replace")
    return int(number[:_MAX_DIGITS]) if number else True
