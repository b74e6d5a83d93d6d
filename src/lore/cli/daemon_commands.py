"""Commands of the daemon: up, down, status, logs, jobs, service."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Context, Option

from lore import clock
from lore.cli.agent_commands import exit_with_threads
from lore.cli.options import Json, command_group
from lore.cli.output import (
    bold,
    clean,
    coloured,
    counted,
    dim,
    format_duration,
    load_settings,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
    print_result,
    tallied,
)
from lore.errors import AlreadyRunning, InvalidInput, LoreError

if TYPE_CHECKING:
    from lore.daemon.status_file import Status, TaskStatus
    from lore.daemon.systemd_units import Unit
    from lore.memory import Memory
    from lore.records import Job
    from lore.settings import Settings

jobs = typer.Typer(name="jobs", invoke_without_command=True, rich_markup_mode=None)


def up(
    context: Context,
    detach: Annotated[
        bool, Option("--detach", "-d", help="Run in the background; return once it is up.")
    ] = False,
    in_background: Annotated[bool, Option("--in-background", hidden=True)] = False,
) -> None:
    """Run the daemon: capture, embedding, jobs and maintenance.

    It serves one home and stops within 4 seconds on Ctrl-C or SIGTERM. Exit code 12 means that one
    runs already; with --detach that is no error. If the memory cannot be opened, the daemon
    forwards the requests of agents without memory and says so; that is no error either.
    """
    settings = load_settings(context)
    if detach:
        _start(settings.home)
        return
    from lore.daemon import process
    from lore.daemon.main_loop import serve

    def tell(message: str) -> None:
        notice(message)
        if in_background:
            process.detach_from_terminal(settings.home)
        else:
            print(f"{_told_up(settings.home, os.getpid())}; Ctrl-C stops it.", flush=True)

    def run_command(memory: Memory, body: bytes) -> bytes | None:
        from lore.cli import command_server  # for the first client

        return command_server.run_command(memory, body)

    echo = not in_background and sys.stderr.isatty()
    serve(settings, echo=echo, on_ready=tell, run_command=run_command)
    exit_with_threads()


def _start(home: Path) -> None:
    from lore.daemon import daemon_lock, process

    if holder := daemon_lock.find_holder(home):
        print(f"Lore is running already (pid {holder.pid}).")
        return
    started = process.start(home)
    if started.code == AlreadyRunning.exit_code and (holder := daemon_lock.find_holder(home)):
        print(f"Lore is running already (pid {holder.pid}).")  # another process has just started it
        return
    print(clean(started.output), end="", file=sys.stderr)
    if started.code is not None:
        raise typer.Exit(started.code or LoreError.exit_code)
    print(f"{_told_up(home, started.pid)}.")


def _told_up(home: Path, pid: int) -> str:
    """Return that the daemon is up; say on stderr if the server could not use its port."""
    from lore.daemon.status_file import PASSING, read

    status = read(home)
    notice(status.server_notice)
    without = " without memory" if status.state == PASSING else ""
    return f"Lore is up{without} (pid {pid})"


def down(
    context: Context,
    force: Annotated[
        bool, Option("--force", help="Kill it if it has not stopped within 4 seconds.")
    ] = False,
) -> None:
    """Stop the daemon and wait until it has stopped.

    If none runs there is nothing to do, which is no error. Agents that 'lore run' has started go on
    without memory until the daemon runs again; others that use the gateway cannot reach their
    model.
    """
    from lore.cli.relay import count_relays
    from lore.daemon import process, status_file

    home = load_settings(context).home
    if agents := count_relays(home):
        notice(f"{counted(agents, 'agent')} of 'lore run' will go on without memory.")
    state = status_file.read(home)
    if state.running and _is_in_use(state.last_direct_at):
        notice("An agent uses the gateway: it cannot reach its model until 'lore up -d'.")
    pid = process.stop(home, force=force)
    print("Lore is not running." if pid is None else f"Lore has stopped (pid {pid}).")


_IN_USE = timedelta(minutes=10)
"""A person may read an answer this long before they go on."""


def _is_in_use(last_request_at: datetime | None) -> bool:
    return last_request_at is not None and clock.now() - last_request_at < _IN_USE


def status(context: Context, json: Json = False) -> None:
    """Show whether the daemon runs, and what it does.

    The exit code is 0 either way; see `running` in the JSON.
    """
    from lore.cli.setup_commands import print_memories
    from lore.daemon.status_file import read

    settings = load_settings(context)
    state = read(settings.home)
    if not state.running:
        state = _with_queues(context, settings, state)
    elif not _answers(settings.home):
        reason = "It does not answer: 'lore down --force' ends it, 'lore up -d' starts it again."
        state = replace(state, state="hung", server_notice=reason)
    if not state.budget_usd:  # nothing was counted yet
        state = replace(state, budget_usd=settings.background_daily_budget)
    if not state.running:
        state = replace(state, day_budget_usd=settings.daily_budget)
    if not state.digester:  # there is no memory yet
        state = replace(
            state, digester=settings.chat_provider, calls_per_day=settings.chat_calls_per_day
        )
    if json:
        print_json(state)
    else:
        _print_status(state)
        print_memories(settings, "memories ")
        notice(state.notice)


def _answers(home: Path) -> bool:
    from lore.proxy.address import find_address
    from lore.proxy.daemon_client import is_healthy

    address = find_address(str(home))
    return address is None or is_healthy(address)


def _print_status(status: Status) -> None:
    from lore.daemon.status_file import PASSING, describe_gateway, describe_hooks

    if status.running and status.since:
        colour = "red" if status.state in ("hung", PASSING) else "green"
        state, since = coloured(status.state, colour), _moment(status.since)
        size = f"{status.memory_mb:.0f} MB"
        print(f"{bold('running')}  {state}, pid {status.pid}, since {since}, {size}")
    else:
        print(f"{bold('not running')}  'lore up --detach' starts it.")
    is_passing = status.running and status.state == PASSING
    if status.server:
        opens = "" if is_passing else "  'lore open' shows it in a browser"
        print(f"server   {status.server}{opens}")
    if status.running and status.server_notice:
        print(f"server   {one_line(status.server_notice, 300)}")
    if status.running and (hooks := describe_hooks(status)):
        print(f"hooks    {hooks}")
    if status.running and (passed := describe_gateway(status)):
        print(f"gateway  {clean(passed)}")
    if not is_passing:
        _print_work(status)
    elif status.last_error:  # why the memory cannot be opened
        print(f"memory   {coloured(one_line(status.last_error, 300), 'red')}")


def _print_work(status: Status) -> None:
    from lore.daemon.status_file import describe_digester, describe_vectors
    from lore.text.tokens import format_dollars

    parked = f", {status.jobs_parked:,} parked ('lore jobs')" if status.jobs_parked else ""
    pending = counted(status.jobs_pending, "job")
    judge = f", {status.unjudged:,} to judge" if status.unjudged else ""
    print(f"waiting  {counted(status.waiting, 'item')} to embed{judge}, {pending} pending{parked}")
    if status.embedder:
        print(f"vectors  {clean(describe_vectors(status))}")
    if status.digester:
        print(f"digest   {clean(describe_digester(status))}")
    day_usd = status.day_budget_usd
    whole = (
        "no daily_budget is set"
        if day_usd is None
        else f"of {format_dollars(day_usd)} for all work"
    )
    print(f"agents   ${status.agents_usd:.2f} spent today, {whole}")
    limit = f"of ${status.budget_usd:.2f} today" if status.budget_usd else "today, no budget is set"
    print(f"spent    ${status.spent_usd:.2f} {limit}, on background work")
    if status.today and status.date == _date_today():
        print(f"today    {clean(tallied(status.today))}")
    if status.last_error and status.last_error_at:
        print(f"error    {_moment(status.last_error_at)}  {one_line(status.last_error, 300)}")
    if status.running:
        print_columns(_task_row(task) for task in status.chores)


def _with_queues(context: Context, settings: Settings, status: Status) -> Status:
    """Count the queues, because no daemon reports them."""
    from dataclasses import asdict

    if not settings.database.exists():
        return replace(status, waiting=0, unjudged=0, jobs_pending=0, jobs_parked=0, notice="")
    try:
        with open_memory(context) as memory:
            queues = memory.maintenance.queues()
    except LoreError as error:
        return replace(status, notice=str(error))
    return replace(status, **asdict(queues), notice=memory.notice)


def _task_row(task: TaskStatus) -> tuple[str, ...]:
    name, every = f"   {task.name}", f"every {task.every_s:g} s"
    if task.running:
        return (name, every, coloured("runs", "green"), describe_progress(task))
    ran = f"ran {_moment(task.last_run)}" if task.last_run else "has not run yet"
    following = f"next {_moment(task.next_run)}" if task.next_run else ""
    error = coloured(one_line(task.last_error, 200), "red") if task.last_error else ""
    return (name, every, ran, following, error)


def describe_progress(task: TaskStatus) -> str:
    """Return how far a task is, and about how long its part still takes."""
    if not task.total:
        return ""
    share = f"{task.part}: {task.done:,} of {task.total:,}"
    if task.eta_s is None:
        return share
    return f"{share}, about {format_duration(task.eta_s)} left"


def _moment(moment: datetime) -> str:
    """Return a time in the user's time zone, without the date if it is today."""
    local = moment.astimezone()
    is_today = local.date().isoformat() == _date_today()
    return local.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M")


