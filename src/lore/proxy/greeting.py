"""The greeting: what Lore says of itself to an agent before it is asked anything, kept in the home.

An agent does not wait for a daemon that has yet to start. What it asks first has the same answer
each time, so that a copy of the answers serves as long as it bears the mark of that very Lore.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Protocol

GREETING_FILE = "greeting.json"

INITIALIZE, DISCOVER = "initialize", "server/discover"
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
METHODS = (INITIALIZE, DISCOVER, *LISTS)
"""What an agent asks first."""

ANY = ""
"""Stands for a version of the protocol that Lore does not know, when it is named in a handshake."""

VERSION_FIELD = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_FIELD = "io.modelcontextprotocol/clientCapabilities"

Greeting = dict[str, dict[str, dict[str, Any]]]
"""Results by the version of the protocol and the method."""

_LARGEST_FILE = 4_000_000
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_TELLING = ("mcp", "tools")
"""The rooms that word what is told."""

_SDK = os.path.join("mcp", "server", "__init__.py")


class Choices(Protocol):
    """The settings that change what Lore says of itself."""

    @property
    def mcp_profile(self) -> str: ...  # noqa: D102 - the setting of this name
    @property
    def mcp_aliases(self) -> bool: ...  # noqa: D102
    @property
    def mcp_structured(self) -> bool: ...  # noqa: D102


def mark_of(version: str, choices: Choices) -> str:
    """Return what the Lore of this installation, and version, is known by with these settings."""
    chosen = (choices.mcp_profile, choices.mcp_aliases, choices.mcp_structured)
    return "|".join(map(str, (version, *chosen, *_code())))


def find(home: str, mark: str) -> Greeting | None:
    """Return the greeting that a home keeps, if it is that of the Lore of this mark."""
    try:
        with open(os.path.join(home, GREETING_FILE), encoding="utf-8") as file:
            kept = json.loads(file.read(_LARGEST_FILE))
        if not mark or kept["mark"] != mark:
            return None
        answers: Greeting = kept["answers"]
        results = [result for told in answers.values() for result in told.values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return answers if all(isinstance(result, dict) for result in results) else None


def keep(home: str, mark: str, greeting: Greeting) -> None:
    """Put a greeting in the place of the former one, whole, for the owner only."""
    path = os.path.join(home, GREETING_FILE)
    part = f"{path}.part-{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
            file.write(json.dumps({"mark": mark, "answers": greeting}).encode())
        os.replace(part, path)
    except OSError:
        drop(part)
        raise


def drop(path: str) -> None:
    """Remove a file, if it is there and can be."""
    try:
        os.unlink(path)
    except OSError:
        return


def forget(home: str) -> None:
    """Keep no greeting any more: the Lore that it promised cannot be had."""
    drop(os.path.join(home, GREETING_FILE))


def find_answer(greeting: Greeting, message: dict[str, Any], agreed: str) -> dict[str, Any] | None:
    """Return the result that a request gets; None if it asks for more than a greeting has.

    `agreed` is the version of the protocol that a handshake has settled on, if there was one.
    """
    params = message.get("params", {})
    if not isinstance(params, dict) or type(message["id"]) not in (str, int):
        return None
    told = params.get("_meta", {})
    meta = told if isinstance(told, dict) else {}
    if message["method"] == INITIALIZE:
        return _handshake(greeting, params)
    if params.keys() - {"_meta"}:
        return None
    version = meta.get(VERSION_FIELD, agreed)
    if not isinstance(version, str) or version == ANY:
        return None
    if VERSION_FIELD in meta and not isinstance(meta.get(CAPABILITIES_FIELD), dict):
        return None
    return greeting.get(version, {}).get(message["method"])


def _handshake(greeting: Greeting, params: dict[str, Any]) -> dict[str, Any] | None:
    version = params.get("protocolVersion")
    said = (params.get("capabilities"), params.get("clientInfo"))
    if not isinstance(version, str) or not all(isinstance(one, dict) for one in said):
        return None
    found = greeting.get(version, {}).get(INITIALIZE)
    return found if found is not None else greeting.get(ANY, {}).get(INITIALIZE)


def _code() -> tuple[object, ...]:
    """Return what changes with the code that words a greeting: Lore's own, and the SDK's."""
    files = [
        entry.stat()
        for room in _TELLING
        for entry in os.scandir(os.path.join(_PACKAGE, room))
        if entry.name.endswith(".py")
    ]
    return (
        len(files),
        sum(file.st_size for file in files),
        sum(file.st_mtime_ns for file in files),
        *_sdk(),
    )


def _sdk() -> tuple[object, ...]:
    for folder in sys.path:
        try:
            found = os.stat(os.path.join(folder, _SDK))
        except OSError:
            continue
        return (folder, found.st_size, found.st_mtime_ns)
    return ()
