"""Remember: store what someone states explicitly at its place, unless it is a duplicate.

A duplicate that adds nothing changes nothing. With equal trust, a text that says more becomes the
new wording. With higher trust it is stored and supersedes the duplicate. With lower trust it is
stored beside it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import numpy as np

from lore import projects
from lore.digest import fragment_edits, placement
from lore.digest.drafts import NearestSearch, Scores
from lore.digest.fragment_edits import required_trust
from lore.digest.placement import Candidate, Placement
from lore.embed import Embedder
from lore.errors import EmbedderError, InvalidInput, NotFound
from lore.lazy_dataclass import dataclass
from lore.projects import ProjectFinder
from lore.records import TRUST, UNASKED_TRUST, Draft, Origin, Storing
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor
from lore.store import (
    distillations,
    graph,
    history,
    items,
    reversible_changes,
    sessions,
    vectors,
)
from lore.store import fragments as fragment_store
from lore.store.database import Connection, Database
from lore.store.history import SuccessorSnapshot, UndoSnapshot
from lore.text import entities, sentences

MAX_SIMILAR = 3
"""The number of similar fragments to report: enough to see whether two should be merged."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The stored fragments around a draft: similar ones, its duplicate, and its place."""

    near: tuple[Candidate, ...]
    duplicate: Candidate | None
    placement: Placement
    scope: int | None


@dataclass(frozen=True, slots=True)
class RememberOutcome:
    """The id under which a draft is stored, the outcome, and the ids of similar fragments.

    `replaced` is the less trusted duplicate that was superseded.
    """

    id: str
    outcome: Storing
    similar: tuple[str, ...] = ()
    replaced: str = ""


def remember(
    database: Database,
    draft: Draft,
    embedder: Embedder,
    search: NearestSearch,
    *,
    key: str = "",
    redactor: Redactor = EPHEMERAL_REDACTOR,
) -> RememberOutcome:
    """Store a draft at its place, or return the duplicate that is stored already.

    A depth of 0 keeps it a root; any other depth applies only with a parent.
    """
    if not draft.parent_id and draft.depth != 0:
        draft = replace(draft, depth=None)
    draft = fragment_edits.clean_draft(draft, redactor)
    vector = _embed(embedder, draft)
    around = _inspect(database, draft, search, vector)
    resembles = tuple(one.fragment.id for one in around.near[:MAX_SIMILAR])
    same = around.duplicate.fragment if around.duplicate else None
    trust = TRUST[draft.origin]
    if same:
        others = tuple(id_ for id_ in resembles if id_ != same.id)
        if entities.covers_values(same.content, draft.content) and trust <= same.trust:
            return RememberOutcome(same.id, "known", others)
        if required_trust(same) <= trust == same.trust:
            fragment_edits.update(
                database, same.id, draft.content, summary=draft.summary, reason="said again",
                origin=draft.origin, key=key, redactor=redactor,
            )  # fmt: skip
            return RememberOutcome(same.id, "updated", others)
    id_, is_new = _store(database, draft, around, key=key)
    replaced = same.id if same and is_new and trust > same.trust else ""
    return RememberOutcome(id_, "stored" if is_new else "known", resembles, replaced)


def find_corrected_id(
    database: Database, draft: Draft, corrects: str, embedder: Embedder, search: NearestSearch
) -> str:
    """Return the id of the fragment that a draft corrects, named by id or in words; else ''."""
    from lore.digest import draft_writer
    from lore.digest.drafts import DraftFragment

    with database.read() as db, suppress(NotFound, InvalidInput):
        return items.resolve(db, corrects, type="fragment").id
    words = replace(draft, content=corrects, summary="")
    vector, former = _embed(embedder, draft), _embed(embedder, words)
    if vector is None or former is None:
        return ""
    near = (*_inspect(database, draft, search, vector).near,
            *_inspect(database, words, search, former).near)  # fmt: skip
    older = {one.n: one for one in near}
    with database.read() as db:
        embedder_n = vectors.find_embedder(db, embedder.identity)
        rows = vectors.load(db, embedder_n, np.array([*older], np.int64), embedder.dimension)
    stated = DraftFragment(
        draft.content, draft.summary, draft.kind, draft.importance, {}, (), None, corrects, (),
        vector, former,
    )  # fmt: skip
    by_n = dict(zip(older, rows, strict=True))
    after = database.now() + timedelta(microseconds=1)  # all that is stored is older
    corrected = draft_writer.find_corrected(stated, after, [*older.values()], by_n)
    return corrected.fragment.id if corrected else ""


