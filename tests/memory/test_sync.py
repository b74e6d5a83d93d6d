"""Sync as a part of a memory: pairing, bundles, its state, and the daemon's task."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from lore.daemon.periodic_tasks import periodic_tasks
from lore.errors import InvalidInput, PeerUnreachable, SyncError
from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.settings import Settings
from lore.store import sync_rows
from lore.store.sync_rows import PeerRow
from lore.sync.wire_format import DEEPEST_RECORD
from tests.fakes import NOON
from tests.store.samples import open_memory

Pair = tuple[Memory, Memory]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with open_memory(tmp_path / "one") as one, open_memory(tmp_path / "other") as other:
        yield one, other


def test_a_bundle_of_a_paired_machine_is_believed(pair: Pair, tmp_path: Path) -> None:
    one, other = pair
    one.remember("Staging runs on port 6543.")
    assert one.sync.write_bundle(tmp_path / "bundle").sent == 1
    with pytest.raises(SyncError, match="another key"):
        other.sync.read_bundle(tmp_path / "bundle")
    other.sync.join(one.sync.pairing_code())
    assert other.sync.read_bundle(tmp_path / "bundle").changed == 1
    assert other.sync.state_hash() == one.sync.state_hash()


def test_the_machine_of_a_bundle_is_listed(pair: Pair, tmp_path: Path) -> None:
    one, other = pair
    one.remember("Staging runs on port 6543.")
    one.sync.write_bundle(tmp_path / "bundle")
    other.sync.read_bundle(tmp_path / "bundle", trust=True)
    [peer] = other.sync.state().peers
    assert (peer.name, peer.machine) == ("bundles", one.sync.state().machine)
    assert peer.synced_at is not None
    one.sync.read_bundle(tmp_path / "bundle")
    assert one.sync.state().peers == ()


def test_a_bundle_is_taken_once_on_trust(pair: Pair, tmp_path: Path) -> None:
    one, other = pair
    one.remember("Staging runs on port 6543.")
    one.sync.write_bundle(tmp_path / "bundle")
    assert other.sync.read_bundle(tmp_path / "bundle", trust=True).changed == 1
    with pytest.raises(SyncError):
        other.sync.read_bundle(tmp_path / "bundle")


def test_a_changed_bundle_is_refused(pair: Pair, tmp_path: Path) -> None:
    one, _ = pair
    one.remember("Staging runs on port 6543.")
    one.sync.write_bundle(tmp_path / "bundle")
    text = gzip.decompress((tmp_path / "bundle").read_bytes())
    (tmp_path / "changed").write_bytes(gzip.compress(text.replace(b"6543", b"6544")))
    with pytest.raises(SyncError, match="changed after it was sealed"):
        one.sync.read_bundle(tmp_path / "changed")


@pytest.mark.parametrize("length", [0, 1, 30, 100, 300])
def test_a_bundle_without_its_end_is_refused(pair: Pair, tmp_path: Path, length: int) -> None:
    one, _ = pair
    one.remember("Staging runs on port 6543.")
    one.sync.write_bundle(tmp_path / "bundle")
    (tmp_path / "cut").write_bytes((tmp_path / "bundle").read_bytes()[:length])
    with pytest.raises(SyncError):
        one.sync.read_bundle(tmp_path / "cut")


@pytest.mark.only_sqlite("a file that is refused before it is stored")
def test_a_bundle_is_not_read_on_without_a_seal(pair: Pair, tmp_path: Path) -> None:
    one, _ = pair
    one.sync.write_bundle(tmp_path / "bundle")
    header = gzip.decompress((tmp_path / "bundle").read_bytes()).splitlines()[0]
    line = b'"' + b"x" * 1_000_000 + b'"'
    with gzip.open(tmp_path / "endless", "wb", compresslevel=1) as packed:
        packed.write(b"\n".join([header, *[line] * 70]))
    with pytest.raises(SyncError, match="larger than"):
        one.sync.read_bundle(tmp_path / "endless")


def test_a_bundle_of_another_format_is_refused(pair: Pair, tmp_path: Path) -> None:
    one, _ = pair
    (tmp_path / "later").write_bytes(gzip.compress(b'{"lore_sync":2}\n'))
    with pytest.raises(SyncError, match="format 2"):
        one.sync.read_bundle(tmp_path / "later")


@pytest.mark.only_sqlite("a memory that is a file")
def test_a_bundle_does_not_replace_the_memory_itself(pair: Pair) -> None:
    one, _ = pair
    for name in ("memory.db", "memory.db-wal", "other.db"):
        with pytest.raises(InvalidInput, match="memory itself"):
            one.sync.write_bundle(one.settings.home / name)


@pytest.mark.parametrize("code", ["", "lore-pair-", "lore-pair-aaaa", "hello", "lore-pair-1!"])
def test_what_is_no_pairing_code_is_refused(pair: Pair, code: str) -> None:
    with pytest.raises(InvalidInput, match="pairing code"):
        pair[0].sync.join(code)


@pytest.mark.parametrize("target", ["", "laptop", "-oProxyCommand=x:", "ssh://", "a b:", "ftp://x"])
def test_what_is_no_target_is_refused(pair: Pair, target: str) -> None:
    with pytest.raises(InvalidInput):
        pair[0].sync(target)


def test_a_server_beyond_this_machine_is_not_reached_unencrypted(pair: Pair) -> None:
    with pytest.raises(SyncError, match="not encrypted"):
        pair[0].sync("http://192.0.2.7")


def test_a_server_that_is_off_is_unreachable(tmp_path: Path) -> None:
    config = replace(Settings(home=tmp_path, embed_provider="none"), sync_api_key="lore_x_y")
    with Memory.open(config=config) as memory, pytest.raises(PeerUnreachable):
        memory.sync("http://127.0.0.1:9")


def test_the_state_shows_why_each_target_failed(pair: Pair) -> None:
    one, _ = pair
    targets = ("http://192.0.2.7/", "http://192.0.2.7", "ssh://me@192.0.2.8:22")
    one.context.settings = replace(one.settings, sync_ssh="no-such-ssh")
    for target in targets:
        with pytest.raises(SyncError):
            one.sync(target)
    shown = {peer.name: peer for peer in one.sync.state().peers}
    assert sorted(shown) == ["http://192.0.2.7", "ssh://me@192.0.2.8:22"]
    assert "not encrypted" in shown["http://192.0.2.7"].problem
    assert "cannot be started" in shown["ssh://me@192.0.2.8:22"].problem
    assert {(peer.machine, peer.synced_at) for peer in shown.values()} == {("", None)}


def test_a_problem_of_a_machine_that_has_answered_is_noted_under_it(
    tmp_path: Path, pair: Pair
) -> None:
    one, other = pair
    one.remember("Staging runs on port 6543.")
    other.sync.describe()
    known = PeerRow(other.sync.state().machine, "a former name")
    one.database.write(lambda db: sync_rows.put_peer(db, known))
    answers = (
        {"lore_sync": 1},
        {"result": asdict(other.sync.describe())},
        {"error": "cannot do that"},
    )
    script = tmp_path / "answers"
    script.write_text("".join(json.dumps(one) + "\n" for one in answers))
    one.context.settings = replace(one.settings, sync_ssh=f"sh -c 'cat {script}; cat >&2'")
    with pytest.raises(SyncError, match="cannot do that"):
        one.sync("laptop:")
    [peer] = one.sync.state().peers
    assert (peer.machine, peer.name) == (known.machine, "laptop:")
    assert "cannot do that" in peer.problem


@pytest.mark.only_sqlite("bytes in the files of a home")
def test_a_forgotten_fragment_leaves_no_bytes_on_the_other_machine(
    pair: Pair, tmp_path: Path
) -> None:
    one, other = pair
    stored = one.remember("The plan is zebrafish.")
    one.sync.write_bundle(tmp_path / "before")
    other.sync.read_bundle(tmp_path / "before", trust=True)
    other.maintenance.backup()
    one.forget(id=stored.id)
    one.sync.write_bundle(tmp_path / "after")
    assert other.sync.read_bundle(tmp_path / "after", trust=True).forgotten == 1
    assert other.sync.read_bundle(tmp_path / "before", trust=True).changed == 0
    files = [file for file in (tmp_path / "other").rglob("*") if file.is_file()]
    assert [file.name for file in files if b"zebrafish" in file.read_bytes()] == []


def test_a_forget_that_both_machines_know_is_received_again(pair: Pair, tmp_path: Path) -> None:
    one, other = pair
    stored = one.remember("The plan is zebrafish.")
    one.forget(id=stored.id)
    one.sync.write_bundle(tmp_path / "forgotten")
    other.sync.read_bundle(tmp_path / "forgotten", trust=True)
    other.remember("The staging host is stage.shop.example.")
    other.sync.write_bundle(tmp_path / "back")
    assert one.sync.read_bundle(tmp_path / "back", trust=True).changed == 1
    other.sync.read_bundle(tmp_path / "forgotten", trust=True)
    assert other.sync.state_hash() == one.sync.state_hash()


DIES_AFTER_THE_COMMIT = """
import json, os, sys
from pathlib import Path
from tests.store.samples import open_memory

