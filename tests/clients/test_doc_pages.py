"""The pages on agents: their commands run as they stand there, with the real agents."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import partial

import pytest

from lore.daemon import daemon_lock
from tests.clients import claude_code, codex, opencode
from tests.clients.machine import Machine, find_client, hook_contexts, write_repository
from tests.house.source import ROOT
from tests.setup.files import write
from tests.upstream import ModelReply, Scene, SceneScript, running_upstream
from tests.waiting import eventually

FOLDER = ROOT / "docs" / "how-to"
AGENTS = {
    "claude-code": ("claude", claude_code),
    "codex": ("codex", codex),
    "opencode": ("opencode", opencode),
}
WITHOUT_AGENT = ("cursor", "gemini")
FOR_ONE_RUN = {
    "lore run claude": "lore run claude -p hello",
    "lore run codex": "lore run codex exec hello",
    "lore run opencode": "lore run opencode run hello",
}
"""Without words, these begin a talk on a terminal."""

PROMPTS = [
    prompt
    for page in FOLDER.glob("*.md")
    for prompt in re.findall(r'^\$ (?:claude|codex|opencode) .*?"([^"]+)"', page.read_text(), re.M)
]
SCENES = (
    Scene(opencode.TITLE, (ModelReply("Proofs"),), "client", "system"),
    *(Scene(prompt, (ModelReply("Understood."),)) for prompt in PROMPTS),
    Scene("hello", (ModelReply("Hello."),)),
)


def commands(name: str) -> list[str]:
    return re.findall(r"^\$ (.+)$", (FOLDER / f"{name}.md").read_text("utf-8"), re.MULTILINE)


@pytest.fixture
def machine(tmp_path) -> Iterator[Machine]:
    with running_upstream(SceneScript(SCENES)) as upstream:
        machine = Machine(tmp_path / "person", tmp_path / "lore", upstream)
        machine.home.mkdir()
        try:
            yield machine
        finally:
            machine.stop()


def run(command: str, machine: Machine, environ: dict[str, str]) -> None:
    """Run a command where its words lead somewhere: in a project that has the plugin beside it."""
    project = machine.home / "code" / "almanac"
    done = subprocess.run(
        ["sh", "-c", FOR_ONE_RUN.get(command, command)], cwd=project, env=environ,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stdout, done.stderr)


@pytest.mark.parametrize("name", AGENTS)
def test_the_commands_of_a_page_do_what_it_says(machine, name):
    program, sessions = AGENTS[name]
    find_client(program)
    project = write_repository(machine.home / "code" / "almanac")
    (project / "plugins").symlink_to(ROOT / "plugins")
    environ = machine.client(program, sessions, project).environment()
    for command in commands(name):
        run(command, machine, environ)
        if command.startswith("claude -p"):
            told = re.findall(r'"(.+)"', command)[0]
            # until it is captured, the sessions of the commands before are all there is
            session = eventually(partial(machine.find_session, told))
            machine.wait_until_indexed(session, told)
    assert machine.upstream.problems() == []
    if name == "claude-code":
        (asked,) = machine.requests("How do we print the almanac?")
        assert "ops/press.sh" in dict(hook_contexts(asked))["SessionStart"]


@pytest.mark.parametrize("name", WITHOUT_AGENT)
def test_a_page_on_an_agent_that_is_not_run_here_writes_its_file(machine, name):
    write_repository(machine.home / "code" / "almanac")
    for command in commands(name):
        if not command.startswith("lore run "):
            run(command, machine, machine.environment())
    assert "nothing to change" in machine.lore("setup", name).stdout


def test_there_is_a_page_for_every_agent():
    from lore.setup.agents import AGENTS as KNOWN

    pages = {path.stem for path in FOLDER.glob("*.md")}
    assert pages == {agent.name for agent in KNOWN} | {
        "gateway",
        "native-memories",
        "other-memories",
        "same-mistake",
        "sync",
        "qdrant",
        "team-server",
        "tray",
        "uninstall",
    }


def test_the_page_on_taking_lore_out_leaves_agents_as_they_were_and_nothing_running(machine):
    write_repository(machine.home / "code" / "almanac")
    before = write(machine.home)
    machine.lore("setup", "all")
    machine.start()
    for command in commands("uninstall"):
        if command.startswith("lore ") and command != "lore service uninstall":  # none was made
            run(command, machine, machine.environment())
    assert {path: path.read_bytes() for path in before} == before
    assert daemon_lock.find_holder(machine.lore_home) is None
