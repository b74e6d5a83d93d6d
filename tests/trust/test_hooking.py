"""Hooks on a bad day: what can be read is told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.cli.conftest import PROGRAM, environment, run_process
from tests.waiting import eventually


def test_a_session_that_begins_on_a_full_disk_is_told_what_can_be_read(disk: Path):
    home = disk / "home"
    run_process("remember", "Deploys go through ops/deploy.sh", "--everywhere", home=home).works()
    space = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"x" * (space.f_bavail * space.f_frsize))
    told = {"session_id": "s", "cwd": "/code/demo", "source": "startup"}

    def hook(event: str) -> bytes:
        done = subprocess.run(
            [*PROGRAM, "--home", str(home), "hook", event],
            input=json.dumps(told).encode(),
            capture_output=True,
            env=environment(
                home,
                LORE_MCP_START="false",
                LORE_EMBED_PROVIDER="none",
                LORE_INJECT_WITHIN_MS="4000",
            ),
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    given = json.loads(eventually(lambda: hook("SessionStart")))  # a machine may have much to do
    assert "ops/deploy.sh" in given["hookSpecificOutput"]["additionalContext"]
    assert hook("UserPromptSubmit") == b""
