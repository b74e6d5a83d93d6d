from __future__ import annotations

from http.cookies import SimpleCookie

import pytest

from lore.http.auth import SESSION_S, TICKET_S, Logins
from tests.http_api.live_server import Served


class Ticks:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_ticket_opens_one_session_only():
    logins = Logins("c")
    ticket = logins.make_ticket()
    cookie = logins.redeem(ticket)
    assert cookie
    assert logins.redeem(ticket) is None
    assert logins.find_session(f"other=1; c={cookie}")


def test_a_ticket_is_too_old_after_a_minute():
    ticks = Ticks()
    logins = Logins("c", ticks)
    ticket = logins.make_ticket()
    ticks.now_s += TICKET_S
    assert logins.redeem(ticket) is None


def test_a_session_ends_after_a_day():
    ticks = Ticks()
    logins = Logins("c", ticks)
    cookie = logins.redeem(logins.make_ticket())
    ticks.now_s += SESSION_S
    assert logins.find_session(f"c={cookie}") is None


def test_a_session_outlives_the_server_but_not_its_secret():
    cookie = f"c={(logins := Logins('c', secret='one')).redeem(logins.make_ticket())}"
    assert logins.find_session(cookie) == Logins("c", secret="one").find_session(cookie)
    assert Logins("c", secret="one").find_session(cookie)
    assert Logins("c", secret="two").find_session(cookie) is None
    assert Logins("d", secret="one").find_session(cookie.replace("c=", "d=", 1)) is None
    assert Logins("c").find_session(cookie) is None


def test_a_session_ends_with_the_key_that_made_its_ticket():
    valid = {"abc"}
    logins = Logins("c", is_key_valid=lambda name: name in valid)
    cookie = f"c={logins.redeem(logins.make_ticket('abc'))}"
    assert logins.find_session(cookie)
    assert logins.redeem(logins.make_ticket("other")) is None
    valid.clear()
    assert logins.find_session(cookie) is None


def test_nobody_prolongs_a_session():
    ticks = Ticks()
    logins = Logins("c", ticks)
    until, key, nonce, signature = str(logins.redeem(logins.make_ticket())).split(".")
    later = int(until) + 60
    for forged in (
        f"{later}.{key}.{nonce}.{signature}",
        f"{until}.{key}.{nonce}.",
        f"{until}.{key}.x.{signature}",
        f"{until}.61.{nonce}.{signature}",
    ):
        assert logins.find_session(f"c={forged}") is None


@pytest.mark.parametrize(
    "cookies", ["", "c=", "c", "c=wrong", "c=1.2.3", "c=é.ü.ß", ";;;", "d=x", "=" * 50]
)
def test_what_is_no_cookie_of_ours_is_no_session(cookies: str):
    logins = Logins("c")
    logins.redeem(logins.make_ticket())
    assert logins.find_session(cookies) is None


def test_more_tickets_than_anybody_needs_push_out_the_oldest():
    logins = Logins("c")
    first = logins.make_ticket()
    for _ in range(200):
        logins.make_ticket()
    assert logins.redeem(first) is None


def log_in(served: Served) -> str:
    """Return the cookie header of a browser that has logged in."""
    path = served.post("/api/v1/logins", {}).json["path"]
    reply = served.ask("GET", path)
    assert reply.status == 303
    (morsel,) = SimpleCookie(reply.headers["set-cookie"]).values()
    assert (morsel["httponly"], morsel["samesite"], morsel["path"]) == (True, "strict", "/")
    assert reply.headers["cache-control"] == "no-store"
    assert served.ask("GET", path).status == 401
    return f"{morsel.key}={morsel.value}"


def test_a_browser_logs_in_once_by_its_address_and_reads_by_its_cookie(served: Served):
    cookie = log_in(served)
    assert served.ask("GET", "/api/v1/stats", headers={"cookie": cookie}).status == 200


def test_a_page_of_another_site_logs_no_browser_in(served: Served):
    path = served.post("/api/v1/logins", {}).json["path"]
    foreign = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert served.ask("GET", path, headers=foreign).status == 403
    typed = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}
    assert served.ask("GET", path, headers=typed).status == 303  # the ticket was not used up


def test_a_change_by_cookie_needs_the_origin_of_the_page(served: Served):
    cookie, own = log_in(served), f"http://{served.host}:{served.port}"
    kind = "application/json"
    body = b'{"query": "anything"}'

    def post(**headers: str) -> int:
        spelt = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"cookie": cookie, "content-type": kind, **spelt}
        return served.ask("POST", "/api/v1/retrieve", headers=sent, body=body).status

    assert post() == 403
    assert post(origin="null") == 403
    assert post(origin=f"http://{served.host}:1") == 403
    assert post(origin=own, sec_fetch_site="cross-site") == 403
    assert post(origin=own) == 200
    assert post(origin=own, sec_fetch_site="same-origin") == 200


def test_a_page_of_another_port_on_this_machine_reads_nothing_by_cookie(served: Served):
    headers = {"cookie": log_in(served), "sec-fetch-site": "same-site"}
    assert served.ask("GET", "/api/v1/stats", headers=headers).status == 403


@pytest.mark.parametrize("query", ["", "?ticket=", "?ticket=x", "?ticket=%00", "?tickets=1"])
def test_a_login_without_a_good_ticket_sets_no_cookie(served: Served, query: str):
    reply = served.ask("GET", f"/login{query}")
    assert reply.status == 401
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS"])
def test_a_look_at_the_address_of_a_ticket_does_not_use_it_up(served: Served, method: str):
    path = f"/login?ticket={served.logins.make_ticket()}"
    assert served.ask(method, path).status == 405
    assert served.ask("GET", path).status == 303
