"""TODO."""

from __future__ import annotations

import io
import stat
from datetime import timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore import clock
from lore.capture import export_import
from lore.capture.export_import import Sealer
from lore.capture.message_capture import Conversation, capture
from lore.digest import fragment_edits
from lore.errors import InvalidInput, StoreError
from lore.records import Draft, ImportResult, TaskRecord
from lore.store import (
    consolidation,
    forgotten_texts,
    graph,
    items,
    project_rows,
    standing_instructions,
    task_rows,
)
from lore.store.consolidation import Judgement
from lore.store.database import open_database
from lore.text.name_limit import LONGEST_NAME, shorten_name
from tests.fakes import NOON
from tests.transcripts import text_message

KEY, OTHER = b"k" * 32, b"o" * 32


@pytest.fixture
def filled(database, clock):
    conversation = Conversation("talk", project="/code/app", title="A title", files=("a.py",))
    said = [text_message("user", "Always use tabs."), text_message("assistant", "Yes.")]
    ids = capture(database, conversation, said)
    root = fragment_edits.store(database, Draft("Ada met Bob.", source_messages=tuple(ids)))
    child = fragment_edits.store(database, Draft("She met Carl.", summary="Ada", parent_id=root))
    fragment_edits.update(database, child, "She met Dora.", summary="Ada", reason="wrong")
    newer = fragment_edits.store(database, Draft("Ada met Eve."))
    fragment_edits.link(database, root, child, "supports", weight=0.5, note="so")
    fragment_edits.supersede(database, root, newer)
    fragment_edits.delete(database, newer)
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
    export_import.export(database, stream, key=KEY)
    return stream.getvalue().splitlines()


def bring(database, lines, **how) -> ImportResult:
    return export_import.import_lines(database, lines, **{"key": KEY, **how})


def mentioned(database) -> dict[str, set[tuple[str, bool]]]:
    with database.read() as db:
        found: dict[str, set[tuple[str, bool]]] = {}
        for line in map(orjson.loads, exported(database)[1:]):
            if line["record"] == "fragment":
                table = graph.mentions_of_items(db, [items.resolve(db, line["id"]).n])
                names = graph.entity_names(db, table[:, 1].tolist())
                found[line["id"]] = {(names[int(r[1])], bool(r[2])) for r in table}
    return found


def test_everything_is_the_same_after_a_round_trip(filled, empty):
    lines = exported(filled)
    assert bring(empty, lines) == ImportResult(added=len(lines) - 2)
    assert exported(empty) == lines
    assert mentioned(empty) == mentioned(filled)


def test_importing_again_adds_nothing(filled, empty):
    lines = exported(filled)
    bring(empty, lines)
    assert bring(empty, lines) == ImportResult(skipped=len(lines) - 2)
    assert exported(empty) == lines


def test_a_file_is_written_whole_and_for_its_owner_only(filled, tmp_path):
    target = tmp_path / "export.jsonl"
    assert export_import.export(filled, target, key=KEY) == len(exported(filled)) - 2
    assert target.read_bytes().splitlines() == exported(filled)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(tmp_path.glob("*.part-*")) == []


def test_a_file_that_cannot_be_written_is_an_error_of_the_store(filled, tmp_path):
    with pytest.raises(StoreError):
        export_import.export(filled, tmp_path / "nowhere" / "export.jsonl", key=KEY)


def test_progress_counts_every_record(filled, empty):
    seen: list[int] = []
    lines = exported(filled)
    bring(empty, lines, progress=seen.append)
    assert seen[-1] == len(lines) - 2


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
def test_import_refuses_a_file_that_is_no_export(empty, lines):
    with pytest.raises(InvalidInput):
        bring(empty, lines, trust=True)


def test_a_name_that_is_too_long_is_shortened_and_still_found(filled, empty):
    path, name = f"/code/{'x' * LONGEST_NAME}", "talk" * LONGEST_NAME
    filled.write(lambda db: db.run("UPDATE projects SET path = :path", path=path))
    filled.write(lambda db: db.run("UPDATE sessions SET external_id = :name", name=name))
    lines = exported(filled)
    assert bring(empty, lines, key=KEY).added == len(lines) - 2
    assert bring(empty, lines, key=KEY).added == 0
    with empty.read() as db:
        assert project_rows.find_project(db, path) == 1
        assert db.rows("SELECT external_id, project_n FROM sessions") == [(shorten_name(name), 1)]
        assert db.value("SELECT count(*) FROM items WHERE session_n IS NOT NULL") == 2


