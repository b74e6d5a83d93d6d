"""Notes in the files of agents: memories, instructions and indexes, split into statements.

The formats are documented in part only, so every parser is permissive: what it does not know it
keeps as a note, and nothing makes it fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lore.records import FragmentKind
from lore.text import front_matter, sentences, words
from lore.text.regex import compile_lazy

NoteForm = Literal["memory", "index", "instructions", "codex", "codex-summary", "whole"]
"""How a file is parsed: one memory, an index with notes in it, instructions, Codex's handbook and
summary, or a file that is one note."""

MAX_NOTES = 500
"""Notes of one file; a longer file is no list of notes."""

MAX_CHARS = 8_000
"""A longer note is cut: it is a document."""

_RULE_CHARS = 600
"""A longer text is no rule that could stand in every prompt: it explains something."""

_RULE_WORDS = 3
"""What has fewer words besides the file that it imports is no rule."""

HEADING_JOINT = " › "
"""Between the names of nested headings."""

_HEADING = compile_lazy(r"^(#{1,6})\s+(\S.*)$")
_ITEM = compile_lazy(r"^ ?(?:[-*+]|\d{1,3}[.)])\s+(?=\S)")
_FENCE = compile_lazy(r"^\s*(```|~~~)")
_COMMENT = compile_lazy(r"<!--.*?(?:-->|\Z)", 16)  # re.DOTALL
_INDEX_LINE = compile_lazy(r"^\s*[-*+]?\s*\[[^\]\n]*\]\(<?[^)\n]*\.md>?\)")
_LINK = compile_lazy(r"\[\[([^\[\]\n]{1,200})\]\]")
_IMPORT = compile_lazy(r"(?:^|(?<=\s))@((?:~/|/|\./|\.\./)?[\w.\-/][^\s`'\"<>()]{0,300})")
_CODE = compile_lazy(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`", 16)
_ONLY_IMPORT = compile_lazy(r"^\s*(?:[-*+]\s+)?@\S+\s*$")
_FOLDER = compile_lazy(r"\bcwd\s*[=:]\s*`?(/[^;,\s`]+)")
_THREAD = compile_lazy(r"(?m)^thread_id:\s*([\w-]{8,100})\s*$")
_TASK_REFERENCE = compile_lazy(r"(?:\[Task \d+\]\s?)+$")
_DECIDED = compile_lazy(r"(?i)\b(?:decided|decision|agreed|chose|settled on|going with)\b")
_PREFERRED = compile_lazy(r"(?i)\b(?:preference|profile|rule|feedback|guideline|convention)")
_FAILED = compile_lazy(r"(?i)\b(?:failure|pitfall|avoid|gotcha|mistake)")
_RULE = compile_lazy(r"^\s*([-*_])(?:\s*\1){2,}\s*$")
_HEAD_LINES = ("scope:", "applies_to:", "cwd:", "updated_at:", "thread", "rollout_path:")
"""Lines of Codex that say where a group of notes applies and comes from."""

_SKIPPED_SECTIONS = ("rollout_summary_files", "extension_resource_files", "keywords")
_INDEX_SECTION = "what's in memory"


@dataclass(frozen=True, slots=True)
class Note:
    """One statement of a file: its text, where it stands, and what its file says about it.

    `folder` is the working directory that it applies to, and `session` the session that it was
    noted in, if it names them.
    """

    text: str
    title: str = ""
    line: int = 1
    type: str = ""
    heading: str = ""
    kind: FragmentKind = "fact"
    folder: str = ""
    session: str = ""
    links: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


def parse(form: NoteForm, text: str, stem: str) -> list[Note]:
    """Return the notes of a file in their order; `stem` is its name."""
    notes = _PARSERS[form](_without_comments(text), stem)
    return [_finish(note) for note in notes if len(words.split(note.text)) > 1][:MAX_NOTES]


def _without_comments(text: str) -> str:
    """Return a text without comments; their lines stay, so that line numbers are right."""
    return _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def _finish(note: Note) -> Note:
    text = note.text.strip()
    links = tuple(dict.fromkeys(_LINK.findall(text)))
    return replace(note, text=text[:MAX_CHARS], links=links)


def _parse_memory(text: str, stem: str) -> Iterator[Note]:
    """Yield the one memory of a file with front matter: name, description, type, body."""
    front = front_matter.parse(text)
    metadata = front.fields.get("metadata")
    about = {**front.fields, **(metadata if isinstance(metadata, dict) else {})}
    about.pop("metadata", None)
    type_ = str(about.pop("type", "") or "").strip().lower()
    name = str(about.pop("name", "") or stem)
    description = str(about.pop("description", "") or "")
    body = front.body.strip()
    blank = len(front.body) - len(front.body.lstrip("\n"))
    yield Note(
        body or description or name,
        title=sentences.one_line(description or name, 400),
        line=front.line + blank if body else 1,
        type=type_,
        kind=_kind_of_type(type_, body or description),
        session=str(about.get("originSessionId") or ""),
        fields={"name": name, **about},
    )


def _kind_of_type(type_: str, text: str) -> FragmentKind:
    if type_ in ("user", "feedback"):
        return "preference"
    if type_ == "project" and _DECIDED.search(text):
        return "decision"
    return "fact"


def _parse_index(text: str, _stem: str) -> Iterator[Note]:
    """Yield what an index says besides its links: former versions kept the notes in it."""
    for note in split_blocks(text):
        if not _INDEX_LINE.match(note.text):
            preferred = _PREFERRED.search(note.heading) is not None
            yield replace(note, kind="preference" if preferred else "fact")


def _parse_instructions(text: str, _stem: str) -> Iterator[Note]:
    """Yield the rules of a file that people write for agents; long texts in it explain."""
    front = front_matter.parse(text)
    for note in split_blocks(front.body, front.line):
        rows = note.text.split("\n")
        text = "\n".join(row for row in rows if not _ONLY_IMPORT.match(row))
        if find_imports(text) and len(words.split(_IMPORT.sub(" ", text))) < _RULE_WORDS:
            continue  # 'see @docs/style.md' leads to a rule and is none
        is_rule = len(text) <= _RULE_CHARS and not _FENCE.match(text)
        kind: FragmentKind = "preference" if is_rule else "fact"
        yield replace(note, text=text, kind=kind, type="instruction", fields=front.fields)


def _parse_codex(text: str, _stem: str) -> Iterator[Note]:
    """Yield the notes of Codex's handbook: task groups, each with the folder that it applies to."""
    folder, group = "", ""
    for note in split_blocks(text):
        if (top := note.heading.partition(HEADING_JOINT)[0]) != group:
            folder, group = "", top
        section = note.heading.rpartition(HEADING_JOINT)[2].casefold()
        if section in _SKIPPED_SECTIONS or _INDEX_LINE.match(note.text):
            continue
        if note.text.startswith(_HEAD_LINES):
            named = _FOLDER.search(note.text)
            folder = named[1].rstrip("/") if named else folder
            continue
        text, title = _without_reference(note.text), _without_reference(note.title)
        yield replace(note, text=text, title=title, kind=_kind_of_section(section), folder=folder)


