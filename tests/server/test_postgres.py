"""A server whose memories are rows of one PostgreSQL database: names, removal, outage, backup."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lore.errors import InvalidInput, NotFound, SchemaTooNew, StoreDamaged
from lore.proxy.address import API_PREFIX
from lore.server.background import BackgroundWork
from lore.server.home_backup import ROWS_FILE, back_up, restore
from lore.server.memory_store import MemoryStore
from lore.server.registry import Registry
from lore.settings import Settings, load
from tests.cli.conftest import run_process
from tests.engines import stopped_server
from tests.server.served import Served, serving
from tests.server.test_process import STORE, running
from tests.trust.test_isolation import seed
from tests.waiting import eventually

psycopg = pytest.importorskip("psycopg")

TOTAL = "SELECT count(*) FROM meta"
"""Rows that every memory has, of all owners."""

RETRIEVE, FRAGMENTS = f"{API_PREFIX}/retrieve", f"{API_PREFIX}/fragments"


@pytest.fixture
def served(tmp_path: Path, postgres_url: str) -> Iterator[Served]:
    with serving(tmp_path / "server", url=postgres_url) as one:
        yield one


@pytest.fixture
def admin(postgres_url: str) -> Iterator[Any]:
    """A connection for which no policy holds."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET search_path = lore, public")
        yield connection


def rows_by_table(admin: Any, owner: str) -> Counter[str]:
    """Return how many rows of an owner each table of the schema has, `owners` too."""
    tables = admin.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE c.relnamespace = 'lore'::regnamespace AND c.relkind = 'r' AND a.attname = 'owner'"
    ).fetchall()
    assert len(tables) > 60
    sql = "SELECT count(*) FROM {} WHERE owner = %s"
    return Counter({
        table: admin.execute(sql.format(table), [owner]).fetchone()[0] for (table,) in tables
    })


def owner_in_rows(served: Served, name: str) -> str:
    """Return the owner that the rows of an open memory carry; a team's name has its mark."""
    with served.server.pool.lease(name) as service:
        return str(service.memory.database.owner)  # type: ignore[attr-defined]


def settings_of(url: str) -> Settings:
    return replace(load({}).settings, store_url=url)


def tidy(served: Served) -> None:
    settings = load({}, home=served.home).settings
    BackgroundWork(served.registry, served.server.pool, served.store, settings, tasks=()).tidy()


def contents(served: Served, key: str) -> set[str]:
    return {one["content"] for one in served.get(FRAGMENTS, key).json["items"]}


def test_no_two_memories_have_the_same_rows(served: Served):
    registry = served.registry
    names = []
    for _ in range(2):
        owner, team = registry.add_owner("harbor"), registry.add_team("harbor", quorum=1)
        names += [registry.rows_name("owner", owner.id), registry.rows_name("team", team.id)]
        registry.remove_owner("harbor")
        registry.remove_team("harbor")
        tidy(served)
    assert len(set(names)) == 4
    with pytest.raises(NotFound):
        registry.rows_name("owner", owner.id)


def test_the_name_of_rows_needs_the_servers_key(served: Served, tmp_path: Path):
    owner = served.registry.add_owner("ann")
    copy = tmp_path / "copy"
    copy.mkdir()
    served.registry.database.copy_to(copy / "server.db")
    (copy / "server.key").write_bytes(bytes(range(32)))
    with Registry.open(copy) as other:
        name = other.rows_name("owner", owner.id)
    assert name != served.registry.rows_name("owner", owner.id)


def test_a_removed_owner_leaves_no_row_in_any_table(served: Served, admin: Any):
    keys = {name: served.add(name) for name in ("ann", "ben")}
    for name, key in keys.items():
        seed(served, name, key)
    rows = {name: owner_in_rows(served, served.registry.get_owner(name).id) for name in keys}
    before = {name: rows_by_table(admin, owner) for name, owner in rows.items()}
    assert sum(count > 0 for count in before["ann"].values()) > 25
    served.registry.remove_owner("ann")
    tidy(served)
    assert rows_by_table(admin, rows["ann"]).total() == 0
    assert rows_by_table(admin, rows["ben"]) == before["ben"]
    assert served.registry.removed_owners() == []


