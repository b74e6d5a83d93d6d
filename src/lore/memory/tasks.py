"""Task memory: tasks of agents, and the patterns, skills and warnings that come from them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from lore.errors import InvalidInput, LoreError, NotFound
from lore.memory import context
from lore.memory.context import PageSize
from lore.memory.task_lessons import TaskLessons
from lore.recall import turns
from lore.records import (
    Checkpoint,
    EconomicsReport,
    EndedTask,
    LoadedContext,
    MemoryIndex,
    MemoryTimeline,
    Outcome,
    Page,
    RetrievalRecord,
    TaskBriefing,
    TaskDetails,
    TaskMemory,
    TaskRecord,
    TaskState,
    TopicDetails,
)
from lore.store import dialogue_state, fragments, history, items, project_rows, task_rows
from lore.store.database import Connection
from lore.store.task_rows import EconomicsKey, TaskPlace
from lore.text import memory_tags
from lore.text.private_text import hide_private
from lore.validation import Count, Seconds, validate_methods

if TYPE_CHECKING:
    from lore.tasks.disclosure import MemoryView

BRIEFING_TOKENS, UNASKED_TOKENS = 600, 300
"""What a briefing takes at most: if an agent asks for it, and if it does not."""

START_FRAGMENTS = 300
"""The most fragments of a project whose index a session gets at its start."""

_BYPASS_NOTICE = (
    "Lore gives no index of this project's memory for now: so far it saved fewer than 1,000 tokens"
    " a session. recall() and load() answer as before."
)


@validate_methods
class Tasks(TaskLessons):
    """Start and end tasks, disclose memory layer by layer, and consolidate what tasks taught."""

    def start(
        self,
        goal: str,
        *,
        phase: str = "",
        action: str = "",
        task_type: str = "",
        session: str = "",
        project: str = "",
        agent: str = "",
        name: str = "",
        budget_tokens: Count = BRIEFING_TOKENS,
        unasked: bool = False,
    ) -> TaskBriefing:
        """Begin a task: return what is known for it, and remember what it was given.

        The type of the task is derived from goal, action and phase unless it is given. Only
        memories of the project are given; `unasked` leaves out what may be given only to someone
        who asks. `name` is the caller's own id of the task.
        """
        from lore.tasks.task_work import TaskStart, begin_task

        self._context.catch_up()
        task, briefing = begin_task(
            self._database,
            self._sources,
            self._redactor,
            TaskStart(
                hide_private(goal), phase, action, task_type, session, project, agent, name,
                unasked=unasked, budget_tokens=budget_tokens,
            ),
        )  # fmt: skip
        if briefing.tokens:
            self._count(
                session, project, {"retrievals": 1, "layer3_loads": 1,
                                   "layer3_tokens": briefing.tokens}, task=task.id,
            )  # fmt: skip
        return briefing

    def end(
        self,
        task: str = "",
        *,
        outcome: Outcome = "unknown",
        reason: str = "",
        session: str = "",
        project: str = "",
        agent: str = "",
        used: Sequence[str] = (),
        helped: bool | None = None,
        report: Mapping[str, Any] | None = None,
    ) -> EndedTask:
        """End a task: store its episode, and which of the given memories were used and helped.

        Without `task` it is the open task of the session or project. `report` has fields of an
        episode: actions, errors, files_changed, artifacts, commits, retries and others.
        """
        from lore.tasks.task_work import TaskEnd, finish_task

        named = partial(self._redactor.redact)
        ended = finish_task(
            self._database,
            self._redactor,
            TaskEnd(
                task, outcome, reason, named(session), named(project), agent,
                tuple(used), helped, report,
            ),
        )  # fmt: skip
        with suppress(LoreError):  # the episode is stored, and is learned from at the next cycle
            self.learn_from(ended.episode_id)
        self.check_economics("task_complete", session=session or ended.task.session_id)
        return ended

    def list_tasks(
        self, *, project: str = "", state: TaskState | Literal[""] = "", limit: Count = 20
    ) -> list[TaskRecord]:
        """Return tasks, the latest first."""
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            return task_rows.list_tasks(db, project_n=project_n, state=state, limit=limit)

    __call__ = list_tasks

    def page_of_tasks(
        self, *, project: str = "", state: TaskState | Literal[""] = "",
        limit: PageSize = 50, cursor: str = "",
    ) -> Page[TaskRecord]:  # fmt: skip
        """Return a page of tasks, the latest first."""
        after = context.decode_cursor(cursor, int, int)
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            rows = task_rows.page_of_tasks(db, after, project_n=project_n, state=state, limit=limit)
        return context.page_of(rows, limit)

    def details_of_task(self, task: str) -> TaskDetails:
        """Return a task with the memories that it was given, and their titles."""
        record, memories = self.show(task)
        with self._database.read() as db:
            ns = items.numbers_of(db, [one.item_id for one in memories])
            titles = {
                one.id: one.title for one in turns.describe_items(db, list(ns.values())).values()
            }
        return TaskDetails(record, memories, titles)

    def show(self, task: str) -> tuple[TaskRecord, tuple[TaskMemory, ...]]:
        """Return a task, and the memories that it was given."""
        with self._database.read() as db:
            n, record = task_rows.get_task(db, task)
            return record, tuple(task_rows.memories_of(db, n))

    def index(
        self, *, query: str = "", session: str = "", project: str = "", whole: bool = False
    ) -> MemoryIndex:
        """Return layer 1: the topics of a project that matter now, or that are near a question.

        With `whole` it lists all of them, however many tokens that takes.
        """
        from lore.tasks import disclosure

        view, short = self._view(session, project)
        if whole:
            view = disclosure.without_limit(view)
        if query:
            self._context.catch_up()
            asked = self._redactor.redact(hide_private(query))
            index = disclosure.search_index(self._sources, view, asked, short)
        else:
            index = disclosure.make_index(view, short)
        self._count(session, project, {"layer1_loads": 1, "layer1_tokens": index.tokens}, view=view)
        return index

    def timeline(self, *, session: str = "", project: str = "") -> MemoryTimeline:
        """Return layer 2: what was done and decided lately, and what is going on."""
        from lore.tasks import disclosure

        view, _ = self._view(session, project)
        timeline = disclosure.make_timeline(view)
        counts = {
            "layer2_loads": 1, "layer2_tokens_scanned": timeline.tokens,
            "layer2_tokens_available": timeline.tokens,
        }  # fmt: skip
        self._count(session, project, counts, view=view)
        return timeline

    def details(self, topic: str, *, session: str = "", project: str = "") -> TopicDetails:
        """Return layer 3: the memories of one topic in full."""
        from lore.tasks import disclosure

        with self._database.read() as db:
            item = items.resolve(db, topic, type="fragment")
            id_ = item.id
            if not project and not session and item.project_n is not None:
                project = project_rows.all_projects(db)[item.project_n].id
        view, short = self._view(session, project)
        match = next((t for t in view.topics if id_ in {one.id for one in t.members}), None)
        if match is None:
            msg = f"'{topic[:60]}' belongs to no topic here."
            raise NotFound(msg, hint="index() lists topics with their ids.")
        details = disclosure.read_topic(match, short)
        counts = {"layer3_loads": 1, "layer3_tokens": details.tokens}
        self._count(session, project, counts, view=view)
        self.check_economics("triggered", session=session)
        return details

    def load(self, query: str, *, session: str = "", project: str = "") -> LoadedContext:
        """Load what a question needs, and no more: index, then timeline, then details."""
        from lore.tasks import corrections, disclosure

        began = time.perf_counter()
        asked = self._redactor.redact(hide_private(query))
        if not asked.strip():
            msg = "The question is empty."
            raise InvalidInput(msg)
        self._context.catch_up()
        view, short = self._view(session, project)
        loaded = disclosure.load(self._sources, view, asked, short)
        counts = corrections.count_load(loaded, view.total_tokens)
        task = self._open_task(session, project)
        self._count(session, project, asdict(counts), task=task)
        chosen = tuple(memory.id for one in loaded.details for memory in one.memories)
        took_ms = (time.perf_counter() - began) * 1000
        self._log(
            RetrievalRecord(
                self._database.now(), "load", asked, chosen=chosen, took_ms=took_ms,
                tokens=counts.progressive_tokens,
            ),
            session,
            task,
        )  # fmt: skip
        self.check_economics("triggered", session=session)
        return loaded

    def describe(
        self,
        record: TaskBriefing | MemoryIndex | MemoryTimeline | TopicDetails | LoadedContext,
    ) -> str:
        """Return a briefing or a layer as text for a prompt, with short ids."""
        from lore.tasks import disclosure, task_brief

        ids = disclosure.ids_in(record)
        with self._database.read() as db:
            short = items.short_ids(db, ids) if ids else {}
        if isinstance(record, TaskBriefing):
            return task_brief.format_briefing(record, short)
        return disclosure.format_layer(record, short)

    def for_session_start(
        self, *, session: str = "", project: str = "", within_s: Seconds | None = None
    ) -> str:
        """Return the index for the start of a session, unasked; nothing while it is bypassed.

        That it is bypassed is said once. An agent waits for it, and grouping a large memory takes
        seconds: beyond `START_FRAGMENTS` an agent has to ask.
        """
        from lore.tasks import corrections, disclosure

        began = time.perf_counter()
        if self._is_quiet(session) or self._is_large(session, project):
            return ""
        view, short = self._view(session, project, unasked=True)
        if not view.topics:
            return ""
        if corrections.is_bypassed(view.layout, view.total_tokens):
            return self._announce_bypass(session, project)
        index = disclosure.make_index(view, short)
        if within_s is not None and time.perf_counter() - began > within_s:
            return ""
        self._count(session, project, {"layer1_loads": 1, "layer1_tokens": index.tokens}, view=view)
        return memory_tags.wrap_memory(disclosure.format_index(index, short))

    def start_unasked(
        self, goal: str, *, session: str, project: str = "", agent: str = "", name: str = ""
    ) -> tuple[str, str]:
        """Begin a task that an agent's task list began; return its id and what is known for it.

        The text is empty while memory is bypassed, and has nothing that the session was given
        before.
        """
        from lore.tasks import corrections

        view, _ = self._view(session, project, unasked=True)
        is_quiet = corrections.is_bypassed(view.layout, view.total_tokens)
        briefing = self.start(
            goal, session=session, project=project, agent=agent, name=name, unasked=True,
            budget_tokens=UNASKED_TOKENS,
        )  # fmt: skip
        text = "" if is_quiet else self.describe(briefing)
        return briefing.task_id, memory_tags.wrap_memory(text) if text else ""

    def _is_quiet(self, session: str) -> bool:
        """Return whether nothing is given unasked: it is switched off, or a session is private."""
        if not self._settings.inject_on:
            return True
        name = self._redactor.redact(session)
        with self._database.read() as db:
            return dialogue_state.is_private(db, name) or dialogue_state.is_private(
                db, name.partition("/agent-")[0]
            )

    def economics(self, *, session: str = "", project: str = "") -> EconomicsReport:
        """Return what memory cost and saved, of one session or of all sessions of a project."""
        from lore.tasks import economics_log

        with self._database.read() as db:
            place, _ = self._place(db, session, project)
            return economics_log.make_report(db, place, by_session=bool(session))

    def check_economics(self, checkpoint: Checkpoint, *, session: str = "") -> list[str]:
        """Check the token counts of a session, and correct what is beyond its threshold.

        Return what was done, with the metric before and after.
        """
        from lore.tasks import economics_log

        if not session or self._database.read_only:
            return []
        with self._database.read() as db:
            place, scope = self._place(db, session, "")
        return economics_log.check_session(self._database, self._sources, checkpoint, place, scope)

    def _announce_bypass(self, session: str, project: str) -> str:
        with self._database.read() as db:
            place, _ = self._place(db, session, project)
            rows = task_rows.corrections(db, place.project_n)
            latest = next((row for row in rows if row.action == "bypass"), None)
        if latest is None or latest.body.get("announced"):
            return ""
        with suppress(LoreError):
            self._database.submit(lambda db: task_rows.mark_bypass_announced(db, place.project_n))
        return memory_tags.wrap_memory(_BYPASS_NOTICE)

    def _place(self, db: Connection, session: str, project: str) -> tuple[TaskPlace, int]:
        from lore.tasks.task_work import find_place

        return find_place(db, self._redactor.redact(session), self._redactor.redact(project))

    def _is_large(self, session: str, project: str) -> bool:
        with self._database.read() as db:
            _, scope = self._place(db, session, project)
            return fragments.count_visible_at_most(db, scope, START_FRAGMENTS + 1) > START_FRAGMENTS

    def _view(
        self, session: str, project: str, *, unasked: bool = False
    ) -> tuple[MemoryView, dict[str, str]]:
        """Return the topics of a project, cached until the memory changes, and their short ids."""
        from lore.tasks import disclosure, economics_log

        with self._database.read() as db:
            place, scope = self._place(db, session, project)
            layout = economics_log.current_layout(db, place.project_n)
            key = (
                "topics", scope, unasked, layout, items.highest_number(db),
                history.newest_change(db), self._sources.embedder.identity,
            )  # fmt: skip
            view = self._sources.derived.get(key)
            if view is None:
                now = self._database.now()
                view = disclosure.view_memory(
                    self._sources, db, project_n=scope, now=now, layout=layout, unasked=unasked
                )
                self._sources.derived.clear()
                self._sources.derived[key] = view
            short = items.short_ids(db, [topic.id for topic in view.topics]) if view.topics else {}
        return view, short

    def _open_task(self, session: str, project: str) -> str:
        with self._database.read() as db:
            place, _ = self._place(db, session, project)
            if place == TaskPlace():
                return ""
            match = task_rows.find_open_task(db, place)
        return match[1].id if match else ""

    def _count(
        self,
        session: str,
        project: str,
        counts: Mapping[str, int],
        *,
        task: str = "",
        view: MemoryView | None = None,
        waits: bool = True,
    ) -> None:
        """Add tokens to the counts of a session or task; a hook does not wait for the write."""
        if self._database.read_only or not session:
            return
        now = self._database.now()
        added = {name: value for name, value in counts.items() if value}
        added.pop("most_task_loads", None)

        def add(db: Connection) -> None:
            place, scope = self._place(db, session, project)
            whole = view.total_tokens if view else fragments.visible_tokens(db, scope)
            added.setdefault("baseline_tokens", whole)
            task_n = None
            if task:
                with suppress(NotFound):
                    task_n = task_rows.get_task(db, task)[0]
            key = EconomicsKey(place.session_n, task_n, place.project_n)
            if key.session_n is not None or key.task_n is not None:
                task_rows.add_economics(db, key, added, now=now)

        with suppress(LoreError):
            if waits:
                self._database.write(add)
            else:
                self._database.submit(add)

    def _log(self, entry: RetrievalRecord, session: str, task: str) -> None:
        if self._database.read_only:
            return

        def add(db: Connection) -> None:
            place, _ = self._place(db, session, "")
            task_n = task_rows.get_task(db, task)[0] if task else None
            task_rows.log_task_retrieval(db, entry, session_n=place.session_n, task_n=task_n)

        with suppress(LoreError):
            self._database.write(add)
