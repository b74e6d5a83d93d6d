"""The registry: owners, teams, keys; only digests of keys and hashes of names on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.errors import InvalidInput, NotFound, StoreDamaged
from lore.server.registry import KEY_FILE, REGISTRY_FILE, Registry
from tests.fakes import FixedClock


@pytest.fixture
def registry(tmp_path: Path, clock: FixedClock) -> Iterator[Registry]:
    with Registry.open(tmp_path / "server", now=clock) as opened:
        yield opened


def test_the_folder_of_an_owner_says_nothing_about_their_name(registry: Registry):
    owner = registry.add_owner("Ann Example")
    folder = registry.owner_folder(owner.id)
    assert len(owner.id) == 64
    assert "ann" not in str(folder.relative_to(registry.home)).lower()


def test_another_server_gives_the_same_name_another_folder(registry: Registry, tmp_path: Path):
    with Registry.open(tmp_path / "other") as other:
        assert other.add_owner("ann").id != registry.add_owner("ann").id


@pytest.mark.parametrize("name", ["ANN", " ann ", "\uff41\uff4e\uff4e"])
def test_names_that_look_alike_are_one_owner(registry: Registry, name: str):
    registry.add_owner("ann")
    with pytest.raises(InvalidInput):
        registry.add_owner(name)
    assert registry.get_owner(name).name == "ann"


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "x" * 101, "a\u202eb"])
def test_a_name_is_printable_and_fits_on_a_line(registry: Registry, name: str):
    with pytest.raises(InvalidInput):
        registry.add_owner(name)


def test_a_key_is_stored_as_a_digest_only(registry: Registry):
    registry.add_owner("ann")
    key, record = registry.create_key("laptop", owner="ann", scopes=("push",))
    registry.database.checkpoint()
    stored = b"".join(path.read_bytes() for path in registry.home.glob(f"{REGISTRY_FILE}*"))
    assert key.split("_", 2)[2].encode() not in stored
    assert record.prefix.encode() in stored
    assert registry.find_key(key) is not None
    assert registry.find_key(f"{key}x") is None
    assert registry.find_key(f"lore_{record.prefix}_") is None


def test_keys_expire_and_are_revoked(registry: Registry, clock: FixedClock):
    registry.add_owner("ann")
    key, record = registry.create_key("laptop", owner="ann", expires_in_s=60)
    assert registry.find_key(key) is not None
    clock.advance(seconds=61)
    assert registry.find_key(key) is None
    other, _ = registry.create_key("phone", owner="ann")
    registry.revoke_key("phone")
    assert registry.find_key(other) is None
    identified = registry.identify_key(other)
    assert identified is not None
    assert identified.revoked_at is not None
    assert registry.revoke_key(record.prefix).revoked_at is not None


def test_a_key_for_a_team_needs_a_member(registry: Registry):
    registry.add_owner("ann")
    registry.add_team("harbor", quorum=2)
    with pytest.raises(InvalidInput):
        registry.create_key("k", owner="ann", team="harbor")
    registry.add_member("harbor", "ann")
    key, record = registry.create_key("k", owner="ANN", team="Harbor", scopes=("admin",))
    assert (record.owner_name, record.team_name) == ("ann", "harbor")
    registry.remove_member("harbor", "ann")
    assert registry.find_key(key) is None


def test_a_removed_owner_has_no_keys_and_comes_back_with_nothing(registry: Registry):
    owner = registry.add_owner("ann")
    folder = registry.owner_folder(owner.id)
    folder.mkdir(parents=True)
    (folder / "memory.db").write_text("x")
    key, _ = registry.create_key("k", owner="ann")
    registry.remove_owner("ann")
    assert registry.find_key(key) is None
    with pytest.raises(NotFound):
        registry.get_owner("ann")
    with pytest.raises(InvalidInput):  # not before the old memory is gone
        registry.add_owner("ann")
    for one in registry.removed_owners():
        registry.erase_removed(one)
    assert not folder.exists()
    registry.add_owner("ann")
    assert registry.find_key(key) is None


def test_a_registry_without_its_key_is_refused(registry: Registry):
    registry.add_owner("ann")
    registry.close()
    path = registry.home / KEY_FILE
    key = path.read_bytes()
    path.unlink()
    with pytest.raises(StoreDamaged):
        Registry.open(registry.home)
    path.write_bytes(key[:-1])
    with pytest.raises(StoreDamaged):
        Registry.open(registry.home)
    path.write_bytes(key)
    with Registry.open(registry.home) as again:
        assert again.get_owner("ann").name == "ann"


def test_files_are_private(registry: Registry):
    registry.add_owner("ann")
    assert registry.home.stat().st_mode & 0o077 == 0
    for path in registry.home.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_provider_key_is_encrypted_and_bound_to_its_team(registry: Registry):
    for name in ("harbor", "pier"):
        registry.add_team(name, quorum=1)
    registry.set_provider_key("harbor", "anthropic", "sk-ant-secret-canary")
    registry.database.checkpoint()
    stored = b"".join(path.read_bytes() for path in registry.home.iterdir() if path.is_file())
    assert b"secret-canary" not in stored
    harbor, pier = (registry.get_team(name).id for name in ("harbor", "pier"))
    assert registry.find_provider_key(harbor, "anthropic") == "sk-ant-secret-canary"
    assert registry.find_provider_key(harbor, "openai") == ""
    assert registry.find_provider_key(pier, "anthropic") == ""
    sealed = registry.vault.seal("x", f"{harbor}/anthropic")
    with pytest.raises(StoreDamaged):  # moved to another team
        registry.vault.open(sealed, f"{pier}/anthropic")
    registry.set_provider_key("harbor", "anthropic", "")
    assert registry.list_provider_keys("harbor") == []


def test_budgets_are_settings_of_the_folder(registry: Registry):
    folder = registry.owner_folder(registry.add_owner("ann").id)
    assert registry.find_budget(folder) is None
    registry.set_budget(folder, 2.5)
    assert registry.find_budget(folder) == 2.5
    with pytest.raises(InvalidInput):
        registry.set_budget(folder, -1)
