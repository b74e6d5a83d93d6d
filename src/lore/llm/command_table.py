"""How each agent's command line is asked one question: arguments, environment and output.

Every command runs without tools, hooks, plugins and MCP servers, and stores no session where its
version allows that. Where it does not, the session lies in Lore's own folder, which capture skips.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from lore.llm.chat import ChatRequest, Usage
from lore.llm.structured_output import (
    REFUSED,
    TRUNCATED,
    TokenCount,
    complete_schema,
    parse_partial,
)

_MAX_MESSAGE_CHARS = 200

E = TypeVar("E", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a command: arguments and additional environment variables."""

    arguments: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a command printed: an answer with its usage, or the message of an error."""

    text: str = ""
    usage: Usage = field(default_factory=Usage)
    problem: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A request for a command: the model, and a folder of Lore's own to run and write in."""

    model: str
    folder: Path
    request: ChatRequest

    def write(self, name: str, text: str) -> str:
        """Write a file into the folder and return its path."""
        path = self.folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return str(path)


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """One agent's command as a chat provider.

    `has_schema` says that the command enforces a JSON schema; for others it is in the prompt.
    `reads_mentions` says that it replaces '@path' in a prompt by the content of that file.
    `read` returns None for output that is no answer.
    """

    provider: str
    command: str
    title: str
    model: str
    check: str
    invoke: Callable[[CommandCall], Invocation]
    read: Callable[[bytes, bytes], CommandOutput | None]
    has_schema: bool = False
    reads_mentions: bool = False


class _ClaudeUsage(BaseModel):
    input_tokens: TokenCount = 0
    output_tokens: TokenCount = 0
    cache_read_input_tokens: TokenCount = 0
    cache_creation_input_tokens: TokenCount = 0


class _ClaudeResult(BaseModel):
    """The result document that `claude` prints at its end."""

    type: str
    is_error: bool = False
    result: str = ""
    stop_reason: str | None = None
    usage: _ClaudeUsage = _ClaudeUsage()
    total_cost_usd: float | None = Field(None, ge=0, allow_inf_nan=False)


_CLAUDE_ARGUMENTS = (
    "-p", "--output-format", "json", "--tools", "", "--no-session-persistence", "--safe-mode",
    "--strict-mcp-config", "--disable-slash-commands", "--setting-sources", "",
)  # fmt: skip
_CLAUDE_PROBLEMS = {"max_tokens": TRUNCATED, "refusal": REFUSED}
_CUT_OFF = "output token maximum"
"""How `claude` reports, as an error, that the output limit was reached."""


def _invoke_claude(call: CommandCall) -> Invocation:
    # By default it thinks for up to 32,000 tokens, and asks for a title first.
    variables = {
        "MAX_THINKING_TOKENS": "0",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(call.request.max_tokens),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",
    }
    settings = json.dumps({"env": variables})
    chosen = ("--model", call.model, "--settings", settings)
    return Invocation((*_CLAUDE_ARGUMENTS, *chosen, "--system-prompt", call.request.system))


def _read_claude(printed: bytes, _errors: bytes) -> CommandOutput | None:
    result = parse_partial(printed, _ClaudeResult)
    if result is None:
        return None
    used = result.usage
    read, written = used.cache_read_input_tokens, used.cache_creation_input_tokens
    input_tokens = used.input_tokens + read + written
    usage = Usage(input_tokens, used.output_tokens, read, written, result.total_cost_usd)
    cut_off = _CUT_OFF in result.result[:_MAX_MESSAGE_CHARS]
    if (result.is_error and not cut_off) or result.type != "result":
        return CommandOutput(usage=usage, error=result.result)
    problem = TRUNCATED if cut_off else _CLAUDE_PROBLEMS.get(result.stop_reason or "", "")
    return CommandOutput(result.result, usage, problem)


_CODEX_ARGUMENTS = (
    "exec", "--ephemeral", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check",
    "--sandbox", "read-only", "--json", "--color", "never",
)  # fmt: skip
_CODEX_FEATURES = (
    "apps", "code_mode_host", "goals", "hooks", "image_generation", "memories", "multi_agent",
    "plugins", "shell_tool", "skill_search", "sleep_tool", "tool_suggest", "unified_exec",
)  # fmt: skip
"""What gives Codex tools: without its host, code mode fails closed as well."""

