from __future__ import annotations

import pytest

from lore.capture.messages import prepare
from lore.records import NewMessage, Origin, Part, Role
from lore.store import distillations, items, messages, trusting
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_fragment, new_distillation, new_session


def say(db: Connection, *parts: Part, role: Role = "user", origin: Origin | None = None) -> str:
    new = NewMessage(role, parts, NOON, key=f"{parts}", origin=origin)
    return messages.add(db, new_session(db), [prepare(new)], now=NOON)[0]


def number(db: Connection, id_: str) -> int:
    return items.resolve(db, id_).n


@pytest.mark.parametrize(
    ("parts", "doubted"),
    [
        ((Part("text", "said"),), False),
        ((Part("text", 'speaks of "origin": and "tool_result"'),), False),
        ((Part("text", "said"), Part("aside", "boot", origin="repo")), False),
        ((Part("text", "said"), Part("opaque", "?", origin="web")), False),
        ((Part("text", "said", origin="assistant"),), False),
        ((Part("text", "said"), Part("text", "quoted", origin="web")), True),
        ((Part("text", "said"), Part("tool_result", "out")), True),
        ((Part("text", "said"), Part("document", "page", origin="peer")), True),
    ],
)
def test_a_message_is_doubted_when_someone_else_speaks_in_it(db: Connection, parts, doubted):
    n = number(db, say(db, *parts))
    assert trusting.doubtful(db, [n]) == ({n} if doubted else set())


def test_a_distillation_is_doubted_with_what_it_condenses(db: Connection):
    first = say(db, Part("text", "one"))
    say(db, Part("tool_result", "out"), role="tool")
    last = say(db, Part("text", "two"), role="assistant")
    session_n = new_session(db)
    whole = distillations.add(db, session_n, new_distillation(1, "x", first, last), now=NOON)
    clean = distillations.add(db, session_n, new_distillation(2, "y", last, last), now=NOON)
    assert trusting.doubtful(db, [whole, clean]) == {whole}


def test_nothing_asked_is_nothing_doubted(db: Connection):
    assert trusting.doubtful(db, []) == set()


def test_what_may_be_shown_unasked_is_told_of_all_sorts_of_items(db: Connection):
    said = number(db, say(db, Part("text", "said")))
    tool = number(db, say(db, Part("tool_result", "out"), role="tool"))
    own, page = add_fragment(db, 1), add_fragment(db, 2, origin="web")
    learned = add_fragment(db, 3, origin="assistant", trust=0)
    assert trusting.trusted(db, [said, tool, own, page, learned]) == {said, own}
