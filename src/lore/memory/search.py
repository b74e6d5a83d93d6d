"""Search: recall, search, read, explore, timelines and provenance."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lore import projects, telemetry
from lore.errors import (
    BudgetSpent,
    EmbedderError,
    InvalidInput,
    NotFound,
    ProviderError,
    StoreError,
)
from lore.llm.summarizer import uses_chat
from lore.memory.context import LIVE, MemoryPart
from lore.projects import ProjectFinder
from lore.recall import answer as answering
from lore.recall import cited_answer, item_details, search
from lore.recall.answer import Request
from lore.recall.cited_answer import Material
from lore.recall.item_details import Direction
from lore.recall.quotations import READ_HITS
from lore.recall.search import SearchRequest
from lore.recall.sources import CountRead
from lore.records import (
    ITEM_TYPES,
    Answer,
    AskResult,
    CitedSentence,
    Hit,
    ItemType,
    Outline,
    Provenance,
    Reading,
    Scope,
    SessionHit,
    StandingInstruction,
    TimelineEntry,
    Title,
)
from lore.store import fragments as fragment_store
from lore.store import items, sessions, task_rows
from lore.store.database import Connection
from lore.store.task_rows import EconomicsKey
from lore.text import tokens
from lore.text.private_text import hide_private
from lore.validation import Count, Whole, validate_methods

if TYPE_CHECKING:
    from lore.llm.chat_summarizer import ChatSummarizer
    from lore.memory.facade import Memory


_JUDGE_S = 1.0
"""Seconds in which an answer waits for judgements of what was replaced."""

_READ_TOKENS = 100_000
"""No limit of what is read to answer: hits are excerpts of some 220 tokens."""


_LINE_TOKENS, _TITLE_TOKENS = 16, 14
"""Id and figures of a hit that is listed by its title, and how much of the title is shown."""


class Reader(NamedTuple):
    """Whose tokens an answer costs: those of a session, else of the live one in a folder."""

    session: str = ""
    folder: str = ""


_RETRIEVAL = {telemetry.OPERATION: "retrieval"}


@validate_methods
class Search(MemoryPart):
    """Recall, search, read and explore what is stored, with its provenance."""

    def search(
        self,
        query: str,
        *,
        parent_id: str = "",
        depth: Whole | None = None,
        limit: Count = 10,
        deep: bool = False,
        kind: str = "",
        origin: str = "",
        since: str = "",
        until: str = "",
        agent: str = "",
        project: str = "",
        log: bool = True,
        reader: Reader | None = None,
    ) -> list[Hit]:
        """Search fragments; `deep` follows the graph to related ones.

        The titles count in the token economics of `reader`.
        """
        query, project = self._redact_query(query), self._redactor.redact(project)
        request = SearchRequest(
            query, parent_id, depth, limit, deep, kind, origin, since, project,
            self._database.now(), until, agent,
        )  # fmt: skip
        started = time.perf_counter()
        self._context.catch_up()
        hits = search.search_fragments(self._sources, request)
        if log:
            took_ms = (time.perf_counter() - started) * 1000
            shown = sum(map(_line_tokens, hits)) if reader else 0
            self._sources.log_retrieval(
                "search", query, [hit.id for hit in hits], took_ms, self._counter(reader, shown),
                profile="deep" if deep else "fragments",
                tokens=sum(hit.tokens for hit in hits),
            )  # fmt: skip
        return hits

    __call__ = search

    def recall(
        self,
        query: str,
        *,
        scope: Scope = "all",
        session: str = "",
        project: str = "",
        limit: Count | None = None,
        budget_tokens: Count | None = None,
        recipe: str = "",
        explain: bool = False,
        why_not: Sequence[str] = (),
        trusted_only: bool = False,
        types: Sequence[ItemType] = ITEM_TYPES,
        since: str = "",
        until: str = "",
        agent: str = "",
        kind: str = "",
        origin: str = "",
        under: str = "",
        task_type: str = "",
        now: datetime | None = None,
        log: bool = True,
        reader: Reader | None = None,
        with_teams: bool = True,
    ) -> Answer:
        """Answer a question from messages, distillations and fragments, best first.

        `trusted_only` limits hits to words of the person or the assistant, for prompts that did not
        ask. `types` limits the types of items, `kind` to one type or kind of fragment, `agent` to
        conversations with an agent, `origin` to whose words it is, `under` to a fragment with all
        below it, and `since` and `until` to a time ('2026-05-08', 'last week').
        With `task_type`, the memories that such a task needs come first: episodes, knowledge,
        skills and warnings by the weights of its type, at most five. The answer counts in the token
        economics of `reader`, unless nothing in a project answers and all are searched next.
        On a server, `with_teams` adds what the owner's teams have published and approved.
        """
        started = time.perf_counter()
        query = self._redact_query(query)
        request = Request(
            query=query,
            scope=scope,
            session=self._redactor.redact(session),
            project=self._redactor.redact(project),
            limit=self._settings.recall_max_hits if limit is None else limit,
            budget_tokens=(
                self._settings.recall_budget_tokens if budget_tokens is None else budget_tokens
            ),
            recipe=recipe or self._settings.search_recipe,
            explain=explain,
            why_not=tuple(why_not),
            trusted_only=trusted_only,
            types=tuple(types),
            since=since,
            until=until,
            agent=agent,
            kind=kind,
            origin=origin,
            under=under,
            now=now or self._database.now(),
        )
        with telemetry.span("recall", _RETRIEVAL) as span, self._context.read_caught_up():
            answer = answering.recall(self._sources, request)
            if task_type:
                answer = self._put_task_hits_first(answer, request, task_type)
            notice = self._context.notice_now
            span.set("lore.hits", len(answer.hits))
            span.set("lore.considered", answer.considered)
            span.set("lore.tokens", answer.tokens)
        if log:
            took_ms = (time.perf_counter() - started) * 1000
            is_dropped = answer.strength == "none" and scope == "all" and bool(project)
            self._sources.log_retrieval(
                "recall", query, [h.id for h in answer.hits], took_ms,
                None if is_dropped else self._counter(reader, answer.tokens),
                profile=request.recipe, tokens=answer.tokens,
            )  # fmt: skip
        if with_teams and scope == "all" and not _is_filtered(request):
            answer = self._add_team_hits(answer, request)
        return replace(answer, notice=notice) if notice else answer

    def _add_team_hits(self, answer: Answer, request: Request) -> Answer:
        """Return an answer with what teams have published, after the owner's own hits."""
        desk = self._context.team_desk
        hits = desk.recall(request.query, limit=request.limit) if desk is not None else ()
        if not hits:
            return answer
        cost = sum(hit.tokens for hit in hits)
        best = max(answer.confidence if answer.relevant else 0.0, hits[0].score)
        return replace(
            answer, hits=(*answer.hits, *hits), tokens=answer.tokens + cost, relevant=True,
            confidence=best,
        )  # fmt: skip

    def _put_task_hits_first(self, answer: Answer, request: Request, task_type: str) -> Answer:
        """Return an answer that begins with what a task of this type needs."""
        from lore.tasks.task_recall import find_task_hits
        from lore.tasks.task_type import parse_task_type

        type_ = parse_task_type(task_type)
        if request.scope == "session" or type_ is None:
            return answer
        with self._database.read() as db:
            project_n = self._find_project_n(db, request.project)
            first = find_task_hits(
                self._sources, db, request.query, type_, project_n=project_n, now=request.now,
                trusted_only=request.trusted_only,
            )  # fmt: skip
        return answering.put_first(answer, first, request)

    def ask(
        self, question: str, *, session: str = "", project: str = "", log: bool = True
    ) -> AskResult:
        """Answer a question with citations; say so if nothing in memory answers it.

        The chat of the settings writes the answer; without one the best passages are quoted. The
        ranking is always the learned one. A model then reads the best hits with the question, if
        it is at hand, and says which of them answer. What new statements replace is judged first,
        for a moment: without a daemon nothing else does it.
        """
        self._context.catch_up()
        if not self._database.read_only:
            self._context.judge_waiting(within_s=_JUDGE_S)
        answer = self.recall(
            question,
            scope="session" if session else "all",
            session=session,
            project=project,
            limit=READ_HITS,
            budget_tokens=_READ_TOKENS,
            recipe="learned",
            log=log,
        )
        material = self._select_material(answer)
        sentences, writer, problem = self._write_sentences(answer.question, material)
        with self._database.read() as db:
            result = cited_answer.compose(db, answer.question, material, sentences)
        notice = " ".join(filter(None, (self._context.notice_now, problem)))
        return replace(result, notice=notice, written_by=writer)

    def _select_material(self, answer: Answer) -> Material:
        """Return what an answer is made of, chosen by the pair model or by rank alone."""
        budget = self._settings.recall_budget_tokens
        reader = self._context.open_pair_model()
        if reader is not None:
            try:
                with self._database.read() as db:
                    return cited_answer.select_by_reading(db, reader, answer, budget)
            except (EmbedderError, OSError) as error:
                self._context.give_up_pair_model(error)
        return cited_answer.select_by_rank(answer, budget)

    def _write_sentences(
        self, question: str, material: Material
    ) -> tuple[Sequence[CitedSentence] | None, str, str]:
        """Return the sentences of a chat, its name, and why there are none.

        None instead of sentences means that the passages are to be quoted.
        """
        chat = self._find_chat() if material.strength != "none" else None
        if chat is None:
            return None, "offline", ""
        try:
            sentences = [
                replace(sentence, text=self._redactor.redact(sentence.text))
                for sentence in chat.answer(question, material.hits)
            ]
        except (ProviderError, BudgetSpent, StoreError) as error:
            return None, "offline", f"{error} The answer is quoted from memory instead."
        return sentences, chat.identity, ""

    def _find_chat(self) -> ChatSummarizer | None:
        """Return the chat that the settings choose, or None."""
        if self._context.summarizer is None and not uses_chat(self._settings):
            return None
        from lore.llm.chat_summarizer import ChatSummarizer

        summarizer = self._context.open_summarizer()
        return summarizer if isinstance(summarizer, ChatSummarizer) else None

    def find_sessions(
        self,
        query: str,
        *,
        project: str = "",
        limit: Count = 5,
        types: Sequence[ItemType] = ("message", "distillation"),
        now: datetime | None = None,
        recipe: str = "",
    ) -> list[SessionHit]:
        """Search for sessions in which something was said or done."""
        self._context.catch_up()
        return search.search_sessions(
            self._sources,
            self._redactor.redact(query),
            project=self._redactor.redact(project),
            limit=limit,
            types=tuple(types),
            now=now or self._database.now(),
            recipe=recipe or self._settings.search_recipe,
        )

    def standing_instructions(self, *, project: str = "", question: str = "") -> list[Hit]:
        """Return the standing instructions of a project, those near a question first."""
        return answering.list_standing(self._sources, self._redactor.redact(project), question)

    def instructions(
        self, *, project: str = "", rejected: bool = False
    ) -> list[StandingInstruction]:
        """Return standing and then suggested instructions, newest first; or the rejected ones."""
        named = self._redactor.redact(project)
        return answering.list_instructions(self._sources, named, rejected=rejected)

    def roots(self, *, query: str = "", limit: Count = 20, project: str = "") -> list[Title]:
        """Return the roots, strongest first, or those that match a query."""
        query, project = self._redactor.redact(query), self._redactor.redact(project)
        if query:
            return search.search_roots(self._sources, query, limit=limit, project=project)
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            roots = fragment_store.roots(db, project_n=project_n, limit=limit)
            return item_details.titles(db, [n for n, _ in roots])

    def explore(self, what: str, *, max_depth: Whole = 2) -> list[Outline]:
        """Return the tree below a fragment, or below the best hits for a query."""
        is_id = items.looks_like_id(what)
        ids = [what] if is_id else [hit.id for hit in self.search(what, limit=3)]
        with self._database.read() as db:
            ns = [items.resolve(db, id_, type="fragment").n for id_ in ids]
            return [item_details.outline(db, n, max_depth) for n in ns]

    def read(
        self, ids: Sequence[str], *, reinforce: bool = True, reader: Reader | None = None
    ) -> list[Reading]:
        """Return whole items; reading a fragment reinforces it.

        The items count in the token economics of `reader`. On a server, an id may also be one of
        what the owner's teams have published and approved.
        """
        with self._database.read() as db:
            own = {id_: self._read_own(db, id_) for id_ in ids}
        readings = [own[id_] or self._read_of_team(id_) for id_ in ids]
        if self._database.read_only:
            return readings
        listed = [one for one in own.values() if one is not None] if reinforce else []
        reinforced = [one.id for one in listed if one.fragment and not one.deleted]
        count = self._counter(reader, sum(reading.tokens for reading in readings))

        def work(db: Connection) -> None:
            fragment_store.reinforce_all(db, reinforced, now=self._database.now())
            if count:
                count(db)

        if reinforced:
            self._database.write(work)
        elif count:
            with suppress(StoreError):  # a count is not worth an error
                self._database.submit(work, patient=True)
        return readings

    def _read_own(self, db: Connection, id_: str) -> Reading | None:
        """Return an item of this memory; None if there is none, and teams may have it."""
        try:
            return item_details.read(db, id_)
        except NotFound:
            if self._context.team_desk is None:
                raise
            return None

    def _read_of_team(self, id_: str) -> Reading:
        """Return what a team of the owner has published, or raise as for a missing item."""
        desk = self._context.team_desk
        reading = desk.read(id_) if desk is not None else None
        if reading is None:
            with self._database.read() as db:
                return item_details.read(db, id_)
        return reading

    def _counter(self, reader: Reader | None, tokens: int) -> CountRead | None:
        """Return what counts the tokens of a retrieval, within a write that happens anyway."""
        if reader is None or not (reader.session or reader.folder):
            return None
        session = self._redactor.redact(reader.session)
        folder = self._redactor.redact(reader.folder)

        def count(db: Connection) -> EconomicsKey | None:
            session_n = find_reading_session(db, session, folder, now=self._database.now())
            key = task_rows.find_reader(db, session_n) if session_n is not None else None
            if key is not None:
                task_rows.count_read(db, key, tokens, now=self._database.now())
            return key

        return count

    def titles(self, ids: Sequence[str]) -> list[Title]:
        """Return fragments by title only, in order."""
        with self._database.read() as db:
            return item_details.titles(
                db, [items.resolve(db, id_, type="fragment").n for id_ in ids]
            )

    def traverse(self, id: str, direction: Direction = "children") -> list[Title]:
        """Return the neighbors of a fragment in one direction."""
        if direction not in ("children", "parent", "associations"):
            msg = f"'{direction}' is not a direction: use children, parent or associations."
            raise InvalidInput(msg)
        with self._database.read() as db:
            return item_details.traverse(db, id, direction)

    def why(self, id: str) -> Provenance:
        """Return the provenance of an item and the numbers behind its strength."""
        with self._database.read() as db:
            return item_details.why(db, id, now=self._database.now())

    def timeline(
        self, anchor: str, *, before: Whole = 5, after: Whole = 5, project: str = ""
    ) -> list[TimelineEntry]:
        """Return what was said and learned around a message, a fragment or a time, oldest first.

        Around a message it covers its session; around a time (or 'now') all sessions, or those of a
        project.
        """
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            return item_details.list_around(
                db, anchor, before=before, after=after, project_n=project_n,
                now=self._database.now(),
            )  # fmt: skip

    def _redact_query(self, query: str) -> str:
        """Return a query as it may be logged: without secrets and private text."""
        return self._redactor.redact(hide_private(query))

    def short_ids(self, ids: Sequence[str]) -> dict[str, str]:
        """Return for each id a unique prefix for a list: as short as all of one length can be."""
        with self._database.read() as db:
            return items.listed_ids(db, ids)


