"""Who is let in: every route and tool needs a key, and a key opens one memory."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace

import pytest
from starlette.routing import Route

from lore.http.app import endpoints_of
from lore.http.auth import Logins
from lore.http.request_limits import Limits
from lore.http.write_endpoints import Toolbox
from lore.proxy.address import API_PREFIX
from lore.settings import Settings
from lore.tools import tool_registry
from tests.server.served import HOST, Reply, Served, call, on_both_engines, serving
from tests.waiting import eventually

STORE = f"{API_PREFIX}/tools/store"


def remember(served: Served, key: str, text: str) -> str:
    reply = served.post(STORE, {"content": text}, key)
    assert reply.status == 200, reply.body
    return str(reply.json["data"]["id"])


def find(served: Served, key: str, query: str) -> list[str]:
    reply = served.post(f"{API_PREFIX}/retrieve", {"query": query}, key)
    assert reply.status == 200, reply.body
    return [hit["text"] for hit in reply.json["hits"]]


def routes(served: Served, owner: str) -> list[tuple[str, str]]:
    """Return method and path of every route of an owner's app."""
    with served.server.pool.lease(served.registry.get_owner(owner).id) as service:
        app = served.run(service.get_app())
        listed = []
        for route in app.routes:
            path = getattr(route, "path", "")
            methods = (route.methods if isinstance(route, Route) else None) or {"GET", "POST"}
            listed += [(method, path.replace("{", "").replace("}", "")) for method in methods]
        return listed


@on_both_engines
def test_each_owner_finds_their_own_and_nothing_else(served: Served, ann: str, ben: str):
    remember(served, ann, "The harbor gate opens at six.")
    remember(served, ben, "The lighthouse keeper is called Ida.")
    assert find(served, ann, "harbor gate") == ["The harbor gate opens at six."]
    assert find(served, ben, "harbor gate") == []
    assert find(served, ben, "lighthouse keeper") == ["The lighthouse keeper is called Ida."]


def test_every_route_needs_a_key_but_health(served: Served, ann: str):
    listed = routes(served, "ann")
    assert len(listed) > 100
    paths = [path for _, path in listed]
    assert {"/mcp", "/sse", "/metrics", "/status", "/login"} <= set(paths)
    for method, path in [*listed, ("GET", "/v1/models"), ("POST", "/v1/messages"), ("GET", "/x")]:
        for headers in ({}, {"authorization": "Bearer nothing"}, {"x-lore-key": "lore_a_b"},
                        {"cookie": "lore_server=a.b"}):  # fmt: skip
            reply = served.run(served.ask(method, path, headers, b"{}"))
            expected = 200 if path == "/health" else 401
            assert reply.status == expected, (method, path, headers)


def test_every_tool_is_a_route_and_a_tool_of_mcp_behind_the_key(served: Served, ann: str):
    paths = {path for _, path in routes(served, "ann")}
    for tool in tool_registry.TOOLS:
        assert f"{API_PREFIX}/tools/{tool.name}" in paths
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool.name, "arguments": {}}}  # fmt: skip
        accept = {"accept": "application/json, text/event-stream",
                  "content-type": "application/json"}  # fmt: skip
        body = json.dumps(call).encode()
        assert served.run(served.ask("POST", "/mcp", accept, body)).status == 401
    endpoints = endpoints_of(Toolbox(tool_registry.TOOLS, tool_registry.call_tool), Logins("x"))
    assert all(endpoint.scope for endpoint in endpoints)


@on_both_engines
def test_mcp_over_http_answers_from_the_memory_of_the_key(served: Served, ann: str, ben: str):
    remember(served, ann, "The harbor gate opens at six.")

    def recall(key: str) -> str:
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "recall", "arguments": {"query": "harbor gate"}}}  # fmt: skip
        headers = {"accept": "application/json, text/event-stream",
                   "content-type": "application/json", "x-lore-key": key}  # fmt: skip
        reply = served.run(served.ask("POST", "/mcp", headers, json.dumps(call).encode()))
        assert reply.status == 200, reply.body
        return str(reply.json["result"]["content"][0]["text"])

    assert "opens at six" in recall(ann)
    assert recall(ben) == "Nothing found."


