"""Attempts of one owner to get at another: routes, foreign handles, and tricks."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from lore.http.app import endpoints_of
from lore.http.auth import Logins
from lore.http.endpoint import Endpoint
from lore.http.write_endpoints import Toolbox
from lore.proxy.address import API_PREFIX
from lore.tools import tool_registry

ENDPOINTS = endpoints_of(Toolbox(tool_registry.TOOLS, tool_registry.call_tool), Logins("x"))

_NAMED = (
    "id", "ids", "session", "session_id", "agent_id", "project", "parent_id", "parent", "anchor",
    "source", "target", "old", "new", "by", "corrects", "topic", "task", "used", "skill", "under",
    "fragment", "focus", "action", "digest", "team", "to_agent", "from_agent", "agent", "cwd",
    "transcript_path", "agent_transcript_path", "query", "match", "cursor", "files",
)  # fmt: skip
"""Arguments that may name something of somebody else."""

_LISTS = ("ids", "used", "files")

_FILLERS: Mapping[str, Any] = {
    "query": "harbor", "content": "x", "goal": "fix the gate", "phase": "start", "outcome": "done",
    "kind": "supports", "page": "---\nname: x\n---\nx", "on": False, "profiles": ["balanced"],
    "event": "UserPromptSubmit", "messages": [{"role": "user", "text": "hello"}], "session": "own",
    "decision": "approve", "to_agent": "codex", "what_was_done": "x", "agent": "codex",
    "current_task": "x", "prompt": "harbor", "limit": 5, "dry_run": True, "team": "own",
}  # fmt: skip
"""Values of required arguments that name nothing."""

_COSTLY = ("/consolidate", "/ask", "/graph", "/health/report")
"""Routes that take long; they are tried with fewer handles."""


@dataclass(frozen=True)
class Handles:
    """What an attacker might know of a victim: ids, names, cursors, tags, sessions, folders."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    cursors: tuple[str, ...]
    tags: tuple[str, ...]
    cookie: str
    folder: str
    prefix: str


