"""Commands that give memory to agents: setup, run."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import quote

from typer import Argument, Context, Option

from lore.cli import digest_consent, fast_path
from lore.cli.options import DryRun, Json
from lore.cli.output import (
    bold,
    clean,
    coloured,
    diff_line,
    dim,
    load_settings,
    notice,
    print_columns,
    print_json,
)
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.records import Check
    from lore.settings import Settings
    from lore.setup.agents import Agent
    from lore.setup.config_changes import Change
    from lore.setup.launch import GatewayRoute


def setup(
    context: Context,
    agents: Annotated[
        list[str] | None,
        Argument(
            help="claude-code, codex, opencode, cursor, gemini, or 'all' installed ones.",
            show_default=False,
        ),
    ] = None,
    gateway: Annotated[
        bool, Option("--gateway", help="Also route its requests through the gateway.")
    ] = False,
    statusline: Annotated[
        bool, Option("--statusline", help="Also show Lore in Claude Code's status line.")
    ] = False,
    chat: Annotated[
        bool | None,
        Option(
            "--chat/--no-chat",
            help="Let the agent's command digest conversations, or digest offline; do not ask.",
            show_default=False,
        ),
    ] = None,
    undo: Annotated[bool, Option("--undo", help="Restore the files.")] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Give an agent memory: add Lore to its configuration.

    Comments and everything else in the files stay; the former content is stored for --undo. Without
    an agent, list the supported agents.
    """
    from lore.setup import config_changes
    from lore.setup.agents import AGENTS

    settings = load_settings(context)
    home = settings.home
    command = own_command(home)
    if not agents:
        _refuse_alone({"--undo": undo, "--gateway": gateway, "--statusline": statusline})
        _refuse_alone({"--chat": chat is not None})
        _list(settings, command, json=json)
        return
    chosen = _chosen(agents, list(AGENTS))
    url = _permanent_url(settings) if gateway and not undo else ""
    wanted = _Wanted(url, undo, statusline)
    plugged = [agent for agent in chosen if not undo and _needs_nothing(agent, wanted)]
    plans = [
        (agent, _plan(home, agent, command, wanted)) for agent in chosen if agent not in plugged
    ]
    missing = [] if undo else _not_installed(chosen)
    if not dry_run:
        for agent, planned in plans:
            config_changes.apply(home, agent, planned, undo=undo, address=url)
    if not undo and not dry_run:
        _cache_handshake(settings)
    names = [] if undo or dry_run else [agent.name for agent in chosen]
    if json:
        digest_consent.settle_consent(context, names, chat, may_ask=False)
        _print_json([*plans, *((agent, []) for agent in plugged)], dry_run=dry_run)
        return
    for agent in plugged:
        _print_plugged(agent, home, command)
    for agent, planned in plans:
        _print(agent, planned, undo=undo, dry_run=dry_run, is_missing=agent in missing)
    _print_missing(missing)
    if url and not dry_run:
        _print_gateway(settings, [agent for agent, _ in plans], url)
    if names:
        digest_consent.settle_consent(context, names, chat)
        print(
            "'lore capture --all' imports your agents' past conversations; with 'lore up --detach'"
        )
        print("new ones are captured automatically.")
        print_memories(settings)


def print_memories(settings: Settings, label: str = "") -> None:
    """Print one sentence on the memories that agents have of their own, if there are any."""
    from lore.setup.agent_checks import describe_memories

    sentence = describe_memories(Path.home(), are_read=settings.capture_native)
    if sentence:
        print(f"{label}{sentence}")


def _permanent_url(settings: Settings) -> str:
    """Return the gateway's address for the files of agents, or raise if it may change."""
    from lore.proxy.address import LOOPBACK_HOSTS, find_address, url_of

    if not settings.gateway_on:
        msg = "The gateway is off."
        raise InvalidInput(msg, hint="'lore config gateway.on true' turns it on.")
    if not settings.server_port:
        msg = "The server uses another port at every start (server.port is 0)."
        raise InvalidInput(msg, hint="'lore config server.port 3207' sets a fixed port.")
    daemon = find_address(str(settings.home))
    host = daemon.host if daemon else settings.server_host
    if host not in LOOPBACK_HOSTS:
        msg = f"At {host} the gateway needs an access key, which must not be in an agent's file."
        raise InvalidInput(msg, hint="'lore run AGENT' passes it on for one run.")
    return daemon.url if daemon else url_of(host, settings.server_port)