def _parse_codex_summary(text: str, stem: str) -> Iterator[Note]:
    """Yield the notes of Codex's summary, without its version line and its index."""
    for note in _parse_codex(text, stem):
        if _INDEX_SECTION not in note.heading.casefold():
            yield note


def _kind_of_section(section: str) -> FragmentKind:
    if _PREFERRED.search(section):
        return "preference"
    return "anti_pattern" if _FAILED.search(section) else "fact"


def _without_reference(text: str) -> str:
    return _TASK_REFERENCE.sub("", text.rstrip()).rstrip()


def _name(heading: re.Match[str]) -> str:
    """Return the name of a heading, without the marks that may close it."""
    return heading[2].rstrip().rstrip("#").rstrip()


def _parse_whole(text: str, stem: str) -> Iterator[Note]:
    """Yield a file as one note, with its first heading as title."""
    front = front_matter.parse(text)
    lines = front.body.split("\n")
    title = next((_name(match) for line in lines if (match := _HEADING.match(line))), stem)
    named, thread = _FOLDER.search(text), _THREAD.search(text)
    yield Note(
        front.body,
        title=sentences.one_line(title, 400),
        line=front.line,
        folder=named[1].rstrip("/") if named else "",
        session=thread[1] if thread else "",
        fields=front.fields,
    )


