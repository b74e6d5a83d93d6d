"""The command `lore model`: the embedding model, and installing it."""

from __future__ import annotations

import typer

from lore.cli.output import Json, clean, counted, notice, print_json

model = typer.Typer(name="model", invoke_without_command=True, rich_markup_mode=None)


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(model)


@model.callback()
def options(context: typer.Context) -> None:
    """Show or install the embedding model."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@model.command("install")
def install(context: typer.Context, json: Json = False) -> None:
    """Install the local embedding model.

    The one step after installing only the wheel.
    """
    from lore.embed.install import install_model
    from lore.settings import load

    folder = install_model(load(home=context.obj).settings, report=notice)
    if json:
        print_json({"folder": folder})
    else:
        print(clean(f"The model is in {folder}."))
        print("'lore embed' gives vectors to what is stored already.")


@model.command("status")
def status(context: typer.Context, json: Json = False) -> None:
    """Show which embedder is in use."""
    from lore.embed import open_embedder
    from lore.settings import load

    opened = open_embedder(load(home=context.obj).settings)
    identity, dimension = opened.embedder.identity, opened.embedder.dimension
    if json:
        print_json({"identity": identity, "dimension": dimension, "notice": opened.notice})
        return
    if dimension:
        print(clean(f"{identity}  {counted(dimension, 'dimension')}"))
    else:
        print("No embedder: recall works by keywords only. 'lore model install' adds the model.")
    notice(opened.notice)
