"""The `.loki` layout: parsed into records and written again without loss."""

from __future__ import annotations

import json

from hypothesis import given

from lore.tasks import loki_layout
from lore.tasks.loki_layout import LayoutRecord
from tests.tasks import layouts
from tests.tasks.layouts import EPISODE, EXAMPLE, PATTERN, same


def _keep(id_: str) -> str:
    return id_


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_the_example_comes_back_as_it_was() -> None:
    layout = loki_layout.parse_layout(EXAMPLE)
    written = loki_layout.format_layout(layout.records, layout.files)
    assert set(written) == set(EXAMPLE)
    assert [path for path in EXAMPLE if not same(written[path], EXAMPLE[path])] == []


def test_the_example_has_all_kinds_of_records() -> None:
    records = loki_layout.parse_layout(EXAMPLE).records
    assert {record.kind for record in records} == {
        "episode", "pattern", "anti_pattern", "fact", "skill", "ledger", "handoff", "learning",
        "efficiency", "reward",
    }  # fmt: skip
    ids = {record.id for record in records}
    assert {"ep-2026-01-06-001", "sem-001", "api-implementation", "handoff-001"} <= ids


@given(layouts.layouts)
def test_any_layout_comes_back_as_it_was(files: dict[str, bytes]) -> None:
    layout = loki_layout.parse_layout(files)
    written = loki_layout.format_layout(layout.records, layout.files)
    left_out = {path for path, _ in layout.left_out}
    assert set(written) == set(files) - left_out
    assert [path for path in written if not same(written[path], files[path])] == []
    assert all(not _is_text(files[path]) for path in left_out)


def test_a_file_with_a_path_too_long_to_be_stored_is_left_out() -> None:
    layout = loki_layout.parse_layout({"notes/" + "x" * 1_024: b"text"})
    assert layout.files == {}
    assert "longer than 1024 bytes" in layout.left_out[0].why


def test_json_that_would_change_stays_a_text() -> None:
    text = b'{"agent_id": "a", "agent_id": "b"}'
    layout = loki_layout.parse_layout({"memory/ledgers/a.json": text})
    assert layout.records == ()
    assert "twice" in layout.problems[0].why
    assert loki_layout.format_layout((), layout.files)["memory/ledgers/a.json"] == text


def test_an_entry_that_is_no_record_is_named_and_keeps_its_place() -> None:
    path = "memory/semantic/patterns.json"
    text = json.dumps([{"pattern": "a"}, {"category": "b"}, {"pattern": "c"}]).encode()
    layout = loki_layout.parse_layout({path: text})
    assert [record.raw["pattern"] for record in layout.records] == ["a", "c"]
    assert layout.problems == ((path, "entry 2 has no 'pattern'"),)
    rest = [record for record in layout.records if record.place]
    written = loki_layout.format_layout(rest, layout.files)
    assert json.loads(written[path]) == [{"category": "b"}, {"pattern": "c"}]


def test_an_episode_is_read_as_a_payload() -> None:
    payload = loki_layout.to_payload("episode", EPISODE, _keep)
    assert payload["goal"] == "Implement POST /api/todos endpoint"
    assert payload["files_changed"] == ["src/routes/todos.ts"]
    assert payload["files_read"] == ["src/db/todos.ts"]
    assert payload["actions"][2] == {
        "t": 120, "action": "run_test", "result": "failed", "error": "missing return type",
    }  # fmt: skip
    assert payload["commits"] == ["abc123"]


def test_a_change_of_a_payload_changes_that_field_only() -> None:
    before = loki_layout.to_payload("pattern", PATTERN, _keep)
    raw = PATTERN | {"unknown": [1]}
    now = loki_layout.from_payload("pattern", before | {"usage_count": 9}, _keep)
    merged = loki_layout.merge_changes(raw, loki_layout.from_payload("pattern", before, _keep), now)
    assert merged == raw | {"usage_count": 9}


def test_paths_that_leave_the_folder_are_unsafe() -> None:
    for path in ("", "/a", "../a", "a/../b", "a//b", "c:/a", "a\\b", "a\0"):
        assert not loki_layout.is_safe_path(path)
    assert loki_layout.is_safe_path("memory/skills/a.md")


def test_a_list_without_a_frame_is_written_as_a_plain_list() -> None:
    records = [LayoutRecord("pattern", "memory/semantic/patterns.json", {"pattern": "a"}, 0)]
    written = loki_layout.format_layout(records, {})
    assert json.loads(written["memory/semantic/patterns.json"]) == [{"pattern": "a"}]
