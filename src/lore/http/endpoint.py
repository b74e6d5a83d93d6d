"""Endpoint of the REST API: its arguments, its result, and the function that handles it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, overload

import orjson
from anyio import CapacityLimiter, to_thread
from pydantic import AfterValidator, BaseModel, Field, ValidationError
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from lore.errors import InvalidInput
from lore.http import middleware, request_limits
from lore.http.request_limits import MemoryThreads
from lore.memory import Memory
from lore.memory.context import MAX_CURSOR_CHARS, MAX_PAGE_SIZE
from lore.records import AccessScope, Page
from lore.text.name_limit import LONGEST_NAME, is_short
from lore.tools.tool import Arguments, Caller, caller_of

JSON_TYPE = "application/json"


A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[A]):
    """One REST endpoint; `item` is the type that its pages list, `result` the type that it returns.

    If `is_validated` is false, the function gets the raw arguments and validates them itself. Calls
    that `takes_long` selects use the endpoint's own `limiter`, so that they block no thread of
    others. `on_answered` gets each response, and whether it came too late for the caller.
    """

    method: Literal["GET", "POST"]
    path: str
    summary: str
    scope: AccessScope
    arguments: type[A]
    run: Callable[[Memory, A, Caller], object]
    result: Any = None
    item: Any = None
    tags: tuple[str, ...] = ("memory",)
    is_validated: bool = True
    limiter: CapacityLimiter | None = None
    takes_long: Callable[[A], bool] = lambda _arguments: True
    on_answered: Callable[[A, bytes, bool], None] | None = None

    def with_own_limiter(self) -> Endpoint[A]:
        """Return the endpoint for another app, which shares no limit with this one."""
        if self.limiter is None:
            return self
        return replace(self, limiter=CapacityLimiter(self.limiter.total_tokens))


async def handle_request(
    request: Request, endpoint: Endpoint[Any], memory: Memory, threads: MemoryThreads
) -> Response:
    """Run an endpoint in a thread and return its result as JSON.

    The time that a request waits for a thread counts against the caller's time limit.
    """
    came_s = time.monotonic()
    grant = middleware.require_scope(request.scope, endpoint.scope)
    raw = await _read_arguments(request, endpoint)
    arguments = validate(endpoint.arguments, raw) if endpoint.is_validated else raw
    caller = caller_of(request.headers, grant)

    def work() -> bytes:
        return to_json(endpoint.run(memory, arguments, caller.after(time.monotonic() - came_s)))

    if endpoint.limiter is not None and endpoint.takes_long(arguments):
        body = await request_limits.run_in_places(work, endpoint.limiter)
    else:
        body = await threads.run(work)
    if endpoint.on_answered is not None:
        is_late = (
            await request.is_disconnected() or caller.after(time.monotonic() - came_s).within_s == 0
        )
        endpoint.on_answered(arguments, body, is_late)
    return etag_response(request, body)


def etag_response(request: Request, body: bytes) -> Response:
    """Return a JSON response with an ETag, or 304 if the client has the same body."""
    if request.method not in ("GET", "HEAD"):
        return Response(body, 200, {"cache-control": "no-store"}, JSON_TYPE)
    tag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    client_tags = {
        one.strip().removeprefix("W/")
        for one in request.headers.get("if-none-match", "").split(",")
    }
    if tag in client_tags or "*" in client_tags:
        return Response(status_code=304, headers=headers)
    return Response(body, 200, headers, JSON_TYPE)


async def _read_arguments(request: Request, endpoint: Endpoint[Any]) -> dict[str, Any]:
    if endpoint.method == "GET":
        query = request.query_params.multi_items()
        arguments = dict(query)
        if len(arguments) < len(query):
            msg = "An argument occurs twice."
            raise InvalidInput(msg)
    else:
        arguments = await read_json_object(request)
    return _merge_path_arguments(arguments, request.path_params)


def _merge_path_arguments(arguments: Mapping[str, Any], path: Mapping[str, Any]) -> dict[str, Any]:
    if set(arguments) & set(path):
        msg = f"'{sorted(set(arguments) & set(path))[0]}' may only be given in the path."
        raise InvalidInput(msg)
    return {**arguments, **path}


async def read_json_object(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request; an empty body is an empty object."""
    try:
        body = await request.body()
    except ClientDisconnect as error:
        raise HTTPException(400, "The body is incomplete.") from error
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != JSON_TYPE:
        raise HTTPException(415, f"The body must be {JSON_TYPE}.")
    tree = await to_thread.run_sync(request_limits.parse_json, body)
    if not isinstance(tree, dict):
        raise HTTPException(422, "The body must be a JSON object.")
    return tree


def validate(model: type[A], arguments: Mapping[str, Any]) -> A:
    """Validate arguments with a model; error messages do not quote the input."""
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(step)[:60] for step in first["loc"])
        more = f" ({error.error_count()} in all)" if error.error_count() > 1 else ""
        msg = f"'{place}': {first['msg']}{more}." if place else f"{first['msg']}{more}."
        raise InvalidInput(msg) from None


def to_json(value: object) -> bytes:
    """Return records as JSON."""
    return orjson.dumps(value, default=_to_plain, option=orjson.OPT_NON_STR_KEYS)


def _to_plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be serialized to JSON")


_TOO_LONG: Final = f"String should have at most {LONGEST_NAME} bytes"


def _check_name(name: str) -> str:
    """Refuse a name that no database could index."""
    if not is_short(name):
        kind: Final = "name_too_long"
        raise PydanticCustomError(kind, _TOO_LONG)
    return name


Name = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_check_name)]
"""The name of what is stored: a path of a project, a session, an agent, an id."""

FilePath = Annotated[str, Field(max_length=4_096)]
"""As long as paths can be on Linux."""

Short = Annotated[str, Field(max_length=400), AfterValidator(_check_name)]
"""Names of sessions, calls, models and branches."""

Id = Annotated[Short, Field(min_length=1)]
"""An id, or the agent's own name of its session."""

Text = Annotated[str, Field(max_length=4_000_000)]
"""Half of the largest body, since JSON escapes make texts longer."""

Limit = Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE, description="Most items of a page.")]
Cursor = Annotated[
    str, Field(max_length=MAX_CURSOR_CHARS, description="'next' of the page before.")
]
InProject = Annotated[Name, Field(description="Path, name or id of a project; none for all.")]


class NoArguments(Arguments):
    """An endpoint without arguments."""


R = TypeVar("R")
Run = Callable[[Memory, A, Caller], R]


@overload
def get_endpoint(
    path: str, summary: str, arguments: type[A], run: Run[A, R], *, result: type[R]
) -> Endpoint[Any]: ...


@overload
def get_endpoint(
    path: str, summary: str, arguments: type[A], run: Run[A, Page[R]], *, item: type[R]
) -> Endpoint[Any]: ...


def get_endpoint(
    path: str, summary: str, arguments: type[Any], run: Any, *, result: Any = None, item: Any = None
) -> Endpoint[Any]:
    """Return a GET endpoint; the overloads tie the function to its arguments and result."""
    return Endpoint("GET", path, summary, "read", arguments, run, result, item, ("reading",))
