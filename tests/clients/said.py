"""What was said in each session, told by the upstream's exchanges and not by any transcript."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tests.clients.upstream import WIRES, Exchange

Kind = Literal["prompt", "thinking", "text", "call", "result"]
SessionOf = Callable[[Exchange], tuple[str, str]]
"""Tells the session and the subagent (or nothing) that an exchange belongs to."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing said, in order.

    What was broken off may be stored in part. An input or a failure that is None is not told.
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
class Talk:
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
        """The talk as a document."""
        return asdict(self)


def read_talk(document: dict[str, Any]) -> Talk:
    """Read a talk from its document."""
    told = {name: [Event(**one) for one in document[name]] for name in ("events", "client_events")}
    return Talk(document["session"], document["agent"], **told, refused=document["refused"])


def talks(exchanges: Iterable[Exchange], session_of: SessionOf) -> list[Talk]:
    """Put the exchanges together to what was said, session by session."""
    found: dict[tuple[str, str], Talk] = {}
    for exchange in exchanges:
        if exchange.wire is None:
            continue
        place = session_of(exchange)
        talk = found.setdefault(place, Talk(*place))
        if exchange.speaker == "client":
            talk.client_events += reply_events(exchange)
            continue
        add_results(talk, exchange)
        if exchange.step == 0 and exchange.cue not in talk.texts("prompt"):
            talk.events.append(Event("prompt", exchange.cue, exchange.speaker))
        if exchange.said is None:
            talk.refused.append(exchange.cue)
        elif exchange.cue in talk.refused:
            talk.refused = [cue for cue in talk.refused if cue != exchange.cue]
        forget_broken(talk, exchange)
        talk.events += reply_events(exchange)
    return list(found.values())


def forget_broken(talk: Talk, exchange: Exchange) -> None:
    """Drop a reply that broke off, once the client has asked for it again."""
    if exchange.said and exchange.complete:
        again = [(event.kind, event.text, event.call_id) for event in reply_events(exchange)]
        talk.events = [
            event
            for event in talk.events
            if event.complete or (event.kind, event.text, event.call_id) not in again
        ]


def add_results(talk: Talk, exchange: Exchange) -> None:
    """Add the results that are new in this request and belong to calls of this talk."""
    assert exchange.wire
    assert exchange.body
    made = {event.call_id for event in talk.calls()}
    known = {event.call_id for event in talk.results()}
    for turn in WIRES[exchange.wire].read(exchange.body).turns:
        for result in turn.results:
            if result.call_id in made - known:
                known.add(result.call_id)
                talk.events.append(
                    Event("result", result.text, call_id=result.call_id, failed=result.failed)
                )


def reply_events(exchange: Exchange) -> list[Event]:
    said = exchange.said
    if said is None:
        return []
    events = []
    if said["thinking"]:
        events.append(Event("thinking", said["thinking"], complete=exchange.complete))
    if said["text"]:
        events.append(Event("text", said["text"], complete=exchange.complete))
    events += [
        Event(
            "call",
            call_id=call["id"],
            name=call["name"],
            input=call["input"],
            complete=exchange.complete,
        )
        for call in said["calls"]
    ]
    return events
