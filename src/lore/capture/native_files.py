"""Find the memories and instructions that agents keep in files of their own, and read them safely.

A file must lie, links followed, in the folder that it belongs to: a repository's `AGENTS.md` may
link to another file of that repository, never to one outside.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lore import config_files, local_files
from lore.errors import CaptureError, InvalidInput
from lore.records import NativeCount, Origin
from lore.text import native_notes
from lore.text.native_notes import HEADING_JOINT, Note, NoteForm

CLAUDE_CODE, CODEX, GEMINI = "claude-code", "codex", "gemini"
CURSOR, OPENCODE = "cursor", "opencode"

INDEX_NAME = "MEMORY.md"
CODEX_FOLDERS = ("memories_v2", "memories")
"""The folders of Codex's memories, the newer first: it has one for each version of its format."""

SHARED_MARK = "written_by: lore"
"""A file whose first lines have this mark was written by Lore, and is never read."""

MAX_BYTES = 1_000_000
"""Notes are written for a prompt; a larger file holds something else."""

_MAX_FILES = 2_000
"""Files of one memory folder that are read."""

MAX_HOPS = 5
"""How far imports of imports are followed, as Claude Code does."""

_MAX_IMPORTS = 50
_IMPORTED = (".md", ".mdc", ".txt")
"""The suffixes of files that are imported: notes are text."""

_GEMINI_MEMORIES = "Gemini Added Memories"
"""The heading below which Gemini CLI writes its own memories into a person's file."""

_TEAM = "team"
"""The folder of a Claude Code memory that others write too."""

_TRANSCRIPT_HEAD = 65_536
_CWD = re.compile(rb'"cwd":("(?:[^"\\]|\\.){1,1000}")')
_MAX_FOLDERS_SEARCHED = 500


@dataclass(frozen=True, slots=True)
class NativeFile:
    """A file of an agent: how it is parsed, whose words it holds, and where it applies.

    `folder` is a project's folder, empty for all projects; `slug` names it where only Claude Code's
    folder of the project is known. `roots` are the folders that it may lie in, `import_roots`
    those that its imports may lie in.
    """

    agent: str
    path: Path
    form: NoteForm
    origin: Origin
    home: Path
    roots: tuple[Path, ...]
    import_roots: tuple[Path, ...] = ()
    folder: str = ""
    slug: Path | None = None
    imported: bool = False

    def origin_of(self, note: Note) -> Origin:
        """Return whose words a note is."""
        written = self.agent == GEMINI and _GEMINI_MEMORIES in note.heading.split(HEADING_JOINT)
        return "assistant" if written and self.origin == "user" else self.origin


def find_files(home: Path, folders: Iterable[str]) -> list[NativeFile]:
    """Return the files of all agents in a person's home and in project folders, each once."""
    by_path: dict[str, NativeFile] = {}
    if local_files.are_withheld():
        return []
    listed = [folder for folder in folders if Path(folder) != home]
    for file in (
        *_own_instructions(home),
        *_claude_memories(home),
        *_codex_memories(home),
        *(file for folder in listed for file in _project_instructions(home, Path(folder))),
    ):
        real = os.path.realpath(file.path)
        if real not in by_path and os.path.lexists(file.path):
            by_path[real] = file
    return list(by_path.values())


def _claude_memories(home: Path) -> Iterator[NativeFile]:
    base = home / ".claude"
    with suppress(OSError):
        for slug in sorted((base / "projects").iterdir()):
            yield from _memory_folder(home, slug / "memory", slug)
    chosen = _chosen_folder(home, base / "settings.json")
    if chosen is not None:
        yield from _memory_folder(home, chosen)


def _chosen_folder(home: Path, settings: Path) -> Path | None:
    """Return the folder of memories that a person's settings name.

    Settings in a project are not asked: a repository could name any folder of this machine.
    """
    named = _setting(settings, "autoMemoryDirectory")
    place = home / named[2:] if named.startswith("~/") else Path(named)
    is_safe = named and place.is_absolute() and ".." not in place.parts and place != home
    return place if is_safe else None


def _memory_folder(home: Path, place: Path, slug: Path | None = None) -> Iterator[NativeFile]:
    for path in _markdown_files(place):
        form: NoteForm = "index" if path.name == INDEX_NAME else "memory"
        is_shared = _TEAM in path.relative_to(place).parent.parts
        origin: Origin = "peer" if is_shared else "assistant"
        yield NativeFile(CLAUDE_CODE, path, form, origin, home, (place,), slug=slug)


def may_have_peers(path: str) -> bool:
    """Return whether others may write to a file of an agent's memory too."""
    return _TEAM in Path(path).parent.parts


