"""The desk for questions: recall, search, sessions, standing instructions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from lore.checking import Count, Whole, checked_class
from lore.memory.desk import Desk
from lore.recall import answering, reading, searching, session_search
from lore.recall.answering import Request
from lore.recall.searching import SearchRequest
from lore.records import ITEM_TYPES, Answer, Hit, ItemType, Outline, Scope, SessionHit, Title
from lore.store import items, sessions


@checked_class
class Asking(Desk):
    """For questions."""

    __slots__ = ()

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
        now: datetime | None = None,
        log: bool = True,
    ) -> Answer:
        """Answer a question from messages, distillations and fragments, best first.

        `trusted_only` is for what is put into a prompt that did not ask for it: only what the
        person or the assistant said. `types` are the sorts of items that may be found.
        """
        started = time.perf_counter()
        query = self.redactor.redact(query)
        request = Request(
            query=query,
            scope=scope,
            session=self.redactor.redact(session),
            project=self.redactor.redact(project),
            limit=self.settings.recall_max_hits if limit is None else limit,
            budget_tokens=(
                self.settings.recall_budget_tokens if budget_tokens is None else budget_tokens
            ),
            recipe=recipe or self.settings.search_recipe,
            explain=explain,
            why_not=tuple(why_not),
            trusted_only=trusted_only,
            types=tuple(types),
            now=now or self.database.now(),
        )
        self.catch_up()
        answer = answering.recall(self.sources, request)
        if log:
            took_ms = (time.perf_counter() - started) * 1000
            self.sources.log_retrieval("recall", query, [h.id for h in answer.hits], took_ms)
        return answering.with_notice(answer, self.notice_now)

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
        project: str = "",
        log: bool = True,
    ) -> list[Hit]:
        """Search the fragments; `deep` follows the graph to what they are related to."""
        query, project = self.redactor.redact(query), self.redactor.redact(project)
        request = SearchRequest(
            query, parent_id, depth, limit, deep, kind, origin, since, project, self.database.now()
        )
        started = time.perf_counter()
        self.catch_up()
        hits = searching.search(self.sources, request)
        if log:
            took_ms = (time.perf_counter() - started) * 1000
            self.sources.log_retrieval("search", query, [hit.id for hit in hits], took_ms)
        return hits

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
        """Find the sessions in which something was said or done."""
        self.catch_up()
        return session_search.find_sessions(
            self.sources,
            self.redactor.redact(query),
            project=self.redactor.redact(project),
            limit=limit,
            types=tuple(types),
            now=now or self.database.now(),
            recipe=recipe or self.settings.search_recipe,
        )

    def standing(self, *, project: str = "", question: str = "") -> list[Hit]:
        """Return the standing instructions of a project, those near a question first."""
        return answering.standing(self.sources, self.redactor.redact(project), question)

    def roots(self, *, query: str = "", limit: Count = 20, project: str = "") -> list[Title]:
        """Return the roots, strongest first, or those that fit a question."""
        query, project = self.redactor.redact(query), self.redactor.redact(project)
        if query:
            return searching.roots(self.sources, query, limit=limit, project=project)
        with self.database.read() as db:
            project_n = sessions.get_project(db, project) if project else None
            return reading.roots(db, project_n=project_n, limit=limit)

    def explore(self, what: str, *, max_depth: Whole = 2) -> list[Outline]:
        """Return the tree below a fragment, or below the best hits for a question."""
        if items.looks_like_id(what):
            with self.database.read() as db:
                return [reading.explore(db, what, max_depth=max_depth)]
        hits = self.search(what, limit=3)
        with self.database.read() as db:
            return [reading.explore(db, hit.id, max_depth=max_depth) for hit in hits]