with open_memory(Path(sys.argv[1])) as memory:
    memory.database.write(lambda db: db.raw.set_wal_hook(lambda *_: os._exit(9)))
    memory.sync.receive(json.load(sys.stdin), machine="aa")
"""


@pytest.mark.only_sqlite("bytes in the files of a home")
def test_a_kill_after_a_forget_is_applied_leaves_the_text_in_no_file(
    pair: Pair, tmp_path: Path
) -> None:
    one, other = pair
    code = tmp_path / "code"
    (code / ".git").mkdir(parents=True)
    one.remember("Plan the harbor with zebrafish.", project=str(code), kind="decision")
    one.remember("Never dredge where zebrafish are.", project=str(code), kind="anti_pattern")
    one.sync.describe()
    other.sync.receive(one.sync.changes().records, machine="aa")
    one.forget(match="zebrafish")
    one.sync.describe()
    forgets = json.dumps([one for one in one.sync.changes().records if one["kind"] == "forget"])
    page = code / ".lore.md"  # of the other machine: both have this folder here
    other.knowledge.share(other.knowledge.plan_share(str(code), page), page)
    said = NewMessage("user", (Part("text", "Plan the harbor."),), NOON, key="said")
    other.capture("talk", [said], agent="codex", project=str(code))
    other.handoffs.catch_up(project=str(code))
    continuity = other.continuity.write(str(code), force=True)
    assert continuity is not None
    for file in (page, continuity):
        assert b"zebrafish" in file.read_bytes()
    other.maintenance.backup()
    home = other.settings.home
    killed = subprocess.run(
        [sys.executable, "-c", DIES_AFTER_THE_COMMIT, str(home)],
        input=forgets, text=True, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    assert killed.returncode == 9
    assert b"zebrafish" in continuity.read_bytes()
    assert b"zebrafish" not in page.read_bytes()
    assert any(b"zebrafish" in file.read_bytes() for file in home.rglob("*") if file.is_file())
    (upkeep,) = (task for task in periodic_tasks(other.settings) if task.name == "upkeep")
    upkeep.run(other, lambda: False)
    assert b"zebrafish" not in continuity.read_bytes()
    assert not any(b"zebrafish" in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_a_tombstone_that_is_left_out_stops_nothing_by_a_zero_character_in_its_key(
    pair: Pair,
) -> None:
    one, other = pair
    one.forget(id=one.remember("Paint the gate.").id)
    kept = one.remember("Oil the door.").id
    one.sync.describe()
    records = list(one.sync.changes().records)
    forget = next(record for record in records if record["kind"] == "forget")
    nested: list[Any] = []
    for _ in range(DEEPEST_RECORD):
        nested = [nested]
    records.append({**forget, "key": f"{forget['key']}\0", "references": nested})
    other.sync.receive(records, machine="aa")
    assert [one.id for one in other.knowledge.page_of_fragments(limit=9).items] == [kept]


def test_the_daemon_syncs_only_where_both_target_and_interval_are_set() -> None:
    chosen = replace(Settings(), sync_target="laptop:", sync_interval_s=300.0)
    assert [task.name for task in periodic_tasks(chosen)][-1] == "sync"
    for less in ({"sync_target": ""}, {"sync_interval_s": 0.0}):
        tasks = periodic_tasks(replace(chosen, **less))
        assert "sync" not in [task.name for task in tasks]


def test_the_state_names_this_machine_and_no_peer_at_first(pair: Pair) -> None:
    one, _ = pair
    assert (one.sync.state().machine, one.sync.state().peers) == ("", ())
    machine = one.sync.describe().machine
    assert one.sync.state().machine == machine
