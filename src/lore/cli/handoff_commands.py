"""Commands about work in progress: the group handoff, and continuity."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Context, Option

from lore.cli.options import DryRun, Json, Yes, absolute, command_group, current_folder
from lore.cli.output import (
    bold,
    clean,
    coloured,
    counted,
    diff_line,
    format_duration,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
)
from lore.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import ContinuityEdit, Handoff, MetricsSummary, WorkingState

Here = Annotated[
    str,
    Option(
        "--project", help="Path or name of a project (default: this folder's).", callback=absolute
    ),
]
_CHANGES = {True: "uncommitted", False: "committed", None: ""}
"""What a ledger says about an agent's own edits."""

Names = Annotated[list[str] | None, Option(help="Several times for several.")]


handoff = command_group(
    "handoff", "Pass work on to another agent or session, take it over, and see where it stands."
)


def _project(name: str) -> str:
    return name or current_folder()


@handoff.command("state")
def show_state(
    context: Context,
    session: Annotated[
        str,
        Argument(help="Id of a session; else the open work.", show_default=False),
    ] = "",
    project: Here = "",
    json: Json = False,
) -> None:
    """Show the working state of a session: task, decisions, progress, blockers, next steps."""
    with open_memory(context) as memory:
        if session:
            _print_state(memory.handoffs.state(session), json=json)
            return
        memory.handoffs.catch_up(project=_project(project))
        work = memory.handoffs.open_work(project=_project(project))
    if json:
        print_json(work)
        return
    if not work:
        print("No session has left work open here.")
    for one in work:
        print(bold(f"{one.agent}, {one.at:%Y-%m-%d %H:%M} UTC, session {one.session_id}"))
        _print_state(one.state, json=False)


def _print_state(state: WorkingState, *, json: bool) -> None:
    if json:
        print_json(state)
        return
    for title, texts in (
        ("Task", (state.task,)),
        ("Last request", (str(state.context.get("last_request") or ""),)),
        ("Next", state.next),
        ("Blockers", state.blockers),
        ("Decisions", state.decisions),
        ("Progress", state.progress),
        ("Not committed", tuple(state.context.get("uncommitted") or ())),
    ):
        _print_list(title, texts)
    reason = state.context.get("reason")
    if reason:
        print(clean(f"Outcome: {state.context.get('outcome')} ({reason})"))


def _print_list(title: str, texts: Sequence[str]) -> None:
    shown = [text for text in texts if text]
    if shown:
        print(f"{title}:")
        for text in shown:
            print(f"   {one_line(clean(text), 400)}")


