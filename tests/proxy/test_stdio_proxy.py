from __future__ import annotations

import io
import json
import os
import socket
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lore.proxy.address import Address
from lore.proxy.cached_handshake import Handshake
from lore.proxy.stdio_proxy import MAX_LINE_BYTES, StdioProxy
from tests.mcp.live_server import serving_mcp
from tests.proxy.agent_process import Agent

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving_mcp(tmp_path_factory.mktemp("home")) as running:
        running.memory.store("Deploys go through ops/deploy.sh")
        yield running


def address_of(served):
    return Address("127.0.0.1", served.port, served.key)


def request(id_, method, **params):
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


INITIALIZE = request(
    0, "initialize", protocolVersion="2025-06-18", capabilities={},
    clientInfo={"name": "test", "version": "1"},
)  # fmt: skip


def carry(reach, *lines, project="/code/app"):
    """Send lines through a bridge and return what it printed, by id."""
    out = io.BytesIO()
    given = b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )
    StdioProxy(reach, project, out).run(io.BytesIO(given))
    printed = [json.loads(line) for line in out.getvalue().splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in printed)
    return {json.dumps(message["id"]): message for message in printed}


def test_requests_of_the_old_generation_reach_lore(served):
    listed = request("a", "tools/list")
    called = request(2, "tools/call", name="recall", arguments={"query": "how do we deploy?"})
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answers = carry(lambda: address_of(served), INITIALIZE, initialized, listed, called)
    assert set(answers) == {"0", '"a"', "2"}
    assert answers["0"]["result"]["serverInfo"]["name"] == "lore"
    assert answers['"a"']["result"]["tools"]
    assert "ops/deploy.sh" in answers["2"]["result"]["content"][0]["text"]


def test_requests_of_the_new_generation_reach_lore(served):
    discovered = request(1, "server/discover", _meta=META)
    called = request(
        2, "tools/call", name="recall", arguments={"query": "how do we deploy?"}, _meta=META
    )
    read = request(3, "resources/read", uri="lore://fragment/ü", _meta=META)
    answers = carry(lambda: address_of(served), discovered, called, read)
    assert "2026-07-28" in answers["1"]["result"]["supportedVersions"]
    assert "ops/deploy.sh" in answers["2"]["result"]["content"][0]["text"]
    assert answers["3"]["error"]["code"] == -32602


def test_a_version_that_nobody_knows_is_refused_in_words_of_the_protocol(served):
    strange = META | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    answers = carry(lambda: address_of(served), request(1, "tools/list", _meta=strange))
    assert answers["1"]["error"]["data"]["supported"]


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"[1, 2]",
        b'"text"',
        b"\xff\xfe",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
    ],
)
def test_a_line_that_is_no_message_is_answered_and_the_next_one_served(served, line):
    answers = carry(lambda: address_of(served), line, request(1, "ping"))
    assert answers["null"]["error"]
    assert answers["1"]["result"] == {}


def test_a_message_that_would_be_cut_off_is_refused_before_it_is_sent():
    long = request(5, "tools/call", name="store", arguments={"content": "x" * MAX_LINE_BYTES})
    refused = carry(lambda: None, long)["5"]["error"]
    assert "longer than" in refused["message"]


def test_a_message_that_lore_takes_no_more_of_is_told_its_length(served):
    long = request(6, "tools/call", name="store", arguments={"content": "x" * 9_000_000})
    assert "larger than" in carry(lambda: address_of(served), long)["6"]["error"]["message"]


@settings(max_examples=150)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.builds(
                lambda method, params: json.dumps({
                    "jsonrpc": "2.0",
                    "id": 7,
                    "method": method,
                    "params": params,
                }).encode(),
                st.sampled_from(["initialize", "tools/call", "tools/list", "resources/read", "x"]),
                st.one_of(
                    st.none(),
                    st.text(max_size=5),
                    st.dictionaries(
                        st.sampled_from(["name", "uri", "_meta", "arguments"]),
                        st.one_of(st.text(max_size=8), st.integers(), st.just(META), st.none()),
                    ),
                ),
            ),
        ),
        max_size=4,
    )
)
def test_whatever_comes_in_only_protocol_goes_out(served, lines):
    carry(lambda: address_of(served), *(line.replace(b"\n", b" ") for line in lines))


@pytest.mark.parametrize("version", ["é", "2025-06-18\r\nx-evil: 1", " ", "\0", "x" * 5_000])
def test_no_version_of_the_protocol_goes_unanswered_or_into_another_header(served, version):
    meta = META | {"io.modelcontextprotocol/protocolVersion": version}
    answers = carry(lambda: address_of(served), request(1, "tools/list", _meta=meta))
    assert "error" in answers["1"]


def test_without_lore_every_request_is_answered_with_an_error():
    answers = carry(lambda: None, INITIALIZE, request(1, "tools/list"))
    assert all("lore status" in answer["error"]["message"] for answer in answers.values())
    assert set(answers) == {"0", "1"}


