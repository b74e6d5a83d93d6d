"""Tools about what tasks taught: what to review, learnings, and skills as Markdown pages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lore.memory import Memory
from lore.records import Fragment, Origin
from lore.tools import tool_output
from lore.tools.tool import Arguments, Caller, Outcome, Result, Seen, Tool, require_stored

MAX_LESSONS = 50
"""The limit of a list; the command line has longer ones."""

_ALL = 1_000
"""More skills than a project has: those of other projects are left out afterwards."""

_LINE_TOKENS = 60
"""An error, or what resolved it, on its line; the data has all."""

_PAGE_CHARS = 50_000
"""A page that an agent can still read whole."""


class ListArguments(Arguments):
    """What review_lessons and skills take."""

    everywhere: bool = Field(
        False,  # noqa: FBT003 - the default
        description="Of all projects, not only the present one.",
    )
    limit: int = Field(20, ge=1, le=MAX_LESSONS, description="Most entries.")


class ReviewedLesson(Result):
    """A pattern, anti-pattern or skill, and why to look at it."""

    id: str
    kind: str
    title: Seen
    reason: str
    failures: int
    unused_days: int


class ReviewResult(Result):
    """What to review, the harmful first."""

    lessons: tuple[ReviewedLesson, ...]


def review_lessons(memory: Memory, arguments: ListArguments, caller: Caller) -> Outcome:
    """Return lessons that nobody used, or that were followed by failure."""
    project = _project(memory, caller, everywhere=arguments.everywhere)
    reviewed = memory.tasks.review(project=project or "")
    entries = [one for one in reviewed if project is not None or _is_for_all(one.fragment)]
    entries = entries[: arguments.limit]
    result = ReviewResult(
        lessons=tuple(
            ReviewedLesson(
                id=entry.fragment.id,
                kind=tool_output.voice(entry.fragment.kind, entry.fragment.origin),
                title=entry.fragment.summary,
                reason=entry.reason,
                failures=entry.failures,
                unused_days=entry.unused_days,
            )
            for entry in entries
        )
    )
    if not entries:
        return Outcome("Nothing to review: what tasks taught was used, and helped.", result)
    short = memory.search.short_ids([one.id for one in result.lessons])
    lines = [
        f"{short[one.id]} {one.kind}, {one.reason}: {tool_output.title(one.title)}"
        for one in result.lessons
    ]
    return Outcome(tool_output.wrap_lines([tool_output.QUOTED, *lines]), result)


class LearningsArguments(ListArguments):
    """What learnings takes."""

    since: str = Field(
        "7d", max_length=100, description="An age such as 24h, a date, or 'last week'."
    )


class LearningEntry(Result):
    """An error, and what resolved it."""

    at: datetime
    type: Seen
    message: Seen
    resolution: Seen
    episode_id: str


class LearningsResult(Result):
    """Errors with their resolutions, newest first."""

    learnings: tuple[LearningEntry, ...]


def learnings(memory: Memory, arguments: LearningsArguments, caller: Caller) -> Outcome:
    """Return the errors of the last days with what resolved them."""
    project = _project(memory, caller, everywhere=arguments.everywhere)
    listed = (
        []
        if project is None
        else memory.tasks.learnings(since=arguments.since, project=project)[: arguments.limit]
    )
    result = LearningsResult(learnings=tuple(map(LearningEntry.model_validate, listed)))
    if not listed:
        return Outcome("No error was resolved in this time.", result)
    lines = [
        f"{tool_output.QUOTE_PREFIX}{one.at:%Y-%m-%d}"
        f" {tool_output.one_line(one.message, _LINE_TOKENS)}"
        f" -> {tool_output.one_line(one.resolution, _LINE_TOKENS)}"
        for one in result.learnings
    ]
    return Outcome(tool_output.wrap_lines([tool_output.QUOTED, *lines]), result)


class SkillEntry(Result):
    """A skill by name."""

    id: str
    name: Seen
    description: Seen
    origin: Origin
    confidence: float


class SkillsResult(Result):
    """Skills, the newest first."""

    skills: tuple[SkillEntry, ...]


def skills(memory: Memory, arguments: ListArguments, caller: Caller) -> Outcome:
    """Return the skills of the caller's project."""
    project = _project(memory, caller, everywhere=arguments.everywhere)
    stored = memory.tasks.lessons("skill", project=project or "", limit=_ALL)
    listed = [one for one in stored if project is not None or _is_for_all(one)]
    listed = listed[: arguments.limit]
    result = SkillsResult(
        skills=tuple(
            SkillEntry(
                id=one.id,
                name=str(one.payload.get("name") or one.summary),
                description=str(one.payload.get("description") or ""),
                origin=one.origin,
                confidence=round(one.confidence, 2),
            )
            for one in listed
        )
    )
    if not listed:
        return Outcome("There are no skills yet. skill_write() stores one.", result)
    short = memory.search.short_ids([one.id for one in result.skills])
    lines = [
        f"{short[one.id]} {tool_output.voice('skill', one.origin)} {tool_output.title(one.name)}"
        for one in result.skills
    ]
    heading = f"{tool_output.QUOTED} skill_read(skill) gives the steps."
    return Outcome(tool_output.wrap_lines([heading, *lines]), result)