def _date_today() -> str:
    from lore.clock import now

    return now().astimezone().date().isoformat()


def logs(
    context: Context,
    follow: Annotated[
        bool, Option("--follow", "-f", help="Follow new lines until Ctrl-C.")
    ] = False,
    count: Annotated[
        int, Option("--lines", "-n", min=0, max=1_000_000, help="Number of lines to show.")
    ] = 50,
) -> None:
    """Show the log of the daemon.

    It contains events and durations, never contents.
    """
    from lore.daemon import log_file

    home = load_settings(context).home
    lines = log_file.last_lines(home, count)
    for line in lines:
        print(clean(line))
    if not lines and not follow:
        notice("There is no log yet; 'lore up' creates it.")
    if follow:
        sys.stdout.flush()
        for line in log_file.follow(home):
            print(clean(line), flush=True)


@jobs.callback()
def list_jobs(context: Context, json: Json = False) -> None:
    """List the jobs that are not finished.

    A failed job is retried with a growing delay; after 5 attempts it is parked.
    """
    if context.invoked_subcommand is not None:
        return
    with open_memory(context, or_empty=True) as memory:
        queued = memory.digest.jobs()
    if json:
        print_json(queued)
        return
    if not queued:
        print("No jobs.")
    print_columns(_job_row(job) for job in queued)


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
    context: Context,
    id: Annotated[int | None, Argument(help="Id of a job.", show_default=False)] = None,
    every: Annotated[bool, Option("--all", help="All failed jobs.")] = False,
    json: Json = False,
) -> None:
    """Retry a failed or parked job at once."""
    if (id is None) is not every:
        msg = "Name one job, or --all."
        raise InvalidInput(msg, hint="'lore jobs' lists them.")
    with open_memory(context) as memory:
        count = memory.digest.retry_jobs(id)
    print_result({"retried": count}, f"{counted(count, 'job')} queued for retry.", json=json)


