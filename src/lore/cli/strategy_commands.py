"""The commands `lore strategy`: profiles, their report, learning and tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from lore.cli.options import Json, command_group
from lore.cli.output import (
    clean,
    notice,
    one_line,
    open_memory,
    plain,
    print_columns,
    print_json,
)
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.records import Interval, ProfileReport

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
    first, *others = profiles
    with open_memory(context, create=True) as memory:
        if first == "random":
            memory.strategies.use_random(others)
        elif others:
            msg = "Name one profile, or 'random' and those to compare."
            raise InvalidInput(msg, hint="Example: 'lore strategy use random balanced task-types'.")
        else:
            memory.strategies.use(first)
        state, shares = memory.strategies.state()
    if json:
        print_json({"mode": state.mode, "shares": shares})
        return
    said = ", ".join(f"{name} {_share(share)}" for name, share in shares.items())
    print(f"New sessions get: {clean(said)}.")


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
