"""The four APIs that the upstream serves, chosen by their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tests.upstream import anthropic, gemini, openai_chat, openai_responses
from tests.upstream.script import (
    ApiName,
    History,
    ModelReply,
    Prompt,
    Rejected,
    Response,
    Thought,
    require,
)

APIS: dict[str, ModuleType] = {
    "anthropic": anthropic,
    "chat": openai_chat,
    "responses": openai_responses,
    "gemini": gemini,
}
ENDPOINTS: dict[str, ApiName] = {
    "/messages": "anthropic",
    "/messages/count_tokens": "anthropic",
    "/chat/completions": "chat",
    "/responses": "responses",
    ":generateContent": "gemini",
    ":streamGenerateContent": "gemini",
}


def api_of(path: str) -> ApiName:
    """Return the API that a path belongs to."""
    return next((api for ending, api in ENDPOINTS.items() if path.endswith(ending)), "other")


def check_request(
    api: str, document: Any, history: History | None = None, *, counts_only: bool = False
) -> None:
    """Raise `Rejected` for the first rule of the API that a request breaks."""
    require(isinstance(document, dict), "The request body is not valid JSON.")
    options = {"counts_only": True} if counts_only else {}
    try:
        APIS[api].check_request(document, history or History(), **options)
    except (KeyError, TypeError, AttributeError) as error:
        raise Rejected(f"The request is malformed: {error!r}") from error


def parse_prompt(api: ApiName, document: Mapping[str, Any]) -> Prompt:
    """Read the prompt of a request."""
    prompt: Prompt = APIS[api].parse_prompt(document)
    return prompt


def respond(
    api: ApiName, reply: ModelReply, document: Mapping[str, Any], **fields: Any
) -> Response:
    """Make a reply the response to a request, without thoughts if the request asks for none."""
    parts = reply.parts
    if not APIS[api].sends_thoughts(document):
        parts = tuple(part for part in parts if not isinstance(part, Thought))
    usage_wanted = bool((document.get("stream_options") or {}).get("include_usage"))
    return Response(api, parts, stop=reply.stop, with_usage=usage_wanted, **fields)