def check_agents(settings: Settings) -> list[Check]:
    """Check the agents of this user, for doctor."""
    from lore.setup import agent_checks

    home = settings.home
    command = own_command(home)
    return [
        agent_checks.check_memories(settings, Path.home()),
        *agent_checks.check_agents(home, command, Path.home(), _search_path()),
        *agent_checks.check_gateway(home, command, Path.home()),
    ]


def _refuse_alone(options: dict[str, bool]) -> None:
    """Raise if an option is used that needs an agent."""
    for option, is_given in options.items():
        if is_given:
            msg = f"'{option}' needs an agent."
            raise InvalidInput(msg, hint="Name an agent, or 'all' for all installed ones.")


class _Wanted(NamedTuple):
    """What a setup writes beside the memory; `url` is the gateway's address, if that is wanted."""

    url: str
    undo: bool
    statusline: bool


def _needs_nothing(agent: Agent, wanted: _Wanted) -> bool:
    """Return whether an agent has memory through its plugin, and needs nothing else either."""
    from lore.setup.agents import STATUS_LINE_AGENT
    from lore.setup.gateway_address import ADDRESS_KEYS

    needs_address = wanted.url and agent.name in ADDRESS_KEYS
    needs_line = wanted.statusline and agent.name == STATUS_LINE_AGENT
    return agent.has_plugin(Path.home()) and not needs_address and not needs_line


def _print_json(plans: list[tuple[Agent, list[Change]]], *, dry_run: bool) -> None:
    print_json([
        {
            "agent": agent.name,
            "changed": [str(change.path) for change in changes if not change.is_noop],
            "dry_run": dry_run,
        }
        for agent, changes in plans
    ])


def _plan(home: Path, agent: Agent, command: list[str], wanted: _Wanted) -> list[Change]:
    """Return the changes of an agent's files.

    An undo also removes gateway addresses and the status line.
    """
    from lore.setup import config_changes
    from lore.setup.agents import STATUS_LINE_AGENT, with_status_line
    from lore.setup.gateway_address import GatewayAddress, with_gateway

    url, undo, statusline = wanted
    plan = config_changes.plan_undo if undo else config_changes.plan
    address = GatewayAddress(url, config_changes.stored_addresses(home, agent))
    edits = agent.edits(Path.home(), command)
    memory = undo or not agent.has_plugin(Path.home())
    edits = with_gateway(agent.name, edits, address, puts=bool(url), memory=memory)
    if agent.name == STATUS_LINE_AGENT:
        edits = with_status_line(edits, command, puts=statusline and not undo)
    return plan(home, agent, edits)


def _print_gateway(settings: Settings, agents: list[Agent], url: str) -> None:
    """Print what agents that use the gateway depend on, and which ones cannot use it."""
    from lore.proxy.address import find_address
    from lore.setup.gateway_address import ADDRESS_KEYS

    for agent in agents:
        if agent.name not in ADDRESS_KEYS:
            notice(f"{agent.title} has no file for the address: 'lore gateway' shows what to set.")
    titles = " and ".join(agent.title for agent in agents if agent.name in ADDRESS_KEYS)
    if not titles:
        return
    if find_address(str(settings.home)) is None:
        notice(f"No daemon runs: 'lore up --detach', or {titles} cannot reach the model.")
    print(f"From now on {titles} can reach the model only while Lore runs, at {url}:")
    print("'lore service install' starts it at every login, 'lore setup AGENT --undo' undoes this.")


def _cache_handshake(settings: Settings) -> None:
    """Cache the handshake, so that the first session does not wait for a daemon to start."""
    from lore.mcp.handshake_builder import ensure_saved

    with suppress(OSError):
        ensure_saved(settings)


