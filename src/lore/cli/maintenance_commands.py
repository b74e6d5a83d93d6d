"""Maintenance commands: stats, backup, restore, export, import, embed, doctor, demo, model."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer
from typer import Argument, Context, Option

from lore.cli.options import Json, absolute, command_group, given_path
from lore.cli.output import (
    clean,
    coloured,
    counted,
    dim,
    escaped,
    load_settings,
    notice,
    one_line,
    open_memory,
    plain,
    print_columns,
    print_json,
    print_result,
    progress,
)
from lore.cli.server_commands import Data, load_server, open_registry, open_store
from lore.errors import InvalidInput, NotFound, StoreDamaged

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import Check, ImportResult, LayoutImport, Stats


_STANDARD = Path("-")
"""Standard output or input, as in other programs; write ./- for a file of that name."""


def stats(context: Context, json: Json = False) -> None:
    """Show statistics of the memory."""
    with open_memory(context) as memory:
        figures = memory.maintenance.stats()
    if json:
        print_json(figures)
        return
    print(clean(f"{figures.path}  {figures.bytes / 1e6:.1f} MB"))
    _print_figures(figures)
    print_columns(
        ("   project", one_line(path), counted(count, "item")) for path, count in figures.projects
    )
    if figures.jobs:
        states = Counter(job.state for job in figures.jobs)
        by_state = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
        print(f"   {'jobs':<14}{len(figures.jobs):>12,}   {by_state}: 'lore jobs' lists them")
    notice(figures.notice)


_FIGURES = (
    "sessions", "messages", "distillations", "fragments", "edges", "entities", "standing",
    "tokens", "vectors", "waiting",
)  # fmt: skip


def _print_figures(stats: Stats) -> None:
    for name in _FIGURES:
        figure = getattr(stats, name)
        remark = "   for a vector: 'lore embed'" if name == "waiting" and figure else ""
        print(f"   {name:<14}{figure:>12,}{remark}")
    print(f"   embedder      {clean(stats.embedder)}")


def backup(
    context: Context,
    file: Annotated[
        Path | None,
        Argument(
            help="A new file or a folder; default: in the home.",
            parser=given_path,
            metavar="[FILE]",
        ),
    ] = None,
    server: Annotated[
        bool, Option("--server", help="Of the whole server ('lore serve'), to a new folder.")
    ] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Write a consistent copy of the database.

    Other processes can read and write meanwhile. The copy of a server is a folder that
    'lore serve --data' serves like the original; with its memories on PostgreSQL, one that
    'lore restore --data' makes a server of.
    """
    if server or data:
        _back_up_server(context, file, data, json=json)
        return
    if file == _STANDARD:
        msg = "A backup is a database file; it cannot go to standard output."
        raise InvalidInput(msg, hint="'lore export -' writes to standard output.")
    with open_memory(context) as memory:
        target = memory.maintenance.backup(file)
    print_result({"file": target}, str(target), json=json)


def _back_up_server(context: Context, file: Path | None, data: Path | None, *, json: bool) -> None:
    from lore.server.home_backup import back_up

    if file is None or file == _STANDARD:
        msg = "Name a new folder for the backup of a server."
        raise InvalidInput(msg)
    with open_registry(context, data) as registry:
        done = back_up(registry, file.absolute(), open_store(context, data, registry))
    size = f"{done.bytes / 1e6:,.1f} MB"
    text = f"{done.folder}: memories of {counted(done.owners, 'owner')}, {size}"
    print_result(done, text, json=json)


