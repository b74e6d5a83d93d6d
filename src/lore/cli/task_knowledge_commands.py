"""Commands of what tasks taught: tasks, learnings, skills."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from lore.cli.options import DryRun, Json, Project, command_group, current_repository, given_path
from lore.cli.output import (
    bold,
    clean,
    counted,
    dim,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
    print_result,
    read_text,
    tallied,
)
from lore.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lore.memory import Memory
    from lore.records import Fragment, Learning

_LINE = 160

tasks = command_group(
    "tasks",
    """Learn from finished tasks: patterns that worked, what fails, and skills.

The daemon does this after each session and in every maintenance cycle.""",
)

Since = Annotated[str, Option(help="Only since: an age such as 24h or 7d, a date, 'last week'.")]


@tasks.command("consolidate")
def consolidate_tasks(
    context: Context, since: Since = "", project: Project = "", json: Json = False
) -> None:
    """Turn episodes into patterns, anti-patterns and skills.

    Similar tasks that succeeded give a pattern, resolved errors of commands an anti-pattern, and
    commands that succeeded in the same order a skill. What is known already gets the evidence.
    """
    with open_memory(context) as memory:
        result = memory.tasks.consolidate(since=since, project=project)
        notice(memory.notice)
        if json:
            print_json(result)
            return
        new = (*result.patterns, *result.anti_patterns, *result.skills)
        counts = {
            "patterns": len(result.patterns),
            "anti-patterns": len(result.anti_patterns),
            "skills": len(result.skills),
            "confirmed": len(result.confirmed),
            "merged": len(result.merged),
        }
        done = tallied({name: count for name, count in counts.items() if count}) or "nothing new"
        print(f"{counted(result.episodes, 'episode')}: {done}.")
        learned = {one.id: one for one in memory.tasks.lessons(limit=1_000)}
        _print_lessons(memory, [learned[id_] for id_ in new if id_ in learned])


@tasks.command("lessons")
def list_lessons(
    context: Context,
    kind: Annotated[str, Option(help="pattern, anti_pattern or skill.")] = "",
    project: Project = "",
    limit: Annotated[int, Option(min=1, max=1_000, help="How many at most.")] = 50,
    json: Json = False,
) -> None:
    """List what tasks taught, the newest first."""
    with open_memory(context, or_empty=True) as memory:
        listed = memory.tasks.lessons(kind or None, project=project, limit=limit)  # type: ignore[arg-type]  # lessons refuses others
        if json:
            print_json(listed)
        elif listed:
            _print_lessons(memory, listed)
        else:
            print("Nothing was learned from tasks yet. 'lore tasks consolidate' does so.")


@tasks.command("review")
def review_lessons(context: Context, project: Project = "", json: Json = False) -> None:
    """List what was not used for 60 days, or was used and followed by failure twice.

    'lore delete ID' removes what is wrong; it is not learned again.
    """
    with open_memory(context, or_empty=True) as memory:
        entries = memory.tasks.review(project=project)
        if json:
            print_json(entries)
            return
        if not entries:
            print("Nothing to review: what tasks taught was used, and helped.")
            return
        short = memory.search.short_ids([entry.fragment.id for entry in entries])
        print_columns(
            (
                short[entry.fragment.id],
                entry.fragment.kind,
                entry.reason,
                one_line(entry.fragment.summary, _LINE),
            )
            for entry in entries
        )


@tasks.command("retain")
def retain_episodes(context: Context, dry_run: DryRun = False, json: Json = False) -> None:
    """Summarize episodes older than 7 days, and archive those older than 30.

    An episode that a pattern refers to is not archived. Messages stay as they are.
    """
    with open_memory(context) as memory:
        result = memory.tasks.apply_retention(dry_run=dry_run)
    verb = "would be" if dry_run else "were"
    text = (
        f"{counted(result.summarized, 'episode')} {verb} summarized, {result.archived:,} archived;"
        f" {result.referenced:,} old ones stay because something refers to them."
    )
    print_result(result, text, json=json)


@tasks.command("archived")
def list_archived(
    context: Context,
    query: Annotated[str, Argument(help="Words to search for; all without them.")] = "",
    project: Project = "",
    limit: Annotated[int, Option(min=1, max=1_000, help="How many at most.")] = 20,
    json: Json = False,
) -> None:
    """List or search archived episodes, which other commands leave out."""
    with open_memory(context, or_empty=True) as memory:
        listed = memory.tasks.archived(query, project=project, limit=limit)
        if json:
            print_json(listed)
        elif listed:
            _print_lessons(memory, listed)
        else:
            print("No archived episode matches." if query else "No episode is archived.")


def learnings(
    context: Context,
    since: Since = "7d",
    project: Project = "",
    everything: Annotated[
        bool, Option("--all", help="Also slips of an agent, and what a second try resolved.")
    ] = False,
    json: Json = False,
) -> None:
    """List the errors of each day with what resolved them."""
    with open_memory(context, or_empty=True) as memory:
        listed = memory.tasks.learnings(since=since, project=project, everything=everything)
    if json:
        print_json(listed)
        return
    if not listed:
        hint = " '--since 365d' looks further back." if since else ""
        print(f"No resolved errors{f' since {since}' if since else ''}.{hint}")
    for day, group in groupby(listed, key=lambda one: f"{one.at:%Y-%m-%d}"):
        print(bold(day))
        for one in group:
            _print_learning(one)


def _print_learning(learning: Learning) -> None:
    print(f"  {one_line(learning.message, _LINE)}")
    print(dim(f"    → {one_line(learning.resolution, _LINE)}"))


skills = command_group(
    "skills",
    """List, show and add skills: steps that lead to a goal, as Markdown pages.""",
)


@skills.command("list")
def list_skills(context: Context, project: Project = "", json: Json = False) -> None:
    """List skills, the newest first."""
    with open_memory(context, or_empty=True) as memory:
        listed = memory.tasks.lessons("skill", project=project)
        if json:
            print_json(listed)
        elif listed:
            _print_lessons(memory, listed)
        else:
            print("There are no skills yet. 'lore skills add FILE' adds one.")


@skills.command("show")
def show_skill(
    context: Context,
    name: Annotated[str, Argument(help="Id or name of a skill.")],
    json: Json = False,
) -> None:
    """Print a skill as a Markdown page."""
    with open_memory(context) as memory:
        page = memory.tasks.skill_page(name)
    print_result({"page": page}, page.rstrip("\n"), json=json)


@skills.command("add")
def add_skill(
    context: Context,
    file: Annotated[str, Argument(help="A Markdown page, or '-' for standard input.")],
    project: Annotated[
        str, Option("--project", help="Its project; by default the current repository.")
    ] = "",
    everywhere: Annotated[
        bool, Option("--everywhere", help="For all projects, not only the current one.")
    ] = False,
    json: Json = False,
) -> None:
    """Store the skill that a Markdown page describes; one of the same name is replaced.

    The page has a title, '## Steps' with at least one step, and if you like '## Prerequisites',
    '## Common Errors & Fixes' and '## Exit Criteria'.
    """
    if project and everywhere:
        msg = "Give --project or --everywhere, not both."
        raise InvalidInput(msg)
    page = read_text("-") if file == "-" else _read_page(given_path(file))
    place = "" if everywhere else project or current_repository()
    with open_memory(context, create=True) as memory:
        stored = memory.tasks.add_skill(page, project=place)
        short = memory.search.short_ids([stored.id])[stored.id]
    text = f"Stored the skill '{stored.summary}' as {short}."
    print_result(stored, text, json=json)


def _read_page(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        msg = f"There is no file {path}."
        raise NotFound(msg) from None
    except UnicodeDecodeError:
        msg = f"{path} is not a text in UTF-8."
        raise InvalidInput(msg) from None


def _print_lessons(memory: Memory, listed: Sequence[Fragment]) -> None:
    short = memory.search.short_ids([one.id for one in listed])
    print_columns(
        (short[one.id], one.kind, f"{one.confidence:.2f}", one_line(clean(one.content), _LINE))
        for one in listed
    )
