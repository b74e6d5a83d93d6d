"""Parses requests, identifies their client sessions, and separates turns from auxiliary requests.

Agents name their sessions in headers. Conversations of programs that do not are identified by a
hash of the project, the first request and its response, which is the same in every process. Until
it is answered, a request shares its id with all that begin with the same words in the same project.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from lore.gateway.apis import ADAPTERS, markers, parse_cache
from lore.gateway.apis.adapter import ApiAdapter, Request, Tool
from lore.gateway.cache_invalidation import BoundedCache
from lore.gateway.commands import RECALL
from lore.gateway.plugin_protocol import ClientRequest
from lore.gateway.session.private_mode import find_private_entries
from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from lore.records import ClientSession, Entry, Voice
from lore.text import memory_tags
from lore.text.name_limit import is_short, shorten_name

PROJECT_HEADER = "x-lore-project"
"""Header with the working directory of an agent, URL-encoded; `lore run` sets it."""

_FOLDER = re.compile(
    r"(?:[Ww]orking directory: |<cwd>|Workspace Directories:\*\*\n +- )(/[^\n<]{1,1000})"
)
"""How Claude Code, opencode, Codex and Gemini CLI state their working directory in a prompt."""

UNKNOWN_AGENT = "gateway"
"""Agent name of a client that does not identify itself."""

_GEMINI_USER_AGENT = "GeminiCLI"
"""Start of Gemini CLI's user agent; it does not name its sessions."""

_COMPACTION_PROMPTS = (
    "CRITICAL: Respond with TEXT ONLY",
    "Your task is to create a detailed summary of the conversation",
)
"""Starts of the prompts by which Claude Code has a conversation summarized."""

_SIDE_QUESTIONS = ("[SUGGESTION MODE:", "The user stepped away and is coming back.")
"""Starts of the prompts by which Claude Code asks a side question after a conversation."""

_PAGE_PROMPTS = ("Web page content:\n---",)
"""Start of the prompt by which Claude Code has a fetched page read."""

_AUXILIARY_PROMPTS = (
    "You are a title generator",
    "You are a context summarization agent",
    "Generate a concise, sentence-case title",
    "Generate a short kebab-case name",
    "You are selecting memories that will be useful to Claude Code",
)
"""Starts of system prompts of opencode and Claude Code that belong to no conversation."""

_AGENT_VOICES: tuple[Voice, ...] = ("system",)
_OPENING_VOICES: tuple[Voice, ...] = ("system", "user")
"""Voices in which an agent instructs a model."""

_PROMPT_ROLES = ("system", "developer")
"""Roles of the agent's prompt in OpenAI's formats."""


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """What identifies a request: headers with lower-case names, document and entries."""

    headers: Mapping[str, str]
    document: Mapping[str, Any]
    entries: Sequence[Entry]


def find_client_session(info: RequestInfo) -> ClientSession | None:
    """Return the session of a request, if the client names it."""
    for find in (_claude_code, _codex, _opencode):
        name = find(info.headers, info.document)
        if name is not None:
            session, agent, parent = name
            folder = folder_of(info)
            return ClientSession(shorten_name(session), agent, folder, shorten_name(parent))
    return None


def agent_of(info: RequestInfo) -> str:
    """Return the agent of a request that does not name its session."""
    return "gemini" if _is_gemini(info) else UNKNOWN_AGENT


def _is_gemini(info: RequestInfo) -> bool:
    return info.headers.get("user-agent", "").startswith(_GEMINI_USER_AGENT)


