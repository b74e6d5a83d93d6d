"""Working state of sessions, ledgers of agents, handoffs between them, and metrics of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lore import clock
from lore.errors import InvalidInput, LoreError, NotFound
from lore.memory import work_scope
from lore.memory.context import MemoryPart
from lore.records.task_records import (
    AgentLedger,
    Handoff,
    MetricsSummary,
    OpenWork,
    WorkingState,
)
from lore.store import dialogue_state, fragments, handoff_rows, items, project_rows, sessions
from lore.store.database import Connection
from lore.store.handoff_rows import FinishedTask, HandoffRow, MetricRow
from lore.tasks import (
    git_state,
    handoff_draft,
    ledgers,
    open_work,
    session_work,
    task_metrics,
)
from lore.tasks.task_metrics import TaskMetrics
from lore.tasks.working_state import StateDelta, TrackedState
from lore.validation import Count, validate_methods

MOST_TEXT, MOST_LIST, MOST_NAME = 8_000, 50, 200
"""Characters of what was done, entries of a list, characters of an agent's name."""

_ENTRY_CHARS = 1_000
"""Characters of one entry of a list."""

_CAUGHT_UP = timedelta(days=2)
"""Sessions that were quiet for longer are read when somebody asks for their state."""

LATEST_OF_PROJECT = 4
"""Sessions of a project that are read however old they are; the last of them may have no task."""


