from __future__ import annotations

import re

from lore.records import RequestCost, RequestOutcome, TokenUse
from tests.http_api.live_server import Served
from tests.waiting import eventually

SAMPLE = re.compile(r'[a-z_]+(\{([a-z_]+="(\\.|[^"\\\n])*",?)+\})? -?[0-9.e+-]+')


def samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in lines)
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_requests_tokens_money_and_delays_are_told_by_model(served: Served):
    used, without = TokenUse(1, 2, 3, 4, 5), TokenUse(1, 20, 3, 4, 5)
    reserved = served.memory.budget.reserve_request(
        RequestCost("claude-haiku-4-5", used, session="secret-name")
    )
    usd = served.memory.budget.settle_request(
        reserved, used, RequestOutcome(delay_s=0.75, without=without)
    )
    assert usd
    reply = served.get("/metrics")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = samples(reply.body.decode())
    named = '{model="claude-haiku-4-5"'
    assert found[f"lore_requests_total{named}}}"] == 1
    assert found[f'lore_tokens_total{named},class="cache_read"}}'] == 2
    assert found[f'lore_tokens_total{named},class="output"}}'] == 5
    assert found[f"lore_spend_usd_total{named}}}"] > 0
    assert found[f"lore_saved_usd{named}}}"] > 0
    assert found[f"lore_throttle_events_total{named}}}"] == 1
    assert found[f"lore_throttle_delay_ms_total{named}}}"] == 750
    assert found["lore_day_spend_usd"] > 0
    assert b"secret-name" not in reply.body


def test_what_is_counted_is_told_to_the_last_digit(served: Served):
    used = TokenUse(123_456_789, output_tokens=7_654_321)
    reserved = served.memory.budget.reserve_request(RequestCost("claude-sonnet-4-5", used))
    usd = served.memory.budget.settle_request(reserved, used)
    found = samples(served.get("/metrics").body.decode())
    assert found['lore_tokens_total{model="claude-sonnet-4-5",class="fresh"}'] == 123_456_789
    assert found['lore_spend_usd_total{model="claude-sonnet-4-5"}'] == usd


def test_a_model_can_be_called_anything(served: Served):
    name = 'ollama/a"b\\c\n# HELP {x} 1' + "y" * 500
    reserved = served.memory.budget.reserve_request(RequestCost(name, TokenUse(1)))
    served.memory.budget.settle_request(reserved, TokenUse(1))
    assert samples(served.get("/metrics").body.decode())


def test_only_who_may_read_sees_them(served: Served):
    assert served.ask("GET", "/metrics").status == 401
    writer, _ = served.memory.access.create_key("w", scopes=["write"])
    assert served.ask("GET", "/metrics", headers={"x-lore-key": writer}).status == 403
    reader, _ = served.memory.access.create_key("r", scopes=["read"])
    assert served.ask("GET", "/metrics", headers={"x-lore-key": reader}).status == 200


def test_spend_by_rest_is_a_report_and_a_page(served: Served):
    reserved = served.memory.budget.reserve_request(RequestCost("claude-opus-4-1", TokenUse(1)))
    served.memory.budget.settle_request(reserved, TokenUse(1))
    asked = "/api/v1/spend?by=day&since=last%20week"
    eventually(lambda: served.get(asked).json["items"])  # entries share a commit, later
    tree = served.get(asked).json
    assert tree["report"]["by"] == "day"
    assert set(tree) == {"today", "report", "items", "next"}
    assert {"layer", "busts", "delay_ms", "without_usd"} <= set(tree["items"][0])
    assert served.get("/api/v1/spend?by=moon").status == 422
    assert served.get("/api/v1/spend?since=whenever").status == 422


def test_requests_without_memory_are_told_by_reason(served: Served):
    served.memory.context.gateway_stats.count("late")
    found = samples(served.get("/metrics").body.decode())
    assert found['lore_requests_degraded_total{reason="late"}'] == 1