def is_auxiliary(info: RequestInfo) -> bool:
    """Return whether a request is auxiliary, not a turn: a title, a summary, a probe."""
    if _kind_of(info) != "turn" or info.document.get("max_tokens") == 1:
        return True
    if _is_gemini(info) and not _declares_functions(info.document.get("tools")):
        # Routing, completion checks and page summaries declare no functions.
        return True
    if any(
        text.lstrip().startswith(_AUXILIARY_PROMPTS) for text in _opening_texts(info, _AGENT_VOICES)
    ):
        return True
    own = (memory_tags.RECORD_FENCE,)  # an agent's command that digests for Lore
    return _last_prompt_starts_with(
        info, (*_COMPACTION_PROMPTS, *_SIDE_QUESTIONS, *_PAGE_PROMPTS, *own)
    )


def _declares_functions(tools: Any) -> bool:
    declared = tools if isinstance(tools, list) else ()
    return any(isinstance(one, dict) and one.get("functionDeclarations") for one in declared)


def is_compaction(info: RequestInfo) -> bool:
    """Return whether an agent has its whole conversation summarized."""
    return _kind_of(info) == "compaction" or _last_prompt_starts_with(info, _COMPACTION_PROMPTS)


def is_side_question(info: RequestInfo) -> bool:
    """Return whether an agent asks a side question after its whole conversation."""
    return _last_prompt_starts_with(info, _SIDE_QUESTIONS)


def _kind_of(info: RequestInfo) -> str:
    """Return the request kind that Codex states; requests of other agents are turns."""
    kind = _json(info.headers.get("x-codex-turn-metadata", "")).get("request_kind", "turn")
    return kind if isinstance(kind, str) else ""


def _last_prompt_starts_with(info: RequestInfo, beginnings: tuple[str, ...]) -> bool:
    last_entries = [entry for entry in info.entries if entry.voice == "user"][-1:]
    texts = (block.text for entry in last_entries for block in entry.blocks if block.kind == "text")
    return any(text.lstrip().startswith(beginnings) for text in texts)


def folder_of(info: RequestInfo) -> str:
    """Return the working directory of an agent, from its header or its first texts.

    One that is too long to be stored is none: the request itself must not fail.
    """
    folder = unquote(info.headers.get(PROJECT_HEADER, "").strip()) or _folder_in_prompt(info)
    return folder if is_short(folder) else ""


def _folder_in_prompt(info: RequestInfo) -> str:
    for text in _opening_texts(info, _OPENING_VOICES):
        match = _FOLDER.search(text)
        if match:
            return match[1].strip()
    return ""


def _opening_texts(info: RequestInfo, voices: Collection[Voice]) -> Iterator[str]:
    """Yield the texts before the first response of the assistant, without tool results."""
    for name in ("system", "instructions", "systemInstruction", "system_instruction"):
        yield from _texts(info.document.get(name))
    for name in ("messages", "input"):
        messages = info.document.get(name)
        for message in messages if isinstance(messages, list) else ():
            if not isinstance(message, dict) or message.get("role") not in _PROMPT_ROLES:
                break
            yield from _texts(message.get("content"))
    for entry in info.entries:
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


_SessionName = tuple[str, str, str] | None


def _claude_code(headers: Mapping[str, str], document: Mapping[str, Any]) -> _SessionName:
    """Return the session of Claude Code; subagents share it, and have an id of their own."""
    session = headers.get("x-claude-code-session-id", "")
    if not session:
        metadata = document.get("metadata")
        user = metadata.get("user_id") if isinstance(metadata, dict) else None
        session_id = _json(user if isinstance(user, str) else "").get("session_id")
        session = session_id if isinstance(session_id, str) else ""
    if not session:
        return None
    helper = headers.get("x-claude-code-agent-id", "")
    return (f"{session}/agent-{helper}", "claude-code", session) if helper else (
        session, "claude-code", "",
    )  # fmt: skip


def _codex(headers: Mapping[str, str], _document: Mapping[str, Any]) -> _SessionName:
    if not headers.get("originator", "").startswith("codex"):
        return None
    root = headers.get("session-id") or headers.get("session_id", "")
    thread = headers.get("thread-id") or headers.get("thread_id") or root
    return (thread, "codex", root if root != thread else "") if thread else None


