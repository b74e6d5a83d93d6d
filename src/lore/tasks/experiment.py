"""The experiment over profiles: which one a session gets, and what its outcome changes.

Three modes. `fixed`: all sessions get one profile, the default. `random`: sessions are assigned at
random by the shares of the profiles. `learn`: as `random`, and the shares follow the outcomes, with
the guard rails of `bandit`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Literal

from lore.errors import InvalidInput, NotFound
from lore.records import ProfileReport
from lore.store import strategy_rows
from lore.store.database import Connection, find_meta, set_meta
from lore.store.strategy_rows import ProfileDay
from lore.tasks import bandit, profiles
from lore.tasks.bandit import Bandit, Event, Evidence
from lore.tasks.profiles import Profile, RetrievalCost, SessionOutcome

Mode = Literal["fixed", "random", "learn"]

_STATE = "strategies"
_QUIET = timedelta(hours=1)
"""A session that was assigned so long ago and has an outcome is judged."""

_KNOWN = ("success", "failure", "partial")


@dataclass(frozen=True, slots=True)
class ExperimentState:
    """The mode, the profile of the mode `fixed`, and where learning stands."""

    mode: Mode = "fixed"
    profile: str = profiles.DEFAULT
    salt: str = ""
    day: str = ""
    since: str = ""
    rollbacks: int = 0


def load_state(db: Connection) -> ExperimentState:
    """Return the state; the default if nothing was ever chosen."""
    raw = find_meta(db, _STATE)
    values = json.loads(raw) if raw else {}
    known = {name: values[name] for name in ExperimentState.__slots__ if name in values}
    return ExperimentState(**known)


def _save_state(db: Connection, state: ExperimentState) -> None:
    set_meta(db, _STATE, json.dumps(asdict(state)))


def all_profiles(db: Connection) -> dict[str, Profile]:
    """Return the profiles that Lore ships, and those that are stored."""
    by_name = dict(profiles.BUILT_IN)
    for row in strategy_rows.list_profiles(db):
        if row.name not in profiles.BUILT_IN:
            by_name[row.name] = profiles.parse_profile({**row.values, "name": row.name})
    return by_name


def find_profile(db: Connection, name: str) -> Profile:
    """Return a profile; raise `NotFound` with the names that there are."""
    known = all_profiles(db)
    if name not in known:
        msg = f"There is no profile '{name[:60]}'."
        raise NotFound(msg, hint=f"Profiles: {', '.join(known)}.")
    return known[name]


def save_profile(db: Connection, profile: Profile, *, now: datetime) -> None:
    """Store a profile; one that Lore ships cannot be replaced."""
    if profile.name in profiles.BUILT_IN:
        msg = f"'{profile.name}' is a profile that Lore ships."
        raise InvalidInput(msg, hint="Choose another name.")
    strategy_rows.put_profile(db, profile.as_json(), now=now)


def shares(db: Connection) -> dict[str, float]:
    """Return the share of new sessions that each profile gets now."""
    state = load_state(db)
    if state.mode == "fixed":
        return {state.profile: 1.0}
    return {row.name: row.share for row in strategy_rows.list_profiles(db) if row.is_active}


def use_profile(db: Connection, name: str) -> None:
    """Give one profile to all sessions from now on."""
    find_profile(db, name)
    _save_state(db, replace(load_state(db), mode="fixed", profile=name))


def use_random(db: Connection, names: Iterable[str], *, now: datetime) -> dict[str, float]:
    """Assign new sessions at random to profiles, all if none is named, with equal shares."""
    chosen = list(dict.fromkeys(names)) or list(all_profiles(db))
    if len(chosen) < 2:
        msg = "An experiment compares at least two profiles."
        raise InvalidInput(msg)
    started = bandit.new_bandit(chosen)
    _store_bandit(db, started, now=now)
    state = load_state(db)
    salt = state.salt or secrets.token_hex(8)
    _save_state(db, replace(state, mode="random", salt=salt, since=now.isoformat()))
    return dict(started.shares)


def set_learning(db: Connection, *, on: bool, now: datetime) -> None:
    """Let the shares follow the outcomes, or stop it; stopping keeps the shares as they are."""
    state = load_state(db)
    if not on:
        if state.mode == "learn":
            _save_state(db, replace(state, mode="random"))
        return
    if state.mode == "fixed":
        use_random(db, (), now=now)
        state = load_state(db)
    _save_state(db, replace(state, mode="learn", day=_day(now)))


def choose_for(db: Connection, session_n: int | None, name: str) -> tuple[Profile, bool]:
    """Return the profile of a session, and whether it still has to be stored."""
    state = load_state(db)
    stored = strategy_rows.find_session_profile(db, session_n) if session_n is not None else None
    known = all_profiles(db)
    if stored in known:
        return known[stored], False
    current = shares(db)
    chosen = state.profile
    if len(current) > 1:
        chosen = bandit.choose_profile(current, name, state.salt)
    return known.get(chosen, profiles.BUILT_IN[profiles.DEFAULT]), session_n is not None


def choose_profile(db: Connection, session_n: int | None, name: str, profile: str = "") -> Profile:
    """Return the profile of this name, or that of a session."""
    return find_profile(db, profile) if profile else choose_for(db, session_n, name)[0]


def is_due(db: Connection, *, now: datetime) -> bool:
    """Return whether learning is on and its day is over."""
    state = load_state(db)
    return state.mode == "learn" and state.day != _day(now)


def advance(db: Connection, *, now: datetime) -> Event:
    """Count the outcomes that became known; in the mode `learn`, end the day if it is over.

    After a pause of some days it is still one day: shares never move by more than a day's shift.
    """
    state = load_state(db)
    if state.mode == "fixed":
        _settle(db, now)
        return ""
    learned = _load_bandit(db, state)
    fresh = _settle(db, now)
    ends_day = is_due(db, now=now)
    if not fresh and not ends_day:
        return ""
    for profile, succeeded in fresh:
        learned = bandit.record_outcome(learned, profile, succeeded=succeeded)
    event: Event = ""
    if ends_day:
        step = bandit.end_day(learned, Random(f"{state.salt} {_day(now)}"))  # noqa: S311
        learned, event = step.bandit, step.event
        since = now.isoformat() if event == "rolled back" else state.since
        state = replace(state, day=_day(now), since=since, rollbacks=learned.rollbacks)
        _save_state(db, state)
    _store_bandit(db, learned, now=now)
    return event


def _settle(db: Connection, now: datetime) -> list[tuple[str, bool]]:
    """Store the outcomes of sessions that became known, and return them in order."""
    return [
        (row.profile, row.outcome == "success")
        for row in strategy_rows.settle_sessions(db, before=now - _QUIET, known=_KNOWN)
    ]


def _load_bandit(db: Connection, state: ExperimentState) -> Bandit:
    rows = [row for row in strategy_rows.list_profiles(db) if row.is_active]
    equal = {row.name: 1 / len(rows) for row in rows}
    outcomes = strategy_rows.settled_outcomes(db, since=state.since)
    return Bandit(
        {row.name: Evidence(row.successes, row.failures) for row in rows},
        {row.name: row.share for row in rows},
        equal,
        tuple(outcomes),
        state.rollbacks,
    )


def _store_bandit(db: Connection, learned: Bandit, *, now: datetime) -> None:
    known = all_profiles(db)
    for row in strategy_rows.list_profiles(db):
        if row.name not in learned.shares:
            strategy_rows.set_evidence(
                db, row.name, share=0.0, successes=row.successes, failures=row.failures,
                is_active=False,
            )  # fmt: skip
    days = []
    for name, share in learned.shares.items():
        if name not in known:
            find_profile(db, name)
        evidence = learned.evidence[name]
        strategy_rows.put_profile(db, known[name].as_json(), now=now)
        strategy_rows.set_evidence(
            db, name, share=share, successes=evidence.successes, failures=evidence.failures,
            is_active=True,
        )  # fmt: skip
        days.append(ProfileDay(_day(now), name, share, evidence.successes, evidence.failures))
    strategy_rows.put_day(db, days)


def report(db: Connection, *, since: datetime | None = None) -> list[ProfileReport]:
    """Return how the sessions of each profile went."""
    sessions = [
        SessionOutcome(
            row.profile,
            row.outcome == "success" if row.outcome in _KNOWN else None,
            profiles.satisfaction_of(row.reason),
        )
        for row in strategy_rows.session_rows(db, since=since)
    ]
    costs = [
        RetrievalCost(
            row.profile, row.took_ms, row.tokens, None if row.used is None else bool(row.used)
        )
        for row in strategy_rows.retrieval_rows(db, since=since)
    ]
    return profiles.make_report(shares(db), sessions, costs)


def _day(now: datetime) -> str:
    return now.date().isoformat()
