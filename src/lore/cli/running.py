"""Commands of the daemon: up, down, status, logs, jobs, service."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lore.cli.ending import leave_threads
from lore.cli.output import (
    Json,
    bold,
    clean,
    coloured,
    counted,
    dim,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
    tallied,
)
from lore.errors import AlreadyRunning, InvalidInput, LoreError
from lore.text.money import dollars

if TYPE_CHECKING:
    from lore.daemon.status import ChoreStatus, Status
    from lore.daemon.units import Unit
    from lore.records import Job
    from lore.settings import Settings

jobs = typer.Typer(name="jobs", invoke_without_command=True, rich_markup_mode=None)
service = typer.Typer(name="service", invoke_without_command=True, rich_markup_mode=None)

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the file and change nothing.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (up, down, status, logs):
        app.command()(command)
    app.add_typer(jobs)
    app.add_typer(service)


def _settings(context: typer.Context) -> Settings:
    from lore.settings import load

    return load(home=context.obj).settings


def up(
    context: typer.Context,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Run in the background; return once it is up.")
    ] = False,
    in_background: Annotated[bool, typer.Option("--in-background", hidden=True)] = False,
) -> None:
    """Run the daemon: capture, embedding, jobs and upkeep.

    It serves one home and stops within 4 seconds on Ctrl-C or SIGTERM. Exit code 12 says that
    one is running already; with --detach that is no error. Where the memory cannot be opened, it
    passes on what agents ask their models, and says so; that is no error either.
    """
    settings = _settings(context)
    if detach:
        _start(settings.home)
        return
    from lore.daemon import background
    from lore.daemon.running import serve

    def tell(said: str) -> None:
        notice(said)
        if in_background:
            background.let_go(settings.home)
        else:
            print(f"{_told_up(settings.home, os.getpid())}; Ctrl-C stops it.", flush=True)

    serve(settings, echo=not in_background and sys.stderr.isatty(), on_ready=tell)
    leave_threads()


def _start(home: Path) -> None:
    from lore.daemon import background, lock

    if holder := lock.find_holder(home):
        print(f"Lore is running already (pid {holder.pid}).")
        return
    started = background.start(home)
    if started.code == AlreadyRunning.exit_code and (holder := lock.find_holder(home)):
        print(f"Lore is running already (pid {holder.pid}).")  # another has just started it
        return
    print(clean(started.said), end="", file=sys.stderr)
    if started.code is not None:
        raise typer.Exit(started.code or LoreError.exit_code)
    print(f"{_told_up(home, started.pid)}.")


def _told_up(home: Path, pid: int) -> str:
    from lore.daemon.status import PASSING, read

    without = " without memory" if read(home).state == PASSING else ""
    return f"Lore is up{without} (pid {pid})"


def down(
    context: typer.Context,
    force: Annotated[
        bool, typer.Option("--force", help="Kill it if it has not stopped within 4 seconds.")
    ] = False,
) -> None:
    """Stop the daemon and wait until it has stopped.

    Where none is running there is nothing to do, which is no error.
    """
    from lore.daemon import background

    pid = background.stop(_settings(context).home, force=force)
    print("Lore is not running." if pid is None else f"Lore has stopped (pid {pid}).")


def status(context: typer.Context, json: Json = False) -> None:
    """Show whether the daemon is running, and what it does.

    Exit code 0 either way; `running` in the JSON tells.
    """
    from lore.daemon.status import read

    settings = _settings(context)
    found = read(settings.home)
    if not found.running:
        found = _with_queues(context, settings, found)
    elif not _answers(settings.home):
        told = "It does not answer: 'lore down --force' ends it, 'lore up -d' starts it again."
        found = replace(found, state="hung", server_notice=told)
    if not found.budget_usd:  # nobody counted yet
        found = replace(found, budget_usd=settings.background_daily_budget)
    if not found.running:
        found = replace(found, day_budget_usd=settings.daily_budget)
    if json:
        print_json(found)
    else:
        _print_status(found)
        notice(found.notice)


def _answers(home: Path) -> bool:
    """Tell whether a daemon that listens says that it is well."""
    from lore.proxy.address import find_address
    from lore.proxy.wire import is_well

    address = find_address(str(home))
    return address is None or is_well(address)


def _print_status(found: Status) -> None:
    from lore.daemon.status import PASSING, told_gateway, told_hooks

    if found.running and found.since:
        colour = "red" if found.state in ("hung", PASSING) else "green"
        state, since = coloured(found.state, colour), _moment(found.since)
        size = f"{found.memory_mb:.0f} MB"
        print(f"{bold('running')}  {state}, pid {found.pid}, since {since}, {size}")
    else:
        print(f"{bold('not running')}  'lore up --detach' starts it.")
    is_passing = found.running and found.state == PASSING
    if found.server:
        opens = "" if is_passing else "  'lore open' shows it in a browser"
        print(f"server   {found.server}{opens}")
    if found.running and found.server_notice:
        print(f"server   {one_line(found.server_notice, 300)}")
    if found.running and (hooks := told_hooks(found)):
        print(f"hooks    {hooks}")
    if found.running and (passed := told_gateway(found)):
        print(f"gateway  {clean(passed)}")
    if is_passing:
        _print_trouble(found)
        return
    _print_work(found)


def _print_trouble(found: Status) -> None:
    """Show what keeps the memory from being opened, if that could be written down."""
    if found.last_error:
        print(f"memory   {coloured(one_line(found.last_error, 300), 'red')}")


def _print_work(found: Status) -> None:
    parked = f", {found.jobs_parked:,} parked ('lore jobs')" if found.jobs_parked else ""
    pending = counted(found.jobs_pending, "job")
    print(f"waiting  {counted(found.waiting, 'item')} to embed, {pending} pending{parked}")
    day_usd = found.day_budget_usd
    whole = "no daily_budget is set" if day_usd is None else f"of {dollars(day_usd)} for all work"
    print(f"agents   ${found.agents_usd:.2f} spent today, {whole}")
    limit = f"of ${found.budget_usd:.2f} today" if found.budget_usd else "today, no budget is set"
    print(f"spent    ${found.spent_usd:.2f} {limit}, on background work")
    if found.today and found.date == _date_today():
        print(f"today    {clean(tallied(found.today))}")
    if found.last_error and found.last_error_at:
        print(f"error    {_moment(found.last_error_at)}  {one_line(found.last_error, 300)}")
    if found.running:
        print_columns(_chore_row(chore) for chore in found.chores)


def _with_queues(context: typer.Context, settings: Settings, found: Status) -> Status:
    """Count what waits, where no daemon tells it."""
    from dataclasses import asdict

    if not settings.database.exists():
        return replace(found, waiting=0, jobs_pending=0, jobs_parked=0, notice="")
    try:
        with open_memory(context) as memory:
            queues = memory.queues()
    except LoreError as error:
        return replace(found, notice=str(error))
    return replace(found, **asdict(queues), notice=memory.notice)


def _chore_row(chore: ChoreStatus) -> tuple[str, ...]:
    ran = f"ran {_moment(chore.last_run)}" if chore.last_run else "has not run yet"
    following = f"next {_moment(chore.next_run)}" if chore.next_run else ""
    error = coloured(one_line(chore.last_error, 200), "red") if chore.last_error else ""
    return (f"   {chore.name}", f"every {chore.every_s:g} s", ran, following, error)


def _moment(moment: datetime) -> str:
    """Return a moment in the user's time: today the hour is enough."""
    local = moment.astimezone()
    is_today = local.date().isoformat() == _date_today()
    return local.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M")


