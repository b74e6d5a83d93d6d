"""Commands of the gateway and its costs: gateway, spend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from typer import Context, Option

from lore.cli.options import Json
from lore.cli.output import (
    bold,
    coloured,
    counted,
    dim,
    format_duration,
    load_settings,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
)

if TYPE_CHECKING:
    from lore.records import SpendLine, SpendReport


_TITLES = {
    "claude": "Claude Code and Anthropic's SDKs, by environment",
    "codex": "Codex, in config.toml or with -c",
    "opencode": "opencode, in opencode.json as options.baseURL of each provider",
    "openai": "OpenAI's SDKs, by environment",
    "gemini": "Gemini CLI and Google's SDKs, by environment",
}


def gateway(context: Context, json: Json = False) -> None:
    """Show the gateway's address, and how to configure clients for it.

    The gateway is part of the daemon: 'lore up' serves it, the setting gateway.on turns it off.
    """
    from lore.gateway.connection_owner import CAN_FIND_OWNER
    from lore.proxy.address import LOOPBACK_HOSTS, find_address, url_of

    settings = load_settings(context)
    daemon = find_address(str(settings.home))
    url = daemon.url if daemon else url_of(settings.server_host, settings.server_port)
    needs_key = (daemon.host if daemon else settings.server_host) not in LOOPBACK_HOSTS
    variables = _variables(url, needs_key=needs_key)
    upstreams = {
        "anthropic": settings.gateway_anthropic_url,
        "openai": settings.gateway_openai_url,
        "chatgpt": settings.gateway_chatgpt_url,
        "gemini": settings.gateway_gemini_url,
    }
    if json:
        print_json({
            "on": settings.gateway_on,
            "running": daemon is not None,
            "url": url,
            "needs_key": needs_key,
            "own_user_only": CAN_FIND_OWNER,
            "clients": variables,
            "upstreams": upstreams,
        })
        return
    _print_state(url, on=settings.gateway_on, runs=daemon is not None)
    if settings.gateway_on and not CAN_FIND_OWNER:
        notice("This system does not report who owns a connection: all local users have access.")
    for client, values in variables.items():
        print(f"\n{bold(_TITLES[client])}")
        print_columns((f"   {name}", value) for name, value in values.items())
    print(f"\n{bold('forwarded to')}")
    print_columns((f"   {name}", dim(address)) for name, address in upstreams.items())


def _print_state(url: str, *, on: bool, runs: bool) -> None:
    if not on:
        print(f"{bold('off')}  'lore config gateway.on true' turns it on, from the next start.")
    elif runs:
        print(f"{coloured('on', 'green')}  {url}  'lore run claude' uses it for one session.")
    else:
        print(f"{bold('not running')}  'lore up --detach' starts it, at {url}.")


def _variables(url: str, *, needs_key: bool) -> dict[str, dict[str, str]]:
    """Return the variables to set for each client."""
    key = "x-lore-key: KEY"
    return {
        "claude": {"ANTHROPIC_BASE_URL": url}
        | ({"ANTHROPIC_CUSTOM_HEADERS": key} if needs_key else {}),
        "codex": {"openai_base_url": f"{url}/v1"},
        "opencode": {"anthropic, openai": f"{url}/v1", "google": f"{url}/v1beta"},
        "openai": {"OPENAI_BASE_URL": f"{url}/v1"},
        "gemini": {"GOOGLE_GEMINI_BASE_URL": url}
        | ({"GEMINI_CLI_CUSTOM_HEADERS": key} if needs_key else {}),
    }


_By = Literal["model", "project", "session", "day"]

_NAMELESS = {"project": "(no project)", "session": "(no session)"}


def spend(
    context: Context,
    since: Annotated[str, Option(help="Since a date, or 'last week'; today if not given.")] = "",
    by: Annotated[_By, Option(help="Group by model, project, session or day.")] = "model",
    json: Json = False,
) -> None:
    """Show what calls to models cost today, and about how much Lore saved.

    The estimate applies the same prices to the requests as they would have been without Lore, and
    subtracts what Lore's own background work cost. Days are in UTC.
    """
    with open_memory(context, or_empty=True) as memory:
        report = memory.budget.spend_report(since=since, by=by)
    if json:
        print_json(report)
    else:
        _print_report(report)


def _print_report(report: SpendReport) -> None:
    total = report.total
    print(bold(f"Since {report.since:%Y-%m-%d %H:%M} UTC: ${total.usd:.4f}"))
    if not report.lines:
        print("Nothing spent yet: no model was called.")
    header = (report.by, "requests", "tokens in", "cached", "out", "spent", "saved (estimated)")
    rows = [_row(line, report.by) for line in report.lines]
    if rows:
        print_columns([tuple(dim(cell) for cell in header), *rows])
    _print_saved(total)
    budget = report.budget
    if budget.budget_usd is not None:
        used = budget.spent_usd + budget.reserved_usd
        print(f"Today's budget: ${used:.4f} of ${budget.budget_usd:.4f} spent or reserved.")
    if total.delayed:
        waited = format_duration(total.delay_ms / 1_000)
        print(f"{counted(total.delayed, 'request')} waited {waited}, for budget or quota.")
    if total.estimated:
        requests = counted(total.estimated, "request")
        print(f"The usage of {requests} was not reported; it is estimated.")
    if total.unpriced:
        calls = counted(total.unpriced, "call")
        print(f"The price of {calls} is unknown; set it with 'lore config prices'.")


def _print_saved(total: SpendLine) -> None:
    if not total.requests:
        return
    estimate = f"Without Lore it would have cost about ${total.without_usd:.4f} (estimated)"
    if total.saved_usd >= 0:
        print(f"{estimate}: ${total.saved_usd:.4f} saved.")
    else:
        print(f"{estimate}: Lore cost ${-total.saved_usd:.4f} more.")


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