_CODEX_SETTINGS = (
    'web_search="disabled"', "project_doc_max_bytes=0", 'model_reasoning_effort="low"',
    "include_environment_context=false", "include_permissions_instructions=false",
    "include_apps_instructions=false", "include_collaboration_mode_instructions=false",
    "skills.include_instructions=false", "skills.bundled.enabled=false", "analytics.enabled=false",
    "check_for_update_on_startup=false",
)  # fmt: skip


class _CodexUsage(BaseModel):
    input_tokens: TokenCount = 0
    cached_input_tokens: TokenCount = 0
    output_tokens: TokenCount = 0


class _CodexError(BaseModel):
    message: str = ""


class _CodexItem(BaseModel):
    type: str = ""
    text: str = ""


class _CodexEvent(BaseModel):
    """One line of the events that `codex exec --json` prints."""

    type: str
    item: _CodexItem = _CodexItem()
    usage: _CodexUsage = _CodexUsage()
    error: _CodexError = _CodexError()


def _invoke_codex(call: CommandCall) -> Invocation:
    system = call.write("instructions.md", call.request.system)
    options = [f"model_instructions_file={json.dumps(system)}", *_CODEX_SETTINGS]
    words = [word for name in _CODEX_FEATURES for word in ("--disable", name)]
    words += [word for option in options for word in ("-c", option)]
    if call.request.schema is not None:
        form = json.dumps(complete_schema(call.request.schema))
        words += ["--output-schema", call.write("schema.json", form)]
    return Invocation((*_CODEX_ARGUMENTS, "--model", call.model, *words, "-"))


def _read_codex(printed: bytes, _errors: bytes) -> CommandOutput | None:
    text, output = "", None
    for event in _events(printed, _CodexEvent):
        if event.type == "item.completed" and event.item.type == "agent_message":
            text = event.item.text
        elif event.type == "turn.completed":
            used = event.usage
            cached = min(used.cached_input_tokens, used.input_tokens)
            output = CommandOutput(text, Usage(used.input_tokens, used.output_tokens, cached))
        elif event.type == "turn.failed":
            output = CommandOutput(error=event.error.message)
    return output


_GEMINI_SETTINGS = {
    "tools": {"core": ["none"]},
    "mcp": {"allowed": ["none"]},
    "hooksConfig": {"enabled": False},
    "skills": {"enabled": False},
    "experimental": {"enableAgents": False},
    "context": {"includeDirectoryTree": False},
    "general": {"enableAutoUpdate": False, "topicUpdateNarration": False},
    "privacy": {"usageStatisticsEnabled": False},
}
_GEMINI_POLICY = '[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 999\n'
"""Denies every tool, and so takes them out of the request."""

_GEMINI_ARGUMENTS = (
    "--output-format", "json", "--approval-mode", "default", "--extensions", "none",
    "--allowed-mcp-server-names", "none", "--skip-trust",
)  # fmt: skip


class _GeminiTokens(BaseModel):
    prompt: TokenCount = 0
    candidates: TokenCount = 0
    thoughts: TokenCount = 0
    cached: TokenCount = 0


class _GeminiModel(BaseModel):
    tokens: _GeminiTokens = _GeminiTokens()


class _GeminiStats(BaseModel):
    models: dict[str, _GeminiModel] = {}


class _GeminiError(BaseModel):
    message: str = ""


class _GeminiResult(BaseModel):
    """The document that `gemini` prints: an answer to stdout, an error to stderr."""

    session_id: str
    response: str | None = None
    stats: _GeminiStats = _GeminiStats()
    error: _GeminiError | None = None


def _invoke_gemini(call: CommandCall) -> Invocation:
    # The settings of a folder hold only where the folder is trusted.
    call.write(".gemini/settings.json", json.dumps(_GEMINI_SETTINGS))
    policy = call.write("policy.toml", _GEMINI_POLICY)
    system = call.write("instructions.md", call.request.system)
    words = (*_GEMINI_ARGUMENTS, "--policy", policy, "--model", call.model, "--prompt", "")
    return Invocation(words, {"GEMINI_SYSTEM_MD": system, "GEMINI_CLI_TRUST_WORKSPACE": "true"})


