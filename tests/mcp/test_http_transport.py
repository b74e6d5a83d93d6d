from __future__ import annotations

import asyncio
import json
from contextlib import closing, contextmanager
from http.client import HTTPConnection, IncompleteRead

import pytest
from httpx2 import AsyncClient
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from lore import clock
from lore.http.app import MountedApp
from lore.mcp.server import make_server
from lore.mcp.transports import McpApps
from lore.proxy.daemon_client import percent_encode
from mcp import Client
from tests.http_api.live_server import serving
from tests.mcp.live_server import serving_mcp
from tests.recall.talk import say

DOORS = [("POST", "/mcp"), ("GET", "/sse"), ("POST", "/messages/")]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving_mcp(tmp_path_factory.mktemp("home")) as running:
        running.memory.store("Deploys go through ops/deploy.sh")
        yield running


def headers_of(served, **more):
    return {"authorization": f"Bearer {served.key}", **more}


def text_of(result):
    return result.content[0].text


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_both_generations_are_served_at_one_address(served, mode):
    async def run():
        url = f"http://127.0.0.1:{served.port}/mcp"
        async with (
            AsyncClient(headers=headers_of(served)) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            found = await client.call_tool("recall", {"query": "how do we deploy?"})
            return client.protocol_version, text_of(found)

    version, text = asyncio.run(run())
    assert (version == "2026-07-28") is (mode != "legacy")
    assert "ops/deploy.sh" in text


def test_old_clients_are_served_over_sse(served):
    async def run():
        url = f"http://127.0.0.1:{served.port}/sse"
        async with (
            sse_client(url, headers=headers_of(served)) as (reading, writing),
            ClientSession(reading, writing) as session,
        ):
            await session.initialize()
            found = await session.call_tool("recall", {"query": "how do we deploy?"})
            return text_of(found)

    assert "ops/deploy.sh" in asyncio.run(run())


@pytest.mark.parametrize(("method", "path"), DOORS)
def test_no_door_of_mcp_opens_without_a_key(served, method, path):
    assert served.ask(method, path, body=b"{}").status == 401


@pytest.mark.parametrize("header", [("host", "evil.example"), ("origin", "http://evil.example")])
@pytest.mark.parametrize(("method", "path"), DOORS)
def test_no_door_of_mcp_opens_for_another_site(served, method, path, header):
    headers = [*headers_of(served).items(), header]
    assert served.ask(method, path, headers=headers, body=b"{}").status == 403


def call(served, name, arguments, folder="", **headers):
    """Call a tool as a bridge does that was started in a folder."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    asked["params"] = {"name": name, "arguments": arguments}
    reply = served.post(
        "/mcp", asked,
        accept="application/json, text/event-stream", x_lore_project=percent_encode(str(folder)),
        **headers,
    )  # fmt: skip
    return reply.json["result"]


def worded(result):
    assert not result.get("isError"), result
    return result["content"][0]["text"]


def test_a_caller_has_the_session_that_goes_on_where_it_works(served, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, name in ((here, "puffin"), (there, "gannet")):
        folder.mkdir()
        say(
            served.memory, name, f"The {name} lamp is green.",
            at=clock.now(), project=str(folder),
        )  # fmt: skip
    recalled = call(served, "recall", {"query": "green lamp", "scope": "session"}, here)
    assert "puffin" in worded(recalled)
    assert "gannet" not in worded(recalled)
    call(served, "store", {"content": "Terns breed on the western breakwater."}, here)
    (hit,) = served.memory.search("where do terns breed?", limit=1)
    (reading,) = served.memory.read([hit.id])
    assert reading.session.external_id == "puffin"


def test_a_key_that_may_only_read_is_refused_what_changes_something(served):
    key, _ = served.memory.access.create_key("reader", scopes=["read"])
    bearer = {"authorization": f"Bearer {key}"}
    assert "ops/deploy.sh" in worded(
        call(served, "recall", {"query": "how do we deploy?"}, **bearer)
    )
    for name, given in (("store", {"content": "Gulls steal."}), ("delete", {"id": "deadbeef"})):
        refused = call(served, name, given, **bearer)
        assert refused["isError"]
        assert f"{name}() changes the memory" in refused["content"][0]["text"]
    assert not [hit for hit in served.memory.search("gulls") if "Gulls" in hit.text]


def test_a_key_that_may_only_read_is_refused_the_same_over_sse(served):
    key, _ = served.memory.access.create_key("listener", scopes=["read"])

    async def run():
        url = f"http://127.0.0.1:{served.port}/sse"
        async with (
            sse_client(url, headers={"authorization": f"Bearer {key}"}) as (reading, writing),
            ClientSession(reading, writing) as session,
        ):
            await session.initialize()
            return await session.call_tool("store", {"content": "Gulls steal."})

    assert "may only read" in text_of(asyncio.run(run()))


@contextmanager
def streaming(served, key):
    """Open a stream and give it, and where messages for it are posted."""
    with closing(HTTPConnection("127.0.0.1", served.port, timeout=30)) as connection:
        connection.request("GET", "/sse", headers={"authorization": f"Bearer {key}"})
        with connection.getresponse() as stream:
            assert stream.readline().startswith(b"event: endpoint")
            yield stream, stream.readline().decode().removeprefix("data: ").strip()


def test_nobody_posts_into_the_stream_of_another(served):
    key, _ = served.memory.access.create_key("first", scopes=["read"])
    other, _ = served.memory.access.create_key("second", scopes=["read"])
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with streaming(served, key) as (_, path):
        assert served.post(path, ping, authorization=f"Bearer {other}").status == 404
        assert served.post(path, ping).status == 404
        assert served.post(path, ping, authorization=f"Bearer {key}").status == 202


def test_a_stream_ends_with_its_key(tmp_path):
    def mounts_for(memory):
        apps = McpApps(make_server(memory), look_s=0.05)
        return [
            MountedApp(path, app, lifespan=apps.run if path == "/mcp" else None, scopes=("read",))
            for path, app in apps.apps.items()
        ]

    with serving(tmp_path, mounts_for=mounts_for) as served:
        key, _ = served.memory.access.create_key("leaver", scopes=["read"])
        with streaming(served, key) as (stream, _):
            served.memory.access.revoke_key("leaver")
            with pytest.raises(IncompleteRead):
                stream.read()


def test_a_stream_is_opened_by_get_alone(served):
    reply = served.post("/sse", {})
    assert (reply.status, reply.headers["allow"]) == (405, "GET")


def test_a_key_that_may_not_read_opens_no_door_of_mcp(served):
    key, _ = served.memory.access.create_key("pusher", scopes=["push"])
    for method, path in DOORS:
        assert served.ask(method, path, headers={"x-lore-key": key}, body=b"{}").status == 403


@pytest.mark.parametrize("door", ["/mcp", "/api/v1/tools/store"])
def test_what_comes_by_cookie_is_the_persons_word_at_each_door(served, door):
    content = f"Cormorants dry their wings at {door}."
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    asked["params"] = {"name": "store", "arguments": {"content": content}}
    headers = {
        "cookie": f"{served.logins.cookie}={served.logins.redeem(served.logins.make_ticket())}",
        "origin": f"http://127.0.0.1:{served.port}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
    }
    body = json.dumps(asked if door == "/mcp" else {"content": content}).encode()
    reply = served.ask("POST", door, headers=headers, body=body)
    assert reply.status == 200, reply.body
    assert [one.origin for one in served.memory.search(content, limit=1)] == ["user"]


def test_the_project_of_a_caller_comes_in_a_header(served, tmp_path):
    folder = tmp_path / "größe"
    folder.mkdir()
    worded(call(served, "store", {"content": "The heron pier has 14 berths."}, folder))
    (hit,) = served.memory.search("how many berths has the heron pier?", limit=1)
    (reading,) = served.memory.read([hit.id])
    paths = {project.id: project.path for project in served.memory.sessions.projects()}
    assert paths[reading.fragment.project_id] == str(folder)
