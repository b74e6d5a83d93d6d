from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from lore import __version__
from lore.proxy.cached_handshake import HANDSHAKE_FILE, fingerprint, load_handshake
from lore.settings import load
from tests.cli.conftest import PROGRAM, environment
from tests.setup.files import FILES, turn_plugin_on, write


@pytest.fixture
def person(tmp_path):
    home = tmp_path / "person"
    home.mkdir()
    return home


@pytest.fixture
def here(lore, person):
    """Return the command line of a person."""

    def run(*words, **env):
        path = str(person / "bin")  # agents that are installed on this machine are not theirs
        return lore(*words, env={"HOME": str(person), "PATH": path, **env})

    return run


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_setup_without_an_agent_lists_the_supported_ones(here, person):
    write(person, ["codex"])
    before = files_of(person)
    listed = json.loads(here("setup", "--json").works().out)
    assert [one["agent"] for one in listed] == list(FILES)
    assert [one["agent"] for one in listed if one["found"]] == ["codex"]
    assert not [one for one in listed if one["set_up"] or one["gateway"]]
    assert "codex" in here("setup").works().out
    assert files_of(person) == before


def test_setup_says_that_an_agent_is_not_installed(here, person):
    write(person, ["codex"])
    assert "not found" not in here("setup", "codex").works().err
    absent = here("setup", "cursor").works()
    assert "Cursor was not found on this machine" in absent.err
    assert "has memory now" not in absent.out
    assert "Cursor has memory once it is installed." in absent.out


@pytest.mark.parametrize("option", ["--undo", "--gateway", "--statusline"])
def test_setup_options_need_an_agent(here, person, option):
    write(person, ["codex"])
    here("setup", "codex").works()
    before = files_of(person)
    failed = here("setup", option).fails_with(2)
    assert f"'{option}' needs an agent." in failed.err
    assert here("setup", "--dry-run").works().out == here("setup").works().out
    assert files_of(person) == before


def test_setup_caches_the_handshake(here, lore, person):
    write(person, ["codex"])
    here("setup", "codex", "--dry-run").works()
    assert not (lore.home / HANDSHAKE_FILE).exists()
    here("setup", "codex").works()
    settings = load({}, home=lore.home).settings
    assert load_handshake(str(lore.home), fingerprint(__version__, settings))


def test_setup_shows_its_changes_and_is_idempotent(here, person):
    write(person, ["codex"])
    done = here("setup", "codex").works()
    assert "+[mcp_servers.lore]" in done.out
    assert "Codex has memory now." in done.out
    after = files_of(person)
    assert "nothing to change" in here("setup", "codex").works().out
    assert files_of(person) == after
    listed = json.loads(here("setup", "--json").works().out)
    assert [one["agent"] for one in listed if one["set_up"]] == ["codex"]


def test_an_agent_that_was_installed_and_never_ran_is_set_up_with_all(here, person):
    program = person / "bin" / "gemini"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert "Gemini CLI has memory now." in here("setup", "all").works().out


@pytest.mark.parametrize("words", [("claude-code",), ("all",), ("all", "--dry-run")])
def test_an_agent_with_the_plugin_is_not_set_up_again(here, person, words):
    turn_plugin_on(person)
    before = files_of(person)
    done = here("setup", *words).works()
    assert "Claude Code has memory through its plugin: nothing to change." in done.out
    assert "needs 'lore' on the PATH" in done.err
    assert files_of(person) == before
    [listed] = [one for one in json.loads(here("setup", "--json").works().out) if one["plugin"]]
    assert (listed["agent"], listed["set_up"]) == ("claude-code", False)
    assert "set up, by its plugin" in here("setup").works().out


def test_setup_reports_a_plugin_beside_a_setup_and_can_undo_it(here, person):
    here("setup", "claude-code").works()
    settings = (person / ".claude" / "settings.json").read_text()
    turn_plugin_on(person)
    on = json.loads((person / ".claude" / "settings.json").read_text())
    both = json.dumps({**json.loads(settings), **on}, indent=2)
    (person / ".claude" / "settings.json").write_text(both)
    for words in (("setup",), ("setup", "claude-code")):
        assert "its tools are there twice" in here(*words).works().err
    here("setup", "claude-code", "--undo").works()
    assert "twice" not in here("setup").works().err
    assert json.loads((person / ".claude" / "settings.json").read_text()) == on


