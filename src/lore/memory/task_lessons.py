"""What tasks teach: consolidation of episodes, their retention, review, learnings and skills."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from lore.errors import InvalidInput, NotFound
from lore.memory.context import MemoryPart
from lore.records import (
    Fragment,
    FragmentKind,
    Learning,
    Origin,
    RetentionResult,
    ReviewEntry,
    TaskConsolidation,
)
from lore.store import fragments, items, keywords, project_rows, task_memories
from lore.store.consolidation import StepRecorder, ignore_step
from lore.store.keywords import SearchScope
from lore.validation import Count, validate_methods

if TYPE_CHECKING:
    from datetime import datetime

    from lore.tasks.task_consolidation import ConsolidationContext

_AGE = re.compile(r"(\d{1,5})\s*([hdw])", re.IGNORECASE)
_HOURS = {"h": 1, "d": 24, "w": 168}


@validate_methods
class TaskLessons(MemoryPart):
    """Consolidate episodes, apply their retention, and list what is to be reviewed or learned."""

    def consolidate(
        self, *, since: str = "", project: str = "", recorder: StepRecorder = ignore_step
    ) -> TaskConsolidation:
        """Learn patterns, anti-patterns and skills from episodes, by default from all of them.

        `since` is an age such as '24h' or '7d', or a time such as 'last week'.
        """
        from lore.tasks import task_consolidation

        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
        context = self._consolidation_context(recorder)
        result = task_consolidation.consolidate(
            self._database, context, since=self._parse_since(since), project_n=project_n
        )
        if result.merged:
            self._sources.drop_hidden()
        return result

    def consolidate_new(self, recorder: StepRecorder = ignore_step) -> TaskConsolidation:
        """Learn from the episodes that no maintenance cycle has seen, in each of their projects."""
        from lore.tasks import task_consolidation

        context = self._consolidation_context(recorder)
        result = task_consolidation.consolidate_new(self._database, context)
        if result.merged:
            self._sources.drop_hidden()
        return result

    def learn_from(self, episode: str) -> TaskConsolidation:
        """Compare one episode with its neighbours, given its id or its session; asks no chat.

        This is called after each finished task.
        """
        from lore.tasks import task_consolidation

        with self._database.read() as db:
            n = task_consolidation.find_episode(db, self._redactor.redact(episode))
        if n is None:
            return TaskConsolidation()
        context = self._consolidation_context(ignore_step)
        result = task_consolidation.consolidate_episode(self._database, context, n)
        if result.merged:
            self._sources.drop_hidden()
        return result

    def apply_retention(
        self, *, dry_run: bool = False, recorder: StepRecorder = ignore_step
    ) -> RetentionResult:
        """Summarize episodes after 7 days; after 30, archive those that nothing refers to."""
        from lore.tasks import episode_retention

        result = episode_retention.apply_retention(
            self._database, recorder=recorder, dry_run=dry_run
        )
        if result.archived and not dry_run:
            self._sources.drop_hidden()
        return result

    def archived(self, query: str = "", *, project: str = "", limit: Count = 20) -> list[Fragment]:
        """Return archived episodes, those with the words of a query or the newest."""
        from lore.recall.question import parse

        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            ns: list[int] | None = None
            if query.strip():
                match = parse(self._redactor.redact(query), self._database.now()).match()
                hits = keywords.search(
                    db, "fragment_words", match, limit=10_000, weights=(1.0, 1.0, 1.0),
                    within=SearchScope(project_n),
                )  # fmt: skip
                ns = [n for n, _ in hits]
            listed = task_memories.archived(db, ns, project_n=project_n)
            order = [n for n in ns if n in set(listed)] if ns is not None else listed
            by_number = fragments.by_number(db, order[:limit])
            return [by_number[n] for n in order[:limit]]

    def review(self, *, project: str = "") -> list[ReviewEntry]:
        """Return patterns unused for 60 days, and those that were followed by failure twice."""
        from lore.tasks import pattern_review

        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            return pattern_review.find_reviewable(db, project_n=project_n, now=self._database.now())

    def learnings(
        self, *, since: str = "", project: str = "", everything: bool = False
    ) -> list[Learning]:
        """Return resolved errors, newest first; `everything` includes slips of an agent."""
        from lore.tasks import learnings

        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            return learnings.find_learnings(
                db, since=self._parse_since(since), project_n=project_n, everything=everything
            )

    def lessons(
        self, kind: FragmentKind | None = None, *, project: str = "", limit: Count = 100
    ) -> list[Fragment]:
        """Return patterns, anti-patterns and skills, newest first, or only those of one kind."""
        if kind is not None and kind not in task_memories.LESSON_KINDS:
            msg = f"'{kind}' is not a kind of lesson."
            raise InvalidInput(msg, hint=f"Kinds: {', '.join(task_memories.LESSON_KINDS)}.")
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            return task_memories.lessons(db, kind or "", project_n=project_n, limit=limit)

    def skill_page(self, name: str, *, project: str = "") -> str:
        """Return a skill as Markdown, given its id, or its name in a project or anywhere."""
        from lore.tasks import skill_page

        fragment = self.find_skill(name, project=project)
        stored_page = fragment.metadata.get("page")
        page = skill_page.SkillPage.from_payload({
            "name": fragment.summary,
            "steps": [fragment.content],
            **fragment.payload,
        })
        if isinstance(stored_page, str):
            whole = skill_page.parse_skill(stored_page)
            if whole.to_payload() == page.to_payload():
                return stored_page
        return skill_page.format_skill(page)

    def add_skill(self, page: str, *, project: str = "", origin: Origin = "user") -> Fragment:
        """Store a skill that a Markdown page describes; one with the same name is updated."""
        from lore.tasks import skill_store

        id_ = skill_store.store_page(
            self._database, page, project=project, origin=origin, redactor=self._redactor
        )
        with self._database.read() as db:
            return fragments.get(db, items.resolve(db, id_).n)

    def find_skill(self, name: str, *, project: str = "") -> Fragment:
        """Return a skill by its id, or by its name the most trusted one, of these the newest."""
        with self._database.read() as db:
            place = self._redactor.redact(project)
            project_n = project_rows.find_project(db, place) if place else None
            if place and project_n is None:
                project_n = items.UNKNOWN_PROJECT  # only what is for all projects
            listed = task_memories.lessons(db, "skill", project_n=project_n)
            wanted = name.strip().casefold()
            named = [
                one
                for one in listed
                if wanted in (one.summary.casefold(), str(one.payload.get("name")).casefold())
            ]
            if named:
                return max(named, key=lambda one: one.trust)
            fragment = fragments.get(db, items.resolve(db, name, type="fragment").n)
        if fragment.kind != "skill":
            msg = f"'{name}' is not a skill."
            raise NotFound(msg, hint="'lore skills list' names the skills.")
        return fragment

    def _parse_since(self, since: str) -> datetime | None:
        from lore.recall import time_spans

        if not since.strip():
            return None
        now = self._database.now()
        age = _AGE.fullmatch(since.strip())
        if age:
            return now - timedelta(hours=int(age[1]) * _HOURS[age[2].lower()])
        return time_spans.since(since, now)

    def _consolidation_context(self, recorder: StepRecorder) -> ConsolidationContext:
        from lore.tasks import generalization
        from lore.tasks.task_consolidation import ConsolidationContext

        summarizer = self._context.open_summarizer()
        ask = generalization.asker_of(summarizer, self._redactor.redact)
        return ConsolidationContext(self._sources.embedder, self._redactor, ask, recorder)
