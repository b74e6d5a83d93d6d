"""Logs of segments and condensed logs, written by rules."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.llm.offline import log_writer
from lore.llm.offline.log_writer import (
    MAX_CHARS,
    SECTIONS,
    condense,
    observe,
    split_clauses,
    weigh_words,
)
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.records import Segment
from lore.text import tokens
from tests.digest.conversations import TOPICS, message_text, numbered_sentence
from tests.fakes import NOON
from tests.llm.fakes import log

talk = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "tool", "Mara"]), st.text(max_size=400)),
    max_size=12,
)


LINES = st.sampled_from([
    "We always run make check before a release.", "The cache in auth/cache.py has no TTL.",
    "I moved the press to the pier server on 4 May.", "Then the build failed with exit code 3.",
    "The almanac is printed from the pier branch, because the press is there.",
    "$ pytest -q tests/press", "Use ruff instead of flake8 from now on.", "Ok, done.",
])  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant", "Mara"]), st.lists(LINES, max_size=5)),
        max_size=8,
    ),
    st.integers(5, 200),
)
def test_clauses_are_chosen_by_value_per_cost(spoken: list[tuple[str, list[str]]], limit: int):
    said = [message_text(i, " ".join(lines), voice=v) for i, (v, lines) in enumerate(spoken)]
    segment = Segment("s", tuple(said))
    candidates = log_writer._candidates(segment)
    values, left = log_writer._Values(candidates, segment), limit - 4.0
    best_first: list[log_writer._Candidate] = []
    remaining = list(candidates)
    while remaining := [one for one in remaining if one.clause.text not in {
        chosen.clause.text for chosen in best_first
    }]:  # fmt: skip
        fitting = [one for one in remaining if values.cost(one) <= left and values.of(one) > 0]
        if not fitting:
            break
        best = max(fitting, key=values.of)
        best_first.append(best)
        left -= values.cost(best)
        values.use(best)
    assert log_writer._choose_clauses(candidates, segment, limit) == best_first


@given(talk, st.integers(0, 400))
def test_a_log_keeps_its_limit_and_the_order_of_the_conversation(
    spoken: list[tuple[str, str]], limit: int
):
    segment = Segment(
        "s", tuple(message_text(i, text, voice=v) for i, (v, text) in enumerate(spoken))
    )
    log = observe(segment, limit_tokens=limit)
    assert not log.lines or tokens.count(log.text) <= limit
    ordinals = [line.sources[0] for line in log.lines if line.sources]
    assert ordinals == sorted(set(ordinals))
    assert observe(segment, limit_tokens=limit) == log


@given(st.lists(st.integers(0, 31), min_size=1, max_size=12, unique=True), st.integers(60, 400))
def test_an_informative_conversation_is_quoted_verbatim(told_of: list[int], limit: int):
    segment = Segment(
        "s", tuple(message_text(place, numbered_sentence(i)) for place, i in enumerate(told_of))
    )
    log = observe(segment, limit_tokens=limit)
    quoted = [line for line in log.lines if line.sources]
    assert quoted
    assert tokens.count(log.text) <= limit
    for line in quoted:
        source = segment.messages[line.sources[0]].text
        clauses = line.text.partition(": ")[2].split("; ")
        assert all(clause.rstrip("…") in source for clause in clauses)


def test_a_line_says_who_spoke_and_quotes_what_matters_word_for_word():
    segment = Segment(
        "s",
        (
            message_text(0, "Hi there! The berth in Bergen costs 40 crowns a night.", voice="Mara"),
            message_text(1, "Great, thanks!", voice="Ole"),
            message_text(2, "From now on we pay in advance with card 'harbor-7'.", voice="Ole"),
        ),
    )
    log = observe(segment, limit_tokens=80)
    assert [(line.text, line.sources) for line in log.lines] == [
        ("2026-05-13", ()),
        ("Mara: The berth in Bergen costs 40 crowns a night", (0,)),
        ("Ole: From now on we pay in advance with card 'harbor-7'", (2,)),
    ]


def test_each_day_precedes_its_lines():
    late = NOON + timedelta(days=2)
    segment = Segment("s", (message_text(0), message_text(1, at=late)))
    texts = [line.text for line in observe(segment, limit_tokens=200).lines]
    assert [text for text in texts if text[:4] == "2026"] == ["2026-05-13", "2026-05-15"]


def test_decisions_are_preferred_to_small_talk_within_a_small_limit():
    chat = [message_text(i, f"That sounds like quite a lovely plan number {i}") for i in range(8)]
    chat.insert(
        4, message_text(9, "We decided to switch berth 12 to nylon ropes, never hemp again")
    )
    log = OfflineSummarizer().observe(Segment("s", tuple(chat)), limit_tokens=45)
    assert "switch berth 12 to nylon ropes" in log.text


def test_the_same_words_are_not_repeated():
    chat = [message_text(i, "The lamp of the lighthouse is broken since Monday") for i in range(6)]
    log = observe(Segment("s", tuple(chat)), limit_tokens=200)
    assert len(log.lines) == 2


LOGS = (
    "2026-05-13\nuser: We decided to pay for berths in advance\nuser: The lamp is broken",
    "2026-05-14\nuser: The crew switched from hemp to nylon ropes\nassistant: The berth is paid",
)

STATED = tuple(text.format(i=i) for i, text in enumerate(TOPICS))


@given(st.lists(st.text(max_size=300), max_size=6), st.text(max_size=300), st.integers(0, 300))
def test_a_condensed_log_keeps_its_limit(logs: list[str], former: str, limit: int):
    log = condense(logs, former, limit_tokens=limit)
    assert not log.lines or tokens.count(log.text) <= limit


@given(st.lists(st.sampled_from(STATED), min_size=1, unique=True), st.integers(60, 300))
def test_a_condensed_log_has_only_lines_of_its_inputs(stated: list[str], limit: int):
    log = condense([f"2026-05-13\nuser: {text}" for text in stated], "", limit_tokens=limit)
    told = [line.text for line in log.lines if not line.text.endswith(":")]
    assert told
    assert tokens.count(log.text) <= limit
    assert set(told) <= {f"2026-05-13 user: {text}" for text in stated}


def test_with_room_for_all_every_line_occurs_once():
    logs = [f"2026-05-13\nuser: {text}" for text in STATED]
    told = condense(logs, "", limit_tokens=2_000).text.split("\n")
    assert sorted(line for line in told if not line.endswith(":")) == sorted(
        f"2026-05-13 user: {text}" for text in STATED
    )


def test_decisions_and_changes_stand_in_sections_of_their_own_with_their_days():
    text = OfflineSummarizer().condense([log(one) for one in LOGS], log(), limit_tokens=200).text
    assert "Decisions:\n2026-05-13 user: We decided to pay for berths in advance" in text
    assert "Changes:\n2026-05-14 user: The crew switched from hemp to nylon ropes" in text
    assert [line.rstrip(":") for line in text.split("\n") if line.endswith(":")] == [
        section for section in SECTIONS if f"{section}:" in text
    ]


def test_a_former_log_keeps_its_sections_and_days():
    former = condense(LOGS, "", limit_tokens=200).text
    again = condense(["2026-05-20\nuser: The lamp is mended"], former, limit_tokens=300).text
    assert "Decisions:\n2026-05-13 user: We decided to pay for berths in advance" in again
    assert "2026-05-20 user: The lamp is mended" in again


def test_condensing_to_a_small_limit_keeps_decisions_longest():
    log = condense(LOGS, "", limit_tokens=36)
    assert "decided" in log.text or "switched" in log.text
    assert "berth is paid" not in log.text


def texts(text: str, *, person: bool = True) -> list[str]:
    return [clause.text for clause in split_clauses(text, person=person)]


def test_greetings_headings_rules_and_code_are_left_out():
    said = (
        "Sure!\n\n## Steps\n\n---\n\n```python\nport = 8080\n```\nThe harbor listens on port 3207."
    )
    assert texts(said) == ["The harbor listens on port 3207."]


def test_markup_and_request_phrases_are_stripped():
    said = "- **Could you please help me** to migrate `src/db.py` to PostgreSQL 18?"
    assert texts(said) == ["migrate `src/db.py` to PostgreSQL 18?"]


@pytest.mark.parametrize(
    "said",
    [
        "`__init__.py` re-exports __all__ and src/__main__.py calls it",
        "The parser returns Vec<T> or Option<Box<dyn Error>> for each record",
        "--dry-run and -v are read before the config file is opened",
        "#b5bd68 is the green of the theme, #123 is the issue about it",
        "1.5 GB of memory are used by *args and **kwargs in call(*args, **kwargs)",
        "Globs such as src/**/*.py and *.test.ts are matched by the watcher",
        "`git commit -m 'a: b; c'` failed because the hook -- pre-commit -- is missing",
        "The product `a*b*c` needs 2*n bytes with snake_case_name and _private_",
    ],
)
def test_names_code_tags_flags_and_numbers_stay_to_the_byte(said: str):
    for listed in (said, f"- {said}", f"2. {said}", f"## {said}"):
        assert texts(listed, person=False) == [said]


def test_markdown_emphasis_and_tags_around_a_line_are_left_out():
    said = (
        "<note>\n**The *red* boat** lies at `pier_4`\n"
        "<summary>Worker 7 has finished</summary>\n</note>"
    )
    assert texts(said) == ["The red boat lies at `pier_4`", "Worker 7 has finished"]


@pytest.mark.parametrize(
    "said",
    [
        "Option B: switch the message queue to Redis, because it is faster, and drop RabbitMQ",
        "We could switch the message queue of the harbor to Redis, and drop RabbitMQ afterwards",
        "Should I switch the message queue of the harbor to Redis, or should we keep RabbitMQ?",
        "If the harbor server is slow again on Monday, we switch its message queue to Redis",
    ],
)
def test_no_part_of_a_proposal_or_a_condition_stands_alone(said: str):
    [clause] = split_clauses(said, person=False)
    assert (clause.text, clause.is_option) == (said, True)
    log = condense(
        [f"2026-05-13\nassistant: {said}", "2026-05-14\nuser: The lamp is on"], "", limit_tokens=300
    )
    assert f"Timeline:\n2026-05-13 assistant: {said}" in log.text


def test_the_items_of_a_list_of_options_are_marked():
    said = (
        "We have two options:\n- Switch the queue to Redis\n- Keep RabbitMQ with a mirror\n\n"
        "Done today:\n- Fixed the lamp of pier 4"
    )
    assert texts(said, person=False) == [
        "option: Switch the queue to Redis",
        "option: Keep RabbitMQ with a mirror",
        "Fixed the lamp of pier 4",
    ]


def retracting(*said: str) -> str:
    talk = [message_text(i, text, voice="assistant") for i, text in enumerate(said)]
    return observe(Segment("s", tuple(talk)), limit_tokens=400).text


def test_what_is_taken_back_later_is_marked():
    log = retracting(
        "The deadlock is caused by the connection pool of the harbor server.",
        "The lamp of pier 4 is mended.",
        "I was wrong: the connection pool of the harbor server is not the cause of the deadlock.",
    )
    assert "retracted: The deadlock is caused by the connection pool" in log
    assert log.count("retracted: ") == 1


def test_a_change_that_is_reverted_is_marked():
    log = retracting(
        "I raised the timeout of the harbor server to 90 s.",
        "That did not help, so I reverted the timeout of the harbor server.",
    )
    assert "retracted: I raised the timeout of the harbor server to 90 s" in log


def test_the_current_state_is_that_of_the_last_log():
    logs = (
        "2026-05-13\nuser: The build is broken on main",
        "2026-05-14\nassistant: The build is green on main now",
    )
    former = "Current state:\n2026-05-12 user: The build is slow"
    text = condense(logs, former, limit_tokens=300).text
    assert text.startswith("Current state:\n2026-05-14 assistant: The build is green on main now\n")
    assert (
        "Timeline:\n2026-05-12 user: The build is slow\n2026-05-13 user: The build is broken"
        in text
    )


def test_a_line_that_is_retracted_in_a_later_log_is_marked_when_condensed():
    logs = (
        "2026-05-13\nassistant: The deadlock is caused by the connection pool of the server",
        "2026-05-14\nassistant: I was wrong, the deadlock is not caused by the connection pool",
    )
    text = condense(logs, "", limit_tokens=300).text
    assert "assistant: retracted: The deadlock is caused" in text


def test_a_long_sentence_is_split_verbatim():
    said = (
        "We decided to keep SQLite for the laptop, because harbor servers sleep at night,"
        " but PostgreSQL serves the team on harbor-2 with pgvector 0.8.5"
    )
    found = texts(said)
    assert len(found) == 3
    assert all(piece in said for piece in found)


def test_decisions_errors_and_lasting_instructions_count_more():
    def bonus(said: str) -> float:
        return split_clauses(said, person=True)[0].bonus

    plain = bonus("The red boat lies beside pier four")
    assert bonus("We switched the boat to nylon ropes") > plain
    assert bonus("The build failed with ImportError in harbor") > plain
    assert bonus("Always paint boats before the winter storms") > plain


def test_commands_and_result_lines_of_tools_are_kept():
    said = (
        "[Bash] uv run pytest -q tests/store\n[result] collected\nE   KeyError: 'berth'\n1 failed"
    )
    found = split_clauses(said, person=False)
    assert [clause.text for clause in found] == [
        "[Bash] uv run pytest -q tests/store",
        "E   KeyError: 'berth'",
        "1 failed",
    ]
    assert all(clause.is_tool_line for clause in found)


def test_code_in_the_output_of_a_tool_is_no_result():
    said = (
        "[result] cat src/app.ts\n"
        "throw new TypeError('not found')\n"
        "   12→    if err != nil { return err }\n"
        "console.error('failed', error)\n"
        "[lint] $ golangci-lint run ./...\n"
        "src/app.ts(3,5): error TS2304: Cannot find name 'foo'."
    )
    found = split_clauses(said, person=False, is_output=True)
    assert [clause.text for clause in found] == [
        "src/app.ts(3,5): error TS2304: Cannot find name 'foo'."
    ]


def test_numbers_names_and_identifiers_weigh_more_than_words_that_say_little():
    weights = weigh_words("please use port 3207 of harbor_server near Bergen town")
    assert weights["3207"] > weights["town"] > weights["use"]
    assert weights["harbor"] > weights["town"]
    assert weights["bergen"] > weights["town"]


@given(st.text(max_size=2_000))
def test_any_text_is_split_into_short_clauses(said: str):
    assert all(0 < len(clause.text) <= MAX_CHARS + 1 for clause in split_clauses(said, person=True))


def test_a_short_order_or_question_of_a_person_has_a_line():
    said = ("did you push?", "check again", "Great, thanks!", "hello", "ok")
    segment = Segment("s", tuple(message_text(i, text) for i, text in enumerate(said)))
    lines = [line.text.partition(": ")[2] for line in observe(segment, limit_tokens=200).lines]
    assert lines[1:] == ["did you push?", "check again"]


def test_a_condensed_log_keeps_what_the_person_asked_for():
    work = "\n".join(
        f"assistant: We decided to switch berth {i} to nylon ropes, since harbor-{i} broke"
        for i in range(40)
    )
    text = condense(
        [f"2026-05-13\nuser: Mend the lamp\n{work}\nuser: check again\n{work}"],
        "",
        limit_tokens=300,
    ).text
    assert "user: Mend the lamp" in text
    assert "user: check again" in text
    assert "harbor-" in text