def test_a_removed_team_leaves_nothing(served: Served, admin: Any):
    keys = {name: served.add(name) for name in ("ann", "ben")}
    team = served.registry.add_team("harbor", quorum=1)
    for name in keys:
        served.registry.add_member("harbor", name)
    id_ = served.post(STORE, {"content": "The gate opens at six."}, keys["ann"]).json["data"]["id"]
    path = f"{API_PREFIX}/teams/harbor/publications"
    published = served.post(path, {"id": id_}, keys["ann"]).json["id"]
    assert served.post(f"{path}/{published}/approve", {}, keys["ben"]).json["state"] == "approved"
    owner = owner_in_rows(served, f"team:{team.id}")
    assert rows_by_table(admin, owner)["fragments"] == 1
    served.registry.remove_team("harbor")
    assert served.get(f"{API_PREFIX}/teams", keys["ben"]).json == []
    assert served.post(RETRIEVE, {"query": "gate opens"}, keys["ben"]).json["hits"] == []
    with pytest.raises(InvalidInput):  # not before the old memory is gone
        served.registry.add_team("harbor", quorum=1)
    tidy(served)
    assert rows_by_table(admin, owner).total() == 0
    assert not served.registry.team_folder(team.id).exists()
    served.registry.add_team("harbor", quorum=1)
    assert served.registry.list_members("harbor") == []


def test_one_who_comes_back_sees_nothing_even_if_rows_were_left(served: Served, admin: Any):
    key = served.add("ann")
    served.post(STORE, {"content": "The gate opens at six."}, key)
    owner = owner_in_rows(served, served.registry.get_owner("ann").id)
    removed = served.registry.remove_owner("ann")
    assert served.server.pool.close_owner(removed.id)
    served.registry.erase_removed(removed)  # the folder and the registry alone
    assert rows_by_table(admin, owner)["fragments"] == 1
    key = served.add("ann")
    assert served.registry.get_owner("ann").id == removed.id
    assert contents(served, key) == set()
    assert served.post(RETRIEVE, {"query": "gate opens"}, key).json["hits"] == []


def test_many_owners_share_few_connections(tmp_path: Path, postgres_url: str, admin: Any):
    def few(settings: Settings) -> Settings:
        return replace(settings, store_connections=4)

    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lore'"
    with serving(tmp_path, change=few, url=postgres_url) as served:
        keys = [served.add(f"o{i}") for i in range(8)]
        headers = {"content-type": "application/json"}

        async def use(key: str) -> list[int]:
            own = {**headers, "authorization": f"Bearer {key}"}
            body = json.dumps({"content": "The gate opens at six."}).encode()
            first = await served.ask("POST", STORE, own, body)
            query = json.dumps({"query": "When does the gate open?"}).encode()
            second = await served.ask("POST", RETRIEVE, own, query)
            return [first.status, second.status, len(second.json["hits"])]

        async def use_all() -> list[list[int]]:
            return await asyncio.gather(*(use(key) for key in keys))

        assert served.run(use_all()) == [[200, 200, 1]] * len(keys)
        assert len(served.server.pool) == len(keys)
        assert 1 <= admin.execute(sql).fetchone()[0] <= 4
    eventually(lambda: admin.execute(sql).fetchone()[0] == 0)


def test_a_lost_connection_is_said_and_the_next_request_works(served: Served, admin: Any):
    ann = served.add("ann")
    assert served.post(STORE, {"content": "number 1"}, ann).status == 200
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lore'"
    )
    replies = [served.post(STORE, {"content": "number 2"}, ann) for _ in range(2)]
    assert replies[-1].status == 200
    assert replies[0].status in (200, 503)
    assert contents(served, ann) == {"number 1", "number 2"}


def test_requests_wait_for_a_database_that_is_away(served: Served, postgres_url: str):
    ann, ben = served.add("ann"), served.add("ben")
    operator, _ = served.registry.create_key("operator", scopes=("read",))
    assert served.post(STORE, {"content": "before"}, ann).status == 200
    with stopped_server(postgres_url):
        for reply in (
            served.post(STORE, {"content": "meanwhile"}, ann),  # whose memory is open
            served.get(FRAGMENTS, ann),
            served.get(FRAGMENTS, ben),  # whose memory is not
        ):
            assert reply.status == 503
            assert reply.header("content-type") == "application/problem+json"
            assert int(reply.header("retry-after")) > 0
            assert reply.json["code"] == "StoreUnreachable"
            assert "host=" not in reply.json["detail"]
            assert "/" not in reply.json["detail"]
        assert served.get("/health").status == 200
        assert served.get("/status", operator).json["open_memories"] == 1
        assert served.get("/metrics", operator).status == 200
    assert served.post(STORE, {"content": "after"}, ann).status == 200
    assert contents(served, ann) == {"before", "after"}
    assert contents(served, ben) == set()