def test_a_peer_may_have_names_that_are_too_long(filled, empty):
    long = b'"/code/%s"' % (b"x" * LONGEST_NAME)
    lines = [one.replace(b'"/code/app"', long) for one in exported(filled)]
    assert bring(empty, lines, key=OTHER, trust=False).added
    with empty.read() as db:
        assert db.column("SELECT path FROM projects") == [shorten_name(orjson.loads(long))]


def test_importing_an_empty_file_adds_nothing(empty):
    assert bring(empty, [b"", b" "]) == ImportResult()


def test_an_export_of_this_home_that_was_changed_or_cut_is_refused(filled, empty):
    lines = exported(filled)
    changed = [line.replace(b"Ada met Bob", b"Ada met Eve") for line in lines]
    for broken in (changed, lines[:-1], lines[:2] + lines[3:]):
        with pytest.raises(InvalidInput, match="changed or cut off"):
            bring(empty, broken)
    assert len(exported(empty)) == 2
    assert bring(empty, changed, trust=True).added == len(lines) - 2


def test_lines_added_to_an_export_are_refused(filled, empty):
    lines = exported(filled)
    with pytest.raises(InvalidInput, match="changed or cut off"):
        bring(empty, [*lines, lines[1]])
    assert exported(empty) == lines


def test_export_of_another_home_needs_an_explicit_trust_option(filled, empty):
    with pytest.raises(InvalidInput, match="Another home"):
        bring(empty, exported(filled), key=OTHER)
    assert len(exported(empty)) == 2


def test_a_long_export_is_sealed_by_parts_and_comes_back_whole(database, empty):
    said = [text_message("user", f"number {place}") for place in range(1_200)]
    capture(database, Conversation("long"), said)
    lines = exported(database)
    assert sum(b'"record":"seal"' in line for line in lines) == 3
    assert bring(empty, lines).added == 1_201
    assert exported(empty) == lines
    with pytest.raises(InvalidInput, match="changed or cut off"):
        bring(empty, [line for line in lines if b'"record":"seal"' not in line])


def test_records_of_another_home_have_at_most_peer_trust(filled, empty):
    lines = exported(filled)
    brought = bring(empty, lines, key=OTHER, trust=False)
    assert brought.foreign
    assert brought.added + brought.left_out == len(lines) - 2
    for line in map(orjson.loads, exported(empty)[1:]):
        assert line.get("origin", "peer") == "peer"
        assert line.get("trust", 1) <= 1
    with empty.read() as db:
        assert standing_instructions.current_instructions(db, None, everywhere=True) == []


def test_tombstones_and_watermarks_of_another_home_are_ignored(filled, empty):
    lines = exported(filled)
    bring(empty, lines)
    [doomed] = [
        line for line in map(orjson.loads, lines[1:]) if line.get("content") == "Ada met Bob."
    ]
    evil = [
        {"record": "tombstone", "id": doomed["id"], "at": 1, "source": ""},
        {"record": "edge", "source": doomed["id"], "target": doomed["id"], "kind": "contradicts",
         "weight": 1.0, "note": "", "created_at": 1},
        {"record": "version", "fragment_id": doomed["id"], "version": 9, "content": "x",
         "summary": "x", "changed_at": 1, "reason": ""},
    ]  # fmt: skip
    before = exported(empty)
    brought = bring(empty, [b'{"lore": 1}', *map(orjson.dumps, evil)], trust=False)
    assert brought == ImportResult(left_out=3, foreign=True)
    assert exported(empty) == before


CHECKLIST = "Rotate the deploy keys before the audit."


def start_task(database, at) -> None:
    task = TaskRecord(clock.new_id(at), CHECKLIST, "", "", "implementation", "open", at)
    database.write(lambda db: task_rows.add_task(db, task, task_rows.TaskPlace()))


