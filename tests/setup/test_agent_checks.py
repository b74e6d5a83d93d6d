"""What doctor says of the daemon and of agents: their files are real, and so are the programs."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lore import __version__
from lore.daemon import daemon_lock, server_address
from lore.daemon.server_address import ServerAddress
from lore.proxy.address import KEY_FILE
from lore.records import Check
from lore.settings import Settings, load
from lore.setup import config_changes
from lore.setup.agent_checks import check_agents, check_daemon, check_gateway
from lore.setup.agents import AGENTS, get_agent
from lore.setup.gateway_address import GatewayAddress, with_gateway
from tests.fakes import NOON
from tests.http_api.daemon_server import serving
from tests.setup.files import FILES, turn_plugin_on, write


def program(folder: Path, script: str = 'echo "lore 0.1.0"') -> str:
    """Write a program of Lore's name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "lore"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def set_up(person: Path, command: Sequence[str], agents: Sequence[str] = tuple(FILES)) -> None:
    home = person / "home"
    for name in agents:
        agent = get_agent(name)
        planned = config_changes.plan(home, agent, agent.edits(person, command))
        config_changes.apply(home, agent, planned, undo=False)


def check(person: Path, command: Sequence[str], path: str = "") -> dict[str, Check]:
    checks = check_agents(person / "home", command, person, path)
    return {one.name: one for one in checks}


def test_missing_agents_have_no_check(tmp_path: Path):
    assert check(tmp_path, ["/bin/lore"]) == {}


def test_an_agent_without_memory_gets_a_setup_hint(tmp_path: Path):
    write(tmp_path, list(FILES))
    found = check(tmp_path, ["/bin/lore"])
    assert set(found) == {agent.name for agent in AGENTS}
    assert {one.state for one in found.values()} == {"ok"}
    assert all(f"'lore setup {name}'" in one.remedy for name, one in found.items())


def test_agents_that_are_set_up_are_ok(tmp_path: Path):
    command = [program(tmp_path / "bin"), "--home", "/code/a home"]
    write(tmp_path, list(FILES))
    set_up(tmp_path, command)
    found = check(tmp_path, command)
    assert {(one.state, one.remedy) for one in found.values()} == {("ok", "")}
    assert all(command[0] in one.detail for one in found.values())


@pytest.mark.parametrize("agent", list(FILES))
@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        lambda path: path.chmod(0o600),
        lambda path: program(path.parent, "exit 3"),
        lambda path: program(path.parent, "echo something else"),
        lambda path: path.write_text("#!/no/such/interpreter\n"),
    ],
    ids=["gone", "not executable", "fails", "another program", "without its interpreter"],
)
def test_a_broken_command_is_reported(tmp_path: Path, agent: str, spoil):
    path = program(tmp_path / "bin")
    set_up(tmp_path, [path], [agent])
    spoil(Path(path))
    found = check(tmp_path, ["/code/lore"])[agent]
    assert found.state == "broken"
    assert path in found.detail
    assert f"'lore setup {agent}'" in found.remedy


def test_another_working_installation_is_degraded(tmp_path: Path):
    set_up(tmp_path, [program(tmp_path / "old")], ["codex"])
    found = check(tmp_path, [program(tmp_path / "new")])["codex"]
    assert found.state == "degraded"
    assert "--dry-run" in found.remedy


def test_plugin_and_setup_together_are_degraded(tmp_path: Path):
    command = [program(tmp_path / "bin")]
    turn_plugin_on(tmp_path)
    path = str(tmp_path / "bin")
    assert check(tmp_path, command, path)["claude-code"].state == "ok"
    set_up(tmp_path, command, ["claude-code"])
    found = check(tmp_path, command, path)["claude-code"]
    assert found.state == "degraded"
    assert "its tools are there twice" in found.detail
    assert found.remedy == "'lore setup claude-code --undo' leaves the plugin."


def test_a_plugin_without_lore_on_the_path_is_broken(tmp_path: Path):
    turn_plugin_on(tmp_path)
    found = check(tmp_path, ["/code/bin/lore"], str(tmp_path))["claude-code"]
    assert found.state == "broken"
    assert "/code/bin/lore" in found.remedy


