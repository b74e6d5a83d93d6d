"""Memory beside the way of a request: what it may change, and that it may fail at any point."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lore.errors import StoreBusy
from lore.gateway.observer import MAX_STREAM_BYTES
from lore.gateway.plugin_protocol import ClientRequest, Command, LocalResponse, Outcome, RequestPlan
from lore.gateway.request_planner import (
    DEGRADED_HEADER,
    MAX_QUEUED_BYTES,
    PASSTHROUGH_SHARE,
    PLANNING_SHARE,
    REQUEST_DEADLINE_S,
    RequestPlanner,
)
from tests.gateway.faulty import HEAD, Peer, chunk, faulty
from tests.gateway.proxied import HELLO, Proxied, proxied
from tests.gateway.upstream import Fails, Says, Upstream, upstream
from tests.waiting import PATIENCE_S, eventually

BODY = json.dumps(HELLO).encode()
ZIPPED = gzip.compress(BODY)
INCOMING = ClientRequest("anthropic", "/v1/messages", "", {}, BODY, 1_000)
PIECE = b"x" * 100_000
OTHER = json.dumps({**HELLO, "messages": [{"role": "user", "content": "Else"}]}).encode()


class Planned:
    """Does with each request what a test says, and remembers what it was shown."""

    def __init__(
        self, plan: Callable[[ClientRequest], RequestPlan], *, limited: bool = False
    ) -> None:
        self.seen: list[ClientRequest] = []
        self.held: RequestPlan | None = None
        self.limited = limited
        self._plan = plan

    def plan(self, incoming: ClientRequest) -> RequestPlan:
        self.seen.append(incoming)
        return self._plan(incoming)

    def plan_from_cache(self, incoming: ClientRequest) -> RequestPlan | None:
        del incoming
        return self.held

    def find_command(self, incoming: ClientRequest) -> Command | None:
        del incoming
        return None

    def passthrough(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
        del incoming, until_s
        return RequestPlan()

    def may_wait(self) -> bool:
        return True

    def is_limited(self) -> bool:
        return self.limited


async def _prepared(planner: RequestPlanner) -> RequestPlan:
    prepared = await planner.plan(INCOMING)
    await planner.close()
    return prepared


class Noting:
    """Notes all that it is told, and fails where it is told to."""

    def __init__(self, fails_at: str = "") -> None:
        self.statuses: list[int] = []
        self.headers: list[Mapping[str, str]] = []
        self.body = b""
        self.outcomes: list[Outcome] = []
        self.settled: list[Outcome] = []
        self._fails_at = fails_at

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.statuses.append(status)
        self.headers.append(headers)
        self._maybe_fail("begin")

    def see(self, piece: bytes) -> None:
        self.body += piece
        self._maybe_fail("see")

    def end(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._maybe_fail("end")

    def settle(self, outcome: Outcome) -> None:
        self.settled.append(outcome)

    def _maybe_fail(self, at: str) -> None:
        if at == self._fails_at:
            raise ZeroDivisionError


@pytest.fixture(scope="module")
def switched(up, tmp_path_factory):
    """Serve a gateway whose plan each test sets."""
    plans: list[Callable[[ClientRequest], RequestPlan]] = [lambda _incoming: RequestPlan()]
    plugin = Planned(lambda incoming: plans[0](incoming))
    with proxied(tmp_path_factory.mktemp("home"), up.url, plugin=plugin) as gateway:
        yield Switched(gateway, plugin, plans)


@pytest.fixture(scope="module")
def hasty(up, tmp_path_factory):
    """Serve the same by a gateway that hardly waits for memory."""
    plans: list[Callable[[ClientRequest], RequestPlan]] = [lambda _incoming: RequestPlan()]
    plugin = Planned(lambda incoming: plans[0](incoming))
    home = tmp_path_factory.mktemp("home")
    with proxied(home, up.url, plugin=plugin, within_s=0.05) as gateway:
        yield Switched(gateway, plugin, plans)


class Switched:
    """A gateway with memory that does what is set."""

    def __init__(
        self, gateway: Proxied, plugin: Planned, plans: list[Callable[[ClientRequest], RequestPlan]]
    ) -> None:
        self.gateway = gateway
        self.plugin = plugin
        self._plans = plans

    def plan(self, plan: Callable[[ClientRequest], RequestPlan]) -> None:
        self._plans[0] = plan


def test_a_plan_that_changes_nothing_passes_the_original_bytes(switched: Switched, up: Upstream):
    switched.plan(lambda _incoming: RequestPlan())
    body = b" " + BODY + b"\n"
    assert switched.gateway.ask("/v1/messages", body).status == 200
    assert up.asked[-1].body == body


def test_memory_sees_the_request_without_credentials(switched: Switched, up: Upstream):
    switched.plan(lambda _incoming: RequestPlan())
    secret = "sk-" + "a" * 20
    headers = {
        "authorization": f"Bearer {secret}",
        "x-api-key": secret,
        "x-goog-api-key": secret,
        "cookie": f"a={secret}",
        "ocp-apim-subscription-key": secret,
        "helicone-auth": f"Bearer {secret}",
        "x-claude-code-session-id": "s1",
        "x-lore-project": "/code/shop",
    }
    query = "&".join(f"{name}={secret}" for name in ("key", "%6bey", "api_key", "access_token"))
    switched.gateway.ask(f"/v1beta/models/g:generateContent?{query}&alt=sse", BODY, headers)
    seen = switched.plugin.seen[-1]
    assert secret not in repr(seen)
    assert seen.headers["x-claude-code-session-id"] == "s1"
    assert seen.headers["x-lore-project"] == "/code/shop"
    assert (seen.api, seen.query) == ("gemini", "alt=sse")
    assert up.asked[-1].header("x-goog-api-key") == secret
    assert f"key={secret}" in up.asked[-1].target
    assert not up.asked[-1].header("x-lore-project")


def test_another_body_goes_out_in_place_of_the_original(switched: Switched, up: Upstream):
    switched.plan(lambda incoming: RequestPlan(body=incoming.body().replace(b"Hello", b"Else")))
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    got = switched.gateway.ask("/v1/messages", ZIPPED, headers)
    assert got.status == 200
    assert up.asked[-1].body == OTHER
    assert not up.asked[-1].header("content-encoding")
    assert up.asked[-1].header("content-type") == "application/json"


def test_paths_that_are_no_wire_are_not_shown(switched: Switched):
    before = len(switched.plugin.seen)
    switched.gateway.ask("/v1/models", headers={"x-api-key": "k"})
    switched.gateway.ask("/v1/files", b"x")
    assert len(switched.plugin.seen) == before


@pytest.mark.parametrize(
    "error", [StoreBusy("x"), ValueError("private"), RecursionError(), OSError()]
)
def test_whatever_memory_raises_the_original_goes_out(
    switched: Switched, up: Upstream, error: Exception
):
    def fail(_incoming: ClientRequest) -> RequestPlan:
        raise error

    switched.plan(fail)
    got = switched.gateway.ask("/v1/messages", BODY)
    assert (got.status, got.header("x-lore-degraded")) == (200, type(error).__name__)
    assert up.asked[-1].body == BODY


def test_a_body_that_cannot_be_read_goes_out_as_it_came(switched: Switched, up: Upstream):
    switched.plan(lambda incoming: RequestPlan(body=incoming.body()))
    switched.gateway.ask("/v1/messages", b"no gzip", {"content-encoding": "gzip"})
    assert up.asked[-1].body == b"no gzip"
    assert up.asked[-1].header("content-encoding") == "gzip"


def test_memory_that_takes_too_long_is_not_waited_for_and_told_so(hasty: Switched, up: Upstream):
    release, noting = threading.Event(), Noting()

    def wait(_incoming: ClientRequest) -> RequestPlan:
        release.wait(30)
        return RequestPlan(body=OTHER, observer=noting)

    hasty.plan(wait)
    got = hasty.gateway.ask("/v1/messages", BODY)
    assert (got.status, got.header("x-lore-degraded")) == (200, "late")
    assert up.asked[-1].body == BODY
    release.set()
    assert eventually(lambda: noting.settled) == ["unused"]
    assert not noting.body


def test_where_memory_is_late_a_request_goes_out_with_what_is_at_hand(tmp_path: Path):
    release, late, noting = threading.Event(), Noting(), Noting()

    def wait(_incoming: ClientRequest) -> RequestPlan:
        release.wait(PATIENCE_S)
        return RequestPlan(body=BODY, observer=late)

    plugin = Planned(wait)
    plugin.held = RequestPlan(OTHER, (("x-lore-layer", "1"),), observer=noting)
    with upstream() as up, proxied(tmp_path, up.url, plugin=plugin, within_s=1.5) as gateway:
        got = gateway.ask("/v1/messages", BODY)
        told = got.header("x-lore-degraded"), got.header("x-lore-layer")
        assert (got.status, *told) == (200, "late", "1")
        assert up.asked[-1].body == OTHER
        assert eventually(lambda: noting.outcomes) == ["complete"]
        release.set()
        assert eventually(lambda: late.settled) == ["unused"]


def test_what_is_at_hand_is_given_back_where_memory_comes_in_time():
    planned, held, asked = Noting(), Noting(), threading.Event()

    class Slow(Planned):
        def plan_from_cache(self, incoming: ClientRequest) -> RequestPlan | None:
            asked.set()
            return super().plan_from_cache(incoming)

    def wait(_incoming: ClientRequest) -> RequestPlan:
        assert asked.wait(PATIENCE_S)
        return RequestPlan(body=OTHER, observer=planned)

    plugin = Slow(wait)
    plugin.held = RequestPlan(observer=held)
    prepared = asyncio.run(_prepared(RequestPlanner(plugin, PATIENCE_S, planning_share=0.001)))
    assert (prepared.observer, prepared.headers) == (planned, ())
    assert eventually(lambda: held.settled) == ["unused"]
    assert not planned.settled


def test_every_request_passes_while_all_threads_of_memory_wait(hasty: Switched, up: Upstream):
    release = threading.Event()

    def wait(_incoming: ClientRequest) -> RequestPlan:
        release.wait(60)
        return RequestPlan()

    hasty.plan(wait)
    try:
        for _ in range(12):
            got = hasty.gateway.ask("/v1/messages", BODY)
            assert (got.status, got.header("x-lore-degraded")) == (200, "late")
    finally:
        release.set()
    hasty.plan(lambda _incoming: RequestPlan())
    assert eventually(lambda: not hasty.gateway.ask("/v1/messages", BODY).header("x-lore-degraded"))


@pytest.mark.parametrize("stream", [True, False])
def test_an_observer_sees_all_that_the_client_gets(switched: Switched, up: Upstream, stream: bool):
    noting = Noting()
    switched.plan(lambda _incoming: RequestPlan(observer=noting, headers=(("x-lore-layer", "0"),)))
    up.reply_with(Says("Some words. " * 30))
    got = switched.gateway.ask(
        "/v1/messages", {**HELLO, "stream": stream}, {"accept-encoding": "gzip"}
    )
    assert eventually(lambda: noting.outcomes) == ["complete"]
    assert (noting.statuses, noting.body) == ([200], got.body)
    assert noting.headers[0]["request-id"] == got.header("request-id")
    assert got.header("x-lore-layer") == "0"
    assert up.asked[-1].header("accept-encoding") == "identity"


def test_an_observer_sees_a_refusal_too(switched: Switched, up: Upstream):
    noting = Noting()
    switched.plan(lambda _incoming: RequestPlan(observer=noting))
    up.reply_with(Fails(429, "rate_limit_error", "Later.", {"retry-after": "9"}))
    assert switched.gateway.ask("/v1/messages", BODY).status == 429
    assert eventually(lambda: noting.outcomes) == ["complete"]
    assert noting.statuses == [429]
    assert noting.headers[0]["retry-after"] == "9"
    assert b"Later." in noting.body


@pytest.mark.parametrize("at", ["begin", "see", "end"])
def test_an_observer_that_fails_harms_nobody(switched: Switched, up: Upstream, at: str):
    noting = Noting(fails_at=at)
    switched.plan(lambda _incoming: RequestPlan(observer=noting))
    got = switched.gateway.ask("/v1/messages", {**HELLO, "stream": True})
    assert got.status == 200
    assert got.body.endswith(b'data: {"type": "message_stop"}\n\n')
    assert eventually(lambda: noting.outcomes) == ["complete"]


def test_an_observer_is_told_when_the_client_left(tmp_path: Path):
    noting, ready = Noting(), threading.Event()

    def talk(peer: Peer) -> None:
        peer.send(HEAD + chunk(b"data: 1\n\n"))
        ready.set()
        peer.wait_until_left()

    plugin = Planned(lambda _incoming: RequestPlan(observer=noting))
    with faulty(talk) as up, proxied(tmp_path, up.url, plugin=plugin) as gateway:
        with gateway.connect() as client:
            client.sendall(
                b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
            )
            assert ready.wait(30)
            assert client.recv(9) == b"HTTP/1.1 "
        assert eventually(lambda: noting.outcomes) == ["aborted"]


def test_an_observer_is_told_when_upstream_broke_off_or_is_not_there(tmp_path: Path):
    broken, absent = Noting(), Noting()

    def talk(peer: Peer) -> None:
        peer.send(HEAD + chunk(b"data: 1\n\n"))
        peer.reset()

    plugin = Planned(lambda _incoming: RequestPlan(observer=broken))
    with faulty(talk) as up, proxied(tmp_path / "a", up.url, plugin=plugin) as gateway:
        with gateway.connect() as client:
            client.sendall(
                b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
            )
            while client.recv(65_536):
                pass
        assert eventually(lambda: broken.outcomes) == ["failed"]
        url = up.url
    plugin = Planned(lambda _incoming: RequestPlan(observer=absent))
    with proxied(tmp_path / "b", url, plugin=plugin) as gateway:
        assert gateway.ask("/v1/messages", BODY).status == 502
        assert eventually(lambda: absent.outcomes) == ["failed"]


def test_a_stop_of_the_server_waits_for_what_is_recorded(tmp_path: Path):
    noting = Noting()
    plugin = Planned(lambda _incoming: RequestPlan(observer=noting))
    with upstream() as up:
        with proxied(tmp_path, up.url, plugin=plugin) as gateway:
            gateway.ask("/v1/messages", BODY)
        assert noting.outcomes == ["complete"]


def test_an_answer_of_memory_asks_nobody(switched: Switched, up: Upstream):
    came = len(up.asked)
    answer = LocalResponse(200, (("content-type", "text/plain"),), b"On.")
    switched.plan(lambda _incoming: RequestPlan(answer=answer, headers=(("x-lore-layer", "0"),)))
    got = switched.gateway.ask("/v1/messages", BODY)
    assert (got.status, got.body, got.header("x-lore-layer")) == (200, b"On.", "0")
    assert len(up.asked) == came


def test_a_client_that_leaves_while_it_is_throttled_asks_nothing(switched: Switched, up: Upstream):
    came, noting = len(up.asked), Noting()
    switched.plan(lambda _incoming: RequestPlan(delay_s=60.0, observer=noting))
    before = len(switched.plugin.seen)
    with switched.gateway.connect() as client:
        client.sendall(
            b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
        )
        eventually(lambda: len(switched.plugin.seen) > before)
    assert eventually(lambda: noting.outcomes) == ["aborted"]
    assert len(up.asked) == came


def test_who_never_waits_is_asked_in_the_loop_and_may_fail_there(tmp_path: Path, up: Upstream):
    threads: list[str] = []

    def plan(incoming: ClientRequest) -> RequestPlan:
        threads.append(threading.current_thread().name)
        if b"fail" in incoming.raw:
            raise ZeroDivisionError
        return RequestPlan(headers=(("x-told", "yes"),))

    class Quick(Planned):
        waits = False

        def may_wait(self) -> bool:
            return self.waits

        def passthrough(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
            del until_s
            return plan(incoming)

    plugin = Quick(plan)
    with proxied(tmp_path, up.url, plugin=plugin) as gateway:
        got = gateway.ask("/v1/messages", HELLO)
        assert (got.status, got.header("x-told")) == (200, "yes")
        long = {**HELLO, "system": "x" * 1_000_000}
        assert gateway.ask("/v1/messages", long).header("x-told") == "yes"
        plugin.waits = True
        assert gateway.ask("/v1/messages", HELLO).header("x-told") == "yes"
        plugin.waits = False
        failed = gateway.ask("/v1/messages", {**HELLO, "model": "fail"})
        assert (failed.status, failed.header("x-lore-degraded")) == (200, "ZeroDivisionError")
    named = [name.rpartition("_")[0] for name in threads]
    assert named == ["", "lore-planning", "lore-planning", "", "lore-passthrough"]


@pytest.mark.parametrize("slow", ["prepare", "go_on", "admit"])
def test_what_a_client_did_not_wait_for_is_given_back(slow: str):
    noting, asked, left = Noting(), threading.Event(), threading.Event()

    class Slow(Planned):
        def plan_from_cache(self, incoming: ClientRequest) -> RequestPlan | None:
            return plan("go_on") if slow == "go_on" else super().plan_from_cache(incoming)

        def passthrough(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
            del incoming, until_s
            return plan("admit")

    def plan(step: str) -> RequestPlan:
        if step != slow:
            raise ZeroDivisionError
        asked.set()
        assert left.wait(PATIENCE_S)
        return RequestPlan(observer=noting)

    async def leave() -> None:
        planner = RequestPlanner(Slow(lambda _incoming: plan("prepare")), PATIENCE_S)
        waiting = asyncio.create_task(planner.plan(INCOMING))
        assert await asyncio.to_thread(asked.wait, PATIENCE_S)
        waiting.cancel()
        await asyncio.wait((waiting,))
        assert waiting.cancelled()
        assert not noting.settled
        left.set()
        await asyncio.to_thread(eventually, lambda: noting.settled)
        await planner.close()

    asyncio.run(leave())
    assert (noting.settled, noting.outcomes) == (["unused"], [])


def test_all_that_memory_and_money_take_is_within_one_limit():
    assert REQUEST_DEADLINE_S <= 0.150
    assert 0 < PLANNING_SHARE < 1 - PASSTHROUGH_SHARE < 1


class Admitting(Planned):
    """Has no plan, and says only when it is let go whether there is money."""

    def __init__(self, found: RequestPlan, *, limited: bool) -> None:
        super().__init__(self._fail, limited=limited)
        self.release, self.begun = threading.Event(), threading.Event()
        self._found = found

    def _fail(self, incoming: ClientRequest) -> RequestPlan:
        raise StoreBusy(incoming.path)

    def passthrough(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
        del incoming, until_s
        self.begun.set()
        assert self.release.wait(PATIENCE_S)
        return self._found


def test_with_a_budget_no_request_goes_out_before_it_is_known_that_there_is_money():
    refused = RequestPlan(answer=LocalResponse(402, (), b"Spent."))
    plugin = Admitting(refused, limited=True)

    async def plan() -> RequestPlan:
        planner = RequestPlanner(plugin, 0.0)
        waiting = asyncio.create_task(planner.plan(INCOMING))
        assert await asyncio.to_thread(plugin.begun.wait, PATIENCE_S)
        done, _ = await asyncio.wait((waiting,), timeout=0.2)
        assert not done
        plugin.release.set()
        prepared = await waiting
        await planner.close()
        return prepared

    assert asyncio.run(plan()).answer == refused.answer


def test_with_a_budget_a_request_is_refused_of_which_nobody_can_say_whether_there_is_money():
    class Failing(Planned):
        def passthrough(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
            raise ZeroDivisionError(incoming, until_s)

    def fail(_incoming: ClientRequest) -> RequestPlan:
        raise ZeroDivisionError

    for limited, status in ((True, 503), (False, None)):
        prepared = asyncio.run(_prepared(RequestPlanner(Failing(fail, limited=limited))))
        assert (prepared.answer.status if prepared.answer else None) == status
        assert dict(prepared.headers)[DEGRADED_HEADER] == "ZeroDivisionError"


def test_what_is_admitted_late_is_counted_by_nobody_who_waits_for_it():
    noting, other = Noting(), Noting()
    plugin = Admitting(RequestPlan(observer=noting), limited=False)

    async def watch() -> None:
        planner = RequestPlanner(plugin, 0.0)
        prepared = await planner.plan(INCOMING)
        late = planner.observe(prepared.observer)
        late.begin(200, {"content-type": "text/event-stream"})
        for _ in range(3 * MAX_STREAM_BYTES // len(PIECE)):
            late.see(PIECE)
        late.see(b"the end")
        late.end("complete")
        planner.observe(other).end("complete")
        await asyncio.to_thread(eventually, lambda: other.outcomes)
        assert not noting.outcomes
        plugin.release.set()
        await asyncio.to_thread(eventually, lambda: noting.outcomes)
        await planner.close()

    asyncio.run(watch())
    assert (noting.statuses, noting.outcomes) == ([200], ["complete"])
    assert len(noting.body) < 1.2 * MAX_STREAM_BYTES
    assert noting.body.endswith(b"the end")


def test_where_too_much_waits_to_be_recorded_only_the_money_is_entered(
    caplog: pytest.LogCaptureFixture,
):
    release, notings = threading.Event(), [Noting() for _ in range(5)]

    class Stuck(Noting):
        def end(self, outcome: Outcome) -> None:
            assert release.wait(PATIENCE_S)
            super().end(outcome)

    async def watch() -> None:
        planner, stuck = RequestPlanner(Planned(lambda _incoming: RequestPlan())), Stuck()
        planner.observe(stuck, MAX_QUEUED_BYTES // 2).end("complete")
        for noting in notings:
            watched = planner.observe(noting, MAX_QUEUED_BYTES // 4)
            watched.begin(200, {})
            watched.see(b"x")
            watched.end("complete")
        await asyncio.to_thread(eventually, lambda: notings[4].settled)
        release.set()
        await asyncio.to_thread(eventually, lambda: notings[0].outcomes)
        planner.observe(stuck, MAX_QUEUED_BYTES // 4).end("aborted")
        await asyncio.to_thread(eventually, lambda: stuck.outcomes == ["complete", "aborted"])
        await planner.close()

    asyncio.run(watch())
    assert [noting.outcomes for noting in notings] == [["complete"], [], [], [], []]
    assert [noting.settled for noting in notings] == [[], *([["complete"]] * 4)]
    assert [record.message for record in caplog.records].count("not recorded") == 1


class Asking:
    """Asks upstream so many times before it lets an answer end."""

    is_idle = False

    def __init__(self, times: int) -> None:
        self.left = times

    def feed(self, piece: bytes) -> bytes:
        return piece.upper()

    def follow(self) -> bytes | None:
        self.left -= 1
        return OTHER if self.left >= 0 else None

    def fail(self, status: int, body: bytes) -> bytes:
        return b"refused with %d" % status

    def rest(self) -> bytes:
        return b"THE END"


@pytest.mark.parametrize("times", [0, 1, 3])
def test_an_interceptor_joins_several_answers_to_one(switched: Switched, up: Upstream, times: int):
    noting, came = Noting(), len(up.asked)
    switched.plan(lambda _incoming: RequestPlan(interceptor=Asking(times), observer=noting))
    headers = {"content-encoding": "gzip", "accept-encoding": "br"}
    got = switched.gateway.ask("/v1/messages", ZIPPED, headers)
    asked = up.asked[came:]
    assert [one.body for one in asked] == [ZIPPED] + [OTHER] * times
    assert got.body.count(b'"TEXT": "UNDERSTOOD."') == times + 1
    assert got.body.endswith(b"THE END")
    assert eventually(lambda: noting.outcomes) == ["complete"]
    assert noting.statuses == [200] * (times + 1)


def test_an_interceptor_ends_the_answer_where_upstream_refuses_to_go_on(
    switched: Switched, up: Upstream
):
    switched.plan(lambda _incoming: RequestPlan(interceptor=Asking(2)))
    up.reply_with(Says("One."), Fails(529, "overloaded_error", "Overloaded"))
    got = switched.gateway.ask("/v1/messages", BODY)
    assert got.status == 200
    assert got.body.endswith(b"refused with 529")


def test_what_is_refused_at_first_is_not_spliced(switched: Switched, up: Upstream):
    switched.plan(lambda _incoming: RequestPlan(interceptor=Asking(2)))
    up.reply_with(Fails(400, "invalid_request_error", "No."))
    got = switched.gateway.ask("/v1/messages", BODY)
    assert (got.status, got.tree["error"]["message"]) == (400, "No.")


class Failing(Asking):
    """Fails at one of its steps."""

    def __init__(self, at: str) -> None:
        super().__init__(1)
        self._at = at

    def feed(self, piece: bytes) -> bytes:
        if self._at == "feed":
            raise ZeroDivisionError
        return super().feed(piece)

    def follow(self) -> bytes | None:
        if self._at == "follow":
            raise ZeroDivisionError
        return super().follow()


def test_an_interceptor_that_cannot_go_on_says_so_in_the_answer(switched: Switched):
    switched.plan(lambda _incoming: RequestPlan(interceptor=Failing("follow")))
    assert switched.gateway.ask("/v1/messages", BODY).body.endswith(b"refused with 500")


def test_an_interceptor_that_loses_a_piece_breaks_a_stream_off(switched: Switched):
    switched.plan(lambda _incoming: RequestPlan(interceptor=Failing("feed")))
    with pytest.raises(http.client.IncompleteRead):
        switched.gateway.ask("/v1/messages", {**HELLO, "stream": True})


def test_an_interceptor_that_loses_an_answer_that_has_not_begun_is_an_error(switched: Switched):
    switched.plan(lambda _incoming: RequestPlan(interceptor=Failing("feed")))
    assert switched.gateway.ask("/v1/messages", BODY).status == 502
