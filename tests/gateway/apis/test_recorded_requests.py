"""Recorded requests of real clients: entries keep their keys from one request to the next."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lore.gateway.apis import ADAPTERS
from lore.gateway.apis.adapter import PromptAdditions
from lore.gateway.request_head import api_of
from lore.records.gateway import Distilled, Plan, PromptState
from tests.clients.client import RECORDING_VARIABLE
from tests.clients.conversation import Exchange
from tests.clients.recorder import AGENTS, read_recording
from tests.upstream.apis import check_request


def turns_of(agent: str) -> list[list[Exchange]]:
    """Return what an agent asked, session by session, or skip."""
    folder = Path(os.environ.get(RECORDING_VARIABLE, ""), agent)
    if RECORDING_VARIABLE not in os.environ or not folder.is_dir():
        pytest.skip(f"no run of {agent} was collected: name its folder in {RECORDING_VARIABLE}")
    _, module = AGENTS[agent]
    sessions: dict[object, list[Exchange]] = {}
    for one in read_recording(folder).exchanges:
        if one.body and one.speaker != "client" and api_of("POST", one.path.partition("?")[0]):
            sessions.setdefault(module.session_of(one), []).append(one)
    return list(sessions.values())


@pytest.mark.parametrize("agent", list(AGENTS))
def test_requests_of_a_session_begin_with_the_entries_of_the_one_before(agent):
    tried = 0
    for session in turns_of(agent):
        before: list[str] = []
        for one in session:
            wire = ADAPTERS[api_of("POST", one.path.partition("?")[0])]
            entries = wire.parse_request(json.dumps(one.body).encode()).dialogue.entries
            keys = [entry.key for entry in entries]
            # after a compaction a client begins anew
            if len(keys) > len(before):
                assert keys[: len(before)] == before
                tried += 1
            before = keys
    assert tried


@pytest.mark.parametrize("agent", list(AGENTS))
def test_requests_can_begin_at_every_turn(agent):
    for one in (one for session in turns_of(agent) for one in session):
        name = api_of("POST", one.path.partition("?")[0])
        request = ADAPTERS[name].parse_request(json.dumps(one.body).encode())
        entries = request.dialogue.entries
        for start, entry in enumerate(entries):
            if entry.voice != "user" or any(block.kind == "result" for block in entry.blocks):
                continue
            prefix = (Distilled("s1", "We did things.", 4, start),) if start else ()
            calls = [block.call_id for entry in entries for block in entry.blocks]
            plan = Plan(2, PromptState(), start, prefix, frozenset(calls) - {""})
            texts = PromptAdditions("Known.", annotate=lambda block: f"[{block.chars} characters]")
            sent = ADAPTERS[name].rewrite_request(request, plan, texts)
            check_request(name, json.loads(sent))
