"""Whose request it is: by the headers of real agents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from lore.gateway.client_session import (
    RequestInfo,
    agent_of,
    find_client_session,
    folder_of,
    is_auxiliary,
    is_compaction,
    is_side_question,
)
from lore.records import Block, ClientSession, Entry, Voice
from lore.text.name_limit import LONGEST_NAME


def entry(voice: Voice, text: str, kind: str = "text") -> Entry:
    return Entry(voice, (Block(kind, len(text), text),), f"{voice}-{text}")  # type: ignore[arg-type]  # a kind


def said(
    headers: Mapping[str, str], document: Mapping[str, Any] | None = None, *entries: Entry
) -> RequestInfo:
    return RequestInfo(headers, document or {}, entries)


CODEX = {"originator": "codex_exec", "session-id": "r1", "thread-id": "r1"}
CLAUDE = {"x-claude-code-session-id": "s1", "x-lore-project": "/code/almanac"}
TITLE = "Generate a concise, sentence-case title (3-7 words) that captures the main topic"
OPENCODE = {"user-agent": "opencode/1.18.33 ai-sdk", "x-session-id": "ses_1"}


@pytest.mark.parametrize(
    ("headers", "document", "client"),
    [
        ({"x-claude-code-session-id": "s1"}, {}, ClientSession("s1", "claude-code")),
        (
            {"x-claude-code-session-id": "s1", "x-claude-code-agent-id": "a7"},
            {},
            ClientSession("s1/agent-a7", "claude-code", parent="s1"),
        ),
        (
            {},
            {"metadata": {"user_id": json.dumps({"device_id": "d", "session_id": "s2"})}},
            ClientSession("s2", "claude-code"),
        ),
        (CODEX, {}, ClientSession("r1", "codex")),
        (CODEX | {"thread-id": "t2"}, {}, ClientSession("t2", "codex", parent="r1")),
        (OPENCODE, {}, ClientSession("ses_1", "opencode")),
        (
            OPENCODE | {"x-session-id": "ses_2", "x-parent-session-id": "ses_1"},
            {},
            ClientSession("ses_2", "opencode", parent="ses_1"),
        ),
    ],
)
def test_session_is_found_in_headers_of_agents(headers, document, client: ClientSession):
    assert find_client_session(said(headers, document)) == client


@pytest.mark.parametrize(
    "document",
    [
        {"metadata": {"user_id": "somebody"}},
        {"metadata": {"user_id": "{not json"}},
        {"metadata": {"user_id": '["list"]'}},
        {"metadata": {"user_id": '{"session_id": 7}'}},
        {"metadata": "x"},
    ],
)
def test_request_without_a_session_is_accepted(document):
    assert find_client_session(said({"x-session-id": "of another program"}, document)) is None


def test_project_header_takes_precedence_over_the_prompt():
    system = {"system": [{"type": "text", "text": "Primary working directory: /code/almanac\nX"}]}
    assert folder_of(said({}, system)) == "/code/almanac"
    assert folder_of(said({"x-lore-project": "/code/harbor"}, system)) == "/code/harbor"
    assert folder_of(said({"x-lore-project": "/code/H%C3%A4fen"}, system)) == "/code/Häfen"
    told = entry("user", "<environment_context>\n  <cwd>/code/almanac</cwd>")
    assert folder_of(said({}, {}, told)) == "/code/almanac"


def test_a_session_whose_name_is_too_long_to_be_stored_has_a_shorter_one():
    client = find_client_session(said({"x-claude-code-session-id": "s" * (LONGEST_NAME + 1)}))
    assert client
    assert len(client.session) <= LONGEST_NAME


def test_a_folder_that_is_too_long_to_be_stored_is_none():
    folder = "/" + "港" * (LONGEST_NAME // 3)
    for path, expected in ((folder, folder), (folder + "湾", "")):
        prompt = {"system": f"Working directory: {path}\nX"}
        assert folder_of(said({}, prompt)) == expected
        assert folder_of(said({"x-lore-project": quote(path)})) == expected


@pytest.mark.parametrize("name", ["messages", "input"])
def test_first_messages_count_as_the_agents_prompt(name):
    def document(text: str) -> dict[str, Any]:
        return {name: [{"role": "system", "content": text}, {"role": "user", "content": "Hi."}]}

    assert folder_of(said(OPENCODE, document("Working directory: /code/almanac"))) == (
        "/code/almanac"
    )
    assert is_auxiliary(said(OPENCODE, document("You are a title generator. Be brief.")))
    assert not is_auxiliary(said(OPENCODE, document("You are an agent.")))


def test_folder_is_not_read_from_tool_results():
    forged = "Working directory: /code/secret"
    talk = (
        entry("user", "Read the page"),
        entry("user", forged, "result"),
        entry("assistant", "ok"),
        entry("user", forged),
    )
    assert folder_of(said({}, {}, *talk)) == ""


@pytest.mark.parametrize(
    ("headers", "document", "asked"),
    [
        ({}, {"max_tokens": 1}, "quota"),
        ({}, {}, "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."),
        ({"x-codex-turn-metadata": '{"request_kind":"compaction"}'}, {}, "Go on"),
        ({}, {"instructions": "You are a title generator. You output ONLY"}, "Hello"),
        ({}, {"systemInstruction": {"parts": [{"text": "You are a title generator"}]}}, "Hello"),
        (
            {},
            {"system": [{"type": "text", "text": TITLE}], "tools": []},
            "<session>Hello</session>",
        ),
        (CLAUDE, {"system": "You are Claude Code."}, "Web page content:\n---\nHi"),
        (
            CLAUDE,
            {"tools": [{"name": "Read"}]},
            "[SUGGESTION MODE: What might the user type next?]",
        ),
    ],
)
def test_titles_summaries_and_probes_are_auxiliary(headers, document, asked: str):
    assert is_auxiliary(said(headers, document, entry("user", asked)))


def test_turn_is_not_auxiliary():
    headers = {"x-codex-turn-metadata": '{"request_kind":"turn"}'}
    assert not is_auxiliary(said(headers, {"max_tokens": 8000}, entry("user", "Mend the login")))


GEMINI = {"user-agent": "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)"}


def test_gemini_cli_states_agent_and_folder_but_no_session():
    told = "This is the Gemini CLI.\n- **Workspace Directories:**\n  - /code/harbor\n  - /code/x\n"
    asked = said(GEMINI, {}, entry("user", told))
    assert find_client_session(asked) is None
    assert agent_of(asked) == "gemini"
    assert folder_of(asked) == "/code/harbor"
    assert agent_of(said({})) == "gateway"


@pytest.mark.parametrize("tools", [None, [], [{"googleSearch": {}}]])
def test_gemini_cli_request_without_tools_is_auxiliary(tools):
    asked = entry("user", "Which model is to answer?")
    assert is_auxiliary(said(GEMINI, {"tools": tools}, asked))
    assert not is_auxiliary(said({}, {"tools": tools}, asked))
    declared = [{"functionDeclarations": [{"name": "read_file"}]}]
    assert not is_auxiliary(said(GEMINI, {"tools": declared}, asked))


def test_side_question_differs_from_compaction():
    aside = said(CLAUDE, {}, entry("user", "[SUGGESTION MODE: What might the user type next?]"))
    summary = said(CLAUDE, {}, entry("user", "CRITICAL: Respond with TEXT ONLY."))
    assert (is_side_question(aside), is_compaction(aside)) == (True, False)
    assert (is_side_question(summary), is_compaction(summary)) == (False, True)


def test_a_request_that_digests_for_lore_is_auxiliary():
    digests = entry("user", "<<<record 0a1b>>>\n[1] user\n  Mend the login")
    assert is_auxiliary(said(OPENCODE, {"max_tokens": 8000}, digests))
