"""Turning: what memory does with one request, from the client's words to what becomes of them."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from lore.context import turns
from lore.errors import LoreError
from lore.gateway import commands
from lore.gateway.annotations import Annotations
from lore.gateway.boundary import attempt
from lore.gateway.exchanges import Answer, Incoming, Outcome, Prepared
from lore.gateway.recalling import Recalling
from lore.gateway.speakers import Said, Talks, find_speaker, folder_of, is_errand
from lore.gateway.wires import anthropic, keys
from lore.gateway.wires.wire import Reply, ReplyReader, Request, Texts, Wire
from lore.memory import Memory
from lore.memory.composing import Composed, Composer
from lore.records import Speaker, TokenUse
from lore.text import marks
from lore.tools import catalogue
from lore.tools.tool import Caller

PROMPT_S = 0.08
"""So much of the time that a request has may go into finding what its prompt needs."""

UNNAMED = "gateway"
"""The agent of a session whose client does not say who it is."""

WIRES: Mapping[str, Wire] = {"anthropic": anthropic}

_COUNTING = "/count_tokens"
_PROVIDERS = {"anthropic": "anthropic", "chat": "openai", "responses": "openai", "gemini": "google"}


@dataclass(frozen=True, slots=True)
class Turn:
    """One request that is a turn of a conversation."""

    wire: Wire
    request: Request
    speaker: Speaker
    composed: Composed


class MemoryTurning:
    """Lets memory take part in what passes through the gateway."""

    def __init__(self, memory: Memory, composer: Composer) -> None:
        self._memory = memory
        self._composer = composer
        self._talks = Talks()
        self._annotations = Annotations()
        self._digesting = ThreadPoolExecutor(1, "lore-digesting")
        self._digested: set[str] = set()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Begin nothing more."""
        self._digesting.shutdown(wait=False, cancel_futures=True)

    def prepare(self, incoming: Incoming) -> Prepared:
        """Return how a request is forwarded."""
        wire = WIRES.get(incoming.wire)
        if wire is None or incoming.path.endswith(_COUNTING):
            return Prepared()
        request = wire.read(incoming.body())
        said = Said(incoming.headers, request.document, request.dialogue.entries)
        if is_errand(said):
            return Prepared()
        speaker = find_speaker(said) or Speaker(
            self._talks.find_session(request.dialogue.entries), UNNAMED, folder_of(said)
        )
        told = commands.carry_out(self._memory, self._composer, speaker, request.dialogue)
        if told:
            return _answered(wire, request, told)
        request = wire.expand(request, self._composer.desk.markers(speaker).get)
        return self._prepared(incoming, wire, request, speaker)

    def _prepared(
        self, incoming: Incoming, wire: Wire, request: Request, speaker: Speaker
    ) -> Prepared:
        own_tools = has_own_memory(request)
        gives = not own_tools and not marks.may_have_memory(_first_words(request))
        if gives:
            self._note_memory(speaker, request)
        composed = self._composer.compose(
            speaker,
            request.dialogue,
            provider=_PROVIDERS.get(incoming.wire, ""),
            gives_memory=gives,
        )
        tool = None
        if not composed.amnesic and self._offers_recall(own=own_tools):
            tool = commands.RECALL
        texts = Texts(composed.knowledge, composed.notes, self._annotations.of, tool)
        body = wire.rewrite(request, composed.plan, texts)
        turn = Turn(wire, request, speaker, composed)
        changed = body is not request.body
        splice = None
        if tool is not None:
            make_id = partial(secrets.token_hex, 8)
            inner = wire.open_splice(request, body, tool, make_id)
            splice = Recalling(inner, self._recall(speaker), self._keep(speaker))
        return Prepared(
            body=body if changed else None,
            headers=_told(composed),
            observer=Observing(turn, self._end),
            splice=splice,
        )

    def _offers_recall(self, *, own: bool) -> bool:
        wanted = self._memory.settings.gateway_recall
        return wanted == "on" or (wanted == "auto" and not own)

    def _note_memory(self, speaker: Speaker, request: Request) -> None:
        """Put what a new prompt clearly needs behind it."""
        last = request.dialogue.entries[-1] if request.dialogue.entries else None
        if last is None or speaker.parent or not turns.begins_turn(last):
            return
        asked = "\n".join(block.text for block in last.blocks if block.kind == "text")
        found = self._memory.for_prompt(
            asked, session=speaker.session, project=speaker.project, within_s=PROMPT_S
        )
        if found.text:
            self._composer.add_note(speaker, last, found.text)

    def _recall(self, speaker: Speaker) -> Callable[[Mapping[str, object]], str]:
        caller = Caller(speaker.project, speaker.session)

        def recall(arguments: Mapping[str, object]) -> str:
            try:
                return catalogue.call(self._memory, "recall", arguments, caller).text
            except LoreError as error:
                return " ".join(filter(None, (str(error), error.hint)))

        return recall

    def _keep(self, speaker: Speaker) -> Callable[[Mapping[str, str]], None]:
        return partial(self._composer.desk.keep_markers, speaker)

    def _end(self, turn: Turn, replies: list[Reply], outcome: Outcome) -> None:
        """Take note of what came of a turn: its size, its words, and what is to be condensed."""
        if outcome == "unused":
            return
        composer, speaker, dialogue = self._composer, turn.speaker, turn.request.dialogue
        faults = [reply.fault for reply in replies if reply.fault is not None]
        for fault in faults:
            if fault.is_too_long:
                composer.raise_floor(speaker, fault.prompt_tokens, fault.most_tokens)
        if replies and replies[0].use.input_tokens:
            composer.settle(speaker, dialogue, turn.composed, replies[0].use)
        entries = dialogue.entries
        for reply in replies:
            # One that was cut off may hold nothing.
            if reply.entry is not None and reply.entry.blocks:
                entries = (*entries, keys.following(entries, reply.entry))
        composer.record(speaker, entries, model=dialogue.model)
        if composer.needs_summaries(turn.composed):
            self._annotations.prepare(entries)
            self._digest(speaker.session)

    def _digest(self, session: str) -> None:
        """Have a session condensed in the background, unless that is under way."""
        with self._lock:
            if session in self._digested:
                return
            self._digested.add(session)
        self._digesting.submit(self._condense, session)

    def _condense(self, session: str) -> None:
        try:
            attempt("condense", partial(self._memory.distill, session))
        finally:
            with self._lock:
                self._digested.discard(session)


