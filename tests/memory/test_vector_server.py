"""A memory whose vectors are searched in Qdrant, on both engines."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lore import settings
from lore.errors import IndexUnavailable, InvalidInput
from lore.memory import Memory
from lore.memory.vector_server import erase_vectors
from lore.recall import health
from lore.server.memory_store import TEAM_MARK, MemoryStore
from lore.server.owner_service import MemoryOpener, SharedModels
from lore.server.registry import Registry
from lore.settings import Settings
from tests import engines
from tests.fakes import FakeEmbedder
from tests.index.qdrant_server import QdrantServer
from tests.index.qdrant_server import qdrant as qdrant
from tests.index.qdrant_server import running as running


@pytest.fixture
def config(tmp_path: Path, qdrant: QdrantServer) -> Settings:
    return Settings(
        home=tmp_path,
        store_url=engines.current_url(),
        store_owner=str(tmp_path),
        vectors_engine="qdrant",
        vectors_url=qdrant.url,
    )


def open_memory(config: Settings, embedder: FakeEmbedder | None = None) -> Memory:
    memory = Memory.open(config=config, embedder=embedder or FakeEmbedder())
    if server := memory.database.vector_server:
        memory.database.vector_server = server._replace(timeout_s=60)  # for a busy machine
    return memory


def add_knowledge(memory: Memory) -> list[str]:
    texts = ("Boats float in the harbour", "Lamps burn at night", "Corks float as well")
    ids = [memory.store(text) for text in texts]
    memory.maintenance.embed_waiting()
    return ids


def find(memory: Memory) -> set[str]:
    return {hit.id for hit in memory.recall("boats in the harbour").hits}


def numbers(qdrant: QdrantServer) -> set[int]:
    return {payload["n"] for payload in qdrant.payloads()}


def vectors_check(memory: Memory, *, fix: bool = False) -> tuple[str, str]:
    checks = {c.name: c for c in health.check_memory(memory.sources, "", fix=fix)}
    return checks["vectors"].state, checks["vectors"].detail


def test_a_forgotten_item_leaves_qdrant(config: Settings, qdrant: QdrantServer):
    with open_memory(config) as memory:
        ids = add_knowledge(memory)
        before = numbers(qdrant)
        assert ids[0] in find(memory)
        assert qdrant.searches
        memory.forget(id=ids[0])
        assert len(numbers(qdrant)) == len(before) - 1
        assert ids[0] not in find(memory)
        assert not memory.sources.index_folder.exists()
        assert vectors_check(memory)[0] == "ok"


def test_an_item_that_is_forgotten_while_qdrant_is_away_leaves_it_later(
    config: Settings, qdrant: QdrantServer
):
    with open_memory(config) as memory:
        ids = add_knowledge(memory)
    before = numbers(qdrant)
    qdrant.stop()
    with open_memory(config) as memory:
        memory.forget(id=ids[0])
        assert [hit.id for hit in memory.recall("do lamps burn").hits] == [ids[1]]
        assert "cannot be reached" in memory.maintenance.stats().notice
        assert vectors_check(memory)[0] == "degraded"
        report = memory.maintenance.health_report()
        assert [c.name for c in report.checks if "Qdrant" in c.detail] == ["vectors"]
    qdrant.start()
    assert numbers(qdrant) == before
    with open_memory(config) as memory:
        memory.maintenance.embed_waiting()  # nothing waits, but Qdrant is compared
        assert len(numbers(qdrant)) == len(before) - 1
        assert memory.notice_now == ""


def test_a_forgotten_item_leaves_qdrant_without_an_embedder(config: Settings, qdrant: QdrantServer):
    with open_memory(config) as memory:
        ids = add_knowledge(memory)
    with Memory.open(config=replace(config, embed_provider="none")) as memory:
        memory.forget(id=ids[0])
    assert qdrant.payloads() == []


def test_lost_vectors_are_reported_and_fixed(config: Settings, qdrant: QdrantServer):
    with open_memory(config) as memory:
        add_knowledge(memory)
        name = qdrant.engine.get_collections().collections[0].name
        point = qdrant.engine.scroll(name, limit=1)[0][0]
        qdrant.engine.delete(name, [point.id])
        assert vectors_check(memory)[0] == "broken"
        assert vectors_check(memory, fix=True)[0] == "fixed"
        assert len(qdrant.payloads()) == 3


def test_a_new_embedder_takes_the_place_of_the_former(config: Settings, qdrant: QdrantServer):
    with open_memory(config) as memory:
        add_knowledge(memory)
    with open_memory(config, FakeEmbedder("wider", 48)) as memory:
        memory.maintenance.embed_waiting()
        assert memory.recall("boats in the harbour").hits
        assert {payload["space"] for payload in qdrant.payloads()} == {
            memory.sources.vector_index()._points._space  # type: ignore[attr-defined]
        }
        assert len(qdrant.payloads()) == 3


def test_a_memory_that_leaves_qdrant_deletes_its_vectors_there(
    config: Settings, qdrant: QdrantServer
):
    with open_memory(config) as memory:
        ids = add_knowledge(memory)
    local = replace(config, vectors_engine="local")
    with open_memory(replace(local, vectors_url="")) as memory:
        assert "still has vectors" in memory.notice
        assert ids[0] in find(memory)
    assert qdrant.payloads()
    with open_memory(local) as memory:
        assert memory.notice == ""
        assert ids[0] in find(memory)
    assert qdrant.payloads() == []
    qdrant.stop()
    with open_memory(local) as memory:
        assert memory.notice == ""


def test_an_engine_without_an_address_is_refused(config: Settings):
    with pytest.raises(InvalidInput, match=r"vectors\.url"):
        open_memory(replace(config, vectors_url=""))


@pytest.mark.only_sqlite("of settings alone")
def test_a_project_file_cannot_choose_where_vectors_go(tmp_path: Path):
    (tmp_path / ".lore.json").write_text('{"vectors": {"engine": "qdrant", "url": "http://evil"}}')
    loaded = settings.load({}, home=tmp_path / "home", project_dir=tmp_path)
    assert loaded.settings.vectors_engine == "local"
    assert loaded.settings.vectors_url == ""
    assert "only the user" in loaded.warning


@pytest.mark.only_sqlite("of settings alone")
@pytest.mark.parametrize("url", ["qdrant:6333", "http://me:secret@host:6333", "file:///x"])
def test_an_address_is_a_url_without_a_password(tmp_path: Path, url: str):
    with pytest.raises(InvalidInput, match=r"LORE_VECTORS_URL"):
        settings.load({"LORE_VECTORS_URL": url}, home=tmp_path)


@pytest.mark.only_sqlite("of what is installed")
def test_a_missing_package_is_named_with_its_extra(tmp_path: Path):
    code = f"""
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "qdrant_client" else super().find_spec(name, path, target)
sys.meta_path[:] = [Without if one is PathFinder else one for one in sys.meta_path]
from lore.memory.vector_server import erase_vectors
from lore.settings import Settings
try:
    erase_vectors(Settings(home={str(tmp_path)!r}, vectors_url="http://127.0.0.1:1"), "x")
