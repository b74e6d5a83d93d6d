"""The file CONTINUITY.md of a project: build it from states, write it, and read it back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lore import config_files, local_files
from lore.errors import InvalidInput
from lore.records.task_records import ContinuityEdit, OpenWork
from lore.tasks import continuity_page
from lore.tasks.continuity_page import ContinuityPage
from lore.text.hidden_text import one_line, strip_hidden

_MOST_BYTES = 400_000
"""A page has some kilobytes; a larger file is not one."""

_TITLE_TOKENS = 20
"""About ten words, as the index of memories has them."""

_MOST_FILES = 8
"""Files on one line of the page."""


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """A memory on the page: its id, and a few words."""

    id: str
    title: str


def build_page(
    work: OpenWork,
    *,
    earlier: Sequence[OpenWork] = (),
    memories: Iterable[MemoryLine] = (),
    mistakes: Iterable[MemoryLine] = (),
) -> ContinuityPage:
    """Return the page of a session; one that has ended also says how."""
    state = work.state
    context = state.context
    outcome = f"{context['outcome']}: {context['reason']}" if context.get("reason") else ""
    sections = {
        "task": [state.task, _labelled("Last request", context.get("last_request"))],
        "decisions": state.decisions,
        "progress": state.progress,
        "blockers": state.blockers,
        "next": state.next,
        "context": _context_lines(work),
        "earlier": [_left_open(one) for one in earlier],
        "memories": [_memory_line(one) for one in memories],
        "mistakes": [_memory_line(one) for one in mistakes],
        "outcome": [outcome] if context.get("ended") else [],
    }
    cleaned = {
        name: tuple(dict.fromkeys(line for text in texts if (line := _clean(text))))
        for name, texts in sections.items()
    }
    return ContinuityPage({name: lines for name, lines in cleaned.items() if lines}, (),
                          work.session_id)  # fmt: skip


def _clean(text: str) -> str:
    """Return a text as one visible line that cannot end the page's comments, without boxes."""
    line = " ".join(strip_hidden(text).replace("<!--", "").replace("-->", "").split())
    return continuity_page.strip_boxes(line)


def _labelled(label: str, text: object) -> str:
    return f"{label}: {text}" if text else ""


def _context_lines(work: OpenWork) -> list[str]:
    context = work.state.context

    def listed(name: str) -> str:
        return ", ".join(f"`{one}`" for one in list(context.get(name) or ())[:_MOST_FILES])

    branch = f", branch `{context['branch']}`" if context.get("branch") else ""
    return [
        f"Session {work.session_id} of {work.agent}, {work.at:%Y-%m-%d %H:%M} UTC{branch}",
        _labelled("Changed files", listed("files")),
        _labelled("Not committed", listed("uncommitted")),
        _labelled("Last check", context.get("check")),
        _labelled("Pages", ", ".join(context.get("pages") or ())),
    ]


def _left_open(work: OpenWork) -> str:
    steps = "; ".join(work.state.next[:3])
    following = f" | next: {steps}" if steps else ""
    return f"{work.state.task}{following} ({work.agent}, {work.at:%Y-%m-%d})"


def _memory_line(one: MemoryLine) -> str:
    return f"[{one.id}] {one_line(one.title, _TITLE_TOKENS)}"


def read_file(folder: Path) -> str | None:
    """Return the text of a project's page; None without one.

    A link, another kind of file, or one that Lore did not write is refused.
    """
    if local_files.are_withheld():
        return None
    path = folder / continuity_page.FILE_NAME
    if not path.exists() and not path.is_symlink():
        return None
    if path.is_symlink() or not path.is_file():
        msg = f"{path} is no plain file."
        raise InvalidInput(msg, hint="Remove it, or turn tasks.continuity off.")
    try:
        text = config_files.read_small_file(path, _MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text.") from error
    if not continuity_page.is_page(text):
        msg = f"{path} was not written by Lore, and is left as it is."
        raise InvalidInput(msg, hint="Rename it, or turn tasks.continuity off.")
    return text


def write_file(folder: Path, page: ContinuityPage, derived: ContinuityPage) -> list[ContinuityEdit]:
    """Write a page, keep what a person changed on the former one, and return these edits.

    `derived` is the page as the state behind the former one gives it.
    """
    former = read_file(folder)
    current = continuity_page.parse_page(former) if former is not None else None
    edits = continuity_page.find_edits(current, derived) if current else []
    shown = continuity_page.apply_edits(page, edits, current.other) if current else page
    text = continuity_page.render_page(page, shown)
    if text != former:
        config_files.write_atomic(folder / continuity_page.FILE_NAME, text)
    return edits