def test_a_wrong_key_is_told_as_an_error(served):
    wrong = Address("127.0.0.1", served.port, "x" * 43)
    answers = carry(lambda: wrong, request(1, "tools/list"))
    assert answers["1"]["error"]["message"]


def test_a_message_that_never_left_is_sent_to_the_lore_that_runs_now(served):
    gone = Address("127.0.0.1", 1, served.key)
    found = iter([gone, address_of(served)])
    answers = carry(lambda: next(found), request(1, "ping"))
    assert answers["1"]["result"] == {}


def test_an_address_that_is_no_longer_true_is_asked_for_again(served, tmp_path):
    former = Address("127.0.0.1", served.port, served.key, home=str(tmp_path))
    found = iter([former, address_of(served)])
    answers = carry(lambda: next(found), request(1, "ping"))
    assert answers["1"]["result"] == {}


def test_a_request_that_is_cancelled_is_not_answered():
    reading, writing = os.pipe()
    out = io.BytesIO()
    held = threading.Event()
    asked = threading.Event()

    def reach():
        asked.set()
        held.wait(10)
        return

    bridge = StdioProxy(reach, "", out)
    agent = os.fdopen(reading, "rb")
    thread = threading.Thread(target=bridge.run, args=(agent,))
    thread.start()
    with agent, os.fdopen(writing, "wb", buffering=0) as lines:
        lines.write(json.dumps(request(1, "tools/list")).encode() + b"\n")
        assert asked.wait(10)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        lines.write(json.dumps(cancelled | {"params": {"requestId": 1}}).encode() + b"\n")
        lines.write(b"no json\n")  # once this is answered, the line before it was taken
        while not out.getvalue():
            pass
        held.set()
        lines.close()
        thread.join(10)
    assert [json.loads(line)["id"] for line in out.getvalue().splitlines()] == [None]


GREETING: Handshake = {
    "2025-06-18": {
        "initialize": {"protocolVersion": "2025-06-18"},
        "tools/list": {"tools": ["kept"]},
    }
}


def test_first_questions_are_answered_while_lore_is_starting_and_calls_wait_for_it(served):
    started, asked = threading.Event(), threading.Event()

    def reach():
        asked.set()
        started.wait(60)
        return address_of(served)

    agent = Agent(reach, lambda: GREETING)
    assert agent.ask(INITIALIZE)["result"] == {"protocolVersion": "2025-06-18"}
    assert asked.wait(60)  # it is being started before anything needs it
    agent.say(request(1, "tools/call", name="recall", arguments={"query": "how do we deploy?"}))
    assert agent.ask(request(2, "tools/list")) == {
        "jsonrpc": "2.0", "id": 2, "result": {"tools": ["kept"]}
    }  # fmt: skip
    started.set()
    answer = agent.hear()
    assert answer["id"] == 1
    assert "ops/deploy.sh" in answer["result"]["content"][0]["text"]
    agent.hang_up()


def test_what_the_greeting_does_not_have_is_asked_of_lore(served):
    agent = Agent(lambda: address_of(served), lambda: GREETING)
    agent.ask(INITIALIZE)
    assert agent.ask(request(1, "prompts/list"))["result"]["prompts"]
    agent.hang_up()


def test_a_lore_that_cannot_be_started_is_told_with_the_first_call():
    agent = Agent(lambda: None, lambda: GREETING)
    assert "result" in agent.ask(INITIALIZE)
    assert "lore status" in agent.ask(request(1, "tools/call", name="recall"))["error"]["message"]
    agent.hang_up()


def test_an_agent_is_heard_however_many_calls_are_under_way():
    with socket.create_server(("127.0.0.1", 0), backlog=100) as mute:
        agent = Agent(lambda: Address("127.0.0.1", mute.getsockname()[1], "key"), lambda: GREETING)
        agent.ask(INITIALIZE)
        for id_ in range(1, 41):
            agent.say(request(id_, "tools/call", name="recall"))
        assert agent.ask(request("still there?", "ping"))["id"] == "still there?"
        for id_ in range(1, 41):
            agent.say({
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": id_},
            })
        assert agent.ask(request("and now?", "ping"))["result"] == {}
        agent.hang_up()


def test_calls_beyond_those_that_are_carried_at_a_time_have_their_turn(served):
    calls = [
        request(id_, "tools/call", name="recall", arguments={"query": "deploy"})
        for id_ in range(50)
    ]
    answers = carry(lambda: address_of(served), *calls)
    assert {int(id_) for id_ in answers} == set(range(50))
    assert all("result" in answer for answer in answers.values())


def test_a_lore_that_does_not_even_say_that_it_is_well_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0), backlog=100) as mute:
        hung = Address("127.0.0.1", mute.getsockname()[1], "key")
        answers = carry(lambda: hung, request(1, "tools/call", name="recall"))
    assert "lore down --force" in answers["1"]["error"]["message"]