def _chosen(names: list[str], agents: list[Agent]) -> list[Agent]:
    from lore.setup.agents import get_agent

    if "all" not in names:
        return [get_agent(name) for name in dict.fromkeys(names)]
    installed = [agent for agent in agents if agent.is_found(Path.home(), _search_path())]
    if not installed:
        msg = "No supported agent is installed here."
        raise InvalidInput(msg, hint="Name an agent to set it up anyway.")
    return installed


def _not_installed(agents: list[Agent]) -> list[Agent]:
    """Return the agents that are not installed; their own files would be a sign of them later."""
    return [one for one in agents if not one.is_found(Path.home(), _search_path())]


def _print_missing(agents: list[Agent]) -> None:
    if agents:
        names = ", ".join(agent.title for agent in agents)
        notice(f"{names} was not found on this machine; its settings wait for it.")


def _search_path() -> str:
    return os.pathsep.join(os.get_exec_path())


def own_command(home: Path) -> list[str]:
    """Return the command that runs this installation, whatever environment an agent has."""
    started = Path(sys.argv[0])
    beside = Path(sys.executable).with_name("lore")
    candidates = (started if started.name == "lore" else beside, beside)
    program = next((path.absolute() for path in candidates if path.is_file()), None)
    words = [str(program or shutil.which("lore") or "lore")]
    return words if home == Path.home() / ".lore" else [*words, "--home", str(home)]


class _AgentState(NamedTuple):
    """The state of an agent; field names are part of the JSON output."""

    agent: str
    found: bool
    set_up: bool
    plugin: bool
    gateway: str
    """The gateway address that it is configured with, if any."""
    problem: str


def _list(settings: Settings, command: list[str], *, json: bool) -> None:
    from lore.setup.agents import AGENTS

    home = settings.home

    rows = [(agent, _agent_state(home, agent, command)) for agent in AGENTS]
    if json:
        print_json([state._asdict() for _, state in rows])
        return
    print_columns(
        (
            agent.name,
            agent.title,
            "found" if state.found else dim("not found"),
            _state(ready=state.set_up, plugged=state.plugin),
            f"through {state.gateway}" if state.gateway else "",
            clean(state.problem),
        )
        for agent, state in rows
    )
    for agent, state in rows:
        if state.set_up and state.plugin:
            _print_twice(agent)
    print("'lore setup AGENT' gives an agent memory, 'lore setup all' all installed ones.")
    print("--gateway also routes its requests through Lore.")
    print_memories(settings)


def _agent_state(home: Path, agent: Agent, command: list[str]) -> _AgentState:
    from lore.setup import config_changes
    from lore.setup.agent_checks import find_gateway

    ready, through, wrong = False, "", ""
    edits = agent.edits(Path.home(), command)
    try:
        ready = config_changes.is_set_up(config_changes.plan(home, agent, edits))
        through = find_gateway(home, agent, edits)
    except InvalidInput as error:
        wrong = str(error)
    is_installed = agent.is_found(Path.home(), _search_path())
    return _AgentState(
        agent.name, is_installed, ready, agent.has_plugin(Path.home()), through, wrong
    )


def _state(*, ready: bool, plugged: bool) -> str:
    if plugged:
        return coloured("set up, by its plugin", "yellow" if ready else "green")
    return coloured("set up", "green") if ready else "not set up"


def _print_plugged(agent: Agent, home: Path, command: list[str]) -> None:
    """Print that an agent has memory through a plugin, and what is missing."""
    from lore.setup import config_changes

    print(f"{bold(agent.title)} has memory through its plugin: nothing to change.")
    if not shutil.which("lore"):
        notice("The plugin needs 'lore' on the PATH, but it is not there.")
    planned = config_changes.plan_undo(home, agent, agent.edits(Path.home(), command))
    if not config_changes.is_set_up(planned):
        _print_twice(agent)


def _print_twice(agent: Agent) -> None:
    notice(
        f"{agent.title} is set up and has the plugin, so its tools are there twice."
        f" 'lore setup {agent.name} --undo' leaves the plugin."
    )