def correct(
    database: Database, older: str, newer: str, *, origin: Origin, redactor: Redactor
) -> bool:
    """Supersede a fragment by its correction; return False if only a conflict could be marked."""
    try:
        fragment_edits.supersede(database, older, newer, origin=origin)
    except InvalidInput:
        fragment_edits.link(database, newer, older, "contradicts", origin=origin, redactor=redactor)
        return False
    return True


def _embed(embedder: Embedder, draft: Draft) -> Scores | None:
    if not embedder.dimension:
        return None
    title = sentences.one_line(draft.summary, fragment_edits.SUMMARY_CHARS)
    text = vectors.fragment_text(title or sentences.summary(draft.content), draft.content)
    try:
        row: Scores = embedder.embed([text])[0]
    except EmbedderError:
        return None
    return row


def _inspect(
    database: Database, draft: Draft, nearest: NearestSearch, vector: Scores | None
) -> Surroundings:
    """Find the duplicate and the place of a draft, before the transaction that stores it."""
    place = ProjectFinder().find(draft.project)
    with database.read() as db:
        project_n = (
            projects.find_project_number(db, draft.project, place) if draft.project else None
        )
    neighbours = placement.find_neighbours(nearest, vector, project_n)
    with database.read() as db:
        scope = project_n if draft.project else _session_scope(db, draft.session)
        own = placement.applying(db, placement.load_candidates(db, neighbours), scope)
        same_n = distillations.find_same_text(db, draft.content, scope=scope, kind=draft.kind)
        if same_n is not None:
            same: Candidate | None = Candidate(same_n, 1.0, fragment_store.get(db, same_n))
        else:
            same = placement.find_duplicate(draft.kind, draft.content, draft.payload, own)
    near = tuple(one for one in own if one.cosine >= placement.ASSOCIATE_FROM)
    placed = Placement()
    if not draft.parent_id:
        others = [one for one in own if same is None or one.n != same.n]
        placed = placement.choose_place(others)
    if draft.depth == 0 and placed.parent is not None:
        placed = Placement(linked=placed.parent, nearest=placed.nearest)
    return Surroundings(near, same, placed, scope)


def _session_scope(db: Connection, session: str) -> int | None:
    """Return the scope of what is stored in a session; None, for all projects, if it is in none."""
    if not session:
        return None
    n = sessions.get_session_number(db, session)
    return sessions.project_of_session(db, n) or items.NO_PROJECT


def _store(database: Database, draft: Draft, around: Surroundings, *, key: str) -> tuple[str, bool]:
    """Store a draft at its place and return its id, and whether it is new.

    Another process may have stored the same text since the search.
    """
    now, placed = database.now(), around.placement
    parent_id = draft.parent_id
    if placed.parent is not None:
        with database.read() as db:
            parent_id = fragment_store.get(db, placed.parent).id
    depth = draft.depth if draft.parent_id else None
    placed_draft = replace(draft, parent_id=parent_id, depth=depth)
    work = fragment_edits.prepare_store(database, placed_draft, redactor=None)

    def store(db: Connection) -> tuple[str, bool]:
        same_n = distillations.find_same_text(
            db, draft.content, scope=around.scope, kind=draft.kind
        )
        if same_n is not None and (around.duplicate is None or same_n != around.duplicate.n):
            return fragment_store.get(db, same_n).id, False
        elder = graph.children(db, placed.parent) if placed.parent is not None else []
        id_ = work(db)
        n = items.resolve(db, id_).n
        if elder:
            graph.put_edge(db, elder[-1], n, "temporal", now=now)
        if placed.parent is not None and TRUST[draft.origin] >= UNASKED_TRUST:
            fragment_store.reinforce(db, placed.parent, now=now)
        if placed.linked is not None:
            graph.put_edge(
                db, n, placed.linked, "associative", now=now, weight=round(placed.nearest, 4)
            )
        if around.duplicate is not None and TRUST[draft.origin] > around.duplicate.fragment.trust:
            reversible_changes.supersede(db, around.duplicate.n, n, now=now)
            before = UndoSnapshot(successor=SuccessorSnapshot(n))
            history.record_action(db, "supersede", around.duplicate.n, before, now=now)
        return id_, True

    id_, is_new = database.write(store, key=fragment_edits.scope_key("store", key))
    return id_, is_new