@dataclass(slots=True)
class Observing:
    """Reads what upstream answers; several answers where recall stood between them."""

    turn: Turn
    on_end: Callable[[Turn, list[Reply], Outcome], None]
    _pieces: list[list[bytes]] = field(default_factory=list)
    _statuses: list[int] = field(default_factory=list)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin to keep an answer."""
        del headers
        self._pieces.append([])
        self._statuses.append(status)

    def see(self, piece: bytes) -> None:
        """Keep a piece of it: it is read at the end, off the path."""
        self._pieces[-1].append(piece)

    def end(self, outcome: Outcome) -> None:
        """Read all that was kept."""
        replies = []
        for pieces, status in zip(self._pieces, self._statuses, strict=True):
            streams = self.turn.request.streams and status == 200
            reader: ReplyReader = self.turn.wire.open_reader(streams=streams)
            for piece in pieces:
                reader.feed(piece)
            replies.append(reader.end())
        self.on_end(self.turn, replies, outcome)


def has_own_memory(request: Request) -> bool:
    """Tell whether a client has the tools of Lore by itself."""
    return any("lore" in name.lower() and name.endswith("recall") for name in request.tools)


def _first_words(request: Request) -> str:
    """Return what stands in the place of a person's words: hooks put memory there."""
    return "\n".join(
        block.text
        for entry in request.dialogue.entries
        if entry.voice != "assistant"
        for block in entry.blocks
        if block.kind == "text"
    )


def _answered(wire: Wire, request: Request, text: str) -> Prepared:
    told = wire.answer(request, text)
    return Prepared(answer=Answer(told.status, told.headers, b"".join(told.chunks)))


def _told(composed: Composed) -> tuple[tuple[str, str], ...]:
    plan = composed.plan
    told = [("x-lore-layer", str(plan.layer)), ("x-lore-tokens", str(plan.tokens))]
    if plan.busts:
        told.append(("x-lore-bust", plan.why))
    if plan.unfit:
        told.append(("x-lore-unfit", "the current turn alone is longer than the model can read"))
    return tuple(told)


def total(replies: list[Reply]) -> TokenUse:
    """Return what all answers to a request took together."""
    uses = [reply.use for reply in replies]
    return TokenUse(
        sum(use.fresh_tokens for use in uses),
        sum(use.cache_read_tokens for use in uses),
        sum(use.cache_write_tokens for use in uses),
        sum(use.cache_write_1h_tokens for use in uses),
        sum(use.output_tokens for use in uses),
    )
