"""Skills as Markdown pages: parse a page into its parts, and write the parts as a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lore.errors import InvalidInput
from lore.text import front_matter


class CommonError(NamedTuple):
    """An error that is usual for a skill, and its fix."""

    error: str
    fix: str = ""


class Section(NamedTuple):
    """A section of a page that is no part of a skill; it is kept."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class SkillPage:
    """A skill with everything that its page says.

    `front` is the front matter without its rules, as some agents write it; `sections` are those
    with other headings.
    """

    name: str
    steps: tuple[str, ...]
    description: str = ""
    prerequisites: tuple[str, ...] = ()
    common_errors: tuple[CommonError, ...] = ()
    exit_criteria: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    front: str = ""

    def to_payload(self) -> dict[str, Any]:
        """Return the fields of the skill as a payload, without front matter and other sections."""
        return {
            "name": self.name,
            "description": self.description,
            "prerequisites": list(self.prerequisites),
            "steps": list(self.steps),
            "common_errors": [error._asdict() for error in self.common_errors],
            "exit_criteria": list(self.exit_criteria),
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> SkillPage:
        """Return the page of a skill's payload; fields that do not fit are left out."""
        errors = payload.get("common_errors")
        page = cls(
            name=" ".join(str(payload.get("name") or "").split()),
            steps=_texts(payload.get("steps")),
            description=_clean(str(payload.get("description") or "")),
            prerequisites=_texts(payload.get("prerequisites")),
            common_errors=tuple(
                CommonError(_clean(str(each["error"])), _clean(str(each.get("fix") or "")))
                for each in (errors if isinstance(errors, Sequence) else ())
                if isinstance(each, Mapping) and str(each.get("error") or "").strip()
            ),
            exit_criteria=_texts(payload.get("exit_criteria")),
        )
        return _check(page)


_PREREQUISITES, _STEPS, _ERRORS, _CRITERIA = (
    "Prerequisites", "Steps", "Common Errors & Fixes", "Exit Criteria",
)  # fmt: skip

_HEADINGS = {
    "prerequisites": _PREREQUISITES,
    "requirements": _PREREQUISITES,
    "steps": _STEPS,
    "common errors & fixes": _ERRORS,
    "common errors and fixes": _ERRORS,
    "common errors": _ERRORS,
    "exit criteria": _CRITERIA,
}
"""The sections of a skill by the headings that people write."""

_TITLE = re.compile(r"#[ \t]+(?:Skill:[ \t]*)?(?P<name>\S.*)", re.IGNORECASE)
_HEADING = re.compile(r"##[ \t]+(?P<heading>\S.*)")
_ITEM = re.compile(r" ?(?:\d{1,4}[.)]|[-*+])(?:[ \t]+(?P<text>.*)|$)")
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})")
_SPECIAL = re.compile(r"\\*(?:#|`{3}|~{3})")
_FIX = re.compile(r"(?<!\\)((?:\\\\)*):(?:\s+|$)")


def parse_skill(text: str) -> SkillPage:
    """Parse a page; raise `InvalidInput` if it has no name or no step."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    matter = front_matter.parse(text)
    lines = matter.body.split("\n")
    front = _front_lines(text, matter.line) if matter.fields else ""
    is_code = _fenced(lines)
    name, start = _find_title(lines, is_code)
    blocks = _split_sections(lines[start:], is_code[start:])
    page = SkillPage(name or _field(matter.fields, "name"), (), front=front)
    described = _unescape(blocks[0][1])
    page = replace(page, description=described or _clean(_field(matter.fields, "description")))
    for heading, block in blocks[1:]:
        page = _add_section(page, heading, block)
    return _check(page)


def format_skill(page: SkillPage) -> str:
    """Return a skill as a Markdown page."""
    blocks = [f"# Skill: {page.name}"]
    if page.front:
        blocks = [f"---\n{page.front}\n---", *blocks]
    if page.description:
        blocks.append(_escape(page.description))
    if page.prerequisites:
        blocks.append(_format_list(_PREREQUISITES, page.prerequisites))
    blocks.append(_format_list(_STEPS, page.steps, numbered=True))
    if page.common_errors:
        blocks.append(_format_list(_ERRORS, map(_format_error, page.common_errors)))
    if page.exit_criteria:
        blocks.append(_format_list(_CRITERIA, page.exit_criteria))
    blocks += [f"## {heading}\n\n{_escape(text)}".rstrip() for heading, text in page.sections]
    return "\n\n".join(blocks) + "\n"


_MOST_NAME_BYTES = 200
"""File systems allow 255 bytes, and an ending and a number may follow."""


def page_name(name: str) -> str:
    """Return the file name of a skill's page."""
    words = re.findall(r"[^\W_]+", name.casefold())
    short = "-".join(words)[:80].encode()[:_MOST_NAME_BYTES].decode("utf-8", "ignore")
    return f"{short.strip('-') or 'skill'}.md"


def _check(page: SkillPage) -> SkillPage:
    if not page.name:
        msg = "A skill needs a name: its page begins with '# Skill: NAME'."
        raise InvalidInput(msg)
    if not page.steps:
        msg = f"The skill {page.name[:80]!r} has no steps: list at least one below '## Steps'."
        raise InvalidInput(msg)
    return page