@pytest.mark.parametrize(
    ("agent", "file"), [("codex", ".codex/config.toml"), ("cursor", ".cursor/mcp.json")]
)
@pytest.mark.parametrize("held", [b"{ broken", b"\xff\xfe", b"a = " + b"[" * 3_000 + b"]" * 3_000])
def test_an_unreadable_file_is_degraded(tmp_path: Path, agent: str, file: str, held: bytes):
    path = tmp_path / file
    path.parent.mkdir()
    path.write_bytes(held)
    assert check(tmp_path, ["/bin/lore"])[agent].state == "degraded"


def test_deeply_nested_keys_are_searched(tmp_path: Path):
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(f"{'.'.join('a' * 5_000)} = 1\n")
    assert check(tmp_path, ["/bin/lore"])["codex"].state == "ok"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({}, home=tmp_path).settings


def test_a_stopped_daemon_is_ok_if_agents_may_start_it(settings: Settings):
    assert check_daemon(settings).state == "ok"
    found = check_daemon(replace(settings, mcp_start=False))
    assert (found.state, found.remedy) == ("degraded", "'lore up --detach' starts it.")


def test_a_daemon_that_does_not_listen_is_degraded(settings: Settings):
    held = daemon_lock.take_lock(settings.home, now=NOON, version=__version__)
    found = check_daemon(settings)
    held.release()
    assert found.state == "degraded"
    assert "does not listen" in found.detail


def test_a_daemon_that_does_not_answer_is_broken(settings: Settings):
    held = daemon_lock.take_lock(settings.home, now=NOON, version=__version__)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        server_address.write(
            settings.home, ServerAddress("127.0.0.1", port, os.getpid(), __version__)
        )
        (settings.home / KEY_FILE).write_text("k" * 50)
        found = check_daemon(settings)
    held.release()
    assert found.state == "broken"
    assert "lore down --force" in found.remedy


def test_a_daemon_of_another_version_is_degraded(settings: Settings):
    with serving(settings.home):  # it calls its version 'test'
        found = check_daemon(settings)
    assert found.state == "degraded"
    assert "version test" in found.detail


@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode"])
def test_an_agent_with_a_wrong_gateway_address_is_broken(settings: Settings, name: str):
    agent, told = get_agent(name), "http://127.0.0.1:3207"
    write(settings.home, [name])
    assert check_gateway(settings.home, ["/bin/lore"], settings.home) == []
    edits = agent.edits(settings.home, ["/bin/lore"])
    edits = with_gateway(name, edits, GatewayAddress(told), puts=True)
    planned = config_changes.plan(settings.home, agent, edits)
    config_changes.apply(settings.home, agent, planned, undo=False, address=told)
    [found] = check_gateway(settings.home, ["/bin/lore"], settings.home)
    assert (found.name, found.state) == (f"{name} gateway", "broken")
    assert "lore service install" in found.remedy
    held = daemon_lock.take_lock(settings.home, now=NOON, version=__version__)
    (settings.home / KEY_FILE).write_text("k" * 50)
    for port, state, remedy in (
        (3208, "broken", f"'lore setup {name} --gateway'"),
        (3207, "ok", ""),
    ):
        server_address.write(
            settings.home, ServerAddress("127.0.0.1", port, os.getpid(), __version__)
        )
        [found] = check_gateway(settings.home, ["/bin/lore"], settings.home)
        assert found.state == state
        assert found.remedy.startswith(remedy)
    held.release()


def test_doctor_says_that_connection_owners_are_unknown(settings: Settings):
    home, agent, told = settings.home, get_agent("codex"), "http://127.0.0.1:3207"
    assert check_gateway(home, ["/bin/lore"], home, tells_owners=False) == []
    write(home, ["codex"])
    edits = with_gateway("codex", agent.edits(home, ["/bin/lore"]), GatewayAddress(told), puts=True)
    planned = config_changes.plan(home, agent, edits)
    config_changes.apply(home, agent, planned, undo=False, address=told)
    [_, found] = check_gateway(home, ["/bin/lore"], home, tells_owners=False)
    assert "all local users have access" in found.detail
    assert len(check_gateway(home, ["/bin/lore"], home, tells_owners=True)) == 1
