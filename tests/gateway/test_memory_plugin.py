"""A session through the gateway: remembered, given what it needs, shortened, and never broken."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lore import clock
from lore.capture.adapters import injected_text
from lore.embed import Embedder
from lore.gateway.memory_plugin import MemoryPlugin
from lore.gateway.plugin_protocol import ClientRequest
from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from lore.records import ClientSession
from lore.settings import load
from lore.store import dialogue_state
from lore.text import memory_tags
from tests.fakes import FakeEmbedder, FixedClock
from tests.gateway.gateway_server import HELLO, Proxied, proxied
from tests.upstream import (
    Call,
    ModelError,
    ModelReply,
    ReceivedRequest,
    Text,
    Thought,
    Upstream,
    running_upstream,
)
from tests.waiting import PATIENCE_S, eventually

HERE = "/code/almanac"
HEADERS = {"x-claude-code-session-id": "s-1", "x-lore-project": HERE, "x-api-key": "of a client"}
PATH = "/v1/messages"


class Life:
    """A memory, a gateway and an upstream, and one conversation over them."""

    def __init__(self, memory: Memory, gateway: Proxied, up: Upstream) -> None:
        self.memory = memory
        self.gateway = gateway
        self.up = up
        self.messages: list[Any] = []

    def ask(self, text: str, **more: Any) -> Any:
        """Say something and return the answer, as a client keeps both."""
        return self.send([{"type": "text", "text": text}], **more)

    def send(self, content: Any, **more: Any) -> Any:
        self.messages.append({"role": "user", "content": content})
        body = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": self.messages, **more}
        got = self.gateway.ask(PATH, body, HEADERS)
        assert got.status == 200, got.body
        self.messages.append({"role": "assistant", "content": got.json["content"]})
        self.got = got
        return got.json

    def stored(self) -> list[str]:
        found = self.memory.sessions()
        if not found:
            return []
        return [
            part.text for message in self.memory.sessions.messages("s-1") for part in message.parts
        ]  # fmt: skip

    def prompt(self, number: int = -1) -> str:
        """Return what upstream was told."""
        return json.dumps(self.up.requests[number].json)


class Moody:
    """Lets memory fail at every prompt for as long as it is said."""

    def __init__(self) -> None:
        self.fails = False

    def __call__(self, texts: Sequence[str]) -> None:
        if self.fails:
            raise OSError(texts)


@contextmanager
def life(
    home: Path,
    up: Upstream,
    *,
    mood: Moody | None = None,
    now: FixedClock | None = None,
    within_s: float = PATIENCE_S,
    embedder: Embedder | None = None,
    **settings: Any,
) -> Iterator[Life]:
    config = replace(load({}, home=home).settings, **settings)
    embedder = embedder or FakeEmbedder(before=mood)
    with Memory.open(config=config, embedder=embedder, now=now or clock.now) as memory:
        plugin = MemoryPlugin(memory, PromptComposer(memory))
        with proxied(home, up.url, plugin=plugin, within_s=within_s) as gateway:
            yield Life(memory, gateway, up)
        plugin.close()


@pytest.fixture
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served
        assert not served.rejected


def test_messages_are_stored_once(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        up.reply_with(ModelReply(Text("We keep ten entries.")), ModelReply(Text("Yes.")))
        talk.ask("How many entries does the cache keep?")
        talk.ask("Is that final?")
        eventually(lambda: len(talk.stored()) == 4)
        assert talk.stored() == [
            "How many entries does the cache keep?",
            "We keep ten entries.",
            "Is that final?",
            "Yes.",
        ]
        [session] = talk.memory.sessions()
        assert (session.agent, session.external_id) == ("claude-code", "s-1")


def test_equal_responses_are_stored_separately(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        for n in range(3):
            talk.ask(f"Question {n}?")
        eventually(lambda: len(talk.stored()) == 6)
        assert talk.stored()[1::2] == ["Understood."] * 3


def test_knowledge_is_the_same_on_every_turn(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        talk.ask("Hello there, what is new?")
        talk.ask("And now?")
        systems = [json.dumps(asked.json.get("system")) for asked in up.requests]
        assert "ops/deploy.sh" in systems[0]
        assert systems[0] == systems[1]


def test_recall_runs_inside_the_response(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.memory.remember("The staging port is 5436", project=HERE)
        up.reply_with(
            ModelReply(Text("Let me see."), Call("recall", {"query": "staging port"})),
            ModelReply(Text("It is 5436.")),
            ModelReply(Text("As I said.")),
        )
        told = talk.ask("Which port does staging have?")
        texts = "".join(block.get("text", "") for block in told["content"])
        assert all(block["type"] == "text" for block in told["content"])
        assert "It is 5436." in texts
        assert "5436" in talk.prompt(1)
        first = up.requests[1].json["messages"]
        talk.ask("Are you sure?")
        later = up.requests[2].json["messages"]
        assert [_bare(one) for one in later[: len(first)]] == [_bare(one) for one in first]
        eventually(lambda: talk.stored()[-1:] == ["As I said."])
        assert talk.stored()[3:] == [
            injected_text.MEMORY_PLACEHOLDER,
            "It is 5436.",
            "Are you sure?",
            "As I said.",
        ]


def test_model_may_search_ten_times_per_response(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        up.reply_with(*(ModelReply(Call("recall", {"query": f"port {n}"})) for n in range(12)))
        told = json.dumps(talk.ask("Which ports are there?"))
        assert told.count("[memory searched: ") == 10
        assert len(up.requests) == 11


@pytest.mark.parametrize("how", ["amnesia", "off", "on"])
def test_prompt_without_tools_contains_no_call(tmp_path: Path, up: Upstream, how: str):
    messages: list[Any] = []
    with life(tmp_path, up) as talk:
        talk.messages = messages
        talk.memory.remember("The staging port is 5436", project=HERE)
        up.reply_with(
            ModelReply(Call("recall", {"query": "staging port"})), ModelReply(Text("It is 5436."))
        )
        talk.ask("Which port does staging have?")
        if how == "amnesia":
            talk.ask("/lore:amnesia on")
            talk.ask("Are you sure?")
    if how != "amnesia":
        with life(tmp_path, up, gateway_recall=how) as talk:
            talk.messages = messages
            talk.ask("Are you sure?")
    sent = up.requests[-1].json
    assert [tool["name"] for tool in sent.get("tools", [])] == (["recall"] if how == "on" else [])
    assert ("tool_use" in json.dumps(sent["messages"])) == (how == "on")
    assert ("lore-recall-" in json.dumps(sent["messages"])) == (how != "on")


def test_private_mode_keeps_thinking_blocks_unchanged(tmp_path: Path, up: Upstream):
    more = {
        "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "max_tokens": 2000,
    }
    with life(tmp_path, up) as talk:
        up.reply_with(
            ModelReply(Thought("Memory first."), Call("recall", {"query": "staging port"})),
            ModelReply(Thought("Now the file."), Call("Read", {}, id="toolu_1")),
        )
        talk.ask("Which port does staging have?", **more)
        PromptComposer(talk.memory).sessions.begin_private_mode(
            ClientSession("s-1", "claude-code", HERE)
        )
        talk.send([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "file"}], **more)
        assert not any(tool["name"] == "recall" for tool in up.requests[-1].json["tools"])


def test_stored_recall_calls_are_redacted(tmp_path: Path, up: Upstream):
    secret = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
    with life(tmp_path, up) as talk:
        up.reply_with(
            ModelReply(Call("recall", {"query": f"who made {secret}?"})),
            ModelReply(Text("Nobody knows.")),
        )
        talk.ask("Whose token is that?")
        talk.ask("Really?")
        assert secret not in talk.prompt(-1)
        assert "who made [secret:" in talk.prompt(-1)
        eventually(lambda: "Really?" in talk.stored())
        with talk.memory.database.read() as db:
            kept = db.rows("SELECT value FROM recall_markers")
    assert len(kept) == 1
    assert secret not in kept[0][0]


def test_headers_state_layer_and_prompt_tokens(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.ask("word " * 4_000)
        assert talk.got.header("x-lore-layer") == "0"
        assert 5_000 < int(talk.got.header("x-lore-tokens")) < 10_000
        told = {name for name, _ in talk.got.headers if name.startswith("x-lore-")}
        assert told == {"x-lore-layer", "x-lore-tokens"}


def test_header_states_what_does_not_fit(tmp_path: Path, up: Upstream):
    with life(tmp_path, up, prices=("claude-sonnet-4-5 input=1 output=5 window=3000",)) as talk:
        talk.ask("word " * 4_000)
        assert "current turn alone" in talk.got.header("x-lore-unfit")
        assert "word " * 4_000 in talk.prompt()


def test_header_states_the_delay(tmp_path: Path, up: Upstream):
    limits = {
        "anthropic-ratelimit-tokens-limit": "1000",
        "anthropic-ratelimit-tokens-remaining": "178",
    }
    with life(tmp_path, up) as talk:
        up.reply_with(ModelReply(Text("Yes."), headers=limits), ModelReply(Text("No.")))
        talk.ask("Hello?")
        eventually(lambda: len(talk.stored()) == 2)
        talk.ask("And now?")
        assert talk.got.header("x-lore-delay-s") == "0.7"


def test_too_long_prompt_raises_the_floor(tmp_path: Path, up: Upstream):
    message = "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000"
    with life(tmp_path, up) as talk:
        up.reply_with(ModelError(400, "invalid_request_error", message))
        body = {**HELLO, "messages": [{"role": "user", "content": "Hello"}]}
        assert talk.gateway.ask(PATH, body, HEADERS).status == 400
        store = PromptComposer(talk.memory).store
        client = ClientSession("s-1", "claude-code", HERE)
        eventually(lambda: store.load(client).pins.floor == 3)


def test_compaction_of_a_long_session_gets_the_whole_dialogue(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        for n in range(150):
            call = {"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {}}
            given = {"type": "tool_result", "tool_use_id": f"t{n}", "content": "y" * 3_000}
            talk.messages += [
                {"role": "user", "content": f"question {n}"},
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [given]},
                {"role": "assistant", "content": "done"},
            ]
        whole = list(talk.messages)
        talk.ask(SUM_UP, tools=[READ])
        sent = up.requests[0].json["messages"]
        assert [_bare(one) for one in sent[:-1]] == [_bare(one) for one in whole]


def test_side_question_uses_the_cached_prompt(tmp_path: Path, up: Upstream):
    with life(tmp_path, up, context_max_layer0_tokens=2_000) as talk:
        talk.memory.remember("The staging port is 5436", project=HERE)
        for n in range(4):
            talk.ask(f"question {n}: " + "word " * 1_000, tools=[READ])
            eventually(lambda: len(talk.stored()) == 2 * (n + 1))  # noqa: B023 - it is waited for
            talk.memory.distill("s-1")
        talk.ask("And what now?", tools=[READ])
        assert int(talk.got.header("x-lore-layer")) > 0
        eventually(lambda: len(talk.stored()) == 10)
        talk.ask("[SUGGESTION MODE: What might the person type next?]", tools=[READ])
        turn, aside = (one.json for one in up.requests[-2:])
        assert aside["system"] == turn["system"]
        assert aside["tools"] == turn["tools"]
        said = [_bare(one) for one in turn["messages"]]
        assert [_bare(one) for one in aside["messages"]][: len(said)] == said
        del talk.messages[-2:]  # The client keeps neither the question nor its answer.
        talk.ask("Go on.", tools=[READ])
        eventually(lambda: "Go on." in talk.stored())
        assert "SUGGESTION" not in " ".join(talk.stored())


def test_private_mode_stores_and_gives_nothing(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.memory.remember("The staging port is 5436", project=HERE)
        told = talk.ask("/lore:amnesia on")
        assert "nothing" in told["content"][0]["text"]
        assert not up.requests
        talk.ask("The merger is on the ninth.")
        assert "5436" not in talk.prompt()
        assert "ninth" not in " ".join(talk.stored())


@pytest.mark.parametrize("restarts", [False, True])
def test_private_messages_are_not_stored_after_private_mode_ends(
    tmp_path: Path, up: Upstream, restarts: bool
):
    messages: list[Any] = []
    with life(tmp_path, up) as talk:
        talk.messages = messages
        talk.ask("Which year is it?")
        eventually(lambda: len(talk.stored()) == 2)
        talk.ask("/lore:amnesia on")
        talk.ask("The merger is on the ninth.")
        talk.ask("/lore:amnesia off")
        if not restarts:
            talk.ask("Good morning.")
            eventually(lambda: "Good morning." in talk.stored())
            assert "ninth" not in " ".join(talk.stored())
    if restarts:
        with life(tmp_path, up) as talk:
            talk.messages = messages
            talk.ask("Good morning.")
            eventually(lambda: "Good morning." in talk.stored())
            assert "ninth" not in " ".join(talk.stored())


def test_remember_command_stores_a_text(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.ask("/lore:remember Invoices are numbered by year.")
        assert not up.requests
        assert "Invoices" in talk.memory.recall("how are invoices numbered?").hits[0].text


def test_session_cost_is_in_the_ledger(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.memory.budget.load_prices()
        eventually(
            lambda: talk.memory.budget.find_model_price("claude-sonnet-4-5", provider="anthropic")
        )
        talk.ask("Hello?")
        talk.ask("And now?")
        eventually(lambda: talk.memory.budget.spend_report().total.requests == 2)
        total = talk.memory.budget.spend_report().total
        assert total.usd > 0
        assert total.without_usd > 0


def test_spent_budget_refuses_without_asking_upstream(tmp_path: Path, up: Upstream):
    with life(tmp_path, up, daily_budget=0.0) as talk:
        body = {**HELLO, "messages": [{"role": "user", "content": "Hello"}]}
        got = talk.gateway.ask(PATH, body, HEADERS)
        assert got.status == 402
        assert got.json["type"] == "error"
        assert not up.requests


def test_spent_budget_refuses_late_requests_too(tmp_path: Path, up: Upstream):
    config = replace(load({}, home=tmp_path).settings, daily_budget=0.0)
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        plugin = MemoryPlugin(memory, PromptComposer(memory))
        with proxied(tmp_path, up.url, plugin=plugin, within_s=0.0) as gateway:
            got = gateway.ask(PATH, HELLO, HEADERS)
        plugin.close()
    assert got.status == 402
    assert not up.requests


def test_requests_without_memory_are_unchanged_and_charged(tmp_path: Path, up: Upstream):
    with life(tmp_path, up, gateway_memory=False) as talk:
        talk.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        body = json.dumps(HELLO).encode()
        talk.gateway.ask(PATH, body, HEADERS)
        assert up.requests[0].body == body
        eventually(lambda: talk.memory.budget.spend_report().total.requests == 1)
        assert talk.stored() == []


def test_locked_store_stops_no_request(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.memory.database.close()
        got = talk.gateway.ask(PATH, HELLO, HEADERS)
        assert got.status == 200
        assert got.header("x-lore-degraded")


def _bare(message: Any) -> Any:
    """Return a message as it is cached: breakpoints are no part of that, nor is its form."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    bare = [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]
    return {**message, "content": bare}


