"""Speakers: whose request it is, and whether it is a turn of a conversation at all.

Agents name their sessions in headers, each in its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import orjson

from lore.records import Entry, Speaker, Voice

PROJECT = "x-lore-project"
"""The header that tells the folder an agent works in; `lore run` sets it, as in an address."""

_FOLDER = re.compile(
    r"(?:[Ww]orking directory: |<cwd>|Workspace Directories:\*\*\n +- )(/[^\n<]{1,1000})"
)
"""How Claude Code, opencode, Codex and Gemini CLI tell their folder in a prompt."""

UNNAMED = "gateway"
"""The agent of a session whose client does not say who it is."""

_GEMINI = "GeminiCLI"
"""How Gemini CLI begins to tell who it is; it does not name its sessions."""

_COMPACTIONS = (
    "CRITICAL: Respond with TEXT ONLY",
    "Your task is to create a detailed summary of the conversation",
)
"""How the prompts begin by which Claude Code has a conversation summarised."""

_ASIDES = ("[SUGGESTION MODE:", "The user stepped away and is coming back.")
"""How the prompts begin by which Claude Code asks on the side, behind all of a conversation."""

_PAGES = ("Web page content:\n---",)
"""How Claude Code has a page read that it fetched."""

_ERRANDS = (
    "You are a title generator",
    "You are a context summarization agent",
    "Generate a concise, sentence-case title",
    "Generate a short kebab-case name",
    "You are selecting memories that will be useful to Claude Code",
)
"""How the system prompts of opencode and of Claude Code begin that are no part of the
conversation."""

_AGENT: tuple[Voice, ...] = ("system",)
_FIRST: tuple[Voice, ...] = ("system", "user")
"""Whose words an agent tells a model something in: its own, and those in a person's place."""

_HEADS = ("system", "developer")
"""Roles of the first messages in OpenAI's formats, which are the agent's prompt."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a request says of itself: its headers in lower case, its document, its entries."""

    headers: Mapping[str, str]
    document: Mapping[str, Any]
    entries: Sequence[Entry]


def find_speaker(said: Said) -> Speaker | None:
    """Return whose request it is, if the client tells."""
    for find in (_claude_code, _codex, _opencode):
        found = find(said.headers, said.document)
        if found is not None:
            session, agent, parent = found
            return Speaker(session, agent, folder_of(said), parent)
    return None


def agent_of(said: Said) -> str:
    """Return which agent asks that does not tell its session."""
    return "gemini" if _is_gemini(said) else UNNAMED


def _is_gemini(said: Said) -> bool:
    return said.headers.get("user-agent", "").startswith(_GEMINI)


def is_errand(said: Said) -> bool:
    """Tell whether a request is no turn of a conversation: a title, a summary, a probe."""
    if _kind_of(said) != "turn" or said.document.get("max_tokens") == 1:
        return True
    if _is_gemini(said) and not _declares_functions(said.document.get("tools")):
        # which model is to answer, whether it is done, what a page says
        return True
    if any(text.lstrip().startswith(_ERRANDS) for text in _first_texts(said, _AGENT)):
        return True
    return _asks(said, (*_COMPACTIONS, *_ASIDES, *_PAGES))


def _declares_functions(tools: Any) -> bool:
    declared = tools if isinstance(tools, list) else ()
    return any(isinstance(one, dict) and one.get("functionDeclarations") for one in declared)


def is_compaction(said: Said) -> bool:
    """Tell whether an agent has its conversation summarised, and sends all of it for that."""
    return _kind_of(said) == "compaction" or _asks(said, _COMPACTIONS)


def is_aside(said: Said) -> bool:
    """Tell whether an agent asks on the side, behind all of its conversation."""
    return _asks(said, _ASIDES)


def _kind_of(said: Said) -> str:
    """Return what Codex says that a request is; those of others are turns as far as that goes."""
    kind = _json(said.headers.get("x-codex-turn-metadata", "")).get("request_kind", "turn")
    return kind if isinstance(kind, str) else ""


def _asks(said: Said, beginnings: tuple[str, ...]) -> bool:
    """Tell whether one of the last texts in a person's place begins so."""
    asked = [entry for entry in said.entries if entry.voice == "user"][-1:]
    texts = (block.text for entry in asked for block in entry.blocks if block.kind == "text")
    return any(text.lstrip().startswith(beginnings) for text in texts)


def folder_of(said: Said) -> str:
    """Return the folder that an agent works in, by its header or by its own first words."""
    named = unquote(said.headers.get(PROJECT, "").strip())
    if named:
        return named
    for text in _first_texts(said, _FIRST):
        found = _FOLDER.search(text)
        if found:
            return found[1].strip()
    return ""


def _first_texts(said: Said, voices: Collection[Voice]) -> Iterator[str]:
    """Yield what an agent tells a model before anybody has spoken; results are never in it."""
    for name in ("system", "instructions", "systemInstruction", "system_instruction"):
        yield from _texts(said.document.get(name))
    for name in ("messages", "input"):
        told = said.document.get(name)
        for message in told if isinstance(told, list) else ():
            if not isinstance(message, dict) or message.get("role") not in _HEADS:
                break
            yield from _texts(message.get("content"))
    for entry in said.entries:
        if entry.voice == "assistant":
            return
        if entry.voice in voices:
            yield from (block.text for block in entry.blocks if block.kind == "text")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(value.get("text"))
        yield from _texts(value.get("parts"))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


Found = tuple[str, str, str] | None


def _claude_code(headers: Mapping[str, str], document: Mapping[str, Any]) -> Found:
    """Return the session of Claude Code; subagents share it, and have an id of their own."""
    session = headers.get("x-claude-code-session-id", "")
    if not session:
        metadata = document.get("metadata")
        user = metadata.get("user_id") if isinstance(metadata, dict) else None
        told = _json(user if isinstance(user, str) else "").get("session_id")
        session = told if isinstance(told, str) else ""
    if not session:
        return None
    helper = headers.get("x-claude-code-agent-id", "")
    return (f"{session}/agent-{helper}", "claude-code", session) if helper else (
        session, "claude-code", "",
    )  # fmt: skip


def _codex(headers: Mapping[str, str], _document: Mapping[str, Any]) -> Found:
    if not headers.get("originator", "").startswith("codex"):
        return None
    root = headers.get("session-id") or headers.get("session_id", "")
    thread = headers.get("thread-id") or headers.get("thread_id") or root
    return (thread, "codex", root if root != thread else "") if thread else None


def _opencode(headers: Mapping[str, str], _document: Mapping[str, Any]) -> Found:
    session = headers.get("x-session-id", "")
    if not session or not headers.get("user-agent", "").startswith("opencode"):
        return None
    return session, "opencode", headers.get("x-parent-session-id", "")


def _json(text: str) -> dict[str, Any]:
    try:
        parsed = orjson.loads(text) if text.startswith("{") else {}
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
