"""The memories of agents become fragments, and follow their files from then on."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path

import pytest

from lore.capture import export_import
from lore.capture.native_files import sanitize
from lore.daemon import periodic_tasks
from lore.digest import native_memories
from lore.digest.consolidation.cycle import run_cycle
from lore.digest.native_memories import CaptureOptions
from lore.memory import Memory
from lore.records import Fragment, NativeResult, NewMessage, Part
from lore.store import items, native_rows, project_rows
from tests.digest.consolidation.samples import OFFLINE
from tests.fakes import NOON, FakeEmbedder, FixedClock

MEMORY = """---
name: {name}
description: {about}
metadata:
  type: {type}
---

{body}
"""
DATABASE = "The orders service stores its data in MySQL 8."


@dataclass
class Person:
    """A person with a project, and a memory that reads what their agents note."""

    home: Path
    memory: Memory
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.project = self.home / "code" / "orders"
        self.project.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        slug = sanitize(str(self.project))
        self.notes = self.home / ".claude" / "projects" / slug / "memory"

    def write(self, path: Path, text: str, at: datetime = NOON - timedelta(days=1)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (at.timestamp(), at.timestamp()))
        return path

    def note(self, name: str, body: str, *, type_: str = "project", **when: datetime) -> Path:
        text = MEMORY.format(name=name, about=f"About {name}", type=type_, body=body)
        return self.write(self.notes / f"{name}.md", text, **when)

    def capture(self) -> NativeResult:
        options = CaptureOptions(self.home, self.memory.redactor, self.exclude)
        return native_memories.capture_notes(self.memory.database, options)

    def fragments(self) -> dict[str, Fragment]:
        page = self.memory.knowledge.page_of_fragments(limit=500)
        return {one.content: one for one in page.items if one.superseded_by is None}


@pytest.fixture
def person(tmp_path: Path, memory: Memory) -> Person:
    return Person(tmp_path / "person", memory)


def test_a_memory_becomes_a_fragment_with_its_file_line_agent_and_project(person):
    path = person.note("db", DATABASE)
    assert person.capture().added == 1
    fragment = person.fragments()[DATABASE]
    assert (fragment.origin, fragment.trust, fragment.kind) == ("assistant", 2, "fact")
    assert fragment.summary == "About db"
    assert {name: fragment.payload[name] for name in ("agent", "file", "line", "type")} == {
        "agent": "claude-code", "file": str(path), "line": 8, "type": "project",
    }  # fmt: skip
    assert fragment.created_at == NOON - timedelta(days=1)
    (project,) = person.memory.sessions.projects()
    assert (fragment.project_id, project.path) == (project.id, str(person.project))


def test_nothing_is_read_twice(person):
    person.note("db", DATABASE)
    person.capture()
    assert person.capture() == NativeResult()


def test_three_hundred_memories_are_read_once_each(person):
    for number in range(300):
        person.note(f"n{number}", f"The gate number {number} leads to berth {number + 7}.")
    assert person.capture().added == 300
    assert len(person.fragments()) == 300
    assert person.capture().files == 0


def test_a_changed_note_is_a_new_version_of_its_fragment(person):
    person.note("db", DATABASE)
    person.capture()
    before = person.fragments()[DATABASE]
    person.note("db", DATABASE.replace("8", "9"), at=NOON - timedelta(hours=1))
    assert person.capture().changed == 1
    (after,) = person.fragments().values()
    assert (after.id, after.version) == (before.id, 2)
    assert after.content == DATABASE.replace("8", "9")
    assert after.created_at == NOON - timedelta(hours=1)
    _, versions = person.memory.knowledge.log(after.id)
    assert [one.content for one in versions] == [DATABASE]


def test_a_removed_memory_is_hidden_and_comes_back_with_its_file(person):
    path = person.note("db", DATABASE)
    person.capture()
    path.unlink()
    assert person.capture().retired == 1
    assert person.fragments() == {}
    person.note("db", DATABASE)
    assert person.capture().restored == 1
    assert list(person.fragments()) == [DATABASE]


def test_a_line_that_leaves_a_file_leaves_memory_and_the_others_stay(person):
    rules = person.home / ".claude" / "CLAUDE.md"
    person.write(rules, "- Answer in British English.\n- Never use emojis.\n")
    person.capture()
    kept = person.fragments()["Never use emojis."].id
    person.write(rules, "- Never use emojis.\n", at=NOON)
    assert person.capture().retired == 1
    assert {text: one.id for text, one in person.fragments().items()} == {"Never use emojis.": kept}
    assert person.fragments()["Never use emojis."].payload["line"] == 1


def test_a_file_that_cannot_be_read_any_more_keeps_what_was_read(person):
    path = person.note("db", DATABASE)
    person.capture()
    person.write(path, "\0\1\2\3" * 2_000, at=NOON)
    (problem,) = person.capture().problems
    assert problem.news
    assert list(person.fragments()) == [DATABASE]


def test_a_file_that_could_not_be_read_once_is_tried_again(person):
    path = person.write(person.notes / "db.md", "\0" * 200)
    assert person.capture().problems
    assert [problem.news for problem in person.capture().problems] == [False]
    person.write(path, DATABASE.ljust(200))
    assert person.capture().problems == ()
    assert list(person.fragments()) == [DATABASE]


def test_a_folder_whose_name_is_too_long_stops_no_other_file(person):
    long = "/" + "x" * 300
    database = person.memory.database
    database.write(lambda db: project_rows.ensure_project(db, long, now=NOON))
    person.write(
        person.home / ".codex" / "memories" / "MEMORY.md",
        f"# Task Group: orders\napplies_to: cwd={long}; reuse_rule=y\n\n- The moon is full.\n",
    )
    person.write(person.project / "AGENTS.md", "- Never use emojis anywhere.\n")
    person.note("db", DATABASE)
    (problem,) = person.capture().problems
    assert problem.problem == "cannot be read: File name too long"
    person.capture()
    assert set(person.fragments()) == {DATABASE, "Never use emojis anywhere."}


def test_a_note_that_is_forgotten_meanwhile_does_not_stop_the_pass(person):
    rules = person.home / ".claude" / "CLAUDE.md"
    person.note("db", DATABASE)
    person.write(rules, "- Never use emojis in code or comments.\n")
    person.capture()
    forgotten = person.fragments()["Never use emojis in code or comments."].id
    person.note("db", f"{DATABASE} Really.", at=NOON)
    person.write(rules, "- Never use emojis in code or in comments.\n", at=NOON)
    asked = 0

    def forget_before_the_first_file() -> bool:
        nonlocal asked
        asked += 1
        if asked == 1:
            person.memory.forget(id=forgotten)
        return False

    options = CaptureOptions(person.home, stopping=forget_before_the_first_file)
    result = native_memories.capture_notes(person.memory.database, options)
    assert (result.changed, asked) == (1, 2)
    assert f"{DATABASE} Really." in person.fragments()
    assert forgotten not in {one.id for one in person.fragments().values()}


@pytest.mark.parametrize("is_bound", [False, True])
def test_the_same_path_on_another_machine_is_another_note(person, tmp_path, clock, is_bound):
    path = person.note("db", DATABASE)
    person.capture()
    stream = BytesIO()
    export_import.export(person.memory.database, stream, key=b"a" * 32)
    with Memory.open(home=tmp_path / "other", embedder=FakeEmbedder(), now=clock) as other:
        database = other.database
        lines = stream.getvalue().splitlines()
        export_import.import_lines(database, lines, key=b"b" * 32, trust=False)
        here = Person(tmp_path / "here", other)
        (brought,) = here.fragments().values()
        assert not [name for name in brought.metadata if name.startswith("native_")]
        if is_bound:  # as an earlier Lore imported it
            metadata = {"native_file": str(path), "native_whole": True}
            n = database.write(lambda db: items.resolve(db, brought.id).n)
            database.write(lambda db: native_rows.set_note(db, n, brought.payload, metadata))
        person.note("db", f"{DATABASE} Really.", at=NOON)
        options = CaptureOptions(person.home)
        assert native_memories.capture_notes(database, options).added == 1
        assert here.fragments()[DATABASE].origin == "peer"
        path.unlink()
        assert native_memories.capture_notes(database, options).retired == 1
        assert list(here.fragments()) == [DATABASE]


def test_what_a_person_deleted_stays_deleted(person):
    person.note("db", DATABASE)
    person.note("host", "The staging host is st-4, behind the gate.")
    person.capture()
    person.memory.knowledge.delete(person.fragments()[DATABASE].id)
    person.note("db", DATABASE + " Really.", at=NOON)
    person.capture()
    assert list(person.fragments()) == ["The staging host is st-4, behind the gate."]


def test_what_a_person_forgot_does_not_come_back_from_another_file(person):
    person.note("db", DATABASE)
    person.capture()
    person.memory.forget(id=person.fragments()[DATABASE].id)
    person.note("copy", f"**{DATABASE}**", at=NOON)
    person.write(person.home / ".claude" / "CLAUDE.md", f"- {DATABASE}\n")
    assert person.capture().added == 0
    assert person.fragments() == {}


def test_a_forgotten_memory_stays_out_whatever_its_file_says_later(person):
    person.note("db", DATABASE)
    person.capture()
    person.memory.forget(match="MySQL")
    person.note("db", "The root word of the database is swordfish.", at=NOON)
    assert person.capture().added == 0
    assert person.fragments() == {}


def test_a_memory_in_its_file_is_not_pruned_and_is_read_when_it_changes(person, clock: FixedClock):
    person.note("db", DATABASE, type_="reference")
    person.capture()
    database = person.memory.database
    for days in (2_000, 2, 2):
        clock.advance(days=days)
        run_cycle(database, OFFLINE, only=("rescore", "prune_fragments"))
    assert list(person.fragments()) == [DATABASE]
    person.note("db", "Deploys go through the blue gate on Tuesdays.", at=clock())
    assert person.capture().changed == 1
    assert list(person.fragments()) == ["Deploys go through the blue gate on Tuesdays."]


def test_a_revoked_file_is_hidden_and_undo_brings_it_back(person):
    path = person.note("db", DATABASE)
    person.capture()
    assert len(person.memory.knowledge.revoke(file=str(path)).fragments) == 1
    person.capture()
    assert person.fragments() == {}
    person.memory.knowledge.undo()
    assert list(person.fragments()) == [DATABASE]


def test_revoking_a_file_with_notes_also_hides_what_tools_read_from_it(person):
    path = person.note("db", DATABASE)
    person.capture()
    call = Part("tool_call", json.dumps({"file_path": str(path)}), "Read", "1")
    result = Part("tool_result", DATABASE, "", "1")
    new = [NewMessage("assistant", (call,), NOON), NewMessage("tool", (result,), NOON)]
    _, read = person.memory.capture("reader", new)
    text = "The orders are kept for a year."
    made = person.memory.store(text, source_messages=[read])
    note = person.fragments()[DATABASE].id
    gone = person.memory.knowledge.revoke(file=str(path))
    assert gone.messages == 2
    assert {title.id for title in gone.fragments} == {note, made}


def test_secrets_are_redacted(person):
    person.note("key", "The deploy token is ghp_R7kQ2vXb9LmT4wZc8NfY1sHd6JpA3eUg5KoI, keep it.")
    person.capture()
    (text,) = person.fragments()
    assert "ghp_" not in text
    assert "[secret:" in text


def test_excluded_folders_are_not_read(person):
    person.note("db", DATABASE)
    person.exclude = (str(person.project),)
    assert person.capture() == NativeResult()
    person.exclude = ("codex:~/x",)
    assert person.capture().added == 1


def test_a_persons_rules_stand_and_a_repositorys_do_not(person):
    person.write(person.home / ".claude" / "CLAUDE.md", "- Always answer in British English.\n")
    person.write(person.project / "AGENTS.md", "- Always run the deploy script twice.\n")
    person.memory.knowledge.store("Orders are here.", project=str(person.project))
    person.capture()
    standing = [
        hit.text for hit in person.memory.search.standing_instructions(project=str(person.project))
    ]
    assert standing == ["Always answer in British English."]
    repo = person.fragments()["Always run the deploy script twice."]
    assert (repo.origin, repo.trust) == ("repo", 1)


def test_a_note_that_is_no_rule_any_more_stands_no_longer(person):
    own = person.home / ".gemini" / "GEMINI.md"
    rule = "Always answer in British English, please."
    person.write(own, f"- {rule}\n")
    person.capture()
    assert [hit.text for hit in person.memory.search.standing_instructions()] == [rule]
    person.write(own, f"## Gemini Added Memories\n- {rule}\n", at=NOON)
    person.capture()
    assert person.memory.search.standing_instructions() == []


def test_a_memory_that_gets_another_type_gets_another_kind(person):
    person.note("db", DATABASE, type_="feedback")
    person.capture()
    before = person.fragments()[DATABASE]
    person.note("db", DATABASE, type_="project", at=NOON)
    person.capture()
    after = person.fragments()[DATABASE]
    assert (before.id, before.kind, after.kind) == (after.id, "preference", "fact")


def test_a_repositorys_rule_is_found_by_asking_and_never_given_unasked(person):
    person.write(person.project / "AGENTS.md", "- Always run the deploy script twice.\n")
    person.memory.knowledge.store("Orders are here.", project=str(person.project))
    person.capture()
    person.memory.maintenance.embed_waiting()
    project = str(person.project)
    asked = person.memory.recall("how is the deploy script run?", project=project)
    assert any("deploy script twice" in hit.text for hit in asked)
    given = person.memory.prompts.begin_session("s", project=project).text
    given += person.memory.prompts.for_prompt(
        "run the deploy script twice, always", session="s", project=project, threshold=0.0
    ).text
    assert "deploy script" not in given


def test_an_agent_is_not_given_what_it_reads_itself(person):
    person.write(person.home / ".claude" / "CLAUDE.md", "- Always answer in British English.\n")
    person.note("db", DATABASE)
    person.capture()
    project = str(person.project)
    own = person.memory.prompts.begin_session("a", project=project, agent="claude-code").text
    other = person.memory.prompts.begin_session("b", project=project, agent="codex").text
    assert "British" not in own
    assert DATABASE not in own
    assert "British" in other
    assert DATABASE in other


def test_a_memory_of_one_project_is_not_found_in_another(person):
    person.note("db", DATABASE)
    person.capture()
    other = person.home / "code" / "harbour"
    other.mkdir()
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    person.memory.knowledge.store("Ships are here.", project=str(other))
    given = person.memory.prompts.begin_session("a", project=str(other)).text
    assert "About db" not in given


def test_a_note_goes_with_the_session_that_it_was_made_in(person):
    said = [NewMessage("user", (Part("text", "Note the database."),), created_at=NOON)]
    person.memory.capture("7f1c-9a", said, agent="claude-code", project=str(person.project))
    text = MEMORY.format(name="db", about="It", type="project", body=DATABASE)
    text = text.replace("  type:", "  originSessionId: 7f1c-9a\n  type:")
    person.write(person.notes / "db.md", text)
    person.capture()
    (session,) = person.memory.sessions()
    assert person.fragments()[DATABASE].session_id == session.id
    person.memory.forget(session="7f1c-9a")
    person.write(person.notes / "db.md", text, at=NOON)
    person.capture()
    assert person.fragments() == {}


@pytest.mark.parametrize(
    "raw",
    [
        f"---\nname: db\nmetadata:\n  type: project\n\n{DATABASE}\n".encode(),
        f"---\ndescription: \"odd: 'quotes\n: - [\n---\n{DATABASE}\n".encode(),
        f"---\r\nname: db\r\n---\r\n{DATABASE}\r\n".encode("utf-16"),
        DATABASE.encode("utf-8-sig"),
    ],
    ids=["unclosed", "broken", "utf-16", "bare"],
)
def test_a_memory_that_is_oddly_written_is_read_all_the_same(person, raw: bytes):
    person.notes.mkdir(parents=True)
    (person.notes / "db.md").write_bytes(raw)
    assert person.capture().added == 1
    assert list(person.fragments()) == [DATABASE]


def test_notes_of_codex_belong_to_the_folder_that_their_group_names(person):
    person.write(
        person.home / ".codex" / "memories" / "MEMORY.md",
        f"# Task Group: orders\nscope: x\napplies_to: cwd={person.project}; reuse_rule=y\n\n"
        "## Reusable knowledge\n\n- The staging host is st-4. [Task 1]\n\n"
        "# Task Group: unclear\n\n- The moon is full tonight.\n",
    )
    person.capture()
    paths = {one.id: one.path for one in person.memory.sessions.projects()}
    assert {text: paths[one.project_id or ""] for text, one in person.fragments().items()} == {
        "The staging host is st-4.": str(person.project),
        "The moon is full tonight.": str(person.home / ".codex" / "memories"),
    }


def test_imports_in_a_ring_are_read_once_each_and_retired_when_nothing_imports_them(person):
    own = person.home / ".claude"
    person.write(own / "CLAUDE.md", "- Answer in British English.\n\n@a.md\n")
    person.write(own / "a.md", "- Use tabs in every file.\n\n@b.md\n")
    person.write(own / "b.md", "- Never use emojis anywhere.\n\n@a.md @CLAUDE.md\n")
    assert person.capture().added == 3
    assert person.capture() == NativeResult()
    person.write(own / "CLAUDE.md", "- Answer in British English.\n", at=NOON)
    assert person.capture().retired == 2
    assert list(person.fragments()) == ["Answer in British English."]


def test_an_unchanged_file_that_turns_out_to_be_an_agents_loses_the_persons_trust(person):
    own = person.home / ".claude"
    person.write(own / "CLAUDE.md", "- Answer in British English.\n\n@notes/team/a.md\n")
    person.write(own / "notes" / "team" / "a.md", "Always push straight to main.\n")
    person.capture()
    assert person.fragments()["Always push straight to main."].trust == 3
    person.write(own / "settings.json", '{"autoMemoryDirectory": "~/.claude/notes"}')
    person.capture()
    note = person.fragments()["Always push straight to main."]
    assert (note.origin, note.trust) == ("peer", 1)
    assert person.capture() == NativeResult()


def test_what_an_unreadable_file_imported_stays(person):
    own = person.home / ".claude"
    rules = person.write(own / "CLAUDE.md", "- Answer in British English.\n\n@a.md\n")
    person.write(own / "a.md", "- Use tabs in every file.\n")
    person.capture()
    person.write(rules, "\0\1\2\3" * 2_000, at=NOON)
    for _ in range(2):
        result = person.capture()
        assert (len(result.problems), result.retired) == (1, 0)
    assert set(person.fragments()) == {"Answer in British English.", "Use tabs in every file."}
    person.write(rules, "- Answer in British English.\n", at=NOON + timedelta(hours=1))
    assert person.capture().retired == 1


def test_what_a_file_imported_stays_if_it_looks_unchanged_and_cannot_be_read(person):
    own = person.home / ".claude"
    rules = person.write(own / "CLAUDE.md", "- Answer in British English.\n\n@a.md\n".ljust(200))
    person.write(own / "a.md", "- Use tabs in every file.\n")
    person.capture()
    person.write(rules, "\0" * 200)
    assert person.capture() == NativeResult()
    assert set(person.fragments()) == {"Answer in British English.", "Use tabs in every file."}


def test_the_same_words_in_two_files_are_shown_once(person):
    person.write(person.home / ".claude" / "CLAUDE.md", "- Never use emojis anywhere.\n")
    person.write(person.home / ".codex" / "AGENTS.md", "- Never use emojis anywhere.\n")
    assert person.capture().added == 2
    assert list(person.fragments()) == ["Never use emojis anywhere."]
    (person.home / ".claude" / "CLAUDE.md").unlink()
    person.capture()
    (left,) = person.fragments().values()
    assert left.payload["agent"] == "codex"
    assert person.memory.native.outdated() == []


def test_the_daemon_reads_what_changed(person, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(person.home))
    person.note("db", DATABASE)
    assert periodic_tasks.capture_notes(person.memory, lambda: False).counts["notes"] == 1
    assert periodic_tasks.capture_notes(person.memory, lambda: False).counts["notes"] == 0
    person.note("db", DATABASE.replace("8", "9"), at=NOON)
    assert periodic_tasks.capture_notes(person.memory, lambda: False).counts["notes"] == 1


def test_the_setting_turns_reading_off(tmp_path, clock: FixedClock):
    from lore.settings import Settings

    config = Settings(home=tmp_path / "home", capture_native=False, embed_provider="none")
    with Memory.open(config=config, now=clock) as memory:
        assert memory.native.capture() == NativeResult()