def _setting(path: Path, name: str) -> str:
    with suppress(OSError, InvalidInput, ValueError, RecursionError):
        table = json.loads(config_files.read_small_file(path))
        value = table.get(name) if isinstance(table, dict) else None
        return value if isinstance(value, str) else ""
    return ""


def _markdown_files(folder: Path, suffixes: Sequence[str] = (".md",)) -> list[Path]:
    """Return the notes below a folder, sorted; links to folders are not followed."""
    paths: list[Path] = []
    if stat.S_ISLNK(file_mode(folder, follow_links=False)):
        return paths
    for place, below, names in os.walk(folder, followlinks=False):
        below[:] = sorted(name for name in below if name != ".git")
        paths += [Path(place, name) for name in sorted(names) if name.endswith(tuple(suffixes))]
        if len(paths) >= _MAX_FILES:
            break
    return paths[:_MAX_FILES]


def _codex_memories(home: Path) -> Iterator[NativeFile]:
    for name in CODEX_FOLDERS:
        yield from _codex_folder(home, home / ".codex" / name)


def _codex_folder(home: Path, base: Path) -> Iterator[NativeFile]:
    """Yield Codex's handbook, summary, recaps and notes.

    The raw memories are what the handbook is made of: they are read while there is none. Only the
    summary is meant for all projects; other notes that name no folder belong to the memory's own.
    """
    handbook = base / INDEX_NAME
    forms: list[tuple[Path, NoteForm]] = [
        (handbook if file_mode(handbook) else base / "raw_memories.md", "codex"),
        (base / "memory_summary.md", "codex-summary"),
    ]
    for name in ("rollout_summaries", "extensions"):
        forms += [
            (path, "whole")
            for path in _markdown_files(base / name)
            if path.name != "instructions.md"
        ]
    for path, form in forms:
        folder = "" if form == "codex-summary" else str(base)
        yield NativeFile(CODEX, path, form, "assistant", home, (base,), (), folder)


def _own_instructions(home: Path) -> Iterator[NativeFile]:
    """Yield what a person wrote for all projects; they may keep the files elsewhere and link."""
    own = [
        (CLAUDE_CODE, home / ".claude" / "CLAUDE.md"),
        *((CLAUDE_CODE, path) for path in _markdown_files(home / ".claude" / "rules")),
        (CODEX, home / ".codex" / "AGENTS.md"),
        (CODEX, home / ".codex" / "AGENTS.override.md"),
        (GEMINI, home / ".gemini" / "GEMINI.md"),
        (OPENCODE, home / ".config" / "opencode" / "AGENTS.md"),
    ]
    for agent, path in own:
        yield NativeFile(agent, path, "instructions", "user", home, (home,), (path.parent,))


def _project_instructions(home: Path, folder: Path) -> Iterator[NativeFile]:
    """Yield the files in a project's folder.

    All of them may have come with a clone, an archive or another user of the folder, also
    `CLAUDE.local.md`: none has a person's trust.
    """
    rules = folder / ".claude" / "rules"
    cursor = folder / ".cursor" / "rules"
    named = [
        (CODEX, folder / "AGENTS.md"),
        (CODEX, folder / "AGENTS.override.md"),
        (CLAUDE_CODE, folder / "CLAUDE.md"),
        (CLAUDE_CODE, folder / ".claude" / "CLAUDE.md"),
        (CLAUDE_CODE, folder / "CLAUDE.local.md"),
        *((CLAUDE_CODE, path) for path in _markdown_files(rules)),
        (GEMINI, folder / "GEMINI.md"),
        (CURSOR, folder / ".cursorrules"),
        *((CURSOR, path) for path in _markdown_files(cursor, (".md", ".mdc"))),
    ]
    for agent, path in named:
        yield NativeFile(
            agent, path, "instructions", "repo", home, (folder,), (folder,), str(folder)
        )


def read_notes(file: NativeFile) -> tuple[list[Note], list[NativeFile]]:
    """Return the notes of a file and the files that it imports; none of what Lore wrote."""
    text = read_text(file)
    if is_own_file(text):
        return [], []
    imports = [] if file.form != "instructions" else list(_imports(file, text))
    return native_notes.parse(file.form, text, file.path.stem), imports


def is_own_file(text: str) -> bool:
    """Return whether Lore wrote a file: its front matter has the mark as a line of its own."""
    head = text[:1_000].splitlines()
    end = next((place for place, line in enumerate(head[1:], 1) if line.strip() == "---"), 0)
    return head[:1] == ["---"] and SHARED_MARK in (line.strip() for line in head[1:end])


