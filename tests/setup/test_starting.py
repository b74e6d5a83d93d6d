from __future__ import annotations

import json
import tomllib

import pytest

from lore import __version__
from lore.errors import InvalidInput, NotFound
from lore.setup.starting import find_plugin, prepare

LORE = ("/code/bin/lore", "--home", "/code/memory")


@pytest.fixture
def path(tmp_path):
    """Return where three agents are installed."""
    for name in ("claude", "codex", "opencode"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return str(tmp_path)


@pytest.mark.parametrize("name", ["claude", "claude-code"])
def test_claude_code_is_given_the_plugin_and_a_way_to_find_lore(path, name):
    start = prepare(name, ["-p", "hello"], LORE, path)
    assert start.words == (f"{path}/claude", "--plugin-dir", str(find_plugin()), "-p", "hello")
    assert start.environ == {"LORE_HOME": "/code/memory"}
    assert start.folder == "/code/bin"


def test_codex_is_told_on_its_command_line(path):
    start = prepare("codex", ["exec", "-"], LORE, path)
    settings = tomllib.loads("\n".join(word for word in start.words if "=" in word))
    assert settings["mcp_servers"]["lore"] == {
        "command": "/code/bin/lore", "args": ["--home", "/code/memory", "mcp"],
    }  # fmt: skip
    assert start.words[-2:] == ("exec", "-")


def test_opencode_is_told_by_its_environment(path):
    start = prepare("opencode", [], LORE, path)
    told = json.loads(start.environ["OPENCODE_CONFIG_CONTENT"])
    assert told["mcp"]["lore"]["command"] == [*LORE, "mcp"]
    assert start.words == (f"{path}/opencode",)


def test_an_agent_that_cannot_be_started_is_refused(path):
    with pytest.raises(InvalidInput, match="'emacs'"):
        prepare("emacs", [], LORE, path)


def test_an_agent_that_is_not_installed_is_named(tmp_path):
    with pytest.raises(NotFound, match="'codex'"):
        prepare("codex", [], LORE, str(tmp_path))


def test_the_plugin_is_part_of_what_is_installed():
    assert (find_plugin() / "hooks" / "hooks.json").is_file()


def test_the_plugin_has_the_version_of_lore():
    described = json.loads((find_plugin() / ".claude-plugin" / "plugin.json").read_text())
    assert described["version"] == __version__
