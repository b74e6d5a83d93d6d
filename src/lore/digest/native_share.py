"""Give confirmed knowledge back to an agent's own memory: one file of Lore's own, one index line.

Nothing that the agent or a person wrote is changed. The file carries a mark, so that it is never
read back as new.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lore import config_files, local_files, projects
from lore.capture import native_files
from lore.capture.native_files import CLAUDE_CODE, CODEX, INDEX_NAME, SHARED_MARK, is_own_file
from lore.digest.consolidation import contradict
from lore.digest.draft_writer import CONFIDENCE as LEARNED_ONCE
from lore.errors import InvalidInput
from lore.projects import ProjectFinder
from lore.records import TRUST, FileChange, Fragment, NativeShare
from lore.store import fragments, hard_delete, native_rows, project_rows, replacements
from lore.store.database import Connection
from lore.text import hidden_text, sentences, words
from lore.text.shared_page import SECTIONS
from lore.text.statements import is_proposal

MIN_CONFIDENCE = 0.5
"""Less certain knowledge is not given to an agent, as on a project's page."""

INDEX_LINES, INDEX_BYTES = 200, 25_000
"""What Claude Code loads of an index; a line behind that would never be seen."""

FILE_LINES, FILE_BYTES = 200, 25_000
"""The limits of Lore's own file: an agent reads it whole."""

_FILE_NAME = "lore.md"
_REDACTION_MARK = "[secret:"
_ENTRY_HEAD = re.compile(r"- \d{4}-\d\d-\d\d, \w+: ")
_MAX_TEXT_CHARS = 1_000
"""A longer fragment is given by its title: the agent can ask Lore for the rest."""


@dataclass(frozen=True, slots=True)
class _Target:
    """Where an agent's memory of a project lies: its folder, its index, and Lore's file in it."""

    folder: Path
    index: Path
    file: Path

    @property
    def index_line(self) -> str:
        """Return the line that leads to Lore's file."""
        return f"- [Lore]({self.file.name}) — what other agents and you decided here"


def _find_target(agent: str, home: Path, project: str) -> _Target:
    if agent == CLAUDE_CODE:
        root = ProjectFinder(home).find(project)
        name = native_files.sanitize(root.path if root else project)
        folder = home / ".claude" / "projects" / name / "memory"
        return _Target(folder, folder / INDEX_NAME, folder / _FILE_NAME)
    if agent == CODEX:
        folders = [home / ".codex" / name for name in native_files.CODEX_FOLDERS]
        written = [each for each in folders if (each / "memory_summary.md").is_file()]
        if not written:
            msg = "Codex has no summary of memories yet, which it would give to its sessions."
            raise InvalidInput(msg, hint="'codex features enable memories' lets it write one.")
        folder = written[0]
        own = hashlib.sha256(project.encode("utf-8", "replace")).hexdigest()[:8]
        file = f"lore-{native_files.sanitize(Path(project).name)[:40]}-{own}.md"
        return _Target(folder, folder / "memory_summary.md", folder / file)
    msg = f"Lore cannot write to the memory of '{agent}'."
    raise InvalidInput(msg, hint=f"It can for {CLAUDE_CODE} and {CODEX}.")


def plan_share(db: Connection, agent: str, home: Path, folder: str, project: str) -> NativeShare:
    """Return the changes that give an agent what it does not have yet.

    `project` is the project's name in memory, `folder` where it lies.
    """
    target = _find_target(agent, home, folder)
    listed = _knowledge_for(db, agent, project)
    text, entries = _render(listed, folder)
    before = _read_own(target.file)
    index = _read(target.index)
    after = _with_line(index, target.index_line) if entries else _without_line(index, target)
    changes = _changes(
        (target.file, before, text if entries else None), (target.index, index, after)
    )
    return NativeShare(agent, changes, entries, len(listed) - entries)


def _changes(*files: tuple[Path, str | None, str | None]) -> tuple[FileChange, ...]:
    return tuple(FileChange(str(path), old, new) for path, old, new in files if old != new)


