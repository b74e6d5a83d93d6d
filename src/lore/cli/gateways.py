"""The command of the gateway: gateway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import typer

from lore.cli import quick
from lore.cli.output import Json, bold, coloured, dim, notice, print_columns, print_json
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.settings import Settings
    from lore.setup.starting import Through

_TITLES = {
    "claude": "Claude Code and Anthropic's SDKs, by environment",
    "codex": "Codex, in config.toml or with -c",
    "opencode": "opencode, in opencode.json as options.baseURL of each provider",
    "openai": "OpenAI's SDKs, by environment",
    "gemini": "Gemini CLI and Google's SDKs, by environment",
}


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("gateway")(show)


def show(context: typer.Context, json: Json = False) -> None:
    """Show where the gateway is, and how a client is told to talk to its model through it.

    It is part of the daemon: 'lore up' serves it, the setting gateway.on turns it off.
    """
    from lore.gateway.peers import TELLS_OWNERS
    from lore.proxy.address import LOOPBACK, find_address, url_of
    from lore.settings import load

    settings = load(home=context.obj).settings
    found = find_address(str(settings.home))
    url = found.url if found else url_of(settings.server_host, settings.server_port)
    needs_key = (found.host if found else settings.server_host) not in LOOPBACK
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
            "running": found is not None,
            "url": url,
            "needs_key": needs_key,
            "own_user_only": TELLS_OWNERS,
            "clients": variables,
            "upstreams": upstreams,
        })
        return
    _print_state(url, on=settings.gateway_on, runs=found is not None)
    if settings.gateway_on and not TELLS_OWNERS:
        notice("This system does not tell whose a connection is: every user of it may pass.")
    for client, told in variables.items():
        print(f"\n{bold(_TITLES[client])}")
        print_columns((f"   {name}", value) for name, value in told.items())
    print(f"\n{bold('passed on to')}")
    print_columns((f"   {name}", dim(address)) for name, address in upstreams.items())


def _print_state(url: str, *, on: bool, runs: bool) -> None:
    if not on:
        print(f"{bold('off')}  'lore config gateway.on true' turns it on, from the next start.")
    elif runs:
        print(f"{coloured('on', 'green')}  {url}  'lore run claude' uses it for one session.")
    else:
        print(f"{bold('not running')}  'lore up --detach' starts it, at {url}.")


def _variables(url: str, *, needs_key: bool) -> dict[str, dict[str, str]]:
    """Return what to set for which client."""
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


def through(settings: Settings, agent: str) -> Through | None:
    """Return the gateway for an agent that is started here; None, and a word why, if there is none.

    The daemon is started where none runs.
    """
    from lore.proxy.address import LOOPBACK, find_address
    from lore.setup.starting import BASE_URLS, CUSTOM_HEADERS, Through

    environ = os.environb
    name = agent.removesuffix("-code")
    variable = BASE_URLS.get(name, "")
    if variable and environ.get(variable.encode()):
        notice(f"{variable} is set: this run does not use the gateway.")
        return None
    home = str(settings.home)
    found = find_address(home) or quick.start(home)
    if found is None:
        notice("The daemon does not run: this run does not use the gateway.")
        return None
    headers = {"x-lore-project": quote(str(Path.cwd()), safe="/")}
    if found.host not in LOOPBACK:
        if agent == "codex":
            notice("Codex cannot send the key that is needed: this run does not use the gateway.")
            return None
        headers["x-lore-key"] = found.key
    if name in CUSTOM_HEADERS:
        custom, between = CUSTOM_HEADERS[name]
        former = os.fsdecode(environ.get(custom.encode(), b""))
        pairs = (line.partition(":") for line in former.split(between))
        kept = {name.strip(): value.strip() for name, _, value in pairs if value.strip()}
        headers = {**kept, **headers}
    return Through(found.url, headers)


def lasting_url(settings: Settings) -> str:
    """Return the address of the gateway for the files of agents, or raise if none would last."""
    from lore.proxy.address import LOOPBACK, find_address, url_of

    if not settings.gateway_on:
        msg = "The gateway is off."
        raise InvalidInput(msg, hint="'lore config gateway.on true' turns it on.")
    if not settings.server_port:
        msg = "The server has another port at every start (server.port is 0)."
        raise InvalidInput(msg, hint="'lore config server.port 3207' gives it one.")
    found = find_address(str(settings.home))
    host = found.host if found else settings.server_host
    if host not in LOOPBACK:
        msg = f"At {host} the gateway wants a key, which does not belong into a file of an agent's."
        raise InvalidInput(msg, hint="'lore run AGENT' hands it over for one run.")
    return found.url if found else url_of(host, settings.server_port)
