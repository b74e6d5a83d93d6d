"""The reference pages, made from the code: `python -m tests.house.reference --write`."""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import typer

from lore import errors
from lore.cli.app import app
from lore.http.app import endpoints_of
from lore.http.auth import Logins
from lore.http.error_responses import status_code
from lore.http.openapi import describe_api
from lore.http.write_endpoints import Toolbox
from lore.settings import load
from lore.tools import tool_registry
from lore.tools.tool import Tool, input_schema
from lore.tools.tool_registry import _ALIAS_SPECS

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
MADE = "<!-- Made from the code by `python -m tests.house.reference --write`. -->"

FORMS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "object",
}
"""What the types of JSON Schema are called."""


def pages() -> dict[str, str]:
    """Return the reference pages by file name."""
    return {
        "cli.md": cli(),
        "settings.md": settings(),
        "exit-codes.md": exit_codes(),
        "tools.md": tools(),
        "http.md": http(),
    }


def command_names() -> list[str]:
    """Return every command as it is typed."""
    return [path for path, _ in _commands(typer.main.get_command(app), "lore")]


def _commands(command: Any, path: str) -> list[tuple[str, Any]]:
    found = [(path, command)]
    for name, below in getattr(command, "commands", {}).items():
        found += _commands(below, f"{path} {name}")
    return found


def cli() -> str:
    """Return the page of commands."""
    parts = [
        f"# Commands\n\n{MADE}\n",
        "`--json` prints JSON with stable keys. An id can be shortened to a unique prefix of at"
        " least\n8 characters. If a text or question is `-`, it is read from standard input."
        " Errors are printed on\nstderr in one line, with a hint; the"
        " [exit codes](exit-codes.md) are stable. Only terminals get\ncolour; `NO_COLOR` turns it"
        " off.\n",
    ]
    for path, command in _commands(typer.main.get_command(app), "lore"):
        parts.append(_command_page(path, command))
    return "\n".join(parts)


def _command_page(path: str, command: Any) -> str:
    lines = [f"## {path}\n", inspect.cleandoc(command.help or ""), ""]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join(_usage(argument) for argument in arguments)
    below = " COMMAND" if getattr(command, "commands", {}) else ""
    lines += ["```", f"{path} [OPTIONS]{below} {usage}".rstrip(), "```", ""]
    rows = [(_usage(argument), _explained(argument)) for argument in arguments]
    rows += [
        (
            ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts)),
            _explained(option),
        )
        for option in command.params
        if option.param_type_name == "option" and not option.hidden
    ]
    if rows:
        lines += ["| | |", "|---|---|"]
        lines += [f"| {name} | {told} |" for name, told in rows]
        lines.append("")
    return "\n".join(lines)


