"""The desk for prompts: what a session is told unasked, and what its hooks bring in.

An agent waits while it is told: nothing here embeds what waits, or waits for a write.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lore import projects
from lore.checking import Count, Seconds, checked_class
from lore.context import choosing, wording
from lore.context.wording import Worded
from lore.errors import InvalidInput, LoreError, NotFound
from lore.memory.capturing import Capturing
from lore.memory.digesting import Digesting
from lore.projects import Projects
from lore.recall import unasked
from lore.records import Captured, Fit, Given, Injection
from lore.store import dialogues, fragments, injections, items, sessions
from lore.store.db import Connection
from lore.text import calls, digests, goals, results, tokens

BEGINNING_TOKENS = 500
"""From the specification: what a session is told when it begins."""

TURN_S = 20.0
"""So long a transcript is read for one turn, some hundred megabytes; the next turn, or the daemon,
reads on from there."""

NOTHING = Injection()

_HELPER = "/agent-"
"""Stands in the name of a subagent's session of Claude Code behind that of its parent."""

_ANY_PROMPT = "What was decided?"


@checked_class
class Prompting(Capturing, Digesting):
    """For prompts."""

    __slots__ = ()

    def begin_session(
        self,
        session: str,
        *,
        project: str = "",
        condensed: bool = False,
        budget_tokens: Count = BEGINNING_TOKENS,
        within_s: Seconds | None = None,
        counts: bool = True,
    ) -> Injection:
        """Return what a session is told when it begins: what stands, happened last, is known.

        A session that was `condensed` has lost what it was given: it may be given it again. What
        takes longer than `within_s` is nothing, as in `for_prompt`, and unless it `counts`, it
        is as there. Of knowledge that is told by its title alone, a prompt may be given the rest.
        """
        started = time.perf_counter()
        if self._is_quiet(session) or _is_late(started, within_s):
            return NOTHING
        from lore.recall import beginnings

        session = self.redactor.redact(session)
        if condensed and not self.database.read_only:
            with suppress(LoreError):
                self.database.submit(lambda db: injections.remove(db, session))
        with self.database.read() as db:
            project_n = self._project_of(db, project)
            family = _family(db, session)
            told = beginnings.gather(self.sources, db, project_n=project_n, without=family)
            known = [hit.id for hit in told.standing]
            known += [past.id for past in told.past] + [id_ for id_, _ in told.roots]
            short = items.short_ids(db, list(dict.fromkeys(known))) if known else {}
            ns = items.numbers_of(db, known)
            roots = fragments.by_number(db, [ns[id_] for id_, _ in told.roots if id_ in ns])
        worded = wording.word_beginning(told, short, budget_tokens=budget_tokens)
        if _is_late(started, within_s):
            return NOTHING
        said = {root.id: root.content for root in roots.values() if root.content in worded.text}
        said |= {past.id: past.goal for past in told.past}
        said |= {hit.id: hit.text for hit in told.standing}
        ids = tuple(id_ for id_ in worded.ids if id_ in said and id_ in ns)
        given = _given(ids, ns, said)
        if counts:
            self._note_given(session, given)
        return _injection(worded, given)

    def for_prompt(
        self,
        prompt: str,
        *,
        session: str = "",
        project: str = "",
        budget_tokens: Count | None = None,
        threshold: float | None = None,
        within_s: Seconds | None = None,
        now: datetime | None = None,
        counts: bool = True,
    ) -> Injection:
        """Return the memory that clearly concerns a prompt, and that its session has not had.

        Only what people and assistants said counts, of other sessions than this one. Before it
        stands what has changed of the memory that the session had, each change once. What takes
        longer than `within_s` comes too late: it is nothing, and does not count as given. Unless
        it `counts`, whoever asks says with `note_given` that the prompt has it.
        """
        started = time.perf_counter()
        if self._is_quiet(session) or _is_late(started, within_s):
            return NOTHING
        session = self.redactor.redact(session)
        least = self.settings.inject_threshold if threshold is None else threshold
        budget = budget_tokens or self.settings.inject_budget_tokens
        with self.database.read() as db:
            told = self._news(db, session, project, budget)
            fits = self.find_fits(prompt, session=session, project=project, now=now)
            passing = [fit.hit for fit in choosing.passing(prompt, fits, least)]
            fresh = _fresh(db, session, {hit.id: hit.text for hit in passing})
        worded = wording.word_hits(
            [hit for hit in passing if hit.id in fresh.texts and hit.id not in told.shown],
            fresh.short,
            budget_tokens=budget - tokens.count(told.worded.text),
        )
        if _is_late(started, within_s):
            return NOTHING
        given = (*told.given, *_given(worded.ids, fresh.ns, fresh.texts))
        if counts:
            self._note_given(session, given)
        both = "\n".join(filter(None, (told.worded.text, worded.text)))
        return _injection(Worded(both, (*told.worded.ids, *worded.ids)), given)

    def note_given(self, session: str, injection: Injection) -> None:
        """Remember that a session was given what did not count yet, without waiting for it."""
        self._note_given(self.redactor.redact(session), injection.given)

    def _news(self, db: Connection, session: str, project: str, budget_tokens: int) -> _News:
        """Return what a running session is told of changes."""
        if not session:
            return _News()
        from lore.recall import news

        family = _family(db, session)
        own = [sessions.get(db, n) for n in family]
        began = [injections.began(db, session), *(one.started_at for one in own[:1])]
        found = news.find(
            db,
            session,
            project_n=self._project_of(db, project),
            without=[one.id for one in own],
            since=min(filter(None, began), default=None),
        )
        fresh = (*found.new, *found.decided, *found.changed)
        pieces = [*fresh]
        for piece, heir in found.gone:
            pieces += [piece, heir] if heir else [piece]
        if not pieces:
            return _News()
        worded = wording.word_news(
            [(one.id, one.at, one.text) for one in found.new],
            [(one.id, one.at, one.text) for one in found.decided],
            [(one.id, one.at, one.text) for one in found.changed],
            [(one.id, heir.id if heir else "", heir.text if heir else "")
             for one, heir in found.gone],
            items.short_ids(db, list(dict.fromkeys(one.id for one in pieces))),
            budget_tokens=budget_tokens,
        )  # fmt: skip
        told = {*worded.ids}
        given = [Given(one.n, digests.of_words(one.text)) for one in fresh
                 if one.id in told]  # fmt: skip
        for piece, heir in found.gone:
            if piece.id in told:
                given.append(Given(piece.n, injections.GONE))
                given += [Given(heir.n, digests.of_words(heir.text))] if heir else []
        return _News(worded, tuple(given), frozenset(one.id for one in pieces))

    def warm_up(self) -> None:
        """Load what the first prompt would have to wait for: the model, and the vector index."""
        with suppress(LoreError):
            self.begin_session("")
            self.find_fits(_ANY_PROMPT)
            [vector] = self.sources.embedder.embed([_ANY_PROMPT], query=True)
            self.sources.nearest(vector, 1)

    def find_fits(
        self, prompt: str, *, session: str = "", project: str = "", now: datetime | None = None
    ) -> list[Fit]:
        """Return what a prompt could be given, best first, with how well each fits.

        A prompt that only says 'go on', or holds nothing but output, asks for nothing.
        """
        request = goals.request_of(prompt)
        if request is None or not request.real:
            return []
        session = self.redactor.redact(session)
        with self.database.read() as db:
            try:
                return unasked.find(
                    self.sources,
                    self.redactor.redact(request.text),
                    project_n=self._project_of(db, project),
                    without=_family(db, session),
                    now=now or self.database.now(),
                )
            except InvalidInput:
                return []  # not a word in it

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
        """Return what mended an error like the one that a tool has just met, if that is known.

        `given` is what the tool was called with; `output` is looked at and never quoted.
        """
        started = time.perf_counter()
        call = calls.read_call(tool, given)
        if not output.strip() or self._is_quiet(session) or _is_late(started, within_s):
            return NOTHING
        if results.verdict_of(call, output, failed=failed) != "failed":
            return NOTHING
        met = self.redactor.redact(results.message_of(output))
        if not met:
            return NOTHING
        from lore.recall import remedies

        session = self.redactor.redact(session)
        with self.database.read() as db:
            found = remedies.find(
                self.sources,
                db,
                met,
                project_n=self._project_of(db, project),
                without=_family(db, session),
                now=self.database.now(),
            )
            fresh = _fresh(db, session, found.texts)
        worded = wording.word_fixes(
            [hit for hit in found.hits if hit.id in fresh.texts],
            [remedy for remedy in found.remedies if remedy.id in fresh.texts],
            fresh.short,
            budget_tokens=self.settings.inject_budget_tokens,
        )
        if _is_late(started, within_s):
            return NOTHING
        told = _given(worded.ids, fresh.ns, fresh.texts)
        self._note_given(session, told)
        return _injection(worded, told)

    def end_turn(self, session: str, transcript: Path | None = None) -> Captured | None:
        """Bring in what a session has said, and keep what it is at, for the next one to know.

        Of a file that takes longer than `TURN_S` the rest is left for later.
        """
        captured, until = None, time.monotonic() + TURN_S
        if transcript is not None:
            files = _with_helpers(transcript)
            look = partial(self.capture_files, files, stopping=lambda: time.monotonic() > until)
            captured = look()
            if self.estimate_capture(files).files:
                look()  # another reader was faster, and may not have seen the last of it
        from lore.curate import working

        with suppress(NotFound, InvalidInput):
            working.keep(self.database, self.redactor.redact(session))
        return captured

    def end_session(self, session: str, transcript: Path | None = None) -> Captured | None:
        """Do the same for a session that ends, and tell it as an episode."""
        captured = self.end_turn(session, transcript)
        with suppress(NotFound, InvalidInput):
            self.episode(session)
        return captured

    def distil_now(self, session: str, transcript: Path | None = None) -> list[str]:
        """Condense all that a session has said by now; return the ids of the new logs."""
        self.end_turn(session, transcript)
        try:
            return self.distill(session)
        except NotFound:
            return []

    def _is_quiet(self, session: str) -> bool:
        """Tell whether a session is told nothing: nobody is, or it is not to be remembered."""
        if not self.settings.inject_on:
            return True
        name = self.redactor.redact(session)
        with self.database.read() as db:
            return dialogues.is_amnesic(db, name) or (
                _HELPER in name and dialogues.is_amnesic(db, name.partition(_HELPER)[0])
            )

    def _project_of(self, db: Connection, folder: str) -> int:
        """Return the number of the project that a folder belongs to.

        Without a folder nobody knows whose words may be told: only what holds everywhere is.
        """
        if not folder:
            return unasked.NO_PROJECT
        folder = self.redactor.redact(folder)
        n = projects.find(db, folder, Projects().find(folder))
        return unasked.NO_PROJECT if n is None else n

    def _note_given(self, session: str, given: Sequence[tuple[int, int]]) -> None:
        if given and session and not self.database.read_only:
            now = self.database.now()
            with suppress(LoreError):
                self.database.submit(lambda db: injections.add(db, session, given, now=now))