except Exception as error:
    print(type(error).__name__, error, error.hint)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("StoreError Vectors in Qdrant need the package qdrant-client.")
    assert "agent-lore[qdrant]" in done.stdout


@pytest.mark.only_sqlite("a server of many, whose memories are files")
def test_a_removed_owner_leaves_qdrant_before_the_folder_goes(tmp_path: Path, qdrant: QdrantServer):
    home = tmp_path / "server"
    with Registry.open(home) as registry:
        owners = [registry.add_owner(name) for name in ("ann", "ben")]
        for key, value in (("vectors.engine", "qdrant"), ("vectors.url", qdrant.url)):
            settings.write_user_setting(home, key, value)
        config = settings.load({}, home=home).settings
        store = MemoryStore(registry, config)
        opener = MemoryOpener(registry, store, SharedModels(FakeEmbedder(), None))
        for owner in owners:
            with opener.open(owner.id) as memory:
                add_knowledge(memory)
        assert {payload["owner"] for payload in qdrant.payloads()} == {o.id for o in owners}
        team = registry.add_team("harbor", quorum=1)
        with opener.open(f"{TEAM_MARK}{team.id}") as memory:
            add_knowledge(memory)
        ann = registry.remove_owner("ann")
        qdrant.stop()
        with pytest.raises(IndexUnavailable):
            store.erase(ann)
        assert [one.id for one in registry.removed_owners()] == [ann.id]
        assert registry.owner_folder(ann.id).exists()
        qdrant.start()
        store.erase(ann)
        store.erase(registry.remove_team("harbor"))
        assert {payload["owner"] for payload in qdrant.payloads()} == {owners[1].id}
        assert len(qdrant.payloads()) == 3
        assert not registry.owner_folder(ann.id).exists()
    erase_vectors(config, owners[1].id)
    assert qdrant.payloads() == []


@pytest.mark.only_sqlite("a server of many, whose memories are files")
def test_vectors_of_one_who_is_removed_without_qdrant_go_when_it_is_set_again(
    tmp_path: Path, qdrant: QdrantServer
):
    home = tmp_path / "server"
    with Registry.open(home) as registry:
        owners = [registry.add_owner(name) for name in ("ann", "ben", "cleo")]
        plain = settings.load({}, home=home).settings
        config = replace(plain, vectors_engine="qdrant", vectors_url=qdrant.url)
        store = MemoryStore(registry, config)
        opener = MemoryOpener(registry, store, SharedModels(FakeEmbedder(), None))
        for owner in owners[:2]:
            with opener.open(owner.id) as memory:
                add_knowledge(memory)
        without = MemoryStore(registry, plain)
        for name in ("ann", "cleo"):
            without.erase(registry.remove_owner(name))
        assert registry.left_vectors() == [owners[0].id]  # the other never had any there
        assert without.erase_left_vectors() == 1
        assert {payload["owner"] for payload in qdrant.payloads()} == {o.id for o in owners[:2]}
        assert store.erase_left_vectors() == 0
        assert {payload["owner"] for payload in qdrant.payloads()} == {owners[1].id}
        assert registry.left_vectors() == []
