from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import BadReply, BudgetSpent, PromptTooLong, ProviderUnavailable, RateLimited
from lore.llm.chat import ChatRequest, Usage
from lore.llm.chat_summarizer import (
    INSIGHT_TOKENS,
    OVERVIEW_TOKENS,
    PAIRS_PER_REQUEST,
    THINKING_TOKENS,
)
from lore.records import LogLine, Verdict
from lore.text import tokens
from tests.llm.fakes import (
    CountingLedger,
    ScriptedChat,
    fact,
    facts,
    fragment,
    message_text,
    segment,
    summarizer,
)

TALK = segment(
    message_text(1, "Please move the export to 02:30."),
    message_text(2, "Done in deploy/cron.env.", "assistant"),
    message_text(3, "export started 02:30", "tool"),
)


def observe(text: str, limit_tokens: int = 500) -> tuple[LogLine, ...]:
    return summarizer(ScriptedChat(text)).observe(TALK, limit_tokens=limit_tokens).lines


def test_a_log_has_its_days_and_the_sources_of_each_line():
    lines = observe("[1] user: wants the export at 02:30\n[2,3] assistant: moved the export")
    assert lines == (
        LogLine("2026-05-13"),
        LogLine("user: wants the export at 02:30", (1,)),
        LogLine("assistant: moved the export", (2, 3)),
    )


@pytest.mark.parametrize(
    ("told", "sources"),
    [
        ("[1-2]", (1, 2)),
        ("[1–3]", (1, 2, 3)),
        ("- [2]", (2,)),
        ("[ 1 ; 2 ]", (1, 2)),
        ("[2, 77]", (2,)),
    ],
)
def test_source_numbers_are_parsed_in_every_notation(told, sources):
    text = "done in deploy/cron.env"
    assert observe(f"{told} {text}")[1] == LogLine(text, sources)


@pytest.mark.parametrize(
    "text",
    ["[77] user: said something", "Here is the log:", "[0-9999999] x", "[] x", "[1]", "[-] x"],
)
def test_a_line_without_an_existing_source_is_dropped(text):
    assert observe(text) == ()


def test_a_line_without_numbers_continues_the_previous_one():
    lines = observe("Sure, here it is:\n[2] assistant: done in deploy/cron.env:\n  done")
    assert lines[1:] == (
        LogLine("assistant: done in deploy/cron.env:", (2,)),
        LogLine("done", (2,)),
    )


def test_a_continuation_of_a_line_with_an_invented_number_is_dropped():
    assert observe("[77] user: said\nand more") == ()


def test_a_log_fits_its_token_limit():
    text = "\n".join(f"[1] user: wants the export at 02:30, case {n}" for n in range(500))
    lines = observe(text, limit_tokens=100)
    assert 0 < sum(tokens.count(line.text) for line in lines) <= 100


@given(st.text())
def test_any_answer_can_be_parsed_as_a_log(text):
    if text.strip():
        known = {1, 2, 3}
        assert all(set(line.sources) <= known for line in observe(text))


def test_an_empty_segment_sends_no_request():
    chat = ScriptedChat()
    assert summarizer(chat).observe(segment(), limit_tokens=10).lines == ()
    assert summarizer(chat).extract(segment()) == []
    assert not chat.asked


def test_a_condensed_log_has_lines_without_sources_and_fits():
    text = "Current state:\n2026-05-13 export runs at 02:30\n\n" + "Timeline:\n" + "x\n" * 500
    log = summarizer(ScriptedChat(text)).condense(["a"], "", limit_tokens=60)
    assert log.text.startswith("Current state:\n2026-05-13 export runs at 02:30\nTimeline:\nx")
    assert tokens.count(log.text) <= 60


def test_max_tokens_leaves_room_for_thinking():
    chat = ScriptedChat("[1] x")
    summarizer(chat).observe(TALK, limit_tokens=300)
    assert chat.asked[0].max_tokens == 300 + THINKING_TOKENS


def test_an_overview_is_clipped_to_its_token_limit():
    text = summarizer(ScriptedChat("long " * 5_000)).overview(fragment("a", "A"), [])
    assert tokens.count(text) <= OVERVIEW_TOKENS


def test_a_root_with_hundreds_of_children_still_fits_a_prompt():
    chat = ScriptedChat("Fresh.")
    children = [fragment(str(n), "word " * 2_000) for n in range(200)]
    summarizer(chat).overview(fragment("a", "A"), children)
    assert tokens.count(chat.asked[0].messages[0].text) < 25_000


