"""Commands that keep the house: stats, backup, restore, export, import, embed, doctor, demo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from lore.cli.demo import demo
from lore.cli.output import (
    Json,
    clean,
    coloured,
    counted,
    escaped,
    given_path,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
    progress,
)
from lore.errors import InvalidInput, NotFound, StoreDamaged

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import Check, Stats


_STANDARD = Path("-")
"""Standard output or input, as in other programs; a file of that name has to be given whole."""


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (stats, backup, restore, export):
        app.command()(command)
    app.command("import")(import_file)
    for other in (embed, doctor, demo):
        app.command()(other)


def stats(context: typer.Context, json: Json = False) -> None:
    """Show what the memory holds."""
    with open_memory(context) as memory:
        found = memory.stats()
    if json:
        print_json(found)
        return
    print(clean(f"{found.path}  {found.bytes / 1e6:.1f} MB"))
    _print_figures(found)
    print_columns(
        ("   project", one_line(path), counted(count, "item")) for path, count in found.projects
    )
    for job in found.jobs:
        error = f"  {one_line(job.last_error)}" if job.last_error else ""
        print(f"   job        {job.kind}, {job.progress:,} of {job.total:,}, {job.state}{error}")
    notice(found.notice)


_FIGURES = (
    "sessions", "messages", "distillations", "fragments", "edges", "entities", "standing",
    "tokens", "vectors", "waiting",
)  # fmt: skip


def _print_figures(found: Stats) -> None:
    for name in _FIGURES:
        figure = getattr(found, name)
        remark = "   for a vector: 'lore embed'" if name == "waiting" and figure else ""
        print(f"   {name:<14}{figure:>12,}{remark}")
    print(f"   embedder      {clean(found.embedder)}")


def backup(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A new file or a folder; default: in the home.",
            parser=given_path,
            metavar="[FILE]",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a consistent copy of the database.

    Other processes go on reading and writing meanwhile.
    """
    if file == _STANDARD:
        msg = "A backup is a database: it needs a file of its own."
        raise InvalidInput(msg, hint="'lore export -' writes to standard output.")
    with open_memory(context) as memory:
        target = memory.backup(file)
    if json:
        print_json({"file": target})
    else:
        print(clean(str(target)))


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A backup.", parser=given_path, metavar="FILE")],
    json: Json = False,
) -> None:
    """Put a backup in the place of the database.

    The former database is kept, and what was forgotten stays forgotten.
    """
    from lore.memory import restore_backup

    kept = restore_backup(file, home=context.obj)
    if json:
        print_json({"restored": file, "former": kept})
        return
    print(clean(f"Restored {file}."))
    if kept:
        print(clean(f"The former database is {kept}."))


def export(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A new file; none, or '-', for standard output.",
            parser=given_path,
            metavar="[FILE]",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that exists.")
    ] = False,
    json: Json = False,
) -> None:
    """Write everything as JSON lines."""
    file = None if file == _STANDARD else file
    with open_memory(context) as memory:
        count = _export(memory, file, overwrite=overwrite)
    if json and file:
        print_json({"file": file, "records": count})
    else:
        notice(f"{counted(count, 'record')} exported.")


def _export(memory: Memory, file: Path | None, *, overwrite: bool) -> int:
    if file is None:
        stream = _Terminal() if sys.stdout.isatty() else sys.stdout.buffer
        return memory.export(cast("BinaryIO", stream))
    if not file.parent.is_dir():
        msg = f"There is no folder {file.parent}."
        raise NotFound(msg)
    if not file.exists():
        return memory.export(file)
    if file.is_dir():
        msg = f"{file} is a folder."
        raise InvalidInput(msg, hint="Name a file in it.")
    if not file.is_file():  # a pipe or a device is written to, not replaced
        with file.open("wb") as device:
            return memory.export(device)
    if not overwrite or file.samefile(memory.settings.database):
        msg = f"{file} exists already."
        raise InvalidInput(msg, hint="Name another file, or add --overwrite.")
    return memory.export(file)


class _Terminal:
    """A terminal as a place to export to: nothing that was stored acts on it."""

    def write(self, data: bytes) -> int:
        return sys.stdout.write(escaped(data.decode()))


def import_file(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            help="An export, or '-' for standard input.", parser=given_path, metavar="FILE"
        ),
    ],
    trust: Annotated[
        bool | None,
        typer.Option(
            "--trust/--no-trust",
            help="Of another home: it is yours and is believed, or it is a peer's word.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Bring in an export.

    What is here already, or was forgotten, is skipped. What another home wrote needs a word on
    whether to trust it: a peer's word is found by asking only, and deletes nothing.
    """
    with (
        _to_import(file) as source,
        open_memory(context, create=True) as memory,
        progress("importing", quiet=json) as report,
    ):
        counts = memory.import_lines(source, trust=trust, progress=lambda done: report(done, None))
    if json:
        print_json(counts)
        return
    left_out = f", {counts.left_out:,} left out" if counts.left_out else ""
    peers = " as a peer's word" if counts.foreign else ""
    brought = f"{counted(counts.added, 'record')} imported{peers}"
    print(f"{brought}, {counts.skipped:,} skipped{left_out}.")


def _to_import(file: Path) -> BinaryIO:
    if file == _STANDARD:
        return sys.stdin.buffer
    if not file.exists():
        msg = f"There is no file {file}."
        raise NotFound(msg)
    if file.is_dir():
        msg = f"{file} is a folder, not an export."
        raise InvalidInput(msg)
    return file.open("rb")


def embed(context: typer.Context, json: Json = False) -> None:
    """Give vectors to everything that waits for one.

    It can be interrupted, and goes on where it was.
    """
    with open_memory(context) as memory, progress("embedding", quiet=json) as report:
        done = memory.embed_waiting(progress=report)
        notice(memory.notice)
    if json:
        print_json({"embedded": done})
    else:
        print(f"{counted(done, 'item')} embedded.")


def doctor(
    context: typer.Context,
    fix: Annotated[bool, typer.Option("--fix", help="Rebuild what is derived.")] = False,
    json: Json = False,
) -> None:
    """Check the database, its indexes, the disk and permissions, the daemon and your agents.

    Exit code 7 says that something is broken.
    """
    from lore.memory import examine

    checks = [*examine(home=context.obj, fix=fix), *_check_doors(context)]
    if json:
        print_json(checks)
    else:
        colours = {"ok": "green", "fixed": "green", "degraded": "yellow", "broken": "red"}
        for check in checks:
            state = coloured(f"{check.state:<9}", colours[check.state])
            print(f"{state} {check.name:<11} {one_line(check.detail, 500)}")
            if check.remedy:
                print(f"{'':<21} → {one_line(check.remedy, 500)}")
    if any(check.state == "broken" for check in checks):
        raise typer.Exit(StoreDamaged.exit_code)


def _check_doors(context: typer.Context) -> list[Check]:
    """Look at what stands between agents and the memory."""
    from lore.cli.setting_up import check_agents
    from lore.daemon import status
    from lore.settings import load
    from lore.setup.reaching import check_daemon

    settings = load(home=context.obj).settings
    passed = status.check_gateway(status.read(settings.home), settings.gateway_within_ms)
    return [check_daemon(settings), *passed, *check_agents(settings.home)]