def _opencode(headers: Mapping[str, str], _document: Mapping[str, Any]) -> _SessionName:
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


FindStored = Callable[[Sequence[str], str], str]
"""Returns the first of some ids that a stored session of an agent has, or ''."""

_MAX_CONVERSATIONS = 1_000
"""Conversations known without asking the store, some 100 bytes each."""

_BYTES = 8
"""Digest size of an id, which must be unique among all conversations of a home."""


class ConversationIds:
    """Finds the conversation that a request of an unnamed session belongs to."""

    def __init__(self, find_stored: FindStored, max_size: int = _MAX_CONVERSATIONS) -> None:
        self._find_stored = find_stored
        self._known = BoundedCache[str, str](max_size)

    def find_client_session(
        self, entries: Sequence[Entry], agent: str, project: str, *, from_cache: bool = False
    ) -> ClientSession:
        """Return the session with the longest known opening, else a new one.

        With `from_cache` the store is not asked, and no conversation is added.
        """
        spoken = [entry for entry in entries if entry.voice != "system"]
        opening_id = _opening_id(_seed(agent, project), spoken)
        known = None
        if not self._known.get(opening_id):
            known = self._find_longest(spoken, agent, project, from_cache=from_cache)
        if known is not None:
            self._known.put(known.began, known.began)
            return ClientSession(known.name, agent, project, began=known.began, unnamed=True)
        if not from_cache:
            self._known.put(opening_id, opening_id)
        return ClientSession(opening_id, agent, project, unnamed=True)

    def _find_longest(
        self, spoken: Sequence[Entry], agent: str, project: str, *, from_cache: bool
    ) -> _Opening | None:
        with_conversation_id = [*_openings(spoken, _seed(agent, project))][::-1]
        known = next((one for one in with_conversation_id if self._known.get(one.began)), None)
        if known is None and with_conversation_id and not from_cache:
            stored = self._find_stored([one.name for one in with_conversation_id], agent)
            known = next((one for one in with_conversation_id if one.name == stored), None)
        return known


def with_conversation_id(client: ClientSession, answer: Sequence[Entry]) -> ClientSession | None:
    """Return the session once its first request is answered, None before that."""
    if not client.unnamed or client.began:
        return client
    fingerprint = _fingerprint(answer)
    if not fingerprint:
        return None
    return replace(
        client, session=_conversation_id(client.session, fingerprint), began=client.session
    )


class _Opening(NamedTuple):
    """The start of a conversation up to a response: its id, and the id of what was answered."""

    name: str
    began: str


def _openings(spoken: Sequence[Entry], hashed: hashlib.blake2b) -> Iterator[_Opening]:
    """Yield the openings of a conversation, each ending with a response."""
    answer: list[Entry] = []
    before = hashed.copy()
    for entry in spoken:
        if entry.voice == "assistant":
            answer.append(entry)
        elif answer:
            began = _opening_id(before, ())
            yield _Opening(_conversation_id(began, _fingerprint(answer)), began)
            answer = []
        hashed.update(entry.key.encode())
        if not answer:
            before = hashed.copy()


def _seed(agent: str, project: str) -> hashlib.blake2b:
    seed = f"{agent}\0{project}\0".encode(errors="surrogatepass")
    return hashlib.blake2b(seed, digest_size=_BYTES)


def _opening_id(hashed: hashlib.blake2b, entries: Sequence[Entry]) -> str:
    for entry in entries:
        hashed.update(entry.key.encode())
    return f"talk-{hashed.hexdigest()}"


def _conversation_id(began: str, fingerprint: str) -> str:
    seed = f"{began}\0{fingerprint}".encode(errors="surrogatepass")
    return f"talk-{hashlib.blake2b(seed, digest_size=_BYTES).hexdigest()}"


