"""Ledgers: one checkpoint per agent and project, from its working state and the git state."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from lore.records.task_records import AgentLedger
from lore.tasks.git_state import GitState
from lore.tasks.working_state import TrackedState

MOST_FILES, MOST_PATTERNS = 30, 20
"""What a ledger keeps; the repository and the memory have the rest."""

_MARKERS = {
    "pyproject.toml": "python", "setup.py": "python", "requirements.txt": "python",
    "package.json": "node", "tsconfig.json": "typescript", "bun.lockb": "bun", "bun.lock": "bun",
    "deno.json": "deno", "go.mod": "go", "Cargo.toml": "rust", "Gemfile": "ruby", "pom.xml": "java",
    "build.gradle": "java", "build.gradle.kts": "kotlin", "composer.json": "php",
    "mix.exs": "elixir",
    "Package.swift": "swift", "CMakeLists.txt": "cmake", "Dockerfile": "docker",
    "docker-compose.yml": "docker", "next.config.js": "next.js", "vite.config.ts": "vite",
}  # fmt: skip
"""Files in a project's folder, and the technology that each stands for."""

_SUFFIXES = {
    ".py": "python", ".ts": "typescript", ".tsx": "typescript", ".js": "javascript", ".go": "go",
    ".rs": "rust", ".rb": "ruby", ".java": "java", ".kt": "kotlin", ".swift": "swift",
    ".c": "c", ".cpp": "c++", ".cs": "c#", ".php": "php", ".sql": "sql", ".vue": "vue",
    ".svelte": "svelte",
}  # fmt: skip


def is_code(file: str) -> bool:
    """Return whether a file is code, by its name."""
    return Path(file).suffix in _SUFFIXES


def detect_tech_stack(folder: str, files: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the technologies of a project, by files in its folder and by changed files."""
    place = Path(folder) if folder.startswith("/") else None
    marked = [name for file, name in _MARKERS.items() if place and (place / file).is_file()]
    used = [_SUFFIXES[suffix] for file in files if (suffix := Path(file).suffix) in _SUFFIXES]
    return tuple(dict.fromkeys((*marked, *used)))


def make_checkpoint(
    agent: str,
    state: TrackedState,
    git: GitState,
    *,
    at: datetime,
    folder: str = "",
    patterns: Iterable[str] = (),
) -> AgentLedger:
    """Return the ledger of an agent at a moment."""
    files = state.context.files
    is_known = bool(files or state.context.commits)
    return AgentLedger(
        agent_id=agent,
        last_checkpoint=at,
        files_modified=files[:MOST_FILES],
        uncommitted_changes=bool(state.context.uncommitted) if is_known else None,
        last_git_commit=git.commit,
        tech_stack=detect_tech_stack(folder, files),
        patterns_learned=tuple(dict.fromkeys(patterns))[-MOST_PATTERNS:],
        current_goal=state.task.text,
    )
