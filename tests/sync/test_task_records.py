"""Tasks, handoffs and working states that travel between two homes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from lore import clock
from lore.capture.message_capture import Conversation, capture
from lore.errors import SyncError
from lore.records import NewMessage, Part
from lore.records.task_records import TaskRecord
from lore.store import fragments, handoff_rows, hard_delete, project_rows, sessions, task_rows
from lore.store.database import Connection
from lore.store.handoff_rows import HandoffRow
from lore.store.hard_delete import ForgetSelection
from lore.store.layout_rows import LAYOUT
from lore.store.project_rows import ProjectLocation
from lore.store.task_rows import TaskPlace
from lore.sync.wire_format import parse_record
from tests.sync.machines import Machine

REMOTE = "git@host:me/code"


@pytest.fixture
def pair() -> Iterator[tuple[Machine, Machine]]:
    machines = Machine("one"), Machine("other")
    yield machines
    for machine in machines:
        machine.close()


def place_at(db: Connection, machine: Machine) -> int:
    place = ProjectLocation(f"/home/{machine.name}/code", REMOTE, "code")
    return project_rows.ensure_project_at(db, place, now=machine.now())


def converse(machine: Machine, name: str = "talk") -> int:
    message = NewMessage("user", (Part("text", "Build the gate."),), machine.now(), key=name)
    capture(machine.database, Conversation(name, agent="codex"), [message])
    with machine.database.read() as db:
        return sessions.find_session(db, name, agent="codex") or 0


def hand_over(
    machine: Machine, body: dict[str, Any], *, session_n: int | None = None, in_project: bool = True
) -> str:
    now = machine.now()
    id_ = clock.new_id(now)

    def work(db: Connection) -> None:
        project_n = place_at(db, machine) if in_project else None
        row = HandoffRow(id_, session_n, project_n, "codex", "", body, now, None)
        handoff_rows.add_handoff(db, row)

    machine.write(work)
    return id_


def handoffs_of(machine: Machine) -> list[HandoffRow]:
    with machine.database.read() as db:
        return handoff_rows.handoffs(db, place_at_home(db, machine))


def place_at_home(db: Connection, machine: Machine) -> int | None:
    return db.number("SELECT n FROM projects WHERE remote = :remote", remote=REMOTE)


def start(machine: Machine, goal: str, *, episode: str = "") -> str:
    now = machine.now()
    id_ = clock.new_id(now)
    task = TaskRecord(id_, goal, "", "", "implementation", "open", now)

    def work(db: Connection) -> None:
        n = task_rows.add_task(db, task, TaskPlace(project_n=place_at(db, machine)))
        if episode:
            content = "An episode about the gate."
            new = fragments.NewFragment(episode, content, content, "episode", now)
            db.update("tasks", n, episode_n=fragments.add(db, new, now=now))

    machine.write(work)
    return id_


def tasks_of(machine: Machine) -> dict[str, str]:
    with machine.database.read() as db:
        return dict(db.rows("SELECT id, state FROM tasks"))


def test_a_handoff_is_in_the_project_of_the_other_laptop_until_one_reads_it(pair) -> None:
    one, other = pair
    id_ = hand_over(one, {"next_steps": ["paint the gate"]}, session_n=converse(one))
    other.write(lambda db: place_at(db, other))  # the same repository in another folder
    other.sync_with(one)
    [arrived] = handoffs_of(other)
    assert (arrived.id, arrived.body) == (id_, {"next_steps": ["paint the gate"]})
    assert arrived.session_n is not None
    other.write(lambda db: db.update("handoffs", 1, read_at=clock.to_us(other.now())))
    other.sync_with(one)
    assert handoffs_of(one)[0].read_at is not None
    assert one.replica.state_hash() == other.replica.state_hash()


def test_open_work_arrives_and_is_done_where_it_was_finished(pair) -> None:
    one, other = pair
    id_ = start(one, "Build the gate")
    other.sync_with(one)
    assert tasks_of(other) == {id_: "open"}
    other.write(lambda db: db.update("tasks", 1, state="done", outcome="success"))
    other.sync_with(one)
    assert tasks_of(one) == {id_: "done"}


def test_a_working_state_is_that_of_the_same_session(pair) -> None:
    one, other = pair
    for machine in pair:
        converse(machine, "shared")  # both have it, under ids of their own
    body = {"goal": "build the gate"}
    one.write(lambda db: handoff_rows.put_working_state(db, 1, body, now=one.now()))
    other.sync_with(one)
    with other.database.read() as db:
        [state] = db.rows("SELECT session_n, body FROM working_states")
    assert (state[0], "build the gate" in state[1]) == (1, True)
    assert one.replica.state_hash() == other.replica.state_hash()


def test_a_task_waits_for_its_episode(pair) -> None:
    one, other = pair
    episode = clock.new_id(one.now())
    id_ = start(one, "Build the gate", episode=episode)
    one.replica.scan()
    records = one.replica.changes("").records
    for kinds in (("task",), ("fragment",)):
        part = [record for record in records if record["kind"] in kinds]
        other.replica.apply(part, via=one.replica.machine)
        assert (id_ in tasks_of(other)) == (kinds == ("fragment",))
    with other.database.read() as db:
        assert db.value("SELECT count(*) FROM tasks WHERE episode_n IS NOT NULL") == 1


def records_of(machine: Machine, *kinds: str) -> list[dict[str, Any]]:
    """Return the records of some kinds that a machine sends."""
    machine.replica.scan()
    records = machine.replica.changes("").records
    return [copy.deepcopy(record) for record in records if record["kind"] in kinds]


def test_a_task_whose_episode_is_a_message_has_none_and_fails_no_page(pair) -> None:
    one, other = pair
    converse(one)
    id_ = start(one, "Build the gate")
    [task], [message] = records_of(one, "task"), records_of(one, "message")
    task["registers"]["self"][2]["episode"] = message["key"]
    other.replica.apply([task], via="a third")
    assert tasks_of(other) == {}
    other.sync_with(one)
    with other.database.read() as db:
        assert db.value("SELECT count(*) FROM messages") == 1
        assert db.rows("SELECT id, episode_n FROM tasks") == [(id_, None)]


def test_a_waiting_record_that_cannot_be_stored_is_dropped_without_its_page(pair) -> None:
    one, other = pair
    episode = clock.new_id(one.now())
    start(one, "Build the gate", episode=episode)
    [task], fragment = records_of(one, "task"), records_of(one, "fragment")
    other.replica.apply([task], via="a third")
    spoilt = "UPDATE sync_pending SET body = replace(body, '\"goal\"', '\"gaol\"')"
    other.write(lambda db: db.run(spoilt))
    applied = other.replica.apply(fragment, via=one.replica.machine)
    assert applied.changed == 1
    with other.database.read() as db:
        assert db.value("SELECT count(*) FROM sync_pending") == 0
        assert db.value("SELECT count(*) FROM fragments") == 1


def test_a_handoff_goes_with_what_it_quotes_on_all_machines(pair) -> None:
    one, other = pair
    now = one.now()
    content = "The combination of the gate is 4711 and the key hangs behind it."
    new = fragments.NewFragment(clock.new_id(now), content, content, "fact", now)
    n = one.write(lambda db: fragments.add(db, new, now=now))
    hand_over(one, {"note": content})
    other.sync_with(one)
    assert len(handoffs_of(other)) == 1
    one.write(lambda db: hard_delete.forget(db, ForgetSelection((n,)), now=one.now()))
    other.sync_with(one)
    assert handoffs_of(one) == handoffs_of(other) == []
    assert b"4711" not in other.bytes()


def test_what_was_forgotten_does_not_come_back_with_an_old_page(pair) -> None:
    one, other = pair
    session_n = converse(one)
    hand_over(one, {"note": "paint the gate"}, session_n=session_n)
    one.replica.scan()
    old = one.replica.changes("")
    other.sync_with(one)
    forgotten = ForgetSelection(session_ns=(session_n,))
    one.write(lambda db: hard_delete.forget(db, forgotten, now=one.now()))
    other.sync_with(one)
    other.replica.apply(old.records, via=one.replica.machine)
    assert handoffs_of(other) == []
    assert one.replica.state_hash() == other.replica.state_hash()


def test_a_secret_in_a_handoff_does_not_leave(pair) -> None:
    one, other = pair
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    hand_over(one, {"note": f"the token is {secret}"})
    other.sync_with(one)
    assert secret not in str(handoffs_of(other)[0].body)
    assert secret not in str(handoffs_of(one)[0].body)


def test_what_was_imported_from_a_folder_stays(pair) -> None:
    one, other = pair
    hand_over(one, {LAYOUT: {"path": "handoffs/a.md"}, "note": "paint the gate"})
    other.sync_with(one)
    with other.database.read() as db:
        assert db.value("SELECT count(*) FROM handoffs") == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("body", "text"), ("created_at", -(2**62)), ("from_agent", 7), ("more", 1), ("session", 3)],
)
def test_a_handoff_with_anything_wrong_in_it_is_refused(pair, name: str, value: object) -> None:
    one, _ = pair
    hand_over(one, {"note": "paint the gate"})
    one.replica.scan()
    [record] = [r for r in one.replica.changes("").records if r["kind"] == "handoff"]
    parse_record(record)
    record["registers"]["self"][2][name] = value
    with pytest.raises(SyncError):
        parse_record(record)


def change_body(record: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    record["registers"]["self"][2]["body"] = body
    return record


def test_a_body_that_is_too_deep_to_send_on_is_refused(pair) -> None:
    one, _ = pair
    hand_over(one, {"note": "paint the gate"})
    [record] = records_of(one, "handoff")
    inner: Any = "deep"
    for _ in range(31):
        inner = {"a": inner}
    parse_record(change_body(record, inner))
    for wrapped in ({"a": {"a": inner}}, {"a": [[inner]]}):
        with pytest.raises(SyncError):
            parse_record(change_body(record, wrapped))


def test_a_working_state_without_a_session_is_refused_unless_it_was_removed(pair) -> None:
    one, _ = pair
    n = converse(one)
    one.write(lambda db: handoff_rows.put_working_state(db, n, {"goal": "a"}, now=one.now()))
    [record] = records_of(one, "working_state")
    del record["references"]
    with pytest.raises(SyncError):
        parse_record(record)
    record["registers"]["self"][2] = None
    parse_record(record)


def test_a_body_that_looks_like_a_frame_of_a_layout_is_stored(pair) -> None:
    one, other = pair
    id_ = hand_over(one, {"note": "paint the gate"})
    [record] = records_of(one, "handoff")
    for others in (5, [5], [[1]]):
        change_body(record, {"around": 5, "others": others})
        record["key"] = clock.new_id(other.now())
        other.replica.apply([record], via=one.replica.machine)
    assert len(handoffs_of(other)) == 3
    assert id_ not in {one.id for one in handoffs_of(other)}


def test_another_machine_does_not_say_from_which_file_a_handoff_is(pair) -> None:
    one, other = pair
    hand_over(one, {"note": "paint the gate"})
    [record] = records_of(one, "handoff")
    change_body(record, {LAYOUT: "boom", "note": "paint the gate"})
    other.replica.apply([record], via=one.replica.machine)
    assert [row.body for row in handoffs_of(other)] == [{"note": "paint the gate"}]


def state_of(machine: Machine) -> dict[str, Any]:
    with machine.database.read() as db:
        found = handoff_rows.find_working_state(db, 1)
    return {} if found is None else dict(found.body)


def test_how_far_a_session_was_read_stays_on_each_machine(pair) -> None:
    one, other = pair
    for machine in pair:
        converse(machine, "shared")
    for machine, read_to in ((other, 3), (one, 10**12)):
        body = {"goal": machine.name, "read_to": read_to, "task_from": read_to}
        machine.time = max(one.time, other.time)
        at = machine.now()
        machine.write(
            lambda db, body=body, at=at: handoff_rows.put_working_state(db, 1, body, now=at)
        )
    [record] = records_of(one, "working_state")
    assert record["registers"]["self"][2]["body"] == {"goal": "one"}
    other.sync_with(one)
    assert state_of(other) == {"goal": "one", "read_to": 3, "task_from": 3}
    assert one.replica.state_hash() == other.replica.state_hash()


def test_a_machine_without_a_state_takes_no_place_in_a_session(pair) -> None:
    one, other = pair
    n = converse(one)
    one.write(lambda db: handoff_rows.put_working_state(db, n, {"goal": "a"}, now=one.now()))
    [record] = records_of(one, "working_state")
    change_body(record, {"goal": "a", "read_to": 10**12})
    other.replica.apply([record], via=one.replica.machine)
    assert state_of(other) == {"goal": "a"}
