"""TODO."""

from __future__ import annotations

import json
import shlex
import tomllib

import pytest

from lore.errors import InvalidInput
from lore.proxy.hook_client import HOOK_EVENTS
from lore.setup import agents, jsonc
from lore.setup.agents import AGENTS, find_plugin_file, get_agent
from tests.house.source import ROOT
from tests.setup.files import FILES, as_on_windows, turn_plugin_on, write

LORE = ("/code/bin/lore",)
NAMES = [agent.name for agent in AGENTS]
EVERY = pytest.mark.parametrize("name", NAMES)


def edited(name, home, command=LORE):
    """Return what becomes of the files of an agent, by path."""
    return {
        edit.path: edit.put(edit.path.read_text() if edit.path.exists() else "")
        for edit in get_agent(name).edits(home, command)
    }


def write_all(texts):
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def server(name, text):
    """Return what an agent knows of Lore by a file of its configuration."""
    if name == "codex":
        return tomllib.loads(text)["mcp_servers"]["lore"]
    return jsonc.read(text, ("mcp" if name == "opencode" else "mcpServers", "lore"))


@EVERY
def test_edits_write_the_command_that_starts_lore(name, tmp_path):
    write(tmp_path)
    first = next(iter(edited(name, tmp_path).values()))
    told = server(name, first)
    words = told["command"] if name == "opencode" else [told["command"], *told["args"]]
    assert words == ["/code/bin/lore", "mcp"]


@EVERY
def test_a_second_edit_changes_nothing(name, tmp_path):
    write(tmp_path)
    write_all(edited(name, tmp_path))
    assert all(path.read_text() == text for path, text in edited(name, tmp_path).items())


def test_settings_rewritten_by_the_agent_count_as_set_up(tmp_path):
    write(tmp_path, ["claude-code"])
    for path, text in edited("claude-code", tmp_path).items():
        path.write_text(json.dumps(json.loads(text), indent=4, sort_keys=True))
    assert all(path.read_text() == text for path, text in edited("claude-code", tmp_path).items())


@EVERY
def test_another_installation_replaces_the_former(name, tmp_path):
    write(tmp_path)
    once = edited(name, tmp_path)
    write_all(edited(name, tmp_path, ("/code/old bin/lore", "--home", "/x")))
    again = edited(name, tmp_path)
    assert again == once


@EVERY
def test_drop_removes_what_put_added(name, tmp_path):
    held = write(tmp_path, [name])
    for edit in get_agent(name).edits(tmp_path, LORE):
        before = held.get(edit.path, b"").decode()
        assert edit.drop(edit.put(before)) == before


@EVERY
def test_nothing_of_the_user_is_lost(name, tmp_path):
    held = write(tmp_path, [name])
    for path, text in edited(name, tmp_path).items():
        kept = [line.rstrip(",") for line in held.get(path, b"").decode().splitlines()]
        assert all(line in text for line in kept)


@EVERY
def test_missing_files_are_created(name, tmp_path):
    assert server(name, next(iter(edited(name, tmp_path).values())))


@EVERY
@pytest.mark.parametrize("text", ["{", "\0", "[", '"', "= 1"])
def test_a_broken_file_is_refused(name, tmp_path, text):
    for edit in get_agent(name).edits(tmp_path, LORE):
        with pytest.raises(InvalidInput):
            edit.put(text)


@EVERY
def test_line_endings_and_bom_of_other_systems_are_kept(name, tmp_path):
    for edit in get_agent(name).edits(tmp_path, LORE):
        if edit.owns_file:
            continue
        text = FILES[name].get(str(edit.path.relative_to(tmp_path)), "{}\n")
        windows = as_on_windows(text).decode("utf-8-sig")
        after = edit.put(windows)
        assert "\r\n" in after
        assert "\n" not in after.replace("\r\n", "")
        assert edit.drop(after) == windows


