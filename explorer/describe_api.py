"""Print the records of the REST API as OpenAPI, for the TypeScript types of the explorer."""

from __future__ import annotations

import json
import sys
from typing import Any

from lore.http.app import endpoints_of
from lore.http.auth import Logins
from lore.http.openapi import describe_api
from lore.http.write_endpoints import Toolbox
from lore.tools import tool_registry


def main() -> None:
    """Print the description without paths: the explorer names those itself."""
    logins = Logins("lore")
    toolbox = Toolbox(tool_registry.TOOLS, tool_registry.call_tool)
    described = describe_api(endpoints_of(toolbox, logins), cookie=logins.cookie)
    schemas = {name: _bare(one) for name, one in described["components"]["schemas"].items()}
    document = {
        "openapi": described["openapi"],
        "info": {"title": "Lore", "version": "1"},
        "paths": {},
        "components": {"schemas": schemas},
    }
    json.dump(document, sys.stdout, indent=1, sort_keys=True)


def _bare(schema: Any) -> Any:
    """Return a schema without titles and defaults, with every property that is always sent."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {key: _bare(one) for key, one in schema.items() if key not in ("title", "default")}
    if isinstance(schema.get("properties"), dict):
        # A property may itself be called "title".
        bare["properties"] = {key: _bare(one) for key, one in schema["properties"].items()}
        bare["required"] = sorted(schema["properties"])
    return bare


if __name__ == "__main__":
    main()
