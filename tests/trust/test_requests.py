"""Whatever is sent to the server: no 5xx, no traceback, no hang, and it goes on serving."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.http.app import endpoints_of
from lore.http.auth import Logins
from lore.http.endpoint import Endpoint
from lore.http.request_limits import Limits
from lore.records import NewMessage, Part
from tests.fakes import NOON
from tests.http_api.live_server import TOOLBOX, Reply, Served, serving

ENDPOINTS = endpoints_of(TOOLBOX, Logins("lore"))
READING = [endpoint for endpoint in ENDPOINTS if endpoint.method == "GET"]
DOING = [endpoint for endpoint in ENDPOINTS if endpoint.method == "POST"]
FREE = Limits(body_bytes=200_000, requests_per_minute=0, anonymous_per_minute=0)
SETTINGS = settings(max_examples=150, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def target(tmp_path_factory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("home"), limits=FREE) as served:
        new = [NewMessage("user", (Part("text", f"line {n}"),), NOON, str(n)) for n in range(5)]
        served.memory.capture("talk", new, agent="tests", project="/code/p")
        ids = [served.memory.store(f"fact {n}", project="/code/p") for n in range(5)]
        served.memory.knowledge.link(ids[0], ids[1], "related_to")
        yield served


@pytest.fixture(scope="module")
def known_ids(target: Served) -> list[str]:
    """Return ids that were there at the beginning: what is drawn must not change meanwhile."""
    page = target.memory.knowledge.page_of_fragments()
    return [*(one.id for one in page.items), target.memory.sessions.messages("talk")[0].id, "talk"]


texts = st.one_of(
    st.text(max_size=60),
    st.sampled_from([
        "",
        "\x00",
        "%",
        "'; DROP TABLE items; --",
        '"',
        "NEAR(",
        "a AND",
        "*",
        "\u202e",
        "\U0001d54f" * 20,
    ]),
)
numbers = st.one_of(
    st.integers(), st.sampled_from([0, -1, 2**31, 2**63, 2**64, 10**30]), st.floats()
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def names_of(endpoint: Endpoint[Any]) -> list[str]:
    return list(endpoint.arguments.model_fields)


def fill_path(endpoint: Endpoint[Any], given: dict[str, Any]) -> str:
    path = f"/api/v1{endpoint.path}"
    if "{id}" in path:
        path = path.replace("{id}", quote(str(given.pop("id", "talk")), safe="") or "x")
    return path


def check(reply: Reply) -> None:
    assert reply.status < 500, reply.body
    assert b"Traceback" not in reply.body
    assert b'File "' not in reply.body
    if reply.status >= 400:
        assert reply.headers["content-type"] == "application/problem+json"
        assert json.loads(reply.body)["status"] == reply.status


@SETTINGS
@given(st.data())
def test_no_query_breaks_a_list_or_an_item(
    target: Served, known_ids: list[str], data: st.DataObject
):
    endpoint = data.draw(st.sampled_from(READING))
    known = st.sampled_from(known_ids)
    value = st.one_of(texts, known, st.integers().map(str), st.sampled_from(["fact", "web", "W10"]))
    drawn = data.draw(
        st.dictionaries(st.sampled_from([*names_of(endpoint), "x"]), value, max_size=4)
    )
    path = fill_path(endpoint, drawn)
    query = "&".join(f"{name}={quote(text, safe='')}" for name, text in drawn.items())
    check(target.get(f"{path}?{query}"))


@SETTINGS
@given(st.data())
def test_no_body_breaks_an_endpoint_or_a_tool(
    target: Served, known_ids: list[str], data: st.DataObject
):
    endpoint = data.draw(st.sampled_from(DOING))
    known = st.sampled_from(known_ids)
    given_ = data.draw(
        st.one_of(
            st.dictionaries(
                st.sampled_from([*names_of(endpoint), "x"]), values | known, max_size=6
            ),
            values,
        )
    )
    if endpoint.path == "/consolidate" and isinstance(given_, dict):
        given_["dry_run"] = True
    check(target.post(f"/api/v1{endpoint.path}", given_))


messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"])},
    optional={
        "text": texts,
        "parts": st.lists(
            st.fixed_dictionaries(
                {"text": texts},
                optional={
                    "kind": st.sampled_from(["text", "tool_call", "tool_result", "aside", "image"]),
                    "name": texts,
                    "call_id": texts,
                    "failed": st.booleans(),
                    "origin": st.sampled_from([None, "user", "web", "tool"]),
                },
            ),
            max_size=3,
        ),
        "created_at": st.datetimes().map(lambda at: f"{at.isoformat()}Z"),
        "key": texts,
        "speaker": texts,
        "origin": st.sampled_from([None, "user", "assistant", "tool", "web", "repo", "peer"]),
        "model": texts,
        "usage": st.dictionaries(texts, st.integers(0, 2**53), max_size=3),
    },
)


@SETTINGS
@given(
    body=st.fixed_dictionaries(
        {"session": texts, "messages": st.lists(messages, min_size=1, max_size=4)},
        optional={
            "agent": texts, "project": texts, "title": texts, "branch": texts, "parent": texts,
            "files": st.lists(texts, max_size=3),
        },
    ),
)  # fmt: skip
def test_no_push_breaks_the_memory_or_what_reads_it(target: Served, body: dict[str, Any]):
    reply = target.post("/api/v1/capture", body)
    check(reply)
    if reply.status == 200:
        check(target.get(f"/api/v1/messages/{reply.json['ids'][0]}"))
        name = quote(body["session"], safe="")
        check(target.get(f"/api/v1/sessions/{name}/messages"))
        assert target.get("/api/v1/sessions").status == 200
        assert target.get("/api/v1/projects").status == 200


@SETTINGS
@given(body=st.binary(max_size=300), kind=st.sampled_from(["application/json", "text/plain", ""]))
def test_no_bytes_break_an_endpoint(target: Served, body: bytes, kind: str):
    headers = {"x-lore-key": target.key, "content-type": kind}
    check(target.ask("POST", "/api/v1/retrieve", headers=headers, body=body))


header_values = st.text(
    st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=80
)


@SETTINGS
@given(
    st.dictionaries(
        st.sampled_from(
            ["origin", "cookie", "authorization", "x-lore-key", "x-lore-project", "x-lore-session",
             "if-none-match", "content-type", "sec-fetch-site", "accept", "range", "te", "expect"]
        ),
        header_values,
        max_size=5,
    ),
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "PATCH"]),
)  # fmt: skip
def test_no_headers_break_the_gate(target: Served, headers: dict[str, str], method: str):
    latin = {name: value.strip() for name, value in headers.items()}
    reply = target.ask(method, "/api/v1/stats", headers=latin)
    assert reply.status < 500
    assert reply.status != 200 or target.key in latin.values()


@SETTINGS
@given(
    st.one_of(
        st.binary(max_size=400),
        st.binary(max_size=100).map(lambda junk: b"GET /" + junk + b" HTTP/1.1\r\n\r\n"),
        st.binary(max_size=100).map(lambda junk: b"GET /health HTTP/1.1\r\nhost: " + junk),
    )
)
def test_no_bytes_on_the_wire_break_the_server(target: Served, sent: bytes):
    with socket.create_connection((target.host, target.port), 10) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(4_096):
                received += piece
    assert not received.startswith(b"HTTP/1.1 5")
    assert b"Traceback" not in received
    assert target.ask("GET", "/health").status == 200