def test_hooks_are_added_beside_those_of_the_user(tmp_path):
    write(tmp_path)
    hooks = json.loads(edited("claude-code", tmp_path)[tmp_path / ".claude" / "settings.json"])
    stop = [one["command"] for entry in hooks["hooks"]["Stop"] for one in entry["hooks"]]
    assert stop == ["afplay /code/ding.aiff", "/code/bin/lore hook Stop"]
    assert set(hooks["hooks"]) == set(HOOK_EVENTS)


def test_codex_gets_the_same_hooks_beside_those_of_the_user(tmp_path):
    write(tmp_path)
    hooks = json.loads(edited("codex", tmp_path)[tmp_path / ".codex" / "hooks.json"])["hooks"]
    stop = [one["command"] for entry in hooks["Stop"] for one in entry["hooks"]]
    assert stop == ["notify-send done", "/code/bin/lore hook Stop"]
    assert set(hooks) == set(HOOK_EVENTS)
    (after_tool,) = hooks["PostToolUse"]
    assert {"Bash", "update_plan", "create_goal"} <= set(after_tool["matcher"].split("|"))


@pytest.mark.parametrize("program", ["/code/my tools/lore", "/code/it's/lore", "/code/$x/lore"])
def test_a_path_with_shell_characters_is_quoted_and_recognised(tmp_path, program):
    (settings,) = [
        text for path, text in edited("claude-code", tmp_path, (program,)).items()
        if path.name == "settings.json"
    ]  # fmt: skip
    (entry,) = json.loads(settings)["hooks"]["Stop"]
    assert shlex.split(entry["hooks"][0]["command"]) == [program, "hook", "Stop"]
    edit = get_agent("claude-code").edits(tmp_path, LORE)[1]
    assert program not in edit.put(settings)


def test_the_plugin_and_setup_have_the_same_hooks(tmp_path):
    plugin = json.loads((ROOT / "plugins/claude-code/hooks/hooks.json").read_text())["hooks"]
    settings = edited("claude-code", tmp_path, ("lore",))[tmp_path / ".claude" / "settings.json"]
    assert json.loads(settings)["hooks"] == plugin


def test_a_user_hook_that_mentions_lore_is_kept(tmp_path):
    theirs = [
        {"hooks": [{"type": "command", "command": "echo lore hook Stop"}]},
        {"hooks": [{"type": "command", "command": "lore hook Stop && say done"}]},
        {"hooks": [{"type": "command", "command": "'"}]},
        {"hooks": []},
        "odd",
    ]
    edit = get_agent("claude-code").edits(tmp_path, LORE)[1]
    text = json.dumps({"hooks": {"Stop": theirs}}, indent=2)
    assert edit.drop(edit.put(text)) == text


def test_opencode_is_configured_in_the_file_that_it_reads(tmp_path):
    folder = tmp_path / ".config" / "opencode"
    name = lambda: get_agent("opencode").edits(tmp_path, LORE)[0].path.name  # noqa: E731
    assert name() == "opencode.json"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").touch()
    assert name() == "opencode.jsonc"
    (folder / "opencode.json").touch()
    assert name() == "opencode.json"


def test_opencode_gets_its_hooks_as_a_plugin_with_the_command_that_starts_lore(tmp_path):
    command = ('/code/it\'s "my" bin/lore', "--home", "/code/$x")
    path = agents.opencode_plugin(tmp_path)
    text = edited("opencode", tmp_path, command)[path]
    assert list(agents.plugin_commands(text)) == [command]
    assert not agents.has_opencode_plugin(tmp_path, command)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert agents.has_opencode_plugin(tmp_path, command)
    assert not agents.has_opencode_plugin(tmp_path, ("lore", "--home", "/elsewhere"))


