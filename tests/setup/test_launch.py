from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import pytest

from lore import __version__
from lore.errors import InvalidInput, NotFound
from lore.proxy.hook_client import HOOK_EVENTS
from lore.setup.agents import find_plugin_file, get_agent
from lore.setup.launch import GatewayRoute, LaunchContext, plan_launch
from tests.setup.files import turn_plugin_on

LORE = ("/code/bin/lore", "--home", "/code/memory")


@pytest.fixture
def path(tmp_path):
    """Return where the agents are installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("claude", "codex", "opencode", "gemini"):
        program = folder / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return str(folder)


@pytest.fixture
def place(tmp_path):
    """Return a person who has set up nothing, in a project of theirs."""
    project = tmp_path / "person" / "code" / "almanac"
    project.mkdir(parents=True)
    return LaunchContext(tmp_path / "person", project)


@pytest.mark.parametrize("name", ["claude", "claude-code"])
def test_claude_code_gets_the_plugin_and_lore_on_its_path(path, place, name):
    start = plan_launch(name, ["-p", "hello"], LORE, path, place)
    assert start.words == (
        f"{path}/claude",
        "--plugin-dir",
        str(find_plugin_file("claude-code")),
        "-p",
        "hello",
    )
    assert start.environ == {"LORE_HOME": "/code/memory"}
    assert start.folder == "/code/bin"


def set_up(place, command):
    for edit in get_agent("claude-code").edits(place.user_home, command):
        edit.path.parent.mkdir(exist_ok=True)
        edit.path.write_text(edit.put(""))


@pytest.mark.parametrize(
    "command", [LORE, ("/code/old/lore", *LORE[1:]), LORE[:1]], ids=["same", "other", "by home"]
)
def test_claude_code_that_is_set_up_gets_nothing(path, place, command):
    set_up(place, command)
    start = plan_launch("claude", ["-p", "hello"], LORE, path, place)
    assert start.words == (f"{path}/claude", "-p", "hello")
    assert start.environ == {"LORE_HOME": "/code/memory"}


def given_to_claude(path, place):
    """Return the server and the hooks that Claude Code is given for one run."""
    _, *words = plan_launch("claude", [], LORE, path, place).words
    given = dict(zip(words[::2], words[1::2], strict=True))
    server = json.loads(given.pop("--mcp-config", "{}")).get("mcpServers", {})
    hooks = json.loads(given.pop("--settings", "{}")).get("hooks", {})
    assert given == {}
    return server, set(hooks)


def test_claude_code_with_only_the_server_gets_the_hooks(path, place):
    set_up(place, LORE)
    (place.user_home / ".claude" / "settings.json").write_text("{}")
    assert given_to_claude(path, place) == ({}, set(HOOK_EVENTS))


@pytest.mark.parametrize("held", ["{}", "{ broken", "", '{"mcpServers": {"lore": 5}}'])
def test_claude_code_with_only_the_hooks_gets_the_server(path, place, held):
    set_up(place, LORE)
    (place.user_home / ".claude.json").write_text(held)
    server = {"command": "/code/bin/lore", "args": ["--home", "/code/memory", "mcp"]}
    assert given_to_claude(path, place) == ({"lore": server}, set())


def test_claude_code_set_up_for_another_home_gets_this_one(path, place):
    set_up(place, ("/code/bin/lore", "--home", "/code/other"))
    assert "--plugin-dir" in plan_launch("claude", [], LORE, path, place).words


@pytest.mark.parametrize("own", [True, False], ids=["of the project", "of the person"])
def test_claude_code_with_the_plugin_does_not_get_it_again(path, place, own):
    turn_plugin_on(place.user_home, place.project if own else None)
    assert "--plugin-dir" not in plan_launch("claude", [], LORE, path, place).words


def test_codex_is_configured_on_its_command_line(path, place):
    start = plan_launch("codex", ["exec", "-"], LORE, path, place)
    settings = tomllib.loads("\n".join(word for word in start.words if "=" in word))
    assert settings["mcp_servers"]["lore"] == {
        "command": "/code/bin/lore", "args": ["--home", "/code/memory", "mcp"],
    }  # fmt: skip
    assert start.words[-2:] == ("exec", "-")


def test_opencode_is_configured_by_its_environment(path, place):
    start = plan_launch("opencode", [], LORE, path, place)
    told = json.loads(start.environ["OPENCODE_CONFIG_CONTENT"])
    assert told["mcp"]["lore"]["command"] == [*LORE, "mcp"]
    assert start.words == (f"{path}/opencode",)


def test_opencode_gets_its_hooks_unless_it_has_them(path, place):
    start = plan_launch("opencode", [], LORE, path, place)
    told = json.loads(start.environ["OPENCODE_CONFIG_CONTENT"])
    assert told["plugin"] == [find_plugin_file("opencode", "lore.js").as_uri()]
    assert (start.environ["LORE_HOME"], start.folder) == ("/code/memory", "/code/bin")
    _, plugin = get_agent("opencode").edits(place.user_home, LORE)
    plugin.path.parent.mkdir(parents=True)
    plugin.path.write_text(plugin.put(""))
    again = plan_launch("opencode", [], LORE, path, place)
    assert "plugin" not in json.loads(again.environ["OPENCODE_CONFIG_CONTENT"])


def test_gemini_gets_the_gateway_by_its_environment(path, place):
    assert plan_launch("gemini", [], LORE, path, place).environ == {}
    through = GatewayRoute(
        "http://127.0.0.1:3207", {"x-team": "blue", "x-lore-project": "/code/a%2Cb"}
    )
    start = plan_launch("gemini", ["-p", "?"], LORE, path, replace(place, through=through))
    assert start.words == (f"{path}/gemini", "-p", "?")
    assert start.environ == {
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:3207",
        "GEMINI_CLI_CUSTOM_HEADERS": "x-team: blue,x-lore-project: /code/a%2Cb",
    }


def test_an_unsupported_agent_is_refused(path, place):
    with pytest.raises(InvalidInput, match="'emacs'"):
        plan_launch("emacs", [], LORE, path, place)


def test_an_agent_that_is_not_installed_is_reported(tmp_path, place):
    with pytest.raises(NotFound, match="'codex'"):
        plan_launch("codex", [], LORE, str(tmp_path), place)


def test_the_plugin_is_part_of_the_package():
    assert (find_plugin_file("claude-code") / "hooks" / "hooks.json").is_file()


def test_the_plugin_has_the_version_of_lore():
    described = json.loads(
        (find_plugin_file("claude-code") / ".claude-plugin" / "plugin.json").read_text()
    )
    assert described["version"] == __version__
