"""A thousand ways in which a provider answers: a value or an error of ours, and nothing touched."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from lore.budget.ledger import Ledger
from lore.budget.prices import PriceCatalogue
from lore.errors import BadReply, LoreError, PromptTooLong, ProviderUnavailable, RateLimited
from lore.llm.anthropic import AnthropicChat
from lore.llm.chat_summarizer import ChatSummarizer
from lore.llm.openai import OpenAIChat
from lore.llm.retry import RetryPolicy
from lore.memory import Memory
from lore.records import CitedSentence, Extract, Hit, Log, NewMessage, Part
from lore.store import dump
from lore.store.database import Database
from tests.fakes import NOON, FakeEmbedder, FixedClock
from tests.llm.fakes import fragment, log, message_text, segment
from tests.llm.provider_server import Provider
from tests.llm.variants import GOOD, answer

SEED = 20261115
ROUNDS = 10
"""Of a hundred variants each."""

TALK = segment(
    message_text(1, "How is harbor deployed?"),
    message_text(2, "With ops/deploy.sh, not on Fridays.", "assistant"),
)
OLD, NEW = fragment("a", "Harbor uses port 8080."), fragment("b", "Harbor uses port 8443 instead.")
HIT = Hit("h", "message", "With ops/deploy.sh.", "", 1.0, "", NOON, 5, role="user")


def ask(digesting: ChatSummarizer, question: str) -> Any:
    questions: dict[str, Callable[[], Any]] = {
        "observe": lambda: digesting.observe(TALK, limit_tokens=200),
        "condense": lambda: digesting.condense([log("a"), log("b")], log(), limit_tokens=200),
        "extract": lambda: digesting.extract(TALK),
        "overview": lambda: digesting.overview(OLD, [NEW]),
        "reflect": lambda: digesting.reflect([OLD, NEW]),
        "judge": lambda: digesting.judge([(OLD, NEW)]),
        "check": lambda: digesting.check([OLD, NEW], TALK.messages),
        "ask": lambda: digesting.answer("How is harbor deployed?", [HIT]),
    }
    return questions[question]()


def value_or_error(digesting: ChatSummarizer, question: str) -> Any:
    try:
        return ask(digesting, question)
    except LoreError as error:
        return error


def is_right(value: Any) -> bool:
    """Tell whether a value is one that a summarizer may return."""
    if isinstance(value, Log):
        return all(set(line.sources) <= {1, 2} for line in value.lines)
    if isinstance(value, str):
        value.encode()
        return len(value) < 10_000
    if any(isinstance(one, CitedSentence) for one in value):
        return all(one.places == (0,) for one in value)
    return all(
        set(one.sources) <= {"id-1", "id-2"} if isinstance(one, Extract) else one in VERDICTS
        for one in value
    )


VERDICTS = ("changes", "contradicts", "agrees", None, "keep", "overturned", "trivial")
KNOWN = (ProviderUnavailable, RateLimited, PromptTooLong, BadReply)


def table_contents(database: Database) -> list[Any]:
    """Return all that a database holds, but for the spend."""
    with database.read() as db:
        return [line for line in dump.dump_records(db) if line["record"] != "spend"]


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home=home, embedder=FakeEmbedder(), now=FixedClock()) as opened:
        told = [NewMessage(one.voice, (Part("text", one.text),), one.at) for one in TALK.messages]  # type: ignore[arg-type]
        opened.capture("harbor", told)
        opened.store("Harbor uses port 8080.")
        yield opened


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_every_variant_yields_a_value_or_a_provider_error(memory, provider: Provider, round_):
    rng = random.Random(SEED + round_)
    database = memory.database
    before = table_contents(database)
    ledger = Ledger(database, PriceCatalogue(), background_usd=1e9)
    outcomes: Counter[str] = Counter()
    chats = {
        name: (AnthropicChat if name == "anthropic" else OpenAIChat)(provider.choice(name, 0.5))
        for name in ("anthropic", "openai", "openrouter")
    }
    for _ in range(100):
        name, question = rng.choice(list(chats)), rng.choice(list(GOOD))
        provider.script[:] = [answer(rng, name, question) for _ in range(6)]
        patience = RetryPolicy(sleep=lambda _: None, max_wait_s=5)
        digesting = ChatSummarizer(chats[name], ledger, retry_policy=patience)
        outcome = value_or_error(digesting, question)
        if isinstance(outcome, LoreError):
            assert type(outcome) in KNOWN
            assert "sk-secret" not in f"{outcome} {outcome.hint}"
            assert "harbor" not in str(outcome).lower()
            str(outcome).encode()
            outcomes[type(outcome).__name__] += 1
        else:
            assert is_right(outcome)
            outcomes["value"] += 1
    for chat in chats.values():
        chat.close()
    assert table_contents(database) == before
    assert ledger.background_today().reserved_usd == 0
    assert outcomes["value"] >= 15
    assert outcomes[ProviderUnavailable.__name__] >= 5
    assert outcomes[BadReply.__name__] >= 1