def _read_gemini(printed: bytes, errors: bytes) -> CommandOutput | None:
    # Warnings and a stack trace come before the document.
    for stream in (printed, errors):
        start = stream.rfind(b'{\n  "session_id"')
        result = parse_partial(stream[start:], _GeminiResult) if start >= 0 else None
        if result is None:
            continue
        used = [model.tokens for model in result.stats.models.values()]
        usage = Usage(
            sum(one.prompt for one in used),
            sum(one.candidates + one.thoughts for one in used),
            sum(min(one.cached, one.prompt) for one in used),
        )
        if result.error is not None:
            return CommandOutput(usage=usage, error=result.error.message)
        return CommandOutput(result.response or "", usage)
    return None


_OPENCODE_AGENT = "lore-digest"
_OPENCODE_VARIABLES = {
    "OPENCODE_DB": ":memory:",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}
"""Its sessions are in memory only."""


class _OpencodeCache(BaseModel):
    read: TokenCount = 0
    write: TokenCount = 0


class _OpencodeTokens(BaseModel):
    input: TokenCount = 0
    output: TokenCount = 0
    reasoning: TokenCount = 0
    cache: _OpencodeCache = _OpencodeCache()


class _OpencodePart(BaseModel):
    text: str = ""
    reason: str = ""
    tokens: _OpencodeTokens = _OpencodeTokens()
    cost: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class _OpencodeErrorData(BaseModel):
    message: str = ""


class _OpencodeError(BaseModel):
    name: str = ""
    data: _OpencodeErrorData = _OpencodeErrorData()


class _OpencodeEvent(BaseModel):
    """One line of the events that `opencode run --format json` prints."""

    type: str
    part: _OpencodePart = _OpencodePart()
    error: _OpencodeError = _OpencodeError()


def _invoke_opencode(call: CommandCall) -> Invocation:
    agent = {
        "description": "Answers without tools.",
        "mode": "primary",
        "prompt": call.request.system,
        "tools": {"*": False},
        "permission": {"*": "deny"},
    }
    config = {
        "agent": {_OPENCODE_AGENT: agent},
        "share": "disabled",
        "autoupdate": False,
        "snapshot": False,
    }
    words = ("run", "--format", "json", "--pure", "--agent", _OPENCODE_AGENT, "--title", "Lore")
    variables = {**_OPENCODE_VARIABLES, "OPENCODE_CONFIG_CONTENT": json.dumps(config)}
    return Invocation((*words, "--model", call.model), variables)


def _read_opencode(printed: bytes, _errors: bytes) -> CommandOutput | None:
    texts: list[str] = []
    output = None
    for event in _events(printed, _OpencodeEvent):
        if event.type == "text":
            texts.append(event.part.text)
        elif event.type == "step_finish":
            used = event.part.tokens
            read, written = used.cache.read, used.cache.write
            usage = Usage(
                used.input + read + written, used.output + used.reasoning, read, written,
                event.part.cost or None,
            )  # fmt: skip
            problem = TRUNCATED if event.part.reason == "length" else ""
            output = CommandOutput("".join(texts), usage, problem)
        elif event.type == "error":
            return CommandOutput(error=event.error.data.message or event.error.name)
    return output


def _events(printed: bytes, kind: type[E]) -> Iterator[E]:
    """Yield the events of a stream of JSON lines; skip other lines."""
    for line in printed.splitlines():
        if line.startswith(b"{"):
            try:
                yield kind.model_validate_json(line)
            except ValidationError:
                continue


AGENT_COMMANDS: Mapping[str, AgentCommand] = {
    one.provider: one
    for one in (
        AgentCommand(
            "claude-cli", "claude", "Claude Code", "haiku", "claude -p hello",
            _invoke_claude, _read_claude, reads_mentions=True,
        ),
        AgentCommand(
            "codex-cli", "codex", "Codex", "gpt-6-luna", "codex exec hello",
            _invoke_codex, _read_codex, has_schema=True,
        ),
        AgentCommand(
            "gemini-cli", "gemini", "Gemini CLI", "flash", "gemini -p hello",
            _invoke_gemini, _read_gemini, reads_mentions=True,
        ),
        AgentCommand(
            "opencode-cli", "opencode", "opencode", "", "opencode run hello",
            _invoke_opencode, _read_opencode,
        ),
    )
}  # fmt: skip
"""The small model of each.

opencode has none: its own default can be a free model of a third party that learns from its input.
"""
