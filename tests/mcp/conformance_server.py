"""The server that the conformance suite asks: its names, behind the app that Lore serves.

The suite calls tools, resources and prompts by names of its own. What is under test is what Lore
adds to the SDK: transport, gate, bounds and how the app is put together.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp, Receive, Scope, Send

from lore.daemon.http_server import mcp_mounts
from tests.http_api.live_server import Served, serving

PNG = base64.b64encode(bytes.fromhex("89504e470d0a1a0a0000000d49484452")).decode()
WAV = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt ").decode()

TEXT = types.TextContent(text="This is a simple text response for testing.")
IMAGE = types.ImageContent(data=PNG, mime_type="image/png")
AUDIO = types.AudioContent(data=WAV, mime_type="audio/wav")


def _embedded(uri: str) -> types.EmbeddedResource:
    contents = types.TextResourceContents(
        uri=uri, mime_type="text/plain", text="This is an embedded resource content."
    )
    return types.EmbeddedResource(resource=contents)


CONTENTS: dict[str, list[Any]] = {
    "test_simple_text": [TEXT],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [_embedded("test://embedded-resource")],
    "test_multiple_content_types": [
        types.TextContent(text="Multiple content types test:"),
        IMAGE,
        _embedded("test://mixed-content-resource"),
    ],
}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
CUSTOM: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}


async def list_tools(_context: Any, _page: Any) -> types.ListToolsResult:
    names = [*CONTENTS, "test_error_handling", "test_missing_capability"]
    tools = [types.Tool(name=name, description=name, input_schema=SCHEMA) for name in names]
    custom = types.Tool(name="test_custom_headers", description="x", input_schema=CUSTOM)
    return types.ListToolsResult(tools=[*tools, custom])


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name == "test_error_handling":
        told = types.TextContent(text="This tool intentionally returns an error for testing")
        return types.CallToolResult(content=[told], is_error=True)
    if params.name == "test_missing_capability":
        wanted = types.ClientCapabilities(sampling=types.SamplingCapability())
        if not context.session.check_client_capability(wanted):
            data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=wanted)
            raise MCPError(
                code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                message="sampling is needed",
                data=data.model_dump(by_alias=True, mode="json", exclude_none=True),
            )
    return types.CallToolResult(content=CONTENTS.get(params.name, [TEXT]))


async def list_resources(_context: Any, _page: Any) -> types.ListResourcesResult:
    listed = [
        types.Resource(name="text", uri="test://static-text", mime_type="text/plain"),
        types.Resource(name="binary", uri="test://static-binary", mime_type="image/png"),
    ]
    return types.ListResourcesResult(resources=listed)


async def list_templates(_context: Any, _page: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        name="template", uri_template="test://template/{id}/data", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(
    _context: Any, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri = params.uri
    contents: types.TextResourceContents | types.BlobResourceContents
    if uri == "test://static-text":
        text = "This is the content of the static text resource."
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
    elif uri == "test://static-binary":
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri.startswith("test://template/"):
        data = f'{{"id": "{uri.split("/")[3]}", "templateTest": true}}'
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=data)
    else:
        raise MCPError(code=types.INVALID_PARAMS, message="no such resource", data={"uri": uri})
    return types.ReadResourceResult(contents=[contents])


def _prompt(name: str, *arguments: str) -> types.Prompt:
    needed = [types.PromptArgument(name=one, description=one, required=True) for one in arguments]
    return types.Prompt(name=name, description=name, arguments=needed)


async def list_prompts(_context: Any, _page: Any) -> types.ListPromptsResult:
    prompts = [
        _prompt("test_simple_prompt"),
        _prompt("test_prompt_with_arguments", "arg1", "arg2"),
        _prompt("test_prompt_with_embedded_resource", "resourceUri"),
        _prompt("test_prompt_with_image"),
    ]
    return types.ListPromptsResult(prompts=prompts)


async def get_prompt(_context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    given = params.arguments or {}
    named = ", ".join(f"{name}='{value}'" for name, value in given.items())
    analyse = types.TextContent(text="Please analyze the image above.")
    said: dict[str, list[Any]] = {
        "test_simple_prompt": [types.TextContent(text="This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [types.TextContent(text=f"Prompt with arguments: {named}")],
        "test_prompt_with_embedded_resource": [
            _embedded(given.get("resourceUri", "test://example-resource")),
            types.TextContent(text="Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [IMAGE, analyse],
    }
    messages = [types.PromptMessage(role="user", content=content) for content in said[params.name]]
    return types.GetPromptResult(messages=messages)


def make_fixture() -> Server[Any]:
    """Return the server with the names of the suite."""
    return Server(
        "lore-conformance", version="1",
        on_list_tools=list_tools, on_call_tool=call_tool,
        on_list_resources=list_resources, on_list_resource_templates=list_templates,
        on_read_resource=read_resource, on_list_prompts=list_prompts, on_get_prompt=get_prompt,
    )  # fmt: skip


def with_key(app: ASGIApp, key: str) -> ASGIApp:
    """Show the key for a client that cannot."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        shown = (b"authorization", f"Bearer {key}".encode())
        await app({**scope, "headers": [*scope.get("headers", ()), shown]}, receive, send)

    return serve


@contextmanager
def serving_fixture(home: Path) -> Iterator[Served]:
    """Serve the names of the suite until the block ends."""
    mounts = mcp_mounts(make_fixture)
    with serving(home, mounts_for=lambda _memory: mounts, around=with_key) as served:
        yield served


def main() -> None:
    """Serve until standard input ends, and print the port."""
    with tempfile.TemporaryDirectory() as home, serving_fixture(Path(home)) as served:
        sys.stdout.write(f"{served.port}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
