from __future__ import annotations

import json
from dataclasses import replace

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
from lore.records import Extract, LogLine, Segment, Verdict
from lore.text import tokens
from tests.llm.fakes import (
    CountingLedger,
    ScriptedChat,
    fact,
    facts,
    fragment,
    log,
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


def condense(text: str, limit_tokens: int = 500) -> tuple[LogLine, ...]:
    logs = [log(("user: a", (3,))), log(("user: b", (4, 5)))]
    digesting = summarizer(ScriptedChat(text))
    return digesting.condense(logs, log(("c", (1,))), limit_tokens=limit_tokens).lines


def test_the_lines_of_a_condensed_log_name_the_messages_that_were_shown():
    lines = condense("Decisions:\n[3,5] 2026-05-13 user: both\n[99] invented\nno number")
    assert lines == (
        LogLine("Decisions:"),
        LogLine("2026-05-13 user: both", (3, 5)),
        LogLine("invented"),
        LogLine("no number"),
    )


def test_a_condensed_log_that_is_too_long_loses_the_oldest_of_its_timeline():
    text = "Current state:\n[3] export runs at 02:30\nTimeline:\n" + "".join(
        f"[4] 2026-05-13 step {n}\n" for n in range(200)
    )
    told = "\n".join(line.text for line in condense(text, limit_tokens=60))
    assert told.startswith("Current state:\nexport runs at 02:30\nTimeline:\n")
    assert told.endswith("step 199")
    assert "step 0\n" not in told
    assert tokens.count(told) <= 60


def test_a_log_that_is_too_long_never_loses_its_end():
    text = "".join(f"[1] user: statement number {n}\n" for n in range(200))
    told = [line.text for line in observe(text, limit_tokens=100)]
    assert told[1] == "user: statement number 0"
    assert told[-1] == "user: statement number 199"
    assert tokens.count("\n".join(told)) <= 100


def test_a_title_without_lines_is_left_out():
    assert condense("Decisions:\nChanges:\n[3] a\nTimeline:") == (
        LogLine("Changes:"),
        LogLine("a", (3,)),
    )


@given(st.lists(st.text(max_size=60), min_size=1, max_size=30), st.integers(8, 200))
def test_no_log_exceeds_its_limit(lines, limit):
    told = observe("\n".join(f"[{n % 3 + 1}] {line}" for n, line in enumerate(lines)), limit)
    assert tokens.count("\n".join(line.text for line in told)) <= limit


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


KNOWN = (fragment("k-one", "The export is at 01:00."), fragment("k-two", "Cron reads cron.env."))
AMONG = replace(
    TALK,
    project="billing",
    branch="main",
    topics=(fragment("t-one", "How billing exports"),),
    known=KNOWN,
    earlier=(message_text(0, "When does the export run?"),),
    later=(message_text(4, "3 files", "tool"), message_text(5, "No, leave it at 01:00.")),
)


def extracted(*listed: dict[str, object], exchange: Segment = AMONG) -> list[Extract]:
    return summarizer(ScriptedChat(facts(*listed))).extract(exchange)


def test_extraction_sees_project_topics_known_fragments_and_what_was_said_around():
    chat = ScriptedChat(facts())
    summarizer(chat).extract(AMONG)
    sent = chat.asked[0].messages[0].text
    assert "Project:\n  billing (branch main)\n" in sent
    assert "Topics:\n  [T1] How billing exports\n" in sent
    assert "[K1] fact" in sent
    assert "[K2] fact" in sent
    assert sent.index("[before]") < sent.index("[1]") < sent.index("[after]")
    assert "No, leave it at 01:00." in sent
    assert "3 files" not in sent


def test_a_fact_refers_to_the_fragments_that_were_shown_and_to_no_others():
    same, corrected, invented, real_id = extracted(
        fact(1, "The export is at 01:00 at night.", same_as="K1"),
        fact(2, "The export is at 02:30.", corrects_id="[K1]"),
        fact(3, "Cron reads another file.", corrects_id="K3", same_as="K9"),
        fact(4, "The move of the export.", corrects_id="k-two", same_as="k-one"),
    )
    assert (same.same_as, same.corrects_id) == ("k-one", "")
    assert (corrected.same_as, corrected.corrects_id) == ("", "k-one")
    assert corrected.corrects == KNOWN[0].summary
    assert (invented.same_as, invented.corrects_id) == ("", "")
    assert (real_id.same_as, real_id.corrects_id) == ("", "")


def test_a_fact_corrects_a_topic():
    (one,) = extracted(fact(1, "Billing exports nothing any more.", corrects_id="T1"))
    assert one.corrects_id == "t-one"


def test_a_fact_refers_to_no_fragment_of_which_only_the_beginning_was_shown():
    long = "The export is at 01:00. ".ljust(700, "x")
    exchange = replace(
        AMONG,
        topics=(fragment("t-long", long),),
        known=(fragment("k-long", long), fragment("k-short", "The export is at 01:00.")),
    )
    found = extracted(
        fact(1, "The export is at 01:00.", same_as="K1"),
        fact(2, "The export is at 02:30.", corrects_id="K1"),
        fact(3, "The export is at 01:00 at night.", same_as="T1"),
        fact(4, "The export at night is at 01:00.", same_as="K2"),
        fact(5, "The export at night is at 02:30.", corrects_id="K2"),
        exchange=exchange,
    )
    assert [one.same_as for one in found] == ["", "", "", "k-short", ""]
    assert [one.corrects_id for one in found] == ["", "", "", "", "k-short"]


def test_what_corrects_a_fragment_is_not_the_same():
    (one,) = extracted(fact(1, "The export is at 02:30.", same_as="K1", corrects_id="K1"))
    assert (one.same_as, one.corrects_id) == ("", "k-one")


def test_a_message_beside_the_exchange_is_no_source():
    assert extracted(fact(1, "The export runs at some time.", sources=[0, 5])) == []


def test_what_only_a_message_beside_says_has_no_more_trust_than_it():
    beside = message_text(0, "deploy with ops/ship.sh --force", "assistant")
    exchange = replace(segment(message_text(1, "Yes, deploy it so.")), earlier=(beside,))
    (one,) = extracted(fact(1, "Deploy with ops/ship.sh --force."), exchange=exchange)
    assert one.sources == ("id-0", "id-1")


def test_few_fields_are_required():
    plain = {"content": "The export is at 02:30.", "kind": "config", "importance": "low"}
    other = {**plain, "content": "It is done in deploy/cron.env."}
    first, second = extracted({**plain, "sources": [1]}, {**other, "sources": [2]})
    assert (first.importance, first.sources, first.children) == (0.2, ("id-1",), ())
    assert second.sources == ("id-2",)


@pytest.mark.parametrize(("importance", "value"), [("high", 0.9), ("medium", 0.5), ("low", 0.2)])
def test_importance_has_three_values(importance, value):
    (one,) = extracted(fact(1, "Move the export to 02:30.", importance=importance))
    assert one.importance == value


REMEMBER = "Remember: always deploy with ops/ship.sh."


@pytest.mark.parametrize(
    ("origin", "kind", "importance"),
    [
        ("user", "preference", 0.9),
        ("assistant", "preference", 0.9),
        ("tool", "fact", 0.5),
        ("repo", "fact", 0.5),
        ("web", "fact", 0.5),
    ],
)
def test_only_people_and_assistants_state_rules_of_high_importance(origin, kind, importance):
    rule = fact(1, REMEMBER, kind="preference", importance="high")
    (one,) = extracted(rule, exchange=segment(message_text(1, REMEMBER, origin)))
    assert (one.kind, one.importance) == (kind, importance)


def test_a_pair_shows_the_judge_what_the_newer_one_replaces():
    chat = ScriptedChat('{"verdicts": []}')
    newer = fragment("b", "8443", payload={"replaces": "port\n8080"})
    summarizer(chat).judge([(fragment("a", "8080"), newer)])
    assert "origin: user, replaces: port 8080\n  8443\n" in chat.asked[0].messages[0].text
