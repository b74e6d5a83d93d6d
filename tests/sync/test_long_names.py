"""Names of another machine that are too long to be stored here."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from lore.capture.message_capture import Conversation, capture
from lore.errors import SyncError
from lore.records import NewMessage, Part
from lore.store import sessions
from lore.sync.wire_format import has_long_name, parse_record
from tests.sync.machines import Machine

LONG = "/code/" + "x" * 1_024
SHORT = {"path": "/code", "remote": "", "name": "code"}


@pytest.fixture
def pair() -> Iterator[tuple[Machine, Machine]]:
    machines = Machine("one"), Machine("other")
    yield machines
    for machine in machines:
        machine.close()


def converse(machine: Machine, name: str) -> None:
    message = NewMessage("user", (Part("text", f"Build {name}."),), machine.now(), key=name)
    capture(machine.database, Conversation(name, agent="codex"), [message])


def page(machine: Machine) -> list[dict[str, Any]]:
    machine.replica.scan()
    return [one for one in machine.replica.changes("").records if one["kind"] != "instruction"]


def lengthened(record: dict[str, Any], field: str) -> dict[str, Any]:
    """Return a record of a session or message with a name that is too long."""
    changed = copy.deepcopy(record)
    session = changed["references"]["session"]
    if field in SHORT:
        session["project"] = {**SHORT, field: LONG}
    elif field == "key":
        changed["registers"]["self"][2]["key"] = LONG
    else:
        session[field] = LONG
    return changed


@pytest.mark.parametrize("field", ["external_id", "agent", "path", "remote", "key"])
def test_a_record_with_a_long_name_is_left_out_and_the_rest_applied(
    pair: tuple[Machine, Machine], field: str
) -> None:
    one, other = pair
    converse(one, "gate")
    converse(one, "harbor")
    records = page(one)
    kind = "message" if field == "key" else "session"
    place = next(i for i, record in enumerate(records) if record["kind"] == kind)
    records[place] = lengthened(records[place], field)
    assert has_long_name(records[place])
    with pytest.raises(SyncError):
        parse_record(records[place])
    other.replica.apply(records, via="one")
    with other.database.read() as db:
        assert sessions.find_session(db, "harbor", agent="codex")
        assert db.value("SELECT max(length(external_id || agent)) FROM sessions") < 100
        assert db.value("SELECT count(*) FROM projects") == 0


def test_a_long_name_of_this_machine_is_not_sent(pair: tuple[Machine, Machine]) -> None:
    one, _ = pair
    converse(one, "gate")
    converse(one, "harbor")
    one.write(lambda db: db.run("UPDATE sessions SET external_id = :long WHERE n = 1", long=LONG))
    records = page(one)
    assert {record["references"]["session"]["external_id"] for record in records} == {"harbor"}


def test_a_record_that_is_nested_without_end_has_no_long_name():
    references: Any = {"key": "k"}
    for _ in range(5_000):
        references = [references]
    assert not has_long_name({"references": references})
    assert has_long_name({"references": [{"path": LONG}]})
