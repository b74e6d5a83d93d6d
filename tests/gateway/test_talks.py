"""A conversation without a name is known by its project and how it began, in every process."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from lore.gateway.apis import gemini
from lore.gateway.speakers import UNNAMED
from lore.gateway.talks import Talks, answered
from lore.records import Block, Entry, Speaker, Voice
from lore.text import marks

HERE = "/code/almanac"


def entry(voice: Voice, text: str) -> Entry:
    return Entry(voice, (Block("text", len(text), text),), f"{voice}-{text}")


HELLO, HI, MORE = entry("user", "hello"), entry("assistant", "hi"), entry("user", "and now?")


def none_stored(names: Sequence[str], agent: str) -> str:
    del names, agent
    return ""


def all_stored(names: Sequence[str], agent: str) -> str:
    assert agent == UNNAMED
    return names[0]


def test_a_talk_goes_on_under_the_name_that_its_first_answer_gives_it():
    talks = Talks(none_stored)
    first = talks.find_speaker([HELLO], UNNAMED, HERE)
    named = answered(first, [HI])
    assert named is not None
    assert talks.find_speaker([HELLO, HI, MORE], UNNAMED, HERE) == named
    long = [HELLO, HI, MORE, entry("assistant", "fine"), entry("user", "good")]
    assert talks.find_speaker(long, UNNAMED, HERE) == named
    assert (named.first, named.agent) == (first, UNNAMED)


def test_the_same_words_in_another_project_are_another_talk():
    talks = Talks(none_stored)
    first, other = (
        talks.find_speaker([HELLO], UNNAMED, HERE),
        talks.find_speaker([HELLO], UNNAMED, "/code/harbor"),
    )
    assert first.session != other.session
    assert answered(first, [HI]) != answered(other, [HI])


def test_a_request_that_is_sent_again_is_the_same_talk():
    talks = Talks(none_stored)
    assert talks.find_speaker([HELLO], UNNAMED, HERE) == talks.find_speaker([HELLO], UNNAMED, HERE)


def test_talks_of_the_same_first_words_part_at_their_answers():
    talks = Talks(none_stored)
    talks.find_speaker([HELLO], UNNAMED, HERE)
    one = talks.find_speaker([HELLO, HI, MORE], UNNAMED, HERE)
    other = talks.find_speaker([HELLO, entry("assistant", "good day"), MORE], UNNAMED, HERE)
    assert one.session != other.session
    assert one.began == other.began


def test_a_name_does_not_depend_on_what_a_process_remembers():
    before = answered(Talks(none_stored).find_speaker([HELLO], UNNAMED, HERE), [HI])
    assert Talks(all_stored).find_speaker([HELLO, HI, MORE], UNNAMED, HERE) == before


def test_talks_that_begin_with_the_same_examples_are_not_one():
    talks = Talks(none_stored)
    shown = [entry("user", "2 + 2"), entry("assistant", "4")]
    one = talks.find_speaker([*shown, entry("user", "3 + 3")], UNNAMED, HERE)
    other = talks.find_speaker([*shown, entry("user", "5 + 5")], UNNAMED, HERE)
    assert one.session != other.session


def test_a_talk_that_nobody_knows_begins_where_it_is_first_heard():
    talks = Talks(none_stored)
    first = talks.find_speaker([HELLO, HI, MORE], UNNAMED, HERE)
    assert not first.began
    answer = entry("assistant", "fine")
    goes_on = [HELLO, HI, MORE, answer, entry("user", "good")]
    assert talks.find_speaker(goes_on, UNNAMED, HERE) == answered(first, [answer])


def test_an_answer_is_known_by_its_marker_and_by_its_search():
    talks = Talks(none_stored)
    first = talks.find_speaker([HELLO], UNNAMED, HERE)
    searched = [
        Entry("assistant", (*HI.blocks, Block("call", 3, "{}", "c1", "recall")), "a"),
        Entry("user", (Block("result", 3, "found", "c1"),), "b"),
        entry("assistant", "There it is."),
    ]  # fmt: skip
    marked = f"hi\n\n{marks.searched('0123456789abcdef')}\n\nThere it is."
    seen = [HELLO, entry("assistant", marked), MORE]
    assert talks.find_speaker(seen, UNNAMED, HERE) == answered(first, searched)


def calling(call_id: str, *, by_id: bool = True) -> Entry:
    call = Block("call", 12, '{"path":"a"}', call_id, "Read", by_id=by_id)
    return Entry("assistant", (call,), "key")


def test_talks_part_at_calls_that_are_alike_but_for_the_ids_that_the_provider_gave_them():
    talks = Talks(none_stored)
    first = talks.find_speaker([HELLO], UNNAMED, HERE)
    one, other = answered(first, [calling("toolu_1")]), answered(first, [calling("toolu_2")])
    assert one is not None
    assert other is not None
    assert one.session != other.session
    assert talks.find_speaker([HELLO, calling("toolu_1"), MORE], UNNAMED, HERE) == one


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
        return gemini.read(json.dumps({"contents": contents}).encode()).dialogue.entries

    talks = Talks(none_stored)
    hello, answer, _ = told()
    named = answered(talks.find_speaker([hello], UNNAMED, HERE), [answer])
    assert talks.find_speaker(told(**id_of_client), UNNAMED, HERE) == named


def test_a_request_without_an_answer_has_no_name_yet():
    first = Talks(none_stored).find_speaker([HELLO], UNNAMED, HERE)
    assert answered(first, []) is None


def test_a_session_with_a_name_keeps_it():
    named = Speaker("s-1", "codex", HERE)
    assert answered(named, [HI]) == named


def test_what_there_is_no_time_for_is_neither_looked_up_nor_remembered():
    def refuse(names: Sequence[str], agent: str) -> str:
        raise AssertionError(names, agent)

    talks = Talks(refuse)
    talks.find_speaker([HELLO, HI, MORE], UNNAMED, HERE, at_hand=True)
    assert not talks.find_speaker([HELLO, HI, MORE], UNNAMED, HERE, at_hand=True).began


def test_only_so_many_talks_are_remembered():
    talks = Talks(none_stored, most=3)
    for n in range(50):
        talks.find_speaker([entry("user", str(n))], UNNAMED, HERE)
    assert len(talks._begun) == 3