def test_a_revoked_key_stops_at_once(served: Served, ann: str):
    assert served.get("/status", ann).status == 200
    served.registry.revoke_key("ann's")
    assert served.get("/status", ann).status == 401


def test_an_expired_key_and_a_key_of_a_removed_owner_stop(served: Served, ann: str):
    brief, _ = served.registry.create_key("brief", owner="ann", expires_in_s=0)
    assert served.get("/status", brief).status == 401
    served.registry.remove_owner("ann")
    assert served.get("/status", ann).status == 401


def test_scopes_are_checked(served: Served):
    reader = served.add("ann", scopes=("read",))
    assert served.get(f"{API_PREFIX}/stats", reader).status == 200
    assert served.post(STORE, {"content": "x"}, reader).status == 403
    assert served.post(f"{API_PREFIX}/logins", {}, reader).status == 403


def test_two_keys_in_one_request_open_nothing(served: Served, ann: str, ben: str):
    remember(served, ann, "The harbor gate opens at six.")
    for one, other in ((ann, ben), (ben, ann)):
        headers = {"authorization": f"Bearer {one}", "x-lore-key": other}
        assert served.run(served.ask("GET", f"{API_PREFIX}/fragments", headers)).status == 401


@pytest.mark.parametrize("host", ["evil.example", "lore.example.evil.example", "10.0.0.1", ""])
def test_a_foreign_host_is_refused_before_the_key(served: Served, ann: str, host: str):
    assert served.get("/status", ann, host=host).status == 403
    assert served.get("/health", host=host).status == 403


def test_a_page_of_another_origin_is_refused(served: Served, ann: str):
    assert served.get("/status", ann, origin="https://evil.example").status == 403
    assert served.get("/status", ann, origin=f"https://{HOST}").status == 200


def test_a_browser_logs_in_with_a_ticket_and_only_into_its_own_memory(
    served: Served, ann: str, ben: str
):
    remember(served, ann, "The harbor gate opens at six.")
    path = served.post(f"{API_PREFIX}/logins", {}, ann).json["path"]
    login = served.get(path)
    assert login.status == 303
    assert served.get(path).status == 401  # it works once
    cookie = login.header("set-cookie").partition(";")[0]
    assert served.get(f"{API_PREFIX}/fragments", cookie=cookie).json["items"]
    assert served.get(f"{API_PREFIX}/fragments", ben, cookie=cookie).json["items"] == []
    served.registry.revoke_key("ann's")  # with the key that made the ticket, the session ends
    assert served.get(f"{API_PREFIX}/fragments", cookie=cookie).status == 401


def test_a_page_of_another_site_logs_no_browser_in(served: Served, ann: str):
    path = served.post(f"{API_PREFIX}/logins", {}, ann).json["path"]
    assert served.get(path, sec_fetch_site="cross-site").status == 403
    assert served.get(path, sec_fetch_site="none").status == 303


def test_no_owner_waits_for_the_long_requests_of_another():
    def limiters() -> set[object]:
        toolbox = Toolbox(tool_registry.TOOLS, tool_registry.call_tool)
        return {one.limiter for one in endpoints_of(toolbox, Logins("x")) if one.limiter}

    assert len(limiters()) >= 6
    assert not limiters() & limiters()


def test_a_cookie_is_for_https_alone_behind_a_proxy_that_speaks_it(served: Served, ann: str):
    path = served.post(f"{API_PREFIX}/logins", {}, ann).json["path"]
    assert "Secure" in served.get(path, x_forwarded_proto="https").header("set-cookie")


