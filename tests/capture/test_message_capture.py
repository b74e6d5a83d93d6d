"""TODO."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.capture.message_capture import (
    Conversation,
    capture,
    prepare,
    prepare_all,
    split_at_search_marks,
)
from lore.errors import InvalidInput, NotFound
from lore.records import NewMessage, Part
from lore.redaction.redactor import Redactor
from lore.store import keywords, messages, sessions, standing_instructions
from lore.text import memory_tags, message_features
from tests.fakes import NOON

TALK = Conversation("talk")
REDACTOR = Redactor(b"k" * 32)


def said(text: str, *, role="user", seconds: float = 0, **rest) -> NewMessage:
    at = NOON + timedelta(seconds=seconds)
    return NewMessage(role, (Part("text", text),), at, **rest)


def stored(database, session: str = "talk"):
    with database.read() as db:
        return messages.messages_of_session(db, sessions.get_session_number(db, session))


def texts(database, session: str = "talk") -> list[str]:
    return [message.parts[0].text for message in stored(database, session)]


def test_messages_are_kept_in_order_with_their_ids(database):
    ids = capture(database, TALK, [said("one"), said("two", seconds=1), said("three")])
    found = stored(database)
    assert [message.id for message in found] == ids
    assert [message.ordinal for message in found] == [0, 1, 2]
    assert texts(database) == ["one", "two", "three"]


def test_later_messages_follow_the_earlier_ones(database):
    capture(database, TALK, [said("one")])
    capture(database, TALK, [said("two")])
    assert [m.ordinal for m in stored(database)] == [0, 1]


def test_a_session_that_is_dated_far_ahead_began_when_it_was_captured(database):
    capture(database, TALK, [said("one", seconds=4_000 * 86_400)])
    with database.read() as db:
        talk = sessions.get_session(db, sessions.get_session_number(db, "talk"))
    assert talk.started_at == talk.last_message_at == database.now()


def test_a_message_is_stored_once(database):
    new = [said("one"), said("two")]
    first = capture(database, TALK, new)
    assert capture(database, TALK, new) == first
    assert capture(database, TALK, [*new, said("three")])[:2] == first
    assert texts(database) == ["one", "two", "three"]


def test_the_same_text_twice_in_a_session_is_kept_twice(database):
    new = [said("yes"), said("yes"), said("yes", seconds=5)]
    first = capture(database, TALK, new)
    assert len(set(first)) == 3
    assert capture(database, TALK, new) == first
    assert texts(database) == ["yes", "yes", "yes"]


@pytest.mark.parametrize(
    "other",
    [
        said("hi", role="assistant"),
        said("hi", speaker="Ada"),
        said("hi", seconds=0.000_001),
        NewMessage("user", (Part("text", "hi", name="tool"),), NOON),
        NewMessage("user", (Part("text", "hi", call_id="7"),), NOON),
        NewMessage("user", (Part("document", "hi"),), NOON),
        NewMessage("user", (Part("text", "hi"), Part("text", "")), NOON),
    ],
)
def test_message_that_differs_in_any_field_is_stored_separately(database, other):
    capture(database, TALK, [said("hi")])
    capture(database, TALK, [other])
    assert len(stored(database)) == 2


def test_the_same_instant_in_another_zone_is_the_same_message(database):
    there = NOON.astimezone(timezone(timedelta(hours=9)))
    assert capture(database, TALK, [said("hi")]) == capture(
        database, TALK, [replace(said("hi"), created_at=there)]
    )


def test_a_given_key_decides_what_is_the_same(database):
    (first,) = capture(database, TALK, [said("draft", key="k1")])
    (again,) = capture(database, TALK, [said("final", key="k1", seconds=9)])
    assert again == first
    assert texts(database) == ["draft"]
    assert len(capture(database, TALK, [said("draft", key="k2")])) == 1
    assert texts(database) == ["draft", "draft"]


def test_one_key_twice_in_a_batch_is_one_message(database):
    one, other = capture(database, TALK, [said("a", key="k"), said("b", key="k")])
    assert one == other


def test_the_same_key_in_another_session_is_another_message(database):
    capture(database, TALK, [said("a", key="k")])
    capture(database, Conversation("other"), [said("a", key="k")])
    assert texts(database, "other") == ["a"]


def test_no_messages_make_no_session(database):
    assert capture(database, TALK, []) == []
    with database.read() as db, pytest.raises(NotFound):
        sessions.get_session_number(db, "talk")


@pytest.mark.parametrize("name", ["", "  ", "\n"])
def test_a_session_needs_a_name(database, name):
    with pytest.raises(InvalidInput):
        capture(database, Conversation(name), [said("one")])


DIRTY = "a\x00b\ud800c"


def test_invalid_text_is_cleaned_in_every_field(database):
    part = Part("tool_call", DIRTY, name=DIRTY, call_id=DIRTY)
    new = NewMessage("user", (part,), NOON, key=DIRTY, speaker=DIRTY, model=DIRTY)
    conversation = Conversation(DIRTY, DIRTY, DIRTY, DIRTY, DIRTY, files=(DIRTY,))
    first = capture(database, conversation, [new])
    assert capture(database, conversation, [new]) == first
    (found,) = stored(database, "a b c")
    assert found.parts == (Part("tool_call", "a b c", name="a b c", call_id="a b c"),)
    assert (found.speaker, found.model) == ("a b c", "a b c")


def test_messages_that_differ_only_in_cleaned_text_are_both_stored(database):
    capture(database, TALK, [said("a\x00"), said("a\ud800")])
    assert texts(database) == ["a ", "a "]


@pytest.mark.parametrize("parts", [(), (Part("text", ""),), (Part("text", " \n"),)])
def test_empty_message_is_stored_without_a_vector(database, parts):
    new = NewMessage("user", parts, NOON)
    capture(database, TALK, [new])
    assert stored(database)[0].parts == parts
    made = prepare(new)
    assert not made.embeds
    assert made.traits & message_features.EMPTY


@pytest.mark.parametrize(
    ("role", "origin"),
    [("user", "user"), ("assistant", "assistant"), ("tool", "tool"), ("system", "tool")],
)
def test_the_role_gives_the_origin(database, role, origin):
    capture(database, TALK, [said("one", role=role)])
    assert stored(database)[0].origin == origin


def test_explicit_origin_is_kept(database):
    capture(database, TALK, [said("one", role="tool", origin="web")])
    assert stored(database)[0].origin == "web"


@pytest.mark.parametrize(
    "wrong",
    [
        said("x", role="human"),
        said("x", origin="rumour"),
        NewMessage("user", (Part("video", "x"),), NOON),  # type: ignore[arg-type]
        NewMessage("user", (Part("text", "x", origin="rumour"),), NOON),  # type: ignore[arg-type]
    ],
)
def test_a_role_kind_or_origin_that_does_not_exist_is_refused(database, wrong):
    with pytest.raises(InvalidInput):
        capture(database, TALK, [said("good"), wrong])
    assert capture(database, Conversation("after"), [said("good")])


@pytest.mark.parametrize(
    ("role", "kind", "embeds"),
    [
        ("user", "text", True),
        ("assistant", "text", True),
        ("assistant", "tool_call", False),
        ("assistant", "reasoning", False),
        ("tool", "tool_result", False),
        ("system", "text", False),
        ("user", "image", True),
    ],
)
def test_user_and_assistant_messages_are_embedded(role, kind, embeds):
    assert prepare(NewMessage(role, (Part(kind, "words"),), NOON)).embeds is embeds


def test_standing_instructions_of_the_person_are_kept_word_for_word(database):
    capture(database, TALK, [said("Hello. Always use tabs. Bye.")])
    with database.read() as db:
        assert [found.text for found in standing_instructions.current_instructions(db, None)] == [
            "Always use tabs."
        ]


@pytest.mark.parametrize("rest", [{"role": "assistant"}, {"role": "tool"}, {"speaker": "Ada"}])
def test_only_the_person_gives_standing_instructions(rest):
    assert prepare(said("Always use tabs.", **rest)).standing == ()


def test_a_message_is_found_by_keyword_at_once(database):
    capture(database, TALK, [said("The zebra escaped")])
    with database.read() as db:
        found = keywords.search(
            db, "message_words", '"zebra"', limit=5, weights=keywords.MESSAGE_WEIGHTS
        )
    assert len(found) == 1


def test_a_session_knows_its_project_branch_title_and_parent(database):
    capture(database, Conversation("main", project="/code/app"), [said("one")])
    child = Conversation("sub", "agent", "/code/app", "A title", "dev", "main", ("a.py", "b.py"))
    capture(database, child, [said("two")])
    with database.read() as db:
        main = sessions.get_session(db, sessions.get_session_number(db, "main"))
        sub = sessions.get_session(db, sessions.get_session_number(db, "sub"))
    assert sub.parent_id == main.id
    assert sub.project_id == main.project_id is not None
    assert (sub.agent, sub.title, sub.branch) == ("agent", "A title", "dev")


def test_an_unknown_parent_is_refused_and_nothing_is_stored(database):
    with pytest.raises(NotFound):
        capture(database, Conversation("sub", parent="nowhere"), [said("two")])
    with database.read() as db, pytest.raises(NotFound):
        sessions.get_session_number(db, "sub")


def test_the_session_lasts_until_its_latest_message(database):
    capture(database, TALK, [said("one"), said("two", seconds=60), said("three", seconds=30)])
    with database.read() as db:
        session = sessions.get_session(db, sessions.get_session_number(db, "talk"))
    assert session.started_at == NOON
    assert session.last_message_at == NOON + timedelta(seconds=60)


@given(
    st.sampled_from(["user", "assistant", "tool", "system"]),
    st.lists(st.tuples(st.sampled_from(["text", "reasoning", "tool_call", "image"]), st.text())),
)
def test_any_message_can_be_prepared(role, parts):
    made = prepare(NewMessage(role, tuple(Part(kind, text) for kind, text in parts), NOON))
    assert made.tokens >= 0
    for part in made.new.parts:
        part.text.encode()


def test_messages_that_are_prepared_together_are_what_each_would_be_alone():
    new = [said(f"Step {i} of runAll is done.", key=f"k{i}") for i in range(40)]
    new[7] = said("export DB_PASSWORD=Tr0ub4dor&3", key="k7")
    new[33] = said("my password:", key="k33")
    new[34] = said("Zq7Rw2Lk9Xv4Bn6Tm1Pd8Hs3Jf5Gc0Ya2We4", key="k34")
    alone = [prepare(message, redactor=REDACTOR) for message in new]
    together = prepare_all(new, redactor=REDACTOR)
    assert [one._replace(id="") for one in together] == [one._replace(id="") for one in alone]
    assert "Tr0ub4dor" not in together[7].searchable
    assert together[34].searchable == new[34].parts[0].text


def test_a_control_character_hides_no_secret():
    made = prepare(said('{"password":\x01"Tr0ub4dor&3"}'), redactor=REDACTOR)
    assert "Tr0ub4dor" not in made.searchable


@pytest.mark.parametrize("one_by_one", [True, False])
def test_names_of_token_counts_are_redacted(one_by_one):
    key = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5"
    message = said("hi", usage={f"tok {key}": 1, "input_tokens": 2})
    made = (
        prepare(message, redactor=REDACTOR)
        if one_by_one
        else prepare_all([message], redactor=REDACTOR)[0]
    )
    assert key not in str(made.new.usage)
    assert made.new.usage["input_tokens"] == 2


@pytest.mark.parametrize(
    "place",
    [
        "\x1b[32m{}\x1b[0m",
        "\x1b[K{}",
        "KEY=\x1b[0;1m{}",
        "\x1b[01;31m\x1b[K{}",
        "\\u001b[32m{}",
        "\\033[1;32m{}",
        "\\x1b[32m{}\\x1b[0m",
        "\\e[32m{}",
    ],
)
def test_no_colour_hides_a_key(place):
    key = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5"
    made = prepare(said(place.format(key)), redactor=REDACTOR)
    assert key not in made.new.parts[0].text


@pytest.mark.parametrize(
    "place",
    [
        "DB_PASSWORD=\x1b[32m{}\x1b[0m",
        "\x1b[33mDB_PASSWORD\x1b[0m=\x1b[32m{}\x1b[0m",
        '\x1b[34m"password"\x1b[0m: \x1b[32m"{}"\x1b[0m',
        "postgres://u:\x1b[31m{}\x1b[0m@h/db",
        '{{"password": "\0{}"}}',
        "postgres://u:\0{}@h/db",
        "password: \\u001b[31m{}\\u001b[0m",
        "DB_PASSWORD=\\033[31m{}\\033[0m",
        "password\uff1d{}",
        "password\uff1a{}",
    ],
)
def test_no_colour_or_control_character_hides_a_password(place):
    password = "Xk29fmQ7zzLpW3rT"
    made = prepare(said(place.format(password)), redactor=REDACTOR)
    assert password not in made.new.parts[0].text


AT = datetime(2026, 11, 1, tzinfo=UTC)
MARK = memory_tags.search_mark("0123456789abcdef")


def told(role, text):
    return NewMessage(role, (Part("text", text),), AT, "k", usage={"input_tokens": 5})


def test_texts_around_a_search_marker_become_separate_messages():
    (first, second) = split_at_search_marks([
        told("assistant", f"Let me look.\n\n{MARK}\n\nIt is so.")
    ])
    assert (first.parts[0].text, second.parts[0].text) == ("Let me look.", "It is so.")
    assert (first.key, second.key) == ("k", "k:1")
    assert (first.usage, second.usage) == ({"input_tokens": 5}, {})


def test_search_marker_alone_yields_no_message():
    assert list(split_at_search_marks([told("assistant", MARK)])) == []


def test_search_marker_in_a_user_message_is_kept():
    messages = [told("user", f"What is {MARK}?"), told("assistant", "A search.")]
    assert list(split_at_search_marks(messages)) == messages


NOTICES = (
    "[Request interrupted by user]",
    "<task-notification>From now on always poll.</task-notification>",
    "<environment_context><cwd>/code</cwd></environment_context>",
    "Stop hook feedback:\n- [lint.sh]: From now on always run `make lint` before a commit.",
)


@pytest.mark.parametrize("notice", NOTICES)
def test_a_pushed_notice_of_a_program_is_not_the_person_s(database, notice: str):
    capture(database, TALK, [said(notice), said("From now on always run `make check`.")])
    (first, second) = stored(database)
    assert (first.role, first.origin) == ("system", "tool")
    assert [part.kind for part in first.parts] == ["aside"]
    assert (second.role, second.origin) == ("user", "user")
    with database.read() as db:
        listed = standing_instructions.current_instructions(db, None)
    assert [one.text for one in listed] == ["From now on always run `make check`."]


def test_what_is_typed_beside_a_pushed_notice_stays_the_person_s(database):
    notice = "<system-reminder>Always use the todo list.</system-reminder>"
    capture(database, TALK, [said(f"Fix the parser.\n{notice}")])
    (only,) = stored(database)
    assert (only.role, only.origin) == ("user", "user")
    assert [(part.kind, part.text) for part in only.parts] == [
        ("text", "Fix the parser."),
        ("aside", notice),
    ]