_PARSERS: dict[NoteForm, Callable[[str, str], Iterator[Note]]] = {
    "memory": _parse_memory,
    "index": _parse_index,
    "instructions": _parse_instructions,
    "codex": _parse_codex,
    "codex-summary": _parse_codex_summary,
    "whole": _parse_whole,
}


def find_imports(text: str) -> list[str]:
    """Return the paths that a file imports with `@path`, as it writes them; code has none."""
    prose = _CODE.sub(" ", _without_comments(text))
    return list(dict.fromkeys(path.rstrip(".,;:!?") for path in _IMPORT.findall(prose)))


def split_blocks(text: str, line: int = 1) -> Iterator[Note]:
    """Yield the paragraphs and top-level list items of a text, each below its headings.

    Code and deeper lists belong to what stands before them. A paragraph that ends with a colon
    introduces the list after it: each item begins with it, because it says when the item applies.
    """
    splitter = _BlockSplitter()
    for number, row in enumerate(text.replace("\r\n", "\n").split("\n"), line):
        yield from splitter.add(number, row)
    yield from splitter.flush()


class _BlockSplitter:
    """Collects lines into blocks."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []
        self._intro = ""
        self._rows: list[str] = []
        self._line = 1
        self._is_item = False
        self._fence = ""
        self._ended = False

    def add(self, number: int, row: str) -> Iterator[Note]:
        """Take in a line; yield the block that it ends."""
        fence = _FENCE.match(row)
        if self._fence or fence:
            mark = fence[1] if fence else ""
            self._fence = "" if self._fence == mark else self._fence or mark
            self._append(number, row)
            return
        if heading := _HEADING.match(row):
            yield from self.flush()
            self._intro = ""
            level = len(heading[1])
            self._path = [one for one in self._path if one[0] < level]
            self._path.append((level, _name(heading)))
        elif _ITEM.match(row):
            yield from self.flush()
            self._append(number, row)
            self._is_item = True
        elif not row.strip() or _RULE.match(row):
            self._ended = bool(self._rows)
        else:
            if self._ended and not row.startswith((" ", "\t")):
                was_item = self._is_item
                yield from self.flush()
                self._intro = "" if was_item else self._intro
            self._append(number, row)

    def _append(self, number: int, row: str) -> None:
        if not self._rows:
            self._line = number
        elif self._ended:
            self._rows.append("")
        self._ended = False
        self._rows.append(row)

    def flush(self) -> Iterator[Note]:
        """Yield the current block, if there is one."""
        rows, self._rows, self._ended = self._rows, [], False
        is_item, self._is_item = self._is_item, False
        text = "\n".join(rows).strip()
        if not text:
            return
        if not is_item and text.endswith(":") and "\n" not in text:
            self._intro = text.rstrip(":")
            return
        intro = self._intro if is_item else ""
        if is_item:
            text = _ITEM.sub("", text, count=1)
        heading = HEADING_JOINT.join(name for _, name in self._path)
        text = f"{intro}: {text}" if intro else text
        first = sentences.one_line(text.partition("\n")[0], 300)
        below = self._path[-1][1] if self._path else ""
        title = f"{below}: {first}" if below else first
        yield Note(text, sentences.one_line(title, 400), self._line, heading=heading)