def continuity(
    context: Context,
    read: Annotated[
        bool, Option("--read", help="Show what people changed on the page, and take it in.")
    ] = False,
    project: Annotated[str, Option(help="Folder of the project.", metavar="PATH")] = ".",
    hidden: Annotated[
        bool, Option("--hidden", help="Also take in entries with hidden characters.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Write the state of the work in a project to CONTINUITY.md, or read changes from it.

    Where the setting tasks.continuity is on, the page is written after every turn of an agent. What
    people change on it stays; --read shows it and takes in what you approve.
    """
    folder = Path(
        absolute(project if "/" in project or project.startswith(".") else f"./{project}")
    )
    if not folder.is_dir():
        msg = f"{folder} is not a folder."
        raise InvalidInput(msg, hint="--project names the folder that holds the page.")
    with open_memory(context) as memory:
        if read:
            _read_page(memory, folder, hidden=hidden, yes=yes, dry_run=dry_run, json=json)
            return
        memory.handoffs.catch_up(project=str(folder))
        path = memory.continuity.write(str(folder), force=True)
    if path is None:
        msg = f"No session with a task is stored of {folder} yet."
        raise NotFound(msg, hint="'lore capture --all' reads the sessions of your agents.")
    if json:
        print_json({"file": str(path)})
    else:
        print(f"{clean(str(path))} has the state of the work.")


def _read_page(
    memory: Memory, folder: Path, *, hidden: bool, yes: bool, dry_run: bool, json: bool
) -> None:
    edits = memory.continuity.edits(str(folder))
    refused = [edit for edit in edits if edit.hidden and not hidden]
    accepted = [edit for edit in edits if hidden or not edit.hidden]
    acting = bool(accepted) and not dry_run
    if acting and not yes and not sys.stdin.isatty():
        msg = f"{counted(len(accepted), 'change')} would be taken in."
        raise InvalidInput(msg, hint="Add --yes to confirm, or --dry-run to preview.")
    if not json:
        _print_edits(edits)
    if refused:
        notice(f"{counted(len(refused), 'change')} skipped: the text contains hidden characters.")
    if acting and not yes and not typer.confirm(f"Take in {counted(len(accepted), 'change')}?"):
        raise typer.Exit(1)
    if acting:
        memory.continuity.apply(str(folder), accepted)
    if json:
        print_json({"changes": accepted, "left_out": refused, "dry_run": dry_run})
    elif not edits:
        print("Nobody has changed the page.")
    elif acting:
        print(f"Took in {counted(len(accepted), 'change')}.")


def _print_edits(edits: Sequence[ContinuityEdit]) -> None:
    for edit in edits:
        sign = "+" if edit.verb == "add" else "-"
        print(bold(edit.section))
        print(f"   {diff_line(f'{sign}{clean(edit.text)}')}")
        for reason in edit.hidden:
            print(coloured(f"   hidden: {clean(reason)}", "yellow"))


@handoff.command("checkpoint")
def record_checkpoint(
    context: Context,
    agent: Annotated[str, Argument(help="Name of the agent.", show_default=False)] = "",
    session: Annotated[str, Option(help="Id of its session.")] = "",
    task: Annotated[str, Option(help="What it is doing now.")] = "",
    project: Here = "",
    json: Json = False,
) -> None:
    """Record where an agent stands, or list where all agents of a project stand."""
    with open_memory(context, create=bool(agent)) as memory:
        if agent:
            ledgers = [
                memory.handoffs.checkpoint(
                    agent=agent, session=session, project=_project(project), current_task=task
                )
            ]
        else:
            ledgers = memory.handoffs.ledgers(project=_project(project))
    if json:
        print_json(ledgers[0] if agent else ledgers)
        return
    if not ledgers:
        print("No agent has a checkpoint here.")
    print_columns([
        (
            clean(one.agent_id), f"{one.last_checkpoint:%Y-%m-%d %H:%M}",
            counted(one.tasks_completed, "task"), counted(len(one.files_modified), "file"),
            _CHANGES[one.uncommitted_changes], one.last_git_commit,
            one_line(clean(one.current_task or one.current_goal), 60),
        )
        for one in ledgers
    ])  # fmt: skip


@handoff.command("write")
def write_handoff(
    context: Context,
    done: Annotated[
        str, Argument(help="What was done; the session's state if not given.", show_default=False)
    ] = "",
    to: Annotated[str, Option(help="The agent that goes on (default: anyone).")] = "",
    by: Annotated[str, Option(help="The agent that hands over.")] = "",
    session: Annotated[str, Option(help="Session whose state is handed over.")] = "",
    next_step: Names = None,
    issue: Names = None,
    needs_testing: Names = None,
    artifact: Names = None,
    project: Here = "",
    json: Json = False,
) -> None:
    """Store a handoff: it is given to the next session at its start."""
    folder = _project(project)
    with open_memory(context, create=True) as memory:
        written = memory.handoffs.write(
            to_agent=to,
            from_agent=by,
            session=session or _latest_session(memory, folder),
            project=folder,
            what_was_done=done,
            next_steps=next_step or (),
            known_issues=issue or (),
            needs_testing=needs_testing or (),
            artifacts=artifact or (),
        )
    if json:
        print_json(written)
    else:
        print(f"Stored handoff {written.id}.")


def _latest_session(memory: Memory, folder: str) -> str:
    live = memory.sessions.find_live_session(folder) if folder else None
    return live.id if live else ""


@handoff.command("read")
def read_handoff(
    context: Context,
    id_: Annotated[
        str, Argument(metavar="[ID]", help="Its id; the latest unread one if not given.")
    ] = "",
    to: Annotated[str, Option(help="Only handoffs for this agent, or for any.")] = "",
    keep: Annotated[bool, Option("--keep", help="Leave it unread.")] = False,
    project: Here = "",
    json: Json = False,
) -> None:
    """Show a handoff, which counts as taken over from then on."""
    with open_memory(context) as memory:
        shown = memory.handoffs.read(id_, to_agent=to, project=_project(project), mark=not keep)
    if json:
        print_json(shown)
    else:
        _print_handoff(shown)


@handoff.command("list")
def list_handoffs(
    context: Context,
    to: Annotated[str, Option(help="Only handoffs for this agent, or for any.")] = "",
    unread: Annotated[bool, Option("--unread", help="Only those that nobody took over.")] = False,
    limit: Annotated[int, Option("-n", "--limit", min=1, max=500, help="How many.")] = 20,
    project: Here = "",
    json: Json = False,
) -> None:
    """List the handoffs of a project, the latest first."""
    with open_memory(context) as memory:
        shown = memory.handoffs.recent(
            project=_project(project), to_agent=to, unread=unread, limit=limit
        )
    if json:
        print_json(shown)
        return
    if not shown:
        print("There is no handoff here.")
    print_columns([
        (
            one.id[:13], f"{one.timestamp:%Y-%m-%d %H:%M}",
            clean(f"{one.from_agent or '?'} to {one.to_agent or 'anyone'}"),
            "taken over" if one.read_at else "waiting", one_line(clean(one.what_was_done), 70),
        )
        for one in shown
    ])  # fmt: skip


def _print_handoff(one: Handoff) -> None:
    to = one.to_agent or "anyone"
    print(bold(clean(f"{one.id}, {one.timestamp:%Y-%m-%d %H:%M} UTC: {one.from_agent} to {to}")))
    for title, texts in (
        ("Done", (one.what_was_done,)),
        ("Next", one.next),
        ("Known issues", one.known_issues),
        ("Needs testing", one.needs_testing),
        ("Decisions", one.decisions),
        ("Artifacts", one.artifacts),
        ("Git", (one.git_state,)),
        ("Memories", one.relevant_patterns),
    ):
        _print_list(title, texts)


@handoff.command("metrics")
def show_metrics(
    context: Context,
    project: Here = "",
    everywhere: Annotated[bool, Option("--all", help="Of all projects.")] = False,
    json: Json = False,
) -> None:
    """Show efficiency and rewards of the tasks of the last seven days."""
    with open_memory(context) as memory:
        summary = memory.handoffs.metrics(project=_project(project), all_projects=everywhere)
    if json:
        print_json(summary)
    elif not summary.tasks:
        print("No task has ended in the last seven days.")
    else:
        _print_metrics(summary)


def _print_metrics(one: MetricsSummary) -> None:
    def figure(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.2f}"

    outcomes = ", ".join(f"{count} {name}" for name, count in one.outcomes.items())
    rate = "unknown" if one.success_rate is None else f"{one.success_rate:.0%}"
    print_columns([
        ("tasks", f"{one.tasks} ({outcomes})"),
        ("success", f"{rate} of those whose outcome is known"),
        ("time", f"{format_duration(one.median_duration_s)} in the middle,"
         f" {format_duration(one.mean_duration_s)} on average"),
        ("agents", f"{one.mean_agents:.2f} per task"),
        ("retries", f"{one.mean_retries:.2f} per task"),
        ("rewards", f"outcome {figure(one.outcome_reward)},"
         f" efficiency {figure(one.efficiency_reward)},"
         f" preference {figure(one.preference_reward)}"),
    ])  # fmt: skip
