from __future__ import annotations

import json

import pytest

from lore.capture.message_capture import Conversation
from lore.capture.message_capture import capture as capture_messages
from lore.digest import fragment_edits as capture
from lore.digest import revocation, undo
from lore.digest.revocation import RevocationTarget
from lore.errors import InvalidInput, NotFound
from lore.records import Distillation, Draft, NewMessage, Part, Watermark
from lore.store import (
    distillations,
    fragments,
    items,
    keywords,
    messages,
    sessions,
    standing_instructions,
    watermarks,
)
from tests.digest.samples import store_episode
from tests.fakes import NOON

DISTILLED = "dddddddd-dddd-7ddd-8ddd-dddddddddddd"


@pytest.fixture
def say(database):
    def say(*parts: Part, role="user", session="s", project="", parent=""):
        new = NewMessage(role, parts, NOON, key=f"{session}{parts}")
        conversation = Conversation(session, project=project, parent=parent)
        return capture_messages(database, conversation, [new])[0]

    return say


@pytest.fixture
def store(database):
    def store(text, *sources, origin="user", **rest):
        return capture.store(database, Draft(text, origin=origin, source_messages=sources, **rest))

    return store


def are_deleted(database, *ids: str | None) -> list[bool]:
    with database.read() as db:
        return [fragments.is_deleted(db, items.resolve(db, id_ or "").n) for id_ in ids]


def distill(database, first: str, last: str, session: str = "s"):
    def work(db):
        n = sessions.get_session_number(db, session)
        made = Distillation(
            "dddddddd-dddd-7ddd-8ddd-dddddddddddd",
            "",
            0,
            "condensed",
            first,
            last,
            3,
            9,
            False,
            NOON,
        )
        distillations.add_distillation(db, n, made, now=NOON)
        return made.id

    return database.write(work)


def test_revoking_a_session_hides_its_fragments_and_keeps_its_messages(database, say, store):
    said, other = say(Part("text", "one"), session="a"), say(Part("text", "two"), session="b")
    doomed, kept = store("from a", said), store("from b", other)
    told = revocation.revoke(database, RevocationTarget(session="a"))
    assert [title.id for title in told.fragments] == [doomed]
    assert told.messages == 1
    assert are_deleted(database, doomed, kept) == [True, False]
    with database.read() as db:
        assert messages.messages_of_session(db, sessions.get_session_number(db, "a"))
        assert not keywords.search(
            db, "fragment_words", '"from"  "a"', limit=5, weights=(6.0, 2.0, 3.0)
        )


def test_a_subagents_session_goes_with_its_parents(database, say, store):
    say(Part("text", "one"), session="a")
    below = say(Part("text", "two"), session="sub", parent="a")
    doomed = store("from below", below)
    revocation.revoke(database, RevocationTarget(session="a"))
    assert are_deleted(database, doomed) == [True]


def test_revocation_follows_derived_fragments(database, say, store):
    said = say(Part("text", "read on a page", origin="web"))
    first = store("first", said, origin="assistant")
    second, third, beside = store("second"), store("third"), store("beside")
    capture.link(database, second, first, "derived_from")
    capture.link(database, third, second, "derived_from")
    capture.link(database, beside, first, "related_to")
    revocation.revoke(database, RevocationTarget(origin="web"))
    assert are_deleted(database, first, second, third, beside) == [True, True, True, False]


def test_an_origin_is_found_in_the_parts_of_messages_and_in_fragments_themselves(
    database, say, store
):
    mixed = say(Part("text", "look"), Part("tool_result", "out"), session="m")
    plain = say(Part("text", "said"), session="p")
    by_part, by_hand = store("x", mixed), store("y", origin="tool")
    kept = store("z", plain)
    revocation.revoke(database, RevocationTarget(origin="tool"))
    assert are_deleted(database, by_part, by_hand, kept) == [True, True, False]


def test_a_revocation_keeps_to_its_project(database, say, store):
    here = say(Part("text", "a", origin="web"), session="a", project="/code/a")
    there = say(Part("text", "b", origin="web"), session="b", project="/code/b")
    doomed, kept = store("x", here), store("y", there)
    revocation.revoke(database, RevocationTarget(origin="web", project="/code/a"))
    assert are_deleted(database, doomed, kept) == [True, False]


