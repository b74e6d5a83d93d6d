"""Long talks: recorded sessions as requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from lore.evals.long_talks import Talk, read_talks, talk_of
from lore.records import Message, Part
from tests.evals.harbour import write
from tests.fakes import NOON


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return read_talks(write(tmp_path))[0]


def test_each_answer_is_a_request_with_all_that_was_said_before(talk: Talk):
    assert len(talk.requests) == 48
    assert talk.requests[0].entries == 1
    assert talk.requests[1].entries == 3
    assert talk.entries[1].blocks[-1].kind == "call"
    assert talk.entries[2].blocks[0].kind == "result"
    assert talk.entries[2].blocks[0].call_id == talk.entries[1].blocks[-1].call_id
    assert talk.entries_of(4) == range(7, 9)


def test_a_captured_answer_in_pieces_is_one_request():
    def said(ordinal: int, role: str, *parts: Part) -> Message:
        return Message(f"m{ordinal}", "s", ordinal, role, parts, 5, NOON, "user")  # type: ignore[arg-type]

    made = talk_of(
        "s",
        [
            said(0, "user", Part("text", "why?")),
            said(1, "assistant", Part("text", "let me look")),
            said(2, "assistant", Part("tool_call", "{}", name="bash", call_id="c")),
            said(3, "user", Part("tool_result", "nothing", call_id="c")),
            said(4, "assistant", Part("text", "because")),
        ],
    )
    assert [request.entries for request in made.requests] == [1, 4]
