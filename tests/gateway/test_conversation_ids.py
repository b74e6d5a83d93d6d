"""A conversation without a name is known by its project and how it began, in every process."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from lore.gateway.apis import gemini
from lore.gateway.client_session import UNKNOWN_AGENT, ConversationIds, with_conversation_id
from lore.records import Block, ClientSession, Entry, Voice
from lore.text import memory_tags

HERE = "/code/almanac"


def entry(voice: Voice, text: str) -> Entry:
    return Entry(voice, (Block("text", len(text), text),), f"{voice}-{text}")


HELLO, HI, MORE = entry("user", "hello"), entry("assistant", "hi"), entry("user", "and now?")


def none_stored(names: Sequence[str], agent: str) -> str:
    del names, agent
    return ""


def all_stored(names: Sequence[str], agent: str) -> str:
    assert agent == UNKNOWN_AGENT
    return names[0]


def test_a_talk_goes_on_under_the_name_that_its_first_answer_gives_it():
    talks = ConversationIds(none_stored)
    first = talks.find_client_session([HELLO], UNKNOWN_AGENT, HERE)
    named = with_conversation_id(first, [HI])
    assert named is not None
    assert talks.find_client_session([HELLO, HI, MORE], UNKNOWN_AGENT, HERE) == named
    long = [HELLO, HI, MORE, entry("assistant", "fine"), entry("user", "good")]
    assert talks.find_client_session(long, UNKNOWN_AGENT, HERE) == named
    assert (named.first, named.agent) == (first, UNKNOWN_AGENT)


def test_the_same_words_in_another_project_are_another_talk():
    talks = ConversationIds(none_stored)
    first, other = (
        talks.find_client_session([HELLO], UNKNOWN_AGENT, HERE),
        talks.find_client_session([HELLO], UNKNOWN_AGENT, "/code/harbor"),
    )
    assert first.session != other.session
    assert with_conversation_id(first, [HI]) != with_conversation_id(other, [HI])


def test_a_request_that_is_sent_again_is_the_same_talk():
    talks = ConversationIds(none_stored)
    assert talks.find_client_session([HELLO], UNKNOWN_AGENT, HERE) == talks.find_client_session(
        [HELLO], UNKNOWN_AGENT, HERE
    )


def test_talks_of_the_same_first_words_part_at_their_answers():
    talks = ConversationIds(none_stored)
    talks.find_client_session([HELLO], UNKNOWN_AGENT, HERE)
    one = talks.find_client_session([HELLO, HI, MORE], UNKNOWN_AGENT, HERE)
    other = talks.find_client_session(
        [HELLO, entry("assistant", "good day"), MORE], UNKNOWN_AGENT, HERE
    )
    assert one.session != other.session
    assert one.began == other.began


def test_a_name_does_not_depend_on_what_a_process_remembers():
    before = with_conversation_id(
        ConversationIds(none_stored).find_client_session([HELLO], UNKNOWN_AGENT, HERE), [HI]
    )
    assert (
        ConversationIds(all_stored).find_client_session([HELLO, HI, MORE], UNKNOWN_AGENT, HERE)
        == before
    )


def test_talks_that_begin_with_the_same_examples_are_not_one():
    talks = ConversationIds(none_stored)
    shown = [entry("user", "2 + 2"), entry("assistant", "4")]
    one = talks.find_client_session([*shown, entry("user", "3 + 3")], UNKNOWN_AGENT, HERE)
    other = talks.find_client_session([*shown, entry("user", "5 + 5")], UNKNOWN_AGENT, HERE)
    assert one.session != other.session


def test_a_talk_that_nobody_knows_begins_where_it_is_first_heard():
    talks = ConversationIds(none_stored)
    first = talks.find_client_session([HELLO, HI, MORE], UNKNOWN_AGENT, HERE)
    assert not first.began
    answer = entry("assistant", "fine")
    goes_on = [HELLO, HI, MORE, answer, entry("user", "good")]
    assert talks.find_client_session(goes_on, UNKNOWN_AGENT, HERE) == with_conversation_id(
        first, [answer]
    )


def test_an_answer_is_known_by_its_marker_and_by_its_search():
    talks = ConversationIds(none_stored)
    first = talks.find_client_session([HELLO], UNKNOWN_AGENT, HERE)
    searched = [
        Entry("assistant", (*HI.blocks, Block("call", 3, "{}", "c1", "recall")), "a"),
        Entry("user", (Block("result", 3, "found", "c1"),), "b"),
        entry("assistant", "There it is."),
    ]  # fmt: skip
    marked = f"hi\n\n{memory_tags.search_mark('0123456789abcdef')}\n\nThere it is."
    seen = [HELLO, entry("assistant", marked), MORE]
    assert talks.find_client_session(seen, UNKNOWN_AGENT, HERE) == with_conversation_id(
        first, searched
    )


def calling(call_id: str, *, by_id: bool = True) -> Entry:
    call = Block("call", 12, '{"path":"a"}', call_id, "Read", by_id=by_id)
    return Entry("assistant", (call,), "key")


def test_talks_part_at_calls_that_are_alike_but_for_the_ids_that_the_provider_gave_them():
    talks = ConversationIds(none_stored)
    first = talks.find_client_session([HELLO], UNKNOWN_AGENT, HERE)
    one, other = (
        with_conversation_id(first, [calling("toolu_1")]),
        with_conversation_id(first, [calling("toolu_2")]),
    )
    assert one is not None
    assert other is not None
    assert one.session != other.session
    assert talks.find_client_session([HELLO, calling("toolu_1"), MORE], UNKNOWN_AGENT, HERE) == one


@pytest.mark.parametrize("id_of_client", [{}, {"id": "Read-1763-0"}])
def test_a_talk_with_gemini_is_known_by_calls_to_which_its_client_gives_ids(
    id_of_client: dict[str, str],
):
    def told(**id_: str) -> tuple[Entry, ...]:
        call = {"name": "Read", "args": {"path": "a"}, **id_}
        result = {"name": "Read", "response": {"output": "x"}, **id_}
        contents = [
            {"role": "user", "parts": [{"text": "hello"}]},
            {"role": "model", "parts": [{"functionCall": call}]},
            {"role": "user", "parts": [{"functionResponse": result}]},
        ]
        return gemini.parse_request(json.dumps({"contents": contents}).encode()).dialogue.entries

    talks = ConversationIds(none_stored)
    hello, answer, _ = told()
    named = with_conversation_id(talks.find_client_session([hello], UNKNOWN_AGENT, HERE), [answer])
    assert talks.find_client_session(told(**id_of_client), UNKNOWN_AGENT, HERE) == named


def test_a_request_without_an_answer_has_no_name_yet():
    first = ConversationIds(none_stored).find_client_session([HELLO], UNKNOWN_AGENT, HERE)
    assert with_conversation_id(first, []) is None


def test_a_session_with_a_name_keeps_it():
    named = ClientSession("s-1", "codex", HERE)
    assert with_conversation_id(named, [HI]) == named


def test_what_there_is_no_time_for_is_neither_looked_up_nor_remembered():
    def refuse(names: Sequence[str], agent: str) -> str:
        raise AssertionError(names, agent)

    talks = ConversationIds(refuse)
    talks.find_client_session([HELLO, HI, MORE], UNKNOWN_AGENT, HERE, from_cache=True)
    assert not talks.find_client_session(
        [HELLO, HI, MORE], UNKNOWN_AGENT, HERE, from_cache=True
    ).began


def test_only_so_many_talks_are_remembered():
    talks = ConversationIds(none_stored, max_size=3)
    for n in range(50):
        talks.find_client_session([entry("user", str(n))], UNKNOWN_AGENT, HERE)
    assert len(talks._known) == 3
