"""Serving: the handlers of one MCP server over a memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

import mcp_types as types
from anyio import to_thread
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from lore import __version__, clock
from lore.errors import InvalidInput, LoreError, NotFound
from lore.mcp import describing
from lore.memory import Memory
from lore.records import Grant
from lore.settings import Settings
from lore.tools import catalogue, schemas
from lore.tools.callers import caller_of, find_grant
from lore.tools.tool import Caller, Outcome, Tool

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None

_LAST = 20
"""So much of what happened last is in the timeline."""


class Desk:
    """What one server answers; over HTTP a request tells who asks, else it is `caller`."""

    def __init__(
        self,
        memory: Callable[[], Memory],
        tools: tuple[Tool[Any], ...],
        caller: Caller,
        *,
        structured: bool,
    ) -> None:
        self._memory = memory
        self._tools = {tool.name: tool for tool in tools}
        self._structured = structured
        self._listed = [describing.describe(tool, structured=self._structured) for tool in tools]
        self._caller = caller

    async def list_tools(self, _context: Context, _page: Page) -> types.ListToolsResult:
        """Return the tools, always in the same order."""
        return types.ListToolsResult(tools=self._listed)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run a tool; what goes wrong is told in words that a model can act on."""
        if params.name not in self._tools:
            msg = f"There is no tool '{params.name[:60]}'. Tools: {', '.join(self._tools)}."
            raise MCPError(code=types.INVALID_PARAMS, message=msg)
        try:
            outcome = await self._run(context, params.name, params.arguments or {})
        except LoreError as error:
            return types.CallToolResult(content=[_text(_told(error))], is_error=True)
        data = outcome.data.model_dump(mode="json", exclude_defaults=True)
        return types.CallToolResult(
            content=[_text(outcome.text)], structured_content=data if self._structured else None
        )

    async def list_resources(self, _context: Context, _page: Page) -> types.ListResourcesResult:
        """Return the resources that have a name of their own."""
        return types.ListResourcesResult(resources=list(describing.RESOURCES))

    async def list_templates(
        self, _context: Context, _page: Page
    ) -> types.ListResourceTemplatesResult:
        """Return how the address of a fragment is made."""
        return types.ListResourceTemplatesResult(resource_templates=list(describing.TEMPLATES))

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return a resource as the tool of the same purpose words it."""
        name, arguments = _asked_for(params.uri)
        try:
            outcome = await self._run(context, name, arguments)
        except (InvalidInput, NotFound) as error:
            raise _no_resource(params.uri, _told(error)) from None
        except LoreError as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=_told(error)) from None
        contents = types.TextResourceContents(
            uri=params.uri, mime_type="text/plain", text=outcome.text
        )
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, _context: Context, _page: Page) -> types.ListPromptsResult:
        """Return the prompts."""
        return types.ListPromptsResult(prompts=list(describing.PROMPTS))

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Return a prompt with its argument filled in, and what the memory has for it."""
        prompt = next((p for p in describing.PROMPTS if p.name == params.name), None)
        if prompt is None or not prompt.arguments:
            msg = f"There is no prompt '{params.name[:60]}'."
            raise MCPError(code=types.INVALID_PARAMS, message=msg)
        wanted = prompt.arguments[0].name
        given = (params.arguments or {}).get(wanted, "").strip()
        if not given:
            msg = f"The prompt '{prompt.name}' needs '{wanted}'."
            raise MCPError(code=types.INVALID_PARAMS, message=msg)
        try:
            text = await self._worded(context, prompt.name, given)
        except LoreError as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=_told(error)) from None
        message = types.PromptMessage(role="user", content=_text(text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    async def _worded(self, context: Context, name: str, given: str) -> str:
        if name == "remember":
            return (
                "Keep this for later sessions with store(): one statement that is understandable"
                f" on its own, with the reason if there is one.\n\n{given}"
            )
        outcome = await self._run(context, "recall", {"query": given})
        asked = f"Answer from what the memory has, and name the ids you used.\n\n{given}"
        return f"{asked}\n\n{outcome.text}"

    async def _run(self, context: Context, name: str, arguments: dict[str, Any]) -> Outcome:
        caller = self._caller
        if context.request is not None:
            grant = find_grant(context.request.scope)
            if not catalogue.get_tool(name, aliases=True).reads_only:
                _check_may_write(name, grant)
            caller = caller_of(context.request.headers, grant)
        return await _in_thread(partial(catalogue.call, self._memory(), name, arguments, caller))


async def _in_thread(work: Callable[[], T]) -> T:
    """Do what blocks in a thread; a client that has gone is not waited for."""
    return await to_thread.run_sync(work, abandon_on_cancel=True)


def make_server(memory: Memory, caller: Caller | None = None) -> Server[Any]:
    """Return the MCP server of a memory."""
    return _server(memory.settings, lambda: memory, caller or Caller())


def make_listing(settings: Settings) -> Server[Any]:
    """Return a server that tells what it would serve, and has no memory to serve it from."""

    def nothing() -> Memory:
        msg = "Nothing is served here."
        raise LoreError(msg)

    return _server(settings, nothing, Caller())


def _server(settings: Settings, memory: Callable[[], Memory], caller: Caller) -> Server[Any]:
    tools = catalogue.served(settings)
    desk = Desk(memory, tools, caller, structured=settings.mcp_structured)
    inputs = {tool.name: schemas.input_schema(tool) for tool in tools}
    return Server(
        "lore",
        version=__version__,
        title="Lore",
        description="Long-term memory.",
        instructions=describing.INSTRUCTIONS,
        get_tool_input_schema=inputs.get,
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        on_list_resources=desk.list_resources,
        on_list_resource_templates=desk.list_templates,
        on_read_resource=desk.read_resource,
        on_list_prompts=desk.list_prompts,
        on_get_prompt=desk.get_prompt,
    )


def _check_may_write(name: str, grant: Grant | None) -> None:
    """Refuse a tool that changes something to a key that may only read."""
    if grant is None or not grant.allows("write"):
        msg = f"{name}() changes the memory, and this access key may only read."
        raise InvalidInput(msg, hint="'lore key create NAME' makes a key that may do both.")


def _asked_for(uri: str) -> tuple[str, dict[str, Any]]:
    """Return the tool that gives a resource, and its arguments."""
    if uri == describing.INDEX:
        return "list_roots", {}
    if uri == describing.TIMELINE:
        return "timeline", {"anchor": clock.now().isoformat(), "before": _LAST, "after": 0}
    id_ = uri.removeprefix(describing.FRAGMENT)
    if id_ == uri or not id_:
        raise _no_resource(uri, "There is no such resource.")
    return "read", {"ids": [unquote(id_)]}


def _no_resource(uri: str, told: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=told, data={"uri": uri[:200]})


def _told(error: LoreError) -> str:
    return f"{error} {error.hint}".strip()


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)
