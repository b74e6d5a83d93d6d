"""Hooks on a bad day: what can be read is told."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.cli.conftest import PROGRAM, environment, run_process
from tests.waiting import eventually

RULE = "Deploys go through ops/deploy.sh"
ALONE = {
    "LORE_MCP_START": "false",
    "LORE_EMBED_PROVIDER": "none",
    "LORE_INJECT_WITHIN_MS": "4000",
    "LORE_SERVER_PORT": "0",
}


def fill(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(b"x" * 4096)


def hook(home: Path, event: str, **told: object) -> bytes:
    said = {"session_id": "s", "cwd": "/code/demo", "source": "startup", **told}
    done = subprocess.run(
        [*PROGRAM, "--home", str(home), "hook", event],
        input=json.dumps(said).encode(),
        capture_output=True,
        env=environment(home, **ALONE),
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def test_a_session_that_begins_on_a_full_disk_is_told_what_can_be_read(disk: Path):
    home = disk / "home"
    run_process("remember", RULE, "--everywhere", home=home).works()
    fill(disk)
    begun = eventually(lambda: hook(home, "SessionStart"))  # a machine may have much to do
    assert "ops/deploy.sh" in json.loads(begun)["hookSpecificOutput"]["additionalContext"]
    assert hook(home, "UserPromptSubmit") == b""


def test_a_daemon_answers_hooks_after_its_disk_is_full(disk: Path):
    home = disk / "home"
    run_process("remember", RULE, "--everywhere", home=home).works()
    run_process("up", "--detach", home=home, env=ALONE).works()
    try:
        fill(disk)
        begun = eventually(lambda: hook(home, "SessionStart"))
        assert "ops/deploy.sh" in json.loads(begun)["hookSpecificOutput"]["additionalContext"]
        for event in ("UserPromptSubmit", "PostToolUse", "Stop", "PreCompact", "SessionEnd"):
            hook(home, event, prompt="how?", tool_name="Bash", tool_response="fine")
        assert "running" in run_process("status", home=home, env=ALONE).works().out
        begun = eventually(lambda: hook(home, "SessionStart", session_id="t"))
        assert "ops/deploy.sh" in json.loads(begun)["hookSpecificOutput"]["additionalContext"]
    finally:
        (disk / "ballast").unlink()
        run_process("down", home=home, env=ALONE).works()