def reflected(insight: str, *numbers: int) -> str:
    answer = json.dumps({"insight": insight, "from_items": numbers})
    cluster = [fragment(name, name) for name in "abc"]
    return summarizer(ScriptedChat(answer)).reflect(cluster)


def test_an_insight_must_follow_from_two_items():
    assert reflected("All fail on Mondays.", 1, 3) == "All fail on Mondays."
    assert reflected("All fail on Mondays.", 1) == ""
    assert reflected("All fail on Mondays.", 7, 8, 9) == ""
    assert reflected("", 1, 2) == ""
    assert tokens.count(reflected("word " * 2_000, 1, 2)) <= INSIGHT_TOKENS


def judged(*verdicts: tuple[int, str], newer: str = "user") -> list[Verdict | None]:
    answer = json.dumps({"verdicts": [{"pair": n, "verdict": v} for n, v in verdicts]})
    pair = (fragment("a", "8080"), fragment("b", "8443", newer))  # type: ignore[arg-type]
    return summarizer(ScriptedChat(answer)).judge([pair, pair])


def test_each_pair_gets_its_verdict():
    assert judged((2, "changes"), (1, "contradicts")) == ["contradicts", "changes"]


def test_a_pair_with_no_verdict_or_several_is_not_judged():
    assert judged((1, "changes")) == ["changes", None]
    assert judged((1, "changes"), (1, "agrees"), (9, "changes")) == [None, None]
    assert judged() == [None, None]


def test_a_less_trusted_fragment_contradicts_instead_of_changes():
    assert judged((1, "changes"), (2, "agrees"), newer="web") == ["contradicts", "agrees"]


def test_pairs_are_judged_ten_at_a_time():
    def all_change(ask: ChatRequest) -> str:
        pairs = ask.messages[0].text.count("newer:")
        return json.dumps({
            "verdicts": [{"pair": n + 1, "verdict": "changes"} for n in range(pairs)]
        })

    chat = ScriptedChat(by=all_change)
    pair = (fragment("a", "8080"), fragment("b", "8443"))
    assert summarizer(chat).judge([pair] * 23) == ["changes"] * 23
    assert [ask.messages[0].text.count("older:") for ask in chat.asked] == [
        PAIRS_PER_REQUEST
    ] * 2 + [3]


def test_every_call_is_reserved_and_settled_even_with_a_bad_answer():
    ledger = CountingLedger()
    summarizer(ScriptedChat("nonsense", facts()), ledger).extract(TALK)
    assert ledger.told == [("reserve", "extract"), ("settle", "extract")] * 2
    assert ledger.settled == [Usage(100, 10)] * 2


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (ProviderUnavailable("gone"), "release"),
        (PromptTooLong("long"), "release"),
        (KeyError("of a bug"), "release"),
        (ProviderUnavailable("late", billed=True), "settle"),
    ],
)
def test_every_reservation_is_settled_or_released(error, end):
    ledger = CountingLedger()
    with pytest.raises(type(error)):
        summarizer(ScriptedChat(error), ledger).extract(TALK)
    assert ledger.told == [("reserve", "extract"), (end, "extract")]


def test_a_failed_call_is_settled_with_its_usage():
    error = RateLimited("limit reached", retry_after_s=1e6)
    error.usage = Usage(500, 20)
    ledger = CountingLedger()
    with pytest.raises(RateLimited):
        summarizer(ScriptedChat(error), ledger).extract(TALK)
    assert ledger.settled == [Usage(500, 20)]


def test_a_spent_budget_sends_no_request():
    class Spent(CountingLedger):
        def reserve(self, cost):
            raise BudgetSpent(cost.kind)

    chat = ScriptedChat(facts())
    with pytest.raises(BudgetSpent):
        summarizer(chat, Spent()).extract(TALK)
    assert not chat.asked


def test_two_unusable_answers_raise_bad_reply():
    with pytest.raises(BadReply):
        summarizer(ScriptedChat("a", "b")).extract(TALK)


def test_the_summarizer_has_the_identity_of_its_chat_and_closes_it():
    chat = ScriptedChat()
    digesting = summarizer(chat)
    assert digesting.identity == "anthropic:claude-haiku-5-5"
    digesting.close()
    assert chat.closed


def test_extracts_have_the_ids_of_their_messages():
    listed = facts(fact(1, "The export is at 02:30.", sources=[1], importance="high"))
    (extract,) = summarizer(ScriptedChat(listed)).extract(TALK)
    assert (extract.sources, extract.importance) == (("id-1",), 0.9)
