"""Checks for `lore doctor`: does the daemon answer, and are the agents set up correctly?"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lore import __version__
from lore.capture import native_files
from lore.daemon import daemon_lock, status_file
from lore.errors import InvalidInput
from lore.gateway.connection_owner import CAN_FIND_OWNER
from lore.proxy.address import find_address
from lore.proxy.daemon_client import is_healthy
from lore.records import Check
from lore.settings import Settings
from lore.setup import config_changes, gateway_address
from lore.setup.agents import AGENTS, Agent, Command, Edit, commands_in, editor_of, plugin_commands
from lore.setup.config_changes import Change

_RUN_S = 20.0
"""Far more than a command needs to print its version, even on a busy machine."""

_PLUGIN_COMMAND = ("lore",)
"""As the files of the plugin name it."""


def check_daemon(settings: Settings) -> Check:
    """Check whether the daemon of a home answers."""
    holder = daemon_lock.find_holder(settings.home)
    if holder is None and settings.mcp_start:
        return Check("daemon", "ok", "It is not running; an agent that needs memory starts it.")
    if holder is None:
        finding = "It is not running, and agents may not start it (mcp.start)."
        return Check("daemon", "degraded", finding, "'lore up --detach' starts it.")
    who = f"pid {holder.pid}"
    address = find_address(str(settings.home))
    if address is None:
        why = status_file.read(settings.home).server_notice or "it may just have started."
        finding = f"It runs ({who}) and does not listen: {why}"
        return Check("daemon", "degraded", finding, "'lore logs' shows more.")
    if not is_healthy(address):
        finding = f"It runs ({who}) and does not answer: agents go on without memory."
        return Check("daemon", "broken", finding, "'lore down --force' ends it; 'lore up -d'.")
    if holder.version != __version__:
        finding = f"It is of version {holder.version} ({who}), this command of {__version__}."
        return Check("daemon", "degraded", finding, "'lore down', then 'lore up -d'.")
    return Check("daemon", "ok", f"It answers ({who}, port {address.port}).")


def describe_memories(user_home: Path, *, are_read: bool) -> str:
    """Return one sentence on the memories that agents have of their own; '' if they have none."""
    titles = {agent.name: agent.title for agent in AGENTS}
    parts = []
    for place, count in enumerate(native_files.count_memories(user_home)):
        noun = "" if place else " memory" if count.memories == 1 else " memories"
        projects = "1 project" if count.projects == 1 else f"{count.projects:,} projects"
        of = f" of {projects}" if count.projects else ""
        has = "" if place else " has"
        parts.append(f"{titles.get(count.agent, count.agent)}{has} {count.memories:,}{noun}{of}")
    if not parts:
        return ""
    reads = "Lore can read them" if are_read else "Lore does not read them (capture.native is off)"
    return f"{', '.join(parts)}; {reads}."


def check_memories(settings: Settings, user_home: Path) -> Check:
    """Report the memories that agents have of their own."""
    sentence = describe_memories(user_home, are_read=settings.capture_native)
    return Check("memories", "ok", sentence or "No agent has memories of its own.")


def check_agents(home: Path, command: Command, user_home: Path, path: str) -> list[Check]:
    """Check which agents of this user have memory, and whether it works.

    `path` is the PATH in which programs are searched.
    """
    checks: list[Check] = []
    for agent in AGENTS:
        try:
            planned = config_changes.plan(home, agent, agent.edits(user_home, command))
            configured = tuple(words for change in planned for words in _commands(change))
        except InvalidInput as error:
            checks.append(Check(agent.name, "degraded", str(error), error.hint))
            continue
        if configured or agent.has_plugin(user_home):
            ways = _Installation(
                configured, agent.has_plugin(user_home), config_changes.is_set_up(planned)
            )
            checks.append(_check_installation(agent, ways, command, path))
            if wrong := config_changes.parse_problem(agent, planned):
                checks.append(Check(agent.name, "broken", wrong, "Take the comments out of it."))
        elif agent.is_found(user_home, path):
            finding = f"{agent.title} is here and not set up."
            checks.append(
                Check(agent.name, "ok", finding, f"'lore setup {agent.name}' gives it memory.")
            )
    return checks


def check_gateway(
    home: Path, command: Command, user_home: Path, *, tells_owners: bool = CAN_FIND_OWNER
) -> list[Check]:
    """Check whether the gateway is reachable for the agents that are configured to use it."""
    checks: list[Check] = []
    daemon = find_address(str(home))
    for agent in AGENTS:
        with suppress(InvalidInput):
            configured = find_gateway(home, agent, agent.edits(user_home, command))
            if configured:
                checks.append(_check_address(agent, configured, daemon.url if daemon else ""))
    if checks and not tells_owners:
        shared = "This system does not report who owns a connection: all local users have access."
        remedy = "Where others log in, turn it off: 'lore config gateway.on false'."
        checks.append(Check("gateway", "ok", shared, remedy))
    return checks


def find_gateway(home: Path, agent: Agent, edits: Sequence[Edit]) -> str:
    """Return the gateway address in the files of an agent, or ''."""
    addresses = config_changes.stored_addresses(home, agent)
    for change in config_changes.plan(home, agent, edits) if addresses else ():
        text = (change.before or b"").decode().removeprefix("\ufeff")
        if url := gateway_address.find_stored_address(agent.name, change.path, text, addresses):
            return url
    return ""


def _check_address(agent: Agent, configured: str, url: str) -> Check:
    name = f"{agent.name} gateway"
    if not url:
        wrong = f"{agent.title} talks to its model by {configured}, and no daemon runs there."
        remedy = "'lore up --detach' starts it; 'lore service install' keeps it running."
        return Check(name, "broken", wrong, remedy)
    if url != configured:
        wrong = f"{agent.title} talks to its model by {configured}, and the gateway is at {url}."
        remedy = f"'lore setup {agent.name} --gateway' tells it the new address."
        return Check(name, "broken", wrong, remedy)
    return Check(name, "ok", f"{agent.title} talks to its model through {url}.")


@dataclass(frozen=True, slots=True)
class _Installation:
    """How an agent gets memory: by commands in its files, or by a plugin."""

    configured: tuple[tuple[str, ...], ...]
    plugged: bool
    is_usual: bool


def _check_installation(agent: Agent, ways: _Installation, command: Command, path: str) -> Check:
    setup = f"'lore setup {agent.name}"
    for words in dict.fromkeys(ways.configured):
        if wrong := _why_it_fails(words, path):
            finding = f"{agent.title} has no memory: {wrong}"
            return Check(agent.name, "broken", finding, f"{setup}' names this Lore instead.")
    if ways.plugged and (wrong := _why_it_fails(_PLUGIN_COMMAND, path)):
        finding = f"{agent.title} has no memory: {wrong}"
        remedy = f"Add the folder of {command[0]} to the PATH that {agent.title} is started with."
        return Check(agent.name, "broken", finding, remedy)
    if ways.plugged and ways.configured:
        finding = (
            f"{agent.title} has Lore by its plugin and by its setup: its tools are there twice."
        )
        return Check(agent.name, "degraded", finding, f"{setup} --undo' leaves the plugin.")
    if ways.plugged:
        return Check(agent.name, "ok", f"{agent.title} is set up by its plugin.")
    if not ways.is_usual:
        finding = f"{agent.title} is set up, but not as this Lore does it."
        return Check(agent.name, "degraded", finding, f"{setup} --dry-run' shows what differs.")
    return Check(agent.name, "ok", f"{agent.title} is set up: it runs {ways.configured[0][0]}.")


def _commands(change: Change) -> Iterator[tuple[str, ...]]:
    """Yield the commands by which a file runs Lore."""
    if change.before is not None:
        text = change.before.decode().removeprefix("\ufeff")
        if change.path.suffix == ".js":
            yield from plugin_commands(text)
        else:
            yield from commands_in(editor_of(change.path).read(text))


def _why_it_fails(words: Sequence[str], path: str) -> str:
    """Return why a command does not run Lore, or '' if it does."""
    program = shutil.which(words[0], path=path)
    if program is None:
        return f"there is no program '{words[0]}'."
    version_command = [program, *words[1:], "--version"]
    try:
        process = subprocess.run(  # noqa: S603 - what the agent itself runs
            version_command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_RUN_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"'{program}' cannot be run ({type(error).__name__})."
    if process.returncode or not process.stdout.startswith(b"lore "):
        return f"'{program}' does not run."
    return ""
