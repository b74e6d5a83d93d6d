"""Reaching Lore: whether its daemon answers, and whether agents are set up so that they run it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lore import __version__
from lore.daemon import lock, status
from lore.errors import InvalidInput
from lore.gateway.peers import TELLS_OWNERS
from lore.proxy.address import find_address
from lore.proxy.wire import is_well
from lore.records import Check
from lore.settings import Settings
from lore.setup import addressing, changing, jsonc, toml_tables
from lore.setup.agents import AGENTS, Agent, Command, Edit, commands_in
from lore.setup.changing import Change

_RUN_S = 20.0
"""Far more than a command takes to say its version, also on a machine that does much else."""

_PLUGIN_COMMAND = ("lore",)
"""As the files of the plugin name it."""


def check_daemon(settings: Settings) -> Check:
    """Look whether the daemon of a home answers."""
    holder = lock.find_holder(settings.home)
    if holder is None and settings.mcp_start:
        return Check("daemon", "ok", "It does not run; an agent that asks for memory starts it.")
    if holder is None:
        told = "It does not run, and agents may not start it (mcp.start)."
        return Check("daemon", "degraded", told, "'lore up --detach' starts it.")
    who = f"pid {holder.pid}"
    address = find_address(str(settings.home))
    if address is None:
        why = status.read(settings.home).server_notice or "it may just have started."
        told = f"It runs ({who}) and does not listen: {why}"
        return Check("daemon", "degraded", told, "'lore logs' shows more.")
    if not is_well(address):
        told = f"It runs ({who}) and does not answer: agents go on without memory."
        return Check("daemon", "broken", told, "'lore down --force' ends it; 'lore up -d'.")
    if holder.version != __version__:
        told = f"It is of version {holder.version} ({who}), this command of {__version__}."
        return Check("daemon", "degraded", told, "'lore down', then 'lore up -d'.")
    return Check("daemon", "ok", f"It answers ({who}, port {address.port}).")


def check_agents(home: Path, command: Command, user_home: Path, path: str) -> list[Check]:
    """Look at the agents that a person uses: which have memory, and whether that works.

    `path` is where programs are looked for.
    """
    checks: list[Check] = []
    for agent in AGENTS:
        try:
            planned = changing.plan(home, agent, agent.edits(user_home, command))
            configured = tuple(words for change in planned for words in _commands(change))
        except InvalidInput as error:
            checks.append(Check(agent.name, "degraded", str(error), error.hint))
            continue
        if configured or agent.has_plugin(user_home):
            ways = _Ways(configured, agent.has_plugin(user_home), changing.is_set_up(planned))
            checks.append(_check_ways(agent, ways, command, path))
            if wrong := changing.unread_by(agent, planned):
                checks.append(Check(agent.name, "broken", wrong, "Take the comments out of it."))
        elif agent.is_found(user_home, path):
            told = f"{agent.title} is here and not set up."
            checks.append(
                Check(agent.name, "ok", told, f"'lore setup {agent.name}' gives it memory.")
            )
    return checks


def check_gateway(
    home: Path, command: Command, user_home: Path, *, tells_owners: bool = TELLS_OWNERS
) -> list[Check]:
    """Look at the agents that were told to talk through the gateway: whether it is there."""
    checks: list[Check] = []
    found = find_address(str(home))
    for agent in AGENTS:
        with suppress(InvalidInput):
            told = find_gateway(home, agent, agent.edits(user_home, command))
            if told:
                checks.append(_check_address(agent, told, found.url if found else ""))
    if checks and not tells_owners:
        shared = "This system does not tell whose a connection is: every user of it may pass."
        remedy = "Where others log in, turn it off: 'lore config gateway.on false'."
        checks.append(Check("gateway", "ok", shared, remedy))
    return checks


def find_gateway(home: Path, agent: Agent, edits: Sequence[Edit]) -> str:
    """Return the address of the gateway that the files of an agent hold, or ''."""
    known = changing.kept_addresses(home, agent)
    for change in changing.plan(home, agent, edits) if known else ():
        text = (change.before or b"").decode().removeprefix("\ufeff")
        if found := addressing.find_known(agent.name, change.path, text, known):
            return found
    return ""


def _check_address(agent: Agent, told: str, url: str) -> Check:
    name = f"{agent.name} gateway"
    if not url:
        wrong = f"{agent.title} talks to its model by {told}, and no daemon runs there."
        remedy = "'lore up --detach' starts it; 'lore service install' keeps it running."
        return Check(name, "broken", wrong, remedy)
    if url != told:
        wrong = f"{agent.title} talks to its model by {told}, and the gateway is at {url}."
        remedy = f"'lore setup {agent.name} --gateway' tells it the new address."
        return Check(name, "broken", wrong, remedy)
    return Check(name, "ok", f"{agent.title} talks to its model through {url}.")


@dataclass(frozen=True, slots=True)
class _Ways:
    """How an agent has memory: by commands in its files, as setup writes them, or by a plugin."""

    configured: tuple[tuple[str, ...], ...]
    plugged: bool
    is_usual: bool


def _check_ways(agent: Agent, ways: _Ways, command: Command, path: str) -> Check:
    setup = f"'lore setup {agent.name}"
    for words in dict.fromkeys(ways.configured):
        if wrong := _why_it_fails(words, path):
            told = f"{agent.title} has no memory: {wrong}"
            return Check(agent.name, "broken", told, f"{setup}' names this Lore instead.")
    if ways.plugged and (wrong := _why_it_fails(_PLUGIN_COMMAND, path)):
        told = f"{agent.title} has no memory: {wrong}"
        remedy = f"Add the folder of {command[0]} to the PATH that {agent.title} is started with."
        return Check(agent.name, "broken", told, remedy)
    if ways.plugged and ways.configured:
        told = f"{agent.title} has Lore by its plugin and by its setup: its tools are there twice."
        return Check(agent.name, "degraded", told, f"{setup} --undo' leaves the plugin.")
    if ways.plugged:
        return Check(agent.name, "ok", f"{agent.title} is set up by its plugin.")
    if not ways.is_usual:
        told = f"{agent.title} is set up, but not as this Lore does it."
        return Check(agent.name, "degraded", told, f"{setup} --dry-run' shows what differs.")
    return Check(agent.name, "ok", f"{agent.title} is set up: it runs {ways.configured[0][0]}.")


def _commands(change: Change) -> Iterator[tuple[str, ...]]:
    """Yield how a file runs Lore, without what it has it do."""
    if change.before is not None:
        read = toml_tables.read if change.path.suffix == ".toml" else jsonc.read
        yield from commands_in(read(change.before.decode().removeprefix("\ufeff")))


def _why_it_fails(words: Sequence[str], path: str) -> str:
    """Return why a command is none of Lore's that runs; nothing if it is one."""
    program = shutil.which(words[0], path=path)
    if program is None:
        return f"there is no program '{words[0]}'."
    asked = [program, *words[1:], "--version"]
    try:
        done = subprocess.run(  # noqa: S603 - what the agent itself runs
            asked, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_RUN_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"'{program}' cannot be run ({type(error).__name__})."
    if done.returncode or not done.stdout.startswith(b"lore "):
        return f"'{program}' does not run."
    return ""
