"""The command `lore`: global options, errors, exit codes and the list of commands."""

from __future__ import annotations

import copy
import errno
import gc
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from typer import Context, Option
from typer.main import get_command_name
from typer.models import CommandInfo, TyperInfo

from lore.cli import access_commands as access
from lore.cli import agent_commands as agent
from lore.cli import browse_commands as browse
from lore.cli import daemon_commands as daemon
from lore.cli import digest_commands as digest
from lore.cli import handoff_commands as work
from lore.cli import help_text, setup_commands
from lore.cli import knowledge_commands as knowledge
from lore.cli import maintenance_commands as maintenance
from lore.cli import search_commands as search
from lore.cli import task_knowledge_commands as task_knowledge
from lore.cli.capture_commands import capture
from lore.cli.config_commands import config
from lore.cli.demo import demo
from lore.cli.eval_commands import evaluate
from lore.cli.fast_path import home_of
from lore.cli.gateway_commands import gateway, spend
from lore.cli.invocation import shared_memory
from lore.cli.output import INTERRUPTED, one_line
from lore.cli.server_commands import owner, publish, serve, team
from lore.cli.strategy_commands import strategy
from lore.cli.sync_commands import sync
from lore.cli.task_commands import index, task
from lore.cli.tray_commands import tray
from lore.errors import InvalidInput, LoreError, StoreFull, StoreReadOnly
from lore.proxy.pager import is_paged, print_paged

_LONGEST = 400
"""An error is printed on one line of at most this many characters."""

_INVALID_TEXT = re.compile("[\0\ud800-\udfff]")
"""Invalid characters of arguments: not UTF-8, or not allowed in the store."""


class LoreCommands(typer.core.TyperGroup):
    """All commands: help in groups, and a hint for an unknown command."""

    def get_help(self, ctx: Any) -> str:  # noqa: ARG002 - as typer calls it
        """Return the help of `lore`."""
        summaries = {
            name: (command.help or "").strip().partition("\n")[0]
            for name, command in self.commands.items()
        }
        return help_text.describe_commands(summaries)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Find a command by its name."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            hint = help_text.suggest(args[0], list(self.commands))
            msg = f"There is no command '{args[0]}'."
            raise InvalidInput(msg, hint=f"{hint} 'lore --help' lists all.".strip())
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="lore",
    cls=LoreCommands,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
_COMMANDS = (
    knowledge.remember, knowledge.update, knowledge.delete, knowledge.undo, knowledge.link,
    knowledge.supersede, knowledge.forget, knowledge.revoke, knowledge.share, capture,
    search.recall, search.ask, search.search, search.sessions, search.standing,
    browse.read, browse.session, browse.explore, browse.roots, browse.traverse, browse.log,
    browse.diff, browse.timeline, index, browse.why, browse.episode, browse.episodes,
    digest.distill, digest.consolidate, digest.conflicts, digest.promote, task_knowledge.learnings,
    maintenance.stats, maintenance.backup, maintenance.restore, maintenance.export,
    maintenance.import_file, maintenance.embed, maintenance.doctor, demo,
    daemon.up, daemon.down, daemon.status, daemon.logs, access.open_browser, tray,
    agent.mcp, agent.hook, agent.tool, gateway, spend,
    setup_commands.setup, setup_commands.run, config, agent.statusline,
    work.continuity, sync, serve, publish,
)  # fmt: skip
"""Every command; `help_text.GROUPS` has their order."""

_NAMES = {access.open_browser: "open", maintenance.import_file: "import"}
_PASS_ON: dict[object, dict[str, object]] = {
    agent.hook: {"allow_extra_args": True, "ignore_unknown_options": True},
    setup_commands.run: {
        "allow_extra_args": True,
        "allow_interspersed_args": False,
        "ignore_unknown_options": True,
        "help_option_names": [],
    },
}
"""Commands that take unknown arguments, and how."""

for _command in _COMMANDS:
    app.command(_NAMES.get(_command), context_settings=_PASS_ON.get(_command))(_command)
for _group in (maintenance.model, daemon.jobs, daemon.service, access.key, evaluate):
    app.add_typer(_group)
for _group in (task, task_knowledge.tasks, task_knowledge.skills, work.handoff, strategy,
               owner, team):  # fmt: skip
    app.add_typer(_group)