@dataclass(frozen=True)
class Attempt:
    """One request of an attacker; `subject` is the handle it is about."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    subject: str = ""
    route: str = ""
    trick: str = "plain"


@dataclass
class Harvest:
    """Collects handles from what a victim reads of their own memory."""

    ids: set[str] = field(default_factory=set)
    cursors: set[str] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)

    def read(self, body: bytes, tag: str) -> None:
        text = body.decode("utf-8", "replace")
        self.ids.update(re.findall(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f-]{17}", text))
        self.cursors.update(re.findall(r'"next":"([^"]+)"', text))
        if tag:
            self.tags.add(tag)


def spell(handle: str) -> Iterator[tuple[str, str]]:
    """Yield the spellings of a handle, each with the name of the trick."""
    yield "plain", handle
    yield "upper", handle.upper()
    yield "prefix", handle[:13]
    yield "padded", f" {handle} "
    yield "null", f"{handle}\0"
    yield "traversal", f"../{handle}"
    yield "encoded", quote(quote(handle, safe=""), safe="")
    yield "wildcard", f"{handle[:8]}%"
    yield "quoted", f"{handle}' OR '1'='1"
    yield "bracketed", f"[{handle}]"
    yield "full width", "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in handle)


def _arguments(endpoint: Endpoint[Any], name: str, value: str) -> dict[str, Any]:
    """Return arguments of an endpoint with a handle as one of them."""
    filled = {
        field_name: _FILLERS[field_name]
        for field_name, spec in endpoint.arguments.model_fields.items()
        if spec.is_required() and field_name in _FILLERS
    }
    if endpoint.path.startswith("/fragments/") and endpoint.method == "POST":
        filled = {"content": "x"} if "content" in endpoint.arguments.model_fields else {}
    return {**filled, name: [value] if name in _LISTS else value}


def _request(
    endpoint: Endpoint[Any], arguments: dict[str, Any], headers: Sequence[tuple[str, str]]
) -> tuple[str, tuple[tuple[str, str], ...], bytes]:
    path = f"{API_PREFIX}{endpoint.path}"
    for name in re.findall(r"{(\w+)}", endpoint.path):
        value = str(arguments.pop(name, _FILLERS.get(name, "x")))
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    if endpoint.method == "GET":
        query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in
                         arguments.items())  # fmt: skip
        return (f"{path}?{query}" if query else path), tuple(headers), b""
    sent = (("content-type", "application/json"), *headers)
    return path, sent, json.dumps(arguments).encode()


def _by_argument(endpoint: Endpoint[Any], victim: Handles) -> Iterator[Attempt]:
    names = [name for name in endpoint.arguments.model_fields if name in _NAMED]
    handles = [*victim.ids, *victim.names, victim.folder, f"/../{victim.folder}/memory.db"]
    if endpoint.path in _COSTLY:
        handles = handles[:3]
    for name in names:
        chosen = victim.cursors if name == "cursor" else handles
        for handle in chosen:
            for trick, value in spell(handle):
                path, headers, body = _request(endpoint, _arguments(endpoint, name, value), ())
                yield Attempt(
                    endpoint.method, path, headers, body, value, endpoint.path, f"{name}, {trick}"
                )


def _by_header(endpoint: Endpoint[Any], victim: Handles) -> Iterator[Attempt]:
    tricks: list[tuple[str, tuple[tuple[str, str], ...]]] = [
        *(("project", (("x-lore-project", quote(name, safe="")),)) for name in victim.names),
        *(("session", (("x-lore-session", quote(name, safe="")),)) for name in victim.names),
        *(("tag", (("if-none-match", tag),)) for tag in victim.tags),
        ("cookie", (("cookie", victim.cookie),)),
        ("cookie twice", (("cookie", f"{victim.cookie}; {victim.cookie}"),)),
        ("owner header", (("x-lore-owner", victim.folder), ("x-owner", victim.folder))),
        ("forwarded", (("x-forwarded-user", "victim"), ("x-forwarded-for", "127.0.0.1"))),
        ("guessed key", (("x-lore-key", f"lore_{victim.prefix}_guess"),)),
        ("override", (("x-http-method-override", "DELETE"), ("x-original-url", "/metrics"))),
    ]
    for trick, headers in tricks[: 6 if endpoint.path in _COSTLY else None]:
        filled = _arguments(endpoint, "x", "x")
        filled.pop("x")
        path, sent, body = _request(endpoint, filled, headers)
        yield Attempt(endpoint.method, path, sent, body, "", endpoint.path, trick)


def _by_path(victim: Handles) -> Iterator[Attempt]:
    """Yield requests of pages, files, MCP and odd paths with foreign handles in them."""
    pages = ("/fragments/", "/messages/", "/sessions/", "/tasks/", "/assets/", "/owners/",
             "/metrics/", "/status/", "/login?ticket=", "/login?next=", "/sse/", "/messages?id=",
             "/mcp/", "/teams/", "/server.db/", "/backups/")  # fmt: skip
    for page, handle in itertools.product(pages, [*victim.ids, *victim.names, victim.folder]):
        for trick, value in spell(handle):
            spelt = quote(value, safe="")
            for path in (f"{page}{spelt}", f"{page}%2e%2e/{spelt}", f"/{page.strip('/')}//{spelt}"):
                yield Attempt("GET", path, (), b"", value, page, trick)


def _by_mcp(victim: Handles) -> Iterator[Attempt]:
    """Yield calls of every tool, and reads of resources, over MCP."""
    headers = (("accept", "application/json, text/event-stream"),
               ("content-type", "application/json"),
               ("mcp-session-id", victim.ids[0]))  # fmt: skip

    def call(method: str, params: dict[str, Any]) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()

    for tool in tool_registry.TOOLS:
        for name in (name for name in tool.arguments.model_fields if name in _NAMED):
            for handle in (*victim.ids, *victim.names):
                value: Any = [handle] if name in _LISTS else handle
                filled = {
                    key: _FILLERS[key] for key, spec in tool.arguments.model_fields.items()
                    if spec.is_required() and key in _FILLERS
                }  # fmt: skip
                body = call("tools/call", {"name": tool.name, "arguments": {**filled, name: value}})
                yield Attempt("POST", "/mcp", headers, body, handle, f"mcp {tool.name}", name)
    for handle in (*victim.ids, *victim.names):
        for uri in (f"lore://fragment/{handle}", f"lore://index/{handle}", f"file://{handle}"):
            body = call("resources/read", {"uri": uri})
            yield Attempt("POST", "/mcp", headers, body, handle, "mcp resource")


def make_attempts(victim: Handles, rng: random.Random, most: int) -> list[Attempt]:
    """Return attempts of every sort, as many as asked for, the same ones for the same seed."""
    sorts = [
        [one for endpoint in ENDPOINTS for one in _by_header(endpoint, victim)],
        [*_by_mcp(victim)],
        [*_by_path(victim)],
        [one for endpoint in ENDPOINTS for one in _by_argument(endpoint, victim)],
    ]
    chosen: list[Attempt] = []
    for i, sort in enumerate(sorts):
        rng.shuffle(sort)
        share = (most - len(chosen)) // (len(sorts) - i)
        chosen += _route_by_route(sort)[:share]
    rng.shuffle(chosen)
    return chosen


def _route_by_route(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return attempts so that each route has its turn before one has another."""
    by_route: dict[str, list[Attempt]] = {}
    for one in attempts:
        by_route.setdefault(one.route, []).append(one)
    rounds = itertools.zip_longest(*by_route.values())
    return [one for each in rounds for one in each if one is not None]