def _print(
    agent: Agent, planned: list[Change], *, undo: bool, dry_run: bool, is_missing: bool
) -> None:
    from lore.setup.config_changes import parse_problem

    changed = [change for change in planned if not change.is_noop]
    if not changed:
        state = "is not set up" if undo else "is set up already"
        print(f"{bold(agent.title)} {state}: nothing to change.")
        return
    for change in changed:
        for line in change.diff():
            print(diff_line(line))
        if change.after is None:
            print(clean(f"{change.path} {'would be' if dry_run else 'is'} removed."))
    if dry_run:
        print(f"{bold(agent.title)}: nothing was changed.")
    elif undo:
        print(f"{bold(agent.title)} is as it was before.")
    elif is_missing:
        print(f"{bold(agent.title)} has memory once it is installed. {agent.then}")
    else:
        print(f"{bold(agent.title)} has memory now. {agent.then}")
    if not undo and (wrong := parse_problem(agent, planned)):
        notice(f"{wrong} Remove them, or it has no memory.")


def _gateway_for_run(settings: Settings, agent: str) -> GatewayRoute | None:
    """Return the gateway for an agent started here; None, with a notice, if there is none.

    A daemon is started if none runs, and a relay that starts it again if it dies.
    """
    from lore.cli import relay
    from lore.proxy.address import LOOPBACK_HOSTS, find_address
    from lore.setup.launch import BASE_URLS, CUSTOM_HEADERS, GatewayRoute

    environ = os.environb
    name = agent.removesuffix("-code")
    variable = BASE_URLS.get(name, "")
    if variable and environ.get(variable.encode()):
        notice(f"{variable} is set: this run does not use the gateway.")
        return None
    home = str(settings.home)
    daemon = find_address(home) or fast_path.start_daemon(home)
    if daemon is None:
        notice("The daemon is not running: this run does not use the gateway.")
        return None
    headers = {"x-lore-project": quote(str(Path.cwd()), safe="/")}
    if daemon.host not in LOOPBACK_HOSTS:
        if agent == "codex":
            notice("Codex cannot send the access key: this run does not use the gateway.")
            return None
        headers["x-lore-key"] = daemon.key
    if name in CUSTOM_HEADERS:
        custom, between = CUSTOM_HEADERS[name]
        former = os.fsdecode(environ.get(custom.encode(), b""))
        pairs = (line.partition(":") for line in former.split(between))
        custom_headers = {name.strip(): value.strip() for name, _, value in pairs if value.strip()}
        headers = {**custom_headers, **headers}
    return GatewayRoute(relay.start(settings.home) or daemon.url, headers)


def run(
    context: Context,
    agent: Annotated[str, Argument(help="claude, codex, opencode or gemini.")],
    gateway: Annotated[
        bool, Option("--gateway/--no-gateway", help="Route its requests through the gateway.")
    ] = True,
) -> None:
    """Start an agent with memory for one run; no file is changed.

    It talks to its model through the gateway (setting gateway.on). Everything after the agent's
    name is passed to it: lore run claude -p "where were we?"
    """
    from lore.setup.launch import LaunchContext, plan_launch

    if agent in ("-h", "--help"):
        print(context.get_help())
        return
    settings = load_settings(context)
    path = os.get_exec_path()
    place = LaunchContext(Path.home(), Path.cwd())
    words = (agent, context.args, own_command(settings.home), _search_path())
    start = plan_launch(*words, place)
    if gateway and settings.gateway_on:
        place = replace(place, through=_gateway_for_run(settings, agent))
        start = plan_launch(*words, place)
    if agent == "gemini" and place.through is None:
        notice("Without the gateway, Gemini CLI has memory only after 'lore setup gemini'.")
    added = dict(start.environ)
    if start.folder:
        added["PATH"] = os.pathsep.join([start.folder, *path])
    environ = os.environb | {os.fsencode(name): os.fsencode(added[name]) for name in added}
    sys.stdout.flush()
    os.execvpe(start.words[0], start.words, environ)  # noqa: S606 - the program that was asked for