def plan_undo(agent: str, home: Path, folder: str) -> NativeShare:
    """Return the changes that take out what was given to an agent."""
    target = _find_target(agent, home, folder)
    before, index = _read_own(target.file), _read(target.index)
    index_change = (target.index, index, _without_line(index, target))
    return NativeShare(agent, _changes((target.file, before, None), index_change))


def apply(plan: NativeShare) -> None:
    """Write the changes of a plan, unless a file changed since it was made."""
    for change in plan.changes:
        if _read(Path(change.path)) != change.before:
            msg = f"{change.path} was changed meanwhile."
            raise InvalidInput(msg, hint="Run the command again.")
    for change in plan.changes:
        path = Path(change.path)
        if change.after is None:
            with suppress(FileNotFoundError):
                path.unlink()
            with suppress(OSError):
                path.parent.rmdir()
        else:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write(path, change.after)


class SharedCopies:
    """The entries of Lore's files in agents' memories that go with what is forgotten.

    Create it before the forgetting, while the store still has the texts.
    """

    def __init__(self, db: Connection, home: Path, item_ns: Sequence[int], text: str) -> None:
        present = ((one.content, one.summary) for one in fragments.by_number(db, item_ns).values())
        wordings = (*present, *hard_delete.former_wordings(db, item_ns))
        self._selected = hard_delete.normalize_text(text)
        self._wordings = {hard_delete.normalize_text(_given(*one)) for one in wordings} - {""}
        reads = bool(self._selected or self._wordings) and not local_files.are_withheld()
        self._files = _shared_files(home) if reads else []

    def find_files(self) -> list[Path]:
        """Return the files that have such entries."""
        return [path for path, before, after in self._changes() if before != after]

    def remove(self) -> None:
        """Remove the entries."""
        for path, before, after in self._changes():
            if before != after:
                _write(path, after)

    def _changes(self) -> Iterator[tuple[Path, str, str]]:
        for path in self._files:
            with suppress(InvalidInput):
                text = _read_own(path)
                if text is not None:
                    yield path, text, "\n".join(self._kept_lines(text))

    def _kept_lines(self, text: str) -> Iterator[str]:
        entry: list[str] = []
        for line in [*text.split("\n"), "- "]:
            if line.startswith("- ") or not entry:
                if not self._is_forgotten("\n".join(entry)):
                    yield from entry
                entry = []
            entry.append(line)

    def _is_forgotten(self, entry: str) -> bool:
        if not entry.startswith("- "):
            return False
        shown = hard_delete.normalize_text(entry.removeprefix("- "))
        of_fragment = hard_delete.normalize_text(_ENTRY_HEAD.sub("", entry))
        has_selected = bool(self._selected) and self._selected in shown
        return has_selected or of_fragment in self._wordings


def _shared_files(home: Path) -> list[Path]:
    folders = [home / ".codex" / name for name in native_files.CODEX_FOLDERS]
    return [
        *(home / ".claude" / "projects").glob(f"*/memory/{_FILE_NAME}"),
        *(path for folder in folders for path in folder.glob("lore-*.md")),
    ]


def _knowledge_for(db: Connection, agent: str, project: str) -> list[Fragment]:
    """Return what an agent does not have yet: neither noted by it nor in the same words."""
    place = ProjectFinder().find(project)
    project_n = projects.find_project_number(db, project, place)
    if project_n is None:
        msg = f"Nothing is known about {project} yet."
        raise InvalidInput(msg, hint="'lore projects' lists the known ones.")
    ns = project_rows.shareable_fragments(db, project_n, least_confidence=MIN_CONFIDENCE)
    ns = replacements.holding(db, ns)
    own_notes = native_rows.notes_of_agent(db, ns, agent)
    disputed = {
        one.id for pair in contradict.open_conflicts(db, project_n=project_n) for one in pair
    }
    by_number = fragments.by_number(db, [n for n in ns if n not in own_notes])
    had = {_normalize(text) for text in native_rows.texts_of_agent(db, agent)}
    listed = [
        fragment
        for fragment in by_number.values()
        if fragment.kind in SECTIONS
        and _is_confirmed(fragment)
        and fragment.id not in disputed
        and _REDACTION_MARK not in _text(fragment)
        and not is_proposal(fragment.content)
        and not hidden_text.find_hidden(_text(fragment))
        and _normalize(fragment.content) not in had
    ]
    return sorted(listed, key=lambda one: (-one.trust, -one.importance, one.created_at, one.id))


