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


def test_conversation_keeps_the_id_of_its_first_response():
    talks = ConversationIds(none_stored)
    first = talks.find_client_session([HELLO], UNKNOWN_AGENT, HERE)
    named = with_conversation_id(first, [HI])
    assert named is not None
    assert talks.find_client_session([HELLO, HI, MORE], UNKNOWN_AGENT, HERE) == named
    long = [HELLO, HI, MORE, entry("assistant", "fine"), entry("user", "good")]
    assert talks.find_client_session(long, UNKNOWN_AGENT, HERE) == named
    assert (named.first, named.agent) == (first, UNKNOWN_AGENT)


def test_same_opening_in_another_project_is_another_conversation():
    talks = ConversationIds(none_stored)
    first, other = (
        talks.find_client_session([HELLO], UNKNOWN_AGENT, HERE),
        talks.find_client_session([HELLO], UNKNOWN_AGENT, "/code/harbor"),
    )
    assert first.session != other.session
    assert with_conversation_id(first, [HI]) != with_conversation_id(other, [HI])


def test_repeated_request_is_the_same_conversation():
    talks = ConversationIds(none_stored)
    assert talks.find_client_session([HELLO], UNKNOWN_AGENT, HERE) == talks.find_client_session(
        [HELLO], UNKNOWN_AGENT, HERE
    )


def test_conversations_with_the_same_opening_differ_by_response():
    talks = ConversationIds(none_stored)
    talks.find_client_session([HELLO], UNKNOWN_AGENT, HERE)
    one = talks.find_client_session([HELLO, HI, MORE], UNKNOWN_AGENT, HERE)
    other = talks.find_client_session(
        [HELLO, entry("assistant", "good day"), MORE], UNKNOWN_AGENT, HERE
    )
    assert one.session != other.session
    assert one.began == other.began


def test_conversation_id_does_not_depend_on_the_process():
    before = with_conversation_id(
        ConversationIds(none_stored).find_client_session([HELLO], UNKNOWN_AGENT, HERE), [HI]
    )
    assert (
        ConversationIds(all_stored).find_client_session([HELLO, HI, MORE], UNKNOWN_AGENT, HERE)
        == before
    )


def test_conversations_with_the_same_examples_are_distinct():
    talks = ConversationIds(none_stored)
    shown = [entry("user", "2 + 2"), entry("assistant", "4")]
    one = talks.find_client_session([*shown, entry("user", "3 + 3")], UNKNOWN_AGENT, HERE)
    other = talks.find_client_session([*shown, entry("user", "5 + 5")], UNKNOWN_AGENT, HERE)
    assert one.session != other.session


def test_unknown_conversation_starts_with_its_first_request():
    talks = ConversationIds(none_stored)
    first = talks.find_client_session([HELLO, HI, MORE], UNKNOWN_AGENT, HERE)
    assert not first.began
    answer = entry("assistant", "fine")
    goes_on = [HELLO, HI, MORE, answer, entry("user", "good")]
    assert talks.find_client_session(goes_on, UNKNOWN_AGENT, HERE) == with_conversation_id(
        first, [answer]
    )


def test_response_has_the_same_fingerprint_with_marker_or_call():
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


def test_conversations_differ_by_provider_call_ids():
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
def test_gemini_conversation_is_identified_despite_client_call_ids(
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


def test_unanswered_request_has_no_conversation_id():
    first = ConversationIds(none_stored).find_client_session([HELLO], UNKNOWN_AGENT, HERE)
    assert with_conversation_id(first, []) is None


def test_named_session_keeps_its_name():
    named = ClientSession("s-1", "codex", HERE)
    assert with_conversation_id(named, [HI]) == named


def test_lookup_from_cache_neither_reads_nor_adds():
    def refuse(names: Sequence[str], agent: str) -> str:
        raise AssertionError(names, agent)

    talks = ConversationIds(refuse)
    talks.find_client_session([HELLO, HI, MORE], UNKNOWN_AGENT, HERE, from_cache=True)
    assert not talks.find_client_session(
        [HELLO, HI, MORE], UNKNOWN_AGENT, HERE, from_cache=True
    ).began


def test_number_of_known_conversations_is_limited():
    talks = ConversationIds(none_stored, max_size=3)
    for n in range(50):
        talks.find_client_session([entry("user", str(n))], UNKNOWN_AGENT, HERE)
    assert len(talks._known.items()) == 3
