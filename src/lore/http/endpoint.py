"""An endpoint of the REST interface: what it takes and gives back, and the function that does it.

Like a tool it is told once, and served and documented from that.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import orjson
from anyio import CapacityLimiter, to_thread
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from lore.errors import InvalidInput
from lore.http import gate, limits
from lore.memory import Memory
from lore.records import AccessScope
from lore.tools.callers import caller_of
from lore.tools.tool import Caller

JSON = "application/json"


A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[A]):
    """One endpoint; `item` is what a page of it lists, `result` what it gives back whole.

    One that is not `checked` here is handed its arguments by name, and checks them itself. What
    `takes_long` has a `limiter` of its own, and keeps no thread from the others. `after` learns of
    each answer, and whether it came too late for who had asked.
    """

    method: Literal["GET", "POST"]
    path: str
    summary: str
    needs: AccessScope
    arguments: type[A]
    run: Callable[[Memory, A, Caller], object]
    result: Any = None
    item: Any = None
    tags: tuple[str, ...] = ("memory",)
    checked: bool = True
    limiter: CapacityLimiter | None = None
    takes_long: Callable[[A], bool] = lambda _arguments: True
    after: Callable[[A, bytes, bool], None] | None = None


async def answer(request: Request, endpoint: Endpoint[Any], memory: Memory) -> Response:
    """Do what a request asks of an endpoint, in a thread, and return that as JSON.

    What the caller waits for a thread counts as time that it waits.
    """
    came_s = time.monotonic()
    grant = gate.require(request.scope, endpoint.needs)
    given = await _given(request, endpoint)
    arguments = validated(endpoint.arguments, given) if endpoint.checked else given
    caller = caller_of(request.headers, grant)
    body = await to_thread.run_sync(
        lambda: as_json(endpoint.run(memory, arguments, caller.after(time.monotonic() - came_s))),
        abandon_on_cancel=True,
        limiter=endpoint.limiter if endpoint.takes_long(arguments) else None,
    )
    if endpoint.after is not None:
        gone = (
            await request.is_disconnected() or caller.after(time.monotonic() - came_s).within_s == 0
        )
        endpoint.after(arguments, body, gone)
    return tagged(request, body)


def tagged(request: Request, body: bytes) -> Response:
    """Return JSON; a reader who has it already is told so."""
    if request.method not in ("GET", "HEAD"):
        return Response(body, 200, {"cache-control": "no-store"}, JSON)
    tag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    known = {
        one.strip().removeprefix("W/")
        for one in request.headers.get("if-none-match", "").split(",")
    }
    if tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(body, 200, headers, JSON)


async def _given(request: Request, endpoint: Endpoint[Any]) -> dict[str, Any]:
    """Return the arguments of a request, by name."""
    if endpoint.method == "GET":
        query = request.query_params.multi_items()
        named = dict(query)
        if len(named) < len(query):
            msg = "An argument is given twice."
            raise InvalidInput(msg)
    else:
        named = await read_object(request)
    return _joined(named, request.path_params)


def _joined(named: Mapping[str, Any], path: Mapping[str, Any]) -> dict[str, Any]:
    if set(named) & set(path):
        msg = f"'{sorted(set(named) & set(path))[0]}' stands in the path, and nowhere else."
        raise InvalidInput(msg)
    return {**named, **path}


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object that is the body of a request; no body is an empty one."""
    try:
        body = await request.body()
    except ClientDisconnect as error:
        raise HTTPException(400, "The body was not sent to its end.") from error
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != JSON:
        raise HTTPException(415, f"The body has to be {JSON}.")
    tree = await to_thread.run_sync(limits.parsed, body)
    if not isinstance(tree, dict):
        raise HTTPException(422, "The body is not a JSON object.")
    return tree


def validated(model: type[A], given: Mapping[str, Any]) -> A:
    """Return arguments that fit a model; what does not fit is told without quoting it."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(step)[:60] for step in first["loc"])
        more = f" ({error.error_count()} in all)" if error.error_count() > 1 else ""
        msg = f"'{place}': {first['msg']}{more}." if place else f"{first['msg']}{more}."
        raise InvalidInput(msg) from None


def as_json(value: object) -> bytes:
    """Return records as JSON."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    msg = f"{type(value).__name__} has no JSON"
    raise TypeError(msg)
