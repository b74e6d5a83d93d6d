"""The cached handshake equals what the server answers, word for word."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from lore.mcp import handshake_builder
from lore.proxy import cached_handshake as kept
from lore.proxy.address import Address
from lore.proxy.cached_handshake import DISCOVER, INITIALIZE, LIST_METHODS
from lore.settings import load
from tests.mcp.live_server import serving_mcp
from tests.proxy.agent_process import Agent


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving_mcp(tmp_path_factory.mktemp("home")) as running:
        yield running


def ask(served, messages, greet=lambda: None):
    """Send requests through a bridge, one after the other, and return their results."""
    agent = Agent(lambda: Address("127.0.0.1", served.port, served.key), greet)
    results = [agent.ask(message)["result"] for message in messages]
    agent.hang_up()
    return results


def request(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def introduction(version):
    client = {"name": "test", "version": "1"}
    return request(INITIALIZE, protocolVersion=version, capabilities={}, clientInfo=client)


def questions(version):
    if version in MODERN_PROTOCOL_VERSIONS:
        meta = {kept.VERSION_FIELD: version, kept.CAPABILITIES_FIELD: {}}
        return [request(method, _meta=meta) for method in (DISCOVER, *LIST_METHODS)]
    return [introduction(version), *(request(method) for method in LIST_METHODS)]


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS])
def test_the_server_answers_every_first_question_in_the_same_words(served, version):
    composed = handshake_builder.build_handshake(served.memory.settings)
    told = ask(served, questions(version))
    assert told == list(composed[version].values())
    assert told == ask(served, questions(version), lambda: composed)


def test_a_handshake_in_a_version_that_nobody_knows_is_answered_alike(served):
    composed = handshake_builder.build_handshake(served.memory.settings)
    strange = [introduction("2099-01-01"), request("tools/list")]
    assert ask(served, strange) == ask(served, strange, lambda: composed)


def test_a_home_keeps_the_greeting_of_its_settings_and_no_other(tmp_path):
    usual = load({}, home=tmp_path).settings
    full = replace(usual, mcp_profile="full", mcp_aliases=True)
    first = handshake_builder.ensure_saved(usual)
    written = (tmp_path / kept.HANDSHAKE_FILE).stat()
    assert handshake_builder.ensure_saved(usual) == first
    assert (tmp_path / kept.HANDSHAKE_FILE).stat().st_ino == written.st_ino
    second = handshake_builder.ensure_saved(full)
    assert kept.load_handshake(str(tmp_path), first) is None
    found = kept.load_handshake(str(tmp_path), second)
    assert (
        found == handshake_builder.build_handshake(full) != handshake_builder.build_handshake(usual)
    )