def restore(
    context: Context,
    file: Annotated[Path, Argument(help="A backup.", parser=given_path, metavar="FILE")],
    trust: Annotated[
        bool, Option("--trust", help="It is mine, although this memory did not seal it.")
    ] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Replace the database by a backup.

    The former database is kept, and what was forgotten stays forgotten. A backup that this memory
    did not seal is refused without --trust. With --data, make a new folder of a server from the
    backup of one on PostgreSQL, and load its rows into the database of 'store.url'.
    """
    from lore.memory import restore_backup

    if data is not None:
        _restore_server(context, file, data, json=json)
        return
    former = restore_backup(file, home=context.obj, trust=trust)
    if json:
        print_json({"restored": file, "former": former})
        return
    print(clean(f"Restored {file}."))
    if former:
        print(clean(f"The former database is {former}."))


def _restore_server(context: Context, file: Path, data: Path, *, json: bool) -> None:
    from lore.server.home_backup import restore as restore_server

    home, settings = load_server(context, data)
    if not settings.store_url:  # what the server had in its own config.toml
        _, settings = load_server(context, file)
    done = restore_server(file.absolute(), home, settings)
    text = f"{done.folder}: memories of {counted(done.owners, 'owner')}"
    print_result(done, text, json=json)


def export(
    context: Context,
    file: Annotated[
        Path | None,
        Argument(
            help="A new file, or '-' for standard output (the default in a pipe).",
            parser=given_path,
            metavar="[FILE]",
        ),
    ] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace a file that exists.")] = False,
    form: Annotated[
        str, Option("--as", help="loki: write a project's memory as the folder .loki in FILE.")
    ] = "",
    project: Annotated[
        str, Option("--project", help="With --as loki: whose memory.", callback=absolute)
    ] = "",
    json: Json = False,
) -> None:
    """Write everything as JSON lines, or with --as a project's memory as a folder."""
    is_named, file = file is not None, None if file == _STANDARD else file
    if form or project:
        _export_layout(context, file, form, project, overwrite=overwrite, json=json)
        return
    if not is_named and sys.stdout.isatty():
        msg = "All of the memory would fill this terminal."
        raise InvalidInput(
            msg, hint="'lore export FILE' writes a file; 'lore export | …' feeds a program."
        )
    with open_memory(context) as memory:
        count = _export(memory, file, overwrite=overwrite)
    if json and file:
        print_json({"file": file, "records": count})
    else:
        notice(f"{counted(count, 'record')} exported.")


def _export_layout(
    context: Context, folder: Path | None, form: str, project: str, *, overwrite: bool, json: bool
) -> None:
    if form != _LOKI:
        msg = f"'{form[:40]}' is no format." if form else "--project goes with --as loki."
        raise InvalidInput(msg, hint="'lore export --as loki FOLDER' writes a project's memory.")
    if folder is None or (folder.exists() and not folder.is_dir()):
        msg = "--as loki needs a folder."
        raise InvalidInput(msg, hint="Example: 'lore export --as loki .'.")
    with open_memory(context) as memory:
        result = memory.layout.export_folder(folder, project=project, overwrite=overwrite)
    if json:
        print_json({"folder": result.folder, "files": result.files})
    else:
        notice(f"{counted(len(result.files), 'file')} written to {result.folder}.")


def _export(memory: Memory, file: Path | None, *, overwrite: bool) -> int:
    if file is None:
        stream = _Terminal() if sys.stdout.isatty() else sys.stdout.buffer
        return memory.sessions.export(cast("BinaryIO", stream))
    if not file.parent.is_dir():
        raise NotFound(f"There is no folder {file.parent}.")
    if not file.exists():
        return memory.sessions.export(file)
    if file.is_dir():
        raise InvalidInput(f"{file} is a folder.", hint="Name a file in it.")
    if not file.is_file():  # a pipe or a device is written to, not replaced
        with file.open("wb") as device:
            return memory.sessions.export(device)
    if not overwrite or file.samefile(memory.settings.database):
        raise InvalidInput(f"{file} exists already.", hint="Name another file, or add --overwrite.")
    return memory.sessions.export(file)


class _Terminal:
    """A terminal as export target: stored control characters must not act on it."""

    def write(self, data: bytes) -> int:
        return sys.stdout.write(escaped(data.decode()))


def import_file(
    context: Context,
    file: Annotated[
        Path,
        Argument(help="An export, or '-' for standard input.", parser=given_path, metavar="FILE"),
    ],
    trust: Annotated[
        bool | None,
        Option(
            "--trust/--no-trust",
            help="For an export of another home: trust it as yours, or store it as a peer's.",
        ),
    ] = None,
    origin: Annotated[
        str, Option("--from", help="Another memory: claude-mem, mem0, basic-memory or loki.")
    ] = "",
    project: Annotated[
        str, Option("--project", help="With --from loki: whose memory it is.", callback=absolute)
    ] = "",
    json: Json = False,
) -> None:
    """Import an export, or with --from the knowledge of another memory.

    What is here already, or was forgotten, is skipped. An export of another home needs --trust or
    --no-trust: knowledge of a peer is found only by asking, and deletes nothing. Knowledge of
    another memory is a peer's unless you add --trust. For --from loki, FILE is the folder .loki.
    """
    if origin == _LOKI:
        with open_memory(context, create=True) as memory:
            layout = memory.layout.import_folder(file, project=project, trust=bool(trust))
        _print_layout(layout, json=json)
        return
    if project:
        msg = "--project goes with --from loki."
        raise InvalidInput(msg)
    if origin:
        with open_memory(context, create=True) as memory:
            result = memory.sessions.import_memory(origin, file, trust=bool(trust))
        _print_import(result, json=json)
        return
    with (
        _to_import(file) as source,
        open_memory(context, create=True) as memory,
        progress("importing", quiet=json) as report,
    ):
        counts = memory.sessions.import_lines(
            source, trust=trust, progress=lambda done: report(done, None)
        )
    _print_import(counts, json=json)


_LOKI = "loki"


def _print_layout(result: LayoutImport, *, json: bool) -> None:
    if json:
        named = {"problems": result.problems, "left_out": result.left_out}
        lists = {name: [one._asdict() for one in listed] for name, listed in named.items()}
        print_json({**plain(result), **lists})
        return
    peers = "" if result.trusted else " as a peer's"
    forgotten = f", {result.forgotten:,} forgotten before" if result.forgotten else ""
    refused = f", {result.refused:,} refused" if result.refused else ""
    print(
        f"{counted(result.added, 'record')} imported{peers}, {result.changed:,} changed,"
        f" {result.skipped:,} skipped{forgotten}{refused};"
        f" {counted(result.files, 'other file')} kept."
    )
    if result.refused:
        notice("What was imported with trust is not changed by an import without it.")
    for path, why in result.problems[:_MOST_PROBLEMS]:
        notice(clean(f"{path} {why}. It is kept as it is."))
    for path, why in result.left_out[:_MOST_PROBLEMS]:
        notice(clean(f"{path} {why}. It is not kept."))


_MOST_PROBLEMS = 20


def _print_import(counts: ImportResult, *, json: bool) -> None:
    if json:
        print_json(counts)
        return
    left_out = f", {counts.left_out:,} left out" if counts.left_out else ""
    peers = " as a peer's" if counts.foreign else ""
    brought = f"{counted(counts.added, 'record')} imported{peers}"
    print(f"{brought}, {counts.skipped:,} skipped{left_out}.")


def _to_import(file: Path) -> BinaryIO:
    if file == _STANDARD:
        return sys.stdin.buffer
    if not file.exists():
        raise NotFound(f"There is no file {file}.")
    if file.is_dir():
        raise InvalidInput(f"{file} is a folder, not an export.")
    return file.open("rb")


def embed(context: Context, json: Json = False) -> None:
    """Embed everything that waits for a vector.

    You can interrupt it; it goes on where it stopped.
    """
    with open_memory(context) as memory, progress("embedding", quiet=json) as report:
        count = memory.maintenance.embed_waiting(progress=report)
        notice(memory.notice)
    print_result({"embedded": count}, f"{counted(count, 'item')} embedded.", json=json)


def doctor(
    context: Context,
    fix: Annotated[bool, Option("--fix", help="Rebuild derived data.")] = False,
    json: Json = False,
) -> None:
    """Check the database, indexes, disk, permissions, the daemon and your agents.

    Exit code 7 means that something is broken.
    """
    from lore.memory import examine

    checks = [*examine(home=context.obj, fix=fix), *_check_connections(context)]
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


def _check_connections(context: Context) -> list[Check]:
    """Check what connects agents to the memory."""
    from lore.cli.setup_commands import check_agents
    from lore.daemon import status_file
    from lore.setup.agent_checks import check_daemon

    settings = load_settings(context)
    passed = status_file.check_gateway(status_file.read(settings.home), settings.gateway_within_ms)
    return [check_daemon(settings), *passed, *check_agents(settings)]


model = command_group("model", "Show or install the embedding model.")


@model.command("install")
def install(context: Context, json: Json = False) -> None:
    """Install the local embedding model.

    This is the one step after installing only the wheel.
    """
    from lore.embed import install_model, open_embedder

    settings = load_settings(context)
    folder = install_model(settings, report=notice)
    opened = open_embedder(settings)
    if json:
        print_json({"folder": folder})
    else:
        print(clean(f"The files are in {folder}; {opened.embedder.name} is the embedder in use."))
        print("'lore embed' computes vectors for stored items.")


@model.command("status")
def status(context: Context, json: Json = False) -> None:
    """Show the embedder in use, which setting names it, and where its files are."""
    from lore.embed import describe_source, open_embedder

    settings = load_settings(context)
    opened = open_embedder(settings)
    identity, dimension = opened.embedder.identity, opened.embedder.dimension
    source = describe_source(settings, opened.embedder)
    if json:
        values = {"identity": identity, "dimension": dimension, "source": source}
        print_json({**values, "notice": opened.notice})
        return
    if dimension:
        print(clean(f"{identity}  {counted(dimension, 'dimension')}"))
        print(dim(clean(source)))
    else:
        print("No embedder: recall works by keywords only. 'lore model install' adds the model.")
    notice(opened.notice)
