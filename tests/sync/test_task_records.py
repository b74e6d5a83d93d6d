"""Tasks, handoffs and working states that travel between two homes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import orjson
import pytest

from lore import clock
from lore.capture.message_capture import Conversation, capture
from lore.errors import SyncError
from lore.http.request_limits import parse_json
from lore.records import NewMessage, Part
from lore.records.task_records import TaskRecord
from lore.store import (
    fragments,
    handoff_rows,
    hard_delete,
    project_rows,
    sessions,
    sync_rows,
    task_rows,
)
from lore.store.database import Connection
from lore.store.handoff_rows import HandoffRow
from lore.store.hard_delete import ForgetSelection
from lore.store.layout_rows import LAYOUT
from lore.store.project_rows import ProjectLocation, ensure_project_at
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


def test_a_task_that_was_finished_stays_so_after_a_later_edit_elsewhere(pair) -> None:
    one, other = pair
    id_ = start(one, "Build the gate")
    other.sync_with(one)
    done = {"state": "done", "outcome": "success", "reason": "merged"}
    other.write(lambda db: db.update("tasks", 1, ended_at=clock.to_us(other.now()), **done))
    one.time = other.time + timedelta(hours=1)
    one.write(lambda db: db.update("tasks", 1, phase="testing"))
    for _ in range(2):
        other.sync_with(one)
    for machine in pair:
        assert tasks_of(machine) == {id_: "done"}
        with machine.database.read() as db:
            assert db.rows("SELECT outcome, reason FROM tasks") == [("success", "merged")]
    assert one.replica.state_hash() == other.replica.state_hash()


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


CHECKLIST = "Run the release checklist."


def remember(machine: Machine, content: str) -> None:
    now = machine.now()
    new = fragments.NewFragment(clock.new_id(now), content, content, "fact", now)
    machine.write(lambda db: fragments.add(db, new, now=now))


def forget_fragments(machine: Machine) -> None:
    def work(db: Connection) -> None:
        ns = tuple(db.column("SELECT n FROM fragments"))
        hard_delete.forget(db, ForgetSelection(ns), now=machine.now())

    machine.write(work)


def forget_checklist(one: Machine, other: Machine) -> None:
    """Let both machines forget a sentence that a handoff and a fragment have."""
    remember(one, CHECKLIST)
    hand_over(one, {"next_steps": [CHECKLIST]})
    other.sync_with(one)
    forget_fragments(one)
    other.sync_with(one)
    assert handoffs_of(one) == handoffs_of(other) == []


@pytest.mark.parametrize("is_first_sync_later", [False, True])
def test_work_that_says_again_what_was_forgotten_stays(pair, is_first_sync_later: bool) -> None:
    one, other = pair
    remember(one, CHECKLIST)
    hand_over(one, {"next_steps": [CHECKLIST]})
    if not is_first_sync_later:
        other.sync_with(one)
    forget_fragments(one)
    if not is_first_sync_later:
        other.sync_with(one)
    task = start(one, CHECKLIST)
    body = {"what_was_done": "Keys rotated.", "next_steps": [CHECKLIST]}
    hand_over(one, body)
    other.time += timedelta(hours=1)  # it applies what was forgotten later than the work began
    for _ in range(3):
        other.sync_with(one)
    for machine in pair:
        assert tasks_of(machine) == {task: "open"}
        assert [row.body for row in handoffs_of(machine)] == [body]
    assert one.replica.state_hash() == other.replica.state_hash()


def test_a_text_that_is_forgotten_again_goes_with_all_that_was_made_until_then(pair) -> None:
    one, other = pair
    forget_checklist(one, other)
    other.time = one.time
    start(other, CHECKLIST)
    one.time += timedelta(hours=1)
    remember(one, CHECKLIST)
    start(one, CHECKLIST)
    forget_fragments(one)
    other.time = one.time
    kept = start(other, CHECKLIST)
    for _ in range(2):
        other.sync_with(one)
    assert tasks_of(one) == tasks_of(other) == {kept: "open"}
    assert one.replica.state_hash() == other.replica.state_hash()


def test_an_edit_does_not_save_what_was_made_before_its_text_was_forgotten(pair) -> None:
    one, other = pair
    remember(one, CHECKLIST)
    other.time = one.time
    start(other, CHECKLIST)
    start(one, CHECKLIST)
    one.time += timedelta(hours=1)
    forget_fragments(one)
    other.time = one.time + timedelta(hours=1)
    other.write(lambda db: db.update("tasks", 1, phase="review"))
    for _ in range(2):
        other.sync_with(one)
    assert tasks_of(one) == tasks_of(other) == {}


def test_a_handoff_loses_the_forgotten_entry_alone(pair) -> None:
    one, other = pair
    remember(one, CHECKLIST)
    hand_over(one, {"what_was_done": "Keys rotated.", "next_steps": [CHECKLIST, "Ship it."]})
    other.sync_with(one)
    other.write(lambda db: db.update("handoffs", 1, read_at=clock.to_us(other.now())))
    forget_fragments(one)
    for _ in range(2):
        other.sync_with(one)
    left = {"what_was_done": "Keys rotated.", "next_steps": ["Ship it."]}
    for machine in pair:
        assert [row.body for row in handoffs_of(machine)] == [left]
    assert one.replica.state_hash() == other.replica.state_hash()


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


def forget_session(machine: Machine, session_n: int) -> None:
    forgotten = ForgetSelection(session_ns=(session_n,))
    machine.write(lambda db: hard_delete.forget(db, forgotten, now=machine.now()))


def count_rows(machine: Machine) -> dict[str, int]:
    tables = ("sessions", "messages", "handoffs", "working_states", "tasks")
    with machine.database.read() as db:
        return {table: db.number(f"SELECT count(*) FROM {table}") or 0 for table in tables}


@pytest.mark.parametrize("is_first_to_send", [False, True])
def test_work_of_a_session_forgotten_before_the_first_sync_is_gone(
    pair, is_first_to_send: bool
) -> None:
    one, other = pair
    session_n, copy_n = converse(one, "harborwork"), converse(other, "harborwork")
    one.write(lambda db: handoff_rows.put_working_state(db, session_n, {"a": "b"}, now=one.now()))
    hand_over(one, {"note": "paint the gate"}, session_n=session_n)
    forget_session(other, copy_n)
    for _ in range(3):
        (one.sync_with(other) if is_first_to_send else other.sync_with(one))
    for machine in pair:
        assert set(count_rows(machine).values()) == {0}
        assert b"harborwork" not in machine.bytes()
    assert one.replica.state_hash() == other.replica.state_hash()


def test_a_session_that_goes_on_after_it_was_forgotten_is_a_new_one(pair) -> None:
    one, other = pair
    forget_session(other, converse(other, "shared"))
    began = other.time - timedelta(days=1)  # this message was captured late
    message = NewMessage("user", (Part("text", "Paint the gate."),), began, key="second")
    capture(other.database, Conversation("shared", agent="codex"), [message])
    with other.database.read() as db:
        session_n = sessions.find_session(db, "shared", agent="codex")
    id_ = hand_over(other, {"note": "paint the gate"}, session_n=session_n)
    for _ in range(2):
        other.sync_with(one)
    assert [row.id for row in handoffs_of(one)] == [id_]
    assert count_rows(one) == count_rows(other)
    assert one.replica.state_hash() == other.replica.state_hash()


def test_a_secret_in_a_handoff_does_not_leave(pair) -> None:
    one, other = pair
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    hand_over(one, {"note": f"the token is {secret}"})
    other.sync_with(one)
    assert secret not in str(handoffs_of(other)[0].body)
    assert secret not in str(handoffs_of(one)[0].body)


def rename(machine: Machine, session_n: int, name: str) -> None:
    machine.write(lambda db: db.update("sessions", session_n, external_id=name))


def test_names_with_secrets_do_not_arrive_but_are_recognized(pair) -> None:
    one, other = pair
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    place = ProjectLocation(f"/p/{secret}", f"https://me:{secret}@host/code", "code")
    for machine in pair:
        n = converse(machine, "talk")  # both have it
        rename(machine, n, f"talk {secret}")
    other.sync_with(one)
    n = one.write(lambda db: project_rows.ensure_project_at(db, place, now=one.now()))
    path = ProjectLocation(f"/only/{secret}", "", "only")
    only = one.write(lambda db: project_rows.ensure_project_at(db, path, now=one.now()))
    session_n = converse(one, "alone")
    rename(one, session_n, f"alone {secret}")
    one.write(lambda db: db.update("sessions", 1, project_n=n))
    one.write(lambda db: db.update("sessions", session_n, project_n=only))
    hand_over(one, {"note": "paint the gate"}, session_n=session_n, in_project=False)
    one.replica.scan()
    assert secret not in str(one.replica.changes("").records)
    for _ in range(2):
        other.sync_with(one)
    other.write(lambda db: db.update("sessions", 1, title="The gate"))
    for _ in range(2):
        other.sync_with(one)
    for machine in pair:
        with machine.database.read() as db:
            assert db.value("SELECT count(*) FROM projects") == 2
            assert db.value("SELECT count(*) FROM sessions") == 2
    with other.database.read() as db:
        names = db.rows("SELECT path, remote, name FROM projects")
        names += db.rows("SELECT external_id, agent, '' FROM sessions WHERE n > 1")
    assert secret not in str(names)
    assert one.replica.state_hash() == other.replica.state_hash()


def test_what_was_imported_from_a_folder_stays(pair) -> None:
    one, other = pair
    hand_over(one, {LAYOUT: {"path": "handoffs/a.md"}, "note": "paint the gate"})
    other.sync_with(one)
    with other.database.read() as db:
        assert db.value("SELECT count(*) FROM handoffs") == 0


def import_handoff(machine: Machine, id_: str, body: dict[str, Any], *, is_read: bool) -> None:
    now = machine.now()

    def work(db: Connection) -> None:
        own = {**body, LAYOUT: {"path": "handoffs/a.md", "raw": body}}
        read_at = now if is_read else None
        row = HandoffRow(id_, None, place_at(db, machine), "codex", "", own, now, read_at)
        handoff_rows.add_handoff(db, row)

    machine.write(work)


@pytest.mark.parametrize("is_read", [False, True])
def test_a_handoff_of_a_folder_is_that_of_the_machine_that_wrote_it(pair, is_read: bool) -> None:
    one, other = pair
    body = {"note": "paint the gate"}
    id_ = hand_over(one, body)
    import_handoff(other, id_, body, is_read=is_read)
    hand_over(one, {"note": "paint the door"})
    for _ in range(2):
        other.sync_with(one)
    for machine in pair:
        assert len(handoffs_of(machine)) == 2
        assert [row.read_at is not None for row in handoffs_of(machine)] == [False, is_read]
    assert one.replica.state_hash() == other.replica.state_hash()


def test_a_record_that_cannot_be_stored_is_dropped_without_its_page(pair) -> None:
    one, other = pair
    ids = [start(one, goal) for goal in ("Build the gate", "Paint the gate")]
    refusal = (
        "CREATE TRIGGER refusal BEFORE INSERT ON tasks WHEN new.goal = 'Build the gate'"
        " BEGIN SELECT raise(ABORT, 'no'); END"
    )
    other.write(lambda db: db.rows(refusal))
    other.sync_with(one)
    assert tasks_of(other) == {ids[1]: "open"}


def test_an_id_without_dashes_is_refused(pair) -> None:
    one, _ = pair
    hand_over(one, {"note": "paint the gate"})
    [record] = records_of(one, "handoff")
    record["key"] = "0" * 36
    with pytest.raises(SyncError):
        parse_record(record)


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


def nest(levels: int) -> Any:
    inner: Any = "deep"
    for _ in range(levels):
        inner = {"a": inner}
    return inner


def change_body(record: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    record["registers"]["self"][2]["body"] = body
    return record


def test_a_body_that_is_too_deep_to_send_on_is_refused(pair) -> None:
    one, _ = pair
    hand_over(one, {"note": "paint the gate"})
    [record] = records_of(one, "handoff")
    inner = nest(25)
    parse_record(change_body(record, inner))
    parse_json(orjson.dumps({"machine": "one", "records": [record]}))
    for wrapped in ({"a": inner}, {"a": [nest(24)]}):
        with pytest.raises(SyncError):
            parse_record(change_body(record, wrapped))


def test_a_newer_record_that_is_too_deep_is_left_out(pair) -> None:
    one, other = pair
    start(one, "Build the gate")
    [record] = records_of(one, "task")
    newer = copy.deepcopy(record)
    newer["registers"]["newer"] = [1, "m", nest(900)]
    unknown = {"kind": "future", "key": "k", "registers": {"self": [1, "m", nest(300)]}}
    deep = [newer, unknown, {**record, "more": nest(900)}]
    assert other.replica.apply(deep, via=one.replica.machine).received == 0
    with other.database.read() as db:
        assert list(sync_rows.kept_records(db)) == []


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


@pytest.mark.parametrize("knows_ids", [False, True])
def test_a_state_that_was_removed_is_removed_from_the_same_session(pair, knows_ids: bool) -> None:
    one, other = pair
    for machine in pair:
        converse(machine, "shared")
    one.write(lambda db: handoff_rows.put_working_state(db, 1, {"goal": "paint"}, now=one.now()))
    other.sync_with(one)
    assert state_of(other) == {"goal": "paint"}
    if not knows_ids:
        other.write(lambda db: db.run("DELETE FROM aliases"))
    one.write(lambda db: db.run("DELETE FROM working_states"))
    for _ in range(2):
        other.sync_with(one)
    assert state_of(one) == state_of(other) == {}
    assert one.replica.state_hash() == other.replica.state_hash()


def test_a_machine_without_a_state_takes_no_place_in_a_session(pair) -> None:
    one, other = pair
    n = converse(one)
    one.write(lambda db: handoff_rows.put_working_state(db, n, {"goal": "a"}, now=one.now()))
    [record] = records_of(one, "working_state")
    change_body(record, {"goal": "a", "read_to": 10**12})
    other.replica.apply([record], via=one.replica.machine)
    assert state_of(other) == {"goal": "a"}


@pytest.mark.parametrize("is_capture_first", [True, False])
@pytest.mark.parametrize("remote", ["", "https://me:{secret}@host/{secret}"])
def test_names_with_secrets_are_recognized_whichever_machine_is_first(
    pair, remote: str, is_capture_first: bool
) -> None:
    one, other = pair
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    place = ProjectLocation(f"/p/{secret}", remote.format(secret=secret), "code")

    def work_in(machine: Machine) -> None:
        now = machine.now()

        def work(db: Connection) -> None:
            n = ensure_project_at(db, place, now=now)
            sessions.ensure_session(
                db, f"talk {secret}", agent="codex", project_n=n, started_at=now
            )

        machine.write(work)

    work_in(one)
    if is_capture_first:
        work_in(other)
    other.sync_with(one)
    if not is_capture_first:
        work_in(other)
    for _ in range(2):
        other.sync_with(one)
    for machine in pair:
        with machine.database.read() as db:
            ((path, address, name),) = db.rows("SELECT path, remote, name FROM projects")
            assert (path, address, name) == (place.path, place.remote, "code")
            assert db.column("SELECT external_id FROM sessions") == [f"talk {secret}"]
    assert one.replica.state_hash() == other.replica.state_hash()
