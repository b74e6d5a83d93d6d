"""The command `lore eval`: measure recall, digest, forgetting, injection and costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from lore.cli.options import Cache, Json, Recipe, command_group
from lore.cli.output import clean, print_json, print_result, progress

Sets = Annotated[
    list[str] | None, Option(help="Only files whose names start with this; repeatable.")
]

evaluate = command_group("eval", "Measure quality on evaluation data.")


@evaluate.command()
def retrieval(
    data: Annotated[Path, Option(help="Folder with evaluation files.")],
    corpus: Annotated[Path | None, Option(help="Folder with coding-sessions.jsonl.gz.")] = None,
    sets: Sets = None,
    recipe: Recipe = "learned",
    baselines: Annotated[
        bool, Option("--baselines", help="Score BM25, cosine, RRF and peers too.")
    ] = False,
    cache: Cache = None,
    store: Annotated[
        str, Option(help="Address of a PostgreSQL database to fill; without one, SQLite files.")
    ] = "",
    vectors: Annotated[
        str, Option(help="Address of a Qdrant to search vectors in; without one, the own index.")
    ] = "",
    json: Json = False,
) -> None:
    """Score recall on LoCoMo, BEAM, coding sessions, multi-hop and long sessions."""
    from lore.evals import retrieval as evaluation

    with progress("evaluating", quiet=json) as report:
        result = evaluation.run(
            data,
            corpus=corpus,
            sets=sets or (),
            recipe=recipe,
            baselines=baselines,
            cache=cache,
            store=store,
            vectors=vectors,
            report=report,
        )
    print_result(result.as_json(), result.as_table(), json=json)


@evaluate.command()
def digest(
    data: Annotated[Path, Option(help="Folder with evaluation files.")],
    sets: Sets = None,
    cache: Cache = None,
    json: Json = False,
) -> None:
    """Compare recall over messages, over messages and their offline digest, and over the digest."""
    from lore.evals import digest as evaluation

    with progress("evaluating", quiet=json) as report:
        result = evaluation.run(data, sets=sets or (), cache=cache, report=report)
    print_result(result.as_json(), result.as_table(), json=json)


@evaluate.command()
def forgetting(
    months: Annotated[int, Option(min=1, max=120, help="Months to simulate.")] = 24,
    picture: Annotated[Path | None, Option(help="Write a picture (SVG) to this file.")] = None,
    json: Json = False,
) -> None:
    """Simulate months of reading and forgetting: what is still visible, by importance and use."""
    from lore.evals import retention as evaluation

    with progress("simulating", quiet=json) as report:
        result = evaluation.run(months=months, report=report)
    if picture:
        picture.write_text(evaluation.draw(result), "utf-8")
    print_result(result.as_json(), result.as_table(), json=json)


@evaluate.command()
def injection(
    data: Annotated[Path, Option(help="Folder with coding-qa*.jsonl.gz.")],
    corpus: Annotated[Path | None, Option(help="Folder with the coding sessions.")] = None,
    sets: Sets = None,
    questions: Annotated[int, Option(min=1, max=10_000, help="Questions of a project.")] = 200,
    replay: Annotated[
        bool, Option("--replay", help="Replay the real prompts of coding-sessions.jsonl.gz.")
    ] = False,
    cache: Cache = None,
    show: Annotated[int, Option(help="Number of prompts to show with what they are given.")] = 0,
    json: Json = False,
) -> None:
    """Measure what prompts are given unasked: precision, recall, and at which threshold."""
    from lore.evals import injection as evaluation
    from lore.evals import injection_replay

    result: evaluation.Result | injection_replay.Result
    with progress("evaluating", quiet=json) as report:
        if replay:
            result = injection_replay.run(corpus or data, cache=cache, samples=show, report=report)
        else:
            result = evaluation.run(
                data, corpus=corpus, sets=sets or (), questions=questions, cache=cache,
                samples=show, report=report,
            )  # fmt: skip
    if json:
        print_json(result.as_json())
        return
    for prompt, text in result.samples:
        print(f"PROMPT: {clean(prompt[:600])}\n{clean(text)}\n")
    print(result.as_table())


@evaluate.command()
def stale(
    data: Annotated[Path, Option(help="File with scenarios, or folder with files stale*.")],
    cache: Cache = None,
    totals: Annotated[bool, Option("--totals", help="Print no scenario, only totals.")] = False,
    json: Json = False,
) -> None:
    """Play scenarios in which a value is replaced, and count where the old one still shows."""
    from lore.evals import staleness

    with progress("evaluating", quiet=json) as report:
        result = staleness.run(data, cache=cache, report=report)
    if totals and json:
        print_json({"totals": result.totals()})
        return
    print_result(result.as_json(), result.as_table(totals_only=totals), json=json)


@evaluate.command()
def economics(
    context: Context,
    data: Annotated[Path | None, Option(help="Folder with long-session-*.jsonl.gz.")] = None,
    sessions: Annotated[
        list[str] | None, Option(help="A captured session to replay; repeatable.")
    ] = None,
    model: Annotated[
        list[str] | None, Option(help="Model whose prices to use; repeatable.")
    ] = None,
    hour: Annotated[
        bool, Option("--hour", help="Assume a prompt cache of an hour instead of five minutes.")
    ] = False,
    fixed_tokens: Annotated[
        int,
        Option(
            min=0, max=1_000_000, help="Tokens that system prompt and tools add to each request."
        ),
    ] = 0,
    svg: Annotated[
        Path | None, Option(help="Write a picture of the first session's layers to this file.")
    ] = None,
    cache: Cache = None,
    json: Json = False,
) -> None:
    """Replay long sessions: what each prompt strategy costs, and what it still knows."""
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
        svg.write_text(evaluation.draw(result), "utf-8")
    print_result(result.as_json(), result.as_table(), json=json)


@evaluate.command()
def tasks(
    data: Annotated[Path, Option(help="Folder with coding-sessions*.jsonl.gz.")],
    sets: Sets = None,
    sessions: Annotated[
        int, Option(min=0, max=100_000, help="Only the first sessions of each file; 0 for all.")
    ] = 0,
    cache: Cache = None,
    show: Annotated[int, Option(min=0, help="Number of tasks to show with what is given.")] = 0,
    json: Json = False,
) -> None:
    """Replay real sessions: is what a task is given before it begins used in what follows?"""
    from lore.evals import task_eval as evaluation

    with progress("replaying", quiet=json) as report:
        result = evaluation.run(
            data, sets=sets or (), cache=cache, most_sessions=sessions, samples=show, report=report
        )
    if json:
        print_json(result.as_json())
        return
    for sample in result.samples:
        print(f"{clean(sample)}\n")
    print(result.as_table())
