from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lore import __version__
from lore.http.request_limits import Limits
from lore.memory import Memory
from lore.records import FragmentKind, NewMessage, Part
from tests.fakes import NOON
from tests.http_api.live_server import Served, serving

SESSIONS, MESSAGES, FRAGMENTS = 7, 9, 8


def fill(memory: Memory) -> None:
    for s in range(SESSIONS):
        new = [
            NewMessage("user", (Part("text", f"Message {m} of session {s}"),), NOON, f"{s}-{m}")
            for m in range(MESSAGES)
        ]
        memory.capture(f"s{s}", new, agent="tests", project=f"/code/p{s % 3}", title=f"Talk {s}")
    ids = [
        memory.store(f"Fact number {n}", project="/code/p0", kind="decision" if n % 2 else "fact")
        for n in range(FRAGMENTS)
    ]
    for a, b in itertools.pairwise(ids):
        memory.knowledge.link(a, b, "related_to")
    memory.knowledge.link(ids[0], ids[-1], "contradicts")
    memory.knowledge.delete(ids[2])


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("home"), limits=Limits(requests_per_minute=0)) as served:
        fill(served.memory)
        yield served


def walk(served: Served, path: str, limit: int) -> list[Any]:
    """Return all items of a list, page by page."""
    found: list[Any] = []
    cursor, joint = "", "&" if "?" in path else "?"
    for _ in range(100):
        reply = served.get(f"/api/v1{path}{joint}limit={limit}&cursor={cursor}")
        assert reply.status == 200, reply.body
        page = reply.json
        assert len(page["items"]) <= limit
        found += page["items"]
        cursor = page["next"]
        if cursor is None:
            return found
    pytest.fail("the list does not end")


