"""Base of the stream rewriters: hide recall calls from the client and join their responses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import orjson

from lore.gateway import sse
from lore.gateway.apis import json_values, markers
from lore.gateway.apis.adapter import MAX_RECALLS, MakeId, RecallCall, Request, Tool
from lore.gateway.apis.json_values import Json
from lore.gateway.apis.markers import Marker
from lore.gateway.plugin_protocol import Provider, upstream_error_body
from lore.gateway.sse import Event, EventReader, end_of_last


@dataclass(frozen=True, slots=True)
class _PendingCall:
    call: RecallCall
    block: Json
    place: int


class RecallCalls:
    """The recall calls of the current response, and the count for the whole request."""

    def __init__(self, make_id: MakeId) -> None:
        self._make_id = make_id
        self._completed = 0
        self._calls: list[_PendingCall] = []
        self.is_limit_reached = False
        """The limit was reached before this response; further calls end it."""
        self.markers: list[Marker] = []
        """The calls of this response with their results."""

    def __bool__(self) -> bool:
        return bool(self._calls)

    def start_round(self) -> None:
        """Start with the next response."""
        self._calls, self.markers = [], []
        self.is_limit_reached = self._completed >= MAX_RECALLS

    def add(self, call_id: str, arguments: Json, block: Json, place: int) -> tuple[str, str]:
        """Add a call in the API's format; return its marker id and the text for the client."""
        marker = self._make_id()
        self._calls.append(_PendingCall(RecallCall(call_id, marker, arguments), block, place))
        shown = (
            markers.own_paragraph(markers.SEARCHES_EXHAUSTED_TEXT)
            if self.is_limit_reached
            else markers.marker_text(marker)
        )
        return marker, shown

    def has_call_at(self, place: int) -> bool:
        """Return whether a call of this response has a position."""
        return any(one.place == place for one in self._calls)

    @property
    def pending(self) -> tuple[RecallCall, ...]:
        """Return the calls to run now."""
        if self.markers:
            return ()
        return tuple(one.call for one in self._calls[: max(0, MAX_RECALLS - self._completed)])

    @property
    def last_place(self) -> int:
        """Return the position of the last call in its response."""
        return max((one.place for one in self._calls), default=0)

    def add_results(
        self,
        results: Mapping[str, str],
        *,
        tail: int,
        is_mixed: bool,
        extra: Json,
    ) -> dict[str, str]:
        """Add results by call id; return the markers to store, by marker id."""
        if self.is_limit_reached:
            return {}
        allowed = [call.id for call in self.pending]
        self._completed += len(allowed)
        last = allowed[-1] if allowed and self._completed >= MAX_RECALLS else None
        stored: dict[str, str] = {}
        for one in self._calls:
            is_allowed = one.call.id in allowed
            result = (
                results.get(one.call.id, markers.SEARCH_FAILED_TEXT)
                if is_allowed
                else markers.SEARCH_LIMIT_TEXT
            )
            if one.call.id == last:
                result = f"{result}\n\n{markers.SEARCH_LIMIT_TEXT}"
            round_id = self._calls[0].call.marker
            marker = Marker(one.block, result, round_id, tail, is_mixed, one.place, extra)
            self.markers.append(marker)
            stored[one.call.marker] = marker.to_json()
        return stored


_BAD_GATEWAY = 502
_NOT_A_STREAM = b"The answer did not go on as the stream that it was."


