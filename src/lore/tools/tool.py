"""The definition of a tool: name, arguments, result and function; and its JSON Schemas."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Generic, Literal, TypeVar
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, ConfigDict

from lore.errors import InvalidInput
from lore.memory import Memory
from lore.memory.search import Reader
from lore.records import Grant, Origin
from lore.text.hidden_text import strip_hidden
from lore.text.name_limit import check_name

A = TypeVar("A", bound="Arguments")

Profile = Literal["core", "full"]
"""The tools that MCP lists: the everyday ones, or all."""


Seen = Annotated[str, AfterValidator(strip_hidden)]
"""Stored text in a result, without hidden characters: a model may see what a person does not."""


class Arguments(BaseModel):
    """What a tool or an endpoint takes: nothing that it does not name, and each within bounds."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_max_length=200_000)


class Result(BaseModel):
    """What a tool gives back as data; `model_validate` takes a record with the same fields."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a tool: working folder, session, origin of what it stores, deadline, agent."""

    project: str = ""
    session: str = ""
    origin: Origin = "assistant"
    within_s: float | None = None
    agent: str = "mcp"
    keyed: bool = False
    """Whether the caller has a key: it may be on another machine."""
    grant: Grant | None = None
    """Who calls over HTTP, with the scopes they have."""
    may_write: bool = True
    """Whether the caller may change anything; what others read is not counted for a session."""

    @property
    def reader(self) -> Reader | None:
        """Whose tokens an answer costs; None if the caller may not change any counts."""
        return Reader(self.session, self.project) if self.may_write else None

    def after(self, waited_s: float) -> Caller:
        """Return the caller with the rest of its deadline."""
        if self.within_s is None:
            return self
        return replace(self, within_s=max(0.0, self.within_s - waited_s))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a tool as short text for a model and as data."""

    text: str
    data: Result


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """One tool; `description` is read by a model, so its first sentence says when to call it."""

    name: str
    title: str
    description: str
    arguments: type[A]
    result: type[Result]
    run: Callable[[Memory, A, Caller], Outcome]
    reads_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    profile: Profile = "core"


Schema = dict[str, Any]


def input_schema(tool: Tool[Any]) -> Schema:
    """Return the JSON Schema of a tool's arguments, without the class description."""
    schema = _lean(tool.arguments.model_json_schema(), null=False)
    return {name: value for name, value in schema.items() if name != "description"}


def output_schema(tool: Tool[Any]) -> Schema:
    """Return the JSON Schema of a tool's result."""
    return _lean(tool.result.model_json_schema(mode="serialization"), null=True)


def _lean(schema: Schema, *, null: bool) -> Schema:
    """Return a schema without titles; without `null`, optional values need not allow null."""
    lean: Schema = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            lean[name] = {key: _lean(inner, null=null) for key, inner in value.items()}
        elif name == "anyOf":
            lean |= _choice([_lean(inner, null=null) for inner in value], null=null)
        elif name == "items" or (name == "additionalProperties" and isinstance(value, dict)):
            lean[name] = _lean(value, null=null)
        elif name != "title" and not (name == "default" and value in (None, "")):
            lean[name] = value
    return lean


def _choice(choices: list[Schema], *, null: bool) -> Schema:
    """Return alternatives; unwrap a single one that is left without null."""
    rest = [choice for choice in choices if null or choice != {"type": "null"}]
    return rest[0] if len(rest) == 1 else {"anyOf": rest}


GRANT: Final = "lore.grant"
"""The key in the ASGI scope of what the authentication middleware grants."""

RECHECK_GRANT: Final = "lore.standing"
"""The key in the ASGI scope of a function that checks the grant again, for long connections."""

LOCAL: Final = "local"
"""The name of the grant of a program that runs as the owner of the memory, without a key."""


def find_grant(scope: Mapping[str, Any]) -> Grant | None:
    """Return the grant of a request, or None."""
    grant: Grant | None = scope.get(GRANT)
    return grant


async def is_still_granted(scope: Mapping[str, Any]) -> bool:
    """Return whether the grant of a request is still valid: a key may have been revoked."""
    ask: Callable[[], Awaitable[Grant | None]] | None = scope.get(RECHECK_GRANT)
    return ask is None or await ask() == find_grant(scope)


def caller_of(headers: Mapping[str, str], grant: Grant | None) -> Caller:
    """Return the caller by its headers: working folder and session."""
    return Caller(
        project=_decode_header(headers, "x-lore-project"),
        session=_decode_header(headers, "x-lore-session"),
        origin="user" if grant is not None and grant.browser else "assistant",
        within_s=_deadline_s(headers),
        keyed=grant is None or (grant.name != LOCAL and not grant.browser),
        may_write=grant is not None and grant.allows("write"),
        grant=grant,
    )


def _deadline_s(headers: Mapping[str, str]) -> float | None:
    """Return the caller's deadline in seconds, if it sends one."""
    value = headers.get("x-lore-within-ms", "")
    return int(value) / 1000 if value.isascii() and value.isdigit() and len(value) < 9 else None


def _decode_header(headers: Mapping[str, str], name: str) -> str:
    return check_name(unquote(headers.get(name, ""), errors="replace"), f"The header {name}")


def require_stored(memory: Memory, caller: Caller) -> None:
    """Raise if nothing is stored in the caller's folder."""
    if memory.sessions.is_excluded(caller.agent, caller.project):
        msg = "Nothing is stored in this folder: the setting capture.exclude names it."
        raise InvalidInput(msg)


def find_session(memory: Memory, caller: Caller) -> str:
    """Return the session of a caller, or an empty text if it is unknown.

    Agents do not say to an MCP server which session calls: then it is the live session of the
    project. If a caller names a session, no other is used.
    """
    if caller.session:
        return caller.session if memory.sessions.has_session(caller.session) else ""
    live = memory.sessions.find_live_session(caller.project)
    return live.id if live else ""
