from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.errors import InvalidInput, LoreError
from lore.memory import Memory
from lore.records import EDGE_KINDS, ImportResult, Spend, Watermark
from lore.store import (
    distillations,
    dump,
    history,
    items,
    maintenance,
    project_rows,
    reversible_changes,
    sessions,
    spend,
    watermarks,
)
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, new_message, new_session, open_memory

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(
    lambda text: bool(text.strip())
)


def lines_of(memory: Memory) -> list[dict[str, Any]]:
    with memory.database.read() as db:
        return list(dump.dump_records(db))


def exported(memory: Memory) -> list[bytes]:
    stream = io.BytesIO()
    memory.sessions.export(stream)
    lines = stream.getvalue().splitlines()
    return [line for line in lines if not line.startswith(b'{"record":"seal"')]


def bring_in(memory: Memory, lines: list[dict[str, Any]]) -> int:
    """Bring in what the store alone can; return how much was new."""

    def work(db: Connection) -> int:
        return sum(dump.LOADERS[line["record"]](db, line, NOON) for line in lines)

    return memory.database.write(work)


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_a_generated_memory_is_the_same_after_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    homes = tmp_path_factory.mktemp("round")
    with open_memory(homes / "a") as one, open_memory(homes / "b") as other:
        grow(one, data)
        lines = exported(one)
        counts = other.sessions.import_lines(lines, trust=True)
        assert lines_of(other) == lines_of(one)
        assert counts.added == len(lines) - 1
        assert other.sessions.import_lines(lines, trust=True) == ImportResult(
            skipped=len(lines) - 1
        )
        with other.database.read() as db:
            assert maintenance.check_integrity(db) == []
        assert other.database.write(maintenance.compare_keyword_index) == []


def grow(memory: Memory, data: st.DataObject) -> None:
    """Do a few things of all kinds to a memory."""
    for i in range(data.draw(st.integers(0, 3), "sessions")):
        texts = data.draw(st.lists(WORDS, min_size=1, max_size=4), "messages")
        memory.capture(
            f"s{i}",
            [new_message(text, j, key=str(j)) for j, text in enumerate(texts)],
            project=data.draw(st.sampled_from(["", "/a", "/b"])),
            title=data.draw(st.just("") | WORDS),
        )
    ids = [memory.store(text) for text in data.draw(st.lists(WORDS, max_size=5), "facts")]
    for i, id_ in enumerate(ids):
        other = ids[data.draw(st.integers(0, len(ids) - 1))]
        choice = data.draw(st.sampled_from(["", "update", "delete", "link", "supersede", "forget"]))
        try:
            if choice == "update":
                memory.knowledge.update(id_, f"changed {i}", reason="r")
            elif choice == "delete":
                memory.knowledge.delete(id_)
            elif choice == "link":
                memory.knowledge.link(id_, other, data.draw(st.sampled_from(EDGE_KINDS)), note="n")
            elif choice == "supersede":
                memory.knowledge.supersede(id_, other)
            elif choice == "forget":
                memory.forget(id=id_)
        except LoreError:
            continue  # what is refused is not part of the memory


def test_records_beside_the_items_are_dumped_and_loaded(tmp_path: Path) -> None:
    with open_memory(tmp_path / "a") as one, open_memory(tmp_path / "b") as other:

        def fill(db: Connection) -> None:
            n = new_session(db, project="/p")
            watermarks.put(db, Watermark("log", None, 3, "", NOON), session_n=n)
            db.insert("staged_turns", session_n=n, key="k", body="{}", created_at=0)
            sessions.put_session_state(db, n, "calibration", {"a": 1}, now=NOON)
            told = Spend("s", NOON, "request:turn", "m", {"input": 1}, 0.5, layer=1, delay_ms=7)
            spend.add(db, told, session_n=n)
            history.add_tombstones(db, ["gone"], NOON, sources={"gone": "digest"})

        one.database.write(fill)
        lines = lines_of(one)
        assert {line["record"] for line in lines} >= {
            "watermark", "staged_turn", "session_state", "spend", "tombstone",
        }  # fmt: skip
        assert bring_in(other, lines) == len(lines)
        assert lines_of(other) == lines
        assert bring_in(other, lines) == 0


def test_curation_and_judgement_state_is_dumped_and_loaded(tmp_path: Path) -> None:
    with open_memory(tmp_path / "a") as one, open_memory(tmp_path / "b") as other:
        one.capture("talk", [new_message("said", 1, key="1")], project="/p")
        id_ = one.store("fact", project="/p", session="talk")

        def fill(db: Connection) -> None:
            project_n = project_rows.get_project(db, "/p")
            distillations.mark_curated(db, sessions.get_session_number(db, "talk"), 7, now=NOON)
            reversible_changes.count_confirmation(db, items.resolve(db, id_).n, project_n, now=NOON)

        one.database.write(fill)
        lines = lines_of(one)
        assert {line["record"] for line in lines} >= {"curation", "confirmation"}
        other.sessions.import_lines(exported(one), trust=True)
        assert lines_of(other) == lines
        assert other.sessions.import_lines(exported(one), trust=True).added == 0


def test_records_of_a_project_or_session_with_another_id_are_merged(
    tmp_path: Path,
) -> None:
    with open_memory(tmp_path / "a") as one, open_memory(tmp_path / "b") as other:
        for i, memory in enumerate((one, other)):
            memory.capture("talk", [new_message(f"said {i}", i, key=str(i))], project="/p")
            memory.store(f"fact {i}", project="/p", session="talk")
        other.sessions.import_lines(exported(one), trust=True)
        assert len(other.sessions.messages("talk")) == 2
        assert len(other.sessions(project="/p")) == 1
        assert other.maintenance.stats().projects == (("/p", 4),)
        assert other.sessions.import_lines(exported(one), trust=True).added == 0
        other.forget(project="/p")
        assert other.maintenance.stats().messages == other.maintenance.stats().fragments == 0


def test_a_loaded_tombstone_forgets_the_item(tmp_path: Path) -> None:
    with open_memory(tmp_path / "a") as one, open_memory(tmp_path / "b") as other:
        id_ = one.store("a secret")
        one.store("a fact")
        other.sessions.import_lines(exported(one), trust=True)
        one.forget(id=id_)
        other.sessions.import_lines(exported(one), trust=True)
        assert [line["content"] for line in lines_of(other) if "content" in line] == ["a fact"]


def test_versions_and_edges_of_forgotten_fragments_are_skipped(
    tmp_path: Path,
) -> None:
    with open_memory(tmp_path / "a") as memory:
        secret, fact = memory.store("a secret"), memory.store("a fact")
        memory.knowledge.update(secret, "a changed secret")
        memory.knowledge.link(secret, fact, "supports")
        memory.knowledge.supersede(fact, secret)
        before = exported(memory)
        memory.forget(id=secret)
        memory.sessions.import_lines(before, trust=True)
        assert [line["record"] for line in lines_of(memory)] == ["fragment", "tombstone"]


def test_a_reference_to_a_missing_record_is_refused(tmp_path: Path) -> None:
    line = {"record": "edge", "source": "x", "target": "y", "kind": "supports", "weight": 1,
            "note": "", "created_at": 0}  # fmt: skip
    with open_memory(tmp_path / "a") as memory:
        with pytest.raises(InvalidInput, match="is not in the import"):
            bring_in(memory, [line])
        with pytest.raises(InvalidInput, match="not an export"):
            memory.sessions.import_lines([orjson.dumps(line)])
