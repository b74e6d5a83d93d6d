"""The gateway of a server: whose memory is in a prompt, whose key pays, and whose ledger counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lore.gateway.billing import BudgetGuard
from lore.gateway.request_head import Upstreams
from lore.proxy.address import API_PREFIX
from lore.settings import write_user_setting
from tests.server.served import Reply, Served, database_of, on_both_engines, serving
from tests.upstream import running_upstream
from tests.upstream.server import Upstream
from tests.waiting import eventually

PRICES = ("dear input=1000 output=1000",)
OWN_KEY = "sk-ant-own-key-of-ann"
TEAM_KEY = "sk-ant-key-of-the-team"


@pytest.fixture
def up() -> Iterator[Upstream]:
    with running_upstream() as running:
        yield running


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path, up: Upstream) -> Iterator[Served]:
    upstreams = Upstreams(up.url, up.url, up.url)

    def dear(settings):
        return replace(settings, prices=PRICES)

    url = database_of(request)
    with serving(tmp_path / "server", upstreams=upstreams, change=dear, url=url) as running:
        yield running


def send(served: Served, text: str = "Hello", **headers: str) -> Reply:
    """Send a message to the model, as Claude Code does."""
    body = {"model": "dear", "max_tokens": 10, "messages": [{"role": "user", "content": text}]}
    sent = {"content-type": "application/json", "anthropic-version": "2023-06-01",
            **{name.replace("_", "-"): value for name, value in headers.items()}}  # fmt: skip
    return served.run(served.ask("POST", "/v1/messages", sent, json.dumps(body).encode()))


def spent_usd(served: Served, name: str) -> float:
    with served.server.pool.lease(name) as service:
        return service.memory.budget.day_budget().spent_usd


def test_no_request_goes_to_a_model_without_a_key_of_the_server(served: Served, up: Upstream):
    assert send(served, x_api_key=OWN_KEY).status == 401
    assert send(served, x_api_key=OWN_KEY, x_lore_key="lore_a_b").status == 401
    assert up.requests == []


def test_the_callers_own_provider_key_is_passed_on_and_nowhere_kept(served: Served, up: Upstream):
    ann = served.add("ann")
    assert send(served, x_lore_key=ann, x_api_key=OWN_KEY).status == 200
    (request,) = up.model_requests
    assert dict(request.headers)["x-api-key"] == OWN_KEY
    assert not [name for name, _ in request.headers if name.startswith("x-lore")]
    owner = served.registry.get_owner("ann").id
    eventually(lambda: spent_usd(served, owner) > 0)
    served.server.pool.close_owner(owner)
    stored = b"".join(path.read_bytes() for path in served.home.rglob("*") if path.is_file())
    assert OWN_KEY.encode() not in stored


def test_a_lore_key_is_never_forwarded(served: Served, up: Upstream):
    ann = served.add("ann")
    assert send(served, authorization=f"Bearer {ann}").status == 401
    assert send(served, x_lore_key=ann, x_api_key=ann).status == 401
    assert up.requests == []


def test_the_key_of_a_team_serves_its_members_keys_alone(served: Served, up: Upstream):
    ann, ben = served.add("ann"), served.add("ben")
    served.registry.add_team("harbor", quorum=1)
    served.registry.add_member("harbor", "ann")
    served.registry.set_provider_key("harbor", "anthropic", TEAM_KEY)
    key, _ = served.registry.create_key("for the team", owner="ann", team="harbor")
    assert send(served, x_lore_key=key).status == 200
    assert dict(up.model_requests[-1].headers)["x-api-key"] == TEAM_KEY
    for other in (ann, ben):
        send(served, x_lore_key=other)
        assert "x-api-key" not in dict(up.requests[-1].headers)
    send(served, x_lore_key=key, x_api_key=OWN_KEY)  # the caller's own goes first
    assert dict(up.model_requests[-1].headers)["x-api-key"] == OWN_KEY


def test_who_pays_is_charged(served: Served):
    served.add("ann")
    team = served.registry.add_team("harbor", quorum=1)
    served.registry.add_member("harbor", "ann")
    served.registry.set_provider_key("harbor", "anthropic", TEAM_KEY)
    key, _ = served.registry.create_key("for the team", owner="ann", team="harbor")
    assert send(served, x_lore_key=key).status == 200
    eventually(lambda: spent_usd(served, f"team:{team.id}") > 0)
    owner = served.registry.get_owner("ann").id
    assert spent_usd(served, owner) == 0
    charged = spent_usd(served, f"team:{team.id}")
    assert send(served, x_lore_key=key, x_api_key=OWN_KEY).status == 200
    eventually(lambda: spent_usd(served, owner) > 0)
    assert spent_usd(served, f"team:{team.id}") == charged


@on_both_engines
def test_budgets_are_of_owners_and_teams_and_change_at_once(served: Served, up: Upstream):
    ann, ben = served.add("ann"), served.add("ben")
    assert send(served, x_lore_key=ann, x_api_key=OWN_KEY).status == 200
    served.registry.set_budget(served.folder("ann"), 0.0)
    refused = send(served, x_lore_key=ann, x_api_key=OWN_KEY)
    assert refused.status in (402, 429)
    assert send(served, x_lore_key=ben, x_api_key=OWN_KEY).status == 200
    assert served.get("/status", ann).json["budget_pressure"] == 1.0
    assert served.get("/status", ben).json["budget_pressure"] == 0.0
    assert b"lore_budget_pressure 1.0" in served.get("/metrics", ann).body
    operator, _ = served.registry.create_key("operator", scopes=("read",))
    assert served.get("/status", operator).json["budget_pressure"] == 1.0
    served.registry.set_budget(served.folder("ann"), None)
    assert served.get("/status", ann).json["budget_pressure"] == 0.0
    write_user_setting(served.home, "daily_budget", "0")  # of the server: for all without their own
    assert served.get("/status", ann).json["budget_pressure"] == 1.0


def test_the_budget_of_a_team_limits_its_key(served: Served):
    served.add("ann")
    team = served.registry.add_team("harbor", quorum=1)
    served.registry.add_member("harbor", "ann")
    served.registry.set_provider_key("harbor", "anthropic", TEAM_KEY)
    served.registry.set_budget(served.registry.team_folder(team.id), 0.0)
    key, _ = served.registry.create_key("for the team", owner="ann", team="harbor")
    assert send(served, x_lore_key=key).status in (402, 429)
    assert send(served, x_lore_key=key, x_api_key=OWN_KEY).status == 200
    listed = served.get(f"{API_PREFIX}/teams", served.keys["ann"]).json
    assert listed[0]["budget_pressure"] == 1.0


def test_a_quota_of_the_provider_is_pressure_too(served: Served):
    ann = served.add("ann")
    served.get("/status", ann)
    with served.server.pool.lease(served.registry.get_owner("ann").id) as service:
        guard = BudgetGuard(service.memory)
        headers = {"anthropic-ratelimit-unified-5h-utilization": "0.75"}
        guard.pacing.note_quotas("anthropic", headers)
    assert served.get("/status", ann).json["budget_pressure"] == 0.75


@on_both_engines
def test_what_is_said_is_stored_for_the_owner_alone(served: Served):
    ann, ben = served.add("ann"), served.add("ben")
    send(served, "The harbor gate opens at six.", x_lore_key=ann, x_api_key=OWN_KEY,
         x_session_id="one")  # fmt: skip
    sessions = f"{API_PREFIX}/sessions"
    eventually(lambda: bool(served.get(sessions, ann).json["items"]))
    assert served.get(sessions, ben).json["items"] == []