def test_revoking_a_file_hides_what_tools_read_from_it(database, say, store):
    def read(path: str, id_: str):
        call = Part("tool_call", json.dumps({"file_path": path}), "Read", id_)
        say(call, role="assistant")
        return say(Part("tool_result", f"text of {path}", "", id_), role="tool")

    bad, good = read("/code/docs/evil.md", "1"), read("/code/docs/fine.md", "2")
    shell = Part("tool_call", json.dumps({"command": "cat docs/evil.md"}), "Bash", "3")
    say(shell, role="assistant")
    by_shell = say(Part("tool_result", "text", "", "3"), role="tool")
    doomed, also, kept = store("x", bad), store("z", by_shell), store("y", good)
    revocation.revoke(database, RevocationTarget(file="docs/evil.md"))
    assert are_deleted(database, doomed, also, kept) == [True, True, False]


def test_revoking_a_transcript_hides_its_session(database, say, store):
    doomed = store("x", say(Part("text", "one")))
    database.write(
        lambda db: watermarks.put(
            db,
            Watermark("/code/t.jsonl", None, 1, "", NOON),
            session_n=sessions.get_session_number(db, "s"),
        )
    )
    revocation.revoke(database, RevocationTarget(file="/code/t.jsonl"))
    assert are_deleted(database, doomed) == [True]


def test_standing_instructions_of_a_session_go_and_come_back_with_undo(database, say, store):
    said = say(Part("text", "Always use tabs in Makefiles."))
    ids = [store("x", said), store("y", said)]
    told = revocation.revoke(database, RevocationTarget(session="s"))
    assert told.standing == ("Always use tabs in Makefiles.",)
    with database.read() as db:
        assert standing_instructions.current_instructions(db, None, everywhere=True) == []
    verb, _ = undo.undo(database)
    assert verb == "revocation"
    assert are_deleted(database, *ids) == [False, False]
    with database.read() as db:
        assert [s.text for s in standing_instructions.current_instructions(db, None)] == [
            "Always use tabs in Makefiles."
        ]


def test_a_revocation_that_was_undone_can_be_done_again_as_a_whole(database, say, store):
    said = say(Part("text", "Always use tabs in Makefiles."))
    ids = [store("x", said), store("y", said)]
    revocation.revoke(database, RevocationTarget(session="s"))
    undo.undo(database)
    assert undo.redo(database)[0] == "revocation"
    assert are_deleted(database, *ids) == [True, True]
    with database.read() as db:
        assert standing_instructions.current_instructions(db, None, everywhere=True) == []


def test_one_fragment_of_a_revocation_comes_back_alone(database, say, store):
    said = say(Part("text", "Always use tabs in Makefiles."))
    one, other = store("x", said), store("y", said)
    revocation.revoke(database, RevocationTarget(session="s"))
    undo.undo(database, one)
    assert are_deleted(database, one, other) == [False, True]
    with database.read() as db:
        assert standing_instructions.current_instructions(db, None, everywhere=True) == []


def test_revocation_removes_distillations(database, say):
    first, last = say(Part("text", "one")), say(Part("text", "two", origin="web"))
    id_ = distill(database, first, last)
    told = revocation.revoke(database, RevocationTarget(origin="web"))
    assert told.distillations == (id_,)
    with database.read() as db, pytest.raises(NotFound):
        items.resolve(db, id_)


def test_preview_reports_the_same_and_hides_nothing(database, say, store):
    id_ = store("x", say(Part("text", "Always use tabs in Makefiles.")))
    seen = revocation.preview_revocation(database, RevocationTarget(session="s"))
    assert are_deleted(database, id_) == [False]
    assert revocation.revoke(database, RevocationTarget(session="s")) == seen
    assert revocation.preview_revocation(database, RevocationTarget(session="s")).fragments == ()


def test_episode_of_a_revoked_session_is_not_stored_again(database, say):
    say(Part("text", "Please mend the date parser"))
    id_ = store_episode(database, "s")
    revocation.revoke(database, RevocationTarget(session="s"))
    assert store_episode(database, "s") is None
    assert are_deleted(database, id_) == [True]


@pytest.mark.parametrize(
    "suspect",
    [
        RevocationTarget(),
        RevocationTarget(session="s", origin="web"),
        RevocationTarget(origin="god"),
    ],
)
def test_revocation_needs_exactly_one_target(database, suspect):
    with pytest.raises(InvalidInput):
        revocation.revoke(database, suspect)


def test_a_missing_session_is_reported(database):
    with pytest.raises(NotFound):
        revocation.revoke(database, RevocationTarget(session="none"))
