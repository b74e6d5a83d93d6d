from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from lore.http.request_limits import Limits
from lore.memory.search import Reader
from lore.recall import turns
from lore.records import InjectedItem, Injection, NewMessage, Part, RequestCost, TokenUse
from lore.store import sessions
from tests.fakes import NOON
from tests.http_api.live_server import Served, serving
from tests.waiting import eventually

USAGE = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 50}


def talk(turns: int) -> list[NewMessage]:
    new = []
    for n in range(turns):
        at = NOON + timedelta(minutes=10 * n)
        new += [
            NewMessage("user", (Part("text", f"Question {n} about the port"),), at, f"q{n}"),
            NewMessage(
                "assistant", (Part("tool_call", "ls", "bash", f"c{n}"),),
                at + timedelta(seconds=1), f"c{n}", model="claude-x", usage=USAGE,
            ),
            NewMessage(
                "tool", (Part("tool_result", "no such file", "bash", f"c{n}", failed=True),),
                at + timedelta(seconds=2), f"r{n}",
            ),
            NewMessage(
                "assistant", (Part("text", f"Answer {n}: the port is 80{n:02}."),),
                at + timedelta(seconds=3), f"a{n}", model="claude-x",
            ),
        ]  # fmt: skip
    return new


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    with serving(tmp_path, limits=Limits(requests_per_minute=0)) as running:
        running.memory.capture(
            "talk", talk(5), agent="codex", project="/code/shop", title="Ports of the shop"
        )
        running.memory.capture(
            "other", talk(1), agent="claude-code", project="/code/bank", title="The bank"
        )
        yield running


def test_sessions_are_found_by_title_agent_project_and_time(served: Served):
    def found(query: str) -> list[str]:
        reply = served.get(f"/api/v1/sessions?{query}")
        assert reply.status == 200, reply.body
        return [one["external_id"] for one in reply.json["items"]]

    assert found("") == ["talk", "other"]
    assert found("query=PORTS") == ["talk"]
    assert found("query=other") == ["other"]
    assert found("query=nothing") == []
    assert found("agent=claude") == ["other"]
    assert found("project=shop") == ["talk"]
    assert found("since=2026-05-14") == []
    assert served.get("/api/v1/sessions?since=whenever").status == 422


def test_a_session_is_found_by_a_name_with_capitals(served: Served):
    served.memory.capture("Session-ABC", talk(1), agent="codex")
    for query in ("Session-ABC", "session-abc"):
        (found,) = served.get(f"/api/v1/sessions?query={query}").json["items"]
        assert found["external_id"] == "Session-ABC"


def test_a_session_has_its_totals(served: Served):
    (listed,) = served.get("/api/v1/sessions?query=ports").json["items"]
    assert (listed["messages"], listed["project"]) == (20, "shop")
    assert listed["tokens"] > 0
    page = served.get(f"/api/v1/sessions/{listed['id']}").json
    assert page["session"] == listed
    assert (page["turns"], page["prompt"]) == (5, None)
    assert served.get("/api/v1/sessions/0123abcd").status == 404


def test_turns_are_paged_in_order(served: Served):
    seen = []
    cursor = ""
    while True:
        page = served.get(f"/api/v1/sessions/talk/turns?limit=2&cursor={cursor}").json
        seen += page["items"]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == served.get("/api/v1/sessions/talk/turns").json["items"]
    assert [one["number"] for one in seen] == [1, 2, 3, 4, 5]
    assert [(one["first"], one["last"]) for one in seen] == [(4 * n, 4 * n + 3) for n in range(5)]
    assert [one["prompt"] for one in seen] == [f"Question {n} about the port" for n in range(5)]


def test_turns_beyond_the_messages_of_a_page_are_on_the_next(served: Served):
    whole = served.memory.sessions.page_of_turns("talk").items
    for most in (1, 4, 5, 9, 12, 20):
        seen: list[Any] = []
        with served.memory.database.read() as db:
            n = sessions.get_session_number(db, "talk")
            session, after, has_more = sessions.get_session(db, n), -1, True
            while has_more:
                rows, has_more = turns.list_turns(
                    db, n, session, after=after, limit=3, price=lambda _: None, max_messages=most
                )
                seen += [turn for _, turn in rows]
                ((after,), _) = rows[-1]
        assert [one.number for one in seen] == [one.number for one in whole]
        assert [(one.first, one.last) for one in seen] == [(one.first, one.last) for one in whole]