def test_undo_restores_every_byte(here, person):
    write(person)
    before = files_of(person)
    here("setup", "all").works()
    assert files_of(person) != before
    assert "as it was before" in here("setup", "all", "--undo").works().out
    assert files_of(person) == before


def test_setup_gateway_writes_the_address_and_says_what_it_needs(here, person):
    write(person)
    before = files_of(person)
    shown = here("setup", "claude-code", "--gateway", "--dry-run").works()
    assert '"ANTHROPIC_BASE_URL": "http://127.0.0.1:3207"' in shown.out
    assert files_of(person) == before
    done = here("setup", "all", "--gateway").works()
    told = json.loads((person / ".claude" / "settings.json").read_text())
    assert told["env"] == {"ANTHROPIC_BASE_URL": "http://127.0.0.1:3207"}
    assert (
        'openai_base_url = "http://127.0.0.1:3207/v1"'
        in (person / ".codex" / "config.toml").read_text()
    )
    assert "'lore service install'" in done.out
    assert "No daemon runs" in done.err
    assert "Cursor has no file for the address" in done.err
    listed = {one["agent"]: one["gateway"] for one in json.loads(here("setup", "--json").out)}
    assert {name for name, url in listed.items() if url == "http://127.0.0.1:3207"} == {
        "claude-code", "codex", "opencode",
    }  # fmt: skip
    assert here("setup").works().out.count("through http://127.0.0.1:3207") == 3
    checks = json.loads(here("doctor", "--json").out)
    broken = {one["name"] for one in checks if one["state"] == "broken"}
    assert {"claude-code gateway", "codex gateway", "opencode gateway"} <= broken
    here("setup", "all", "--undo").works()
    assert files_of(person) == before


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("LORE_GATEWAY_ON", "false", "gateway.on"),
        ("LORE_SERVER_PORT", "0", "server.port"),
        ("LORE_SERVER_HOST", "0.0.0.0", "needs an access key"),
    ],
)
def test_an_unusable_gateway_address_is_not_written(here, person, setting, value, told):
    write(person, ["codex"])
    before = files_of(person)
    assert told in here("setup", "codex", "--gateway", **{setting: value}).fails_with(2).err
    assert files_of(person) == before


def test_claude_code_with_the_plugin_gets_only_the_address(here, person):
    turn_plugin_on(person)
    before = files_of(person)
    here("setup", "claude-code", "--gateway").works()
    assert set(files_of(person)) == set(before)
    told = json.loads((person / ".claude" / "settings.json").read_text())
    assert set(told) == {"enabledPlugins", "env"}
    here("setup", "claude-code", "--undo").works()
    assert files_of(person) == before


def status_line(person):
    return json.loads((person / ".claude" / "settings.json").read_text()).get("statusLine")


def test_setup_writes_the_status_line_if_asked(here, person):
    write(person, ["claude-code"])
    before = files_of(person)
    shown = here("setup", "claude-code", "--statusline", "--dry-run").works()
    assert "+" in shown.out
    assert "statusline" in shown.out
    assert files_of(person) == before
    here("setup", "claude-code").works()
    assert status_line(person) is None
    here("setup", "claude-code", "--statusline").works()
    line = status_line(person)
    assert line["type"] == "command"
    assert line["command"].endswith(" statusline")
    assert "nothing to change" in here("setup", "claude-code", "--statusline").works().out
    here("setup", "claude-code").works()
    assert status_line(person) == line
    here("setup", "claude-code", "--undo").works()
    assert files_of(person) == before


def test_undo_leaves_what_changed_beside_the_status_line(here, person):
    write(person, ["claude-code"])
    here("setup", "claude-code", "--statusline").works()
    path = person / ".claude" / "settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "theme": "dark"}))
    here("setup", "claude-code", "--undo").works()
    left = json.loads(path.read_text())
    assert "statusLine" not in left
    assert left["theme"] == "dark"


def test_another_status_line_stays(here, person):
    write(person, ["claude-code"])
    path = person / ".claude" / "settings.json"
    own = {"type": "command", "command": "~/bin/line.sh"}
    path.write_text(json.dumps({"statusLine": own}))
    before = files_of(person)
    failed = here("setup", "claude-code", "--statusline").fails_with(2)
    assert "another status line" in failed.err
    assert files_of(person) == before
    here("setup", "claude-code").works()
    here("setup", "claude-code", "--undo").works()
    assert files_of(person) == before