def test_the_operator_sees_figures_and_no_memory(served: Served, ann: str):
    remember(served, ann, "The harbor gate opens at six.")
    key, _ = served.registry.create_key("prometheus", scopes=("read",))
    status = served.get("/status", key).json
    assert (status["role"], status["owners"], status["open_memories"]) == ("server", 1, 1)
    assert b"lore_server_owners 1" in served.get("/metrics", key).body
    for path in ("/", f"{API_PREFIX}/stats", f"{API_PREFIX}/fragments", "/mcp", "/v1/messages"):
        assert served.get(path, key).status == 404, path


def test_metrics_name_owners_by_hash_and_only_if_asked(tmp_path):
    def name(settings):
        return replace(settings, server_owner_metrics=True)

    for change, expected in ((lambda settings: settings, False), (name, True)):
        with serving(tmp_path / f"{expected}", change=change) as served:
            served.get("/status", served.add("ann"))
            key, _ = served.registry.create_key("prometheus", scopes=("read",))
            text = served.get("/metrics", key).body.decode()
            assert ("lore_owner_budget_pressure{" in text) == expected
            assert "ann" not in text


def test_an_owner_has_a_rate_of_requests_whatever_their_keys(tmp_path):
    limits = Limits(requests_per_minute=20, anonymous_per_minute=0)
    with serving(tmp_path, limits=limits) as served:
        ann, ben = served.add("ann"), served.add("ben")
        other, _ = served.registry.create_key("other", owner="ann")
        replies = [served.get("/status", key) for key in (ann, other, ann, other)]
        assert [reply.status for reply in replies] == [200, 200, 429, 429]
        assert int(replies[-1].header("retry-after")) >= 1
        assert served.get("/status", ben).status == 200


def test_too_much_and_too_strange_is_refused(tmp_path):
    limits = replace(Limits(requests_per_minute=0), body_bytes=1_000)
    with serving(tmp_path, limits=limits) as served:
        ann = served.add("ann")
        assert served.post(STORE, {"content": "x" * 2_000}, ann).status == 413
        assert served.post(STORE, {"contents": "x"}, ann).status == 422
        deep = json.dumps({"content": "x", "payload": {}}).replace("{}", "[" * 40 + "]" * 40)
        sent = {"content-type": "application/json", "authorization": f"Bearer {ann}"}
        assert served.run(served.ask("POST", STORE, sent, deep.encode())).status == 422
        assert served.run(served.ask("POST", STORE, sent, b"{")).status == 400


def test_no_response_names_the_folder_of_the_server(served: Served, ann: str):
    remember(served, ann, "The harbor gate opens at six.")
    listed = endpoints_of(Toolbox(tool_registry.TOOLS, tool_registry.call_tool), Logins("x"))
    reads = [f"{API_PREFIX}{one.path}" for one in listed if one.method == "GET"]
    for path in ("/", "/status", "/metrics", *(path for path in reads if "{" not in path)):
        assert str(served.home).encode() not in served.get(path, ann).body, path


def test_a_project_is_a_name_and_no_folder_of_the_server(served: Served, ann: str, tmp_path):
    repository = tmp_path / "secret-repo"
    (repository / ".git" / "refs").mkdir(parents=True)
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/canary-branch\n")
    (repository / ".git" / "config").write_text('[remote "origin"]\n url = https://h/canary\n')
    folder = str(repository / "inner")
    message = {"role": "user", "text": "The tide table is in UTC."}
    body = {"session": "s1", "messages": [message], "project": folder}
    assert served.post(f"{API_PREFIX}/capture", body, ann).status == 200
    hook = {"session_id": "s1", "cwd": folder, "transcript_path": f"{tmp_path}/projects/x.jsonl"}
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / "x.jsonl").write_text('{"canary": 1}\n')
    for event in ("SessionStart", "Stop", "SessionEnd", "PreCompact"):
        assert served.post(f"{API_PREFIX}/hooks/{event}", hook, ann).status == 200
    listed = served.get(f"{API_PREFIX}/projects", ann)
    assert [one["path"] for one in listed.json["items"]] == [folder]
    assert b"canary" not in listed.body
    checkpoint = served.post(
        f"{API_PREFIX}/tools/checkpoint", {"agent": "a"}, ann, x_lore_project=folder
    )
    assert b"canary" not in checkpoint.body


