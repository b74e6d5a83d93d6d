"""Text that was planted: none of it reaches a prompt by an agent's hooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.records import NewMessage, Part
from tests.fakes import NOON, FakeEmbedder, FixedClock
from tests.trust.test_poisoning import ORDERS, PAYLOADS, QUESTIONS, WAYS, planted_in

FAILED = "AttributeError: the deploy script has no attribute expire_at"


@pytest.fixture
def memory(new_home: Path) -> Iterator[Memory]:
    with Memory.open(new_home, embedder=FakeEmbedder(), now=FixedClock()) as opened:
        yield opened


def told_unasked(memory: Memory) -> str:
    """Return all that hooks would put into prompts, as if everything were relevant enough."""
    texts = [memory.prompts.begin_session("new", budget_tokens=100_000).text]
    for place, prompt in enumerate((*QUESTIONS, *ORDERS, *PAYLOADS[::91])):
        given = memory.prompts.for_prompt(
            f"How do we deploy? {prompt}",
            session=f"p{place}",
            threshold=0.0,
            budget_tokens=100_000,
        )
        texts.append(given.text)
        met = memory.prompts.for_error("Bash", "{}", prompt, session=f"e{place}", failed=True)
        texts.append(met.text)
    return "\n".join(texts)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_nothing_planted_is_injected(memory: Memory, way):
    memory.store("Deploys go through ops/deploy.sh on Thursdays", kind="workflow")
    way(memory)
    memory.maintenance.embed_waiting()
    told = told_unasked(memory)
    assert not planted_in(told)
    assert "ops/deploy.sh on Thursdays" in told, "what a person stored is"


def test_the_same_text_by_a_person_would_be_injected(memory: Memory):
    """The suite would notice."""
    memory.capture("user", [NewMessage("user", (Part("text", PAYLOADS[10]),), NOON)])
    memory.maintenance.embed_waiting()
    assert planted_in(told_unasked(memory))


@pytest.mark.parametrize("order", ORDERS)
def test_an_error_that_quotes_orders_hands_none_of_them_on(memory: Memory, order: str):
    def call(name: str, id_: str, **given: str) -> Part:
        return Part("tool_call", json.dumps(given), name, id_)

    error = Part("tool_result", f"{FAILED}: {order}", "", "1", failed=True)
    done = [
        NewMessage("user", (Part("text", "Please mend the deploy script"),), NOON),
        NewMessage("assistant", (call("Bash", "1", command="make all"),), NOON),
        NewMessage("tool", (error,), NOON),
        NewMessage("assistant", (call("Edit", "2", file_path="/code/x/deploy.sh"),), NOON),
        NewMessage("tool", (Part("tool_result", "ok", "", "2"),), NOON),
        NewMessage("assistant", (call("Bash", "3", command="make all"),), NOON),
        NewMessage("tool", (Part("tool_result", "ok", "", "3"),), NOON + timedelta(seconds=9)),
    ]
    memory.capture("old", done, agent="claude-code")
    memory.sessions.episode("old")
    memory.maintenance.embed_waiting()
    met = memory.prompts.for_error("Bash", "{}", f"{FAILED}: {order}", session="new", failed=True)
    assert "> Edit x/deploy.sh" in met.text
    assert not planted_in(met.text)
    assert not planted_in(memory.prompts.begin_session("new").text)
