"""The conversation of each session, read from the upstream's exchanges and not from transcripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tests.upstream import ReceivedRequest, SceneScript, Upstream
from tests.upstream.apis import parse_prompt
from tests.upstream.scenes import Speaker
from tests.upstream.script import ApiName, Response

Kind = Literal["prompt", "thinking", "text", "call", "result"]
SECRET_HEADERS = {"authorization", "x-api-key", "api-key", "cookie"}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its reply; a cue is there where the script had a reply."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any] | None
    status: int
    api: ApiName
    cue: str = ""
    speaker: Speaker = "person"
    step: int = 0
    reply: dict[str, Any] | None = None
    """The thinking, the text and the calls of the reply."""

    complete: bool = True
    problem: str = ""


SessionOf = Callable[[Exchange], tuple[str, str]]
"""Returns the session and the subagent (or "") that an exchange belongs to."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a conversation.

    An incomplete one may be stored in part. An input or a failure that is None is unknown.
    """

    kind: Kind
    text: str = ""
    speaker: str = ""
    call_id: str = ""
    name: str = ""
    input: Any = None
    failed: bool | None = None
    complete: bool = True


@dataclass
class Conversation:
    """The events of one session, or of one subagent in it."""

    session: str
    agent: str = ""
    events: list[Event] = field(default_factory=list)
    client_events: list[Event] = field(default_factory=list)
    """Of requests that the client made by itself: titles and summaries are no turns."""

    refused: list[str] = field(default_factory=list)
    """Prompts that the provider answered with an error to the end."""

    def texts(self, kind: Kind) -> list[str]:
        """List the texts of one kind in order."""
        return [event.text for event in self.events if event.kind == kind]

    def calls(self) -> list[Event]:
        """List the calls of tools in order."""
        return [event for event in self.events if event.kind == "call"]

    def results(self) -> list[Event]:
        """List the results of tools in order."""
        return [event for event in self.events if event.kind == "result"]

    def as_json(self) -> dict[str, Any]:
        """Return the conversation as a JSON document."""
        return asdict(self)


def parse_conversation(document: dict[str, Any]) -> Conversation:
    """Read a conversation from its JSON document."""
    events = {
        name: [Event(**one) for one in document[name]] for name in ("events", "client_events")
    }
    return Conversation(
        document["session"], document["agent"], **events, refused=document["refused"]
    )


def read_exchanges(upstream: Upstream, script: SceneScript) -> list[Exchange]:
    """Return what an upstream received and replied, in the order of arrival."""
    requests = sorted(upstream.requests, key=lambda request: request.number)
    return [_exchange(request, script) for request in requests]


def _exchange(request: ReceivedRequest, script: SceneScript) -> Exchange:
    return Exchange(
        request.number,
        request.method,
        request.target,
        headers={
            name: "hidden" if name in SECRET_HEADERS else value for name, value in request.headers
        },
        body=request.json,
        status=request.status,
        api=request.api,
        cue=request.cue,
        speaker=script.speakers.get(request.cue, "person"),
        step=request.step,
        reply=_reply(request.response) if request.response else None,
        complete=request.outcome == "complete",
        problem=request.problem,
    )


def _reply(response: Response) -> dict[str, Any]:
    calls = [
        {"id": call_id, "name": call.name, "input": call.freeform or dict(call.arguments)}
        for call_id, call in response.calls
    ]
    return {"thinking": response.thinking, "text": response.text, "calls": calls}


def read_conversations(exchanges: Iterable[Exchange], session_of: SessionOf) -> list[Conversation]:
    """Join the exchanges to one conversation per session or subagent."""
    conversations: dict[tuple[str, str], Conversation] = {}
    for exchange in exchanges:
        if not exchange.cue:
            continue
        place = session_of(exchange)
        conversation = conversations.setdefault(place, Conversation(*place))
        if exchange.speaker == "client":
            conversation.client_events += reply_events(exchange)
            continue
        add_results(conversation, exchange)
        if exchange.step == 0 and exchange.cue not in conversation.texts("prompt"):
            conversation.events.append(Event("prompt", exchange.cue, exchange.speaker))
        if exchange.reply is None:
            conversation.refused.append(exchange.cue)
        elif exchange.cue in conversation.refused:
            conversation.refused = [cue for cue in conversation.refused if cue != exchange.cue]
        forget_broken(conversation, exchange)
        conversation.events += reply_events(exchange)
    return list(conversations.values())


def forget_broken(conversation: Conversation, exchange: Exchange) -> None:
    """Drop a reply that broke off, once the client has asked for it again."""
    if exchange.reply and exchange.complete:
        again = [(event.kind, event.text, event.call_id) for event in reply_events(exchange)]
        conversation.events = [
            event
            for event in conversation.events
            if event.complete or (event.kind, event.text, event.call_id) not in again
        ]


def add_results(conversation: Conversation, exchange: Exchange) -> None:
    """Add the results that are new in this request and belong to calls of this conversation."""
    assert exchange.body
    made = {event.call_id for event in conversation.calls()}
    known = {event.call_id for event in conversation.results()}
    for turn in parse_prompt(exchange.api, exchange.body).turns:
        for result in turn.results:
            if result.call_id in made - known:
                known.add(result.call_id)
                conversation.events.append(
                    Event("result", result.text, call_id=result.call_id, failed=result.failed)
                )


def reply_events(exchange: Exchange) -> list[Event]:
    reply = exchange.reply
    if reply is None:
        return []
    events = []
    if reply["thinking"]:
        events.append(Event("thinking", reply["thinking"], complete=exchange.complete))
    if reply["text"]:
        events.append(Event("text", reply["text"], complete=exchange.complete))
    events += [
        Event(
            "call",
            call_id=call["id"],
            name=call["name"],
            input=call["input"],
            complete=exchange.complete,
        )
        for call in reply["calls"]
    ]
    return events
