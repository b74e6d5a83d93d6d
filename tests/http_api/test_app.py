"""Every route requires access, names its scope, and answers errors as problem+json."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount as StarletteMount
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lore import __version__
from lore.errors import InvalidInput
from lore.http.app import MountedApp, make_app
from lore.http.auth import Authenticator, Logins
from lore.http.middleware import PUBLIC_PATHS
from lore.http.request_limits import Limits
from lore.http.write_endpoints import Toolbox
from lore.memory import Memory
from lore.tools import tool_registry
from lore.tools.tool import Arguments, Caller, Outcome, Result, Tool
from tests.http_api.live_server import TOOLBOX, Served, serving

PRIVATE = "the colour of the safe"


class Wish(Arguments):
    text: str


class Told(Result):
    said: str


def run_wish(memory: Memory, wish: Wish, caller: Caller) -> Outcome:
    if wish.text == "accident":
        raise ValueError(PRIVATE)
    if wish.text == "refused":
        msg = "No."
        raise InvalidInput(msg, hint="Ask for something else.")
    return Outcome(f"{wish.text} {caller.project} {caller.origin}", Told(said=wish.text))


def call_wish(memory: Memory, name: str, arguments, caller: Caller) -> Outcome:
    return run_wish(memory, Wish(**arguments), caller)


WISHING = Tool("wish", "Wish", "Wish.", Wish, Told, run_wish, reads_only=False)


async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"].endswith("/stream"):

        async def forever() -> AsyncIterator[bytes]:
            while True:
                yield b"data: x\n\n"
                await asyncio.sleep(0.05)

        await StreamingResponse(forever(), media_type="text/event-stream")(scope, receive, send)
    else:
        await PlainTextResponse("behind the gate")(scope, receive, send)


class Life:
    """Remembers when a mount was begun and ended."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        self.told.append("begun")
        yield
        self.told.append("ended")


def doors(_memory: Memory) -> list[MountedApp]:
    """Return two mounts: one of a path alone, one of all below it."""
    return [MountedApp("/door/", mounted), MountedApp("/post", mounted)]


@pytest.fixture(scope="module")
def wishing(tmp_path_factory) -> Iterator[Served]:
    free = Limits(requests_per_minute=0, anonymous_per_minute=0)
    toolbox = Toolbox((WISHING,), call_wish)
    home = tmp_path_factory.mktemp("home")
    with serving(
        home,
        limits=free,
        toolbox=toolbox,
        mounts_for=doors,
    ) as served:
        yield served


def routes_of(memory: Memory) -> list[tuple[str, str]]:
    """Return every method and path that the app answers."""
    access = Authenticator("key", memory.access.identify_key, Logins("c"))
    app = make_app(
        memory,
        access,
        TOOLBOX,
        host_names=frozenset(),
        mounts=doors(memory),
    )
    found = []
    for route in app.routes:
        if isinstance(route, Route):
            methods = sorted(route.methods or ("GET", "POST"))
            found += [(method, route.path) for method in methods]
        else:
            assert isinstance(route, StarletteMount)
            found += [(method, f"{route.path}/x") for method in ("GET", "POST")]
    return found


def test_no_route_answers_without_a_key_but_health(wishing: Served):
    walked = routes_of(wishing.memory)
    assert len(walked) > 30
    opened = []
    for method, path in walked:
        filled = re.sub(r"{\w+}", "01a1e005-a24b-728e-a28f-df4bbd74c997", path)
        for headers in ({}, {"x-lore-key": "wrong"}, {"cookie": f"{wishing.logins.cookie}=x"}):
            reply = wishing.ask(method, filled, headers=headers)
            assert reply.status in (200, 401), (method, path)
            if reply.status == 200:
                opened.append((method, path))
    assert set(opened) == {("GET", "/health"), ("HEAD", "/health")}
    assert {"/health", "/login"} == PUBLIC_PATHS


@pytest.mark.parametrize(
    "path",
    ["/", "//health", "/health/", "/health/../api/v1/stats", "/%68ealth/x", "/HEALTH", "/login/",
     "/api/v1/stats#/health", "/health%2f..", "/health;/api", "/api/v1/../../health", "/door"],
)  # fmt: skip
def test_no_spelling_of_a_path_goes_around_the_gate(wishing: Served, path: str):
    assert wishing.ask("GET", path).status == 401


def test_health_says_that_it_is_well_and_nothing_of_the_contents(wishing: Served):
    reply = wishing.ask("GET", "/health")
    assert reply.json == {"ok": True, "version": __version__}


def test_a_tool_is_called_with_its_arguments_and_its_caller(wishing: Served):
    reply = wishing.post("/api/v1/tools/wish", {"text": "peace"}, x_lore_project="/code/a%20b")
    assert reply.json == {"text": "peace /code/a b assistant", "data": {"said": "peace"}}


def test_a_tool_that_changes_something_needs_a_key_that_may(wishing: Served):
    key, _ = wishing.memory.access.create_key("reader", scopes=["read"])
    headers = {"x-lore-key": key, "content-type": "application/json"}
    path = "/api/v1/tools/wish"
    assert wishing.ask("POST", path, headers=headers, body=b'{"text": "x"}').status == 403


