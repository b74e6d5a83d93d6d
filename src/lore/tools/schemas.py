"""Schemas: what a tool takes and gives as JSON Schema, without what a model need not read."""

from __future__ import annotations

from typing import Any

from lore.tools.tool import Tool

Schema = dict[str, Any]


def input_schema(tool: Tool[Any]) -> Schema:
    """Return what a tool takes; its arguments are described, the rest says nothing."""
    schema = _lean(tool.arguments.model_json_schema(), null=False)
    return {name: value for name, value in schema.items() if name != "description"}


def output_schema(tool: Tool[Any]) -> Schema:
    """Return what a tool gives back as data."""
    return _lean(tool.result.model_json_schema(mode="serialization"), null=True)


def _lean(schema: Schema, *, null: bool) -> Schema:
    """Return a schema without titles; without `null`, what may be left out need not be null."""
    kept: Schema = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            kept[name] = {key: _lean(inner, null=null) for key, inner in value.items()}
        elif name == "anyOf":
            kept |= _choice([_lean(inner, null=null) for inner in value], null=null)
        elif name == "items" or (name == "additionalProperties" and isinstance(value, dict)):
            kept[name] = _lean(value, null=null)
        elif name != "title" and not (name == "default" and value in (None, "")):
            kept[name] = value
    return kept


def _choice(choices: list[Schema], *, null: bool) -> Schema:
    """Return alternatives; where null is none, a single one is that one."""
    rest = [choice for choice in choices if null or choice != {"type": "null"}]
    return rest[0] if len(rest) == 1 else {"anyOf": rest}