def _is_confirmed(fragment: Fragment) -> bool:
    """Return whether knowledge is a person's, stored on purpose, or learned more than once."""
    is_extracted = bool(fragment.source_messages)
    return fragment.trust >= TRUST["user"] or not is_extracted or fragment.confidence > LEARNED_ONCE


def _normalize(text: str) -> str:
    return " ".join(words.split(text))


def _render(listed: Sequence[Fragment], folder: str) -> tuple[str, int]:
    """Return the text of Lore's file and how many fragments fit into it, the best first."""
    head = [
        "---",
        "name: lore",
        "description: Decisions, rules and facts of this project from all agents, kept by Lore",
        "metadata:",
        "  type: reference",
        f"  {SHARED_MARK}",
        "---",
        "",
        f"Applies to: cwd={folder}. Written by 'lore share --native'; edits here are overwritten.",
        "",
    ]
    lines = list(head)
    size = sum(len(line.encode()) + 1 for line in lines)
    entries = 0
    for fragment in listed:
        rows = _entry(fragment)
        added = sum(len(row.encode()) + 1 for row in rows)
        if len(lines) + len(rows) > FILE_LINES or size + added > FILE_BYTES:
            break
        lines += rows
        size += added
        entries += 1
    return "\n".join(lines) + "\n", entries


def _entry(fragment: Fragment) -> list[str]:
    first, *rest = _text(fragment).strip().splitlines()
    dated = f"- {fragment.created_at:%Y-%m-%d}, {fragment.kind}: {first}"
    return [sentences.one_line(dated, _MAX_TEXT_CHARS + 40), *(f"  {row}".rstrip() for row in rest)]


def _text(fragment: Fragment) -> str:
    """Return a fragment as an entry has it."""
    return _given(fragment.content, fragment.summary)


def _given(content: str, summary: str) -> str:
    return content if len(content) <= _MAX_TEXT_CHARS else summary


def _with_line(index: str | None, line: str) -> str:
    """Return an index with a line at its end, unless it has it; refuse one that is full."""
    text = index or ""
    if line in text.splitlines():
        return text
    between = "" if not text or text.endswith("\n") else "\n"
    longer = f"{text}{between}{line}" + ("\n" if not between else "")
    if len(longer.splitlines()) > INDEX_LINES or len(longer.encode()) > INDEX_BYTES:
        msg = (
            f"The agent's index has no room: it loads {INDEX_LINES} lines or {INDEX_BYTES:,} bytes."
        )
        raise InvalidInput(msg, hint="Remove lines from it that are no longer needed.")
    return longer


def _without_line(index: str | None, target: _Target) -> str | None:
    """Return an index as it was before Lore's line; None if nothing else is in it."""
    if index is None or target.index_line not in index.splitlines():
        return index
    if index.endswith(f"\n{target.index_line}"):  # the file had no newline at its end
        return index.removesuffix(f"\n{target.index_line}")
    rest = "".join(
        row for row in index.splitlines(keepends=True) if row.rstrip("\n") != target.index_line
    )
    return rest or None


def _read(path: Path) -> str | None:
    """Return the text of a file, None if there is none; refuse what cannot be written back."""
    try:
        return config_files.read_small_file(path).decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path} cannot be changed safely: it is no ordinary text file in UTF-8."
        raise InvalidInput(msg) from error


def _read_own(path: Path) -> str | None:
    """Return Lore's own file; refuse a file of that name that someone else wrote."""
    text = _read(path)
    if text is not None and not is_own_file(text):
        msg = f"{path} was not written by Lore, and is left as it is."
        raise InvalidInput(msg, hint="Rename it, then run the command again.")
    return text


def _write(path: Path, text: str) -> None:
    """Write a file whole; what reads it meanwhile sees the former text."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(text.encode())
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
