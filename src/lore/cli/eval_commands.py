"""The command `lore eval`: measure recall, digest, injection and costs on evaluation data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lore.cli.output import Json, clean, print_json, progress, recipes

evaluate = typer.Typer(name="eval", invoke_without_command=True, rich_markup_mode=None)


def add_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.add_typer(evaluate)


@evaluate.callback()
def options(context: typer.Context) -> None:
    """Measure quality on evaluation data."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@evaluate.command()
def retrieval(
    data: Annotated[Path, typer.Option(help="Folder with evaluation files.")],
    corpus: Annotated[
        Path | None, typer.Option(help="Folder with coding-sessions.jsonl.gz.")
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="learned, weighted or rrf.", autocompletion=recipes)
    ] = "learned",
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Score BM25, cosine, RRF and peers too.")
    ] = False,
    cache: Annotated[Path | None, typer.Option(help="Folder for cached vectors.")] = None,
    json: Json = False,
) -> None:
    """Score recall on LoCoMo, BEAM, coding sessions, multi-hop and long sessions."""
    from lore.evals import retrieval as evaluation

    with progress("evaluating", quiet=json) as report:
        result = evaluation.run(
            data, corpus=corpus, recipe=recipe, baselines=baselines, cache=cache, report=report
        )
    if json:
        print_json(result.as_json())
    else:
        print(result.as_table())


@evaluate.command()
def digest(
    data: Annotated[Path, typer.Option(help="Folder with evaluation files.")],
    sets: Annotated[
        list[str] | None, typer.Option(help="Only files whose names start with this; repeatable.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder for cached vectors.")] = None,
    json: Json = False,
) -> None:
    """Compare recall over messages, over messages and their offline digest, and over the digest."""
    from lore.evals import digest as evaluation

    with progress("evaluating", quiet=json) as report:
        result = evaluation.run(data, sets=sets or (), cache=cache, report=report)
    if json:
        print_json(result.as_json())
    else:
        print(result.as_table())


@evaluate.command()
def injection(
    data: Annotated[Path, typer.Option(help="Folder with coding-sessions.jsonl.gz.")],
    cache: Annotated[Path | None, typer.Option(help="Folder for cached vectors.")] = None,
    show: Annotated[
        int, typer.Option(help="Number of prompts to show with what they are given.")
    ] = 0,
    json: Json = False,
) -> None:
    """Replay recorded sessions and judge what each prompt would be given unasked."""
    from lore.evals import injection as evaluation

    with progress("evaluating", quiet=json) as report:
        result = evaluation.run(data, cache=cache, samples=show, report=report)
    if json:
        print_json(result.as_json())
        return
    for prompt, text in result.samples:
        print(f"PROMPT: {clean(prompt[:600])}\n{clean(text)}\n")
    print(result.as_table())


@evaluate.command()
def economics(
    context: typer.Context,
    data: Annotated[Path | None, typer.Option(help="Folder with long-session-*.jsonl.gz.")] = None,
    sessions: Annotated[
        list[str] | None, typer.Option(help="A captured session to replay; repeatable.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Model whose prices to use; repeatable.")
    ] = None,
    hour: Annotated[
        bool,
        typer.Option("--hour", help="Assume a prompt cache of an hour instead of five minutes."),
    ] = False,
    fixed_tokens: Annotated[
        int,
        typer.Option(
            min=0, max=1_000_000, help="Tokens that system prompt and tools add to each request."
        ),
    ] = 0,
    svg: Annotated[
        Path | None,
        typer.Option(help="Write a picture of the first session's layers to this file."),
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder for cached vectors.")] = None,
    json: Json = False,
) -> None:
    """Replay long sessions: what each prompt strategy costs, and what it still knows."""
    from lore.evals import economics
    from lore.evals import economics as evaluation
    from lore.evals.replay import CACHE_TTL_S, LONG_CACHE_TTL_S, ReplayClient

    with progress("replaying", quiet=json) as report:
        result = evaluation.run(
            data,
            sessions=sessions or (),
            home=context.obj,
            models=model or evaluation.MODELS,
            client=ReplayClient(LONG_CACHE_TTL_S if hour else CACHE_TTL_S, fixed_tokens),
            cache=cache,
            report=report,
        )
    if svg:
        svg.write_text(economics.draw(result), "utf-8")
    if json:
        print_json(result.as_json())
    else:
        print(result.as_table())
