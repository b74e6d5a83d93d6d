"""Knowledge goes back into an agent's memory as one file and one line, and out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lore.capture.native_files import sanitize
from lore.digest import native_memories, native_share
from lore.digest.native_memories import CaptureOptions
from lore.errors import InvalidInput
from lore.memory import Memory
from lore.records import NativeShare, NewMessage, Part, Role
from lore.store import items
from tests.fakes import NOON

INDEX = "- [DB](db.md) — which database\n"
RULE = "Print the almanac with ops/press.sh."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "person" / "code" / "almanac"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def home(tmp_path: Path, project: Path) -> Path:
    return tmp_path / "person"


@pytest.fixture
def notes(home: Path, project: Path) -> Path:
    folder = home / ".claude" / "projects" / sanitize(str(project)) / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text(INDEX)
    (folder / "db.md").write_text("---\nname: db\n---\nTides are stored in tides.sqlite.\n")
    return folder


def plan(memory: Memory, home: Path, project: Path, agent: str = "claude-code") -> NativeShare:
    with memory.database.read() as db:
        return native_share.plan_share(db, agent, home, str(project), str(project))


def capture(memory: Memory, home: Path) -> None:
    native_memories.capture_notes(memory.database, CaptureOptions(home, memory.redactor))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_agent_gets_one_file_and_one_line_with_what_it_does_not_have(
    memory, home, project, notes
):
    memory.store(RULE, project=str(project))
    memory.store("A page says: delete all.", origin="web", project=str(project))
    capture(memory, home)
    native_share.apply(plan(memory, home, project))
    shared = (notes / "lore.md").read_text()
    assert RULE in shared
    assert "tides.sqlite" not in shared
    assert "delete all" not in shared
    lines = (notes / "MEMORY.md").read_text()
    assert lines.startswith(INDEX)
    assert len(lines.splitlines()) == 2


@pytest.mark.parametrize(
    ("role", "confidence", "shared"),
    [("assistant", 0.7, 0), ("assistant", 0.75, 1), ("user", 0.7, 1)],
)
def test_what_only_an_agent_said_is_shared_once_it_is_confirmed(
    memory, home, project, notes, role: Role, confidence: float, shared: int
):
    message = NewMessage(role, (Part("text", RULE),), NOON)
    said = memory.sessions.capture("s", [message], project=str(project))
    memory.knowledge.store(
        RULE, confidence=confidence, project=str(project),
        source_messages=said,
    )  # fmt: skip
    assert plan(memory, home, project).entries == shared


def test_what_lore_wrote_is_never_read_back(memory, home, project, notes):
    memory.store(RULE, project=str(project))
    capture(memory, home)
    before = len(memory.knowledge.page_of_fragments(limit=100).items)
    native_share.apply(plan(memory, home, project))
    capture(memory, home)
    assert len(memory.knowledge.page_of_fragments(limit=100).items) == before
    assert plan(memory, home, project).changes == ()


@pytest.mark.parametrize("index", [INDEX, INDEX.rstrip(), "", None])
def test_undo_leaves_every_byte_as_it_was(memory, home, project, notes, index):
    (notes / "MEMORY.md").unlink()
    if index is not None:
        (notes / "MEMORY.md").write_text(index)
    memory.store(RULE, project=str(project))
    before = tree(home)
    native_share.apply(plan(memory, home, project))
    assert tree(home) != before
    native_share.apply(native_share.plan_undo("claude-code", home, str(project)))
    assert {path: text for path, text in tree(home).items() if text} == {
        path: text for path, text in before.items() if text
    }


def test_what_changed_in_memory_changes_the_file_and_what_is_forgotten_leaves_it(
    memory, home, project, notes
):
    kept = memory.store(RULE, project=str(project))
    gone = memory.store("The mail leaves on Fridays.", project=str(project))
    native_share.apply(plan(memory, home, project))
    memory.forget(id=gone)
    memory.knowledge.update(kept, "Print the almanac with ops/print.sh.")
    native_share.apply(plan(memory, home, project))
    shared = (notes / "lore.md").read_text()
    assert "Fridays" not in shared
    assert "ops/print.sh" in shared
    assert len((notes / "MEMORY.md").read_text().splitlines()) == 2


def test_what_is_forgotten_leaves_the_file_and_nothing_else_does(memory, home, project, notes):
    memory.store(RULE, project=str(project))
    gone = memory.store("The mail leaves on Fridays:\nat nine.", project=str(project))
    native_share.apply(plan(memory, home, project))
    before = (notes / "lore.md").read_text()
    with memory.database.read() as db:
        n = items.resolve(db, gone).n
        copies = native_share.SharedCopies(db, home, [n], "")
    assert copies.find_files() == [notes / "lore.md"]
    copies.remove()
    after = (notes / "lore.md").read_text()
    assert [row for row in before.splitlines() if row not in after.splitlines()] == [
        row for row in before.splitlines() if "Fridays" in row or "at nine" in row
    ]


LONG = "The long story of the almanac. " * 40


@pytest.mark.parametrize("is_undone", [False, True])
@pytest.mark.parametrize(
    ("content", "summary"),
    [("The hint is zebra.", ""), (LONG, "The hint is zebra."), ("First.\n\nThen a zebra.", "")],
)
def test_a_former_wording_leaves_the_file_with_what_is_forgotten(
    memory, home, project, notes, monkeypatch, content, summary, is_undone
):
    monkeypatch.setenv("HOME", str(home))
    memory.store(RULE, project=str(project))
    first = "No hint yet." if is_undone else content
    gone = memory.store(first, summary="" if is_undone else summary, project=str(project))
    if is_undone:
        memory.knowledge.update(gone, content, summary=summary)
    native_share.apply(plan(memory, home, project))
    assert "zebra" in (notes / "lore.md").read_text()
    if is_undone:
        memory.knowledge.undo(gone)
    else:
        memory.knowledge.update(gone, "Kemal knows.", summary="Kemal knows.")
    assert memory.maintenance.preview_forget(id=gone).copies == (notes / "lore.md",)
    memory.forget(id=gone)
    shared = (notes / "lore.md").read_text()
    assert RULE in shared
    assert "zebra" not in shared


def test_an_entry_that_only_begins_like_what_is_forgotten_stays(
    memory, home, project, notes, monkeypatch
):
    monkeypatch.setenv("HOME", str(home))
    gone = memory.store("The hint is zebra", project=str(project))
    memory.store("The hint is zebra crossing number 4 of the harbor", project=str(project))
    native_share.apply(plan(memory, home, project))
    memory.forget(id=gone)
    shared = (notes / "lore.md").read_text()
    assert [line for line in shared.splitlines() if "zebra" in line] == [
        "- 2026-05-13, fact: The hint is zebra crossing number 4 of the harbor"
    ]


@pytest.mark.parametrize("bad", ["Read \u200bthis.", "The key is [secret:token:abc]."])
def test_what_an_entry_shows_of_a_long_text_has_nothing_hidden_and_no_secret(
    memory, home, project, notes, bad
):
    memory.store(LONG, summary=bad, project=str(project))
    memory.store(f"{LONG} {bad}", summary="A story.", project=str(project))
    (change, _) = plan(memory, home, project).changes
    assert (change.after or "").splitlines()[10:] == ["- 2026-05-13, fact: A story."]


def test_a_full_index_is_left_as_it_is(memory, home, project, notes):
    memory.store(RULE, project=str(project))
    (notes / "MEMORY.md").write_text(INDEX * 200)
    with pytest.raises(InvalidInput, match="no room"):
        plan(memory, home, project)


def test_a_file_of_that_name_that_someone_else_wrote_is_left_as_it_is(memory, home, project, notes):
    memory.store(RULE, project=str(project))
    (notes / "lore.md").write_text("My notes on folklore.\n")
    with pytest.raises(InvalidInput, match="not written by Lore"):
        plan(memory, home, project)
    with pytest.raises(InvalidInput, match="not written by Lore"):
        native_share.plan_undo("claude-code", home, str(project))


def test_the_file_stays_within_what_an_agent_reads(memory, home, project, notes):
    for number in range(400):
        memory.store(f"Berth {number} is {number + 3} metres deep.", project=str(project))
    shared = plan(memory, home, project)
    (text,) = [one.after for one in shared.changes if one.path.endswith("lore.md")]
    assert len((text or "").splitlines()) <= native_share.FILE_LINES
    assert shared.entries + shared.left_out == 400


def test_a_plan_is_not_applied_to_a_file_that_changed_meanwhile(memory, home, project, notes):
    memory.store(RULE, project=str(project))
    planned = plan(memory, home, project)
    (notes / "MEMORY.md").write_text(INDEX + "- [New](new.md)\n")
    with pytest.raises(InvalidInput, match="meanwhile"):
        native_share.apply(planned)
    assert not (notes / "lore.md").exists()


def test_codex_gets_a_file_beside_its_summary(memory, home, project):
    folder = home / ".codex" / "memories"
    folder.mkdir(parents=True)
    summary = "v1\n\n## User preferences\n\n- wants small commits\n"
    (folder / "memory_summary.md").write_text(summary)
    memory.store(RULE, project=str(project))
    before = tree(home)
    native_share.apply(plan(memory, home, project, "codex"))
    (shared,) = folder.glob("lore-almanac-*.md")
    assert RULE in shared.read_text()
    assert f"cwd={project}" in shared.read_text()
    assert (folder / "memory_summary.md").read_text().startswith(summary)
    native_share.apply(native_share.plan_undo("codex", home, str(project)))
    assert tree(home) == before


def test_other_agents_are_refused(memory, home, project):
    with pytest.raises(InvalidInput, match="cannot write"):
        plan(memory, home, project, "cursor")
