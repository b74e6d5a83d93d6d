"""Records that sync leaves out: with a name that is too long, or nested too deeply."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson
import pytest

from lore.capture.message_capture import Conversation, capture
from lore.errors import SyncError
from lore.records import NewMessage, Part
from lore.store import reversible_changes, sessions, sync_rows
from lore.sync.wire_format import has_long_name, parse_record
from tests.sync.machines import Machine
from tests.sync.test_replica import edit, number, remember

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
    else:
        session[field] = LONG
    return changed


@pytest.mark.parametrize("field", ["external_id", "agent", "path", "remote"])
def test_a_record_with_a_long_name_is_left_out_and_the_rest_applied(
    pair: tuple[Machine, Machine], field: str
) -> None:
    one, other = pair
    converse(one, "gate")
    converse(one, "harbor")
    records = page(one)
    place = next(i for i, record in enumerate(records) if record["kind"] == "session")
    records[place] = lengthened(records[place], field)
    assert has_long_name(records[place])
    with pytest.raises(SyncError):
        parse_record(records[place])
    other.replica.apply(records, via="one")
    with other.database.read() as db:
        assert sessions.find_session(db, "harbor", agent="codex")
        assert db.value("SELECT max(length(external_id || agent)) FROM sessions") < 100
        assert db.value("SELECT count(*) FROM projects") == 0


def test_a_message_with_a_long_key_arrives(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    converse(one, "gate")
    records = page(one)
    message = next(record for record in records if record["kind"] == "message")
    message["registers"]["self"][2]["key"] = LONG
    assert not has_long_name(message)
    other.replica.apply(records, via="one")
    with other.database.read() as db:
        assert db.value("SELECT count(*) FROM messages") == 1


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


def nest(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"a": "deep"}
    for _ in range(levels - 1):
        inner = {"a": inner}
    return inner


def set_payload(machine: Machine, id_: str, levels: int) -> None:
    body = orjson.dumps(nest(levels)).decode()
    sql = "UPDATE fragments SET payload = :body WHERE n = :n"
    machine.write(lambda db: db.run(sql, body=body, n=number(machine, id_)))


def fragments_of(machine: Machine) -> dict[str, dict[str, Any]]:
    return {one["key"]: one for one in page(machine) if one["kind"] == "fragment"}


@pytest.fixture
def gate_and_harbor(pair: tuple[Machine, Machine]) -> tuple[str, str]:
    return remember(pair[0], "The gate is green."), remember(pair[0], "The harbor is deep.")


def test_a_fragment_that_is_nested_too_deeply_is_not_sent(
    pair: tuple[Machine, Machine],
    gate_and_harbor: tuple[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, other = pair
    for id_, levels in zip(gate_and_harbor, (25, 26), strict=True):
        set_payload(one, id_, levels)
    assert fragments_of(one).keys() == {gate_and_harbor[0]}
    (warning,) = caplog.messages
    assert "1 records of this machine are left out" in warning
    assert "30 levels" in warning
    one.sync_with(other)
    assert fragments_of(other).keys() == {gate_and_harbor[0]}
    set_payload(one, gate_and_harbor[1], 25)
    one.sync_with(other)
    assert one.state() == other.state()


def test_what_is_left_out_does_not_count_in_the_hash_of_the_state(
    pair: tuple[Machine, Machine], gate_and_harbor: tuple[str, str]
) -> None:
    one, other = pair
    gate, harbor = (number(one, id_) for id_ in gate_and_harbor)
    converse(one, "barge")
    set_payload(one, gate_and_harbor[1], 26)
    one.write(lambda db: db.run("UPDATE sessions SET external_id = :long", long=LONG))
    one.write(lambda db: reversible_changes.reparent(db, gate, harbor, now=one.now()))
    edit(one, gate_and_harbor[1], "The harbor is deeper.")
    for _ in range(2):
        one.sync_with(other)
    assert one.replica.state_hash() == other.replica.state_hash()
    assert one.state() != other.state()


def test_a_fragment_of_another_machine_that_is_nested_too_deeply_is_left_out(
    pair: tuple[Machine, Machine],
    gate_and_harbor: tuple[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, other = pair
    records = fragments_of(one)
    deep = records[gate_and_harbor[0]]
    deep["registers"]["text"][2]["payload"] = nest(26)
    with pytest.raises(SyncError, match="nested deeper"):
        parse_record(deep)
    assert other.replica.apply(records.values(), via="one").received == 1
    assert "1 records of another machine are left out" in caplog.text
    assert fragments_of(other).keys() == {gate_and_harbor[1]}


def test_a_kept_record_that_is_nested_too_deeply_is_dropped_once_its_kind_is_known(
    pair: tuple[Machine, Machine], gate_and_harbor: tuple[str, str]
) -> None:
    one, other = pair
    deep, shallow = fragments_of(one).values()
    deep["registers"]["text"][2]["payload"] = nest(26)
    for record in (deep, shallow):
        body = orjson.dumps(record).decode()
        other.write(partial(sync_rows.keep_record, kind="fragment", key=record["key"], body=body))
    assert fragments_of(other).keys() == {shallow["key"]}
    with other.database.read() as db:
        assert list(sync_rows.kept_records(db)) == []