def test_a_database_that_cannot_be_reached_ends_the_start(tmp_path: Path):
    Registry.open(tmp_path / "server").close()
    away = {"LORE_STORE_URL": "postgresql://nobody:secret@127.0.0.1:1/x"}
    data = str(tmp_path / "server")
    ended = run_process("serve", "--port", "0", "--data", data, env=away)
    assert ended.code == 19
    assert "cannot be reached" in ended.err
    assert "secret" not in ended.err


def test_memories_are_served_from_where_they_are_alone(
    tmp_path: Path, postgres_url: str, admin: Any
):
    admin.execute("DROP DATABASE IF EXISTS elsewhere")
    admin.execute("CREATE DATABASE elsewhere")
    elsewhere = postgres_url.replace("/postgres?", "/elsewhere?")
    rows, files = tmp_path / "rows", tmp_path / "files"
    for home, url in ((rows, postgres_url), (files, "")):
        with serving(home, url=url) as served:
            served.post(STORE, {"content": "The gate opens at six."}, served.add("ann"))
    for home, url, kind in (
        (rows, "", InvalidInput),
        (files, postgres_url, InvalidInput),
        (rows, elsewhere, StoreDamaged),
    ):
        with pytest.raises(kind), serving(home, url=url):
            pass
    with Registry.open(rows) as registry:
        removed, store = registry.remove_owner("ann"), MemoryStore(registry, settings_of(elsewhere))
        for work in (
            lambda: store.erase(removed),
            lambda: back_up(registry, tmp_path / "x", store),
        ):
            with pytest.raises(StoreDamaged):
                work()
        assert [one.id for one in registry.removed_owners()] == [removed.id]
    admin.execute("DROP DATABASE elsewhere WITH (FORCE)")