def test_a_refusal_of_a_tool_is_a_problem_with_its_hint(wishing: Served):
    reply = wishing.post("/api/v1/tools/wish", {"text": "refused"})
    assert reply.status == 422
    assert reply.json["detail"] == "No."
    assert reply.json["hint"] == "Ask for something else."


def test_an_accident_tells_nothing_to_the_caller_and_no_contents_to_the_log(
    wishing: Served, caplog, capfd
):
    reply = wishing.post("/api/v1/tools/wish", {"text": "accident"}, x_lore_session=PRIVATE)
    assert reply.status == 500
    said = capfd.readouterr()
    everything = reply.body.decode() + caplog.text + said.out + said.err
    everything += " ".join(str(vars(record)) for record in caplog.records)
    assert "request failed" in caplog.text
    for private in (PRIVATE, "Traceback", "ValueError: ", wishing.key):
        assert private not in everything
    assert b"ValueError" not in reply.body


def test_a_mounted_door_is_behind_the_same_gate(wishing: Served):
    assert wishing.ask("GET", "/door/x").status == 401
    assert wishing.get("/door/x").body == b"behind the gate"
    key, _ = wishing.memory.access.create_key("reader", scopes=["read"])
    assert wishing.ask("GET", "/door/x", headers={"x-lore-key": key}).status == 403


def test_a_mounted_door_lives_as_long_as_the_server(tmp_path: Path):
    life = Life()
    with serving(tmp_path, mounts_for=lambda _memory: [MountedApp("/door/", mounted, life)]):
        assert life.told == ["begun"]
    assert life.told == ["begun", "ended"]


def test_a_wrong_method_is_a_problem(wishing: Served):
    reply = wishing.ask("DELETE", "/api/v1/stats", headers={"x-lore-key": wishing.key})
    assert reply.status == 405
    assert reply.headers["content-type"] == "application/problem+json"


def test_a_body_that_is_not_declared_json_is_refused(wishing: Served):
    headers = {"x-lore-key": wishing.key, "content-type": "text/plain"}
    path = "/api/v1/tools/wish"
    assert wishing.ask("POST", path, headers=headers, body=b'{"text": "x"}').status == 415


def test_a_server_stops_with_a_stream_and_an_idle_connection_open(tmp_path: Path):
    with serving(
        tmp_path,
        mounts_for=lambda _memory: [MountedApp("/door/", mounted), MountedApp("/post", mounted)],
    ) as served:
        idle = socket.create_connection((served.host, served.port), 10)
        stream = socket.create_connection((served.host, served.port), 10)
        stream.sendall(
            b"GET /door/stream HTTP/1.1\r\nhost: localhost\r\nx-lore-key: "
            + served.key.encode()
            + b"\r\n\r\n"
        )
        assert stream.recv(200).startswith(b"HTTP/1.1 200")
    # Leaving the block waits for the thread of the server, and fails if it does not end.
    for client in (idle, stream):
        client.close()


def test_the_description_is_served_and_names_every_endpoint(wishing: Served):
    described = json.loads(wishing.get("/api/v1/openapi.json").body)
    assert described["openapi"] == "3.1.0"
    served = {path for _, path in routes_of(wishing.memory) if path.startswith("/api/v1/")}
    named = set(described["paths"])
    unnamed = {path for path in served if not path.startswith("/api/v1/tools/")} - named
    assert unnamed == {"/api/v1/openapi.json"}
    assert "/api/v1/tools/wish" in named


def test_the_description_is_made_once_and_not_before_somebody_asks(tmp_path: Path):
    made: list[bytes] = []

    def describe() -> bytes:
        made.append(b"{}")
        return made[-1]

    with serving(tmp_path, describe=describe) as served:
        assert served.get("/health").status == 200
        assert made == []
        assert [served.get("/api/v1/openapi.json").body for _ in range(2)] == [b"{}", b"{}"]
        assert served.ask("GET", "/api/v1/openapi.json").status == 401
    assert made == [b"{}"]


def test_the_description_names_the_cookie_that_a_login_leaves(wishing: Served):
    described = wishing.get("/api/v1/openapi.json").json
    path = wishing.post("/api/v1/logins", {}).json["path"]
    left = wishing.ask("GET", path).headers["set-cookie"].partition("=")[0]
    assert described["components"]["securitySchemes"]["cookie"]["name"] == left


def test_what_a_caller_waits_for_a_thread_is_taken_off_its_patience(tmp_path: Path):
    left: list[float | None] = []

    def call(memory: Memory, name: str, arguments: Mapping[str, object], caller: Caller) -> Outcome:
        left.append(caller.within_s)
        return tool_registry.call_tool(memory, name, arguments, caller)

    with serving(tmp_path, toolbox=Toolbox(tool_registry.TOOLS, call)) as served:
        for headers in ({}, {"x-lore-within-ms": "60000"}, {"x-lore-within-ms": "0"}):
            assert served.post("/api/v1/tools/list_roots", {}, **headers).status == 200
    assert (left[0], left[2]) == (None, 0.0)
    assert left[1] is not None
    assert 0 < left[1] < 60
