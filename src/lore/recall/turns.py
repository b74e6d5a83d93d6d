"""The turns of a session: what was asked, given, recalled, logged and learned, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from lore.lazy_dataclass import dataclass
from lore.records import (
    Distillation,
    GivenItem,
    Message,
    ModelPrice,
    PromptLayers,
    Session,
    SessionSummary,
    Spend,
    TokenUse,
    Turn,
    TurnInjection,
    TurnLog,
    TurnRecall,
    TurnRequest,
)
from lore.store import (
    dialogue_state,
    distillations,
    fragments,
    items,
    messages,
    session_turns,
)
from lore.store.database import Connection
from lore.store.session_turns import TurnMessage
from lore.store.spend import token_classes
from lore.text import message_features, sentences

FindPrice = Callable[[str], ModelPrice | None]

MAX_MESSAGES = 5_000
"""Messages of a page of turns; a turn that is longer is counted up to here, and turns that begin
later are on the next page."""

_PROMPT_CHARS = 600
_TITLE_CHARS = 140
_MOST_GIVEN = 50


@dataclass(frozen=True, slots=True)
class _Material:
    """What happened in a page of turns, in order of time."""

    messages: Sequence[TurnMessage]
    requests: Sequence[TurnRequest]
    by_transcript: Sequence[TurnRequest]
    injected: Sequence[session_turns.Injected]
    recalled: Sequence[session_turns.Recalled]
    logs: Sequence[tuple[Distillation, int, int]]
    learned: dict[int, list[int]]
    titled: dict[int, GivenItem]
    by_id: dict[str, int]


def list_turns(
    db: Connection, session_n: int, session: Session, *, after: int, limit: int, price: FindPrice,
    max_messages: int = MAX_MESSAGES,
) -> tuple[list[tuple[tuple[int], Turn]], bool]:  # fmt: skip
    """Return turns of a session that begin after an ordinal, each with its key; are there more?"""
    starts = session_turns.turn_starts(db, session_n, after=after, limit=limit + 1)
    if not starts:
        return [], False
    end = starts[limit] - 1 if len(starts) > limit else messages.last_ordinal(db, session_n)
    rows = session_turns.messages_between(
        db, session_n, first=starts[0], last=end, limit=max_messages
    )
    if not rows:
        return [], False
    shown = _count_whole(starts[:limit], rows, max_messages)
    has_more = shown < len(starts)
    if has_more:
        end = starts[shown] - 1
        rows = [row for row in rows if row.ordinal <= end]
    starts = starts[:shown]
    since = session.started_at if after < 0 else rows[0].at
    until = _time_of(db, session_n, end + 1) if has_more else None
    material = _gather(db, session_n, session, rows, since=since, until=until, price=price)
    prompts = messages.get_messages(db, [row.n for row in rows if row.ordinal in set(starts)])
    number = session_turns.count_turns(db, session_n, until=starts[0])
    by_ordinal = {one.ordinal: one for one in prompts.values()}
    ends = [*(start - 1 for start in starts[1:]), end]
    # A turn ends where the next begins; what follows the last message belongs to it.
    times = [row.at for row in rows if row.ordinal in by_ordinal]
    return [
        (
            (first,),
            _turn(
                number + place + 1, by_ordinal[first], last, material,
                since if place == 0 else times[place],
                times[place + 1] if place + 1 < len(times) else None,
            ),
        )
        for place, (first, last) in enumerate(zip(starts, ends, strict=True))
        if first in by_ordinal
    ], has_more  # fmt: skip


def _count_whole(starts: Sequence[int], rows: Sequence[TurnMessage], max_messages: int) -> int:
    """Return how many turns the messages hold as a whole; at least one, which may be cut."""
    if len(rows) < max_messages:
        return len(starts)
    begun = sum(start <= rows[-1].ordinal for start in starts)
    return max(1, begun - 1)


def _time_of(db: Connection, session_n: int, ordinal: int) -> datetime | None:
    rows = session_turns.messages_between(db, session_n, first=ordinal, last=ordinal, limit=1)
    return rows[0].at if rows else None


def _gather(
    db: Connection,
    session_n: int,
    session: Session,
    rows: Sequence[TurnMessage],
    *,
    since: datetime,
    until: datetime | None,
    price: FindPrice,
) -> _Material:
    entries = session_turns.requests_between(db, session_n, since=since, until=until)
    requests = [_request(entry) for entry in entries]
    injected = session_turns.injections_between(db, session.external_id, since=since, until=until)
    recalled = session_turns.recalls_between(db, session_n, since=since, until=until)
    places = {row.id: row.ordinal for row in rows}
    learned: dict[int, list[int]] = {}
    for n, sources in session_turns.fragments_of_session(db, session_n):
        ordinals = [places[id_] for id_ in sources if id_ in places]
        if ordinals:
            learned.setdefault(min(ordinals), []).append(n)
    by_id = items.numbers_of(db, [id_ for one in recalled for id_ in one.hits[:_MOST_GIVEN]])
    ns = {one.item_n for one in injected} | set(by_id.values())
    ns |= {n for each in learned.values() for n in each}
    return _Material(
        rows,
        requests,
        [one for row in rows if (one := _transcript_request(row, price))],
        injected,
        recalled,
        _logs(db, session_n, rows[0].ordinal, rows[-1].ordinal),
        learned,
        describe_items(db, sorted(ns)),
        by_id,
    )


def _logs(
    db: Connection, session_n: int, first: int, last: int
) -> list[tuple[Distillation, int, int]]:
    """Return the distillations of generation 0 that cover some messages, with what they cover."""
    spans = [
        span
        for span in distillations.covered_spans(db, session_n)
        if span.first <= last and span.last >= first
    ]
    by_n = distillations.get_distillations(db, [span.n for span in spans])
    return [(by_n[span.n], span.first, span.last) for span in spans if span.n in by_n]


def _request(entry: Spend) -> TurnRequest:
    return TurnRequest(
        entry.at, entry.model, TokenUse(*token_classes(entry.usage)), entry.usd,
        entry.without_usd, entry.layer, entry.busts, entry.delay_ms, "gateway",
    )  # fmt: skip


def _transcript_request(row: TurnMessage, price: FindPrice) -> TurnRequest | None:
    """Return the request that a transcript counted, at list prices."""
    usage = row.usage
    if not usage:
        return None
    read, written = usage.get("cache_read_input_tokens", 0), usage.get(_WRITTEN, 0)
    fresh = usage.get("input_tokens", 0)
    if not row.model.startswith("claude"):  # others count cached tokens as input, too
        fresh = max(0, fresh - read)
    use = TokenUse(fresh, read, written, 0, usage.get("output_tokens", 0))
    known = price(row.model)
    usd = known.cost(use) if known else 0.0
    return TurnRequest(
        row.at, row.model, use, usd, usd,
        layer=None, busts=False, delay_ms=0, basis="transcript",
    )  # fmt: skip


_WRITTEN = "cache_creation_input_tokens"


def _turn(
    number: int,
    prompt: Message,
    last: int,
    material: _Material,
    since: datetime,
    until: datetime | None,
) -> Turn:
    def is_inside(at: datetime) -> bool:
        return since <= at and (until is None or at < until)

    rows = [row for row in material.messages if prompt.ordinal <= row.ordinal <= last]
    requests = tuple(one for one in material.requests if is_inside(one.at))
    if not requests:  # it did not go through the gateway
        requests = tuple(one for one in material.by_transcript if is_inside(one.at))
    tokens = TokenUse(*map(sum, zip(*(one.tokens.classes for one in requests), strict=True)))
    named = [*(one.model for one in requests), *(row.model for row in rows)]
    models = dict.fromkeys(filter(None, named))
    layers = [one.layer for one in requests if one.layer is not None]
    text = message_features.spoken_text(prompt.parts)
    learned = [n for row in rows for n in material.learned.get(row.ordinal, ())]
    return Turn(
        number=number,
        first=prompt.ordinal,
        last=last,
        message_id=prompt.id,
        started_at=prompt.created_at,
        ended_at=rows[-1].at if rows else prompt.created_at,
        prompt=text if len(text) <= _PROMPT_CHARS else f"{text[:_PROMPT_CHARS]}…",
        messages=last - prompt.ordinal + 1,
        tool_calls=sum(row.has_call for row in rows),
        tool_errors=sum(row.has_failed for row in rows),
        models=tuple(models),
        tokens=tokens,
        usd=sum(one.usd for one in requests),
        without_usd=sum(one.without_usd for one in requests),
        layer=layers[-1] if layers else None,
        requests=requests,
        injected=_injections(material, is_inside),
        recalled=tuple(_recall(one, material) for one in material.recalled if is_inside(one.at)),
        logs=tuple(
            _turn_log(log, first, end, prompt.ordinal, last)
            for log, first, end in material.logs
            if first <= last and end >= prompt.ordinal
        ),
        learned=tuple(material.titled[n] for n in learned if n in material.titled),
    )


def _injections(
    material: _Material, is_inside: Callable[[datetime], bool]
) -> tuple[TurnInjection, ...]:
    by_time: dict[datetime, list[GivenItem]] = {}
    for one in material.injected:
        if is_inside(one.at) and one.item_n in material.titled:
            by_time.setdefault(one.at, []).append(material.titled[one.item_n])
    return tuple(TurnInjection(at, tuple(titled)) for at, titled in by_time.items())


def _recall(one: session_turns.Recalled, material: _Material) -> TurnRecall:
    ns = [material.by_id[id_] for id_ in one.hits[:_MOST_GIVEN] if id_ in material.by_id]
    titled = tuple(material.titled[n] for n in ns if n in material.titled)
    return TurnRecall(one.at, one.verb, one.query, one.profile, one.took_ms, one.tokens, titled)


def _turn_log(log: Distillation, start: int, end: int, first: int, last: int) -> TurnLog:
    """Return a distillation with the lines that quote messages of a turn."""
    lines = log.text.splitlines()
    own = [
        line
        for line, sources in zip(lines, log.sources, strict=False)
        if any(first <= ordinal <= last for ordinal in sources)
    ]
    return TurnLog(log.id, log.generation, start, end, tuple(own))


def describe_items(db: Connection, ns: Sequence[int]) -> dict[int, GivenItem]:
    """Return items by title."""
    titled = {
        n: GivenItem(one.id, "fragment", one.summary, one.kind, one.origin)
        for n, one in fragments.by_number(db, ns).items()
    }
    rest = [n for n in ns if n not in titled]
    for n, message in messages.get_messages(db, rest).items():
        text = message_features.searchable_text(message.parts)
        title = sentences.one_line(text, _TITLE_CHARS)
        titled[n] = GivenItem(message.id, "message", title, message.role, message.origin)
    for n, log in distillations.get_distillations(db, rest).items():
        title = sentences.one_line(log.text, _TITLE_CHARS)
        titled[n] = GivenItem(log.id, "distillation", title, "", "assistant")
    sizes = items.tokens_of(db, list(titled))
    return {n: replace(one, tokens=sizes.get(n, 0)) for n, one in titled.items()}


def find_prompt_layers(
    db: Connection, session: SessionSummary, folders: Sequence[str]
) -> PromptLayers | None:
    """Return what the gateway carries from prompt to prompt in a session; None if it serves none.

    The gateway knows a session by its name, agent and folder, which a client need not send.
    """
    for folder in (*folders, ""):
        name = f"{session.external_id}\0{session.agent}\0{folder}"
        states = dialogue_state.find_states(db, name)
        if "pins" in states or "measured" in states:
            pins, measured = states.get("pins") or {}, states.get("measured") or {}
            return PromptLayers(
                layer=pins.get("layer", 0),
                floor=pins.get("floor", 0),
                prompt_tokens=measured.get("tokens", 0),
                whole_tokens=measured.get("whole_tokens", 0),
                cached_tokens=measured.get("cached_tokens", 0),
                distilled=len(pins.get("prefix", ())),
                annotated=len(pins.get("annotated", ())),
                knowledge=states.get("knowledge") or "",
                notes=len(states.get("notes") or ()),
                is_private=dialogue_state.is_private(db, name),
            )
    return None
