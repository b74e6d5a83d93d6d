from __future__ import annotations

from datetime import timedelta

from lore.capture.messages import prepare
from lore.records import NewMessage, Part
from lore.store import (
    actions,
    distillations,
    episodes,
    fragments,
    items,
    messages,
    revocations,
    standing,
)
from lore.store.sqlite import Connection
from tests.store.samples import (
    NOON,
    add_fragment,
    add_messages,
    new_distillation,
    new_session,
    numbered_id,
)


def test_messages_and_fragments_of_sessions_are_found(db: Connection):
    one, other = new_session(db, "one"), new_session(db, "other")
    add_messages(db, one, "a", "b")
    add_messages(db, other, "c")
    stored = add_fragment(db, 1, session_n=one)
    add_fragment(db, 2)
    assert len(revocations.messages_of(db, [one])) == 2
    assert revocations.fragments_of(db, [one]) == {stored}


def test_a_name_with_signs_of_its_own_is_looked_for_as_it_is(db: Connection):
    for i, text in enumerate(["a_b%.md", "aXbYY.md"]):
        new = NewMessage("assistant", (Part("tool_call", text, "Read", "1"),), NOON, key=f"{i}")
        messages.add(db, new_session(db), [prepare(new)], now=NOON)
    found = list(revocations.messages_naming(db, "a_b%.md", project_n=None))
    assert [parts[0].text for _, _, parts in found] == ["a_b%.md"]


def test_deleted_fragments_are_not_living(db: Connection):
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    fragments.set_deleted(db, a, NOON, now=NOON)
    assert revocations.living(db, [a, b]) == [b]


def test_instructions_go_by_message(db: Connection):
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    for item, text in ((a, "one"), (a, "two"), (b, "three")):
        standing.add(db, item, None, text, 1)
    assert standing.texts(db, [a]) == ["one", "two"]
    assert standing.remove(db, [a]) == [a]
    assert [s.text for s in standing.newest(db, None)] == ["three"]


def test_a_removed_distillation_leaves_a_tombstone_and_no_words(db: Connection):
    n = distillations.add(db, new_session(db), new_distillation(1, "zebra"), now=NOON)
    distillations.remove(db, [n], now=NOON)
    assert items.count_by_type(db)["distillation"] == 0
    assert db.value("SELECT count(*) FROM message_words") == 0
    assert db.find("SELECT 1 FROM tombstones WHERE id = :id", id=numbered_id(1))


def test_actions_of_one_moment_belong_together(db: Connection):
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    actions.record(db, "delete", a, now=NOON - timedelta(seconds=1))
    actions.record(db, "delete", b, now=NOON)
    actions.record(db, "delete", c, now=NOON)
    last = actions.find_last(db)
    assert last is not None
    assert [one.fragment_n for one in actions.together_with(db, last)] == [b, c]


def test_the_episode_of_a_session_is_known_by_its_mark(db: Connection):
    session_n = new_session(db)
    assert episodes.find(db, session_n) is None
    db.run("UPDATE fragments SET kind = 'episode' WHERE n = :n",
           n=add_fragment(db, 1, session_n=session_n))  # fmt: skip
    assert episodes.find(db, session_n) is None
    told = add_fragment(db, 2, session_n=session_n, metadata=episodes.TOLD)
    db.run("UPDATE fragments SET kind = 'episode' WHERE n = :n", n=told)
    assert episodes.find(db, session_n) == told


def test_the_trust_of_an_episode_falls_and_never_rises(db: Connection):
    n = add_fragment(db, 1, origin="assistant")
    episodes.renew(db, n, payload={}, source_messages=(), origin="web")
    episodes.renew(db, n, payload={"a": 1}, source_messages=("m",), origin="assistant")
    found = fragments.get(db, n)
    assert (found.trust, found.payload, found.source_messages) == (0, {"a": 1}, ("m",))
