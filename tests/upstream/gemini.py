"""Gemini's generateContent: the rules for a request, and a reply as a document or a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.upstream import prompt_cache
from tests.upstream.script import (
    Call,
    History,
    Json,
    ModelError,
    Prompt,
    ReceivedRequest,
    Response,
    Result,
    Role,
    Text,
    Thought,
    Turn,
    data_event,
    require,
    sign,
    split_text,
)

ID_PREFIX = ""


def parse_prompt(document: Mapping[str, Any]) -> Prompt:
    """Read the prompt of a request."""
    turns = []
    for content in document["contents"]:
        texts = tuple(part["text"] for part in content["parts"] if "text" in part)
        results = tuple(
            Result(part["functionResponse"]["name"], json.dumps(part["functionResponse"]))
            for part in content["parts"]
            if _responds(part)
        )
        role: Role = "assistant" if content.get("role") == "model" else "user"
        turns.append(Turn(role, texts, results))
    system = document.get("systemInstruction") or document.get("system_instruction") or {}
    return Prompt("\n".join(part["text"] for part in system.get("parts", ())), tuple(turns))


def prompt_text(document: Mapping[str, Any]) -> str:
    """Return a prompt as one text, in the order in which it is read."""
    keys = ("tools", "systemInstruction", "system_instruction")
    parts = [*(document.get(key) for key in keys), *document["contents"]]
    return "".join(prompt_cache.canonical(part) for part in parts if part)


def sends_thoughts(_document: Mapping[str, Any]) -> bool:
    """Return whether the model shows its thoughts."""
    return True


def headers(_request: ReceivedRequest) -> dict[str, str]:
    """Return the headers of a successful response."""
    return {"server": "scaffolding on HTTPServer2", "vary": "Origin"}


def content_parts(response: Response) -> list[Json]:
    """Return the parts of a reply."""
    parts: list[Json] = []
    for part in response.parts:
        match part:
            case Text(text):
                parts.append({"text": text})
            case Thought(text):
                parts.append({"text": text, "thought": True})
            case Call(name, arguments):
                call: Json = {"name": name, "args": dict(arguments)}
                signature = sign(_signed_text(call))
                call |= {"id": part.id} if part.id else {}
                parts.append({"functionCall": call, "thoughtSignature": signature})
    return parts


def _document(response: Response, parts: list[Json], *, is_last: bool = True) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    candidate |= {"finishReason": response.stop or "STOP"} if is_last else {}
    usage: Json = {
        "promptTokenCount": response.usage.total,
        "candidatesTokenCount": response.output_tokens,
        "totalTokenCount": response.usage.total + response.output_tokens,
    }
    if response.usage.read:
        usage["cachedContentTokenCount"] = response.usage.read
    names = {"modelVersion": response.model, "responseId": response.id}
    return {"candidates": [candidate], "usageMetadata": usage, **names}


def response_document(response: Response) -> Json:
    """Write a reply as one document."""
    return _document(response, content_parts(response))


def response_events(response: Response) -> Iterator[bytes]:
    """Write a reply as server-sent events, or as the pieces of a JSON list."""
    parts: list[Json] = []
    for part in content_parts(response):
        pieces = split_text(part["text"]) if "text" in part else []
        parts += [{**part, "text": text} for text in pieces] if "text" in part else [part]
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        event = json.dumps(_document(response, [part], is_last=is_last)).encode()
        if response.as_list:
            yield (b"[" if number == 0 else b",\r\n") + event + (b"]" if is_last else b"")
        else:
            yield b"data: " + event + b"\r\n\r\n"


def error_document(error: ModelError) -> Json:
    """Write an error."""
    status = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED"}.get(error.status, "INTERNAL")
    return {"error": {"code": error.status, "message": error.message, "status": status}}


def error_event(error: ModelError) -> bytes:
    """Write an error that comes after the stream has begun."""
    return data_event(error_document(error))


def too_long_message(tokens: int, limit: int) -> str:
    return (
        f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit})."
    )


def check_request(document: Mapping[str, Any], history: History) -> None:
    """Check a request to generateContent."""
    contents = document.get("contents")
    require(isinstance(contents, list) and contents, "contents is not specified")
    assert isinstance(contents, list)
    roles = [content.get("role", "user") for content in contents]
    for role in roles:
        require(role in ("user", "model", "function"), "Please use a valid role: user, model.")
    speakers = ["model" if role == "model" else "user" for role in roles]
    # They need not alternate: Google's SDK keeps each event of a stream as a content, and Gemini
    # CLI begins a resumed session with two of the user.
    require(speakers[0] == "user", "Please ensure that the first turn is a user turn.")
    rule = "Please ensure that multiturn requests end with a user turn."
    require(speakers[-1] == "user", rule)
    for number, content in enumerate(contents):
        parts = content.get("parts")
        rule = f"GenerateContentRequest.contents[{number}].parts must not be empty"
        require(isinstance(parts, list) and parts, rule)
        for part in parts:
            rule = f"contents[{number}].parts: must have one initialized field"
            require(_has_data(part), rule)
    _check_calls(contents, history)
    _check_tools(document)


_SCHEMA_KEYWORDS = set(
    "type format title description nullable enum maxItems minItems properties required example"
    " minProperties maxProperties minLength maxLength pattern anyOf propertyOrdering default items"
    " minimum maximum".split()
)


def _check_tools(document: Mapping[str, Any]) -> None:
    """Check the declared tools; one unknown keyword in a schema rejects the request."""
    tools = document.get("tools") or ()
    declared = [one for tool in tools for one in tool.get("functionDeclarations", ())]
    for number, one in enumerate(declared):
        _check_schema(one.get("parameters") or {}, f"function_declarations[{number}].parameters")
    has_others = any(set(tool) - {"functionDeclarations"} for tool in tools)
    rule = "Tool use with function calling is unsupported"
    require(not (declared and has_others), rule)
    mime = (document.get("generationConfig") or {}).get("responseMimeType", "text/plain")
    rule = f"Function calling with a response mime type: '{mime}' is unsupported"
    require(not declared or mime == "text/plain", rule)


def _check_schema(schema: Mapping[str, Any], at: str) -> None:
    for name, value in schema.items():
        rule = (
            f"Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot find field."
        )
        require(name in _SCHEMA_KEYWORDS, rule)
        inner = value.values() if name == "properties" else value if name == "anyOf" else ()
        for one in (value,) if name == "items" else inner:
            _check_schema(one, f"{at}.{name}")


def _has_data(part: Any) -> bool:
    return any(part.get(key) is not None for key in part if key not in ("thought",))


def _check_calls(contents: Sequence[Any], history: History) -> None:
    before: list[str] = []
    last_turn = max((number for number, one in enumerate(contents) if _begins_turn(one)), default=0)
    for number, content in enumerate([*contents, {"role": "user", "parts": []}]):
        results = [p["functionResponse"]["name"] for p in content["parts"] if _responds(p)]
        rule = "Please ensure that function response turn comes immediately after a function call"
        require(before or not results, f"{rule} turn.")
        rule = "Please ensure that the number of function response parts is equal to the number of"
        require(sorted(before) == sorted(results), f"{rule} function call parts.")
        before = [p["functionCall"]["name"] for p in content["parts"] if "functionCall" in p]
        require(not before or content.get("role") == "model", "functionCall is of the model only")
        for part in content["parts"] if number > last_turn else ():
            _check_thought_signature(part, history)


def _begins_turn(content: Any) -> bool:
    """Return whether a turn begins; signatures are required in the last turn only."""
    return content.get("role") != "model" and not all(map(_responds, content["parts"]))


def _responds(part: Any) -> bool:
    return "functionResponse" in part


def _check_thought_signature(part: Any, history: History) -> None:
    call = part.get("functionCall")
    if call is None:
        return
    due = history.call_signatures.get(_signed_text(call))
    signature = part.get("thoughtSignature", part.get("thought_signature"))
    rule = f"Function call `{call['name']}` is missing a thought_signature."
    require(due is None or signature == due, rule)


def _signed_text(call: Any) -> str:
    return str(call["name"]) + json.dumps(call.get("args", {}), sort_keys=True)


def remember(response: Response, history: History) -> None:
    """Remember the signatures of calls."""
    for part in content_parts(response):
        if "functionCall" in part:
            signed = _signed_text(part["functionCall"])
            history.call_signatures[signed] = part["thoughtSignature"]