@dataclass(frozen=True)
class Saved:
    """A server with two owners and two teams, its backup, and what the owners saw."""

    server: Path
    backup: Path
    keys: dict[str, str]
    states: dict[str, list[Any]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Saved:
    folder = tmp_path_factory.mktemp("saved")
    with serving(folder / "server", url=postgres_url) as served:
        keys = {name: served.add(name) for name in ("ann", "ben")}
        for name, key in keys.items():
            seed(served, name, key)
        served.registry.add_member("ann-team", "ben")
        path = f"{API_PREFIX}/teams/ann-team/publications"
        (published,) = served.get(path, keys["ben"]).json
        assert served.post(f"{path}/{published['id']}/approve", {}, keys["ben"]).status == 200
        made = back_up(served.registry, folder / "backup", served.store)
        assert (made.owners, made.teams) == (2, 2)
        states = {name: state_of(served, key) for name, key in keys.items()}
    return Saved(folder / "server", folder / "backup", keys, states)


def state_of(served: Served, key: str) -> list[Any]:
    """Return what an owner sees of their memory and their teams."""
    paths = ("/fragments?limit=500", "/sessions?limit=500", "/edges?limit=500", "/handoffs",
             "/episodes?limit=500", "/projects?limit=500", "/teams", "/timeline")  # fmt: skip
    asked = served.post(RETRIEVE, {"query": "What about the harbor gate?"}, key).json
    return [
        *(served.get(f"{API_PREFIX}{path}", key).json for path in paths),
        # a cosine of the database and one of the process may be rounded to different hundredths
        sorted(
            (hit["id"], hit["text"], re.sub(r" \(0\.\d\d\)", "", hit["why"]))
            for hit in asked["hits"]
        ),
    ]


def test_a_restored_backup_serves_like_the_original(
    saved: Saved, tmp_path: Path, postgres_url: str
):
    assert all(path.stat().st_mode & 0o077 == 0 for path in saved.backup.rglob("*"))
    made = restore(saved.backup, tmp_path / "new", settings_of(postgres_url))
    assert (made.owners, made.teams) == (2, 2)
    ann = saved.keys["ann"]
    with serving(tmp_path / "new", url=postgres_url) as served:
        for name, key in saved.keys.items():
            assert state_of(served, key) == saved.states[name]
        assert saved.states["ann"][-1]
        assert served.post(STORE, {"content": "written after the restore"}, ann).status == 200
        assert "written after the restore" in contents(served, ann)
        owner = owner_in_rows(served, served.registry.get_owner("ann").id)
    with serving(saved.server, url=postgres_url) as served:  # the original is what it was
        assert "written after the restore" not in contents(served, ann)
        assert owner_in_rows(served, served.registry.get_owner("ann").id) != owner


def test_a_restore_that_fails_leaves_nothing(
    saved: Saved, tmp_path: Path, postgres_url: str, admin: Any
):
    source = tmp_path / "backup"
    shutil.copytree(saved.backup, source)
    before = admin.execute(TOTAL).fetchone()[0]
    rows = sorted(source.rglob(ROWS_FILE))[-1]
    whole = gzip.decompress(rows.read_bytes())
    cut_off = b"".join(whole.splitlines(keepends=True)[:-1])
    older = whole.replace(b"m001_initial", b"m000_former", 1)
    for content, kind in (
        (rows.read_bytes()[:-20], StoreDamaged), (b"no gzip", StoreDamaged),
        (gzip.compress(cut_off), StoreDamaged), (gzip.compress(older), SchemaTooNew),
    ):  # fmt: skip
        rows.write_bytes(content)
        with pytest.raises(kind):
            restore(source, tmp_path / "new", settings_of(postgres_url))
        assert not (tmp_path / "new").exists()
        assert not (tmp_path / "new.restoring").exists()
    assert admin.execute(TOTAL).fetchone()[0] == before
    rows.unlink()
    with pytest.raises(StoreDamaged):
        restore(source, tmp_path / "new", settings_of(postgres_url))


def test_what_an_interrupted_restore_loaded_is_deleted_by_the_next(
    saved: Saved, tmp_path: Path, postgres_url: str, admin: Any
):
    before = admin.execute(TOTAL).fetchone()[0]
    restore(saved.backup, tmp_path / "new", settings_of(postgres_url))
    loaded = admin.execute(TOTAL).fetchone()[0]
    assert loaded > before
    (tmp_path / "new").rename(tmp_path / "new.restoring")  # as if it was killed before its end
    restore(saved.backup, tmp_path / "new", settings_of(postgres_url))
    assert admin.execute(TOTAL).fetchone()[0] == loaded
    with serving(tmp_path / "new", url=postgres_url) as served:
        assert contents(served, saved.keys["ann"])


def test_nonsense_is_not_restored(saved: Saved, tmp_path: Path, postgres_url: str):
    new, here = tmp_path / "new", settings_of(postgres_url)
    for source, target, settings, kind in (
        (saved.backup, saved.server, here, InvalidInput),  # not empty
        (tmp_path, new, here, NotFound),  # no backup
        (saved.server, new, here, InvalidInput),  # a server
        (saved.backup, new, load({}).settings, InvalidInput),  # no database
    ):
        with pytest.raises(kind):
            restore(source, target, settings)
    with pytest.raises(InvalidInput, match="is a backup"), serving(saved.backup, url=postgres_url):
        pass
    assert not new.exists()


def test_kills_lose_nothing_and_leave_nothing(tmp_path: Path, postgres_url: str, admin: Any):
    data, keys, rows = tmp_path / "server", {}, {}
    with Registry.open(data) as registry:
        for name in ("ann", "ben"):
            registry.add_owner(name)
            keys[name], _ = registry.create_key("laptop", owner=name, scopes=("admin",))
    with running(data, url=postgres_url) as server:
        for key in keys.values():
            assert server.ask("POST", STORE, key, {"content": "The gate opens at six."})[0] == 200
        server.process.kill()
        server.process.wait(60)
    with Registry.open(data) as registry:
        store = MemoryStore(registry, settings_of(postgres_url))
        for name in keys:
            with store.open_rows("owner", registry.get_owner(name).id) as database:
                rows[name] = str(database.owner)
        assert rows_by_table(admin, rows["ben"])["fragments"] == 1
        registry.remove_owner("ben")  # and killed here, before the rows
    with running(data, url=postgres_url) as server:
        assert server.texts(keys["ann"]) == {"The gate opens at six."}
        eventually(lambda: not rows_by_table(admin, rows["ben"]).total())
        assert rows_by_table(admin, rows["ann"])["fragments"] == 1
        assert server.ask("GET", "/status", keys["ben"])[0] == 401
        with stopped_server(postgres_url):
            assert server.ask("GET", FRAGMENTS, keys["ann"])[0] == 503
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(60) == 0
