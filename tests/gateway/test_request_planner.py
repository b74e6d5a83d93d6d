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
from lore.gateway.workers import Workers
from tests.gateway.faulty_upstream import HEAD, Peer, chunk, faulty
from tests.gateway.gateway_server import HELLO, Proxied, proxied
from tests.upstream import ModelError, ModelReply, Upstream, running_upstream
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
        self.workers = Workers()
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


def test_empty_plan_sends_the_original_bytes(switched: Switched, up: Upstream):
    switched.plan(lambda _incoming: RequestPlan())
    body = b" " + BODY + b"\n"
    assert switched.gateway.ask("/v1/messages", body).status == 200
    assert up.requests[-1].body == body


def test_plugin_sees_no_credentials(switched: Switched, up: Upstream):
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
    assert up.requests[-1].header("x-goog-api-key") == secret
    assert f"key={secret}" in up.requests[-1].target
    assert not up.requests[-1].header("x-lore-project")


def test_planned_body_replaces_the_original(switched: Switched, up: Upstream):
    switched.plan(lambda incoming: RequestPlan(body=incoming.body().replace(b"Hello", b"Else")))
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    got = switched.gateway.ask("/v1/messages", ZIPPED, headers)
    assert got.status == 200
    assert up.requests[-1].body == OTHER
    assert not up.requests[-1].header("content-encoding")
    assert up.requests[-1].header("content-type") == "application/json"


def test_plugin_does_not_see_unknown_paths(switched: Switched):
    before = len(switched.plugin.seen)
    switched.gateway.ask("/v1/models", headers={"x-api-key": "k"})
    switched.gateway.ask("/v1/files", b"x")
    assert len(switched.plugin.seen) == before


@pytest.mark.parametrize(
    "error", [StoreBusy("x"), ValueError("private"), RecursionError(), OSError()]
)
def test_original_is_sent_when_the_plugin_raises(
    switched: Switched, up: Upstream, error: Exception
):
    def fail(_incoming: ClientRequest) -> RequestPlan:
        raise error

    switched.plan(fail)
    got = switched.gateway.ask("/v1/messages", BODY)
    assert (got.status, got.header("x-lore-degraded")) == (200, type(error).__name__)
    assert up.requests[-1].body == BODY


def test_undecodable_body_is_sent_unchanged(switched: Switched, up: Upstream):
    switched.plan(lambda incoming: RequestPlan(body=incoming.body()))
    switched.gateway.ask("/v1/messages", b"no gzip", {"content-encoding": "gzip"})
    assert up.requests[-1].body == b"no gzip"
    assert up.requests[-1].header("content-encoding") == "gzip"


def test_late_plan_is_not_awaited_and_the_header_says_so(hasty: Switched, up: Upstream):
    release, noting = threading.Event(), Noting()

    def wait(_incoming: ClientRequest) -> RequestPlan:
        release.wait(30)
        return RequestPlan(body=OTHER, observer=noting)

    hasty.plan(wait)
    got = hasty.gateway.ask("/v1/messages", BODY)
    assert (got.status, got.header("x-lore-degraded")) == (200, "late")
    assert up.requests[-1].body == BODY
    release.set()
    assert eventually(lambda: noting.settled) == ["unused"]
    assert not noting.body


def test_cached_plan_is_used_when_the_fresh_one_is_late(tmp_path: Path):
    release, late, noting = threading.Event(), Noting(), Noting()

    def wait(_incoming: ClientRequest) -> RequestPlan:
        release.wait(PATIENCE_S)
        return RequestPlan(body=BODY, observer=late)

    plugin = Planned(wait)
    plugin.held = RequestPlan(OTHER, (("x-lore-layer", "1"),), observer=noting)
    with (
        running_upstream() as up,
        proxied(tmp_path, up.url, plugin=plugin, within_s=1.5) as gateway,
    ):
        got = gateway.ask("/v1/messages", BODY)
        told = got.header("x-lore-degraded"), got.header("x-lore-layer")
        assert (got.status, *told) == (200, "late", "1")
        assert up.requests[-1].body == OTHER
        assert eventually(lambda: noting.outcomes) == ["complete"]
        release.set()
        assert eventually(lambda: late.settled) == ["unused"]


def test_cached_plan_is_released_when_the_fresh_one_is_in_time():
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


