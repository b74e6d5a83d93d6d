"""The ways in which a person gives memory to agents, taken with the real agents."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.mcp.server import INSTRUCTIONS
from tests.clients import claude_code, codex, opencode
from tests.clients.client import Client, Run
from tests.clients.machine import (
    BIN,
    PLUGIN,
    Machine,
    find_client,
    hook_contexts,
    json_texts,
    tool_texts,
    write_repository,
)
from tests.upstream import Call, ModelReply, Scene, SceneScript, running_upstream

KNOWN = "Proofs of the almanac go to Ines, who checks the tides."
QUESTION = {"query": "who checks the proofs of the almanac?"}

WAITING = ("-c", "mcp_servers.lore.required=true")
"""Codex goes on without a server that is not there at once, unless it is told to wait for it."""

WAYS = {
    "as a plugin of a marketplace": "mcp__plugin_lore_lore__recall",
    "by setup": "mcp__lore__recall",
    "for one run": "mcp__plugin_lore_lore__recall",
    "for one run, beside setup": "mcp__lore__recall",
    "as a plugin, beside setup": "mcp__lore__recall",
    "for one run, with a server": "mcp__lore__recall",
    "for one run, with hooks": "mcp__lore__recall",
}


def scene(cue: str, tool: str, namespace: str = "") -> Scene:
    call = Call(tool, QUESTION, namespace=namespace)
    return Scene(cue, (ModelReply("I look.", call), ModelReply("Ines.")))


def cue(agent: str, way: str) -> str:
    return f"Who checks the proofs of the almanac? ({agent}, {way})"


SCENES = (
    Scene(opencode.TITLE, (ModelReply("Proofs"),), "client", "system"),
    *(scene(cue("claude", way), tool) for way, tool in WAYS.items()),
    *(scene(cue("codex", way), "recall", "mcp__lore") for way in ("by setup", "for one run")),
    *(scene(cue("opencode", way), "lore_recall") for way in ("by setup", "for one run")),
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Iterator[Machine]:
    find_client("claude")
    place = tmp_path_factory.mktemp("machine")
    with running_upstream(SceneScript(SCENES)) as upstream:
        machine = Machine(place / "person", place / "lore", upstream)
        machine.home.mkdir()
        machine.start()
        machine.lore("remember", KNOWN, "--everywhere")
        try:
            yield machine
        finally:
            machine.stop()


@pytest.fixture
def person(machine, tmp_path) -> Machine:
    """Return the same machine with the home of somebody who has set up nothing yet."""
    home = tmp_path / "person"
    write_repository(home / "code" / "almanac")
    return Machine(home, machine.lore_home, machine.upstream)


def project(person: Machine) -> Path:
    return person.home / "code" / "almanac"


def with_lore(client: Client) -> Client:
    """Return a client that is started by `lore run`."""
    return Client(BIN / "lore", client.home, client.project, client.upstream_url, client.settings)


def say_to_claude(client: Client, prompt: str, *words: str) -> Run:
    allowed = ("--allowedTools", " ".join(sorted(set(WAYS.values()))))
    return client.run(*words, "-p", "--output-format", "json", *allowed, input=prompt)


def check(machine: Machine, prompt: str, tool: str) -> None:
    """Check that the tool was tool_texts, and that what it found reached the model."""
    first, second = machine.requests(prompt)
    assert machine.upstream.problems() == []
    assert [text for text in tool_texts(first) if tool in text]
    results = [turn for turn in json_texts(second.json) if KNOWN in turn]
    assert [text for text in results if "<lore-memory>" in text]


@pytest.mark.parametrize("folder", [PLUGIN, PLUGIN.parent], ids=["plugin", "marketplace"])
def test_claude_code_finds_nothing_wrong_with(folder, person):
    client = person.client("claude", claude_code, project(person))
    checked = client.run("plugin", "validate", str(folder))
    assert checked.status == 0, checked
    assert "warning" not in checked.stdout.lower()


def test_claude_code_has_memory_by_the_marketplace(person):
    prompt = cue("claude", "as a plugin of a marketplace")
    client = person.client("claude", claude_code, project(person))
    for words in (("marketplace", "add", str(PLUGIN.parent)), ("install", "lore@lore")):
        done = client.run("plugin", *words)
        assert done.status == 0, done
    say_to_claude(client, prompt)
    check(person, prompt, "mcp__plugin_lore_lore__recall")
    assert "has memory through its plugin" in person.lore("setup", "claude-code").stdout
    client.run("plugin", "disable", "lore@lore")
    assert "has memory now" in person.lore("setup", "claude-code").stdout


def test_claude_code_has_memory_by_setup_and_its_hooks_run(person):
    prompt = cue("claude", "by setup")
    (person.home / ".claude").mkdir()
    person.lore("setup", "claude-code")
    client = person.client("claude", claude_code, project(person))
    session = str(uuid.uuid4())
    say_to_claude(client, prompt, "--session-id", session)
    check(person, prompt, "mcp__lore__recall")
    assert "Ines" in dict(hook_contexts(person.requests(prompt)[0]))["SessionStart"]
    person.wait_until_indexed(session, "Ines.")
    person.lore("setup", "claude-code", "--undo")
    listed = client.run("mcp", "list")
    assert "lore" not in listed.stdout.replace(str(person.home), "")


def test_claude_code_has_memory_for_one_run(person):
    prompt = cue("claude", "for one run")
    client = with_lore(person.client("claude", claude_code, project(person)))
    say_to_claude(client, prompt, "run", "claude")
    check(person, prompt, "mcp__plugin_lore_lore__recall")
    assert not (person.home / ".claude" / "settings.json").exists()


def test_claude_code_that_is_set_up_is_run_without_a_second_server(person):
    prompt = cue("claude", "for one run, beside setup")
    person.lore("setup", "claude-code")
    client = with_lore(person.client("claude", claude_code, project(person)))
    say_to_claude(client, prompt, "run", "claude")
    check(person, prompt, "mcp__lore__recall")
    assert "mcp__plugin_lore" not in "".join(tool_texts(person.requests(prompt)[0]))


@pytest.mark.parametrize(
    ("way", "emptied"),
    [
        ("for one run, with a server", ".claude/settings.json"),
        ("for one run, with hooks", ".claude.json"),
    ],
)
def test_claude_code_that_is_set_up_by_half_is_given_the_rest_for_one_run(person, way, emptied):
    prompt = cue("claude", way)
    person.lore("setup", "claude-code")
    (person.home / emptied).write_text("{}")
    client = with_lore(person.client("claude", claude_code, project(person)))
    say_to_claude(client, prompt, "run", "claude")
    check(person, prompt, "mcp__lore__recall")
    assert "mcp__plugin_lore" not in "".join(tool_texts(person.requests(prompt)[0]))
    assert "Ines" in dict(hook_contexts(person.requests(prompt)[0]))["SessionStart"]


def test_claude_code_with_the_plugin_beside_setup_is_told_once(person):
    prompt = cue("claude", "as a plugin, beside setup")
    person.lore("setup", "claude-code")
    client = person.client("claude", claude_code, project(person))
    say_to_claude(client, prompt, "--plugin-dir", str(PLUGIN))
    check(person, prompt, "mcp__lore__recall")
    first = "".join(json_texts(person.requests(prompt)[0].json))
    assert (first.count("<lore-memory>"), first.count(KNOWN)) == (1, 1)


def test_codex_has_memory_by_setup(person):
    prompt = cue("codex", "by setup")
    client = person.client("codex", codex, project(person))
    person.lore("setup", "codex")
    done = client.run("exec", *WAITING, "--json", "-", input=prompt)
    assert done.status == 0, done
    check(person, prompt, INSTRUCTIONS.split(".")[0])


def test_codex_has_memory_for_one_run(person):
    prompt = cue("codex", "for one run")
    client = with_lore(person.client("codex", codex, project(person)))
    done = client.run("run", "codex", "exec", *WAITING, "--json", "-", input=prompt)
    assert done.status == 0, done
    check(person, prompt, INSTRUCTIONS.split(".")[0])
    assert "mcp_servers" not in (person.home / ".codex" / "config.toml").read_text()


def test_opencode_has_memory_by_setup(person):
    prompt = cue("opencode", "by setup")
    client = person.client("opencode", opencode, project(person))
    person.lore("setup", "opencode")
    done = client.run("run", "--format", "json", input=prompt)
    assert done.status == 0, done
    check(person, prompt, "lore_recall")


def test_opencode_has_memory_for_one_run(person):
    prompt = cue("opencode", "for one run")
    client = with_lore(person.client("opencode", opencode, project(person)))
    done = client.run("run", "opencode", "run", "--format", "json", input=prompt)
    assert done.status == 0, done
    check(person, prompt, "lore_recall")