def _is_filtered(request: Request) -> bool:
    """Return whether a question is limited to what this memory alone can have."""
    limits = (request.agent, request.kind, request.origin, request.under, request.since)
    return request.trusted_only or any(limits) or bool(request.until or request.why_not)


def _line_tokens(hit: Hit) -> int:
    return _LINE_TOKENS + min(tokens.count(hit.title), _TITLE_TOKENS)


def find_reading_session(db: Connection, session: str, folder: str, *, now: datetime) -> int | None:
    """Return the number of a session, or if none is named, of the live one in a folder."""
    if session:
        try:
            return sessions.get_session_number(db, session)
        except (NotFound, InvalidInput):  # not captured yet, or two agents have one of this name
            return None
    project_n = projects.find_project_number(db, folder, ProjectFinder().find(folder))
    newest = sessions.recent_sessions(db, project_n=project_n, limit=1) if project_n else []
    live = [one.id for one in newest if one.last_message_at >= now - LIVE]
    return sessions.get_session_number(db, live[0]) if live else None


A = TypeVar("A", Answer, AskResult)


def ask_project_first(memory: Memory, folder: str, ask: Callable[[str], A], project: str = "") -> A:
    """Return the answer of the project of a folder; of `project`, or all, if it has none.

    The setting `recall.everywhere` leaves out the folder.
    """
    if folder and not memory.settings.recall_everywhere:
        own = memory.sessions.find_project(folder)
        if own is not None and (answer := ask(own.id)).strength != "none":
            return answer
    return ask(project)
