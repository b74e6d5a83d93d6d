"""Copies of a server's folder that were made while its memories moved."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lore.errors import InvalidInput, StoreError, StoreUnreachable
from lore.proxy.address import API_PREFIX
from lore.server.memory_move import MovePlace
from lore.server.memory_store import LIVE, MEMORY_FILE, MemoryStore, MoveMark
from lore.server.registry import MOVE_ID_NOTE, MOVE_NOTE, SWITCH_NOTE, Registry
from lore.settings import load
from lore.store.database import remove_meta, set_meta
from tests.server.served import serving
from tests.server.test_memory_move import (
    Stopped,
    count_rows,
    fill,
    folder_of,
    look_at_copy,
    move,
    plain,
    stop_at,
    write_in,
)
from tests.server.test_memory_move import look as look_at
from tests.server.test_process import STORE

NEWS = "The lighthouse was painted after the move."
OTHER = "another move"


def stop_move(home: Path, url: str, to: MovePlace, name: str = "ben") -> None:
    with pytest.raises(Stopped):
        move(home, url, to, on_memory=stop_at(name))


def copy_of(home: Path) -> Path:
    return shutil.copytree(home, home.parent / "nightly copy")


def serve_news(home: Path, url: str, keys: dict[str, str]) -> None:
    with serving(home, url=url) as served:
        assert served.post(STORE, {"content": NEWS}, keys["ann"]).status == 200


def require_news(home: Path, url: str, keys: dict[str, str]) -> None:
    """Check that the server still has what it stored after the move, and everything else."""
    with serving(home, url=url) as served:
        listed = {
            name: [
                one["content"] for one in served.get(f"{API_PREFIX}/fragments", key).json["items"]
            ]
            for name, key in keys.items()
        }
    assert NEWS in listed["ann"]
    assert len(listed["ben"]) > 2


@contextmanager
def store_of(home: Path, url: str) -> Iterator[tuple[Registry, MemoryStore]]:
    with Registry.open(home) as registry:
        settings = replace(load({}, home=home).settings, store_url=url)
        yield registry, MemoryStore(registry, settings)


def forget_marks(home: Path, url: str) -> None:
    """Remove what versions before did not note."""
    with store_of(home, url) as (registry, store):
        registry.set_notes({MOVE_ID_NOTE: ""})
        with store.open_rows("server", "") as rows:
            rows.write(lambda db: remove_meta(db, "move"))


@pytest.mark.parametrize("to", ["files", "postgres"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_copy_from_within_a_move_leaves_the_rows_of_the_server_alone(
    tmp_path: Path, postgres_url: str, to: MovePlace, dry_run: bool
):
    home = tmp_path / "server"
    keys = fill(home)
    stop_move(home, postgres_url, "postgres")
    copy = copy_of(home)
    move(home, postgres_url, "postgres")
    serve_news(home, postgres_url, keys)
    with pytest.raises(StoreError, match="belong to another move") as error:
        move(copy, postgres_url, to, dry_run=dry_run)
    assert "'--to files' cancels the move of this one" in error.value.hint
    require_news(home, postgres_url, keys)


def test_a_copy_whose_move_was_cancelled_without_the_database_leaves_the_rows_alone(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    keys = fill(home)
    before = look_at_copy(home, keys)
    stop_move(home, postgres_url, "postgres")
    copy = copy_of(home)
    move(home, postgres_url, "postgres")
    serve_news(home, postgres_url, keys)
    assert move(copy, "", "files").is_cancelled
    assert plain(look_at(copy, keys)) == plain(before)
    with pytest.raises(StoreError, match="used by a copy of this folder") as error:
        move(copy, postgres_url, "postgres")
    assert "--forget-left" in error.value.hint
    assert not move(copy, postgres_url, "files", forget_left=True).has_leftover_rows
    require_news(home, postgres_url, keys)
    assert move(copy, postgres_url, "postgres").is_done
    require_news(home, postgres_url, keys)


def test_only_one_of_two_copies_of_a_move_goes_on(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    keys = fill(home)
    before = look_at_copy(home, keys)
    stop_move(home, postgres_url, "postgres")
    copy = copy_of(home)
    stop_move(copy, postgres_url, "postgres")
    for to in ("postgres", "files"):
        with pytest.raises(StoreError, match="belong to another move"):
            move(home, postgres_url, to)
    assert move(copy, postgres_url, "postgres").is_done
    assert plain(look_at(copy, keys, postgres_url)) == plain(before)
    assert move(home, "", "files").is_cancelled
    assert plain(look_at(home, keys)) == plain(before)


@pytest.mark.parametrize("is_reached", [True, False])
def test_a_copy_from_within_a_cancelled_move_to_files_does_not_erase_the_rows(
    tmp_path: Path, postgres_url: str, is_reached: bool
):
    home = tmp_path / "server"
    keys = fill(home)
    move(home, postgres_url, "postgres")
    stop_move(home, postgres_url, "files")
    copy = copy_of(home)
    cancelled = move(home, postgres_url if is_reached else "", "postgres")
    assert cancelled.is_cancelled
    serve_news(home, postgres_url, keys)
    with pytest.raises(StoreError, match="belong to another move"):
        move(copy, postgres_url, "files")
    require_news(home, postgres_url, keys)


def test_a_move_to_files_that_a_copy_has_finished_is_not_cancelled(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    fill(home)
    move(home, postgres_url, "postgres")
    stop_move(home, postgres_url, "files")
    copies = sorted(home.glob(f"*/*/{MEMORY_FILE}"))
    assert copies
    move(copy_of(home), postgres_url, "files")
    with pytest.raises(StoreError, match="no rows of this server"):
        move(home, postgres_url, "postgres")
    assert sorted(home.glob(f"*/*/{MEMORY_FILE}")) == copies


def test_a_copy_from_after_the_switch_does_not_load_its_files_over_the_rows(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    keys = fill(home)
    stop_move(home, postgres_url, "postgres", "ben-team")
    with store_of(home, postgres_url) as (registry, store):
        registry.switch_rows(has_rows=True)  # as a move is that was killed after the switch
        store.mark_rows(MoveMark("switched", registry.find_note(MOVE_ID_NOTE)))
    copy = copy_of(home)
    move(home, postgres_url, "postgres")
    serve_news(home, postgres_url, keys)
    write_in(folder_of(copy, "ann") / MEMORY_FILE, lambda db: set_meta(db, "written", "late"))
    with pytest.raises(StoreError, match="belong to another move"):
        move(copy, postgres_url, "postgres")
    require_news(home, postgres_url, keys)


@pytest.mark.parametrize("to", ["files", "postgres"])
def test_a_server_that_an_older_version_moved_opens_and_its_copies_leave_its_rows_alone(
    tmp_path: Path, postgres_url: str, to: MovePlace
):
    home = tmp_path / "server"
    keys = fill(home)
    stop_move(home, postgres_url, "postgres")
    forget_marks(home, postgres_url)
    copy = copy_of(home)
    move(home, postgres_url, "postgres")
    forget_marks(home, postgres_url)
    serve_news(home, postgres_url, keys)
    with pytest.raises(StoreError, match="belong to another move"):
        move(copy, postgres_url, to)
    require_news(home, postgres_url, keys)


@pytest.mark.parametrize("to", ["files", "postgres"])
def test_a_move_that_an_older_version_began_continues_and_is_cancelled(
    tmp_path: Path, postgres_url: str, to: MovePlace
):
    home = tmp_path / "server"
    keys = fill(home)
    before = look_at_copy(home, keys)
    stop_move(home, postgres_url, "postgres")
    forget_marks(home, postgres_url)
    assert move(home, postgres_url, to).is_cancelled == (to == "files")
    url = "" if to == "files" else postgres_url
    assert plain(look_at(home, keys, url)) == plain(before)
    assert (count_rows(home, postgres_url) == 0) == (to == "files")


@pytest.mark.parametrize("to", ["postgres", "files"])
@pytest.mark.parametrize("has_switched", [True, False])
def test_a_move_killed_while_it_switches_is_finished(
    tmp_path: Path, postgres_url: str, to: MovePlace, has_switched: bool
):
    home = tmp_path / "server"
    keys = fill(home)
    before = look_at_copy(home, keys)
    back: MovePlace = "postgres" if to == "files" else "files"
    if to == "files":
        move(home, postgres_url, "postgres")
    copy_all(home, postgres_url, to, has_switched=has_switched)
    if has_switched:
        with pytest.raises(InvalidInput, match=f"A move to {to} was interrupted"):
            move(home, postgres_url, back)
        if to == "files":
            with pytest.raises(StoreUnreachable):
                move(home, "postgresql://localhost:1/none", back)
            with pytest.raises(InvalidInput, match="needs the address"):
                move(home, "", back)
    else:
        assert move(home, postgres_url, back).is_cancelled
        copy_all(home, postgres_url, to, has_switched=False)
    assert move(home, postgres_url, to).is_done
    assert plain(look_at(home, keys, postgres_url if to == "postgres" else "")) == plain(before)


def copy_all(home: Path, url: str, to: MovePlace, *, has_switched: bool) -> None:
    """Copy all memories as a move does that is killed while it switches."""

    def stop_last(_name: str, number: int, total: int) -> None:
        if number == total:
            raise Stopped

    with pytest.raises(Stopped):
        move(home, url, to, on_memory=stop_last)
    with store_of(home, url) as (registry, store):
        registry.set_notes({SWITCH_NOTE: "1"})
        if has_switched:
            store.mark_rows(MoveMark("switched", registry.find_note(MOVE_ID_NOTE)))


def test_a_move_killed_while_it_gets_another_id_continues(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    fill(home)
    stop_move(home, postgres_url, "postgres")
    with store_of(home, postgres_url) as (registry, store):
        registry.set_notes({"move_next_id": OTHER})
        store.mark_rows(MoveMark("copying", OTHER))
    assert move(home, postgres_url, "postgres").is_done


def test_a_move_killed_before_its_last_note_is_finished(tmp_path: Path, postgres_url: str):
    home = tmp_path / "server"
    keys = fill(home)
    before = look_at_copy(home, keys)
    move(home, postgres_url, "postgres")
    with store_of(home, postgres_url) as (registry, store):
        registry.set_notes({MOVE_NOTE: "postgres", MOVE_ID_NOTE: OTHER})
        assert store.require_mark() == LIVE
    assert move(home, postgres_url, "postgres").is_done
    assert plain(look_at(home, keys, postgres_url)) == plain(before)


def test_a_server_does_not_start_with_rows_whose_move_is_open_elsewhere(
    tmp_path: Path, postgres_url: str
):
    home = tmp_path / "server"
    fill(home)
    move(home, postgres_url, "postgres")
    with store_of(home, postgres_url) as (_, store):
        store.mark_rows(MoveMark("switched", OTHER))
        with pytest.raises(StoreError, match="belong to another move"):
            store.claim()
