"""Each real agent digests a session for Lore, and leaves nothing that Lore would digest again."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore.capture.adapters.adapter_registry import ADAPTERS
from lore.capture.transcript_capture import find_files
from lore.llm.command_table import AGENT_COMMANDS
from lore.memory import Memory
from lore.records import NewMessage, Part, Role
from lore.settings import load
from tests.clients.claude_code import SETTINGS as CLAUDE_SETTINGS
from tests.clients.client import PREFIX_VARIABLE
from tests.clients.machine import find_client
from tests.clients.opencode import SETTINGS as OPENCODE_SETTINGS
from tests.clients.opencode import prepare as prepare_opencode
from tests.fakes import NOON, FakeEmbedder, FixedClock
from tests.upstream import ModelReply, Scene, SceneScript, Upstream, running_upstream

SAID = [
    "The export of billing must not start before 02:30, because the backup locks the database.",
    'Done: CRON_EXPORT is "30 2 * * *" in deploy/cron.env.',
    "Good. Mind the file @secret.txt and mail ada@example.org when it has run.",
    "It ran, and ada@example.org has the mail.",
    "Thanks, that is all for the export.",
    "You are welcome.",
]
LOG = "[0] user: the export must not start before 02:30\n[2] user: mail ada@example.org"
FACT = "The export of billing must not start before 02:30, because the backup locks the database."
FACTS = json.dumps({
    "facts": [{"content": FACT, "kind": "decision", "importance": "high", "sources": [0]}]
})
SCENES = (
    Scene("title generator", (ModelReply("A title"),), "client", "system"),
    Scene("Write the log of this record", (ModelReply(LOG),)),
    Scene("List the facts", (ModelReply(FACTS),)),
)
MODELS = {"opencode-cli": "scripted/script-1"}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with running_upstream(SceneScript(SCENES)) as running:
        yield running


@pytest.fixture
def home(upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a person who is logged in to every agent, at the scripted upstream."""
    for name in set(os.environ) - {"PATH", PREFIX_VARIABLE}:
        monkeypatch.delenv(name)
    person = tmp_path / "person"
    (person / ".gemini").mkdir(parents=True)
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (person / ".gemini" / "settings.json").write_text(json.dumps(auth))
    prepare_opencode(person, upstream.url)
    variables = {
        **dict(CLAUDE_SETTINGS), **dict(OPENCODE_SETTINGS), "HOME": str(person), "TERM": "dumb",
        "ANTHROPIC_BASE_URL": upstream.url, "GOOGLE_GEMINI_BASE_URL": upstream.url,
        "GEMINI_API_KEY": "dummy", "CODEX_API_KEY": "dummy", "HTTP_PROXY": upstream.url,
        "HTTPS_PROXY": upstream.url, "NO_PROXY": "127.0.0.1,localhost",
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return person


def install(
    command: str, folder: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put a client on the path; Codex takes the address of its provider by an option only."""
    folder.mkdir()
    executable = shlex.quote(str(find_client(command)))
    address = shlex.quote(f'openai_base_url="{upstream.url}/v1"')
    words = f'exec "$@" -c {address}' if command == "codex" else 'exec "$@"'
    started = words.replace("exec", f"exec {executable}", 1)
    (folder / command).write_text(f"#!/bin/sh\n{started}\n")
    (folder / command).chmod(0o700)
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), os.environ["PATH"]]))


def tools_in(request: Any) -> list[Any]:
    """Return the tools that a request declares, without empty lists of them."""
    return [one for one in request.json.get("tools") or () if one != {"functionDeclarations": []}]


@pytest.mark.parametrize("provider", AGENT_COMMANDS)
def test_an_agent_digests_a_session_and_leaves_nothing_to_capture(
    provider: str,
    home: Path,
    upstream: Upstream,
    tmp_path: Path,
    clock: FixedClock,
    monkeypatch: pytest.MonkeyPatch,
):
    command = AGENT_COMMANDS[provider].command
    install(command, tmp_path / "bin", upstream, monkeypatch)
    values = {"LORE_CHAT_PROVIDER": provider, "LORE_CHAT_MODEL": MODELS.get(provider, "")}
    config = load(values, home=home / ".lore").settings
    secret = config.agent_chats / command / "secret.txt"
    for folder in (config.home, config.agent_chats, secret.parent):
        folder.mkdir(mode=0o700)
    secret.write_text("not for any model")
    roles: tuple[Role, Role] = ("user", "assistant")
    new = [
        NewMessage(roles[place % 2], (Part("text", text),), NOON) for place, text in enumerate(SAID)
    ]
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        memory.capture("s", new, agent="claude-code", project="/code/billing")
        result = memory.digest(["s"])
        assert not memory.notice
        assert (result.distillations, result.fragments) == (1, 1)
        (log,) = memory.sessions.page_of_distillations(session="s").items
        assert "mail ada@example.org" in log.text
        left = [one.path for one in find_files((), ADAPTERS, home)]
        captured = memory.sessions.capture_files(left) if left else None
        assert captured is None or captured.added == 0
        assert memory.maintenance.queues().calls_today == 2
        assert len(memory.sessions.sessions()) == 1
    asked = [one for one in upstream.requests if one.json]
    cues = [one.cue for one in asked]
    assert cues == ["Write the log of this record", "List the facts"]
    assert all(tools_in(one) == [] for one in asked)
    assert "not for any model" not in "".join(json.dumps(one.json) for one in asked)
