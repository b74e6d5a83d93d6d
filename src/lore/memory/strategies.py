"""Strategies: which profile a session gets, the log of retrievals, and what helped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lore.errors import InvalidInput, NotFound
from lore.memory.context import MemoryPart
from lore.recall import time_spans
from lore.records import (
    ProfileReport,
    StrategyDay,
    StrategyOverview,
    TaskType,
    TuningCandidate,
    TuningCase,
    TuningResult,
)
from lore.store import sessions, strategy_rows
from lore.store.database import Connection
from lore.store.strategy_rows import ProfileDay
from lore.tasks import experiment, profiles
from lore.tasks.experiment import ExperimentState
from lore.tasks.profiles import Profile
from lore.validation import validate_methods


@validate_methods
class Strategies(MemoryPart):
    """Choose profiles for sessions, log retrievals, report, learn and tune."""

    def profiles(self) -> dict[str, Profile]:
        """Return all profiles by name."""
        with self._database.read() as db:
            return experiment.all_profiles(db)

    def state(self) -> tuple[ExperimentState, dict[str, float]]:
        """Return the mode, and the share of new sessions that each profile gets."""
        with self._database.read() as db:
            return experiment.load_state(db), experiment.shares(db)

    def days(self) -> list[ProfileDay]:
        """Return the shares of the profiles on each day, oldest first."""
        with self._database.read() as db:
            return strategy_rows.list_days(db)

    def use(self, name: str) -> None:
        """Give one profile to all sessions from now on."""
        self._database.write(lambda db: experiment.use_profile(db, name))

    def use_random(self, names: Sequence[str] = ()) -> dict[str, float]:
        """Assign new sessions at random to profiles, all if none is named; return the shares."""
        now = self._database.now()
        return self._database.write(lambda db: experiment.use_random(db, names, now=now))

    def choose(self, words: Sequence[str]) -> None:
        """Give one profile to all sessions, or with 'random' first, assign them to several."""
        first, *others = words or ("",)
        if first == "random":
            self.use_random(others)
        elif others:
            msg = "Name one profile, or 'random' and those to compare."
            raise InvalidInput(msg, hint="Example: 'lore strategy use random balanced task-types'.")
        else:
            self.use(first)

    def learn(self, *, on: bool) -> None:
        """Let the shares of the profiles follow their success, or stop it."""
        now = self._database.now()
        self._database.write(lambda db: experiment.set_learning(db, on=on, now=now))

    def save(self, values: Mapping[str, Any]) -> Profile:
        """Store a profile; it is not applied to any session."""
        redacted = self._redactor.redact(str(values.get("description") or ""))
        profile = profiles.parse_profile({**values, "description": redacted})
        now = self._database.now()
        self._database.write(lambda db: experiment.save_profile(db, profile, now=now))
        return profile

    def delete(self, name: str) -> None:
        """Delete a stored profile that no session gets."""

        def work(db: Connection) -> None:
            if name in experiment.shares(db):
                msg = f"Sessions get the profile '{name}' now."
                raise NotFound(msg, hint="'lore strategy use' chooses another one first.")
            if not strategy_rows.delete_profile(db, name):
                msg = f"There is no stored profile '{name[:60]}'."
                raise NotFound(msg)

        self._database.write(work)

    def profile_for(self, session: str) -> Profile:
        """Return the profile of a session, and assign one if it has none.

        A session that is not stored yet gets the same profile when it is.
        """
        name = self._redactor.redact(session)
        with self._database.read() as db:
            session_n = _find_session(db, name)
            chosen, is_new = experiment.choose_for(db, session_n, name)
        if is_new and session_n is not None and not self._database.read_only:
            number, now = session_n, self._database.now()
            self._database.submit(
                lambda db: strategy_rows.assign_session(db, number, chosen.name, now=now)
            )
        return chosen

    def candidates(
        self, goal: str, gains: Callable[[str, str], frozenset[str]], *, session: str, project: str
    ) -> tuple[TaskType, tuple[TuningCandidate, ...]]:
        """Return the type of a task and the memories that could be given to it, for tuning.

        `gains` says what of a memory was used, given its id and the text that is shown of it.
        """
        from lore.tasks import search_cases
        from lore.tasks.task_recall import TaskQuery
        from lore.tasks.task_type import detect_task_type
        from lore.tasks.task_work import find_place

        type_ = detect_task_type(goal)
        with self._database.read() as db:
            place, scope = find_place(db, session, project)
            own = (place.session_n,) if place.session_n is not None else ()
            query = TaskQuery(goal, type_, scope, self._database.now(), None, own)
            return type_, search_cases.find_candidates(self._sources, db, query, gains)

    def tune(
        self, *, project: str = "", cases: Sequence[TuningCase] = (), name: str = ""
    ) -> TuningResult:
        """Search for a better profile over the log of a project and other cases, and store it.

        The latest cases are held out from the search, and say what the profile is worth. It is not
        applied to any session.
        """
        from lore.tasks import profile_search, search_cases

        now = self._database.now()
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            logged = search_cases.log_cases(self._sources, db, project_n=project_n, now=now)
            state = experiment.load_state(db)
            current = experiment.find_profile(db, state.profile)
        chosen = name or f"tuned-{now:%Y-%m-%d}"
        result = profile_search.tune([*cases, *logged], current, chosen)
        if not self._database.read_only:
            self.save({**result.profile, "source": "tuned"})
        return result

    def is_learning_due(self) -> bool:
        """Return whether learning is on and the shares have not moved today."""
        with self._database.read() as db:
            return experiment.is_due(db, now=self._database.now())

    def advance(self) -> str:
        """Count outcomes that became known and end the day if it is over; return what happened."""
        if self._database.read_only:
            return ""
        now = self._database.now()
        return self._database.write(lambda db: experiment.advance(db, now=now))

    def overview(self, *, since: str = "") -> StrategyOverview:
        """Return how profiles are chosen and how their sessions went; learn nothing of it."""
        start = time_spans.since(since, self._database.now()) if since else None
        with self._database.read() as db:
            state = experiment.load_state(db)
            return StrategyOverview(
                mode=state.mode,
                profile=state.profile,
                rollbacks=state.rollbacks,
                shares=experiment.shares(db),
                descriptions={
                    name: one.description for name, one in experiment.all_profiles(db).items()
                },
                reports=tuple(experiment.report(db, since=start)),
                days=tuple(StrategyDay(**one._asdict()) for one in strategy_rows.list_days(db)),
            )

    def report(self, *, since: str = "") -> list[ProfileReport]:
        """Return how the sessions of each profile went, with intervals of 95 %."""
        self.advance()
        start = time_spans.since(since, self._database.now()) if since else None
        with self._database.read() as db:
            return experiment.report(db, since=start)


def _find_session(db: Connection, name: str) -> int | None:
    try:
        return sessions.get_session_number(db, name)
    except NotFound:
        return None
