"""Schemas: what a tool takes and gives as JSON Schema, without what a model need not read."""

from __future__ import annotations

from typing import Any

from lore.tools.tool import Tool

Schema = dict[str, Any]


def input_schema(tool: Tool[Any]) -> Schema:
    """Return what a tool takes; its arguments are described, the rest says nothing."""
    schema = _lean(tool.arguments.model_json_schema())
    return {name: value for name, value in schema.items() if name != "description"}


def output_schema(tool: Tool[Any]) -> Schema:
    """Return what a tool gives back as data."""
    return _lean(tool.result.model_json_schema(mode="serialization"))


def _lean(schema: Schema) -> Schema:
    """Return a schema without titles, and without null where an argument can be left out."""
    kept: Schema = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            kept[name] = {key: _lean(inner) for key, inner in value.items()}
        elif name == "anyOf":
            kept |= _choice([_lean(inner) for inner in value], optional="default" in schema)
        elif name == "items" or (name == "additionalProperties" and isinstance(value, dict)):
            kept[name] = _lean(value)
        elif name != "title" and not (name == "default" and value in (None, "")):
            kept[name] = value
    return kept


def _choice(choices: list[Schema], *, optional: bool) -> Schema:
    """Return alternatives; one that may also be left out is that one."""
    rest = [choice for choice in choices if choice != {"type": "null"}]
    return rest[0] if optional and len(rest) == 1 else {"anyOf": choices}