def _imports(file: NativeFile, text: str) -> Iterator[NativeFile]:
    for written in native_notes.find_imports(text)[:_MAX_IMPORTS]:
        is_home = written.startswith("~/")
        path = file.home / written[2:] if is_home else file.path.parent / written
        is_note = path.suffix in _IMPORTED and stat.S_ISREG(file_mode(path))
        if is_note and is_inside(path, file.import_roots) and not _is_memory(file, path):
            yield replace(file, path=path, roots=file.import_roots, imported=True)


def _is_memory(file: NativeFile, path: Path) -> bool:
    """Return whether a file that a person imports is of an agent's memory.

    It is read anyway, and its words are not the person's.
    """
    if file.origin != "user":
        return False
    base = file.home / ".claude"
    chosen = _chosen_folder(file.home, base / "settings.json")
    codex = (file.home / ".codex" / name for name in CODEX_FOLDERS)
    claude = (base / "projects").glob("*/memory")
    return is_inside(path, [*claude, *codex, *([chosen] if chosen else [])])


def read_imports(file: NativeFile) -> list[NativeFile]:
    """Return the files that a file imports; raise `CaptureError` if it cannot be read."""
    return list(_imports(file, read_text(file)))


def file_mode(path: Path, *, follow_links: bool = True) -> int:
    """Return the mode of a file; 0 if there is none, or it cannot be examined or named so."""
    try:
        return path.stat(follow_symlinks=follow_links).st_mode
    except (OSError, ValueError):
        return 0


def is_inside(path: Path, roots: Iterable[Path]) -> bool:
    """Return whether a path lies in one of the folders, all links followed."""
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(root)) for root in roots)


def read_text(file: NativeFile) -> str:
    """Return the text of a file in whatever encoding it has; raise `CaptureError` with a reason."""
    if not is_inside(file.path, file.roots):
        msg = "is a link to a file outside of its folder"
        raise CaptureError(msg)
    try:
        raw = config_files.read_small_file(Path(os.path.realpath(file.path)), MAX_BYTES)
    except OSError as error:
        msg = f"cannot be read: {error.strerror}"
        raise CaptureError(msg) from error
    text = decode(raw)
    if sum(not (char.isprintable() or char.isspace()) for char in text[:4_000]) > 40:
        msg = "is no text"
        raise CaptureError(msg)
    return text


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decode(raw: bytes) -> str:
    """Return bytes as text: by their mark, else as UTF-8, UTF-16 without a mark, or Latin-1."""
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    head = raw[:2_000]
    if head.count(0) > len(head) // 4:
        return raw.decode("utf-16-le" if head[1::2].count(0) else "utf-16-be", "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


def sanitize(path: str) -> str:
    """Return a folder as Claude Code names it: everything but letters and digits is a hyphen."""
    return re.sub(r"[^A-Za-z0-9]", "-", path)


def project_folder(file: NativeFile, folders: Iterable[str]) -> str:
    """Return the folder of the project that a file applies to, empty for all projects.

    Where Claude Code's name of the project does not lead to a folder, the name itself is returned:
    the notes then belong to a project of their own instead of to all.
    """
    if file.slug is None:
        return file.folder
    slug = file.slug.name
    for folder in folders:
        if sanitize(folder) == slug:
            return folder
    started = _transcript_folder(file.slug)
    if started:
        above = (started, *map(str, Path(started).parents))
        return next((one for one in above if sanitize(one) == slug), started)
    return _walk("/", slug) or slug


def _transcript_folder(slug: Path) -> str:
    """Return the working directory that a transcript beside a memory names."""
    with suppress(OSError):
        for path in sorted(slug.glob("*.jsonl"))[:5]:
            with path.open("rb") as stream:
                named = _CWD.search(stream.read(_TRANSCRIPT_HEAD))
            if named:
                with suppress(ValueError):
                    return str(json.loads(named[1]))
    return ""


def _walk(start: str, slug: str) -> str:
    """Return the existing folder that has this name at Claude Code, or ''."""
    pending, searched = [start], 0
    while pending and searched < _MAX_FOLDERS_SEARCHED:
        folder = pending.pop()
        searched += 1
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                name = sanitize(entry.path)
                if name == slug and entry.is_dir():
                    return entry.path
                if slug.startswith(f"{name}-") and entry.is_dir():
                    pending.append(entry.path)
    return ""


def count_memories(home: Path) -> list[NativeCount]:
    """Return how many memories the agents of a person have, and of how many projects."""
    files = find_files(home, ())
    counts: dict[str, tuple[int, set[Path | None]]] = {}
    for file in files:
        if file.origin == "user":
            continue
        with suppress(CaptureError):
            notes, _ = read_notes(file)
            number, places = counts.get(file.agent, (0, set()))
            if notes:
                counts[file.agent] = (number + len(notes), places | {file.slug})
    return [
        NativeCount(agent, number, len(places - {None}))
        for agent, (number, places) in counts.items()
    ]