def test_requests_pass_while_all_planning_threads_wait(hasty: Switched, up: Upstream):
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
def test_observer_sees_the_whole_response(switched: Switched, up: Upstream, stream: bool):
    noting = Noting()
    switched.plan(lambda _incoming: RequestPlan(observer=noting, headers=(("x-lore-layer", "0"),)))
    up.reply_with(ModelReply("Some words. " * 30))
    got = switched.gateway.ask(
        "/v1/messages", {**HELLO, "stream": stream}, {"accept-encoding": "gzip"}
    )
    assert eventually(lambda: noting.outcomes) == ["complete"]
    assert (noting.statuses, noting.body) == ([200], got.body)
    assert noting.headers[0]["request-id"] == got.header("request-id")
    assert got.header("x-lore-layer") == "0"
    assert up.requests[-1].header("accept-encoding") == "identity"


def test_observer_sees_error_responses(switched: Switched, up: Upstream):
    noting = Noting()
    switched.plan(lambda _incoming: RequestPlan(observer=noting))
    up.reply_with(ModelError(429, "rate_limit_error", "Later.", {"retry-after": "9"}))
    assert switched.gateway.ask("/v1/messages", BODY).status == 429
    assert eventually(lambda: noting.outcomes) == ["complete"]
    assert noting.statuses == [429]
    assert noting.headers[0]["retry-after"] == "9"
    assert b"Later." in noting.body


@pytest.mark.parametrize("at", ["begin", "see", "end"])
def test_failing_observer_does_not_break_the_response(switched: Switched, up: Upstream, at: str):
    noting = Noting(fails_at=at)
    switched.plan(lambda _incoming: RequestPlan(observer=noting))
    got = switched.gateway.ask("/v1/messages", {**HELLO, "stream": True})
    assert got.status == 200
    assert got.body.endswith(b'data: {"type": "message_stop"}\n\n')
    assert eventually(lambda: noting.outcomes) == ["complete"]


def test_observer_is_ended_as_aborted_when_the_client_left(tmp_path: Path):
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


def test_observer_is_ended_as_failed_when_upstream_fails(tmp_path: Path):
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


def test_server_stop_waits_for_recordings(tmp_path: Path):
    noting = Noting()
    plugin = Planned(lambda _incoming: RequestPlan(observer=noting))
    with running_upstream() as up:
        with proxied(tmp_path, up.url, plugin=plugin) as gateway:
            gateway.ask("/v1/messages", BODY)
        assert noting.outcomes == ["complete"]


def test_local_answer_asks_no_upstream(switched: Switched, up: Upstream):
    came = len(up.requests)
    answer = LocalResponse(200, (("content-type", "text/plain"),), b"On.")
    switched.plan(lambda _incoming: RequestPlan(answer=answer, headers=(("x-lore-layer", "0"),)))
    got = switched.gateway.ask("/v1/messages", BODY)
    assert (got.status, got.body, got.header("x-lore-layer")) == (200, b"On.", "0")
    assert len(up.requests) == came


def test_client_that_leaves_while_throttled_reaches_no_upstream(switched: Switched, up: Upstream):
    came, noting = len(up.requests), Noting()
    switched.plan(lambda _incoming: RequestPlan(delay_s=60.0, observer=noting))
    before = len(switched.plugin.seen)
    with switched.gateway.connect() as client:
        client.sendall(
            b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
        )
        eventually(lambda: len(switched.plugin.seen) > before)
    assert eventually(lambda: noting.outcomes) == ["aborted"]
    assert len(up.requests) == came


def test_plugin_that_never_waits_runs_in_the_event_loop(tmp_path: Path, up: Upstream):
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
    assert named == ["", "lore-planning", "lore-planning", "", "lore-accounting"]


@pytest.mark.parametrize("slow", ["prepare", "go_on", "admit"])
def test_plan_is_released_when_the_client_left(slow: str):
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


def test_shares_fit_into_the_deadline():
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


def test_request_waits_for_the_check_of_a_daily_budget():
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