LISTS = [
    ("/sessions", SESSIONS),
    ("/sessions?project=p1", 2),
    ("/sessions/s3/messages", MESSAGES),
    ("/projects", 3),
    ("/fragments", FRAGMENTS - 1),
    ("/fragments?kind=decision", FRAGMENTS // 2),
    ("/fragments?project=/code/p1", 0),
    ("/fragments?origin=web", 0),
    ("/edges", FRAGMENTS - 1 - 2 + 1),
    ("/edges?kind=contradicts", 1),
    ("/index", FRAGMENTS - 1),
    ("/distillations", 0),
    ("/episodes", 0),
    ("/spend", 0),
    ("/conflicts", 1),
]


@pytest.mark.parametrize(("path", "count"), LISTS)
@pytest.mark.parametrize("limit", [1, 2, 3, 500])
def test_pages_of_any_size_make_the_same_list(filled: Served, path: str, count: int, limit: int):
    items = walk(filled, path, limit)
    assert items == walk(filled, path, 4)
    assert len(items) == count


def test_messages_come_in_their_order(filled: Served):
    ordinals = [one["ordinal"] for one in walk(filled, "/sessions/s0/messages", 2)]
    assert ordinals == list(range(MESSAGES))


def test_what_is_added_meanwhile_moves_nothing_to_another_page(tmp_path: Path):
    with serving(tmp_path) as served:
        before = [served.memory.store(f"Fact {n}") for n in range(6)]
        first = served.get("/api/v1/fragments?limit=3").json
        served.memory.store("Something newer")
        second = served.get(f"/api/v1/fragments?limit=3&cursor={first['next']}").json
        seen = [one["id"] for one in first["items"] + second["items"]]
        assert seen == before[::-1]


def test_distillations_and_episodes_are_listed(tmp_path: Path):
    with serving(tmp_path) as served:
        talk = [
            NewMessage(
                "user" if n % 2 == 0 else "assistant",
                (Part("text", f"Step {n}: the port of service {n} is 80{n:02} in ops/s{n}.toml."),),
                NOON + timedelta(minutes=n),
                str(n),
            )
            for n in range(12)
        ]
        served.memory.capture("talk", talk, agent="tests", project="/code/p")
        served.memory.distill("talk")
        served.memory.sessions.episode("talk")
        logs = walk(served, "/distillations?session=talk", 1)
        assert logs
        assert logs[0]["text"]
        whole = served.get("/api/v1/sessions/talk/log").json
        assert [one["id"] for one in whole["logs"]] == [one["id"] for one in logs[::-1]]
        assert whole["new_messages"] == 0
        (episode,) = walk(served, "/episodes?project=/code/p", 1)
        assert episode["episode"]["goal"]


def test_patterns_and_skills_are_listed_apart_and_economics_are_counted(tmp_path: Path):
    with serving(tmp_path) as served:
        kinds: tuple[FragmentKind, ...] = ("pattern", "anti_pattern", "skill", "fact")
        stored = {kind: served.memory.store(f"A {kind}", kind=kind) for kind in kinds}
        lists = ("/patterns", "/patterns?kind=anti_pattern", "/skills")
        for kind, path in zip(kinds, lists, strict=False):
            assert [one["id"] for one in walk(served, path, 1)] == [stored[kind]]
        assert served.get("/api/v1/patterns?kind=fact").status == 422
        assert served.get("/api/v1/economics").json["read_tokens"] == 0


def test_one_item_is_read_whole_and_not_reinforced(filled: Served):
    listed = walk(filled, "/fragments", 500)[0]
    reply = filled.get(f"/api/v1/fragments/{listed['id']}")
    assert reply.json["fragment"] == listed
    assert filled.get(f"/api/v1/fragments/{listed['id']}").json["fragment"]["access_count"] == 0
    message = walk(filled, "/sessions/s0/messages", 500)[0]
    assert filled.get(f"/api/v1/messages/{message['id']}").json == message
    happened = filled.get(f"/api/v1/fragments/{listed['id']}/history").json
    assert happened[0]["what"] == "learned"
    around = filled.get(f"/api/v1/timeline?anchor={message['id']}&before=0&after=2")
    assert len(around.json) == 3


def test_an_id_of_another_sort_answers_exactly_like_a_missing_one(filled: Served):
    message = walk(filled, "/sessions/s0/messages", 1)[0]["id"]
    missing = message[:-1] + ("0" if message[-1] != "0" else "1")
    found, gone = (filled.get(f"/api/v1/fragments/{id_}") for id_ in (message, missing))
    assert found.status == gone.status == 404
    assert found.body.replace(message.encode(), b"") == gone.body.replace(missing.encode(), b"")
    assert set(found.headers) == set(gone.headers)


def test_a_reader_who_has_it_already_is_told_so(filled: Served):
    first = filled.get("/api/v1/sessions")
    tag = first.headers["etag"]
    for shown in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = filled.get("/api/v1/sessions", if_none_match=shown)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert filled.get("/api/v1/sessions", if_none_match='"other"').status == 200
    assert filled.get("/api/v1/sessions?limit=1").headers["etag"] != tag


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=501", "limit=x", "limit=1e2", "cursor=x", "cursor=W10", "cursor=WzFd",
        "cursor=W3RydWUsMV0", "cursor=WzFlOTk5OSwxXQ", "cursor=bnVsbA", "limit=1&limit=2",
        "unknown=1", "cursor=" + "A" * 401, "cursor=WzkyMjMzNzIwMzY4NTQ3NzU4MDgsMV0",
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_in_a_sentence(filled: Served, query: str):
    reply = filled.get(f"/api/v1/sessions?{query}")
    assert reply.status == 422, reply.body
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["detail"].endswith(".")


@pytest.mark.parametrize("path", ["/fragments?kind=nonsense", "/edges?kind=x", "/timeline"])
def test_what_is_no_kind_is_refused(filled: Served, path: str):
    assert filled.get(f"/api/v1{path}").status == 422


@pytest.mark.parametrize(
    "path", ["/sessions?project=nowhere", "/sessions/nowhere/messages", "/nonsense", "/tools/x"]
)
def test_what_is_not_there_is_not_found(filled: Served, path: str):
    reply = filled.get(f"/api/v1{path}")
    assert reply.status == 404
    assert reply.headers["content-type"] == "application/problem+json"


def test_stats_and_spend_tell_the_figures(filled: Served):
    assert filled.get("/api/v1/stats").json["messages"] == SESSIONS * MESSAGES
    spend = filled.get("/api/v1/spend").json
    assert spend["items"] == []
    assert spend["today"]


@pytest.mark.parametrize("path", ["/status", "/api/v1/status"])
def test_the_status_says_what_the_server_holds(filled: Served, path: str):
    reply = filled.get(path)
    assert reply.status == 200
    stats = filled.memory.maintenance.stats()
    assert reply.json == {
        "role": "local",
        "version": __version__,
        "home": str(filled.memory.settings.home),
        "read_only": False,
        "items": stats.messages + stats.distillations + stats.fragments,
        "waiting": stats.waiting,
        "jobs": len(stats.jobs),
        "budget_pressure": 0.0,
        "sync": {"machine": "", "target": "", "interval_s": 0.0, "unresolved": 0, "peers": []},
        "notice": "",
    }


def test_the_status_is_closed_without_access(filled: Served):
    assert filled.ask("GET", "/status").status == 401
    pushing, _ = filled.memory.access.create_key("pusher", scopes=("push",))
    for path in ("/status", "/api/v1/status"):
        assert filled.ask("GET", path, headers={"authorization": f"Bearer {pushing}"}).status == 403
