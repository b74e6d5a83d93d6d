"""The command `lore spend`: what calls to models cost, and what Lore saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lore.cli.output import (
    Json,
    bold,
    counted,
    dim,
    lasting,
    one_line,
    open_memory,
    print_columns,
    print_json,
)

if TYPE_CHECKING:
    from lore.records import SpendLine, SpendReport

_By = Literal["model", "project", "session", "day"]

_NAMELESS = {"project": "(no project)", "session": "(no session)"}


def add_to(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(spend)


def spend(
    context: typer.Context,
    since: Annotated[
        str, typer.Option(help="Since a date, or 'last week'; today if not given.")
    ] = "",
    by: Annotated[_By, typer.Option(help="What it is added up by.")] = "model",
    json: Json = False,
) -> None:
    """Show what calls to models cost today, and what Lore saved by its own estimate.

    The estimate takes the same prices for what the requests would have been without Lore, and
    takes off what Lore's own work in the background cost. Days are days in UTC.
    """
    with open_memory(context, or_empty=True) as memory:
        report = memory.spend_report(since=since, by=by)
    if json:
        print_json(report)
    else:
        _print_report(report)


def _print_report(report: SpendReport) -> None:
    total = report.total
    print(bold(f"Since {report.since:%Y-%m-%d %H:%M} UTC: ${total.usd:.4f}"))
    if not report.lines:
        print("Nothing spent yet: no model was asked.")
    header = (report.by, "requests", "tokens in", "cached", "out", "spent", "saved (estimated)")
    rows = [_row(line, report.by) for line in report.lines]
    if rows:
        print_columns([tuple(dim(cell) for cell in header), *rows])
    _print_saved(total)
    budget = report.budget
    if budget.budget_usd is not None:
        used = budget.spent_usd + budget.reserved_usd
        print(f"Budget of today: ${used:.4f} of ${budget.budget_usd:.4f} spent or set aside.")
    if total.delayed:
        waited = lasting(total.delay_ms / 1_000)
        print(f"{counted(total.delayed, 'request')} waited {waited}, for budget or quota.")
    if total.estimated:
        requests = counted(total.estimated, "request")
        print(f"What {requests} took was not reported; it is estimated.")
    if total.unpriced:
        calls = counted(total.unpriced, "call")
        print(f"The price of {calls} is not known; 'lore config prices' can tell it.")


def _print_saved(total: SpendLine) -> None:
    if not total.requests:
        return
    told = f"Without Lore it would have cost about ${total.without_usd:.4f} (estimated)"
    if total.saved_usd >= 0:
        print(f"{told}: ${total.saved_usd:.4f} saved.")
    else:
        print(f"{told}: Lore cost ${-total.saved_usd:.4f} more.")


def _row(line: SpendLine, by: str) -> tuple[str, ...]:
    calls = f"{line.requests:,}"
    if line.background:
        calls += f" + {line.background:,} own"
    return (
        one_line(line.label or line.name[:13] if by == "session" else line.label or line.name, 60)
        or _NAMELESS.get(by, "–"),
        calls,
        f"{line.tokens.input_tokens:,}",
        f"{line.tokens.cache_read_tokens:,}",
        f"{line.tokens.output_tokens:,}",
        f"${line.usd:.4f}",
        f"{'-' if line.saved_usd < 0 else ''}${abs(line.saved_usd):.4f}",
    )
