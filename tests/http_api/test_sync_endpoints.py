"""The endpoints of sync: two homes over a real server, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lore.memory import Memory
from tests.http_api.live_server import Reply, Served
from tests.store.samples import open_memory


@pytest.fixture
def laptop(tmp_path) -> Any:
    with open_memory(tmp_path / "laptop") as memory:
        yield memory


def push(served: Served, body: object, key: str = "") -> Reply:
    headers = {
        "authorization": f"Bearer {key or served.key}",
        "content-type": "application/json",
    }
    return served.ask("POST", "/api/v1/push", headers=headers, body=json.dumps(body).encode())


def records_of(memory: Memory) -> list[dict[str, Any]]:
    memory.sync.describe()
    return memory.sync.changes().records


def test_what_is_pushed_is_served_to_the_next_machine(served: Served, laptop: Memory) -> None:
    laptop.remember("Staging runs on port 6543.")
    records = records_of(laptop)
    reply = push(served, {"machine": "aa", "records": records})
    assert reply.json == {"received": 1, "changed": 1, "forgotten": 0, "conflicts": 0}
    page = served.get("/api/v1/changes").json
    assert page["records"] == records
    assert served.get("/api/v1/changes?machine=aa").json["records"] == []
    assert served.get(f"/api/v1/changes?cursor={page['cursor']}").json["records"] == []


def test_a_home_says_who_it_is(served: Served) -> None:
    identity = served.get("/api/v1/sync?state_hash=true").json
    assert identity["state_hash"] == served.memory.sync.state_hash()
    assert served.get("/api/v1/sync").json == {**identity, "state_hash": ""}
    assert served.get("/status").json["sync"]["machine"] == identity["machine"]


def test_a_key_that_may_only_add_conversations_can_not_sync(served: Served, laptop: Memory) -> None:
    laptop.remember("Staging runs on port 6543.")
    pushing, _ = served.memory.access.create_key("pusher", scopes=("push",))
    assert push(served, {"machine": "aa", "records": records_of(laptop)}, pushing).status == 403
    reading, _ = served.memory.access.create_key("reader", scopes=("read",))
    assert push(served, {"machine": "aa", "records": []}, reading).status == 403


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"machine": "aa"},
        {"machine": "x" * 100, "records": []},
        {"machine": "aa", "records": [7]},
        {"machine": "aa", "records": [{"kind": "nothing"}]},
        {"machine": "aa", "records": [{"kind": "fragment", "key": "x", "registers": {}}]},
        {"machine": "aa", "records": [{}] * 1_001},
    ],
)
def test_what_is_no_record_is_refused(served: Served, body: object) -> None:
    assert push(served, body).status == 422


def test_a_cursor_that_is_none_is_refused(served: Served) -> None:
    assert served.get("/api/v1/changes?cursor=whatever").status == 422
