"""Text that sessions and hooks inject into prompts without a question.

An agent waits meanwhile: nothing here embeds waiting items or waits for a write.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lore import projects, telemetry
from lore.context import prompt_text
from lore.context.prompt_text import PromptText
from lore.errors import InvalidInput, LoreError, NotFound
from lore.memory.context import MemoryContext, MemoryPart
from lore.memory.digest import Digest
from lore.memory.sessions import Sessions
from lore.projects import ProjectFinder
from lore.recall import prompt_hits
from lore.recall.prompt_hits import KnownItems
from lore.records import (
    CaptureResult,
    Handoff,
    InjectedItem,
    Injection,
    OpenWork,
    PromptCandidate,
)
from lore.store import dialogue_state, fragments, items, native_rows, sessions
from lore.store.database import Connection
from lore.text import call_text, goals, message_features, tokens
from lore.text.private_text import hide_private
from lore.validation import Count, Seconds, validate_methods

BRIEFING_TOKENS = 500
"""From the specification: the budget for the start of a session."""

TRANSCRIPT_DEADLINE_S = 20.0
"""The deadline for reading a transcript at the end of a turn, some hundred megabytes;

the next turn or the daemon reads the rest.
"""

EMPTY_INJECTION = Injection()

_HELPER = "/agent-"
"""Separates the parent's name from the subagent's in a session name of Claude Code."""

_MIN_REQUESTS = 10
"""Requests after which a session counts as substantial work; most sessions have fewer."""

_ANY_PROMPT = "What was decided?"


@validate_methods
class Prompts(MemoryPart):
    """Select what sessions and hooks inject into prompts, and capture their turns."""

    def __init__(self, context: MemoryContext, sessions: Sessions, digest: Digest) -> None:
        super().__init__(context)
        self._sessions = sessions
        self._digest = digest

    def begin_session(
        self,
        session: str,
        *,
        project: str = "",
        agent: str = "",
        condensed: bool = False,
        budget_tokens: Count = BRIEFING_TOKENS,
        within_s: Seconds | None = None,
        counts: bool = True,
    ) -> Injection:
        """Return the text for the start of a session: instructions, past sessions, knowledge.

        What `agent` keeps in files of its own is left out, because it reads those itself.
        A `condensed` session has lost what was injected, so that it may be injected again. After
        `within_s` the result is empty, as in `for_prompt`; `counts` is as there. The content of a
        fragment that is shown by title only may still be injected later.
        """
        started = time.perf_counter()
        if self.is_quiet(session) or _is_late(started, within_s):
            return EMPTY_INJECTION
        from lore.recall import session_start

        session = self._redactor.redact(session)
        if condensed and not self._database.read_only:
            with suppress(LoreError):
                self._database.submit(lambda db: dialogue_state.clear_injections(db, session))
        with self._database.read() as db:
            project_n = self._project_of(db, project)
            family = _family(db, session)
            work = self._open_work(db, project_n, family, condensed=condensed)
            ongoing = [sessions.get_session_number(db, one.session_id) for one in work]
            briefing = session_start.gather_briefing(
                self._sources, db, project_n=project_n, without=(*family, *ongoing), agent=agent
            )
            briefing = replace(
                briefing, work=work, handoffs=self._handoffs(db, project_n, family, agent)
            )
            ids_shown = [hit.id for hit in briefing.standing]
            ids_shown += [one.id for one in briefing.suggested]
            ids_shown += [one.source for one in work if one.source]
            ids_shown += [past.id for past in briefing.past] + [id_ for id_, *_ in briefing.roots]
            short = items.short_ids(db, list(dict.fromkeys(ids_shown))) if ids_shown else {}
            ns = items.numbers_of(db, ids_shown)
            roots = fragments.by_number(db, [ns[id_] for id_, *_ in briefing.roots if id_ in ns])
        worded = prompt_text.format_session_start(briefing, short, budget_tokens=budget_tokens)
        if _is_late(started, within_s):
            return EMPTY_INJECTION
        texts = {root.id: root.content for root in roots.values() if root.content in worded.text}
        texts |= {past.id: past.goal for past in briefing.past}
        texts |= {hit.id: hit.text for hit in briefing.standing}
        texts |= {one.id: one.text for one in briefing.suggested}
        texts |= {one.source: one.state.task for one in work if one.source}
        ids = tuple(id_ for id_ in worded.ids if id_ in texts and id_ in ns)
        injected = _injected_items(ids, ns, texts)
        if counts:
            self._record(session, injected)
            self._note_handoffs(session, briefing.handoffs[:1])
        return _injection(worded, injected)

    def _note_handoffs(self, session: str, shown: Sequence[Handoff]) -> None:
        """Note the handoff that a session was given: it is taken over once a turn has ended."""
        if shown and session and not self._database.read_only:
            now, ids = self._database.now(), [one.id for one in shown]
            with suppress(LoreError):
                self._database.submit(
                    lambda db: dialogue_state.put_state(db, session, "handoffs", ids, now=now)
                )

    def _open_work(
        self, db: Connection, project_n: int, family: Sequence[int], *, condensed: bool
    ) -> tuple[OpenWork, ...]:
        """Return what a session goes on with: its own work after a compaction, or open work."""
        from lore.tasks import open_work

        own = open_work.find_own_work(db, family[0]) if condensed and family else None
        if own is not None:
            return (own,)
        now = self._database.now()
        number = project_n or None
        return tuple(open_work.find_open_work(db, number, without=family, now=now))

    def _handoffs(
        self, db: Connection, project_n: int, family: Sequence[int], agent: str
    ) -> tuple[Handoff, ...]:
        from lore.tasks import open_work

        now = self._database.now()
        number = project_n or None
        return tuple(open_work.find_handoffs(db, number, to_agent=agent, without=family, now=now))

    def for_prompt(
        self,
        prompt: str,
        *,
        session: str = "",
        project: str = "",
        agent: str = "",
        budget_tokens: Count | None = None,
        threshold: float | None = None,
        within_s: Seconds | None = None,
        now: datetime | None = None,
        counts: bool = True,
    ) -> Injection:
        """Return memory that clearly concerns a prompt and is new to its session.

        Only words of people and assistants from other sessions qualify, and not the instructions
        that `agent` has in its prompt anyway. Changes to memory that the
        session has had come first, each once. After `within_s` the result is empty and does not
        count as injected. Without `counts` the caller reports the injection with
        `record_injection`.
        """
        started = time.perf_counter()
        if self.is_quiet(session) or _is_late(started, within_s):
            return EMPTY_INJECTION
        session = self._redactor.redact(session)
        least = self._settings.inject_threshold if threshold is None else threshold
        budget = budget_tokens or self._settings.inject_budget_tokens
        with self._database.read() as db:
            news = self._news(db, session, project, agent, budget)
            with telemetry.span("inject", {telemetry.OPERATION: "retrieval"}) as span:
                fits = self._find_candidates(
                    prompt, session, project, now, least, _known_items(db, session, agent, news)
                )
                span.set("lore.candidates", len(fits))
            passing = [fit.hit for fit in prompt_text.select_fits(prompt, fits, least)]
            own = native_rows.instructions_of_agent(db, [hit.id for hit in passing], agent)
            passing = [hit for hit in passing if hit.id not in own]
            fresh = _fresh(db, session, {hit.id: hit.text for hit in passing})
        worded = prompt_text.format_hits(
            [hit for hit in passing if hit.id in fresh.texts and hit.id not in news.shown],
            fresh.short,
            budget_tokens=budget - tokens.count(news.worded.text),
        )
        if _is_late(started, within_s):
            return EMPTY_INJECTION
        injected = (*news.injected, *_injected_items(worded.ids, fresh.ns, fresh.texts))
        if counts:
            self._record(session, injected)
        both = "\n".join(filter(None, (news.worded.text, worded.text)))
        return _injection(PromptText(both, (*news.worded.ids, *worded.ids)), injected)

    def record_injection(self, session: str, injection: Injection) -> None:
        """Record what a session was given, without waiting for the write."""
        self._record(self._redactor.redact(session), injection.given)

    def _news(
        self, db: Connection, session: str, project: str, agent: str, budget_tokens: int
    ) -> _News:
        """Return changes to memory since the session started."""
        if not session:
            return _News()
        from lore.recall import session_start

        family = _family(db, session)
        own = [sessions.get_session(db, n) for n in family]
        began = [
            dialogue_state.first_injection_at(db, session),
            *(one.started_at for one in own[:1]),
        ]
        changes = session_start.find_news(
            db,
            session,
            project_n=self._project_of(db, project),
            without=[one.id for one in own],
            since=min(filter(None, began), default=None),
            agent=agent,
        )
        fresh = (*changes.new, *changes.decided, *changes.changed)
        pieces = [*fresh]
        for piece, heir in changes.gone:
            pieces += [piece, heir] if heir else [piece]
        if not pieces:
            return _News()
        worded = prompt_text.format_news(
            [(one.id, one.at, one.text) for one in changes.new],
            [(one.id, one.at, one.text) for one in changes.decided],
            [(one.id, one.at, one.text) for one in changes.changed],
            [(one.id, heir.id if heir else "", heir.text if heir else "")
             for one, heir in changes.gone],
            items.short_ids(db, list(dict.fromkeys(one.id for one in pieces))),
            budget_tokens=budget_tokens,
        )  # fmt: skip
        shown = {*worded.ids}
        injected = [
            InjectedItem(one.n, message_features.word_fingerprint(one.text))
            for one in fresh
            if one.id in shown
        ]
        for piece, heir in changes.gone:
            if piece.id in shown:
                injected.append(InjectedItem(piece.n, dialogue_state.GONE_DIGEST))
                injected += (
                    [InjectedItem(heir.n, message_features.word_fingerprint(heir.text))]
                    if heir
                    else []
                )
        return _News(worded, tuple(injected), frozenset(one.id for one in pieces))

    def warm_up(self) -> None:
        """Load what the first prompt would wait for: modules, the model and the vector index."""
        from lore.tasks import corrections, disclosure, task_work  # noqa: F401 - only to load them

        with suppress(LoreError):
            self.begin_session("")
            self.find_candidates(_ANY_PROMPT)
            sources = self._sources
            [vector] = sources.embedder.embed([_ANY_PROMPT], query=True)
            sources.nearest(vector, 1)

    def find_candidates(
        self,
        prompt: str,
        *,
        session: str = "",
        project: str = "",
        now: datetime | None = None,
        threshold: float = 0.0,
    ) -> list[PromptCandidate]:
        """Return candidates for a prompt, best first, that reach a probability.

        A prompt that only says 'go on', or contains only output, has no candidates. Without an
        embedder nothing is certain enough for a threshold.
        """
        return self._find_candidates(prompt, session, project, now, threshold)

    def _find_candidates(
        self,
        prompt: str,
        session: str,
        project: str,
        now: datetime | None,
        threshold: float,
        known: KnownItems = prompt_hits.knows_none,
    ) -> list[PromptCandidate]:
        request = goals.parse_request(prompt)
        if request is None or not request.real:
            return []
        if threshold > 0 and not self._sources.embedder.dimension:
            return []
        session = self._redactor.redact(session)
        with self._database.read() as db:
            try:
                return prompt_hits.find_prompt_hits(
                    self._sources,
                    self._redactor.redact(hide_private(request.text)),
                    project_n=self._project_of(db, project),
                    without=_family(db, session),
                    now=now or self._database.now(),
                    threshold=threshold,
                    known=known,
                )
            except InvalidInput:
                return []  # no word to search for

    def for_error(
        self,
        tool: str,
        given: str,
        output: str,
        *,
        session: str = "",
        project: str = "",
        failed: bool = False,
        within_s: Seconds | None = None,
    ) -> Injection:
        """Return known fixes for an error that a tool has just met.

        `given` is the input of the tool; `output` is analyzed but never quoted.
        """
        started = time.perf_counter()
        call = call_text.read_call(tool, given)
        if not output.strip() or self.is_quiet(session) or _is_late(started, within_s):
            return EMPTY_INJECTION
        if call_text.classify_result(call, output, failed=failed) != "failed":
            return EMPTY_INJECTION
        message = self._redactor.redact(call_text.error_line(output))
        if not message:
            return EMPTY_INJECTION
        from lore.recall import remedies

        session = self._redactor.redact(session)
        with self._database.read() as db:
            fixes = remedies.find_remedies(
                self._sources,
                db,
                message,
                project_n=self._project_of(db, project),
                without=_family(db, session),
                now=self._database.now(),
                threshold=self._settings.inject_threshold,
            )
            fresh = _fresh(db, session, fixes.texts)
        worded = prompt_text.format_fixes(
            [hit for hit in fixes.hits if hit.id in fresh.texts],
            [remedy for remedy in fixes.remedies if remedy.id in fresh.texts],
            fresh.short,
            budget_tokens=self._settings.inject_budget_tokens,
        )
        if _is_late(started, within_s):
            return EMPTY_INJECTION
        injected = _injected_items(worded.ids, fresh.ns, fresh.texts)
        self._record(session, injected)
        return _injection(worded, injected)

    def for_task_call(
        self,
        tool: str,
        given: str,
        result: str,
        *,
        session: str = "",
        project: str = "",
        agent: str = "",
        within_s: Seconds | None = None,
    ) -> str:
        """Follow a call that changes an agent's task list; a task that begins gets a briefing.

        `given` and `result` are the input and the output of the tool.
        """
        started = time.perf_counter()
        if self.is_quiet(session) or not session:
            return ""
        from lore.memory.task_follower import TaskFollower

        text = TaskFollower(self._context).follow_call(
            tool, given, result, session=session, project=project, agent=agent
        )
        return "" if _is_late(started, within_s) else text

    def is_task_tool(self, tool: str) -> bool:
        """Return whether a tool changes an agent's task list."""
        from lore.tasks import agent_task_list

        return agent_task_list.is_task_tool(tool)

    def note_delegation(self, tool: str, given: str, *, session: str) -> None:
        """Note the task of a subagent, which starts with the call of a tool."""
        from lore.memory.task_follower import TaskFollower
        from lore.tasks import agent_task_list

        if session and agent_task_list.is_subagent_tool(tool) and not self.is_quiet(session):
            TaskFollower(self._context).note_delegation(session, given)

    def for_subagent(
        self, session: str, *, parent: str = "", goal: str = "", project: str = "", agent: str = ""
    ) -> str:
        """Return what is known for the task of a subagent that starts.

        Without `goal`, its task is the one that its parent gave away last and that no other
        subagent has.
        """
        parent = parent or session.partition(_HELPER)[0]
        if session == parent or self.is_quiet(session) or self.is_quiet(parent):
            return ""
        from lore.memory.task_follower import TaskFollower

        follower = TaskFollower(self._context)
        goal = goal or follower.claim_delegation(parent)
        return follower.start_subagent(goal, session=session, project=project, agent=agent)

    def invite(self, session: str, *, condensed: bool = False) -> str:
        """Return an invitation to store what a session decided and learned, once a session.

        It comes after substantial work, or when the session was just `condensed`: an agent's own
        words are the best digest, and cost nothing extra.
        """
        if not session or not self._settings.inject_invite or self.is_quiet(session):
            return ""
        name = self._redactor.redact(session)
        if _HELPER in name or self._database.read_only:
            return ""
        with self._database.read() as db:
            if dialogue_state.find_state(db, name, "invited"):
                return ""
            if not condensed and not _has_worked(db, name):
                return ""
        now = self._database.now()
        with suppress(LoreError):
            self._database.submit(
                lambda db: dialogue_state.put_state(db, name, "invited", 1, now=now)
            )
        return prompt_text.INVITATION

    def end_turn(
        self, session: str, transcript: Path | None = None, *, folder: str = "", ended: bool = False
    ) -> CaptureResult | None:
        """Capture the transcript of a session and update its working state.

        Reading stops after `TURN_S`; the rest is read later. Where `tasks.continuity` is on, the
        state is also written to the page of the project in `folder`.
        """
        captured, until = None, time.monotonic() + TRANSCRIPT_DEADLINE_S
        if transcript is not None:
            files = _with_helpers(transcript)
            look = partial(
                self._sessions.capture_files, files, stopping=lambda: time.monotonic() > until
            )
            captured = look()
            if self._sessions.estimate_capture(files).files:
                look()  # another reader was faster and may have missed the last lines
        from lore.digest import episodes

        with suppress(NotFound, InvalidInput):
            episodes.store_working_state(self._database, self._redactor.redact(session))
            self._update_work(session, folder, ended=ended)
        return captured

    def _update_work(self, session: str, folder: str, *, ended: bool) -> None:
        """Update the working state of a session, and the page of its project."""
        if self._database.read_only:
            return
        from lore.memory.continuity import Continuity
        from lore.memory.handoffs import Handoffs
        from lore.memory.task_follower import TaskFollower

        TaskFollower(self._context).end_finished(session, all_open=ended)
        handoffs = Handoffs(self._context)
        handoffs.take_over(session)
        handoffs.update(session, ended=ended)
        if folder and _HELPER not in session:
            with suppress(LoreError):
                Continuity(self._context).write(folder, session=session)

    def end_session(
        self, session: str, transcript: Path | None = None, *, folder: str = ""
    ) -> CaptureResult | None:
        """Capture a session that ends, and store its episode and its last state."""
        captured = self.end_turn(session, transcript, folder=folder, ended=True)
        with suppress(NotFound, InvalidInput):
            self._sessions.episode(session)
        return captured

    def distill_now(self, session: str, transcript: Path | None = None) -> list[str]:
        """Distill everything in a session so far; return the ids of the new distillations."""
        self.end_turn(session, transcript)
        try:
            return self._digest.distill(session)
        except NotFound:
            return []

    def is_quiet(self, session: str) -> bool:
        """Return whether nothing is injected: injection is off or the session is private."""
        if not self._settings.inject_on:
            return True
        name = self._redactor.redact(session)
        with self._database.read() as db:
            return dialogue_state.is_private(db, name) or (
                _HELPER in name and dialogue_state.is_private(db, name.partition(_HELPER)[0])
            )

    def _project_of(self, db: Connection, folder: str) -> int:
        """Return the number of a folder's project, or what stands for an unknown one or none.

        The home folder is no project; a session there, or without a folder, has none.
        """
        if not folder:
            return items.NO_PROJECT
        folder = self._redactor.redact(folder)
        place = ProjectFinder().find(folder)
        n = projects.find_project_number(db, folder, place)
        if n is None and place is None and folder.startswith("/"):
            return items.NO_PROJECT
        return items.UNKNOWN_PROJECT if n is None else n

    def _record(self, session: str, injected: Sequence[tuple[int, int]]) -> None:
        if injected and session and not self._database.read_only:
            now = self._database.now()
            with suppress(LoreError):
                self._database.submit(
                    lambda db: dialogue_state.add_injections(db, session, injected, now=now)
                )


