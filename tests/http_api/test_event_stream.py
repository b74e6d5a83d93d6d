from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from lore.http.event_stream import ChangeFeed
from lore.memory import Memory
from lore.records import AccessScope, Grant, NewMessage, Part
from lore.tools.tool import GRANT
from tests.fakes import NOON, FakeEmbedder
from tests.http_api.live_server import Served, serving
from tests.waiting import PATIENCE_S


@contextmanager
def stream(served: Served) -> Iterator[Any]:
    """Open a stream of events and read its lines."""
    with socket.create_connection((served.host, served.port), timeout=PATIENCE_S) as opened:
        head = (
            "GET /api/v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            f"authorization: Bearer {served.key}\r\n\r\n"
        )
        opened.sendall(head.encode())
        with opened.makefile("rb") as lines:
            yield lines


def next_event(lines: Any) -> dict[str, Any]:
    for line in lines:
        if line.startswith(b"data: "):
            return dict(json.loads(line.removeprefix(b"data: ")))
    pytest.fail("the stream ended")


def read_until(lines: Any, part: bytes) -> bytes:
    seen = b""
    while part not in seen:
        line = lines.readline()
        assert line, "the stream ended"
        seen += line
    return seen


@contextmanager
def storing(memory: Memory) -> Iterator[None]:
    """Store facts all the time: the first look at the database only says how it is."""
    done = threading.Event()

    def store() -> None:
        count = 0
        while not done.wait(0.1):
            memory.store(f"Fact {count}")
            count += 1

    thread = threading.Thread(target=store)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_change_is_told_to_every_client(tmp_path: Path):
    with serving(tmp_path) as served, stream(served) as one, stream(served) as other:
        for lines in (one, other):
            head = read_until(lines, b": connected")
            assert b"content-type: text/event-stream" in head
            assert b"cache-control: no-store" in head
        with storing(served.memory):
            events = [next_event(lines) for lines in (one, other)]
        assert all({"fragments", "actions"} <= set(event["changed"]) for event in events)
        said = NewMessage("user", (Part("text", "Hello"),), NOON, "k")
        served.memory.capture("s", [said], agent="tests")
        while "messages" not in (changed := next_event(one)["changed"]):
            assert changed
        assert "sessions" in changed


def test_a_stream_needs_a_key(tmp_path: Path):
    with serving(tmp_path) as served:
        assert served.ask("GET", "/api/v1/events").status == 401
        assert served.ask("HEAD", "/api/v1/events").status == 401
        key = served.memory.access.create_key("pusher", scopes=["push"])[0]
        assert served.get("/api/v1/events", authorization=f"Bearer {key}").status == 403


def test_an_open_stream_does_not_hold_up_the_stop(tmp_path: Path):
    with serving(tmp_path) as served, stream(served) as lines:
        read_until(lines, b": connected")
    # `serving` fails if the server does not stop in time


def _scope(*scopes: AccessScope) -> dict[str, Any]:
    return {"type": "http", "headers": [], GRANT: Grant("tests", frozenset(scopes))}


def test_the_database_is_polled_only_while_somebody_listens(tmp_path: Path):
    async def listen(memory: Memory) -> None:
        feed = ChangeFeed(memory, lambda: False, poll_s=0.01, heartbeat_s=0.02)
        events = feed._events(_scope("read"))
        assert b"connected" in await anext(events)
        assert feed.is_polling
        assert await anext(events) == b": heartbeat\n\n"
        await events.aclose()
        while feed.is_polling:
            await asyncio.sleep(0.01)

    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        asyncio.run(asyncio.wait_for(listen(memory), PATIENCE_S))


def test_a_poller_that_ended_is_started_again_for_those_who_listen(tmp_path: Path):
    async def listen(memory: Memory) -> None:
        feed = ChangeFeed(memory, lambda: False, poll_s=0.01, heartbeat_s=0.02)
        events = feed._events(_scope("read"))
        await anext(events)
        former = feed._poller
        assert former
        former.cancel()
        await asyncio.wait([former])
        await anext(events)
        assert feed.is_polling
        await events.aclose()

    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        asyncio.run(asyncio.wait_for(listen(memory), PATIENCE_S))


def test_a_stream_ends_when_the_server_stops(tmp_path: Path):
    stopping: list[bool] = []

    async def listen(memory: Memory) -> list[bytes]:
        feed = ChangeFeed(memory, lambda: bool(stopping), poll_s=0.01)
        seen = []
        async for event in feed._events(_scope("read")):
            seen.append(event)
            stopping.append(True)
        return seen

    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        assert len(asyncio.run(asyncio.wait_for(listen(memory), PATIENCE_S))) == 1


def test_changes_between_two_events_come_together(tmp_path: Path):
    async def listen(memory: Memory) -> set[str]:
        # a late first look at the database finds nothing new: the heartbeat ends the wait for it
        feed = ChangeFeed(memory, lambda: False, poll_s=0.01, heartbeat_s=0.2)
        events = feed._events(_scope("read"))
        await anext(events)
        changed: set[str] = set()
        count = 0
        while not {"fragments", "messages"} <= changed:
            await asyncio.to_thread(memory.store, f"Fact {count}")
            said = NewMessage("user", (Part("text", "Hi"),), NOON, str(count))
            await asyncio.to_thread(memory.capture, "s", [said])
            event = await anext(events)
            if event != b": heartbeat\n\n":
                changed |= set(json.loads(event.partition(b"data: ")[2])["changed"])
            count += 1
        await events.aclose()
        return changed

    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        changed = asyncio.run(asyncio.wait_for(listen(memory), PATIENCE_S))
        assert {"actions", "fragments", "messages"} <= changed


def test_every_undo_and_redo_is_a_change(tmp_path: Path):
    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        ids = [memory.store(f"The port is {n}.") for n in range(2)]
        counters, _ = memory.maintenance.find_changes(None)
        for act in (memory.knowledge.undo, memory.knowledge.redo):
            for id_ in ids:
                act(id_)
                counters, changed = memory.maintenance.find_changes(counters)
                assert "actions" in changed


def test_there_is_a_most_of_streams(tmp_path: Path):
    async def listen(memory: Memory) -> None:
        feed = ChangeFeed(memory, lambda: False, poll_s=0.01, max_streams=2)
        opened = [feed._events(_scope("read")) for _ in range(2)]
        for events in opened:
            await anext(events)
        with pytest.raises(HTTPException, match="Too many open event streams"):
            await feed.serve(Request(_scope("read")))
        for events in opened:
            await events.aclose()

    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        asyncio.run(asyncio.wait_for(listen(memory), PATIENCE_S))
