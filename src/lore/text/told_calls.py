"""Tool calls for people to read: commands, edits and patches as they are, no JSON around them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lore.text import calls

BRIEF_LINES = 6
"""Of each side of an edit and of a file that is written, so many lines are shown in brief."""

_OLD = ("old_string", "oldString", "old_str", "old_text")
_NEW = ("new_string", "newString", "new_str", "new_text", "new_source")
_CONTENT = ("content", "file_text", "contents")
_PATCH = ("input", "patch", "patchText")
_PATCH_SIGNS = ("*** Begin Patch", "*** Update File:", "*** Add File:", "*** Delete File:")
_LOOKED_FOR = ("pattern", "query", "url")
_HOW = (
    "description", "timeout", "timeout_ms", "yield_time_ms", "max_output_tokens", "type",
    "run_in_background", "login", "workdir", "justification", "sandbox_permissions",
    "replace_all", "replaceAll", "dangerouslyDisableSandbox",
)  # fmt: skip
"""Fields that say how a command or an edit is done, and nothing of what."""


def tell(name: str, text: str, *, brief: bool = False) -> str:
    """Return a tool call to read; input that is no JSON object is shown as it stands."""
    given = calls.given_fields(text)
    body = _told(given, brief=brief) if given else text
    return f"[{name or 'tool'}] {body}".rstrip()


def _told(given: Mapping[str, Any], *, brief: bool) -> str:
    file = calls.first_text(given, calls.FILE_FIELDS)
    patch = calls.first_text(given, _PATCH)
    if any(sign in patch for sign in _PATCH_SIGNS):
        return _with_rest(patch.strip("\n"), given, _PATCH)
    if file:
        return _told_of_file(file, given, brief=brief)
    command = calls.command_of(given)
    if command:
        return _with_rest(command.strip("\n"), given, calls.COMMAND_FIELDS)
    return _looked(given)


def _told_of_file(file: str, given: Mapping[str, Any], *, brief: bool) -> str:
    listed = given.get("edits")
    edits = [edit for edit in listed if isinstance(edit, dict)] if isinstance(listed, list) else []
    changed = [line for edit in (given, *edits) for line in _changed(edit, brief=brief)]
    written = _lines("", calls.first_text(given, _CONTENT), brief=brief)
    if not changed and not written:
        return _looked(given)
    listed_as = ("edits",) if edits else ()
    shown = (*calls.FILE_FIELDS, *_OLD, *_NEW, *_CONTENT, *calls.COMMAND_FIELDS, *listed_as)
    return _with_rest("\n".join([file, *changed, *written]), given, shown)


def _changed(edit: Mapping[str, Any], *, brief: bool) -> Iterator[str]:
    yield from _lines("- ", calls.first_text(edit, _OLD), brief=brief)
    yield from _lines("+ ", calls.first_text(edit, _NEW), brief=brief)


def _lines(sign: str, text: str, *, brief: bool) -> list[str]:
    found = text.strip("\n").split("\n") if text else []
    shown = found[:BRIEF_LINES] if brief else found
    more = [f"{sign}… {len(found) - len(shown)} more lines"] if len(found) > len(shown) else []
    return [*(f"{sign}{line}" for line in shown), *more]


def _looked(given: Mapping[str, Any]) -> str:
    """Tell what was looked for and where, then every other field on a line of its own."""
    sought = calls.first_text(given, _LOOKED_FOR)
    place = calls.first_text(given, calls.FILE_FIELDS)
    told = f"{sought} in {place}" if sought and place else sought or place
    named = [
        next((field for field in fields if given.get(field) == value), "")
        for fields, value in ((_LOOKED_FOR, sought), (calls.FILE_FIELDS, place))
        if value
    ]
    return _with_rest(told, given, tuple(named), how=())


def _with_rest(
    told: str, given: Mapping[str, Any], shown: tuple[str, ...], *, how: tuple[str, ...] = _HOW
) -> str:
    rest = [
        f"{field}: {_value(value)}"
        for field, value in given.items()
        if field not in shown and field not in how and value not in (None, "", [], {})
    ]
    return "\n".join(line for line in (told, *rest) if line)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
