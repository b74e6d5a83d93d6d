"""Handoffs: what one agent passes on to another, drafted from its working state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from lore.records.task_records import Handoff
from lore.tasks.git_state import GitState
from lore.tasks.ledgers import is_code
from lore.tasks.working_state import TrackedState
from lore.text import sentences

MOST_ENTRIES, _DONE_CHARS = 12, 900
"""What a reader takes in at once: a dozen files, a paragraph."""


def draft_handoff(
    id_: str,
    state: TrackedState,
    git: GitState,
    *,
    from_agent: str,
    to_agent: str,
    at: datetime,
    patterns: Iterable[str] = (),
) -> Handoff:
    """Return a handoff that says what a working state and the repository say."""
    return Handoff(
        id=id_,
        from_agent=from_agent,
        to_agent=to_agent,
        timestamp=at,
        what_was_done=_what_was_done(state),
        artifacts=tuple(dict.fromkeys((*state.context.files, *state.context.pages)))[:MOST_ENTRIES],
        git_state=_git_state(git, state),
        needs_testing=tuple(_needs_testing(state)),
        known_issues=tuple(note.text for note in state.blockers),
        relevant_patterns=tuple(dict.fromkeys(patterns))[:MOST_ENTRIES],
        next=tuple(note.text for note in state.next),
        decisions=tuple(note.text for note in state.decisions),
    )


def _what_was_done(state: TrackedState) -> str:
    lines = [f"Task: {state.task.text}"] if state.task.text else []
    if state.request.text:
        lines.append(f"Last request: {state.request.text}")
    lines += [note.text for note in state.progress]
    return sentences.one_line(". ".join(line.rstrip(".") for line in lines), _DONE_CHARS)


def _git_state(git: GitState, state: TrackedState) -> str:
    """Return branch and commit, and what the session itself left uncommitted."""
    commits = [f"commit {note.text}" for note in state.context.commits[-1:]]
    parts = [git.text] if git.text else commits
    if state.context.uncommitted:
        parts.append(f"{len(state.context.uncommitted)} changed files not committed")
    return ", ".join(parts)


def _needs_testing(state: TrackedState) -> Iterator[str]:
    check = state.context.check
    code = [name for name in state.context.files if is_code(name)]
    if "failed" in check:
        yield f"The last {check.split()[0]} failed"
    elif code and (not check or "files changed since" in check):
        after = f" since the last {check.split()[0]}" if check else ""
        yield f"No check was seen{after} after changes to {', '.join(code[:4])}"
