"""Commands that keep the house: stats, backup, restore, export, import, doctor, config, model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lore.cli.demo import demo
from lore.cli.output import Json, console, notice, open_memory, print_json, progress
from lore.errors import InvalidInput, NotFound

model = typer.Typer(
    name="model", help="The embedding model.", no_args_is_help=True, rich_markup_mode=None
)


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (stats, backup, restore, export, doctor, config, embed, demo):
        app.command()(command)
    app.command("import")(import_file)
    app.add_typer(model)


def stats(context: typer.Context, json: Json = False) -> None:
    """Show what the memory holds."""
    with open_memory(context, create=False) as memory:
        found = memory.stats()
    if json:
        print_json(found)
        return
    print(f"{found.path}  {found.bytes / 1e6:.1f} MB  ({found.journal})")
    for name in ("messages", "sessions", "distillations", "fragments", "edges", "entities",
                 "standing", "vectors", "waiting"):  # fmt: skip
        print(f"  {name:<14} {getattr(found, name):>9,}")
    print(f"  embedder       {found.embedder}")
    for path, count in found.projects:
        print(f"  project        {path}  ({count:,} items)")
    for job in found.jobs:
        error = f"  {job.last_error}" if job.last_error else ""
        print(f"  job            {job.kind} {job.progress}/{job.total} {job.state}{error}")
    notice(found.notice)


def backup(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="Default: a new file in the home.")] = None,
    json: Json = False,
) -> None:
    """Write a consistent copy of the database, while others go on working."""
    with open_memory(context, create=False) as memory:
        target = memory.backup(file)
    if json:
        print_json({"file": target})
    else:
        print(target)


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A backup.")],
    json: Json = False,
) -> None:
    """Put a backup in the place of the database; the former one is kept."""
    from lore.memory import restore_backup

    kept = restore_backup(file, home=context.obj)
    if json:
        print_json({"restored": file, "former": kept})
    else:
        print(f"Restored {file}." + (f" The former database is {kept}." if kept else ""))


def export(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="Default: standard output.")] = None,
    json: Json = False,
) -> None:
    """Write everything as JSON lines."""
    with open_memory(context, create=False) as memory:
        count = memory.export(file if file else sys.stdout.buffer)
    if json and file:
        print_json({"file": file, "records": count})
    else:
        notice(f"{count:,} records exported.")


def import_file(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="An export, or '-' for standard input.")],
    json: Json = False,
) -> None:
    """Bring in an export; what is here already, or was forgotten, is skipped."""
    if str(file) != "-" and not file.is_file():
        msg = f"There is no file {file}."
        raise NotFound(msg)
    with open_memory(context) as memory, progress("importing") as report:
        source = sys.stdin.buffer if str(file) == "-" else file.open("rb")
        with source:
            counts = memory.import_lines(source, progress=lambda done: report(done, None))
    if json:
        print_json(counts)
    else:
        print(f"{counts['added']:,} records imported, {counts['skipped']:,} skipped.")


def embed(context: typer.Context, json: Json = False) -> None:
    """Give vectors to everything that waits for one; can be interrupted and resumed."""
    with open_memory(context, create=False) as memory, progress("embedding") as report:
        done = memory.embed_waiting(progress=report)
        notice(memory.notice)
    if json:
        print_json({"embedded": done})
    else:
        print(f"{done:,} items embedded.")


def doctor(
    context: typer.Context,
    fix: Annotated[bool, typer.Option("--fix", help="Rebuild what is derived.")] = False,
    json: Json = False,
) -> None:
    """Check the database, its indexes, the disk, permissions and versions."""
    from lore.memory import examine

    checks = examine(home=context.obj, fix=fix)
    broken = any(check.state == "broken" for check in checks)
    if json:
        print_json(checks)
    else:
        out = console()
        colours = {"ok": "green", "fixed": "green", "degraded": "yellow", "broken": "red"}
        for check in checks:
            out.print(
                f"[{colours[check.state]}]{check.state:<9}[/] {check.name:<12} {check.detail}",
                markup=True,
            )
            if check.remedy:
                out.print(f"{'':<22} → {check.remedy}", markup=False)
    if broken:
        raise typer.Exit(7)


def config(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="One setting.")] = "",
    value: Annotated[str, typer.Argument(help="Its new value.")] = "",
    json: Json = False,
) -> None:
    """Show all settings with their sources, or set one in the user's config.toml."""
    from lore.settings import load, write_user_setting

    loaded = load(home=context.obj, project_dir=Path.cwd())
    if value:
        write_user_setting(loaded.settings.home, key, value)
        loaded = load(home=context.obj, project_dir=Path.cwd())
    shown = [setting for setting in loaded.values if not key or setting.key == key]
    if not shown:
        msg = f"There is no setting '{key}'."
        raise InvalidInput(msg, hint="'lore config' lists them all.")
    hidden = [_without_secret(setting) for setting in shown]
    if json:
        print_json(hidden)
        return
    for setting in hidden:
        print(f"{setting['key']:<24} {setting['value']!s:<28} {setting['source']:<12} {setting['doc']}")


def _without_secret(setting: object) -> dict[str, object]:
    from lore.cli.output import plain

    shown: dict[str, object] = plain(setting)
    if str(shown["key"]).endswith("api_key") and shown["value"]:
        shown["value"] = "(set)"
    return shown


@model.command("install")
def install(context: typer.Context, json: Json = False) -> None:
    """Install the local embedding model: the one step after installing only the wheel."""
    from lore.embed.install import install_model
    from lore.settings import load

    folder = install_model(load(home=context.obj).settings, report=notice)
    if json:
        print_json({"folder": folder})
    else:
        print(f"The model is in {folder}. 'lore embed' gives vectors to what is stored already.")


@model.command("status")
def status(context: typer.Context, json: Json = False) -> None:
    """Show which embedder is in use."""
    from lore.embed import open_embedder
    from lore.settings import load

    opened = open_embedder(load(home=context.obj).settings)
    if json:
        print_json(
            {
                "identity": opened.embedder.identity,
                "dimension": opened.embedder.dimension,
                "notice": opened.notice,
            }
        )
    else:
        print(f"{opened.embedder.identity}  {opened.embedder.dimension} dimensions")
        notice(opened.notice)
