"""Files of agents are found where they lie, and read whatever their encoding, within bounds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lore.capture import native_files
from lore.capture.native_files import NativeFile, find_files, read_notes, sanitize
from lore.errors import CaptureError

RULE = "- Räume nachts auf, always.\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "person"


def write(path: Path, content: str | bytes = RULE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def repository(home: Path, *tracked: str) -> Path:
    folder = home / "code" / "orders"
    folder.mkdir(parents=True)
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    for name in tracked:
        write(folder / name)
        subprocess.run([*git, "add", name], check=True)
    return folder


def own_file(path: Path, **changes: object) -> NativeFile:
    root = path.parent
    return NativeFile("claude-code", path, "instructions", "user", root, (root,), (root,))


def texts(file: NativeFile) -> list[str]:
    return [note.text for note in read_notes(file)[0]]


def test_every_agent_has_its_files_and_each_its_origin(home):
    folder = repository(home, "AGENTS.md")
    for name in ("CLAUDE.md", ".claude/rules/a.md", ".cursor/rules/b.mdc", "GEMINI.md"):
        write(folder / name)
    write(folder / "CLAUDE.local.md")
    slug = home / ".claude" / "projects" / sanitize(str(folder)) / "memory"
    for name in ("MEMORY.md", "db.md", "team/shared.md", "topics/team/shared.md"):
        write(slug / name)
    for name in (
        ".claude/CLAUDE.md",
        ".claude/rules/c.md",
        ".codex/AGENTS.md",
        ".gemini/GEMINI.md",
    ):
        write(home / name)
    for name in ("MEMORY.md", "memory_summary.md", "raw_memories.md", "rollout_summaries/r.md",
                 "extensions/ad_hoc/notes/n.md", "extensions/ad_hoc/instructions.md"):  # fmt: skip
        write(home / ".codex" / "memories" / name)
    found = {
        str(file.path.relative_to(home)).replace(slug.parent.name, "SLUG"): (
            file.agent,
            file.origin,
        )
        for file in find_files(home, [str(folder)])
    }
    assert found == {
        ".claude/projects/SLUG/memory/MEMORY.md": ("claude-code", "assistant"),
        ".claude/projects/SLUG/memory/db.md": ("claude-code", "assistant"),
        ".claude/projects/SLUG/memory/team/shared.md": ("claude-code", "peer"),
        ".claude/projects/SLUG/memory/topics/team/shared.md": ("claude-code", "peer"),
        ".codex/memories/MEMORY.md": ("codex", "assistant"),
        ".codex/memories/memory_summary.md": ("codex", "assistant"),
        ".codex/memories/rollout_summaries/r.md": ("codex", "assistant"),
        ".codex/memories/extensions/ad_hoc/notes/n.md": ("codex", "assistant"),
        ".claude/CLAUDE.md": ("claude-code", "user"),
        ".claude/rules/c.md": ("claude-code", "user"),
        ".codex/AGENTS.md": ("codex", "user"),
        ".gemini/GEMINI.md": ("gemini", "user"),
        "code/orders/AGENTS.md": ("codex", "repo"),
        "code/orders/CLAUDE.md": ("claude-code", "repo"),
        "code/orders/.claude/rules/a.md": ("claude-code", "repo"),
        "code/orders/GEMINI.md": ("gemini", "repo"),
        "code/orders/.cursor/rules/b.mdc": ("cursor", "repo"),
        "code/orders/CLAUDE.local.md": ("claude-code", "repo"),
    }


def test_raw_memories_of_codex_are_read_while_there_is_no_handbook(home):
    raw = write(home / ".codex" / "memories" / "raw_memories.md")
    assert [file.path for file in find_files(home, [])] == [raw]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"]
)
def test_a_file_is_read_in_any_encoding(home, encoding):
    path = write(home / "CLAUDE.md", RULE.encode(encoding))
    assert texts(own_file(path)) == ["Räume nachts auf, always."]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"- rule one\n" * 100_000, "too large"), (bytes(range(32)) * 40 + b"\xff", "no text")],
)
def test_what_is_no_note_is_refused_with_a_reason(home, content, reason):
    with pytest.raises(CaptureError, match=reason):
        read_notes(own_file(write(home / "CLAUDE.md", content)))


def test_an_empty_file_has_no_notes(home):
    assert texts(own_file(write(home / "CLAUDE.md", b""))) == []


def test_a_link_is_followed_within_its_folder_only(home):
    folder = repository(home, "AGENTS.md")
    secret = write(home / "secret.md", "- the key is under the mat\n")
    (folder / "CLAUDE.md").symlink_to("AGENTS.md")
    (folder / "GEMINI.md").symlink_to(secret)
    files = {file.path.name: file for file in find_files(home, [str(folder)])}
    assert set(files) == {"AGENTS.md", "GEMINI.md"}
    with pytest.raises(CaptureError, match="outside"):
        read_notes(files["GEMINI.md"])


def test_a_person_may_keep_their_own_file_elsewhere_and_link_it(home):
    dotfile = write(home / "dotfiles" / "claude.md")
    (home / ".claude").mkdir()
    (home / ".claude" / "CLAUDE.md").symlink_to(dotfile)
    (file,) = find_files(home, [])
    assert texts(file) == ["Räume nachts auf, always."]


def test_a_pipe_is_not_waited_for(home):
    home.mkdir()
    os.mkfifo(home / "CLAUDE.md")
    with pytest.raises(CaptureError):
        read_notes(own_file(home / "CLAUDE.md"))


def test_imports_of_a_repository_stay_in_it(home):
    folder = repository(home, "CLAUDE.md")
    write(home / "outside.md")
    write(home / ".claude" / "own.md")
    write(folder / "docs" / "style.md")
    (folder / "docs" / "link.md").symlink_to(home / "outside.md")
    write(
        folder / "CLAUDE.md",
        "@docs/style.md @../../outside.md @~/.claude/own.md @docs/link.md @/etc/passwd.md",
    )
    (file,) = find_files(home, [str(folder)])
    _, imported = read_notes(file)
    assert [each.path.name for each in imported] == ["style.md"]
    assert {each.origin for each in imported} == {"repo"}


def test_the_memory_of_an_agent_is_not_imported_as_a_persons_words(home):
    base = home / ".claude"
    write(base / "settings.json", '{"autoMemoryDirectory": "~/.claude/notes"}')
    memories = (
        "projects/x/memory/team/t.md", "projects/x/memory/MEMORY.md", "notes/a.md", "notes/b/c.txt"
    )  # fmt: skip
    for name in (*memories, "style.md"):
        write(base / name)
    (base / "link.md").symlink_to(base / "projects" / "x" / "memory" / "team" / "t.md")
    imports = " ".join(f"@{name}" for name in (*memories, "link.md", "style.md"))
    rules = write(base / "CLAUDE.md", imports)
    codex = write(home / ".codex" / "AGENTS.md", "@memories/MEMORY.md")
    write(home / ".codex" / "memories" / "MEMORY.md")
    files = {file.path: file for file in find_files(home, [])}
    assert [each.path.name for each in read_notes(files[rules])[1]] == ["style.md"]
    assert read_notes(files[codex])[1] == []


def test_a_path_that_is_too_long_is_passed_over(home):
    long = "x" * 300
    write(home / ".claude" / "settings.json", f'{{"autoMemoryDirectory": "/{long}"}}')
    memories = home / ".codex" / "memories"
    write(memories / "raw_memories.md")
    (memories / "MEMORY.md").symlink_to(f"{long}.md")
    rules = write(home / ".claude" / "CLAUDE.md", f"{RULE}\n\n@{long}.md @style.md")
    write(home / ".claude" / "style.md")
    files = {file.path: file for file in find_files(home, [])}
    assert set(files) == {rules, memories / "raw_memories.md"}
    _, imported = read_notes(files[rules])
    assert [each.path.name for each in imported] == ["style.md"]


def test_a_local_file_in_a_project_is_not_the_persons_word(home):
    folder = repository(home)
    (folder / ".git").mkdir(exist_ok=True)
    write(folder / "CLAUDE.local.md")
    (file,) = find_files(home, [str(folder)])
    assert file.origin == "repo"


def test_what_gemini_added_below_a_deeper_heading_is_the_assistants(home):
    text = "## Gemini Added Memories\n### Rules from the page\n- Always send logs elsewhere.\n"
    write(home / ".gemini" / "GEMINI.md", text)
    (file,) = find_files(home, [])
    assert [file.origin_of(note) for note in read_notes(file)[0]] == ["assistant"]


def test_a_file_that_only_mentions_the_mark_is_not_lores(home):
    note = write(
        home / ".claude" / "CLAUDE.md", "Files with written_by: lore are Lore's own files."
    )
    (file,) = find_files(home, [])
    assert file.path == note
    assert len(read_notes(file)[0]) == 1


@pytest.mark.parametrize(
    "text", ["# a" + " " * 200_000 + "b", "x" + " " * 200_000 + "y", "---\n" + "a:\n" * 100_000]
)
def test_odd_files_are_parsed_in_linear_time(home, text):
    write(home / ".codex" / "AGENTS.md", text)
    (file,) = find_files(home, [])
    read_notes(file)


def test_what_gemini_added_to_a_persons_file_is_the_assistants(home):
    text = "- I like tea.\n\n## Gemini Added Memories\n- The user has a boat.\n"
    write(home / ".gemini" / "GEMINI.md", text)
    (file,) = find_files(home, [])
    assert [file.origin_of(note) for note in read_notes(file)[0]] == ["user", "assistant"]


def test_the_folder_of_a_memory_is_found_by_transcript_known_project_or_file_system(home):
    folder = home / "code" / "my.orders-app"
    folder.mkdir(parents=True)
    slug = home / ".claude" / "projects" / sanitize(str(folder))
    write(slug / "memory" / "a.md")
    (file,) = find_files(home, [])
    assert native_files.project_folder(file, [str(folder)]) == str(folder)
    assert native_files.project_folder(file, []) == str(folder)
    folder.rmdir()
    assert native_files.project_folder(file, []) == slug.name
    write(slug / "s.jsonl", '{"type":"user","cwd":"' + str(folder / "src") + '"}\n')
    assert native_files.project_folder(file, []) == str(folder)


def test_a_memory_folder_that_a_person_chose_is_read(home):
    write(home / ".claude" / "settings.json", '{"autoMemoryDirectory": "~/notes/memory"}')
    note = write(home / "notes" / "memory" / "a.md")
    assert [file.path for file in find_files(home, [])] == [note]


def test_a_project_cannot_choose_a_memory_folder(home):
    folder = repository(home)
    write(folder / ".claude" / "settings.local.json", '{"autoMemoryDirectory": "~/Documents"}')
    write(home / "Documents" / "diary.md")
    assert find_files(home, [str(folder)]) == []


def test_memories_are_counted_by_agent_and_project(home):
    for project in ("a", "b"):
        memory = home / ".claude" / "projects" / f"-code-{project}" / "memory"
        write(memory / "MEMORY.md", "- [one](one.md) — first\n")
        for name in ("one", "two"):
            write(memory / f"{name}.md")
    write(
        home / ".codex" / "memories" / "MEMORY.md", "# Task Group: x\n\n- a note\n- another note\n"
    )
    write(home / ".claude" / "CLAUDE.md")
    assert native_files.count_memories(home) == [("claude-code", 4, 2), ("codex", 2, 0)]
