"""Sessions as answers: in which conversation was something said or done?"""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np

from lore import clock
from lore.errors import InvalidInput
from lore.recall import fusion, presenting
from lore.recall.choosing import Limits
from lore.recall.features import Floats
from lore.recall.pool import Bounds
from lore.recall.question import Question, parse
from lore.recall.ranking import Ranked, rank
from lore.recall.sources import Numbers, Sources
from lore.records import ItemType, Session, SessionHit
from lore.store import keywords, session_figures, sessions
from lore.store.db import Connection
from lore.text import lines

_BEST = 3
_FAINTEST = -8.0
_HOURS = (3, 24, 168)
"""How fast a session grows old, three times: by hours, days and weeks."""

_WIDE = 10_000
"""Tokens that the best messages of one session may have."""

_MOST = 1_000

CONSIDERED = 120


def find_sessions(
    sources: Sources,
    query: str,
    *,
    project: str,
    limit: int,
    now: datetime,
    recipe: str,
    types: tuple[ItemType, ...] = ("message", "distillation"),
) -> list[SessionHit]:
    """Return the sessions that fit a question, best first."""
    if not 1 <= limit <= _MOST:
        msg = f"Between 1 and {_MOST} sessions can be asked for."
        raise InvalidInput(msg)
    question = parse(query, now)
    with sources.database.read() as db:
        project_n = sessions.get_project(db, project) if project else None
        bounds = Bounds(project_n, types=types)
        ranked = rank(sources, db, question, bounds, recipe)
        ns, described = describe(sources, db, question, ranked, now, project_n, _counted(types))
        if not len(ns):
            return []
        scores = fusion.load_model("sessions").score(described)
        order = fusion.best_first(scores, ns.tolist())[:limit]
        found = sessions.by_number(db, ns[order].tolist())
        return [
            _hit(
                db,
                question,
                ranked,
                found[int(ns[place])],
                int(ns[place]),
                float(scores[place]),
            )
            for place in order
        ]


def _counted(types: tuple[ItemType, ...]) -> ItemType:
    """Return by what a session is measured: its messages, where they may be found."""
    return "message" if "message" in types else "distillation"


def _hit(
    db: Connection,
    question: Question,
    ranked: Ranked,
    session: Session,
    n: int,
    score: float,
) -> SessionHit:
    """Show a session by the log lines that fit, or else by its messages."""
    inside = [place for place in ranked.order() if ranked.pool.rows.sessions[place] == n]
    logs = [place for place in inside if ranked.pool.log[place] > 0]
    best = presenting.present(
        db,
        question,
        ranked,
        (logs or inside)[:_BEST],
        limits=Limits(_BEST, _WIDE),
        explain=False,
    )
    title = session.title or (lines.one_line(best.hits[0].text, 100) if best.hits else "")
    return SessionHit(session.id, title, session.started_at, score, best.hits)


def describe(
    sources: Sources,
    db: Connection,
    question: Question,
    ranked: Ranked,
    now: datetime,
    project_n: int | None = None,
    counted: ItemType = "message",
) -> tuple[Numbers, dict[str, Floats]]:
    """Return the sessions worth a look, with their features."""
    in_files = dict(
        keywords.search(db, "session_words", question.match(), limit=CONSIDERED, weights=(2.0, 1.0))
    )
    in_files = {
        n: score
        for n, score in in_files.items()
        if project_n is None or sessions.project_number(db, n) == project_n
    }
    by_terms = session_figures.term_scores(db, question.terms, project_n, counted)
    pool_sessions = ranked.pool.rows.sessions
    strongest = sorted(by_terms, key=lambda n: -by_terms[n])[:CONSIDERED]
    ns = np.array(sorted({*pool_sessions.tolist(), *in_files, *strongest} - {0}), np.int64)
    if not len(ns):
        return ns, {}
    places = np.searchsorted(ns, pool_sessions)
    figures = session_figures.figures_of(db, ns, counted)
    members = np.concatenate([figure.ns for figure in figures])
    owners = np.repeat(np.arange(len(ns)), [len(figure.ns) for figure in figures])
    from_user = np.concatenate([figure.from_user for figure in figures])
    query = sources.embed_query(question.core)
    cosines = sources.cosines(query, members)
    counts = np.maximum(1, np.bincount(owners, minlength=len(ns)))
    nearest_user = np.zeros(len(ns))
    np.maximum.at(nearest_user, owners, np.where(from_user, cosines, 0.0))
    logits = ranked.scores - ranked.scores.max() if len(ranked.scores) else ranked.scores
    total = np.bincount(places, np.exp(logits), len(ns))
    keyword = ranked.pool.head if counted == "message" else ranked.pool.log
    found = {
        "together": np.maximum(np.log(total + 1e-9), _FAINTEST),
        "words": fusion.shares(np.array([by_terms.get(int(n), 0.0) for n in ns])),
        "files": fusion.shares(np.array([in_files.get(int(n), 0.0) for n in ns])),
        "best_three": _best_three(fusion.shares(keyword), places, len(ns)),
        "about": np.bincount(owners, cosines, len(ns)) / counts,
        "nearest_user": nearest_user,
        "messages": np.log1p(counts),
    }
    started = np.array([figure.started_at for figure in figures], np.float64)
    return ns, found | _recency(started, now)


def _best_three(keyword: Floats, places: Numbers, count: int) -> Floats:
    best = np.zeros((count, _BEST))
    filled = np.zeros(count, np.int64)
    for row in np.argsort(-keyword, kind="stable"):
        place = places[row]
        if filled[place] < _BEST:
            best[place, filled[place]] = keyword[row]
            filled[place] += 1
    mean: Floats = best.mean(axis=1)
    return mean


def _recency(started_us: Floats, now: datetime) -> dict[str, Floats]:
    """How recent a session is; one that began after the question can hardly be meant."""
    hours = (clock.to_us(now) - started_us) / 3.6e9
    later = hours < -timedelta(minutes=6).total_seconds() / 3600
    found = {
        f"recent_{scale}h": np.where(later, 0.0, np.exp(-np.maximum(hours, 0) / scale))
        for scale in _HOURS
    }
    return found | {"later": later.astype(float)}