def goals_of(database) -> list[str]:
    with database.read() as db:
        return list(db.column("SELECT goal FROM tasks"))


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_task_that_says_anew_what_was_forgotten_before_is_imported(database, empty, hours):
    start_task(database, NOON + timedelta(hours=hours))
    empty.write(lambda db: forgotten_texts.add(db, [CHECKLIST], now=NOON))
    bring(empty, exported(database))
    assert goals_of(empty) == ([CHECKLIST] if hours > 0 else [])


def test_a_text_that_was_forgotten_again_elsewhere_is_forgotten_by_an_import(database, empty):
    for one, hours in ((empty, 0), (database, 2)):
        at = NOON + timedelta(hours=hours)
        one.write(lambda db, at=at: forgotten_texts.add(db, [CHECKLIST], now=at))
    start_task(empty, NOON + timedelta(hours=1))
    bring(empty, exported(database))
    assert goals_of(empty) == []


def test_judgements_are_imported_with_their_fragments(filled, empty):
    def judge(db):
        a, b = (row[0] for row in db.rows("SELECT n FROM fragments ORDER BY n LIMIT 2"))
        judged = [
            Judgement(a, b, "judge", "agrees", 1, 2),
            Judgement(b, a, "reflect", "none"),
            Judgement(b, b, "prune", "kept"),
        ]
        consolidation.put_judgements(db, judged, now=NOON)

    filled.write(judge)
    lines = exported(filled)
    export_import.import_lines(empty, lines, key=KEY)
    told = "SELECT a_n < b_n, verb, verdict, a_version, b_version FROM judgements ORDER BY verb"
    with filled.read() as one, empty.read() as other:
        assert other.rows(told) == one.rows(told)
        assert len(other.rows(told)) == 3
    again = export_import.import_lines(empty, lines, key=KEY)
    assert again.added == 0


@pytest.mark.parametrize(("how", "is_kept"), [({}, True), ({"key": OTHER, "trust": False}, False)])
@pytest.mark.parametrize("state", ["confirmed", "rejected"])
def test_decisions_on_instructions_are_imported_from_ones_own_memory_only(
    filled, empty, state, how, is_kept
):
    filled.write(
        lambda db: standing_instructions.decide(db, db.value("SELECT n FROM standing"), state)
    )
    lines = exported(filled)
    bring(empty, lines, **how)
    with empty.read() as db:
        states = db.column("SELECT state FROM standing")
    assert (states == [state]) == is_kept
    assert bring(empty, lines, **how).added == 0


def test_judgements_of_a_peer_are_ignored(filled, empty):
    filled.write(
        lambda db: consolidation.put_judgements(
            db, [Judgement(_n(db), _n(db), "prune", "kept")], now=NOON
        )
    )
    export_import.import_lines(empty, exported(filled), key=OTHER, trust=False)
    with empty.read() as db:
        assert not db.rows("SELECT * FROM judgements")


def _n(db) -> int:
    return int(db.value("SELECT min(n) FROM fragments"))


LINES = st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=6)


def sealed(lines: list[bytes], key: bytes = b"key") -> list[str]:
    """Return a seal after each line."""
    sealer = Sealer(key)
    seals = []
    for line in lines:
        sealer.add(line)
        seals.append(sealer.seal())
    return seals


@given(LINES, LINES)
def test_seals_are_the_same_for_the_same_lines_only(one, other):
    assert (sealed(one) == sealed(other)) == (one == other)


def test_another_key_makes_other_seals_and_another_home():
    assert sealed([b"a"], b"one") != sealed([b"a"], b"other")
    assert Sealer(b"one").home != Sealer(b"other").home
    assert Sealer(b"one").home == Sealer(b"one").home


def test_a_seal_holds_for_its_place_only():
    first, second = sealed([b"a", b"a"])
    assert first != second
    sealer = Sealer(b"key")
    sealer.add(b"a")
    assert sealer.fits(first)
    assert not sealer.fits(first)


def test_invalid_seal_does_not_match():
    for seal in (None, 7, "", "\u00e9"):
        assert not Sealer(b"key").fits(seal)
