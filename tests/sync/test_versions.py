"""Sync between two versions of Lore: what the older one does not know is not lost, nor in the way.

The older version is this one. A newer one sends records of a new kind, and new parts of known ones.
"""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lore import clock
from lore.embed.embedder import NoEmbedder
from lore.errors import SyncError
from lore.memory import Memory
from lore.redaction.redactor import Redactor
from lore.settings import load
from lore.store import hard_delete, sync_rows
from lore.store.hard_delete import ForgetSelection
from lore.store.project_rows import ProjectLocation
from lore.sync import newer_records
from lore.sync.replica import Replica
from tests.http_api.live_server import Served, serving
from tests.sync.machines import NOON, Machine
from tests.sync.test_replica import edit, number, pair, remember, say

__all__ = ["pair"]

LATE, EARLY = clock.to_us(NOON) + 9, clock.to_us(NOON)
MOOD = [LATE, "aaa", {"mood": "calm"}]


def habit(key: str, us: int, value: object) -> dict[str, Any]:
    """Return a record of a kind that this version does not know."""
    return {"kind": "habit", "key": key, "registers": {"self": [us, "aaa", value]}}


def as_newer(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as a newer version might send it."""
    more = {"registers": {**record["registers"], "mood": MOOD}}
    return {**record, **more, "references": {**record.get("references", {}), "planet": "earth"}}


def changes(machine: Machine) -> list[dict[str, Any]]:
    machine.replica.scan()
    return machine.replica.changes("").records


def kept(machine: Machine) -> list[dict[str, Any]]:
    with machine.database.read() as db:
        return [json.loads(body) for body in sync_rows.kept_records(db)]


def test_what_is_known_of_a_newer_record_is_applied_and_all_of_it_is_kept(pair) -> None:
    one, other = pair
    id_ = remember(one, "Deploys go out on Tuesdays.")
    sent = [*map(as_newer, changes(one)), habit("running", EARLY, {"often": 3})]
    for _ in range(2):
        other.replica.apply(sent, via=one.replica.machine)
        other.replica.scan()
    assert other.state() == one.state()
    assert sorted(kept(other), key=lambda r: r["kind"]) == sorted(sent, key=lambda r: r["kind"])
    edit(other, id_, "Deploys go out on Mondays.")
    one.sync_with(other)
    assert one.state() == other.state()
    assert "Mondays" in json.dumps([*one.state().values()])


def test_of_two_states_that_are_kept_the_later_holds_in_whatever_order_they_come(pair) -> None:
    one, other = pair
    states = [habit("running", EARLY, {"often": 3}), habit("running", LATE, {"often": 5})]
    one.replica.apply(states, via="aaa")
    other.replica.apply(states[::-1], via="aaa")
    assert kept(one) == kept(other) == [states[1]]


def test_what_an_older_version_kept_is_applied_by_the_one_that_knows_it(pair) -> None:
    one, other = pair
    remember(one, "Deploys go out on Tuesdays.")
    records = [*changes(one), habit("running", EARLY, {})]
    other.write(lambda db: newer_records.keep(db, records, Redactor(bytes(32))))
    assert other.state() == {}
    other.replica.scan()
    assert other.state() == one.state()
    assert kept(other) == [habit("running", EARLY, {})]
    third = Machine("third")
    third.sync_with(other)  # it goes on to others
    assert third.state() == one.state()
    third.close()


def test_a_secret_in_what_is_kept_is_redacted(pair) -> None:
    one, _ = pair
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    one.replica.apply([habit("running", EARLY, {"with": [f"token {secret}"]})], via="aaa")
    (record,) = kept(one)
    assert "[secret:" in json.dumps(record)
    assert secret.encode() not in one.bytes()


def test_names_with_secrets_in_what_is_kept_are_recognized_once_it_is_applied(pair) -> None:
    one, other = pair
    one.replica = Replica(one.database, Redactor(bytes(32), active=False))
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    place = ProjectLocation(f"/p/{secret}", f"https://host/{secret}/code", "code")
    remember(one, "Deploys go out on Tuesdays.", place=place)
    say(one, "Build the gate.")
    one.write(lambda db: db.run("UPDATE sessions SET external_id = :name", name=f"to {secret}"))
    records = [*changes(one), habit("running", EARLY, {"of": [f"to {secret}"]})]
    other.write(lambda db: newer_records.keep(db, records, Redactor(bytes(32))))
    assert secret.encode() not in other.bytes()
    other.replica.scan()
    assert other.state() == one.state()
    odd = habit("running", LATE, {}) | {"references": {"project": [secret], "session": None}}
    other.write(lambda db: newer_records.keep(db, [odd], Redactor(bytes(32))))
    assert secret.encode() not in other.bytes()


def test_what_is_kept_goes_with_what_is_forgotten_and_does_not_come_back(pair) -> None:
    one, other = pair
    id_ = remember(one, "Deploys go out on Tuesdays.")
    about = habit("running", EARLY, {"of": id_, "note": "zebrafish"})
    sent = [*map(as_newer, changes(one)), about]
    other.replica.apply(sent, via=one.replica.machine)
    assert len(kept(other)) == 2
    n, now = number(other, id_), other.now()
    other.write(lambda db: hard_delete.forget(db, ForgetSelection((n,)), now=now))
    assert kept(other) == []
    other.replica.apply(sent, via=one.replica.machine)
    assert kept(other) == []
    assert b"zebrafish" not in other.bytes()


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "habit"},
        {"kind": "habit", "key": "x", "registers": {}},
        {"kind": "habit", "key": "x", "registers": {"self": [1, 2]}},
        {"kind": "habit", "key": "x" * 401, "registers": {"self": MOOD}},
        {"kind": "A habit", "key": "x", "registers": {"self": MOOD}},
        {"kind": None, "key": "x", "registers": {"self": MOOD}},
        "habit",
    ],
)
def test_what_has_not_even_the_shape_of_a_record_is_refused(record: Any, pair) -> None:
    one, _ = pair
    with pytest.raises(SyncError):
        one.replica.apply([habit("running", EARLY, {}), record], via="aaa")
    assert kept(one) == []


Change = Callable[[str, Any], Any]
"""Changes what a server answers to a path."""


@contextmanager
def in_front_of(served: Served, change: Change) -> Iterator[str]:
    """Run a server that passes requests on, and changes the answers as a newer one might."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("content-length", 0))
            request = urllib.request.Request(
                f"http://127.0.0.1:{served.port}{self.path}",
                self.rfile.read(length) or None,
                {
                    n: v
                    for n, v in self.headers.items()
                    if n.lower() in ("authorization", "content-type")
                },
            )
            with urllib.request.urlopen(request) as answer:
                body = json.dumps(change(self.path, json.load(answer))).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def laptop(home: Path, key: str) -> Memory:
    settings = replace(load({}, home=home).settings, sync_api_key=key)
    return Memory.open(config=settings, embedder=NoEmbedder())


def newer_server(newest: int, oldest: int) -> Change:
    """Return what a newer server answers, which speaks these formats."""

    def change(path: str, answer: Any) -> Any:
        if "/sync?" in path:
            answer |= {"format": newest, "oldest_format": oldest, "mood": "calm"}
        elif "/changes?" in path:
            answer["records"] = [*map(as_newer, answer["records"]), habit("running", EARLY, {})]
        return answer | {"more to come": True}

    return change


@pytest.mark.only_sqlite("homes of laptops")
def test_this_version_syncs_with_a_newer_server_that_still_speaks_its_format(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "server") as served:
        served.memory.remember("Deploys go out on Tuesdays.")
        with (
            in_front_of(served, newer_server(7, 1)) as url,
            laptop(tmp_path / "laptop", served.key) as memory,
        ):
            memory.remember("The staging database is called zebrafish.")
            memory.sync(url)
            assert memory.sync.state_hash() == served.memory.sync.state_hash()
            assert memory.sync.state().unresolved == 2


@pytest.mark.only_sqlite("homes of laptops")
def test_a_server_that_no_longer_speaks_the_format_is_refused_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "server") as served, laptop(tmp_path / "laptop", served.key) as memory:
        memory.remember("The staging database is called zebrafish.")
        with (
            in_front_of(served, newer_server(3, 2)) as url,
            pytest.raises(SyncError, match="This Lore is too old"),
        ):
            memory.sync(url)
        assert served.memory.recall("staging database").hits == ()
        memory.sync(f"http://127.0.0.1:{served.port}")
        assert "zebrafish" in served.memory.recall("staging database").hits[0].text


@pytest.mark.only_sqlite("homes of laptops")
def test_a_newer_laptop_pushes_to_this_version_which_says_what_it_speaks(tmp_path: Path) -> None:
    with serving(tmp_path / "server") as served:
        identity = served.get("/api/v1/sync").json
        assert (identity["oldest_format"], identity["format"]) == (1, 1)
        records = [habit("running", EARLY, {"often": 3})]
        sent = {"machine": "aaaaaaaaaaaa", "records": records}
        assert served.post("/api/v1/push", sent).status == 200
        assert served.memory.sync.state().unresolved == 1
        refused = served.post("/api/v1/push", sent | {"mood": "calm"})
        assert (refused.status, "'mood'" in refused.json["detail"]) == (422, True)