def _show_version(*, value: bool) -> None:
    if value:
        from lore import __version__

        print(f"lore {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: Context,
    home: Annotated[str | None, Option(help="Folder of the memory (LORE_HOME, ~/.lore).")] = None,
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool,
        Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Long-term memory for AI agents: remember, recall, search, forget."""
    if home is not None and not home.strip():
        msg = "--home is empty: name a folder."
        raise InvalidInput(msg)
    context.obj = Path(home) if home else None
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("help")
def show_help(
    words: Annotated[
        list[str] | None, typer.Argument(help="A command.", metavar="[COMMAND]")
    ] = None,
) -> None:
    """Show the help of all commands, or of one."""
    raise typer.Exit(run([*(words or ()), "--help"]))


@app.command()
def upgrade() -> None:
    """Print the command that upgrades Lore, as it was installed."""
    print(help_text.upgrade_command(sys.prefix))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its exit code."""
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if arguments is None else arguments
    code = run(words)
    if arguments is None:  # the process ends here
        gc.freeze()  # otherwise the interpreter traverses all modules at its end: 30 ms
    sys.exit(code)


def run(words: list[str]) -> int:
    """Run one command, print its error on one line, and return its exit code."""
    arguments = [_INVALID_TEXT.sub("\ufffd", argument) for argument in words]
    try:
        with _paged(arguments):
            code = _trim_commands(arguments)(arguments, prog_name="lore", standalone_mode=False)
        sys.stdout.flush()
    except LoreError as error:
        return _print_error(error)
    except typer.TyperException as error:
        return _print_error(_usage_error(error))
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return LoreError.exit_code
    except OSError as error:
        return _print_error(_translate_os_error(error))
    if code == INTERRUPTED:
        print("\nlore: Interrupted; what was acknowledged is stored.", file=sys.stderr)
    return code or 0


@contextmanager
def _paged(arguments: list[str]) -> Iterator[None]:
    """Show the output of a command in a pager if a terminal is too small for it."""
    _, rest = home_of(arguments)
    screen = sys.stdout
    if not screen.isatty() or shared_memory() or not is_paged(rest):
        yield
        return
    sys.stdout = pages = _Pages()
    try:
        yield
    finally:
        sys.stdout = screen
        print_paged(pages.getvalue(), dict(os.environ))  # noqa: TID251 - for another program


class _Pages(io.StringIO):
    """Output that a terminal is going to show."""

    def isatty(self) -> bool:
        return True


def _trim_commands(arguments: list[str]) -> typer.Typer:
    """Return the app with only the requested command or group, or with all if there is none.

    Creating all of them takes as long as importing typer.
    """
    _, rest = home_of(arguments)
    commands = [info for info in app.registered_commands if rest[:1] == [_name(info)]]
    groups = [info for info in app.registered_groups if rest[:1] == [_group_name(info)]]
    if not commands and not groups:
        return app
    lean = copy.copy(app)
    lean.registered_commands, lean.registered_groups = commands, groups
    return lean


def _name(info: CommandInfo) -> str | None:
    return info.name or (info.callback and get_command_name(info.callback.__name__))


def _group_name(info: TyperInfo) -> str | None:
    return info.typer_instance.info.name if info.typer_instance else None


def _print_error(error: LoreError) -> int:
    print(f"lore: {one_line(str(error), _LONGEST)}", file=sys.stderr)
    for id_, text in getattr(error, "candidates", ()):
        print(f"      {id_}  {one_line(text)}", file=sys.stderr)
    if error.hint:
        print(f"      {one_line(error.hint, _LONGEST)}", file=sys.stderr)
    return error.exit_code


def _usage_error(error: typer.TyperException) -> LoreError:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "lore"
    message = error.format_message()
    described = getattr(getattr(error, "param", None), "help", "") or ""
    if message.startswith("Missing argument") and described:
        message = f"{message.rstrip('.')}: {described}"
    return InvalidInput(message, hint=f"'{command} --help' shows the usage.")


def _translate_os_error(error: OSError) -> LoreError:
    what = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(what, hint="Free some disk space; reads still work.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreReadOnly(what, hint="Check owner and permissions.")
    return LoreError(what)
