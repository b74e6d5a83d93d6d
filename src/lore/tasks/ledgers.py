"""Ledgers: one checkpoint per agent and project, from its working state and the git state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from lore import local_files
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


_LIBRARIES = {
    "express": "express", "fastify": "fastify", "@nestjs/core": "nestjs", "react": "react",
    "next": "next.js", "vue": "vue", "svelte": "svelte", "@angular/core": "angular",
    "typescript": "typescript", "vite": "vite", "electron": "electron", "prisma": "prisma",
    "sqlite3": "sqlite", "better-sqlite3": "sqlite", "rusqlite": "sqlite", "apsw": "sqlite",
    "aiosqlite": "sqlite", "pg": "postgres", "psycopg": "postgres", "psycopg2": "postgres",
    "asyncpg": "postgres", "mysql2": "mysql", "redis": "redis", "ioredis": "redis",
    "mongoose": "mongodb", "mongodb": "mongodb", "pymongo": "mongodb", "django": "django",
    "flask": "flask", "fastapi": "fastapi", "starlette": "starlette", "sqlalchemy": "sqlalchemy",
    "numpy": "numpy", "torch": "pytorch", "rails": "rails", "tokio": "tokio", "axum": "axum",
}  # fmt: skip
"""Names of packages, and the technology of each. No other text of a manifest is repeated."""

_MANIFESTS = ("package.json", "pyproject.toml", "requirements.txt", "Cargo.toml", "Gemfile")
_DEPENDENCY = re.compile(
    r"""^\s*(?:gem\s+)?["']?([@\w][\w@./-]{0,60}?)["']?\s*(?:[:=<>~!,\[;]|$)"""
)
_MOST_MANIFEST_BYTES = 100_000


def is_code(file: str) -> bool:
    """Return whether a file is code, by its name."""
    return Path(file).suffix in _SUFFIXES


def detect_tech_stack(folder: str, files: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the technologies of a project, by files in its folder and by changed files."""
    is_local = folder.startswith("/") and not local_files.are_withheld()
    place = Path(folder) if is_local else None
    marked = [name for file, name in _MARKERS.items() if place and (place / file).is_file()]
    used = [_SUFFIXES[suffix] for file in files if (suffix := Path(file).suffix) in _SUFFIXES]
    required = _read_libraries(place) if place else ()
    return tuple(dict.fromkeys((*marked, *required, *used)))


def _read_libraries(folder: Path) -> Iterator[str]:
    """Yield the known libraries that the manifests of a folder require, a line each."""
    for name in _MANIFESTS:
        if not (folder / name).is_file():
            continue
        try:
            with (folder / name).open("rb") as file:
                text = file.read(_MOST_MANIFEST_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        for line in text.splitlines():
            match = _DEPENDENCY.match(line)
            if match and match[1].lower() in _LIBRARIES:
                yield _LIBRARIES[match[1].lower()]


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
