"""Turning: what memory does with one request, from the client's words to what becomes of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import astuple, replace
from functools import partial

from lore.context import silences
from lore.errors import BudgetSpent, InvalidInput
from lore.gateway import commands, paying, talks
from lore.gateway.annotations import Annotations
from lore.gateway.apis import anthropic, markers, remembered
from lore.gateway.apis.registry import WIRES
from lore.gateway.apis.wire import Reply, Request, Texts, Tool, Wire
from lore.gateway.boundary import attempt, log
from lore.gateway.errands import COUNTING, Errands
from lore.gateway.exchanges import Answer, Command, Incoming, Prepared
from lore.gateway.fetching import Awaited, AwaitedTurns
from lore.gateway.forgetting import Forgetting
from lore.gateway.glancing import is_cached_long
from lore.gateway.latest import LatestMarkers
from lore.gateway.paying import PROVIDERS, Ended
from lore.gateway.searching import Searching
from lore.gateway.speakers import (
    Said,
    agent_of,
    find_speaker,
    folder_of,
    is_aside,
    is_compaction,
    is_errand,
)
from lore.gateway.talks import Talks
from lore.gateway.till import Order, Till
from lore.gateway.turn import (
    Turn,
    is_given,
    may_offer,
    new_prompt,
    told_headers,
    with_answer,
)
from lore.memory import Memory
from lore.memory.composing import Composer
from lore.memory.holding import Composed
from lore.records import Course, Entry, Injection, Speaker

PROMPT_S = 0.08
"""So much of the time that a request has may go into finding what its prompt needs."""

WARM_S = 10.0
"""A start waits so long for the model and the price lists, which take one to three seconds: the
first request of a session would go out without memory, and the second begin differently."""

_TOOL_CHARS = sum(len(str(part)) for part in astuple(commands.RECALL))


class MemoryTurning:
    """Lets memory take part in what passes through the gateway."""

    def __init__(self, memory: Memory, composer: Composer) -> None:
        self._memory = memory
        self._composer = composer
        self._till = Till(memory)
        self._talks = Talks(composer.desk.find_talk)
        self._annotations = Annotations()
        self._latest = LatestMarkers()
        self._digesting = ThreadPoolExecutor(1, "lore-digesting")
        self._awaited = AwaitedTurns()
        self._errands = Errands(composer, self._till, self._latest, self._end_awaited)
        self._searching = Searching(memory, composer, self._latest)
        self.forgetting = Forgetting(composer.desk.era, self._let_go)
        self._digested: set[str] = set()
        self._warming: Future[object] | None = None
        self._lock = threading.Lock()

    def warm_up(self) -> None:
        """Begin to load what the first requests would have to wait for."""
        self._memory.load_prices()
        self._warming = self._digesting.submit(attempt, "warm up", self._load)
        self.forgetting.watch()

    def wait_until_warm(self, within_s: float = WARM_S) -> None:
        """Wait for what was begun, unless it takes too long."""
        if self._warming is not None:
            wait((self._warming,), within_s)

    def _load(self) -> None:
        self._memory.warm_up()
        self._memory.load_prices(wait_s=WARM_S)

    def close(self) -> None:
        """Begin nothing more."""
        self.forgetting.close()
        self._digesting.shutdown(wait=False, cancel_futures=True)
        self._searching.close()

    def _let_go(self, era: str) -> None:
        remembered.let_go()
        self._annotations.clear()
        self._latest.clear()
        self._composer.let_go(era)
        self._memory.let_go()
        self._awaited.keep(self._is_whole)

    def _is_whole(self, awaited: Awaited) -> bool:
        """Tell whether nothing of a turn was forgotten since its answer is awaited."""
        unstored = self._composer.desk.find_unstored(awaited.speaker, awaited.entries)
        return unstored <= awaited.unstored

    def prepare(self, incoming: Incoming) -> Prepared:
        """Return how a request is forwarded."""
        if not self._memory.settings.gateway_memory:
            return self.admit(incoming)
        wire = _wire_of(incoming)
        if wire is None:
            return Prepared()
        request, said = _read(wire, incoming)
        if is_errand(said):
            return self._errand(incoming, wire, request, said)
        with self._memory.database.read():  # All of it is asked at one moment, and in one go.
            speaker = self._speaker(said)
            command = self._command(wire, request, speaker)
            if command is not None:
                return Prepared(command=command)
            request = self._expanded(wire, request, speaker)
            composed = self._composed(incoming, request, speaker)
        return self._forwarded(incoming, wire, request, speaker, composed)

    def go_on(self, incoming: Incoming) -> Prepared | None:
        """Return how a request is forwarded as the last one of its session was."""
        wire = _wire_of(incoming)
        if wire is None or not self._memory.settings.gateway_memory:
            return None
        request, said = _read(wire, incoming)
        speaker = self._speaker(said, at_hand=True)
        if is_errand(said) or commands.find(speaker, request.dialogue) is not None:
            return None
        request = self._expanded(wire, request, speaker, at_hand=True)
        composed = self._composer.compose_held(
            speaker, request.dialogue, provider=PROVIDERS[incoming.wire]
        )
        if composed is None:
            record = partial(self._end_late, incoming)
            return self._errands.pass_on(
                incoming, wire, request, speaker=speaker, bare=True, on_end=record
            )
        return self._forwarded(incoming, wire, request, speaker, composed)

    def _speaker(self, said: Said, *, at_hand: bool = False) -> Speaker:
        return find_speaker(said) or self._talks.find_speaker(
            said.entries, agent_of(said), folder_of(said), at_hand=at_hand
        )

    def _expanded(
        self, wire: Wire, request: Request, speaker: Speaker, *, at_hand: bool = False
    ) -> Request:
        """Put back what markers stand for, if any: no call may stand where no tool is offered."""
        wanted = self._memory.settings.gateway_recall
        may_call = request.tools or may_offer(request, commands.RECALL, wanted)
        if may_call and markers.may_have_markers(request.body):
            return wire.expand(request, self._composer.markers(speaker, at_hand=at_hand).get)
        return request

    def find_command(self, incoming: Incoming) -> Command | None:
        """Return what a request that was not prepared in time asks of Lore itself, if it does."""
        wire = _wire_of(incoming)
        if not self._memory.settings.gateway_memory or wire is None:
            return None
        request, said = _read(wire, incoming)
        speaker = self._speaker(said, at_hand=True)
        return None if is_errand(said) else self._command(wire, request, speaker)

    def _command(self, wire: Wire, request: Request, speaker: Speaker) -> Command | None:
        """Return what a person typed to Lore, to be done where it may take its time."""
        typed = commands.find(speaker, request.dialogue)
        if typed is None:
            return None
        remembered.let_go()  # Nobody has looked whether its session is in amnesia.
        if typed.begins_amnesia:
            self._composer.hush(speaker)

        def carry_out() -> Answer:
            told = commands.carry_out(
                self._memory, self._composer, speaker, request.dialogue, typed
            )
            return wire.answer(request, told)

        return Command(carry_out, wire.answer(request, commands.excuse(typed)))

    def may_wait(self) -> bool:
        """Tell whether there is more to a request than its price."""
        return self._memory.settings.gateway_memory or self.is_limited()

    def is_limited(self) -> bool:
        """Tell whether there is a budget by now."""
        return self._memory.has_budget()

    def admit(self, incoming: Incoming, until_s: float = math.inf) -> Prepared:
        """Return how a request is forwarded that memory had no time for."""
        remembers = self._memory.settings.gateway_memory
        record = partial(self._end_late, incoming) if remembers else None
        return self._errands.admit(incoming, until_s, record)

    def _errand(self, incoming: Incoming, wire: Wire, request: Request, said: Said) -> Prepared:
        """Let a request pass that is no turn.

        A summary is made of the prompt that is cached, and so is what is asked on the side. Where
        either is asked for without tools, nothing may be called, and no call may stand in it.
        """
        known = find_speaker(said)
        if known is None:
            return self._errands.pass_on(incoming, wire, request)
        retold = self._was_amnesic(known)
        pass_on = partial(self._errands.pass_on, incoming, wire, speaker=known, retold=retold)
        if not is_compaction(said) and not is_aside(said):
            return pass_on(request)
        if request.tools:
            request = self._expanded(wire, request, known)
        compose = (
            self._composer.compose_whole if is_compaction(said) else self._composer.compose_held
        )
        composed = compose(known, request.dialogue)
        if composed is None:
            return pass_on(request)
        tool = self._offered(request, composed) if request.tools else None
        body, tool = self._rewritten(wire, request, composed, tool)
        if body is request.body:
            return pass_on(request)
        recalling = self._searching.splice(wire, request, known, body, tool) if tool else None
        return pass_on(request, body=body, relay=recalling)

    def _was_amnesic(self, speaker: Speaker) -> bool:
        """Tell whether a session ever was in amnesia.

        None of its requests is kept in mind then, nor while its parent is.
        """
        desk = self._composer.desk
        was, (_, amnesic) = desk.was_amnesic(speaker), desk.standing(speaker)
        if was or amnesic:
            remembered.let_go()
        return was

    def _composed(self, incoming: Incoming, request: Request, speaker: Speaker) -> Composed:
        gives = not is_given(speaker, request)
        joined = speaker.marks_what_it_adds
        silent = silences.is_silent(request.dialogue.entries, joined=joined)
        return self._composer.compose(
            speaker,
            request.dialogue,
            provider=PROVIDERS[incoming.wire],
            gives_memory=gives,
            note=self._note(speaker, request) if gives and not silent else None,
            least=self._till.pacing.least_layer(request.dialogue.model, PROVIDERS[incoming.wire]),
        )

    def _forwarded(
        self,
        incoming: Incoming,
        wire: Wire,
        request: Request,
        speaker: Speaker,
        composed: Composed,
    ) -> Prepared:
        """Return how a composed prompt is forwarded, paid for and listened to."""
        tool = self._offered(request, composed)
        body, tool = self._rewritten(wire, request, composed, tool)
        if composed.amnesic:
            remembered.let_go()
        limit = paying.output_limit(request.document, request.dialogue.model)
        long = is_cached_long(request.body)
        most = paying.most_of(incoming.wire, composed.plan.tokens, limit, long=long)
        order = Order(
            request.dialogue.model,
            paying.lengthened(most, _TOOL_CHARS if tool else 0),
            paying.service_of(request.document),
            request.streams,
            kind="turn",
            speaker=speaker,
            counted=composed.calibrated,
        )
        left_s = self._composer.cache_left_s(speaker)
        recalling = self._searching.splice(wire, request, speaker, body, tool) if tool else None
        turn = Turn(request, speaker, composed, wire, incoming.target, body, recalling)
        try:
            with self._till.open_bill(incoming, wire, order, cache_left_s=left_s) as bill:
                told = body is not request.body or composed.is_plain
                use = partial(self._composer.use, speaker, composed) if told else None
                on_end = partial(self._end_turn, turn)
                observer = self._till.observe(incoming, bill, on_end, on_use=use)
                if recalling is not None:
                    pay = partial(self._till.pay_further, incoming, observer, len(body))
                    recalling.pay_with(pay)
                return Prepared(
                    body=body if body is not request.body else None,
                    headers=told_headers(composed, bill.delay_s),
                    delay_s=bill.delay_s,
                    observer=observer,
                    relay=recalling,
                )
        except BudgetSpent as error:
            return self._till.refused(incoming, error)

    def _offered(self, request: Request, composed: Composed) -> Tool | None:
        """Return the tool that the gateway offers to a model, if it does."""
        without = composed.amnesic or (composed.bare and not request.is_expanded)
        may = may_offer(request, commands.RECALL, self._memory.settings.gateway_recall)
        return commands.RECALL if may and not without else None

    def _rewritten(
        self, wire: Wire, request: Request, composed: Composed, tool: Tool | None
    ) -> tuple[bytes, Tool | None]:
        """Return the prompt by its plan, and the tool that it offers; or all as it came.

        Of a conversation that the provider keeps, a request has the last words only.
        """
        if not request.has_history:
            return request.body, None
        if composed.amnesic:  # Nothing of memory is given, but for what thoughts hang on.
            body = request.body
            return anthropic.mend(body, self._latest.find) if wire is anthropic else body, None
        texts = Texts(composed.knowledge, composed.notes, self._annotations.of, tool)
        try:
            return wire.rewrite(request, composed.plan, texts), tool
        except InvalidInput:
            # No upstream would take such a prompt: what the client sent, it takes.
            log.warning("plan not legal", extra={"layer": composed.plan.layer})
            return request.body, None

    def _note(self, speaker: Speaker, request: Request) -> Injection | None:
        """Return what a new prompt clearly needs behind it."""
        asked = new_prompt(request)
        if not asked or speaker.parent:
            return None
        return self._memory.for_prompt(
            asked,
            session=speaker.session,
            project=speaker.project,
            within_s=PROMPT_S,
            counts=False,
        )

    def _end_turn(self, turn: Turn, ended: Ended) -> None:
        """Take note of what came of a turn: its cost, its words, and what is to be condensed."""
        plan, without, replies = turn.composed.plan, None, ended.replies
        paying.count(self._memory, ended)
        speaker = turn.speaker
        try:
            if replies and replies[0].use.input_tokens:
                without = self._composer.settle(
                    turn.speaker,
                    turn.request.dialogue,
                    turn.composed,
                    replies[0].use,
                    tool_chars=_TOOL_CHARS if turn.recalling is not None else 0,
                )
                if turn.body is turn.request.body:
                    without = None  # It went out as it came.
            if ended.outcome != "unused":
                speaker = self._record(turn, replies)
                if not turn.composed.amnesic:
                    entries = turn.request.dialogue.entries
                    self._await_rest(replies, speaker, entries, partial(self._record, turn))
        finally:
            # Session and project are known to the ledger once they are stored.
            reserved = replace(ended.bill.reserved, session=speaker.session)
            ended = replace(ended, bill=replace(ended.bill, reserved=reserved))
            course = Course(plan.layer, plan.busts, without=without)
            paying.settle(self._memory, ended, course)

    def _await_rest(
        self,
        replies: Sequence[Reply],
        speaker: Speaker,
        entries: tuple[Entry, ...],
        store: Callable[[Sequence[Reply]], object],
    ) -> None:
        """Keep a turn whose answer is written in the background, unless it is forgotten."""
        fetched_by = replies[-1].fetched_by if replies else ""
        if fetched_by:
            self.forgetting.look()
            unstored = self._composer.desk.find_unstored(speaker, entries)
            self._awaited.put(fetched_by, Awaited(speaker, entries, unstored, store))

    def _end_awaited(self, fetched_by: str, reply: Reply) -> None:
        """Store what was written in the background, once it is there."""
        self.forgetting.look()
        awaited = self._awaited.take(fetched_by)
        if awaited is not None:
            awaited.store([reply])

    def _record(self, turn: Turn, replies: Sequence[Reply]) -> Speaker:
        """Store what was said, and return whose words they are by what was answered."""
        composer, speaker = self._composer, turn.speaker
        for reply in replies:
            if reply.fault is not None and reply.fault.is_too_long:
                told = (reply.fault.prompt_tokens, reply.fault.most_tokens)
                composer.raise_floor(speaker, *told, layer=turn.composed.plan.layer)
        entries = turn.said(replies)
        if turn.recalling is not None and _has_silence(speaker, entries):
            remembered.let_go()  # What was asked further is read by now.
        named = talks.answered(speaker, entries[len(turn.request.dialogue.entries) :])
        if named is None:
            return speaker
        model, silent = turn.request.dialogue.model, turn.composed.amnesic
        composer.record(named, entries, model=model, silent=silent)
        if not silent and composer.needs_distilling(turn.composed):
            self._annotations.prepare(entries)
            self._digest(named.session)
        return named

    def _end_late(self, incoming: Incoming, ended: Ended) -> None:
        """Store a turn that memory had no time for, which may be the last of its session."""
        try:
            if ended.outcome != "unused":
                self._record_late(incoming, ended.replies, awaits=True)
        finally:
            self._till.settle(ended)

    def _record_late(
        self, incoming: Incoming, replies: Sequence[Reply], *, awaits: bool = False
    ) -> None:
        """Store what was said without memory.

        Nobody looked whether its session was in amnesia when it was asked: what may have been
        comes with the next request, or never.
        """
        wire = _wire_of(incoming)
        if wire is None:
            return
        request, said = _read(wire, incoming)
        errand = is_errand(said)
        speaker = find_speaker(said) if errand else self._speaker(said)
        if speaker is None or self._was_amnesic(speaker) or errand or speaker.parent:
            return
        if _has_silence(speaker, said.entries):
            return
        request = self._expanded(wire, request, speaker)
        entries = with_answer(request.dialogue.entries, replies)
        named = talks.answered(speaker, entries[len(request.dialogue.entries) :])
        if named is not None:
            self._composer.record(named, entries, model=request.dialogue.model)
        if awaits:
            record = partial(self._record_late, incoming)
            self._await_rest(replies, speaker, request.dialogue.entries, record)

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


def _wire_of(incoming: Incoming) -> Wire | None:
    """Return the wire of a request that costs something, if it is one that Lore reads."""
    return None if incoming.path.endswith(COUNTING) else WIRES.get(incoming.wire)


def _read(wire: Wire, incoming: Incoming) -> tuple[Request, Said]:
    """Read a request; one with an amnesia in its history is not kept in mind for the next."""
    request = wire.read(incoming.body(), incoming.target)
    said = Said(incoming.headers, request.document, request.dialogue.entries)
    speaker = find_speaker(said) or Speaker("", agent_of(said))
    if _has_silence(speaker, said.entries):
        remembered.let_go()
    return request, said


def _has_silence(speaker: Speaker, entries: Sequence[Entry]) -> bool:
    """Tell whether anything in a history was said in amnesia, as it tells itself."""
    return bool(silences.find_silent(entries, joined=speaker.marks_what_it_adds))