service = command_group("service", "Let the system start the daemon at login and keep it running.")


def _unit(context: Context) -> Unit:
    from lore.daemon.process import command
    from lore.daemon.systemd_units import unit_of

    home = load_settings(context).home
    user_home = Path.home()
    usual = home == user_home / ".lore"
    return unit_of(home, command(home), user_home=user_home, usual=usual)


@service.command("install")
def install_service(
    context: Context,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print the file and change nothing.")
    ] = False,
) -> None:
    """Write a systemd user unit or a launchd agent, and enable it."""
    from lore.daemon.systemd_units import install

    unit = _unit(context)
    if dry_run:
        notice(f"The file would be {unit.path}.")
        print(clean(unit.text), end="")
        return
    remaining = install(unit)
    print(clean(f"Wrote {unit.path}."))
    _print_left(remaining, f"{unit.name} runs, and starts with every login.")


@service.command("uninstall")
def uninstall_service(context: Context) -> None:
    """Disable the service and remove its file, and nothing else."""
    from lore.daemon.systemd_units import uninstall

    unit = _unit(context)
    if not unit.is_installed():
        print(clean(f"There is no service of Lore's at {unit.path}: nothing to remove."))
        return
    remaining = uninstall(unit)
    print(clean(f"{unit.path} is removed."))
    _print_left(remaining, f"{unit.name} is off.")


@service.command("status")
def service_status(context: Context, json: Json = False) -> None:
    """Show whether the service is installed and whether the daemon runs."""
    from lore.daemon.daemon_lock import find_holder

    unit = _unit(context)
    installed, holder = unit.is_installed(), find_holder(load_settings(context).home)
    if json:
        running = holder is not None
        print_json({"installed": installed, "file": unit.path, "running": running})
        return
    print(clean(f"{unit.path}: {'installed' if installed else 'not installed'}"))
    print(f"The daemon is running (pid {holder.pid})." if holder else "The daemon is not running.")


def _print_left(commands: list[str], success: str) -> None:
    """Print the commands that the user has to run."""
    if not commands:
        print(clean(success))
        return
    print("The service manager of this system cannot be reached. Run by hand:")
    for command in commands:
        print(clean(f"   {command}"))