def test_a_plugin_of_opencode_with_a_broken_command_has_none(tmp_path):
    path = agents.opencode_plugin(tmp_path)
    text = edited("opencode", tmp_path, LORE)[path]
    start = text.index("const COMMAND = ")
    broken = f"{text[:start]}const COMMAND = ['lore', HOME]{text[text.index(chr(10), start) :]}"
    assert list(agents.plugin_commands(broken)) == []
    path.parent.mkdir(parents=True)
    path.write_text(broken)
    assert not agents.has_opencode_plugin(tmp_path, LORE)


def test_a_plugin_of_opencode_that_is_not_ours_stays(tmp_path):
    edit = get_agent("opencode").edits(tmp_path, LORE)[1]
    theirs = "export const Lore = async () => ({})\n"
    with pytest.raises(InvalidInput, match="not Lore's"):
        edit.put(theirs)
    assert edit.drop(theirs) == edit.give_back(theirs, "") == theirs


def test_an_unknown_agent_is_refused_with_the_supported_ones():
    with pytest.raises(InvalidInput, match="'emacs'") as caught:
        get_agent("emacs")
    assert all(name in (caught.value.hint or "") for name in NAMES)


def found(home, path=""):
    return [agent.name for agent in AGENTS if agent.is_found(home, str(path))]


def test_an_agent_is_found_by_its_files(tmp_path):
    assert found(tmp_path) == []
    write(tmp_path, ["codex", "gemini"])
    assert found(tmp_path) == ["codex", "gemini"]


@pytest.mark.parametrize(
    ("program", "name"),
    [("claude", "claude-code"), ("cursor-agent", "cursor"), ("opencode", "opencode")],
)
def test_an_agent_that_never_ran_is_found_by_its_program(tmp_path, program, name):
    made = tmp_path / "bin" / program
    made.parent.mkdir()
    made.write_text("#!/bin/sh\n")
    assert found(tmp_path, made.parent) == []  # nobody can run it
    made.chmod(0o755)
    assert found(tmp_path, made.parent) == [name]


def test_plugin_and_marketplace_have_the_expected_name():
    described = json.loads(
        (find_plugin_file("claude-code") / ".claude-plugin" / "plugin.json").read_text()
    )
    shop = find_plugin_file("claude-code").parent / ".claude-plugin" / "marketplace.json"
    assert f"{described['name']}@{json.loads(shop.read_text())['name']}" == agents.PLUGIN_NAME


def test_a_plugin_is_on_once_it_is_installed(tmp_path):
    assert not agents.is_plugin_on(tmp_path)
    turn_plugin_on(tmp_path)
    assert agents.is_plugin_on(tmp_path)


def test_a_plugin_of_one_project_is_on_there_and_nowhere_else(tmp_path):
    project = tmp_path / "almanac"
    project.mkdir()
    turn_plugin_on(tmp_path, project)
    assert agents.is_plugin_on(tmp_path, project)
    assert not agents.is_plugin_on(tmp_path)


def test_project_settings_override_user_settings(tmp_path):
    turn_plugin_on(tmp_path)
    own = tmp_path / "almanac" / ".claude" / "settings.local.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"enabledPlugins": {"lore@lore": false}}')
    assert agents.is_plugin_on(tmp_path)
    assert not agents.is_plugin_on(tmp_path, tmp_path / "almanac")


@pytest.mark.parametrize(
    "held",
    [
        '{"enabledPlugins": {"lore@lore": false}}', '{"enabledPlugins": {"lore@other": true}}',
        '{"enabledPlugins": []}', "[]", "", "{ broken",
    ],
)  # fmt: skip
def test_a_plugin_that_no_setting_turns_on_is_off(tmp_path, held):
    turn_plugin_on(tmp_path)
    (tmp_path / ".claude" / "settings.json").write_text(held)
    assert not agents.is_plugin_on(tmp_path)


def test_a_plugin_that_was_uninstalled_is_off(tmp_path):
    turn_plugin_on(tmp_path)
    (tmp_path / ".claude" / "plugins" / "installed_plugins.json").write_text('{"plugins": {}}')
    assert not agents.is_plugin_on(tmp_path)
