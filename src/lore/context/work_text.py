"""Work text: the open work of a project and its handoffs, for a session that starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lore.records.task_records import Handoff, OpenWork
from lore.text import tokens
from lore.text.hidden_text import one_line

_TASK_TOKENS, _LINE_TOKENS, _DONE_TOKENS = 45, 34, 70
"""A request in full, a sentence, and three sentences."""

_MOST_DONE, _MOST_DECIDED, _MOST_BLOCKERS, _MOST_FILES, _MOST_LISTED = 3, 2, 2, 5, 3
"""Enough of each to go on; recall gives the rest, and 200 tokens have no room for more."""

_HANDOFF_HINT = "handoff_read(id) or 'lore handoff read ID' gives it whole."


def format_work(
    handoffs: Sequence[Handoff], work: Sequence[OpenWork], *, most_tokens: int
) -> list[str]:
    """Return the lines of handoffs and open work that fit, the most urgent first."""
    lines: list[str] = []
    left = most_tokens
    for line in (*_handoff_lines(handoffs), *_work_lines(work)):
        size = tokens.count(line) + 1
        if size > left:
            continue
        lines.append(line)
        left -= size
    return _without_empty_headings(lines)


def _handoff_lines(handoffs: Sequence[Handoff]) -> Iterator[str]:
    for handoff in handoffs[:1]:
        of = one_line(handoff.from_agent or "an agent", 12)
        id_ = one_line(handoff.id, 40)
        yield (
            f"Handed over to you by {of}, {handoff.timestamp:%Y-%m-%d %H:%M} UTC, id {id_}."
            f" {_HANDOFF_HINT}"
        )
        yield f"Done > {one_line(handoff.what_was_done, _DONE_TOKENS)}"
        yield from _listed("Next", handoff.next, 5)
        yield from _listed("Known issue", handoff.known_issues, _MOST_LISTED)
        yield from _listed("Needs testing", handoff.needs_testing, _MOST_LISTED)
        if handoff.git_state:
            yield f"Git > {one_line(handoff.git_state, _LINE_TOKENS)}"
    if len(handoffs) > 1:
        ids = ", ".join(handoff.id for handoff in handoffs[1:4])
        yield f"More handoffs wait: {ids}"


def _work_lines(work: Sequence[OpenWork]) -> Iterator[str]:
    for place, one in enumerate(work):
        state, context = one.state, one.state.context
        branch = f", branch {one_line(str(context['branch']), 12)}" if context.get("branch") else ""
        who = one_line(one.agent or "an agent", 12)
        yield f"Open work ({who}, {one.at:%Y-%m-%d %H:%M} UTC{branch}):"
        yield f"Task > {one_line(state.task, _TASK_TOKENS)}"
        if place:  # of an older session only what is left
            yield from _listed("Next", state.next, 2)
            continue
        if context.get("last_request"):
            yield f"Last request > {one_line(str(context['last_request']), _LINE_TOKENS)}"
        yield from _listed("Next", state.next, 5)
        yield from _listed("Blocker", state.blockers, _MOST_BLOCKERS)
        yield from _listed("Decided", state.decisions[::-1], _MOST_DECIDED)
        yield from _listed("Done", state.progress[-_MOST_DONE:], _MOST_DONE)
        if context.get("uncommitted"):
            files = ", ".join(list(context["uncommitted"])[:_MOST_FILES])
            yield f"Not committed > {one_line(files, _LINE_TOKENS)}"
        elif context.get("files"):
            files = ", ".join(list(context["files"])[:_MOST_FILES])
            yield f"Changed > {one_line(files, _LINE_TOKENS)}"


def _listed(label: str, texts: Sequence[str], most: int) -> Iterator[str]:
    for text in texts[:most]:
        yield f"{label} > {one_line(text, _LINE_TOKENS)}"


def _without_empty_headings(lines: list[str]) -> list[str]:
    """Return lines without a heading that nothing follows."""
    return [
        line
        for place, line in enumerate(lines)
        if not line.endswith("):") or (lines[place + 1 : place + 2] and " > " in lines[place + 1])
    ]