def _fingerprint(answer: Sequence[Entry]) -> str:
    """Return what identifies a response, for us and for a client that has markers in it."""
    parts: list[str] = []
    spoken = [entry for entry in answer if entry.voice == "assistant"]
    for block in (block for entry in spoken for block in entry.blocks):
        if block.kind == "text":
            parts += "".join(memory_tags.SEARCH_MARK.split(block.text)[::2]).split()
        elif block.kind == "call" and block.tool != RECALL.name:
            # Without a stable id: tool and length stay the same as long as the call does.
            has_id = block.by_id and block.call_id
            parts.append(block.call_id if has_id else f"{block.tool}{len(block.text)}")
    return "".join(parts)


COUNT_TOKENS_PATH = "/count_tokens"
"""Requests that only count tokens are free, and are not parsed."""

_HOOKED_AGENTS = frozenset({"claude-code"})
"""Agents that have Lore's hooks wherever they have its tools."""


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request, its API adapter, and what it says of itself."""

    incoming: ClientRequest
    adapter: ApiAdapter
    request: Request
    info: RequestInfo


class RequestParser:
    """Parses requests and finds the client sessions that they belong to."""

    def __init__(self, memory: Memory, composer: PromptComposer) -> None:
        self._settings = memory.settings
        self._composer = composer
        self._conversations = ConversationIds(composer.store.find_conversation)

    def parse(self, incoming: ClientRequest) -> ParsedRequest | None:
        """Parse a request; None if it is free, or in no API that Lore reads.

        A request with private entries in its history does not stay in the parse cache.
        """
        adapter = ADAPTERS.get(incoming.api)
        if adapter is None or incoming.path.endswith(COUNT_TOKENS_PATH):
            return None
        request = adapter.parse_request(incoming.body(), incoming.target)
        info = RequestInfo(incoming.headers, request.document, request.dialogue.entries)
        client = find_client_session(info) or ClientSession("", agent_of(info))
        if find_private_entries(client, info.entries):
            parse_cache.clear_caches()
        return ParsedRequest(incoming, adapter, request, info)

    def find_client(self, parsed: ParsedRequest, *, from_cache: bool = False) -> ClientSession:
        """Return the session of a request; with `from_cache` the store is not asked."""
        info = parsed.info
        return find_client_session(info) or self._conversations.find_client_session(
            info.entries, agent_of(info), folder_of(info), from_cache=from_cache
        )

    def expand(
        self, parsed: ParsedRequest, client: ClientSession, *, from_cache: bool = False
    ) -> ParsedRequest:
        """Replace markers by the calls they stand for, where a tool is declared or offered."""
        request = parsed.request
        may_call = request.tools or may_offer_tool(request, RECALL, self._settings.gateway_recall)
        if not may_call or not markers.may_have_markers(request.body):
            return parsed
        find = self._composer.sessions.markers(client, from_cache=from_cache).get
        return replace(parsed, request=parsed.adapter.expand_markers(request, find))


def has_hook_memory(client: ClientSession, request: Request) -> bool:
    """Return whether the hooks of an agent give it memory, so that the gateway must not.

    Their memory stands in user entries. Where they had nothing to give, an agent that has both
    hooks and tools of Lore shows its tools.
    """
    if client.agent in _HOOKED_AGENTS and has_own_memory(request):
        return True
    return any(
        memory_tags.may_have_memory(block.text)
        for entry in request.dialogue.entries
        if entry.voice != "assistant"
        for block in entry.blocks
        if block.kind == "text"
    )


def has_own_memory(request: Request) -> bool:
    """Return whether a client has the tools of Lore itself."""
    return any("lore" in name.lower() and name.endswith("recall") for name in request.tools)


def may_offer_tool(request: Request, tool: Tool, wanted: str) -> bool:
    """Return whether the gateway may offer a tool besides the client's, by the setting `wanted`."""
    offers = wanted == "on" or (wanted == "auto" and not has_own_memory(request))
    return offers and request.can_offer_recall and tool.name not in request.tools