def _date_today() -> str:
    from lore.clock import now

    return now().astimezone().date().isoformat()


def logs(
    context: typer.Context,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as lines are written; Ctrl-C ends it.")
    ] = False,
    count: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=1_000_000, help="So many last lines.")
    ] = 50,
) -> None:
    """Show the log of the daemon.

    It tells what happened and how long it took, never what was said.
    """
    from lore.daemon import logfile

    home = _settings(context).home
    lines = logfile.last_lines(home, count)
    for line in lines:
        print(clean(line))
    if not lines and not follow:
        notice("There is no log yet: 'lore up' writes it.")
    if follow:
        sys.stdout.flush()
        for line in logfile.follow(home):
            print(clean(line), flush=True)


@jobs.callback()
def list_jobs(context: typer.Context, json: Json = False) -> None:
    """List the jobs that are not done.

    A job that failed is tried again after a growing delay; after 5 attempts it is parked.
    """
    if context.invoked_subcommand is not None:
        return
    with open_memory(context, or_empty=True) as memory:
        found = memory.jobs()
    if json:
        print_json(found)
        return
    if not found:
        print("No jobs.")
    print_columns(_job_row(job) for job in found)


def _job_row(job: Job) -> tuple[str, ...]:
    state = coloured(job.state, "red") if job.state == "parked" else job.state
    progress = f"{job.progress:,} of {job.total:,}"
    attempts = counted(job.attempts, "failed attempt") if job.attempts else ""
    waits = job.attempts and job.state == "pending"
    due = dim(f"next {_moment(job.due_at)}") if waits else ""
    error = one_line(job.last_error, 200)
    return (str(job.id), job.kind, one_line(job.subject, 60), state, progress, attempts, due, error)