def test_requests_of_many_owners_at_once_stay_apart(tmp_path):
    def few(settings):
        return replace(settings, server_open_memories=4)

    with serving(tmp_path, change=few) as served:
        keys = {f"o{i}": served.add(f"o{i}") for i in range(10)}

        async def use(name: str, key: str) -> list[str]:
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
            for i in range(3):
                body = json.dumps({"content": f"{name} keeps number {i}"}).encode()
                reply = await served.ask("POST", STORE, headers, body)
                while reply.status == 503:  # all places were in use
                    reply = await served.ask("POST", STORE, headers, body)
                assert reply.status == 200, reply.body
            listed = await served.ask("GET", f"{API_PREFIX}/fragments", headers)
            return [item["content"] for item in listed.json["items"]]

        async def use_all() -> list[list[str]]:
            return await asyncio.gather(*(use(name, key) for name, key in keys.items()))

        for name, texts in zip(keys, served.run(use_all()), strict=True):
            assert sorted(texts) == [f"{name} keeps number {i}" for i in range(3)]
        assert len(served.server.pool) <= 4


def test_slow_requests_of_one_owner_stop_nobody_else(served: Served, ann: str, ben: str):
    remember(served, ann, "The harbor gate opens at six.")
    remember(served, ben, "The pier is closed.")

    async def work() -> None:
        async def store(place: int) -> Reply:
            sent = {"content-type": "application/json", "authorization": f"Bearer {ann}"}
            body = json.dumps({"content": f"Gate {place} is open."}).encode()
            return await served.ask("POST", STORE, sent, body)

        slow = [asyncio.ensure_future(store(place)) for place in range(24)]
        await asyncio.sleep(0)
        headers = {"authorization": f"Bearer {ben}"}
        for path in ("/status", f"{API_PREFIX}/fragments"):
            assert (await served.ask("GET", path, headers)).status == 200
        assert not any(task.done() for task in slow)
        release.set()
        await asyncio.gather(*slow)

    release = threading.Event()
    with served.server.pool.lease(served.registry.get_owner("ann").id) as service:
        service.memory.database.submit(lambda _db: release.wait(60))
        served.run(work())


def test_a_stream_gives_its_place_to_somebody_who_needs_it(tmp_path):
    def one_place(settings: Settings) -> Settings:
        return replace(settings, server_open_memories=1)

    with serving(tmp_path, change=one_place) as served:
        ann, ben = served.add("ann"), served.add("ben")
        pieces: list[bytes] = []

        async def listen() -> None:
            headers = [("authorization", f"Bearer {ann}")]
            await call(served.server.app, "GET", f"{API_PREFIX}/events", headers, b"", heard=pieces)

        stream = asyncio.run_coroutine_threadsafe(listen(), served.loop)
        eventually(lambda: pieces)
        assert served.get(f"{API_PREFIX}/fragments", ben).status == 200
        stream.result(60)
        assert pieces[-1] == b""  # it ended in order, and a browser connects again
        assert served.get(f"{API_PREFIX}/fragments", ann).status == 200


@on_both_engines
def test_owners_learn_nothing_of_where_the_server_has_its_memories(served: Served):
    key = served.add("zoe")
    for path in ("/health/report?full=true", "/stats", "/status"):
        reply = served.get(f"{API_PREFIX}{path}", key)
        assert str(served.home).encode() not in reply.bytes, path
        assert b"database postgres" not in reply.bytes, path
    report = served.get(f"{API_PREFIX}/health/report", key).json
    [database] = [one for one in report["checks"] if one["name"] == "database"]
    assert database["detail"] in ("SQLite", "PostgreSQL")
