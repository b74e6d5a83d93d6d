"""Episodes: what a session set out to do, did and reached, told without a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lore.records import Action, Episode, Message, Task
from lore.text import goals, lines, outcomes, stories, tasks, tokens
from lore.text.stories import MOST_FILES, Deed, Story, short

CONTENT_TOKENS = 150
"""An episode is found by recall and read in passing; its payload holds the rest."""

MOST_ACTIONS, MOST_ARTIFACTS, MOST_COMMITS, MOST_TASKS = 200, 20, 20, 20
MOST_SOURCES = 48
_TASKS_SHOWN = 4
_TASK_CHARS = 100
"""So much of each goal leaves room for the rest of the content."""


def derive(messages: Sequence[Message], *, agent: str = "", title: str = "") -> Episode | None:
    """Tell a session as an episode; None if nothing was asked or done in it."""
    if not messages:
        return None
    story = stories.tell(messages)
    goal, asked = _goal(story, title=title)
    if not goal and not story.deeds:
        return None
    outcome, reason = outcomes.judge(stories.ending(story))
    done, sources = _tasks(messages, story, title=title) if goal else ((), ())
    kept = story.deeds[: MOST_ACTIONS // 2] + story.deeds[MOST_ACTIONS // 2 :][-MOST_ACTIONS // 2 :]
    return Episode(
        goal=goal,
        outcome=outcome,
        reason=reason,
        agent=agent,
        calls=len(story.deeds),
        actions=tuple(_action(deed, messages[0]) for deed in kept),
        errors=tuple(error for error, _ in story.errors),
        files_read=tuple(story.read)[:MOST_FILES],
        files_changed=tuple(story.changed)[:MOST_FILES],
        artifacts=tuple(story.artifacts)[:MOST_ARTIFACTS],
        commits=tuple(story.commits)[:MOST_COMMITS],
        tasks=done,
        duration_s=_seconds(messages[0], messages[-1]),
        tokens=sum(message.tokens for message in messages),
        sources=tuple(dict.fromkeys((*asked, *sources, *_sources(story))))[:MOST_SOURCES],
        titled=bool(title) and goal != _goal(story)[0],
    )


def _goal(story: Story, *, title: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the goal of a story, and the message that says it."""
    goal, place = goals.find_goal((text for text, _ in story.requests), title=title)
    return goal, (story.requests[place][1],) if place >= 0 else ()


def _tasks(
    messages: Sequence[Message], session: Story, *, title: str
) -> tuple[tuple[Task, ...], tuple[str, ...]]:
    """Return the tasks of a session, and the messages that ask for them.

    Errors are told as in the whole session: one may be mended in a later task.
    """
    told: list[Task] = []
    sources: list[str] = []
    spans = tasks.spans(messages)
    for span in spans[:MOST_TASKS]:
        story = stories.tell(span) if len(spans) > 1 else session
        goal, asked = _goal(story, title="" if len(spans) > 1 else title)
        outcome, reason = outcomes.judge(stories.ending(story))
        first, last = span[0].ordinal, span[-1].ordinal
        told.append(
            Task(
                goal,
                outcome,
                reason,
                first,
                last,
                calls=len(story.deeds),
                errors=tuple(e for e, said in session.errors if first <= said.ordinal <= last),
                files_read=tuple(story.read)[:MOST_FILES],
                files_changed=tuple(story.changed)[:MOST_FILES],
            )
        )
        sources += asked
    return tuple(told), tuple(sources)


def _action(deed: Deed, first: Message) -> Action:
    return Action(_seconds(first, deed.message), deed.call.tool, deed.call.target, deed.result)


def _seconds(since: Message, until: Message) -> int:
    return max(0, round((until.created_at - since.created_at).total_seconds()))


def _sources(story: Story) -> Iterator[str]:
    """Return the messages that are quoted: errors, artifacts, and what was done last."""
    yield from (said.id for _, said in story.errors)
    yield from (id_ for id_ in story.artifacts.values() if id_)
    yield from (deed.message.id for deed in story.deeds[-MOST_SOURCES:])


def readable(episode: Episode) -> str:
    """Return an episode as a short text: goal, outcome, what was done, errors, files."""
    told = [*_asked(episode), *_done(episode)]
    if episode.files_changed:
        told.append(f"Changed: {', '.join(short(name) for name in episode.files_changed[:5])}")
    fixed = [error for error in episode.errors if error.resolution]
    open_ = [error for error in episode.errors if not error.resolution]
    told += [f"Error: {lines.one_line(e.message, 100)} → {e.resolution}" for e in fixed[:2]]
    if open_ and not fixed:
        told.append(f"Error: {lines.one_line(open_[-1].message, 100)}")
    return tokens.clip("\n".join(told), CONTENT_TOKENS)


def _asked(episode: Episode) -> Iterator[str]:
    """Yield what was asked for: one goal in full, or each in short with how it ended."""
    if len(episode.tasks) < 2:
        yield f"Goal: {episode.goal or 'not said'}"
        return
    for place, task in enumerate(episode.tasks[:_TASKS_SHOWN]):
        goal = lines.one_line(task.goal, _TASK_CHARS)
        yield f"{'Then' if place else 'Goal'}: {goal} ({task.outcome})"
    if len(episode.tasks) > _TASKS_SHOWN:
        yield f"And {len(episode.tasks) - _TASKS_SHOWN} more"


def _done(episode: Episode) -> Iterator[str]:
    """Yield how it ended and what was done; of a talk without a deed that says nothing."""
    is_known = episode.outcome in ("failure", "partial")
    if is_known or (episode.calls and episode.outcome == "success"):
        yield f"Outcome: {episode.outcome} ({episode.reason})"
    if episode.calls:
        span = f" in {_span(episode.duration_s)}" if episode.duration_s else ""
        commits = f"; commits {', '.join(episode.commits[:3])}" if episode.commits else ""
        yield f"Did: {_counts(episode)}{span}{commits}"


def _counts(episode: Episode) -> str:
    failed = sum(action.result == "failed" for action in episode.actions)
    counted = f"{episode.calls} tool call{'' if episode.calls == 1 else 's'}"
    return f"{counted}, {failed} failed" if failed else counted


def _span(seconds: int) -> str:
    if seconds < 90:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"
