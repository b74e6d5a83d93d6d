"""The commands `lore strategy`: profiles, their report, learning and tuning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from lore.cli.options import Cache, Json, Project, command_group
from lore.cli.output import (
    clean,
    notice,
    one_line,
    open_memory,
    plain,
    print_columns,
    print_json,
    progress,
)
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.records import Interval, ProfileReport, TuningResult

strategy = command_group(
    "strategy",
    """Compare ways of choosing memories for a task, and learn which one helps.

Every session has one profile. By default all have the same; 'use random' assigns sessions at
random, and 'learn on' gives more sessions to the profiles that succeed.""",
)

_OFF, _ON = "off", "on"


@strategy.command("list")
def list_profiles(context: Context, json: Json = False) -> None:
    """List the profiles with their share of new sessions."""
    with open_memory(context, or_empty=True) as memory:
        profiles = memory.strategies.profiles()
        state, shares = memory.strategies.state()
    if json:
        print_json({
            "mode": state.mode,
            "profiles": [
                {**profile.as_json(), "share": shares.get(name, 0.0)}
                for name, profile in profiles.items()
            ],
        })  # fmt: skip
        return
    print(f"Mode: {state.mode}.")
    print_columns(
        (name, _share(shares.get(name, 0.0)), profile.source, one_line(profile.description, 60))
        for name, profile in profiles.items()
    )


@strategy.command()
def use(
    context: Context,
    profiles: Annotated[
        list[str],
        Argument(help="A profile for all sessions, or 'random' and the profiles to compare."),
    ],
    json: Json = False,
) -> None:
    """Choose one profile for all sessions, or assign sessions at random to several."""
    with open_memory(context, create=True) as memory:
        memory.strategies.choose(profiles)
        state, shares = memory.strategies.state()
    if json:
        print_json({"mode": state.mode, "shares": shares})
        return
    listed = ", ".join(f"{name} {_share(share)}" for name, share in shares.items())
    print(f"New sessions get: {clean(listed)}.")


@strategy.command()
def learn(
    context: Context,
    switch: Annotated[str, Argument(help="on or off.")],
    json: Json = False,
) -> None:
    """Give more sessions to the profiles that succeed, or stop it.

    Each profile keeps a tenth of the sessions, no share moves by more than five points a day, and
    the first shares return when the success rate drops by a fifth. Off unless you switch it on.
    """
    if switch not in (_ON, _OFF):
        msg = f"'{switch[:40]}' is neither on nor off."
        raise InvalidInput(msg, hint="'lore strategy learn on' or 'lore strategy learn off'.")
    with open_memory(context, create=True) as memory:
        memory.strategies.learn(on=switch == _ON)
        state, shares = memory.strategies.state()
    if json:
        print_json({"mode": state.mode, "shares": shares})
        return
    print(f"Learning is {switch}. 'lore strategy report' shows the shares and what they led to.")


@strategy.command()
def report(
    context: Context,
    since: Annotated[str, Option(help="Only since: a date, or 'last week'.")] = "",
    days: Annotated[bool, Option("--days", help="Show the shares of each day instead.")] = False,
    json: Json = False,
) -> None:
    """Show how the sessions of each profile went, with intervals of 95 %."""
    with open_memory(context, or_empty=True) as memory:
        rows = memory.strategies.report(since=since)
        state, _ = memory.strategies.state()
        history = memory.strategies.days() if days else []
    if json:
        shown = {"days": [one._asdict() for one in history]} if days else {}
        print_json({"mode": state.mode, "rollbacks": state.rollbacks, "profiles": plain(rows),
                    **shown})  # fmt: skip
        return
    if days:
        print_columns((one.day, one.profile, _share(one.share)) for one in history)
        return
    print(f"Mode: {state.mode}." + (f" Rollbacks: {state.rollbacks}." if state.rollbacks else ""))
    head = (
        "profile",
        "share",
        "sessions",
        "completed",
        "latency ms",
        "tokens",
        "satisfied",
        "used",
    )
    print_columns([head, *map(_row, rows)])
    if not any(row.sessions for row in rows):
        notice("No session has been given a profile yet.")


@strategy.command()
def tune(
    context: Context,
    data: Annotated[
        Path | None, Option(help="Folder with coding-sessions*.jsonl.gz to search over as well.")
    ] = None,
    sets: Annotated[
        list[str] | None, Option(help="Only files whose names start with this; repeatable.")
    ] = None,
    project: Project = "",
    name: Annotated[str, Option(help="Name of the new profile (default: tuned and the day).")] = "",
    cache: Cache = None,
    json: Json = False,
) -> None:
    """Search for a better profile over the log of tasks, and store it without using it.

    The latest third of the tasks is held out from the search: the gain is measured on it.
    """
    from lore.evals import task_eval as evaluation

    with open_memory(context, create=True) as memory, progress("tuning", quiet=json) as show:
        cases = (
            evaluation.collect_cases(data, sets=sets or (), cache=cache, report=show)
            if data
            else []
        )
        result = memory.strategies.tune(project=project, cases=cases, name=name)
    if json:
        print_json(result)
        return
    _print_tuning(result)


def _print_tuning(result: TuningResult) -> None:
    print(f"{result.tried:,} profiles tried on {result.before.cases:,} tasks.")
    head = ("", "fitness", "score", "efficiency", "latency", "tasks")
    rows = (
        ("now, searched part", result.before),
        (f"{result.name}, searched part", result.after),
        ("now, held-out part", result.before_held_out),
        (f"{result.name}, held-out part", result.after_held_out),
    )
    print_columns([
        head,
        *(
            (one_line(label, 60), f"{row.fitness:.3f}", f"{row.score:.3f}",
             f"{row.efficiency:.3f}", f"{row.latency:.3f}", str(row.cases))
            for label, row in rows
        ),
    ])  # fmt: skip
    gain = result.gain
    print(
        f"Gain on the held-out part: {gain.value:+.3f} (95 % {gain.low:+.3f} to {gain.high:+.3f})."
    )
    if gain.low <= 0:
        notice("The gain may be chance: more tasks will tell.")
    print(clean(f"Stored as '{result.name}', not in use: 'lore strategy use {result.name}'."))


def _row(row: ProfileReport) -> tuple[str, ...]:
    return (
        one_line(row.profile, 40), _share(row.share), str(row.sessions),
        _percent(row.completion), _number(row.latency_ms), _number(row.tokens),
        _percent(row.satisfaction), _percent(row.used),
    )  # fmt: skip


def _share(share: float) -> str:
    return f"{100 * share:.0f} %" if share else "-"


def _percent(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    low, high = max(0.0, interval.low), min(1.0, interval.high)
    return f"{100 * interval.value:.0f} % ({100 * low:.0f} to {100 * high:.0f}, n={interval.n})"


def _number(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    if interval.n == 1:
        return f"{interval.value:.0f} (n=1)"
    return f"{interval.value:.0f} ({interval.low:.0f} to {interval.high:.0f}, n={interval.n})"