@jobs.command("retry")
def retry_jobs(
    context: typer.Context,
    id: Annotated[int | None, typer.Argument(help="A job.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="All that failed.")] = False,
    json: Json = False,
) -> None:
    """Let a job that failed or is parked be tried again at once."""
    if (id is None) is not every:
        msg = "Name one job, or --all."
        raise InvalidInput(msg, hint="'lore jobs' lists them.")
    with open_memory(context) as memory:
        count = memory.retry_jobs(id)
    if json:
        print_json({"retried": count})
    else:
        print(f"{counted(count, 'job')} to be tried again.")


@service.callback()
def service_options(context: typer.Context) -> None:
    """Let the system start the daemon at login and keep it running."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def _unit(context: typer.Context) -> Unit:
    from lore.daemon.background import command
    from lore.daemon.units import unit_of

    home = _settings(context).home
    user_home = Path.home()
    usual = home == user_home / ".lore"
    return unit_of(home, command(home), user_home=user_home, usual=usual)


@service.command("install")
def install_service(context: typer.Context, dry_run: DryRun = False) -> None:
    """Write a systemd user unit or a launchd agent, and turn it on."""
    from lore.daemon.units import install

    unit = _unit(context)
    if dry_run:
        notice(f"This would be {unit.path}.")
        print(clean(unit.text), end="")
        return
    left = install(unit)
    print(clean(f"{unit.path} is written."))
    _print_left(left, f"{unit.name} runs, and starts with every login.")


@service.command("uninstall")
def uninstall_service(context: typer.Context) -> None:
    """Turn the service off and remove its file, and nothing else."""
    from lore.daemon.units import uninstall

    unit = _unit(context)
    if not unit.is_installed():
        print(clean(f"There is no service of Lore's at {unit.path}: nothing to remove."))
        return
    left = uninstall(unit)
    print(clean(f"{unit.path} is removed."))
    _print_left(left, f"{unit.name} is off.")


@service.command("status")
def service_status(context: typer.Context, json: Json = False) -> None:
    """Show whether the service is installed and the daemon is running."""
    from lore.daemon.lock import find_holder

    unit = _unit(context)
    installed, holder = unit.is_installed(), find_holder(_settings(context).home)
    if json:
        running = holder is not None
        print_json({"installed": installed, "file": unit.path, "running": running})
        return
    print(clean(f"{unit.path}: {'installed' if installed else 'not installed'}"))
    print(f"The daemon runs (pid {holder.pid})." if holder else "The daemon does not run.")


def _print_left(left: list[str], done: str) -> None:
    """Say what is left to the user where the system could not be told."""
    if not left:
        print(clean(done))
        return
    print("The system's service manager could not be reached from here. To do it by hand:")
    for command in left:
        print(clean(f"   {command}"))
