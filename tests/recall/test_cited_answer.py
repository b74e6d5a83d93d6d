"""Ask: one answer with citations, quoted offline or written by a chat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lore.errors import BudgetSpent, LoreError, ProviderUnavailable
from lore.memory import Memory
from lore.recall.cited_answer import (
    MAX_QUOTED,
    NOTHING,
    QUOTED_MARGIN,
    UNCLEAR,
    Material,
    compose,
    select_quotable,
)
from lore.records import OUT_OF_DATE, Draft, Hit
from lore.settings import Settings, load
from tests.fakes import NOON, FakeEmbedder, FixedClock
from tests.llm.fakes import CountingLedger, ScriptedChat, summarizer
from tests.recall.talk import say

DEPLOY = "We deploy with the blue green script in ops/deploy.sh"
FILLER = [f"Note {i}: the {word} was fine" for i, word in enumerate("tea lamp door chair".split())]
UNKNOWN = "zxqv blorf wubnar quatlorp vexgri muptok norskee jibplim tea?"


def hit(text: str, score: float, why: str = "keywords #1") -> Hit:
    return Hit(text, "message", text, "", score, why, NOON, 1)


def reply(*sentences: tuple[str, list[int]]) -> str:
    return json.dumps({"sentences": [{"text": t, "from_items": n} for t, n in sentences]})


@pytest.fixture
def talked(memory: Memory) -> Memory:
    """Return a memory in which somebody says how deploys go."""
    say(memory, "s", *FILLER, DEPLOY, project="/code/harbor", title="Release day")
    return memory


def use_chat(memory: Memory, *script: str | Exception) -> tuple[ScriptedChat, CountingLedger]:
    chat, ledger = ScriptedChat(*script), CountingLedger()
    memory.context.summarizer = summarizer(chat, ledger)
    return chat, ledger


def test_the_best_passage_is_quoted_with_its_source(talked: Memory):
    result = talked.search.ask("how do we deploy?")
    cited = result.citations[0]
    assert result.text.split("\n")[0] == f"“{DEPLOY}” [1]"
    assert (cited.number, cited.text, cited.said_by) == (1, DEPLOY, "user")
    assert (cited.project, cited.title) == ("harbor", "Release day")
    assert f"{cited.created_at:%Y-%m-%d}" == "2026-05-13"
    assert cited.id.startswith(cited.short_id)
    assert result.strength in ("strong", "likely", "weak")
    assert (result.written_by, result.notice, result.nearest) == ("offline", "", None)


def test_a_weak_answer_says_so_and_is_short(talked: Memory):
    long = "The harbour opens at nine. " * 40 + "Deploys go by the blue script. " + "Rain. " * 200
    material = Material((hit(long, 1.0),), (hit(long, 1.0),), "weak")
    with talked.context.database.read() as db:
        result = compose(db, "how do deploys go?", material, None)
    first, quoted = result.text.split("\n", 1)
    assert first == UNCLEAR
    assert "blue script" in quoted
    assert len(quoted) < len(long) / 4
    assert result.strength == "weak"


def test_an_unanswered_question_is_refused_with_the_nearest_passage(talked: Memory):
    result = talked.search.ask(UNKNOWN)
    assert (result.text, result.citations, result.strength) == (NOTHING, (), "none")
    assert result.nearest is not None
    assert "tea" in result.nearest.text


def test_an_empty_memory_has_no_nearest_passage(memory: Memory):
    result = memory.search.ask("how do we deploy?")
    assert (result.text, result.strength, result.nearest) == (NOTHING, "none", None)


def test_a_fragment_is_cited_with_its_session_and_text_of_others_is_marked(memory: Memory):
    say(memory, "s", "hello", title="Reading the manual")
    (session,) = memory.sessions()
    memory.knowledge.store_all([
        Draft("The tide gauge speaks Modbus on port 502", session=session.id, origin="web"),
    ])  # fmt: skip
    (cited,) = memory.search.ask("which port has the tide gauge?").citations
    assert (cited.title, cited.said_by) == ("Reading the manual", "web")


def test_others_are_quoted_only_if_they_clearly_answer_too():
    hits = [hit("a", 5.0), hit("b", 5.0 - QUOTED_MARGIN), hit("c", 5.0 - QUOTED_MARGIN - 0.1)]
    assert [one.text for one in select_quotable(hits)] == ["a", "b"]
    many = [hit(text, 5.0) for text in "abcdef"]
    assert len(select_quotable(many)) == MAX_QUOTED
    assert select_quotable([]) == []


def test_the_same_text_is_quoted_once():
    hits = [hit("Deploys go out on Tuesdays.", 5), hit("deploys  go out\non Tuesdays", 5)]
    assert select_quotable(hits) == hits[:1]


def test_what_holds_now_is_quoted_first():
    hits = [hit("port 8080", 5, OUT_OF_DATE), hit("port 8443", 4)]
    assert [one.text for one in select_quotable(hits)] == ["port 8443", "port 8080"]


def replace_port(memory: Memory) -> None:
    """Store a message whose fragment two newer ones superseded in turn."""
    (said, _) = say(memory, "s", "Harbor listens on port 8080", "Fine.")
    (session,) = memory.sessions()
    drafts = [
        Draft("Harbor listens on port 8080", session=session.id, source_messages=(said,)),
        Draft("Since June everything goes through 8443"),
        Draft("Since July everything goes through 9443"),
    ]
    first, second, third = memory.knowledge.store_all(drafts)
    memory.knowledge.supersede(first, second)
    memory.knowledge.supersede(second, third)


def test_an_answer_says_what_replaced_what(memory: Memory):
    replace_port(memory)
    result = memory.search.ask("on which port does harbor listen?")
    assert result.text == (
        "“Since July everything goes through 9443” [1]\n"
        "“Harbor listens on port 8080” [2] (out of date, replaced by [1])"
    )
    assert [cited.is_outdated for cited in result.citations] == [False, True]


def test_a_rule_that_was_taken_back_is_named_out_of_date(memory: Memory):
    rule = "From now on we run the tests with make check, on the dev server."
    back = (
        "From now on we run the tests with just check, no longer with make check on the dev server."
    )
    say(memory, "s", rule, at=NOON - timedelta(days=2))
    say(memory, "t", back, at=NOON - timedelta(days=1))
    result = memory.search.ask("how do we run the tests?")
    assert result.text == f"“{back}” [1]\n“{rule}” [2] (out of date, replaced by [1])"


def test_a_chat_writes_the_answer_and_every_sentence_is_cited(talked: Memory):
    answer = reply(("Run ops/deploy.sh. It is blue green [7].", [1]), ("Trust me.", []))
    chat, ledger = use_chat(talked, answer)
    result = talked.search.ask("how do we deploy?")
    assert result.text == "Run ops/deploy.sh. [1] It is blue green. [1]"
    assert [cited.text for cited in result.citations] == [DEPLOY]
    assert result.written_by == chat.identity
    assert ledger.told == [("reserve", "ask"), ("settle", "ask")]
    (request,) = chat.asked
    assert f"\n  {DEPLOY}" in request.messages[0].text
    assert request.messages[0].text.endswith(
        "\n  how do we deploy?\n\nAnswer from the record alone.\n"
    )


def test_citations_are_numbered_in_the_order_of_the_answer(talked: Memory):
    say(talked, "t", "Deploys with the blue green script wait for the tide")
    use_chat(talked, reply(("It waits.", [2]), ("So it is.", [1, 2, 99])))
    result = talked.search.ask("how do we deploy with the script?")
    assert result.text == "It waits. [1] So it is. [2][1]"
    assert [cited.number for cited in result.citations] == [1, 2]


def test_a_chat_may_refuse(talked: Memory):
    use_chat(talked, reply())
    result = talked.search.ask("how do we deploy?")
    assert (result.text, result.strength, result.citations) == (NOTHING, "none", ())
    assert result.nearest is not None


def test_a_question_without_hits_is_not_sent(talked: Memory):
    chat, _ = use_chat(talked)
    assert talked.search.ask(UNKNOWN).strength == "none"
    assert not chat.asked


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (ProviderUnavailable("Nobody answers."), "Nobody answers."),
        (BudgetSpent("All spent.", until=NOON), "All spent."),
        (reply(("I made this up.", [99])), "without citing"),
    ],
)
def test_a_failing_chat_is_replaced_by_quotations(
    talked: Memory, outcome: str | LoreError, reason: str
):
    use_chat(talked, outcome)
    result = talked.search.ask("how do we deploy?")
    assert result.text.startswith(f"“{DEPLOY}” [1]")
    assert result.written_by == "offline"
    assert reason in result.notice
    assert "quoted from memory" in result.notice


def test_a_chat_sees_what_is_out_of_date_and_what_replaced_it(memory: Memory):
    replace_port(memory)
    chat, _ = use_chat(memory, reply(("It is 9443.", [1])))
    memory.search.ask("on which port does harbor listen?")
    sent = chat.asked[0].messages[0].text
    assert "OUT OF DATE)\n  Harbor listens on port 8080" in sent
    assert "(origin: user)\n  Since July everything goes through 9443" in sent


def test_secrets_in_the_answer_of_a_chat_are_redacted(talked: Memory):
    use_chat(talked, reply(("The key is sk-ant-api03-" + "Zx9" * 31 + "AA.", [1])))
    assert "Zx9Zx9" not in talked.search.ask("how do we deploy?").text


@pytest.fixture
def without_key(tmp_path: Path) -> Iterator[Memory]:
    """Return a memory whose chosen chat has no key."""
    config = Settings(home=tmp_path, chat_provider="anthropic")
    with Memory.open(config=config, embedder=FakeEmbedder(), now=FixedClock()) as memory:
        yield memory


def test_a_chat_that_cannot_be_used_is_a_notice(without_key: Memory):
    say(without_key, "s", *FILLER, DEPLOY)
    result = without_key.search.ask("how do we deploy?")
    assert result.text.startswith(f"“{DEPLOY}” [1]")
    assert result.notice


def test_a_key_in_the_environment_chooses_no_chat(tmp_path: Path):
    config = load({"ANTHROPIC_API_KEY": "sk-ant-key"}, home=tmp_path).settings
    with Memory.open(config=config, embedder=FakeEmbedder(), now=FixedClock()) as memory:
        say(memory, "s", DEPLOY)
        assert memory.search.ask("how do we deploy?").written_by == "offline"
        assert memory.context.summarizer is None