def _usage(argument: Any) -> str:
    name = argument.name.upper() + (" …" if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _explained(parameter: Any) -> str:
    told = (parameter.help or "").replace("|", "\\|")
    default = parameter.default
    if default not in (None, "", False, (), []) and not callable(default):
        told += f" Default: `{default}`."
    return told


def settings() -> str:
    """Return the page of settings."""
    lines = [
        f"# Settings\n\n{MADE}\n",
        "Lore reads a setting from the environment, then from the project's `.lore.json` (if a"
        " project may set\nit), then from `config.toml` in the home; the first value counts, else"
        " the default. `lore config`\nlists all settings with their sources; `lore config KEY"
        " VALUE` writes one to `config.toml`, and\n`lore config KEY --unset` removes it. Errors in"
        " `.lore.json` are reported on stderr and ignored. The\ndaemon reads its settings at the"
        " start: after a change, run `lore down` and `lore up --detach`.\n",
        "| setting | environment | default | may be | in a project | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for value in load({}, home=Path("/nowhere")).values:
        default = str(value.default).lower() if value.default is False else value.default
        shown = f"`{default}`" if default not in ("", None) else ""
        place = "yes" if value.project else "no"
        cells = (f"`{value.key}`", f"`{value.env}`", shown, value.allowed, place, value.doc)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def tools() -> str:
    """Return the page of tools."""
    parts = [
        f"# Tools\n\n{MADE}\n",
        "Agents call these tools over MCP, REST (`POST /api/v1/tools/NAME`) or `lore tool NAME`,"
        " with the\nsame results. (The other [commands](cli.md) are for people.) A tool returns a"
        " few lines of text for\nthe model. REST also returns data; MCP does so only with"
        " `mcp.structured`, because some agents then\nshow their model only the data. An id can"
        " be shortened to a unique prefix of at least 8 characters.\n\nText from memory is"
        " between `<lore-memory>` marks, without invisible characters. Each line of it\nfollows"
        " `> ` or ends a line of the tool. An origin other than the user or the assistant is"
        " shown after\nthe kind: `fact(web)`. Lore does not learn again what a tool quotes. An"
        " agent stores as `assistant`:\nit cannot change, delete, move or supersede what the user"
        " said ([trust](trust.md)).\n",
    ]
    parts += [_tool_page(tool) for tool in tool_registry.TOOLS]
    parts += [
        "## Aliases\n",
        "Names of the same tools in other memory servers; MCP offers them with"
        " `mcp.aliases = true`.\n",
        "| alias | tool | arguments |",
        "|---|---|---|",
    ]
    for alias in _ALIAS_SPECS:
        taken = ", ".join(
            f"`{name}`" if name == meant else f"`{name}` ({f'`{meant}`' if meant else 'not used'})"
            for name, meant in alias.takes.items()
        )
        parts.append(f"| `{alias.name}` | `{alias.tool}` | {taken} |")
    return "\n".join(parts) + "\n"


def _tool_page(tool: Tool[Any]) -> str:
    schema = input_schema(tool)
    needed = schema.get("required", [])
    marks = [
        "reads only" if tool.reads_only else "destructive" if tool.destructive else "writes",
        "idempotent" if tool.idempotent else "not idempotent",
    ]
    if tool.profile == "full":
        marks.append("by MCP only with `mcp.profile = full`")
    lines = [f"## {tool.name}\n", f"{tool.description}\n", f"{', '.join(marks).capitalize()}.\n"]
    lines += ["| argument | may be | default | meaning |", "|---|---|---|---|"]
    for name, told in schema["properties"].items():
        default = f"`{json.dumps(told['default'])}`" if "default" in told else ""
        shown = "needed" if name in needed else default
        lines.append(f"| `{name}` | {_form(told)} | {shown} | {told['description']} |")
    return "\n".join(lines) + "\n"


def _form(told: dict[str, Any]) -> str:
    """Say what an argument may be."""
    if "enum" in told:
        return ", ".join(told["enum"])
    bounds = [
        f"{word} {told[key]:,}"
        for key, word in (
            ("minimum", "from"),
            ("maximum", "to"),
            ("minItems", "from"),
            ("maxItems", "to"),
            ("maxLength", "of at most"),
        )
        if key in told
    ]
    unit = ["characters"] if "maxLength" in told else []
    return " ".join([FORMS[told["type"]], *bounds, *unit])


def exit_codes() -> str:
    """Return the page of exit codes."""
    by_code: dict[int, list[type[errors.LoreError]]] = {}
    for name in errors.__all__:
        kind = getattr(errors, name)
        by_code.setdefault(kind.exit_code, []).append(kind)
    lines = [
        f"# Exit codes\n\n{MADE}\n",
        "| code | errors | meaning |",
        "|---|---|---|",
        "| 0 | | Success; also if nothing was found. |",
    ]
    for code, kinds in sorted(by_code.items()):
        kinds.sort(key=lambda kind: len(kind.__mro__))
        names = ", ".join(f"`{kind.__name__}`" for kind in kinds)
        meaning = inspect.cleandoc(kinds[0].__doc__ or "").split("\n")[0]
        lines.append(f"| {code} | {names} | {meaning} |")
    lines += [
        "| 130 | | Interrupted by Ctrl-C; acknowledged writes are stored. |",
        "",
        "Usage errors (an unknown command or option, a value out of range) exit with 2. `lore"
        " doctor` exits\nwith 7 if something is broken. If the reader of the output closes the pipe"
        " (`lore export | head -1`),\nthe command exits silently with 1.",
        "",
    ]
    tree = (errors.__doc__ or "").split("\n", 2)[2].rstrip()
    return "\n".join([*lines, "```", tree, "```", ""])


def http() -> str:
    """Return the page of the REST interface, from the description that is served."""
    logins = Logins("lore")
    endpoints = endpoints_of(Toolbox(tool_registry.TOOLS, tool_registry.call_tool), logins)
    described = describe_api(endpoints, cookie=logins.cookie)
    parts = [
        f"# HTTP\n\n{MADE}\n",
        "All paths are under `/api/v1`; `/api/v1/openapi.json` describes them for programs, with"
        " the schemas of\nthe responses. [The server](server.md) describes access, limits and"
        " errors. A list is an object with\n`items` and `next`: the cursor of the next page, or"
        " null at the end.\n",
        "| request | needs | what |",
        "|---|---|---|",
        "| `GET /health` | nothing | Return the health and version of the server. |",
    ]
    asked = [
        (f"{method.upper()} {path}", operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    parts += [
        f"| `{request}` | {operation['x-lore-scope']} | {operation['summary']} |"
        for request, operation in asked
    ]
    parts.append("")
    for request, operation in asked:
        rows = _http_rows(operation)
        if rows:
            parts += [f"## {request}\n", "| argument | where | may be | meaning |"]
            parts += ["|---|---|---|---|", *rows, ""]
    parts += ["## Errors\n", "| status | errors |", "|---|---|"]
    by_status: dict[int, list[str]] = {}
    for name in errors.__all__:
        by_status.setdefault(status_code(getattr(errors, name)), []).append(f"`{name}`")
    parts += [f"| {status} | {', '.join(names)} |" for status, names in sorted(by_status.items())]
    return "\n".join(parts) + "\n"


def _http_rows(operation: Any) -> list[str]:
    arguments = [
        (given["name"], given["in"], given["required"], {**given, **given["schema"]})
        for given in operation.get("parameters", ())
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = body.get("schema", {})
    arguments += [
        (name, "body", name in schema.get("required", ()), given)
        for name, given in schema.get("properties", {}).items()
    ]
    return [
        f"| `{name}`{'' if required else ' (optional)'} | {place} | {_may_be(given)} |"
        f" {given.get('description', '').replace('|', '/')} |"
        for name, place, required, given in arguments
    ]


def _may_be(schema: Any) -> str:
    """Say in words what a schema allows."""
    if "anyOf" in schema:
        named = (_may_be(one) for one in schema["anyOf"] if one.get("type") != "null")
        return " or ".join(dict.fromkeys(named))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    if schema.get("type") == "array":
        return f"list of {_may_be(schema.get('items', {}))}"
    return _bounded(schema)


def _bounded(schema: Any) -> str:
    kind = {"string": "text", "integer": "whole number", "boolean": "true, false"}
    told = kind.get(schema.get("type", ""), schema.get("type", "anything"))
    if "minimum" in schema and "maximum" in schema:
        told += f", {schema['minimum']:,} to {schema['maximum']:,}"
    if "maxLength" in schema:
        told += f", at most {schema['maxLength']:,} characters"
    return str(told)


def write() -> None:
    """Write the pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__" and "--write" in sys.argv:
    write()