def _front_lines(text: str, body_line: int) -> str:
    """Return the lines of the front matter, without the rules around it."""
    lines = [line.rstrip() for line in text.split("\n")[: body_line - 1]]
    return "\n".join(line for line in lines if line not in ("---", "...")).strip("\n")


def _field(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value.strip() if isinstance(value, str) else ""


def _find_title(lines: Sequence[str], is_code: Sequence[bool]) -> tuple[str, int]:
    """Return the name in the first heading and the line after it; else nothing and 0."""
    for place, line in enumerate(lines):
        if is_code[place] or _HEADING.match(line):
            break
        title = _TITLE.match(line)
        if title:
            return title["name"].strip(), place + 1
        if line.strip():
            break
    return "", 0


def _split_sections(lines: Sequence[str], is_code: Sequence[bool]) -> list[tuple[str, list[str]]]:
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for line, code in zip(lines, is_code, strict=True):
        heading = None if code else _HEADING.match(line)
        if heading:
            blocks.append((heading["heading"].strip(), []))
        else:
            blocks[-1][1].append(line)
    return blocks


def _add_section(page: SkillPage, heading: str, block: Sequence[str]) -> SkillPage:
    kind = _HEADINGS.get(" ".join(heading.casefold().split()))
    if kind is None:
        return replace(page, sections=(*page.sections, Section(heading, _unescape(block))))
    listed = tuple(_parse_items(block))
    if kind == _PREREQUISITES:
        return replace(page, prerequisites=page.prerequisites + listed)
    if kind == _STEPS:
        return replace(page, steps=page.steps + listed)
    if kind == _CRITERIA:
        return replace(page, exit_criteria=page.exit_criteria + listed)
    return replace(page, common_errors=page.common_errors + tuple(map(_parse_error, listed)))


def _parse_items(block: Sequence[str]) -> Iterator[str]:
    """Yield the items of a list; a paragraph outside of the list is an item, too."""
    item: list[str] = []
    width = 0
    for line in [*block, ""]:
        bullet = _ITEM.match(line)
        is_paragraph = bool(line.strip()) and not line.startswith(" ") and item[-1:] == [""]
        if (bullet or is_paragraph) and item:
            yield from filter(None, [_clean("\n".join(item))])
            item = []
        if bullet:
            width = bullet.start("text") if bullet["text"] is not None else len(line)
            item = [bullet["text"] or ""]
        elif item or line.strip():
            width = width if item else 0
            item.append(line[min(width, len(line) - len(line.lstrip(" "))) :])
    yield from filter(None, [_clean("\n".join(item))])


def _format_list(heading: str, listed: Iterable[str], *, numbered: bool = False) -> str:
    rows = [f"## {heading}", ""]
    for place, text in enumerate(listed, start=1):
        marker = f"{place}. " if numbered else "- "
        first, *others = text.split("\n")
        rows.append(f"{marker}{first}")
        rows += [" " * len(marker) + line if line else "" for line in others]
    return "\n".join(rows)


def _parse_error(item: str) -> CommonError:
    split = _FIX.search(item)
    error, fix = (item[: split.end(1)], item[split.end() :]) if split else (item, "")
    return CommonError(re.sub(r"\\([\\:])", r"\1", error).strip(), fix.strip())


def _format_error(error: CommonError) -> str:
    escaped = error.error.replace("\\", "\\\\")
    escaped = re.sub(r":(?=\s|$)", r"\\:", escaped)
    return f"{escaped}: {error.fix}" if error.fix else escaped


def _fenced(lines: Sequence[str]) -> list[bool]:
    """Return for each line whether it belongs to a fenced block of code that is closed."""
    marks = [False] * len(lines)
    place = 0
    while place < len(lines):
        opening = _FENCE.match(lines[place])
        end = _closing(lines, place, opening["fence"]) if opening else None
        if end is not None:
            marks[place : end + 1] = [True] * (end + 1 - place)
            place = end
        place += 1
    return marks


def _closing(lines: Sequence[str], start: int, fence: str) -> int | None:
    for place in range(start + 1, len(lines)):
        bare = lines[place].rstrip()
        if len(bare) >= len(fence) and bare == fence[0] * len(bare):
            return place
    return None


def _escape(text: str) -> str:
    """Mark lines that would read as a heading or open a block of code."""
    lines = text.split("\n")
    pairs = zip(lines, _fenced(lines), strict=True)
    return "\n".join(
        f"\\{line}" if not code and _SPECIAL.match(line) else line for line, code in pairs
    )


def _unescape(lines: Sequence[str]) -> str:
    pairs = zip(lines, _fenced(lines), strict=True)
    plain = (
        line[1:] if not code and line.startswith("\\") and _SPECIAL.match(line) else line
        for line, code in pairs
    )
    return _clean("\n".join(plain))


def _clean(text: str) -> str:
    """Return a text without spaces at the ends of its lines, and without empty lines around it."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(row.rstrip() for row in rows).strip()


def _texts(value: object) -> tuple[str, ...]:
    texts = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    cleaned = (_clean(each) for each in texts if isinstance(each, str))
    return tuple(each for each in cleaned if each)
