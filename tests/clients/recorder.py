"""Run the real clients against the scripted upstream and record what they wrote.

python -m tests.clients.recorder FOLDER [AGENT …]
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

from tests.clients import claude_code, codex, opencode
from tests.clients.client import Client, find_command
from tests.clients.conversation import (
    Conversation,
    Exchange,
    parse_conversation,
    read_conversations,
    read_exchanges,
)
from tests.clients.project import write_project
from tests.upstream import SceneScript, running_upstream

AGENTS: dict[str, tuple[str, ModuleType]] = {
    "claude-code": ("claude", claude_code),
    "codex": ("codex", codex),
    "opencode": ("opencode", opencode),
}
"""The command of each agent, and the module with its sessions."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The transcripts of one agent below a folder, and its real conversations."""

    agent: str
    version: str
    folder: Path
    transcripts: tuple[Path, ...]
    conversations: tuple[Conversation, ...]
    exchanges: tuple[Exchange, ...]
    problems: tuple[str, ...]
    blocked_hosts: tuple[str, ...]


def run_agent(agent: str, home: Path, folder: Path) -> Recording:
    """Run the sessions of an agent in a home of its own; copy its transcripts to a folder."""
    command_name, sessions = AGENTS[agent]
    command = find_command(command_name)
    if command is None:
        raise FileNotFoundError(command_name)
    project = write_project(home / "code" / "almanac")
    folder.mkdir(parents=True)
    script = SceneScript(sessions.scenes(project))
    with running_upstream(script) as upstream:
        settings = sessions.prepare(home, upstream.url)
        client = Client(command, home, project, upstream.url, settings)
        version = client.version()
        try:
            runs = sessions.play(client)
        finally:
            exchanges = tuple(read_exchanges(upstream, script))
            lines = [json.dumps(asdict(exchange)) + "\n" for exchange in exchanges]
            (folder / "upstream.jsonl").write_text("".join(lines))
        problems, blocked_hosts = upstream.problems(), upstream.blocked_hosts()
    conversations = tuple(read_conversations(exchanges, sessions.session_of))
    document = {
        "agent": agent,
        "version": version,
        "conversations": [conversation.as_json() for conversation in conversations],
        "problems": problems,
        "blocked_hosts": blocked_hosts,
    }
    (folder / "recording.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / "runs.json").write_text(json.dumps(runs, indent=1) + "\n")
    copies = []
    for path in sessions.transcripts(home):
        copy = folder / path.relative_to(home)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copies.append(Path(shutil.copy2(path, copy)))
    return Recording(
        agent,
        version,
        folder,
        tuple(copies),
        conversations,
        exchanges,
        tuple(problems),
        tuple(blocked_hosts),
    )


def read_recording(folder: Path) -> Recording:
    """Read what an earlier run recorded in a folder."""
    document = json.loads((folder / "recording.json").read_text())
    lines = (folder / "upstream.jsonl").read_text().splitlines()
    exchanges = [Exchange(**json.loads(line)) for line in lines]
    _, sessions = AGENTS[document["agent"]]
    return Recording(
        agent=document["agent"],
        version=document["version"],
        folder=folder,
        transcripts=tuple(sessions.transcripts(folder)),
        conversations=tuple(map(parse_conversation, document["conversations"])),
        exchanges=tuple(exchanges),
        problems=tuple(document["problems"]),
        blocked_hosts=tuple(document["blocked_hosts"]),
    )


def main(words: list[str]) -> None:
    """Run the named agents, or all, and print a summary."""
    target = Path(words[0])
    for agent in words[1:] or list(AGENTS):
        home = target.with_name(target.name + "-home") / agent
        fresh = target / f"{agent}.new"
        for old in (home, fresh):
            shutil.rmtree(old, ignore_errors=True)
        done = run_agent(agent, home, fresh)
        shutil.rmtree(target / agent, ignore_errors=True)
        fresh.rename(target / agent)
        summary = {
            "agent": agent,
            "version": done.version,
            "exchanges": len(done.exchanges),
            "transcripts": len(done.transcripts),
            "problems": done.problems,
            "blocked_hosts": done.blocked_hosts,
        }
        sys.stdout.write(json.dumps(summary) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