def _is_late(started: float, within_s: float | None) -> bool:
    """Tell whether nobody waits for an answer any more."""
    return within_s is not None and time.perf_counter() - started >= within_s


def _family(db: Connection, session: str) -> Sequence[int]:
    """Return the numbers of a session and its next of kin, none if it is not stored yet."""
    if not session:
        return ()
    try:
        return sessions.family(db, sessions.get_number(db, session))
    except (NotFound, InvalidInput):
        return ()


def _injection(worded: Worded, given: tuple[Given, ...] = ()) -> Injection:
    return Injection(worded.text, worded.ids, tokens.count(worded.text), given)


def _given(
    ids: Sequence[str], ns: Mapping[str, int], texts: Mapping[str, str]
) -> tuple[Given, ...]:
    """Return what a session was given with some items."""
    return tuple(Given(ns[id_], digests.of_words(texts[id_])) for id_ in ids)


def _with_helpers(transcript: Path) -> list[Path]:
    """Return a transcript with those of its subagents, whose last lines come after their end."""
    folder = transcript.with_suffix("")
    return [transcript, folder] if folder.is_dir() and not folder.is_symlink() else [transcript]


class _News(NamedTuple):
    """What a session is told of changes, what it then was given, and the ids of all of that."""

    worded: Worded = Worded()
    given: tuple[Given, ...] = ()
    shown: frozenset[str] = frozenset()


class _Fresh(NamedTuple):
    """What a session was not given yet, by id: texts, numbers, and ids in short."""

    texts: dict[str, str]
    ns: dict[str, int]
    short: dict[str, str]


def _fresh(db: Connection, session: str, texts: Mapping[str, str]) -> _Fresh:
    """Return what a session was not given yet of some items."""
    shown = injections.of_session(db, session)
    ns = items.numbers_of(db, [*texts])
    had = {id_ for id_ in texts if ns[id_] in shown.items}
    ids = choosing.fresh(texts, had, shown.digests)
    short = items.short_ids(db, ids) if ids else {}
    return _Fresh({id_: texts[id_] for id_ in ids}, ns, short)