def test_claude_code_with_the_plugin_gets_only_the_status_line(here, person):
    write(person, ["claude-code"])
    turn_plugin_on(person)
    before = files_of(person)
    here("setup", "claude-code", "--statusline").works()
    changed = [
        path.name for path, content in files_of(person).items() if before.get(path) != content
    ]
    assert changed == ["settings.json"]
    assert "hook" not in json.dumps(status_line(person))
    here("setup", "claude-code", "--undo").works()
    assert files_of(person) == before


def test_undo_without_a_setup_changes_nothing(here, person):
    own = person / ".cursor" / "mcp.json"
    own.parent.mkdir()
    own.write_text('{"mcpServers": {"lore": {"command": "folklore"}}}')
    before = files_of(person)
    here("setup", "cursor").works()
    here("setup", "cursor", "--undo").works()
    assert "is not set up" in here("setup", "cursor", "--undo").works().out
    assert files_of(person) == before


@pytest.mark.parametrize("words", [("--dry-run",), ("--dry-run", "--json")])
def test_a_dry_run_changes_nothing(here, person, lore, words):
    write(person)
    before = files_of(person)
    done = here("setup", "all", *words).works()
    assert "codex" in done.out.lower()
    assert files_of(person) == before
    assert not lore.home.exists()


def test_one_broken_file_stops_all_before_anything_is_changed(here, person):
    write(person)
    (person / ".gemini" / "settings.json").write_text("{ broken")
    before = files_of(person)
    failed = here("setup", "all").fails_with(2)
    assert "settings.json" in failed.err
    assert files_of(person) == before
    assert json.loads(here("setup", "--json").works().out)[-1]["problem"]


def test_an_agent_may_be_named_as_its_program(here, person):
    assert "Claude Code has memory once it is installed." in here("setup", "claude").works().out


def test_a_file_that_claude_code_cannot_read_is_reported(here, person):
    settings = person / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  // mine\n  "model": "opus"\n}\n')
    assert "Claude Code ignores it all." in here("setup", "claude-code").works().err
    checks = json.loads(here("doctor", "--json").out)
    assert any("has comments" in str(one) for one in checks if one["state"] == "broken")
    settings.write_text(settings.read_text().replace("// mine", ""))
    assert "ignores" not in here("setup", "claude-code").works().err


@pytest.mark.parametrize("names", [["emacs"], ["codex", "emacs"], ["all"], ["Codex"]])
def test_an_unsupported_agent_is_refused(here, person, names):
    failed = here("setup", *names).fails_with(2)
    assert "gemini" in failed.err or "Name an agent" in failed.err
    assert files_of(person) == {}


def test_another_home_is_passed_to_the_agent(here, person, lore):
    here("setup", "codex").works()
    assert str(lore.home) in (person / ".codex" / "config.toml").read_text()


def test_the_default_home_is_not_passed_to_the_agent(here, person):
    here("setup", "codex", LORE_HOME=str(person / ".lore")).works()
    assert "--home" not in (person / ".codex" / "config.toml").read_text()


def test_run_passes_arguments_to_the_agent(person, tmp_path):
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 7\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    done = subprocess.run(
        [*PROGRAM, "run", "codex", "exec", "--help", "--undo", "two words"],
        capture_output=True, text=True, check=False,
        env=environment(tmp_path / "home", HOME=str(person), PATH=path, LORE_GATEWAY_ON="false"),
    )  # fmt: skip
    assert done.returncode == 7
    assert done.stdout.splitlines()[-4:] == ["exec", "--help", "--undo", "two words"]
    assert files_of(person) == {}


def test_run_puts_the_folder_of_lore_first_on_the_path(person, tmp_path):
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$PATH"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    done = subprocess.run(
        [*PROGRAM, "run", "claude"], capture_output=True, text=True, check=True,
        env=environment(tmp_path / "home", HOME=str(person), PATH=path, LORE_GATEWAY_ON="false"),
    )  # fmt: skip
    first, _, rest = done.stdout.strip().partition(os.pathsep)
    assert (Path(first) / "lore").is_file()
    assert rest == path


def test_run_refuses_an_agent_that_is_not_installed(here):
    here("run", "codex", PATH="/nowhere").fails_with(3)
    here("run", "emacs").fails_with(2)