def test_request_is_refused_when_the_check_of_a_daily_budget_fails():
    class Failing(Planned):
        def passthrough(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
            raise ZeroDivisionError(incoming, until_s)

    def fail(_incoming: ClientRequest) -> RequestPlan:
        raise ZeroDivisionError

    for limited, status in ((True, 503), (False, None)):
        prepared = asyncio.run(_prepared(RequestPlanner(Failing(fail, limited=limited))))
        assert (prepared.answer.status if prepared.answer else None) == status
        assert dict(prepared.headers)[DEGRADED_HEADER] == "ZeroDivisionError"


def test_late_budget_check_blocks_no_recording():
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


def test_only_costs_are_settled_when_the_recording_queue_is_full(
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
def test_interceptor_joins_several_responses(switched: Switched, up: Upstream, times: int):
    noting, came = Noting(), len(up.requests)
    switched.plan(lambda _incoming: RequestPlan(interceptor=Asking(times), observer=noting))
    headers = {"content-encoding": "gzip", "accept-encoding": "br"}
    got = switched.gateway.ask("/v1/messages", ZIPPED, headers)
    asked = up.requests[came:]
    assert [one.body for one in asked] == [ZIPPED] + [OTHER] * times
    assert got.body.count(b'"TEXT": "UNDERSTOOD."') == times + 1
    assert got.body.endswith(b"THE END")
    assert eventually(lambda: noting.outcomes) == ["complete"]
    assert noting.statuses == [200] * (times + 1)


def test_interceptor_ends_the_response_when_upstream_refuses_a_follow_up(
    switched: Switched, up: Upstream
):
    switched.plan(lambda _incoming: RequestPlan(interceptor=Asking(2)))
    up.reply_with(ModelReply("One."), ModelError(529, "overloaded_error", "Overloaded"))
    got = switched.gateway.ask("/v1/messages", BODY)
    assert got.status == 200
    assert got.body.endswith(b"refused with 529")


def test_error_response_is_not_intercepted(switched: Switched, up: Upstream):
    switched.plan(lambda _incoming: RequestPlan(interceptor=Asking(2)))
    up.reply_with(ModelError(400, "invalid_request_error", "No."))
    got = switched.gateway.ask("/v1/messages", BODY)
    assert (got.status, got.json["error"]["message"]) == (400, "No.")


class Failing(Asking):
    """ModelError at one of its steps."""

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


def test_failing_follow_up_ends_the_response_with_an_error(switched: Switched):
    switched.plan(lambda _incoming: RequestPlan(interceptor=Failing("follow")))
    assert switched.gateway.ask("/v1/messages", BODY).body.endswith(b"refused with 500")


def test_interceptor_that_loses_a_chunk_aborts_the_stream(switched: Switched):
    switched.plan(lambda _incoming: RequestPlan(interceptor=Failing("feed")))
    with pytest.raises(http.client.IncompleteRead):
        switched.gateway.ask("/v1/messages", {**HELLO, "stream": True})


def test_interceptor_that_fails_before_the_start_is_an_error(switched: Switched):
    switched.plan(lambda _incoming: RequestPlan(interceptor=Failing("feed")))
    assert switched.gateway.ask("/v1/messages", BODY).status == 502


@pytest.mark.parametrize("cached", [RequestPlan(has_state=False), None])
def test_first_request_after_a_start_waits_until_its_session_is_loaded(
    cached: RequestPlan | None,
):
    is_late, body = threading.Event(), b"planned with the session"

    def load_slowly(_incoming: ClientRequest) -> RequestPlan:
        is_late.wait(PATIENCE_S)
        return RequestPlan(body)

    plugin = Planned(load_slowly)
    plugin.held = cached
    planner = RequestPlanner(plugin, 0.01, first_within_s=PATIENCE_S)

    async def ask() -> RequestPlan:
        asked = asyncio.create_task(planner.plan(INCOMING))
        await asyncio.sleep(0.1)  # the deadline of other requests has passed
        assert not asked.done()
        is_late.set()
        plan = await asked
        await planner.close()
        return plan

    plan = asyncio.run(ask())
    assert (plan.body, plan.headers) == (body, ())


def test_session_with_cached_state_does_not_wait_for_a_late_plan():
    never = threading.Event()

    def plan_late(_incoming: ClientRequest) -> RequestPlan:
        never.wait(PATIENCE_S)
        return RequestPlan()

    plugin = Planned(plan_late)
    plugin.held = RequestPlan(b"cached")
    planner = RequestPlanner(plugin, 0.2, first_within_s=PATIENCE_S)

    async def ask() -> RequestPlan:
        plan = await planner.plan(INCOMING)
        never.set()
        await planner.close()
        return plan

    plan = asyncio.run(ask())
    assert (plan.body, dict(plan.headers)) == (b"cached", {DEGRADED_HEADER: "late"})
