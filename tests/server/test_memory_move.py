"""Moving the memories of a server from files to rows of PostgreSQL, and back."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any
from uuid import uuid4

import pytest

from lore import __version__, clock
from lore.daemon.daemon_lock import take_lock
from lore.errors import AlreadyRunning, InvalidInput, StoreBusy, StoreDamaged, StoreError
from lore.proxy.address import API_PREFIX
from lore.server.memory_move import MovePlace, MoveResult, move_memories
from lore.server.memory_store import MEMORY_FILE, MemoryStore
from lore.server.registry import ERASED_NOTE, MOVE_NOTE, STAMP_NOTE, Registry
from lore.settings import load
from lore.store.database import Connection, open_database, set_meta
from lore.store.row_lines import RowTally
from lore.text.name_limit import shorten_name
from tests.cli.conftest import PROGRAM, environment, run_process
from tests.server.served import Served, serving
from tests.server.test_process import STORE
from tests.trust.test_isolation import seed
from tests.waiting import eventually

psycopg = pytest.importorskip("psycopg")

from lore.store.postgres.owner_connection import owner_of  # noqa: E402 - it needs psycopg

NAMES = ("ann", "ben")
READS = ("/fragments", "/sessions", "/tasks", "/skills", "/handoffs", "/teams", "/spend")
QUERY = {"query": "harbor gate", "limit": 20}


def move(home: Path, url: str, to: MovePlace, **options: Any) -> MoveResult:
    return move_memories(home, replace(load({}, home=home).settings, store_url=url), to, **options)


def fill(home: Path) -> dict[str, str]:
    """Serve a new home with files, store everything that the API takes, and return the keys."""
    with serving(home) as served:
        for name in NAMES:
            seed(served, name, served.add(name))
        share(served)
        served.registry.set_budget(served.folder("ann"), 7.5)
        return served.keys


def share(served: Served) -> None:
    """Publish something to a team, and let somebody approve it."""
    ann, ben = served.keys["ann"], served.keys["ben"]
    served.registry.add_team("harbor", quorum=1)
    for name in NAMES:
        served.registry.add_member("harbor", name)
    id_ = served.post(STORE, {"content": "The gate opens at six.\0"}, ann).json["data"]["id"]
    path = f"{API_PREFIX}/teams/harbor/publications"
    published = served.post(path, {"id": id_}, ann).json["id"]
    assert served.post(f"{path}/{published}/approve", {}, ben).json["state"] == "approved"


def look_at_copy(home: Path, keys: dict[str, str]) -> dict[str, Any]:
    """Return what each owner sees of their memory; reading reinforces that of a copy."""
    return look(shutil.copytree(home, home.parent / "copy of the server"), keys)


def look(home: Path, keys: dict[str, str], url: str = "") -> dict[str, Any]:
    """Return what each owner sees of their memory."""
    with serving(home, url=url) as served:
        seen: dict[str, Any] = {"budget": served.registry.find_budget(served.folder("ann"))}
        for name, key in keys.items():
            for path in READS:
                seen[f"{name} {path}"] = served.get(f"{API_PREFIX}{path}", key).json
            hits = served.post(f"{API_PREFIX}/retrieve", QUERY, key).json["hits"]
            # vectors are rounded otherwise in rows: what barely fits may be left out
            fitting = [hit for hit in hits if "100% of the question's words" in hit["why"]]
            seen[f"{name} hits"] = sorted(hit["id"] for hit in fitting)
        return seen


def rows_of_files(home: Path) -> dict[str, RowTally]:
    """Return the rows of every memory in files."""
    found = {}
    for path in sorted(home.glob(f"*/*/{MEMORY_FILE}")):
        database = open_database(path, busy_timeout_s=5, backups=None, read_only=True)
        found[path.parent.name] = RowTally.of(database.dump_rows())
        database.close()
    return found


def plain(seen: dict[str, Any]) -> str:
    """Return what was seen as text; a zero character has a sign on PostgreSQL."""
    return json.dumps(seen, sort_keys=True).replace("\\u0000", "\\u2400")


def test_memories_on_postgres_are_those_of_the_files(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    keys = fill(home)
    before = look_at_copy(home, keys)
    assert len(before["ann hits"]) > 4
    moved = move(home, postgres_url, "postgres")
    assert {one.name for one in moved.memories} == {*NAMES, "harbor", "ann-team", "ben-team"}
    assert sum(one.rows > 100 for one in moved.memories) == 2
    assert plain(look(home, keys, postgres_url)) == plain(before)
    assert not list(home.glob(f"*/*/{MEMORY_FILE}"))


def test_memories_come_back_as_files_without_a_difference(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    keys = fill(home)
    before, rows = look_at_copy(home, keys), rows_of_files(home)
    move(home, postgres_url, "postgres")
    move(home, postgres_url, "files")
    after = rows_of_files(home)
    assert {id_: rows[id_].differences(after[id_]) for id_ in rows} == {id_: [] for id_ in rows}
    assert plain(look(home, keys)) == plain(before)
    with psycopg.connect(postgres_url) as admin:
        with Registry.open(home) as registry:
            names = [registry.rows_name("owner", one.id) for one in registry.list_owners()]
        for name in names:
            sql = "SELECT count(*) FROM lore.meta WHERE owner = %s"
            assert admin.execute(sql, [owner_of(name)]).fetchone() == (0,)


def test_a_moved_memory_can_be_written_and_searched(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    keys = fill(home)
    move(home, postgres_url, "postgres")
    with serving(home, url=postgres_url) as served:
        body = {"content": "The crane on pier nine was repaired."}
        assert served.post(STORE, body, keys["ann"]).status == 200
        asked = {"query": "Which crane was repaired?"}
        hits = served.post(f"{API_PREFIX}/retrieve", asked, keys["ann"]).json["hits"]
        assert "pier nine" in hits[0]["text"]
    move(home, postgres_url, "files")
    with serving(home) as served:
        hits = served.post(f"{API_PREFIX}/retrieve", asked, keys["ann"]).json["hits"]
        assert "pier nine" in hits[0]["text"]


def test_the_former_copy_is_set_aside_where_forgetting_reaches_it(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    fill(home)
    moved = move(home, postgres_url, "postgres")
    [ann] = [one for one in moved.memories if one.name == "ann"]
    former = Path(ann.former)
    assert b"opens at six" in former.read_bytes()
    with (
        serving(home, url=postgres_url) as served,
        served.server.pool.lease(ann.id) as service,
    ):
        service.memory.maintenance.forget(match="opens at six")
    assert b"opens at six" not in former.read_bytes()


def test_no_vectors_stay_in_files_beside_rows(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    keys = fill(home)
    look(home, keys)
    indexes = list(home.glob(f"*/*/{Path(MEMORY_FILE).stem}.vectors"))
    assert indexes
    with pytest.raises(Stopped):
        move(home, postgres_url, "postgres", on_memory=stop_at("ben"))
    move(home, postgres_url, "postgres")
    assert not any(one.exists() for one in indexes)
    former = folder_of(home, "ann") / f"{Path(MEMORY_FILE).stem}.vectors"
    (former / "old").mkdir(parents=True)  # as a deletion leaves it that was interrupted
    with (
        serving(home, url=postgres_url) as served,
        served.server.pool.lease(former.parent.name) as service,
    ):
        service.memory.context.embed_waiting(judge=False)
        service.memory.maintenance.forget(match="opens at six")
    assert not former.exists()


def folder_of(home: Path, name: str) -> Path:
    with Registry.open(home) as registry:
        [id_] = [one.id for one in registry.list_owners() if one.name == name]
        return registry.owner_folder(id_)


def test_the_former_copy_is_deleted_only_if_asked(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    fill(home)
    moved = move(home, postgres_url, "postgres", delete_former=True)
    assert {one.former for one in moved.memories} == {""}
    assert not list(home.glob("*/*/backups/*.db"))
    back = move(home, postgres_url, "files")
    assert all(Path(one.former).is_file() for one in back.memories if one.rows)


def test_a_dry_run_counts_and_changes_nothing(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    fill(home)
    rows = rows_of_files(home)
    planned = move(home, postgres_url, "postgres", dry_run=True)
    assert not planned.is_done
    assert {one.id: one.rows for one in planned.memories if one.rows} == {
        id_: tally.rows for id_, tally in rows.items() if tally.rows
    }
    with Registry.open(home) as registry:
        assert not registry.has_rows
        assert not registry.move_to
    assert rows_of_files(home).keys() == rows.keys()


class Stopped(Exception):
    pass


def stop_at(name: str) -> Callable[[str, int, int], None]:
    def report(memory: str, _number: int, _all: int) -> None:
        if memory == name:
            raise Stopped

    return report


def test_a_server_is_refused_until_an_interrupted_move_is_finished(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    keys = fill(home)
    before = look_at_copy(home, keys)
    with pytest.raises(Stopped):
        move(home, postgres_url, "postgres", on_memory=stop_at("ben"))
    settings = load({}, home=home).settings
    for url in ("", postgres_url):
        with (
            Registry.open(home) as registry,
            pytest.raises(InvalidInput, match="is not finished"),
        ):
            MemoryStore(registry, replace(settings, store_url=url)).claim()
    move(home, postgres_url, "postgres")
    assert plain(look(home, keys, postgres_url)) == plain(before)
    assert move(home, postgres_url, "postgres").was_there


@pytest.fixture
def other_url(postgres_url: str) -> str:
    """Another database of the same server."""
    name = f"elsewhere_{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    other = postgres_url.replace("/postgres?", f"/{name}?")
    assert other != postgres_url
    return other


def test_a_move_continues_only_with_the_database_that_it_began_with(
    tmp_path: Path, postgres_url: str, other_url: str
):
    home = tmp_path / "server"
    fill(home)
    with pytest.raises(Stopped):
        move(home, postgres_url, "postgres", on_memory=stop_at("ben"))
    with pytest.raises(StoreDamaged, match="no rows of this server"):
        move(home, other_url, "postgres")


def test_a_move_to_files_erases_only_the_database_that_it_began_with(
    tmp_path: Path, postgres_url: str, other_url: str
):
    home = tmp_path / "server"
    fill(home)
    move(home, postgres_url, "postgres")
    with Registry.open(home) as registry:  # as a move is that was killed after the switch
        registry.set_notes({MOVE_NOTE: "files", STAMP_NOTE: "20260101T000000"})
        registry.switch_rows(has_rows=False)
    with pytest.raises(StoreDamaged, match="no rows of this server"):
        move(home, other_url, "files")
    with pytest.raises(InvalidInput, match="A move to files was interrupted"):
        move(home, postgres_url, "postgres")
    assert move(home, postgres_url, "files").is_done
    assert count_rows(home, postgres_url) == 0


def test_a_move_to_files_ends_if_it_was_killed_after_the_last_row_was_erased(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    keys = fill(home)
    before = look_at_copy(home, keys)
    move(home, postgres_url, "postgres")
    move(home, postgres_url, "files")
    with Registry.open(home) as registry:
        registry.set_notes({MOVE_NOTE: "files", STAMP_NOTE: "20260101T000000", ERASED_NOTE: "1"})
    assert move(home, postgres_url, "files").is_done
    assert plain(look(home, keys)) == plain(before)


def count_rows(home: Path, url: str) -> int:
    """Return how many memories of people a server has in a database."""
    return count_named(url, rows_names(home))


def rows_names(home: Path) -> list[str]:
    with Registry.open(home) as registry:
        return [registry.rows_name("owner", one.id) for one in registry.list_owners()]


def count_named(url: str, names: Iterable[str]) -> int:
    """Return how many memories a database has under some names."""
    with psycopg.connect(url) as admin:
        sql = "SELECT count(*) FROM lore.meta WHERE owner = ANY(%s) AND key = 'epoch'"
        [count] = admin.execute(sql, [[owner_of(name) for name in names]]).fetchone() or (0,)
        return int(count)


@pytest.mark.parametrize("url", ["there", "away", "none"])
def test_a_move_to_postgres_is_cancelled_by_one_to_files(
    tmp_path: Path, postgres_url: str, url: str
):
    home = tmp_path / "server"
    keys = fill(home)
    before = look_at_copy(home, keys)
    with pytest.raises(Stopped):
        move(home, postgres_url, "postgres", on_memory=stop_at("ben"))
    names = rows_names(home)
    assert count_named(postgres_url, names) > 0
    urls = {"there": postgres_url, "away": "postgresql://localhost:1/none", "none": ""}
    cancelled = move(home, urls[url], "files")
    assert cancelled.is_cancelled
    assert cancelled.has_leftover_rows == (url != "there")
    assert (count_named(postgres_url, names) == 0) == (url == "there")
    assert plain(look(home, keys)) == plain(before)


@pytest.mark.parametrize("contact", ["files", "postgres", "another", "serve", "removed"])
def test_what_a_cancelled_move_left_is_erased_at_the_next_contact(
    tmp_path: Path, postgres_url: str, other_url: str, contact: str
):
    home = tmp_path / "server"
    fill(home)
    with pytest.raises(Stopped):
        move(home, postgres_url, "postgres", on_memory=stop_at("ben"))
    with Registry.open(home) as registry:
        names = [*rows_names(home), registry.rows_name("server", "")]
    assert move(home, "postgresql://localhost:1/none", "files").has_leftover_rows
    assert count_named(postgres_url, names) > 0
    if contact == "removed":  # who is no longer there must leave nothing
        with Registry.open(home) as registry:
            registry.erase_removed(registry.remove_owner("ann"))
    elsewhere = move(home, other_url, "postgres" if contact == "another" else "files")
    assert elsewhere.has_leftover_rows
    assert count_named(postgres_url, names) > 0
    if contact == "serve":
        for file in home.glob(f"*/*/{MEMORY_FILE}"):
            file.unlink()
        with serving(home, url=postgres_url):
            pass
    else:
        to: MovePlace = "postgres" if contact == "postgres" else "files"
        assert not move_from(home, postgres_url, to, contact, other_url).has_leftover_rows
    assert count_named(postgres_url, names) == 0
    with Registry.open(home) as registry:
        assert registry.left_rows() == {}


class DyingRegistry(Registry):
    """A registry whose process ends before it notes that left rows are deleted."""

    def forget_left_rows(self, mark: str) -> None:
        raise Stopped


def test_a_server_killed_while_it_erases_what_was_left_does_so_at_the_next_start(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    fill(home)
    with pytest.raises(Stopped):
        move(home, postgres_url, "postgres", on_memory=stop_at("ben"))
    names = rows_names(home)
    assert move(home, "postgresql://localhost:1/none", "files").has_leftover_rows
    settings = replace(load({}, home=home).settings, store_url=postgres_url)
    with DyingRegistry.open(home) as registry, pytest.raises(Stopped):
        MemoryStore(registry, settings).erase_left_rows()
    with Registry.open(home) as registry:
        assert not MemoryStore(registry, settings).erase_left_rows()
        assert registry.left_rows() == {}
    assert count_named(postgres_url, names) == 0


def test_copies_in_a_database_that_is_gone_for_good_are_forgotten_on_request(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    fill(home)
    with pytest.raises(Stopped):
        move(home, postgres_url, "postgres", on_memory=stop_at("ben"))
    assert move(home, "", "files").has_leftover_rows
    assert not move(home, "", "files", forget_left=True).has_leftover_rows
    with Registry.open(home) as registry:
        assert registry.left_rows() == {}


def move_from(home: Path, url: str, to: MovePlace, contact: str, other_url: str) -> MoveResult:
    if contact == "another":
        assert move(home, other_url, "files").has_leftover_rows
    return move(home, url, to)


def test_a_move_to_files_is_cancelled_by_one_to_postgres(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    keys = fill(home)
    before = look_at_copy(home, keys)
    move(home, postgres_url, "postgres")
    with pytest.raises(Stopped):
        move(home, postgres_url, "files", on_memory=stop_at("ben"))
    assert list(home.glob(f"*/*/{MEMORY_FILE}"))
    planned = move(home, postgres_url, "postgres", dry_run=True)
    assert (planned.is_cancelled, planned.is_done) == (True, False)
    assert move(home, postgres_url, "postgres").is_cancelled
    assert not list(home.glob(f"*/*/{MEMORY_FILE}*"))
    assert plain(look(home, keys, postgres_url)) == plain(before)


def test_a_memory_that_changed_since_it_was_copied_is_copied_again(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    fill(home)
    with pytest.raises(Stopped):
        move(home, postgres_url, "postgres", on_memory=stop_at("ben"))
    file = folder_of(home, "ann") / MEMORY_FILE
    write_in(file, lambda db: set_meta(db, "written", "meanwhile"))
    rows = rows_of_files(home)[file.parent.name]
    moved = move(home, postgres_url, "postgres")
    assert {one.name: one.rows for one in moved.memories}["ann"] == rows.rows
    with Registry.open(home) as registry:
        settings = replace(load({}, home=home).settings, store_url=postgres_url)
        with MemoryStore(registry, settings).open_rows("owner", file.parent.name) as there:
            assert rows.differences(RowTally.of(there.dump_rows(portable=True))) == []


def write_in(file: Path, work: Callable[[Connection], Any]) -> None:
    with closing(open_database(file, busy_timeout_s=5, backups=None)) as database:
        database.write(work)


def read_rows(home: Path, url: str, id_: str, sql: str) -> list[Any]:
    with Registry.open(home) as registry:
        settings = replace(load({}, home=home).settings, store_url=url)
        with MemoryStore(registry, settings).open_rows("owner", id_) as rows, rows.read() as db:
            return db.column(sql)


def test_what_is_written_after_a_memory_was_copied_is_moved_too(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    fill(home)
    file = folder_of(home, "ann") / MEMORY_FILE

    def write_late(memory: str, _number: int, _all: int) -> None:
        if memory == "ben":
            write_in(file, lambda db: set_meta(db, "written", "late"))

    moved = move(home, postgres_url, "postgres", on_memory=write_late)
    sql = "SELECT value FROM meta WHERE key = 'written'"
    assert read_rows(home, postgres_url, file.parent.name, sql) == ["late"]
    [former] = [Path(one.former) for one in moved.memories if one.name == "ann"]
    with closing(open_database(former, busy_timeout_s=5, backups=None)) as database:
        rows = RowTally.of(database.dump_rows()).rows
    assert [one.rows for one in moved.memories if one.name == "ann"] == [rows]


def test_a_memory_that_is_open_elsewhere_is_not_moved(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    fill(home)
    file = folder_of(home, "ben") / MEMORY_FILE
    with closing(open_database(file, busy_timeout_s=5, backups=None)) as database:
        database.write(lambda db: set_meta(db, "written", "before"))
        with pytest.raises(StoreBusy, match=r"owner 'ben'.*Another process has"):
            move(home, postgres_url, "postgres")
        database.write(lambda db: set_meta(db, "written", "after"))
    assert move(home, postgres_url, "postgres").is_done
    sql = "SELECT value FROM meta WHERE key = 'written'"
    assert read_rows(home, postgres_url, file.parent.name, sql) == ["after"]


def test_a_memory_with_a_daemon_of_its_own_is_not_moved(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    fill(home)
    lock = take_lock(folder_of(home, "ann"), now=clock.now(), version=__version__)
    try:
        for dry_run in (True, False):
            with pytest.raises(AlreadyRunning, match="owner 'ann'"):
                move(home, postgres_url, "postgres", dry_run=dry_run)
    finally:
        lock.release()


def test_names_that_postgres_cannot_index_are_shortened_in_the_copy(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    keys = fill(home)
    path, agent, name = (token_hex(size) for size in (3_000, 700, 700))

    def lengthen(db: Connection) -> None:
        assert db.run("UPDATE projects SET path = :path WHERE n = 1", path=path)
        db.insert("aliases", id=path, project_n=1)
        sql = "UPDATE sessions SET agent = :agent, external_id = :name WHERE n = 1"
        assert db.run(sql, agent=agent, name=name)

    id_ = folder_of(home, "ann").name
    write_in(folder_of(home, "ann") / MEMORY_FILE, lengthen)
    planned = move(home, postgres_url, "postgres", dry_run=True)
    assert [one.shortened for one in planned.memories if one.name == "ann"] == [4]
    told = run_process(
        "owner", "move", "--to", "postgres", "--dry-run", "--data", str(home),
        env={"LORE_STORE_URL": postgres_url},
    )  # fmt: skip
    assert "owner ann: 4 names too long for PostgreSQL" in told.out
    moved = move(home, postgres_url, "postgres")
    assert {one.name: one.shortened for one in moved.memories if one.shortened} == {"ann": 4}
    short = shorten_name(path)
    for sql in ("SELECT path FROM projects WHERE n = 1", "SELECT id FROM aliases"):
        assert short in read_rows(home, postgres_url, id_, sql)
    sql = "SELECT external_id FROM sessions WHERE n = 1"
    assert read_rows(home, postgres_url, id_, sql) == [shorten_name(name)]
    assert look(home, keys, postgres_url)["ann hits"]


def test_an_error_of_a_move_names_the_memory(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    fill(home)
    id_ = folder_of(home, "ben").name
    sql = "UPDATE fragments SET access_count = 'many' WHERE n = (SELECT min(n) FROM fragments)"
    write_in(folder_of(home, "ben") / MEMORY_FILE, lambda db: db.rows(sql))
    with pytest.raises(StoreError, match=rf"The memory of owner 'ben' \({id_[:12]}\): .") as error:
        move(home, postgres_url, "postgres")
    assert "'--to files' cancels the move" in error.value.hint


def test_vectors_elsewhere_of_one_who_was_removed_before_a_move_are_noted(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    fill(home)
    file = folder_of(home, "ann") / MEMORY_FILE
    with closing(open_database(file, busy_timeout_s=5, backups=None)) as database:
        database.write(lambda db: set_meta(db, "vectors_in", "a vector server"))
    with Registry.open(home) as registry:
        removed = registry.remove_owner("ann")
    move(home, postgres_url, "postgres")
    with Registry.open(home) as registry:
        settings = replace(load({}, home=home).settings, store_url=postgres_url)
        MemoryStore(registry, settings).erase(removed)
        assert registry.left_vectors() == [removed.id]


def test_a_copy_of_a_servers_folder_never_replaces_the_servers_rows(
    tmp_path: Path, postgres_url: str
):
    home, copy = tmp_path / "server", tmp_path / "copy"
    keys = fill(home)
    shutil.copytree(home, copy)
    move(home, postgres_url, "postgres")
    with serving(home, url=postgres_url) as served:
        served.post(STORE, {"content": "Stored after the copy."}, keys["ann"])
    move(copy, postgres_url, "postgres")
    with serving(home, url=postgres_url) as served:
        listed = served.get(f"{API_PREFIX}/fragments", keys["ann"]).json["items"]
    assert "Stored after the copy." in {one["content"] for one in listed}


def test_a_running_server_is_not_moved(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    fill(home)
    lock = take_lock(home, now=clock.now(), version=__version__)
    try:
        with pytest.raises(AlreadyRunning):
            move(home, postgres_url, "postgres")
    finally:
        lock.release()


def test_a_killed_move_loses_nothing(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    keys = fill(home)
    before, rows = look_at_copy(home, keys), rows_of_files(home)
    chance = random.Random(7)
    kills = [kill_until_done(home, postgres_url, to, chance) for to in ("postgres", "files")]
    assert min(kills) > 0
    after = rows_of_files(home)
    assert {id_: rows[id_].differences(after[id_]) for id_ in rows} == {id_: [] for id_ in rows}
    assert plain(look(home, keys)) == plain(before)


def kill_until_done(home: Path, url: str, to: str, chance: random.Random) -> int:
    """Kill a move after it changed something, again and again; return how often."""
    command = [*PROGRAM, "owner", "move", "--to", to, "--data", str(home)]
    env = environment(home.parent / "none", LORE_STORE_URL=url)
    for kills in range(40):
        before = changes(home)
        with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as process:
            most = chance.randint(1, 3)
            eventually(
                lambda: process.poll() is not None or abs(changes(home) - before) >= most  # noqa: B023
            )
            process.kill()
        if process.returncode == 0:
            return kills
    pytest.fail("the move never ended")


def changes(home: Path) -> int:
    """Return a number that grows with each step of a move."""
    with Registry.open(home) as registry, registry.database.read() as db:
        notes = db.value("SELECT count(*) FROM server_state WHERE value <> ''")
    return int(notes) + len(list(home.glob("*/*/backups/*"))) + len(list(home.glob("*/*/memory*")))


def test_the_command_reports_what_it_moved(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    fill(home)
    env = {"LORE_STORE_URL": postgres_url}
    data = ("--data", str(home))
    told = run_process("owner", "move", "--to", "postgres", "--json", *data, env=env)
    assert told.code == 0, told.err
    report = json.loads(told.out)
    assert report["to"] == "postgres"
    assert report["is_done"]
    again = run_process("owner", "move", "--to", "postgres", *data, env=env)
    assert "already" in again.out
    without = run_process("owner", "move", "--to", "files", *data)
    assert without.code != 0
    assert "store.url" in without.err
    wrong = run_process("owner", "move", "--to", "moon", *data, env=env)
    assert "postgres or files" in wrong.err