READ = {"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}
SUM_UP = "CRITICAL: Respond with TEXT ONLY. Sum up what was said."


def test_compaction_uses_the_cached_prompt(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        up.reply_with(
            ModelReply(Text("I will look."), Call("recall", {"query": "deploys"})),
            ModelReply(Text("So.")),
        )
        talk.ask("Hello there, what is new?", tools=[READ])
        eventually(lambda: talk.stored()[-1:] == ["So."])
        talk.ask(SUM_UP, tools=[READ])
        before, after = up.requests[1].json, up.requests[2].json
        assert after["system"] == before["system"]
        assert after["tools"] == before["tools"]
        kept = before["messages"]
        assert [_bare(one) for one in after["messages"]][: len(kept)] == [_bare(x) for x in kept]


def test_compaction_without_tools_is_offered_none(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        up.reply_with(
            ModelReply(Text("I will look."), Call("recall", {"query": "deploys"})),
            ModelReply(Text("So.")),
        )
        talk.ask("Hello there, what is new?", tools=[READ])
        eventually(lambda: talk.stored()[-1:] == ["So."])
        talk.ask(SUM_UP)
        asked = up.requests[2].json
        assert "tools" not in asked
        assert "tool_use" not in json.dumps(asked["messages"])
        assert asked["system"] == up.requests[1].json["system"]


def test_private_messages_stay_unstored_after_a_restart(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.ask("Good morning, the tide is low.")
        eventually(lambda: len(talk.stored()) == 2)
        talk.ask("/lore:amnesia on")
        talk.ask("The merger is on the ninth.")
        talk.ask("/lore:amnesia off")
        talk.ask("Now the tide is high.")
        eventually(lambda: "high" in " ".join(talk.stored()))
        assert "merger" not in " ".join(talk.stored())
        messages = talk.messages
    with life(tmp_path, up) as talk:  # nor when a gateway that knows nothing reads all again
        talk.messages = messages
        talk.ask("And now it is low again.")
        eventually(lambda: "again" in " ".join(talk.stored()[-2:]))
        assert "merger" not in " ".join(talk.stored())


def _head(asked: ReceivedRequest) -> str:
    """Return what stands before all that was said."""
    return json.dumps([asked.json.get("system"), asked.json.get("tools")])


def _begins_as(before: ReceivedRequest, after: ReceivedRequest) -> bool:
    told = [_bare(one) for one in before.json["messages"]]
    kept = [_bare(one) for one in after.json["messages"]][: len(told)]
    return _head(before) == _head(after) and kept == told


def test_prompt_keeps_its_prefix_when_memory_fails(tmp_path: Path, up: Upstream):
    mood = Moody()
    with life(tmp_path, up, mood=mood) as talk:
        talk.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        up.reply_with(
            ModelReply(Call("recall", {"query": "deploys"})),
            ModelReply(Text("I looked it up.")),
            ModelReply(Text("Fine.")),
            ModelReply(Call("recall", {"query": "ops"})),
            ModelReply(Text("I looked once more.")),
        )
        talk.ask("Hello there, how do we deploy?")
        eventually(lambda: talk.stored()[-1:] == ["I looked it up."])
        mood.fails = True
        talk.ask("What does the harbour office say about the tide today?")
        assert talk.got.header("x-lore-degraded") == "OSError"
        told = talk.ask("And which scripts are there in the folder ops?")
        assert "I looked once more." in json.dumps(told)
        mood.fails = False
        talk.ask("Who wrote them?")
        assert not talk.got.header("x-lore-degraded")
        assert "ops/deploy.sh" in _head(up.requests[0])
        assert '"recall"' in _head(up.requests[0])
        for before, after in pairwise(up.requests):
            assert _begins_as(before, after)
        eventually(lambda: "I looked once more." in talk.stored())


def test_shortened_session_stays_short_when_memory_fails(tmp_path: Path, up: Upstream):
    mood = Moody()
    with life(tmp_path, up, mood=mood, context_max_layer0_tokens=3_000) as talk:
        for n in range(11):  # the window does not move with the request after these
            up.reply_with(ModelReply(Text(f"Part {n} is {'described at length here, ' * 60}done.")))
            talk.ask(f"Describe part {n} of the engine, please.")
            eventually(lambda: len(talk.stored()) == len(talk.messages))
            talk.memory.distill("s-1")
        layer = talk.got.header("x-lore-layer")
        assert int(layer) >= 1
        mood.fails = True
        talk.ask("Is the engine well described now?")
        assert talk.got.header("x-lore-degraded")
        assert talk.got.header("x-lore-layer") == layer
        assert _begins_as(up.requests[-2], up.requests[-1])


def test_prompt_sent_without_a_note_gets_none_later(tmp_path: Path, up: Upstream):
    mood = Moody()
    with life(tmp_path, up, mood=mood, inject_threshold=0.0) as talk:
        talk.ask("Good morning to you.")
        eventually(lambda: len(talk.stored()) == 2)
        talk.memory.remember("The staging port is 5436", project=HERE)
        mood.fails = True
        talk.ask("Which staging port do we have?")
        mood.fails = False
        talk.gateway.ask(PATH, {**HELLO, "messages": talk.messages[:-1]}, HEADERS)
        assert _begins_as(up.requests[-2], up.requests[-1])
        assert "5436" not in json.dumps(up.requests[-1].json["messages"])


@pytest.mark.parametrize("restarts", [False, True])
def test_session_that_began_without_memory_stays_without_while_cached(
    tmp_path: Path, up: Upstream, restarts: bool
):
    # The server has a memory of its own at the machine's time: its upkeep drops what is old by it.
    mood, now = Moody(), FixedClock(clock.now())
    long = {"system": "You are a careful engineer. " * 2_000}
    # A bust would bring memory in: here there is none.
    with life(tmp_path, up, mood=mood, now=now, context_strategy="off") as talk:
        talk.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        mood.fails = True
        talk.ask("Hello there, what is new in the harbour?", **long)
        mood.fails = False
        messages = talk.messages
        talk.ask("And in the town?", **long)
        eventually(lambda: len(talk.stored()) == 4)
        if not restarts:
            talk.ask("And at sea?", **long)
    with life(tmp_path, up, now=now, context_strategy="off") as talk:
        talk.messages = messages
        talk.ask("And in the hills?", **long)
        assert len({_head(asked) for asked in up.requests}) == 1
        assert "recall" not in _head(up.requests[0])
        eventually(lambda: talk.stored()[-2] == "And in the hills?")
        now.advance(seconds=400)
        talk.ask("And on the moon?", **long)
        assert "ops/deploy.sh" in _head(up.requests[-1])
        assert '"recall"' in _head(up.requests[-1])


def test_private_session_stays_private_when_memory_fails(tmp_path: Path, up: Upstream):
    mood = Moody()
    with life(tmp_path, up, mood=mood) as talk:
        talk.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        talk.ask("Hello there, what is new?")
        eventually(lambda: len(talk.stored()) == 2)
        talk.ask("/lore:amnesia on")
        talk.memory.database.close()
        talk.ask("The merger is on the ninth.")
        assert "ops/deploy.sh" not in _head(up.requests[-1])
        assert "recall" not in _head(up.requests[-1])


def test_failed_command_reaches_no_provider(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.memory.database.close()
        told = talk.ask("/lore:amnesia on")
        assert "only while Lore runs" in told["content"][0]["text"]
        assert not up.requests


def test_news_is_given_once_as_a_note_and_stays(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        memory = talk.memory
        port = memory.remember("The staging port is 5436", project=HERE)
        day = memory.remember("Releases are on Tuesdays", kind="decision", project=HERE)
        old = memory.remember("The lamp is lit at seven", kind="decision", project=HERE)
        talk.ask("Hello there, what is new?")
        eventually(lambda: len(talk.stored()) == 2)
        assert "5436" in _head(up.requests[0])
        with Memory.open(config=memory.settings, embedder=FakeEmbedder()) as elsewhere:
            elsewhere.knowledge.update(port.id, content="The staging port is 6001")
            new = elsewhere.remember("Releases wait for the harbour pilot", project=HERE)
            elsewhere.knowledge.supersede(day.id, new.id)
            elsewhere.knowledge.delete(old.id)
            elsewhere.remember("Always use tabs in tables", kind="preference", project=HERE)
        talk.ask("Go on.")
        note = json.dumps(up.requests[1].json["messages"][-1])
        for told in ("6001", "harbour pilot", "Always use tabs", f"[{old.id[:13]}]"):
            assert told in note
        for gone in ("5436", "Tuesdays", "lamp"):
            assert gone not in note
        memory.database.write(lambda db: db.rows("SELECT 1"))  # what was told is noted by now
        talk.ask("Go on, please.")
        eventually(lambda: len(talk.stored()) == 6)
        messages = talk.messages
    with life(tmp_path, up) as talk:
        talk.messages = messages
        talk.ask("And on.")
        for before, after in pairwise(up.requests):
            assert _begins_as(before, after)
        assert talk.prompt().count("port is 6001") == 1
        assert talk.prompt().count("Always use tabs") == 1
        talk.memory.forget(id=port.id)
        talk.ask("Once more.")
        assert "6001" not in talk.prompt()
        assert "5436" not in talk.prompt()
        with talk.memory.database.read() as db:
            kept = db.rows("SELECT value FROM dialogue_states")
        assert "6001" not in str(list(kept))


def test_messages_around_a_recall_stay_stored_once_after_forgetting(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        port = talk.memory.remember("The staging port is 5436", kind="config", project=HERE)
        up.reply_with(
            ModelReply(Text("Let me see."), Call("recall", {"query": "staging port"})),
            ModelReply(Text("It is 5436.")),
        )
        talk.ask("Which port has staging?")
        eventually(lambda: "It is 5436." in talk.stored())
        talk.memory.forget(id=port.id)
        talk.ask("Go on.")
        talk.ask("And on.")
        eventually(lambda: talk.stored()[-1] == "Understood." and "And on." in talk.stored())
        assert [one for one in talk.stored() if "see" in one or "5436" in one] == [
            "Let me see.", "It is 5436.",
        ]  # fmt: skip
        assert talk.stored().count("Go on.") == 1
        assert not any("memory searched" in one for one in talk.stored())


def test_memory_from_hooks_is_not_stored_again(tmp_path: Path, up: Upstream):
    given = memory_tags.wrap_memory("The staging port is 5436")
    told = f"UserPromptSubmit hook additional context: {given}"
    reminder = f"<system-reminder>\n{told}\nBe brief.\n</system-reminder>"
    with life(tmp_path, up) as talk:
        talk.send([{"type": "text", "text": "Which port?"}, {"type": "text", "text": reminder}])
        eventually(lambda: len(talk.stored()) == 3)
        assert "5436" in talk.prompt()
        assert "5436" not in str(talk.stored())
        assert injected_text.MEMORY_PLACEHOLDER in talk.stored()[1]
        assert "Be brief." in talk.stored()[1]


def test_commands_are_not_part_of_the_conversation(tmp_path: Path, up: Upstream):
    with life(tmp_path, up) as talk:
        talk.ask("Good morning to you.")
        for command in ("/lore:status", "lore:remember Invoices are numbered by year.", "/lore:x"):
            talk.ask(command)
        talk.ask("Good night to you.")
        eventually(lambda: "Good night to you." in talk.stored())
        eventually(lambda: len(talk.stored()) >= 4)
        assert talk.stored() == [
            "Good morning to you.", "Understood.", "Good night to you.", "Understood.",
        ]  # fmt: skip


@pytest.mark.parametrize("is_wrapped", [True, False], ids=["in other words", "as it was answered"])
def test_client_summary_does_not_store_private_messages(
    tmp_path: Path, up: Upstream, is_wrapped: bool
):
    with life(tmp_path, up) as talk:
        talk.ask("Good morning to you.")
        # What is not stored by then never is.
        eventually(lambda: len(talk.stored()) == 2)
        talk.ask("/lore:amnesia on")
        talk.ask("The merger is on the ninth.")
        talk.ask("/lore:amnesia off")
        up.reply_with(ModelReply(Text("They said that the merger is on the ninth.")))
        talk.ask("CRITICAL: Respond with TEXT ONLY. Sum up what was said.")
        retold = talk.messages[-1]
        talk.messages.clear()
        if is_wrapped:
            talk.ask(
                "This session is being continued from a previous conversation that ran out of"
                " context. They said that the merger is on the ninth."
            )
        else:
            # Wait for what follows the answer: it is done in order.
            eventually(lambda: _has_unsaid(talk, 3))
            talk.messages += [{"role": "user", "content": "What did we do so far?"}, retold]
        talk.ask("What is for lunch?")
        eventually(lambda: "What is for lunch?" in talk.stored())
        assert "merger" not in " ".join(talk.stored())


def _has_unsaid(talk: Life, count: int) -> bool:
    with talk.memory.database.read() as db:
        return len(dialogue_state.find_excluded_entries(db, "s-1")) == count


def _ends_with(talk: Life, text: str) -> bool:
    return talk.stored()[-1].startswith(text) if talk.stored() else False


def test_private_messages_do_not_prevent_shortening(tmp_path: Path, up: Upstream):
    layers: list[int] = []
    with life(tmp_path, up, context_max_layer0_tokens=3_000, gateway_recall="off") as talk:
        for n in range(14):
            up.reply_with(ModelReply(Text(f"Part {n} is {'described at length here, ' * 60}done.")))
            talk.ask(f"Describe part {n} of the engine, please.")
            layers.append(int(talk.got.header("x-lore-layer")))
            eventually(partial(_ends_with, talk, f"Part {n} "))
            talk.memory.distill("s-1")
            if n == 1:
                talk.ask("/lore:amnesia on")
                talk.ask("The merger is on the ninth.")
                talk.ask("/lore:amnesia off")
        assert max(layers) in (1, 2, 3)
        assert "merger" not in talk.prompt()
        assert "not recorded, as the person wished. Turns: 1." in talk.prompt()


def test_turn_that_began_with_memory_continues_without(tmp_path: Path, up: Upstream):
    thinking = {"thinking": {"type": "adaptive"}, "tools": [{"name": "Read", "input_schema": {}}]}
    up.reply_with(
        ModelReply(Thought("Memory first."), Call("recall", {"query": "printing"})),
        ModelReply(Thought("Now the file."), Call("Read", {"path": "x"}, id="toolu_r")),
    )
    config = load({}, home=tmp_path).settings
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        plugin = MemoryPlugin(memory, PromptComposer(memory))
        with proxied(tmp_path, up.url, plugin=plugin) as gateway:
            talk = Life(memory, gateway, up)
            talk.ask("How do we print?", **thinking)
            result = {"type": "tool_result", "tool_use_id": "toolu_r", "content": "file"}
            talk.messages.append({"role": "user", "content": [result]})
            body = {**HELLO, **thinking, "messages": talk.messages}
            raw = json.dumps(body).encode()
            admitted = plugin.passthrough(ClientRequest("anthropic", PATH, "", {}, raw, 1_000_000))
            assert admitted.body is not None
            sent = json.loads(admitted.body)["messages"]
            assert [one["role"] for one in sent] == ["user", "assistant"] * 2 + ["user"]
            assert [one["type"] for one in sent[3]["content"]] == ["thinking", "tool_use"]
            assert gateway.ask(PATH, admitted.body, HEADERS).status == 200
        plugin.close()