def _has_worked(db: Connection, session: str) -> bool:
    """Return whether a session has had so many requests that it decided or learned something."""
    try:
        n = sessions.get_session_number(db, session)
    except (NotFound, InvalidInput):
        return False
    return sessions.count_requests(db, n, most=_MIN_REQUESTS) >= _MIN_REQUESTS


def _is_late(started: float, within_s: float | None) -> bool:
    return within_s is not None and time.perf_counter() - started >= within_s


def _family(db: Connection, session: str) -> Sequence[int]:
    """Return the numbers of a session and its relatives, none if it is not stored yet."""
    if not session:
        return ()
    try:
        return sessions.session_family(db, sessions.get_session_number(db, session))
    except (NotFound, InvalidInput):
        return ()


def _injection(worded: PromptText, injected: tuple[InjectedItem, ...] = ()) -> Injection:
    return Injection(worded.text, worded.ids, tokens.count(worded.text), injected)


def _injected_items(
    ids: Sequence[str], ns: Mapping[str, int], texts: Mapping[str, str]
) -> tuple[InjectedItem, ...]:
    return tuple(
        InjectedItem(ns[id_], message_features.word_fingerprint(texts[id_])) for id_ in ids
    )


def _with_helpers(transcript: Path) -> list[Path]:
    """Return a transcript with those of its subagents, which may be written after its end."""
    folder = transcript.with_suffix("")
    return [transcript, folder] if folder.is_dir() and not folder.is_symlink() else [transcript]


class _News(NamedTuple):
    """Changes for a session: text, injected items, and the ids of all changed items."""

    worded: PromptText = PromptText()
    injected: tuple[InjectedItem, ...] = ()
    shown: frozenset[str] = frozenset()


class _Fresh(NamedTuple):
    """Items that are new to a session: texts, numbers and short ids by id."""

    texts: dict[str, str]
    ns: dict[str, int]
    short: dict[str, str]


def _known_items(db: Connection, session: str, agent: str, news: _News) -> KnownItems:
    """Return which items a session has: injected ones, and rules in files that its agent reads."""
    had = dialogue_state.find_injections(db, session).items | {n for n, _ in news.injected}
    return lambda ns: had.intersection(ns) | native_rows.rules_of_agent(db, ns, agent)


def _fresh(db: Connection, session: str, texts: Mapping[str, str]) -> _Fresh:
    shown = dialogue_state.find_injections(db, session)
    ns = items.numbers_of(db, [*texts])
    had = {id_ for id_ in texts if ns[id_] in shown.items}
    ids = prompt_text.select_unseen(texts, had, shown.digests)
    short = items.short_ids(db, ids) if ids else {}
    return _Fresh({id_: texts[id_] for id_ in ids}, ns, short)
