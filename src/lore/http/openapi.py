"""OpenAPI description of the REST API, generated from the endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter

from lore import __version__
from lore.http.endpoint import JSON_TYPE, Endpoint
from lore.http.error_responses import PROBLEM_JSON
from lore.proxy.address import API_PREFIX
from lore.records import ChangeEvent

_REFERENCE = "#/components/schemas/{model}"

Tree = dict[str, Any]

_PROBLEM: Tree = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Name of the error in lore.errors."},
        "detail": {"type": "string"},
        "hint": {"type": "string", "description": "What to do about it."},
    },
}
_PROBLEM_RESPONSE: Tree = {
    "description": "What went wrong.",
    "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_CURSOR: Tree = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def describe_api(endpoints: Sequence[Endpoint[Any]], *, cookie: str) -> Tree:
    """Return the OpenAPI document of the endpoints; `cookie` is the name of the session cookie."""
    schemas: Tree = {"Problem": _PROBLEM}
    paths: Tree = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, schemas)
        paths.setdefault(f"{API_PREFIX}{endpoint.path}", {})[endpoint.method.lower()] = operation
    event = _schema(ChangeEvent, schemas)
    paths[f"{API_PREFIX}{EVENTS_PATH}"] = {"get": _event_stream_operation(event)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lore", "version": __version__, "summary": "Memory for AI agents."},
        "security": [{"key": []}, {"header": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "x-lore-key"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": cookie},
            },
        },
    }


EVENTS_PATH = "/events"
EVENTS_SUMMARY = "Which tables changed, as server-sent events."


def _event_stream_operation(event: Tree) -> Tree:
    """Describe the event stream: `event: change` with the schema of its data."""
    return {
        "operationId": "get_events",
        "summary": EVENTS_SUMMARY,
        "tags": ["reading"],
        "x-lore-scope": "read",
        "responses": {
            "200": {"description": "A stream of 'change' events.",
                    "content": {"text/event-stream": {"schema": event}}},
            "default": _PROBLEM_RESPONSE,
        },
    }  # fmt: skip


def _operation(endpoint: Endpoint[Any], schemas: Tree) -> Tree:
    arguments = _schema(endpoint.arguments, schemas, inline=True)
    in_path = re.findall(r"{(\w+)}", endpoint.path)
    operation: Tree = {
        "operationId": _operation_id(endpoint),
        "summary": endpoint.summary,
        "tags": list(endpoint.tags),
        "x-lore-scope": endpoint.scope,
        "responses": {
            "200": {
                "description": "Done.",
                "content": {JSON_TYPE: {"schema": _response_schema(endpoint, schemas)}},
            },
            "default": _PROBLEM_RESPONSE,
        },
    }  # fmt: skip
    required = arguments.get("required", [])
    properties = dict(arguments.get("properties", {}))
    parameters = [_parameter(name, properties.pop(name), "path", required) for name in in_path]
    if endpoint.method == "GET":
        parameters += [_parameter(name, of, "query", required) for name, of in properties.items()]
    else:
        operation["requestBody"] = {
            "required": bool(required),
            "content": {JSON_TYPE: {"schema": {**arguments, "properties": properties}}},
        }
    if parameters:
        operation["parameters"] = parameters
    return operation


def _operation_id(endpoint: Endpoint[Any]) -> str:
    words = re.sub(r"[{}]", "", endpoint.path).strip("/").replace("/", "_")
    return words if endpoint.method == "POST" else f"get_{words}"


def _parameter(name: str, schema: Tree, place: str, required: Sequence[str]) -> Tree:
    description = {"description": schema["description"]} if "description" in schema else {}
    bare = {key: value for key, value in schema.items() if key not in ("description", "title")}
    return {"name": name, "in": place, "required": name in required, **description, "schema": bare}


def _response_schema(endpoint: Endpoint[Any], schemas: Tree) -> Tree:
    """Return the schema of an endpoint's response."""
    if endpoint.item is not None:
        listed = {"type": "array", "items": _schema(endpoint.item, schemas)}
        properties: Tree = {"items": listed, "next": _CURSOR}
        return {"type": "object", "required": ["items", "next"], "properties": properties}
    if "tools" in endpoint.tags:
        fields = {"text": {"type": "string"}, "data": _schema(endpoint.result, schemas)}
        return {"type": "object", "required": ["text", "data"], "properties": fields}
    return _schema(endpoint.result, schemas)


def _schema(kind: Any, schemas: Tree, *, inline: bool = False) -> Tree:
    """Return the schema of a type; nested types go to `schemas` by name."""
    mode: Any = "validation" if inline else "serialization"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        schema = kind.model_json_schema(ref_template=_REFERENCE, mode=mode)
    else:
        schema = TypeAdapter(kind).json_schema(ref_template=_REFERENCE, mode=mode)
    schemas.update(schema.pop("$defs", {}))
    if inline or "title" not in schema:
        return schema
    schemas[schema["title"]] = schema
    return {"$ref": _REFERENCE.format(model=schema["title"])}