class StreamRewriter(ABC):
    """Joins the responses of a tool loop into one: those with recall calls, and the last.

    For each upstream response: `feed` its chunks, call `end_response`, and send what both return.
    Then run `pending_calls`, pass their results to `add_results` and store what it returns. If
    `needs_follow_up`, send `follow_up_body` upstream and start again. Subclasses rewrite the events
    of their API.

    Until the first response names the recall tool, its bytes pass through unparsed, as most
    responses do to their end. Within the text of a stream the quoted name cannot occur, since its
    quotation marks would be escaped.
    """

    provider: ClassVar[Provider]
    """Whose error format the API has."""

    def __init__(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> None:
        self._streams = request.streams
        self._body = body
        self._tool = tool.name
        self._name = orjson.dumps(tool.name)
        self._passed_through: list[bytes] | None = []
        """The bytes of the first response that passed through; None once it is parsed."""
        self._partial_event = bytearray()
        """The bytes of an incomplete event; each byte is searched once."""
        self._recall_calls = RecallCalls(make_id)
        self._usages: list[Json] = []
        """The usage of each response."""
        self._round = 0
        self._start_round()

    def _start_round(self) -> None:
        """Start with the next response."""
        self._round += 1
        self._events = EventReader()
        self._document_body = bytearray()
        self._is_ended = False
        self._has_client_calls = False
        self._recall_calls.start_round()

    @property
    @abstractmethod
    def _waits_for_results(self) -> bool:
        """Return whether the response has ended so that the results of its calls come next."""

    @abstractmethod
    def _rewrite_event(self, event: Event) -> bytes:
        """Return the bytes of an event for the client."""

    @abstractmethod
    def _join_document(self, document: Json) -> Json | None:
        """Add a response that is one JSON document, and return it joined with earlier ones.

        Return None for anything else, such as an error.
        """

    @abstractmethod
    def _add_round(self, document: Json) -> None:
        """Add the response and the results of its recall calls to the request."""

    def _error_event(self, error: bytes) -> bytes:
        """Return the event of an error in a stream."""
        return sse.frame(error)

    @property
    def _tail(self) -> int:
        """Return the number of blocks after the last recall call of the response."""
        return 0

    @property
    def _extra_fields(self) -> Json:
        """Return the fields of the response that the client's history does not keep."""
        return {}

    @property
    def _is_recall_only(self) -> bool:
        """Return whether the response waits only for results of recall."""
        calls = bool(self._recall_calls) and not self._has_client_calls
        return calls and self._waits_for_results

    @property
    def _is_last_round(self) -> bool:
        return not self._is_recall_only or self._recall_calls.is_limit_reached

    def feed(self, chunk: bytes) -> bytes:
        """Add the next chunk, and return the bytes for the client."""
        if not self._streams:
            self._document_body += chunk
            return b""
        if self._passed_through is None:
            return self._rewrite_chunk(chunk)
        searched = len(self._partial_event)
        self._partial_event += chunk
        if self._partial_event.find(self._name, max(0, searched - len(self._name))) >= 0:
            return self._start_parsing(bytes(self._partial_event))
        end = end_of_last(self._partial_event, searched)
        if not end:
            return b""
        whole = bytes(self._partial_event[:end])
        del self._partial_event[:end]
        self._passed_through.append(whole)
        return whole

    @property
    def is_unchanged(self) -> bool:
        """Return whether the whole stream passed unchanged, because it does not name the tool."""
        return self._streams and self._passed_through is not None

    def end_response(self) -> bytes:
        """End the current response, and return the remaining bytes for the client."""
        self._is_ended = True
        if not self._streams:
            return self._rewrite_document(bytes(self._document_body))
        if self._passed_through is not None:
            return bytes(self._partial_event)
        return b"".join([self._rewrite_unfinished(event) for event in self._events.end()])

    def _rewrite_document(self, body: bytes) -> bytes:
        joined = self._join_document(json_values.read_object(body))
        if joined is None:
            return body
        if not self._is_last_round:
            return b""
        return body if self._round == 1 and not self._recall_calls else orjson.dumps(joined)

    def _rewrite_unfinished(self, event: Event) -> bytes:
        """Rewrite an event that was cut off; a JSON document instead of a stream is an error."""
        document = json_values.read_object(event.raw)
        if self._round == 1 or not document:
            return self._rewrite_event(event)
        return self.error_output(_BAD_GATEWAY, event.raw if "error" in document else _NOT_A_STREAM)

    def _start_parsing(self, come: bytes) -> bytes:
        """Parse what has passed through, to restore the state, and then the new bytes."""
        passed = b"".join(self._passed_through or ())
        self._passed_through, self._partial_event = None, bytearray()
        shown: list[bytes] = []
        end = 0
        for event in self._events.feed(passed + come):
            output = self._rewrite_event(event)
            start, end = end, end + len(event.raw)
            if end > len(passed):
                # More line ends than an event needs may have passed before it.
                shown.append(
                    output[max(0, len(passed) - start) :] if output is event.raw else output
                )
        return b"".join(shown)

    def _rewrite_chunk(self, chunk: bytes) -> bytes:
        return b"".join([self._rewrite_event(event) for event in self._events.feed(chunk)])

    @property
    def needs_follow_up(self) -> bool:
        """Return whether another request to the upstream is needed to complete the response."""
        return self._is_ended and not self._is_last_round

    @property
    def pending_calls(self) -> tuple[RecallCall, ...]:
        """Return the recall calls to run now."""
        return self._recall_calls.pending

    def add_results(self, results: Mapping[str, str]) -> dict[str, str]:
        """Add results by call id; return the markers to store, by marker id."""
        return self._recall_calls.add_results(
            results, tail=self._tail, is_mixed=self._has_client_calls, extra=self._extra_fields
        )

    def follow_up_body(self) -> bytes:
        """Return the body of the next request to the upstream."""
        document = json_values.parse_object(self._body)
        self._add_round(document)
        self._body = json_values.to_json_bytes(document)
        self._start_round()
        return self._body

    def error_output(self, status: int, body: bytes) -> bytes:
        """Return the bytes that end the response after an upstream error, in the API's format."""
        error = upstream_error_body(self.provider, status, body)
        return self._error_event(error) if self._streams else error


_MAX_INT = 2**63 - 1
"""The largest integer that JSON parsers accept."""


def sum_with_iterations(rounds: Sequence[Json]) -> Json:
    """Add up several usages, with each of them in `iterations`.

    Anthropic reports the rounds of its own tools in this way, and clients take the last one as the
    size of the conversation.
    """
    if len(rounds) == 1:
        return dict(rounds[0])
    return {**sum_usages(rounds), "iterations": [{**one, "type": "message"} for one in rounds]}


def sum_usages(rounds: Sequence[Json]) -> Json:
    """Add up the numbers of several usages at every depth; other values come from the last one."""
    return reduce(_add_usage, rounds, {})


def _add_usage(total: Json, more: Json) -> Json:
    combined = dict(total)
    for name, value in more.items():
        previous = combined.get(name)
        if isinstance(value, dict):
            combined[name] = _add_usage(previous if isinstance(previous, dict) else {}, value)
        elif isinstance(value, int) and not isinstance(value, bool):
            combined[name] = min(_MAX_INT, value + (previous if isinstance(previous, int) else 0))
        elif value is not None:
            combined[name] = value
        else:
            combined.setdefault(name, None)
    return combined
