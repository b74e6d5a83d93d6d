"""Commands that tell what was done in sessions: episode, episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lore.cli.output import (
    Json,
    Project,
    bold,
    coloured,
    counted,
    dim,
    lasting,
    one_line,
    open_memory,
    print_columns,
    print_json,
    project_names,
)

if TYPE_CHECKING:
    from lore.records import Action, Episode, Task

_COLOURS = {"success": "green", "failure": "red", "partial": "yellow"}
_SHOWN = 20
"""Actions and files are many; '--json' has all that is kept of them."""


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (episode, episodes):
        app.command()(command)


def episode(
    context: typer.Context,
    session: Annotated[
        str,
        typer.Argument(
            help="Id of a session or of its episode, or the agent's own name for the session."
        ),
    ],
    json: Json = False,
) -> None:
    """Tell what a session was for, what was done in it and how it ended.

    The episode is kept, so that recall finds it; telling it again changes it only if the session
    went on.
    """
    with open_memory(context) as memory:
        told = memory.episode(session)
    if json:
        print_json(told)
    elif told is None:
        print("Nothing was asked or done in that session.")
    else:
        _print_episode(told)


def _print_episode(told: Episode) -> None:
    print(bold(one_line(told.goal, 400) or "(no goal was named)"))
    outcome = coloured(told.outcome, _COLOURS.get(told.outcome, "white"))
    print(f"   {outcome}: {one_line(told.reason, 200)}")
    size = f"{counted(told.calls, 'tool call')}, {lasting(told.duration_s)}, {told.tokens:,} tokens"
    print(f"   {size}{f' of {one_line(told.agent, 40)}' if told.agent else ''}")
    if len(told.tasks) > 1:
        _print_tasks(told.tasks)
    if told.errors:
        print(bold("\nErrors"))
    for error in told.errors:
        fix = one_line(error.resolution, 160) or "not fixed"
        print(f"   {error.type}: {one_line(error.message, 160)}\n      {dim('→')} {fix}")
    for title, names in (
        ("Changed", told.files_changed),
        ("Artifacts", told.artifacts),
        ("Commits", told.commits),
    ):
        _print_list(title, names)
    _print_actions(told.actions)


def _print_tasks(tasks: tuple[Task, ...]) -> None:
    print(bold("\nTasks"))
    for place, task in enumerate(tasks, 1):
        outcome = coloured(task.outcome, _COLOURS.get(task.outcome, "white"))
        size = f"messages {task.first} to {task.last}, {counted(task.calls, 'tool call')}"
        if task.files_changed:
            size += f", {counted(len(task.files_changed), 'file')} changed"
        if unmended := sum(not error.resolution for error in task.errors):
            size += f", {counted(unmended, 'error')} not fixed"
        print(f"   {place}. {one_line(task.goal, 160) or '(no goal was named)'}")
        print(f"      {outcome}: {one_line(task.reason, 120)}; {dim(size)}")


def _print_list(title: str, names: tuple[str, ...]) -> None:
    if names:
        print(bold(f"\n{title}"))
    for name in names[:_SHOWN]:
        print(f"   {one_line(name, 160)}")
    if len(names) > _SHOWN:
        print(f"   and {len(names) - _SHOWN} more")


def _print_actions(actions: tuple[Action, ...]) -> None:
    if not actions:
        return
    print(bold("\nThe last of what was done"))
    print_columns(
        (f"   {lasting(a.t)}", a.result, one_line(a.action, 30), one_line(a.target, 100))
        for a in actions[-_SHOWN:]
    )


def episodes(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most episodes.")] = 20,
    project: Project = "",
    json: Json = False,
) -> None:
    """List the latest episodes: when, how it ended, in which project, and the goal."""
    with open_memory(context) as memory:
        kept = memory.episodes(project=project, limit=limit)
        short = memory.short_ids([one.fragment.id for one in kept])
        names = project_names(memory)
    if json:
        print_json([{"id": k.fragment.id, "session_id": k.fragment.session_id,
                     "project_id": k.fragment.project_id,
                     "at": k.at, "episode": k.episode} for k in kept])  # fmt: skip
        return
    print_columns(
        (
            short[one.fragment.id],
            f"{one.at:%Y-%m-%d %H:%M}",
            one.episode.outcome,
            names.get(one.fragment.project_id or "", ""),
            one_line(one.episode.goal),
        )
        for one in kept
    )
    if not kept:
        print("No episodes yet: 'lore episode SESSION' tells one.")