@validate_methods
class Handoffs(MemoryPart):
    """What sessions are doing, and what one agent passes on to another."""

    def state(self, session: str) -> WorkingState:
        """Return the working state of a session, read up to its last message."""
        with self._database.read() as db:
            n = sessions.get_session_number(db, self._redactor.redact(session))
        state, _ = session_work.update_state(self._database, n, self._sources.embedder)
        with self._database.read() as db:
            row = handoff_rows.find_working_state(db, n)
        return session_work.to_record(state, updated_at=row.updated_at if row else None)

    def update(self, session: str, *, ended: bool = False) -> StateDelta:
        """Read the new messages of a session into its state, and return what changed."""
        with self._database.read() as db:
            n = sessions.get_session_number(db, self._redactor.redact(session))
        _, delta = session_work.update_state(self._database, n, self._sources.embedder)
        if ended and not self._database.read_only:
            session_work.end_state(self._database, n)
        return delta

    def catch_up(self, *, project: str = "", limit: Count = 20) -> int:
        """Update the states of sessions that went on without a hook; return how many.

        These are recent ones, and the latest of a project however old: they may be imported.
        """
        if self._database.read_only:
            return 0
        with self._database.read() as db:
            since = self._database.now() - _CAUGHT_UP
            stale = handoff_rows.stale_states(db, since=since, limit=limit)
            project_n = work_scope.find_project(db, self._redactor, project)
            if project_n is not None:
                latest = handoff_rows.latest_sessions(db, project_n, limit=LATEST_OF_PROJECT)
                stale += [n for n in latest if n not in stale]
        for n in stale:
            session_work.update_state(self._database, n, self._sources.embedder)
        return len(stale)

    def open_work(
        self, *, project: str = "", session: str = "", all_projects: bool = False
    ) -> list[OpenWork]:
        """Return what the latest sessions of a project left open, without a session itself."""
        now = self._database.now()
        with self._database.read() as db:
            without = work_scope.find_family(db, self._redactor, session)
            numbers = [work_scope.find_project(db, self._redactor, project)]
            if all_projects:
                numbers = [None, *project_rows.all_projects(db)]
            work = [
                one
                for number in numbers
                for one in open_work.find_open_work(db, number, without=without, now=now)
            ]
        return sorted(work, key=lambda one: one.at, reverse=True)

    def agent_of(self, session: str) -> str:
        """Return the agent of a session; '' if it is unknown."""
        with self._database.read() as db:
            own = work_scope.find_family(db, self._redactor, session)
            return sessions.get_session(db, own[0]).agent if own else ""

    def checkpoint(
        self,
        *,
        agent: str,
        project: str = "",
        session: str = "",
        current_task: str = "",
        reads_folder: bool = True,
    ) -> AgentLedger:
        """Store and return the ledger of an agent: its task, the git state, what it learned.

        Without `reads_folder` no file of the project is read: git state and tech stack are empty.
        """
        agent = self._name(agent, "agent")
        if not agent:
            msg = "A checkpoint needs the name of an agent."
            raise InvalidInput(msg)
        n = self._session_n(session)
        state = self._state_of(n)
        folder = project if reads_folder else ""
        git = git_state.read_git_state(folder)
        now = self._database.now()
        with self._database.read() as db:
            patterns = self._patterns(db, n)
            running = handoff_rows.open_task(db, n) if n is not None else ""
        ledger = ledgers.make_checkpoint(
            agent, state, git, at=now, folder=folder, patterns=patterns
        )
        ledger = self._redacted_ledger(ledger, current_task or running)

        def work(db: Connection) -> AgentLedger:
            project_n = work_scope.ensure_project(db, self._redactor, project, n, now)
            done = handoff_rows.count_finished_tasks(db, project_n, agent)
            complete = replace(ledger, tasks_completed=done)
            handoff_rows.put_ledger(db, project_n, agent, _ledger_body(complete), now=now)
            return complete

        return self._database.write(work)

    def ledgers(
        self, *, project: str = "", limit: Count = 50, all_projects: bool = False
    ) -> list[AgentLedger]:
        """Return the ledgers of a project's agents, the latest first."""
        with self._database.read() as db:
            rows = handoff_rows.ledgers(
                db,
                work_scope.find_project(db, self._redactor, project),
                limit=limit,
                all_projects=all_projects,
            )
        return [_parse_ledger(row) for row in rows]

    def write(
        self,
        *,
        to_agent: str = "",
        from_agent: str = "",
        session: str = "",
        project: str = "",
        what_was_done: str = "",
        artifacts: Sequence[str] = (),
        needs_testing: Sequence[str] = (),
        known_issues: Sequence[str] = (),
        relevant_patterns: Sequence[str] = (),
        next_steps: Sequence[str] = (),
        decisions: Sequence[str] = (),
        reads_folder: bool = True,
    ) -> Handoff:
        """Store a handoff; what is not given comes from the session's working state and git.

        Without `reads_folder` no file of the project is read.
        """
        n = self._session_n(session)
        state = self._state_of(n)
        git = git_state.read_git_state(project if reads_folder else "")
        now = self._database.now()
        with self._database.read() as db:
            patterns = self._resolve_patterns(db, relevant_patterns) or self._patterns(db, n)
            agent = sessions.get_session(db, n).agent if n is not None else ""
        drafted = handoff_draft.draft_handoff(
            clock.new_id(now), state, git,
            from_agent=self._name(from_agent, "from_agent") or agent,
            to_agent=self._name(to_agent, "to_agent"), at=now, patterns=patterns,
        )  # fmt: skip
        handoff = replace(
            drafted,
            what_was_done=self._text(what_was_done) or drafted.what_was_done,
            artifacts=self._texts("artifacts", artifacts) or drafted.artifacts,
            needs_testing=self._texts("needs_testing", needs_testing) or drafted.needs_testing,
            known_issues=self._texts("known_issues", known_issues) or drafted.known_issues,
            next=self._texts("next_steps", next_steps) or drafted.next,
            decisions=self._texts("decisions", decisions) or drafted.decisions,
            git_state=self._redactor.redact(drafted.git_state),
        )
        if not handoff.what_was_done:
            msg = "A handoff needs what_was_done: this session has no working state yet."
            raise InvalidInput(msg)

        def work(db: Connection) -> Handoff:
            project_n = work_scope.ensure_project(db, self._redactor, project, n, now)
            row = HandoffRow(
                handoff.id, n, project_n, handoff.from_agent, handoff.to_agent,
                open_work.handoff_body(handoff), now, None,
            )  # fmt: skip
            handoff_rows.add_handoff(db, row)
            return open_work.load_handoff(db, row)

        return self._database.write(work)

    def read(
        self, id: str = "", *, to_agent: str = "", project: str = "", mark: bool = True
    ) -> Handoff:
        """Return a handoff by its id, or the latest unread one for an agent in a project.

        With a project, an id names only its handoffs. The handoff counts as read from then on,
        unless `mark` is off.
        """
        with self._database.read() as db:
            if id:
                project_n = work_scope.find_project(db, self._redactor, project)
                row = handoff_rows.get_handoff(db, id.strip(), project_n, all_projects=not project)
            else:
                row = self._latest_unread(db, project, self._name(to_agent, "to_agent"))
            handoff = open_work.load_handoff(db, row)
        if mark and not self._database.read_only:
            now = self._database.now()
            self._database.write(lambda db: handoff_rows.mark_handoff_read(db, handoff.id, now=now))
        return handoff

    def _latest_unread(self, db: Connection, project: str, to_agent: str) -> HandoffRow:
        rows = handoff_rows.handoffs(
            db,
            work_scope.find_project(db, self._redactor, project),
            to_agent=to_agent,
            unread=True,
            limit=1,
        )
        if not rows:
            whom = f" for {to_agent}" if to_agent else ""
            msg = f"There is no unread handoff{whom} in this project."
            raise NotFound(msg, hint="'lore handoff list' lists all of them.")
        return rows[0]

    def recent(
        self,
        *,
        project: str = "",
        to_agent: str = "",
        unread: bool = False,
        limit: Count = 20,
        all_projects: bool = False,
    ) -> list[Handoff]:
        """Return the handoffs of a project, the latest first."""
        with self._database.read() as db:
            rows = handoff_rows.handoffs(
                db,
                work_scope.find_project(db, self._redactor, project),
                to_agent=self._name(to_agent, "to_agent"),
                unread=unread,
                limit=limit,
                all_projects=all_projects,
            )
            return [open_work.load_handoff(db, row) for row in rows]

    def waiting(self, *, project: str = "", session: str = "", agent: str = "") -> list[Handoff]:
        """Return the unread handoffs that a session is given at its start."""
        with self._database.read() as db:
            return open_work.find_handoffs(
                db,
                work_scope.find_project(db, self._redactor, project),
                to_agent=self._redactor.redact(agent),
                without=work_scope.find_family(db, self._redactor, session),
                now=self._database.now(),
            )

    def take_over(self, session: str) -> None:
        """Mark the handoffs that a session was given at its start as read."""
        name, now = self._redactor.redact(session), self._database.now()
        with self._database.read() as db:
            ids = dialogue_state.find_state(db, name, "handoffs")
        if not isinstance(ids, list) or not ids:
            return

        def work(db: Connection) -> None:
            for id_ in ids:
                handoff_rows.mark_handoff_read(db, str(id_), now=now)
            dialogue_state.remove_state(db, name, "handoffs")

        self._database.write(work)

    def metrics(self, *, project: str = "", all_projects: bool = False) -> MetricsSummary:
        """Return efficiency and rewards of the tasks that ended in the last seven days."""
        now = self._database.now()
        with self._database.read() as db:
            ended = handoff_rows.finished_tasks(
                db,
                work_scope.find_project(db, self._redactor, project),
                all_projects=all_projects,
                since=now - task_metrics.WINDOW,
            )
            measured = [self._measure(db, task) for task in ended]
        if measured and not self._database.read_only:
            rows = [row for task, one in zip(ended, measured, strict=True)
                    for row in _metric_rows(task, one)]  # fmt: skip
            with suppress(LoreError):
                self._database.write(lambda db: handoff_rows.put_metrics(db, rows))
        return task_metrics.summarize(measured, now=now)

    def measure_tasks(self, *, project: str = "") -> list[TaskMetrics]:
        """Return efficiency and rewards of each task of a project that has ended."""
        with self._database.read() as db:
            number = work_scope.find_project(db, self._redactor, project)
            ended = handoff_rows.finished_tasks(
                db, number, all_projects=False, since=datetime.fromtimestamp(0, UTC)
            )
            return [self._measure(db, task) for task in ended]

    def _measure(self, db: Connection, task: FinishedTask) -> TaskMetrics:
        helpers = 0
        if task.session_n is not None:
            helpers = handoff_rows.count_subagents(
                db, task.session_n, task.started_at, task.ended_at
            )
        return task_metrics.measure_task(task, agents=helpers + 1)

    def _session_n(self, session: str) -> int | None:
        if not session:
            return None
        with self._database.read() as db:
            own = work_scope.find_family(db, self._redactor, session)
        return own[0] if own else None

    def _state_of(self, session_n: int | None) -> TrackedState:
        if session_n is None:
            return TrackedState()
        return session_work.update_state(self._database, session_n, self._sources.embedder)[0]

    def _patterns(self, db: Connection, session_n: int | None) -> list[str]:
        """Return the ids of patterns and skills that the session's tasks were given."""
        if session_n is None:
            return []
        ns = handoff_rows.memories_given(db, [session_n], limit=20)
        by_n = fragments.by_number(db, ns)
        kinds = ("pattern", "skill", "anti_pattern")
        return [by_n[n].id for n in ns if n in by_n and by_n[n].kind in kinds]

    def _resolve_patterns(self, db: Connection, ids: Sequence[str]) -> list[str]:
        """Return full ids; a name that is none of this memory's ids is kept as it is."""
        resolved: list[str] = []
        for id_ in self._texts("relevant_patterns", ids):
            try:
                resolved.append(items.resolve(db, id_).id)
            except (NotFound, InvalidInput):
                resolved.append(id_)
        return resolved

    def _name(self, name: str, field: str) -> str:
        name = " ".join(self._redactor.redact(name).split())
        if len(name) > MOST_NAME:
            raise InvalidInput(f"'{field}' has more than {MOST_NAME} characters.")
        return name

    def _text(self, text: str) -> str:
        if len(text) > MOST_TEXT:
            raise InvalidInput(f"'what_was_done' has more than {MOST_TEXT} characters.")
        return self._redactor.redact(text).strip()

    def _texts(self, field: str, texts: Sequence[str]) -> tuple[str, ...]:
        if isinstance(texts, str):
            raise InvalidInput(f"'{field}' must be a list of texts.")
        if len(texts) > MOST_LIST or any(len(text) > _ENTRY_CHARS for text in texts):
            msg = f"'{field}' has at most {MOST_LIST} entries of {_ENTRY_CHARS} characters."
            raise InvalidInput(msg)
        redacted = (" ".join(self._redactor.redact(text).split()) for text in texts)
        return tuple(text for text in redacted if text)

    def _redacted_ledger(self, ledger: AgentLedger, current_task: str) -> AgentLedger:
        return replace(
            ledger,
            current_task=" ".join(self._redactor.redact(current_task).split())[:_ENTRY_CHARS],
            files_modified=tuple(map(self._redactor.redact, ledger.files_modified)),
        )


