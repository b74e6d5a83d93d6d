"""The official suites against Lore, where they are installed (CONTRIBUTING.md says how)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lore.daemon import process
from lore.memory import Memory
from tests.cli.conftest import environment
from tests.clients.client import find_command
from tests.mcp.conformance_server import serving_fixture
from tests.mcp.live_server import serving_mcp

CONFORMANCE = find_command("conformance")
INSPECTOR = find_command("mcp-inspector")

VERDICT = re.compile(r"^(✓|✗) ([a-z0-9-]+): \d+ passed, \d+ failed$", re.M)

ASKS_THE_CLIENT = {
    "elicitation-sep1034-defaults", "elicitation-sep1330-enums", "tools-call-elicitation",
    "tools-call-sampling", "input-required-result-basic-elicitation",
    "input-required-result-basic-list-roots", "input-required-result-basic-sampling",
    "input-required-result-capability-check", "input-required-result-multi-round",
    "input-required-result-multiple-input-requests", "input-required-result-non-tool-request",
    "input-required-result-request-state", "input-required-result-result-type",
    "input-required-result-tampered-state",
}  # fmt: skip
"""Lore asks nothing of a client."""

TELLS_THE_CLIENT = {
    "logging-set-level", "tools-call-with-logging", "tools-call-with-progress",
    "resources-subscribe", "resources-unsubscribe", "completion-complete",
}  # fmt: skip
"""Lore answers, and sends nothing beside its answers; these are optional."""

NOT_SCORED = re.compile(r"tasks-|json-schema-2020-12$")
"""Extensions, and what the suite itself does not count: it wants fixtures of its own."""


def run(*words, env=None):
    """Run a program that needs the Node of this environment, if there is one."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=240, check=False,
        stdin=subprocess.DEVNULL, env={**(env or os.environ), "PATH": path},
    )  # fmt: skip


@pytest.mark.skipif(CONFORMANCE is None, reason="the conformance suite is not installed")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_what_lore_serves_conforms_to_both_generations(tmp_path, revision):
    with serving_fixture(tmp_path) as served:
        url = f"http://127.0.0.1:{served.port}/mcp"
        done = run(CONFORMANCE, "server", "--url", url, "--requirements", revision)
    verdicts = {name: sign for sign, name in VERDICT.findall(done.stdout)}
    failed = {name for name, sign in verdicts.items() if sign == "✗"}
    assert len(verdicts) > 30, done.stdout
    scored = {name for name in failed if not NOT_SCORED.match(name)}
    assert scored <= ASKS_THE_CLIENT | TELLS_THE_CLIENT, done.stdout


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "home"
    with Memory.open(path) as memory:
        memory.store("Deploys go through ops/deploy.sh")
    yield path
    process.stop(path, force=True)


@pytest.mark.skipif(INSPECTOR is None, reason="the inspector is not installed")
def test_the_inspector_reads_lore_over_standard_streams(home):
    env = environment(home, LORE_SERVER_PORT="0", HOME=str(home.parent))
    lore = (sys.executable, "-m", "lore.cli", "--home", home, "mcp")

    def inspect(method, *more):
        done = run(INSPECTOR, "--cli", *lore, "--method", method, *more, env=env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout[done.stdout.index("{") :])

    names = [tool["name"] for tool in inspect("tools/list")["tools"]]
    assert names[:3] == ["recall", "search", "read"]
    recalled = inspect(
        "tools/call", "--tool-name", "recall", "--tool-arg", "query=how do we deploy"
    )
    assert "ops/deploy.sh" in recalled["content"][0]["text"]
    assert inspect("resources/list")["resources"]
    assert inspect("prompts/list")["prompts"]


@pytest.mark.skipif(INSPECTOR is None, reason="the inspector is not installed")
def test_the_inspector_reads_lore_over_http(tmp_path):
    with serving_mcp(tmp_path / "home") as served:
        served.memory.store("Deploys go through ops/deploy.sh")
        done = run(
            INSPECTOR, "--cli", f"http://127.0.0.1:{served.port}/mcp", "--transport", "http",
            "--header", f"Authorization: Bearer {served.key}",
            "--method", "tools/call", "--tool-name", "search", "--tool-arg", "query=deploy",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ops/deploy.sh" in done.stdout
