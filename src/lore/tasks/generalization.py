"""Generalization by a chat: what several similar episodes teach, in its words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lore.errors import BudgetSpent, ProviderError
from lore.llm.summarizer import Summarizer
from lore.records import AntiPattern, Pattern, Skill, StoredEpisode
from lore.tasks import lessons
from lore.tasks.command_steps import CAUSES, cause_of, done_steps
from lore.tasks.lessons import Lesson
from lore.text import episodes as episode_text
from lore.text import sentences

if TYPE_CHECKING:
    from lore.llm.structured_output import Taught
    from lore.tasks.task_consolidation import Generalize

log = logging.getLogger("lore.tasks")

_MOST_TASKS, _MOST_STEPS, _MOST_FILES, _MOST_ERRORS = 12, 15, 8, 4
_TEXT_CHARS = 400


def asker_of(summarizer: Summarizer, clean: Callable[[str], str]) -> Generalize | None:
    """Return what asks the chat of a summarizer; None without a chat.

    If the chat fails or its budget is spent, what was learned without it stands.
    """
    if summarizer.identity == "offline":
        return None
    from lore.llm.chat_summarizer import ChatSummarizer

    if not isinstance(summarizer, ChatSummarizer):
        return None

    def ask(cluster: Sequence[StoredEpisode]) -> list[Lesson]:
        shown = list(cluster[-_MOST_TASKS:])
        try:
            taught = summarizer.generalize([describe(one) for one in shown])
        except (ProviderError, BudgetSpent) as error:
            log.warning("chat did not generalize", extra={"error": type(error).__name__})
            return []
        return lessons_of(taught, [one.fragment.id for one in shown], clean)

    return ask


def describe(stored: StoredEpisode) -> str:
    """Return an episode for the chat: what people asked for and what the agent did.

    It has none of the output of tools, which may say anything: errors are told by their cause.
    """
    episode = stored.episode
    lines = [f"Goal: {lessons.theme(episode.goal)}" if not episode.titled else "Goal: not said"]
    lines.append(f"Outcome: {episode.outcome} ({episode.reason})")
    if episode.files_changed:
        names = (episode_text.short_name(name) for name in episode.files_changed[:_MOST_FILES])
        lines.append(f"Changed: {', '.join(names)}")
    if steps := done_steps(lessons.targets(episode))[-_MOST_STEPS:]:
        lines.append(f"Commands that succeeded, in order: {'; '.join(steps)}")
    for error in [one for one in episode.errors if one.command][:_MOST_ERRORS]:
        why = CAUSES.get(cause_of(error.message), "for an unknown cause")
        then = f"; then `{error.retry}` succeeded" if error.retry else ""
        lines.append(f"Failed: `{error.command}` ({why}){then}")
    return "\n".join(lines)


def lessons_of(taught: Taught, ids: Sequence[str], clean: Callable[[str], str]) -> list[Lesson]:
    """Return the lessons of an answer that name the tasks they come from."""

    def text(raw: str) -> str:
        return sentences.one_line(clean(raw), _TEXT_CHARS)

    def texts(raw: Sequence[str]) -> tuple[str, ...]:
        return tuple(line for line in map(text, raw) if line)

    learned: list[Lesson] = []
    for one in taught.patterns:
        sources = _sources(one.from_items, ids)
        if one.pattern.strip() and len(sources) >= lessons.FEWEST_MEMBERS:
            pattern = Pattern(
                text(one.pattern), text(one.category), texts(one.conditions),
                text(one.correct_approach), text(one.incorrect_approach),
                lessons.confidence_of(len(sources)), sources,
            )  # fmt: skip
            learned.append(lessons.lesson_of(pattern, sources))
    for warning in taught.anti_patterns:
        sources = _sources(warning.from_items, ids)
        if warning.what_fails.strip() and warning.prevention.strip() and sources:
            learned.append(
                lessons.lesson_of(
                    AntiPattern(
                        text(warning.what_fails), text(warning.why), text(warning.prevention),
                        sources[0], lessons.confidence_of(len(sources)), sources,
                    ),
                    sources,
                )
            )  # fmt: skip
    for skill in taught.skills:
        sources = _sources(skill.from_items, ids)
        if skill.name.strip() and texts(skill.steps) and len(sources) >= lessons.FEWEST_MEMBERS:
            made = Skill(
                text(skill.name), texts(skill.steps), text(skill.description),
                texts(skill.prerequisites), exit_criteria=texts(skill.exit_criteria),
            )  # fmt: skip
            learned.append(lessons.lesson_of(replace(made, source_episodes=sources), sources))
    return learned


def _sources(numbers: Sequence[int], ids: Sequence[str]) -> tuple[str, ...]:
    cited = sorted({number for number in numbers if 1 <= number <= len(ids)})
    return tuple(ids[number - 1] for number in cited)
