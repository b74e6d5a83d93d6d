from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from tests.fakes import FixedClock


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=NoEmbedder(), now=clock) as opened:
        yield opened


def test_only_the_whole_key_identifies_a_record(memory: Memory):
    key, record = memory.access.create_key("ci", scopes=["push", "read"])
    assert memory.access.find_key(key) == record
    assert record.scopes == ("read", "push")
    for wrong in (key[:-1], f"{key}x", key.upper(), record.prefix, f"lore_{record.prefix}_", ""):
        assert memory.access.find_key(wrong) is None


def test_key_is_not_stored_on_disk(memory: Memory, tmp_path: Path):
    key, record = memory.access.create_key("ci")
    memory.database.checkpoint()
    secret = key.split(f"{record.prefix}_", 1)[1].encode()  # which may have underscores of its own
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes()


def test_key_is_valid_until_it_expires(memory: Memory, clock: FixedClock):
    key, _ = memory.access.create_key("brief", expires_in_s=60)
    clock.advance(seconds=59)
    assert memory.access.find_key(key)
    clock.advance(seconds=1)
    assert memory.access.find_key(key) is None


def test_revoked_key_keeps_first_revocation_time(memory: Memory, clock: FixedClock):
    key, record = memory.access.create_key("ci")
    at = memory.access.revoke_key("ci").revoked_at
    clock.advance(hours=1)
    assert memory.access.revoke_key(record.prefix).revoked_at == at
    assert memory.access.find_key(key) is None


@pytest.mark.parametrize("shown", ["{prefix}", "lore_{prefix}", "{key}"])
def test_key_is_revoked_by_prefix_or_whole_key(memory: Memory, shown: str):
    key, record = memory.access.create_key("ci")
    assert memory.access.revoke_key(shown.format(key=key, prefix=record.prefix)).revoked_at
    assert memory.access.find_key(key) is None


def test_valid_key_is_revoked_among_same_names(memory: Memory):
    memory.access.create_key("ci")
    memory.access.revoke_key("ci")
    key, _ = memory.access.create_key("ci")
    memory.access.revoke_key("ci")
    assert memory.access.find_key(key) is None
    memory.access.create_key("ci")
    memory.access.create_key("ci")
    with pytest.raises(InvalidInput, match="Several"):
        memory.access.revoke_key("ci")


@pytest.mark.only_sqlite("two homes, whose memories are one on a server")
def test_key_of_another_home_is_invalid(memory: Memory, tmp_path: Path):
    key, _ = memory.access.create_key("ci")
    memory.database.checkpoint()
    with Memory.open(tmp_path / "other", embedder=NoEmbedder()) as other:
        other.access.create_key("own")
    taken = (tmp_path / "memory.db").read_bytes()
    (tmp_path / "other" / "memory.db").write_bytes(taken)
    with Memory.open(tmp_path / "other", embedder=NoEmbedder()) as other:
        assert [record.name for record in other.access.list_keys()] == ["ci"]
        assert other.access.find_key(key) is None


def test_invalid_key_requests_are_refused(memory: Memory):
    for name, scopes in (("", ["read"]), ("x", []), ("x", ["root"])):
        with pytest.raises(InvalidInput):
            memory.access.create_key(name, scopes=scopes)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        memory.access.create_key("x", expires_in_s=1e300)
    with pytest.raises(NotFound):
        memory.access.revoke_key("nobody")
