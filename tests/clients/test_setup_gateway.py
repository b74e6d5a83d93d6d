"""Real agents that are told the gateway's address by their own files: they get through."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients import claude_code, codex, opencode
from tests.clients.gateway_machine import running_gateway_machine
from tests.clients.machine import find_client, write_repository
from tests.upstream import ModelReply

HELLO = "Who answers here?"
SCENES = {HELLO: (ModelReply("The one behind the gateway."),)}

CODEX = "# as a person has it\n" + codex.PLAIN
OPENCODE = """\
{
  "$schema": "https://opencode.ai/config.json", // it is put in where it is missing
  "model": "anthropic/claude-sonnet-4-5",
  "small_model": "anthropic/claude-sonnet-4-5",
  "autoupdate": false,
  "share": "disabled",
}
"""
KEYS = {
    "ANTHROPIC_API_KEY": "dummy-key-for-loopback",
    "OPENAI_API_KEY": "dummy-key-for-loopback",
}


@pytest.mark.parametrize(
    ("agent", "command", "file", "text", "words", "settings"),
    [
        ("claude-code", "claude", ".claude/settings.json", "{}\n",
         ("-p", "--output-format", "json"), claude_code.SETTINGS),
        ("codex", "codex", ".codex/config.toml", CODEX.format(model=codex.MODEL),
         ("exec", "--json", "-"), ()),
        ("opencode", "opencode", ".config/opencode/opencode.jsonc", OPENCODE,
         ("run", "--format", "json"), opencode.SETTINGS),
    ],
    ids=["Claude Code", "Codex", "opencode"],
)  # fmt: skip
def test_an_agent_gets_through_and_is_as_before_when_it_is_undone(
    tmp_path: Path, agent, command, file, text, words, settings
):
    find_client(command)
    with running_gateway_machine(tmp_path, SCENES) as behind:
        machine = behind.machine
        project = write_repository(machine.home / "code" / "almanac")
        path = machine.home / file
        path.parent.mkdir(parents=True)
        path.write_text(text)
        machine.start()
        machine.lore("setup", agent, "--gateway")
        assert behind.url in path.read_text()
        client = behind.client(command, project, {**KEYS, **dict(settings)})
        done = client.run(*words, input=HELLO)
        assert done.status == 0, done.stderr
        assert "The one behind the gateway." in done.stdout
        assert behind.requests(HELLO)
        checks = json.loads(machine.try_lore("doctor", "--json").stdout)
        [found] = [one for one in checks if one["name"] == f"{agent} gateway"]
        assert found["state"] == "ok"
        machine.lore("setup", agent, "--undo")
        after = path.read_text()
        assert after.startswith(text)  # Codex itself adds that it trusts the project
        assert "lore" not in after
        assert behind.url not in after