def _ledger_body(ledger: AgentLedger) -> dict[str, object]:
    return {
        "tasks_completed": ledger.tasks_completed,
        "current_task": ledger.current_task,
        "files_modified": list(ledger.files_modified),
        "uncommitted_changes": ledger.uncommitted_changes,
        "last_git_commit": ledger.last_git_commit,
        "tech_stack": list(ledger.tech_stack),
        "patterns_learned": list(ledger.patterns_learned),
        "current_goal": ledger.current_goal,
    }


def _parse_ledger(row: handoff_rows.LedgerRow) -> AgentLedger:
    def texts(name: str) -> tuple[str, ...]:
        value = row.body.get(name)
        listed = value if isinstance(value, list) else []
        return tuple(one for one in listed if isinstance(one, str))

    completed = row.body.get("tasks_completed")
    changes = row.body.get("uncommitted_changes")
    return AgentLedger(
        row.agent,
        row.updated_at,
        tasks_completed=completed if isinstance(completed, int) else 0,
        current_task=str(row.body.get("current_task", "")),
        files_modified=texts("files_modified"),
        uncommitted_changes=changes if isinstance(changes, bool) else None,
        last_git_commit=str(row.body.get("last_git_commit", "")),
        tech_stack=texts("tech_stack"),
        patterns_learned=texts("patterns_learned"),
        current_goal=str(row.body.get("current_goal", "")),
    )


def _metric_rows(task: FinishedTask, one: TaskMetrics) -> Iterator[MetricRow]:
    place = (task.n, task.session_n, task.project_n)
    for name, value in (
        ("duration_s", one.duration_s), ("agents", float(one.agents)),
        ("retries", float(one.retries)),
    ):  # fmt: skip
        yield MetricRow(*place, "efficiency", name, value, {}, task.ended_at)
    for name, reward in (
        ("outcome", one.outcome_reward), ("efficiency", one.efficiency_reward),
        ("preference", one.preference),
    ):  # fmt: skip
        if reward is not None:
            yield MetricRow(*place, "reward", name, reward, {}, task.ended_at)
