from __future__ import annotations

import io
import stat

import orjson
import pytest

from lore.capture import exchange
from lore.capture.messages import Conversation, capture, message_of
from lore.curate import fragments
from lore.errors import InvalidInput, StoreError
from lore.records import Draft
from lore.store import items, mentions
from lore.store.db import open_database
from tests.fakes import NOON


@pytest.fixture
def filled(database, clock):
    conversation = Conversation("talk", project="/code/app", title="A title", files=("a.py",))
    said = [message_of("user", "Always use tabs.", NOON), message_of("assistant", "Yes.", NOON)]
    ids = capture(database, conversation, said)
    root = fragments.store(database, Draft("Ada met Bob.", source_messages=tuple(ids)))
    child = fragments.store(database, Draft("She met Carl.", summary="Ada", parent_id=root))
    fragments.update(database, child, "She met Dora.", summary="Ada", reason="wrong")
    newer = fragments.store(database, Draft("Ada met Eve."))
    fragments.link(database, root, child, "supports", weight=0.5, note="so")
    fragments.supersede(database, root, newer)
    fragments.delete(database, newer)
    clock.advance(days=1)
    return database


@pytest.fixture
def empty(tmp_path, clock):
    opened = open_database(
        tmp_path / "other.db", busy_timeout_s=5, backups=tmp_path / "backups", now=clock
    )
    yield opened
    opened.close()


def exported(database) -> list[bytes]:
    stream = io.BytesIO()
    exchange.export(database, stream)
    return stream.getvalue().splitlines()


def mentioned(database) -> dict[str, set[tuple[str, bool]]]:
    with database.read() as db:
        found: dict[str, set[tuple[str, bool]]] = {}
        for line in map(orjson.loads, exported(database)[1:]):
            if line["record"] == "fragment":
                table = mentions.of_items(db, [items.resolve(db, line["id"]).n])
                names = mentions.names_of(db, table[:, 1].tolist())
                found[line["id"]] = {(names[int(r[1])], bool(r[2])) for r in table}
    return found


def test_everything_is_the_same_after_a_round_trip(filled, empty):
    lines = exported(filled)
    counts = exchange.import_lines(empty, lines)
    assert counts == {"added": len(lines) - 1, "skipped": 0}
    assert exported(empty) == lines
    assert mentioned(empty) == mentioned(filled)


def test_importing_again_adds_nothing(filled, empty):
    lines = exported(filled)
    exchange.import_lines(empty, lines)
    assert exchange.import_lines(empty, lines)["added"] == 0
    assert exported(empty) == lines


def test_a_file_is_written_whole_and_for_its_owner_only(filled, tmp_path):
    target = tmp_path / "export.jsonl"
    assert exchange.export(filled, target) == len(exported(filled)) - 1
    assert target.read_bytes().splitlines() == exported(filled)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(tmp_path.glob("*.part-*")) == []


def test_a_file_that_cannot_be_written_is_an_error_of_the_store(filled, tmp_path):
    with pytest.raises(StoreError):
        exchange.export(filled, tmp_path / "nowhere" / "export.jsonl")


def test_progress_counts_every_record(filled, empty):
    seen: list[int] = []
    lines = exported(filled)
    exchange.import_lines(empty, lines, progress=seen.append)
    assert seen == [len(lines) - 1]


@pytest.mark.parametrize(
    "lines",
    [
        [b"no json"],
        [b"[]"],
        [b'{"lore": 99}'],
        [b'{"record": "fragment"}'],
        [b'{"lore": 1}', b"{"],
        [b'{"lore": 1}', b"[]"],
        [b'{"lore": 1}', b'{"record": "gossip"}'],
        [b'{"lore": 1}', b'{"record": "fragment", "id": "x"}'],
        [b'{"lore": 1}', b'{"record": "message", "id": "x", "session_id": "y"}'],
    ],
)
def test_what_is_no_export_is_refused(empty, lines):
    with pytest.raises(InvalidInput):
        exchange.import_lines(empty, lines)


def test_nothing_imports_as_nothing(empty):
    assert exchange.import_lines(empty, [b"", b" "]) == {"added": 0, "skipped": 0}