def test_a_turn_counts_its_calls_and_the_tokens_of_the_transcript(served: Served):
    first = served.get("/api/v1/sessions/talk/turns?limit=1").json["items"][0]
    assert (first["messages"], first["tool_calls"], first["tool_errors"]) == (4, 1, 1)
    assert first["models"] == ["claude-x"]
    assert first["tokens"]["fresh_tokens"] == 100
    assert first["tokens"]["cache_read_tokens"] == 900
    assert [one["basis"] for one in first["requests"]] == ["transcript"]


def test_a_turn_shows_what_its_requests_cost_through_the_gateway(tmp_path):
    with serving(tmp_path) as served:
        memory = served.memory
        now = memory.database.now()
        said = NewMessage("user", (Part("text", "What is the port?"),), now, "q")
        memory.capture("live", [said], agent="codex", project="/code/shop")
        hold = memory.budget.reserve_request(
            RequestCost("model-x", TokenUse(1_000, output_tokens=10), session="live")
        )
        memory.budget.settle_request(hold, TokenUse(800, 200, output_tokens=10))

        def requests() -> list[dict[str, object]]:
            (turn,) = served.get("/api/v1/sessions/live/turns").json["items"]
            return list(turn["requests"])

        (request,) = eventually(requests)
        assert (request["basis"], request["model"]) == ("gateway", "model-x")
        assert request["tokens"] == {
            "fresh_tokens": 800, "cache_read_tokens": 200, "cache_write_tokens": 0,
            "cache_write_1h_tokens": 0, "output_tokens": 10,
        }  # fmt: skip


def test_only_a_turn_through_the_gateway_is_counted_by_it(tmp_path):
    with serving(tmp_path) as served:
        memory = served.memory
        now = memory.database.now()
        old = now - timedelta(hours=1)
        new = [
            NewMessage("user", (Part("text", "Before"),), old, "q0"),
            NewMessage("assistant", (Part("text", "Yes"),), old, "a0", model="m", usage=USAGE),
            NewMessage("user", (Part("text", "Now"),), now, "q1"),
        ]
        memory.capture("live", new, agent="codex")
        hold = memory.budget.reserve_request(RequestCost("m", TokenUse(10), session="live"))
        memory.budget.settle_request(hold, TokenUse(10))

        def bases() -> list[list[str]]:
            turns = served.get("/api/v1/sessions/live/turns").json["items"]
            return [[one["basis"] for one in turn["requests"]] for turn in turns]

        assert eventually(lambda: bases() == [["transcript"], ["gateway"]])


def test_a_turn_shows_what_it_was_given_and_recalled_and_what_was_learned(tmp_path):
    with serving(tmp_path) as served:
        memory = served.memory
        now = memory.database.now()
        said = NewMessage("user", (Part("text", "The port is 8080 from now on"),), now, "q")
        (message,) = memory.capture("live", [said], agent="codex", project="/code/shop")
        known = memory.store("The shop has a port", project="/code/shop")
        learned = memory.store(
            "The port is 8080", project="/code/shop", session="live", source_messages=[message]
        )
        n = memory.database.write(
            lambda db: db.number("SELECT max(n) - 1 FROM items")  # the fragment that was known
        )
        assert n
        memory.prompts.record_injection("live", Injection(given=(InjectedItem(n, 7),)))
        memory.recall("port", reader=Reader("live"))
        memory.search.search("port", reader=Reader("live"))

        def turn() -> Any:
            (one,) = served.get("/api/v1/sessions/live/turns").json["items"]
            return one if one["injected"] else None

        shown = eventually(turn)
        assert [one["id"] for given in shown["injected"] for one in given["items"]] == [known]
        assert [one["id"] for one in shown["learned"]] == [learned]


def test_the_lines_of_a_log_stand_beside_their_turn(served: Served):
    served.memory.distill("talk")
    turns = served.get("/api/v1/sessions/talk/turns").json["items"]
    assert any(log["lines"] for turn in turns for log in turn["logs"])
    assert served.get("/api/v1/sessions/talk/turns?limit=0").status == 422
    assert served.get("/api/v1/sessions/talk/turns?cursor=x").status == 422


def test_a_session_without_a_title_tells_how_the_person_began(served: Served):
    served.memory.capture("untitled", talk(2), agent="codex", project="/code/shop")
    by_name = {one["external_id"]: one for one in served.get("/api/v1/sessions").json["items"]}
    assert by_name["untitled"]["opening"] == "Question 0 about the port"
    assert by_name["talk"]["opening"] == ""
