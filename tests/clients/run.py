"""Run the real clients against the scripted upstream and collect what they wrote.

python -m tests.clients.run FOLDER [AGENT …]
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.clients import claude_code, codex, opencode
from tests.clients.client import Client, find_command
from tests.clients.project import write_project
from tests.clients.said import Talk, read_talk, talks
from tests.clients.upstream import Exchange, Upstream, running_upstream

AGENTS: dict[str, tuple[str, ModuleType]] = {
    "claude-code": ("claude", claude_code),
    "codex": ("codex", codex),
    "opencode": ("opencode", opencode),
}
"""The command of each agent, and the module with its sessions."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What one agent left: transcripts below a folder, and what was really said."""

    agent: str
    version: str
    folder: Path
    transcripts: tuple[Path, ...]
    talks: tuple[Talk, ...]
    exchanges: tuple[Exchange, ...]
    problems: tuple[str, ...]
    strays: tuple[str, ...]


def run_agent(agent: str, home: Path, folder: Path) -> Collected:
    """Play the sessions of an agent in a home of its own; copy what it wrote to a folder."""
    command_name, sessions = AGENTS[agent]
    command = find_command(command_name)
    if command is None:
        raise FileNotFoundError(command_name)
    project = write_project(home / "code" / "almanac")
    folder.mkdir(parents=True)
    with running_upstream(sessions.scenes(project), folder / "upstream.jsonl") as upstream:
        settings = sessions.prepare(home, upstream.url)
        client = Client(command, home, project, upstream.url, settings)
        version = client.version()
        runs = sessions.play(client)
        exchanges = tuple(upstream.exchanges)
        problems, strays = tuple(upstream.problems()), tuple(upstream.strays())
    said = tuple(talks(exchanges, sessions.session_of))
    document = {"agent": agent, "version": version, "talks": [talk.as_json() for talk in said]}
    (folder / "said.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / "runs.json").write_text(json.dumps(runs, indent=1) + "\n")
    copies = []
    for path in sessions.transcripts(home):
        copy = folder / path.relative_to(home)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copies.append(Path(shutil.copy2(path, copy)))
    return Collected(agent, version, folder, tuple(copies), said, exchanges, problems, strays)


def read_collected(folder: Path) -> Collected:
    """Read what an earlier run collected in a folder."""
    document = json.loads((folder / "said.json").read_text())
    lines = (folder / "upstream.jsonl").read_text().splitlines()
    exchanges = [Exchange(**json.loads(line)) for line in lines]
    upstream = Upstream("", (), exchanges=sorted(exchanges, key=lambda one: one.number))
    _, sessions = AGENTS[document["agent"]]
    return Collected(
        agent=document["agent"],
        version=document["version"],
        folder=folder,
        transcripts=tuple(sessions.transcripts(folder)),
        talks=tuple(map(read_talk, document["talks"])),
        exchanges=tuple(upstream.exchanges),
        problems=tuple(upstream.problems()),
        strays=tuple(upstream.strays()),
    )


def main(words: list[str]) -> None:
    """Run the named agents, or all, and tell what came of it."""
    target = Path(words[0])
    for agent in words[1:] or list(AGENTS):
        home = target.with_name(target.name + "-home") / agent
        fresh = target / f"{agent}.new"
        for old in (home, fresh):
            shutil.rmtree(old, ignore_errors=True)
        done = run_agent(agent, home, fresh)
        shutil.rmtree(target / agent, ignore_errors=True)
        fresh.rename(target / agent)
        told = {
            "agent": agent,
            "version": done.version,
            "exchanges": len(done.exchanges),
            "transcripts": len(done.transcripts),
            "problems": done.problems,
            "strays": done.strays,
        }
        sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