class SkillReadArguments(Arguments):
    """What skill_read takes."""

    skill: str = Field(min_length=1, max_length=200, description="Id or name.")


class SkillPageResult(Result):
    """A skill as a Markdown page."""

    page: Seen
    origin: Origin


def read_skill(memory: Memory, arguments: SkillReadArguments, caller: Caller) -> Outcome:
    """Return a skill as Markdown."""
    project = _project(memory, caller, everywhere=False)
    place = caller.project if project is None else project
    skill = memory.tasks.find_skill(arguments.skill, project=place)
    page = SkillPageResult(page=memory.tasks.skill_page(skill.id), origin=skill.origin)
    sheet = tool_output.PromptBlock(tool_output.MAX_TOKENS, tool_output.QUOTED)
    if not sheet.add_quote(tool_output.voice("Skill", skill.origin), page.page):
        sheet.add("The page is too long for a prompt; the data has all of it.")
    return Outcome(sheet.text(), page)


class SkillWriteArguments(Arguments):
    """What skill_write takes."""

    page: str = Field(
        min_length=1,
        max_length=_PAGE_CHARS,
        description="Markdown: a title, '## Steps', and if useful '## Prerequisites',"
        " '## Common Errors & Fixes', '## Exit Criteria'.",
    )


class SkillWriteResult(Result):
    """The stored skill."""

    id: str
    name: Seen


def write_skill(memory: Memory, arguments: SkillWriteArguments, caller: Caller) -> Outcome:
    """Store a skill of the caller's project; one of the same name is superseded."""
    require_stored(memory, caller)
    project = _project(memory, caller, everywhere=False)
    stored = memory.tasks.add_skill(
        arguments.page,
        project=caller.project if project is None else project,
        origin=caller.origin,
    )
    [short] = memory.search.short_ids([stored.id]).values()
    result = SkillWriteResult(id=stored.id, name=stored.summary)
    return Outcome(f"Stored skill {short}: {tool_output.title(stored.summary)}", result)


def _is_for_all(fragment: Fragment) -> bool:
    """Return whether a lesson belongs to no project or session in particular."""
    return not fragment.project_id and not fragment.session_id


def _project(memory: Memory, caller: Caller, *, everywhere: bool) -> str | None:
    """Return the id of the caller's project, '' for all, or None if nothing is known of it."""
    if everywhere or not caller.project:
        return ""
    project = memory.sessions.find_project(caller.project)
    return project.id if project else None


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="review_lessons",
        title="Lessons to review",
        description=(
            "Call this to see which patterns, warnings and skills were not used for 60 days, or"
            " were followed by failure twice; the person decides what becomes of them."
        ),
        arguments=ListArguments,
        result=ReviewResult,
        run=review_lessons,
        profile="full",
    ),
    Tool(
        name="learnings",
        title="Learnings",
        description="Call this to see which errors were met lately and what resolved them.",
        arguments=LearningsArguments,
        result=LearningsResult,
        run=learnings,
        profile="full",
    ),
    Tool(
        name="skills",
        title="Skills",
        description="Call this to see which skills this project has: steps that lead to a goal.",
        arguments=ListArguments,
        result=SkillsResult,
        run=skills,
        profile="full",
    ),
    Tool(
        name="skill_read",
        title="Read a skill",
        description="Call this with an id or name of skills() to get a skill as Markdown.",
        arguments=SkillReadArguments,
        result=SkillPageResult,
        run=read_skill,
        profile="full",
    ),
    Tool(
        name="skill_write",
        title="Write a skill",
        description=(
            "Call this to store steps that lead to a goal as a skill; one of the same name is"
            " superseded, unless the person wrote it."
        ),
        arguments=SkillWriteArguments,
        result=SkillWriteResult,
        run=write_skill,
        reads_only=False,
        profile="full",
    ),
)
"""What tasks taught, in the full profile only: before_task gives what matters unasked."""
