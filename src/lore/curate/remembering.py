"""Remembering: what someone stores by hand finds its place, unless it is known already.

A text that says nothing beyond what is known changes nothing. Of equal trust, one that says more
becomes the new wording; a higher voice says it itself, and the lower one steps back; a lower voice
leaves what is known as it is, and stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lore import projects
from lore.curate import fragments, merging, nearness, placing
from lore.curate.means import Nearest, Scores
from lore.curate.merging import Candidate
from lore.curate.placing import NO_ROOTS, Neighbour, Placement
from lore.curate.trust import needed_for
from lore.embed import Embedder
from lore.errors import EmbedderError
from lore.projects import Projects
from lore.records import TRUST, UNASKED_TRUST, Draft, Storing
from lore.redaction import UNKEPT
from lore.store import actions, curation, edges, items, sessions, superseding, vectors
from lore.store import fragments as fragment_store
from lore.store.befores import Before, Successor
from lore.store.db import Connection, Database
from lore.text import lines
from lore.text.secrets import Redactor

RESEMBLING = 3
"""So many of the nearest are named: enough to see whether two should be one."""


@dataclass(frozen=True, slots=True)
class Known:
    """What was known before: the nearest, what says the same, and where the draft belongs."""

    near: tuple[Candidate, ...]
    same: Candidate | None
    placed: Placement
    project_n: int | None


@dataclass(frozen=True, slots=True)
class Kept:
    """The id under which something is kept, how it came there, and the ids of what is like it.

    `replaced` is what said the same with less trust, and stepped back.
    """

    id: str
    outcome: Storing
    resembles: tuple[str, ...] = ()
    replaced: str = ""


def remember(
    database: Database,
    draft: Draft,
    embedder: Embedder,
    nearest: Nearest,
    *,
    key: str = "",
    redactor: Redactor = UNKEPT,
) -> Kept:
    """Store a draft below what it belongs to, or say as what it is known.

    A depth of 0 keeps it at the top; any other is a wish that only a parent can fulfil.
    """
    draft = fragments.prepared(_placeable(draft), redactor)
    vector = _embedded(embedder, draft)
    known = _look(database, draft, nearest, vector)
    resembles = tuple(one.fragment.id for one in known.near[:RESEMBLING])
    same = known.same.fragment if known.same else None
    if (
        same
        and merging.keeps_all(same.content, draft.content)
        and TRUST[draft.origin] <= same.trust
    ):
        return Kept(same.id, "known", tuple(id_ for id_ in resembles if id_ != same.id))
    if same and needed_for(same) <= TRUST[draft.origin] == same.trust:
        fragments.update(
            database, same.id, draft.content, summary=draft.summary, reason="said again",
            origin=draft.origin, key=key, redactor=redactor,
        )  # fmt: skip
        return Kept(same.id, "updated", tuple(id_ for id_ in resembles if id_ != same.id))
    id_, is_new = _store(database, draft, known, key=key)
    replaced = same.id if same and is_new and TRUST[draft.origin] > same.trust else ""
    return Kept(id_, "stored" if is_new else "known", resembles, replaced)


def _placeable(draft: Draft) -> Draft:
    """Return a draft without a depth that its place will decide."""
    is_placed = draft.parent_id or draft.depth == 0
    return draft if is_placed else replace(draft, depth=None)


def _embedded(embedder: Embedder, draft: Draft) -> Scores | None:
    """Return the vector of a draft; where none can be had, words alone tell what is known."""
    if not embedder.dimension:
        return None
    title = lines.one_line(draft.summary, fragments.SUMMARY_CHARS)
    text = vectors.fragment_text(title or lines.summary(draft.content), draft.content)
    try:
        row: Scores = embedder.embed([text])[0]
    except EmbedderError:
        return None
    return row


def _look(database: Database, draft: Draft, nearest: Nearest, vector: Scores | None) -> Known:
    """Look around before the transaction that stores."""
    place = Projects().find(draft.project)
    with database.read() as db:
        project_n = projects.find(db, draft.project, place) if draft.project else None
    found = nearness.neighbours(nearest, vector, project_n)
    with database.read() as db:
        project_id = sessions.projects(db)[project_n].id if project_n else None
        own = [
            one
            for one in nearness.candidates(db, found)
            if one.fragment.project_id in (None, project_id)
        ]
        said = curation.find_saying(db, draft.content, project_n=project_n, kind=draft.kind)
        if said is not None:
            same: Candidate | None = Candidate(said, 1.0, fragment_store.get(db, said))
        else:
            same = merging.find(draft.kind, draft.content, draft.payload, own)
    roots = [
        Neighbour(one.n, one.cosine)
        for one in own
        if one.fragment.depth == 0
        and one.fragment.kind not in NO_ROOTS
        and (same is None or one.n != same.n)
    ]
    near = tuple(one for one in own if one.cosine >= placing.ASSOCIATED)
    placed = Placement() if draft.parent_id else placing.place(roots)
    if draft.depth == 0 and placed.parent is not None:
        placed = Placement(linked=placed.parent, weight=placed.nearest, nearest=placed.nearest)
    return Known(near, same, placed, project_n)


def _store(database: Database, draft: Draft, known: Known, *, key: str) -> tuple[str, bool]:
    """Store a draft at its place and return its id, and whether it is new.

    Another process may have stored the same words since they were looked for.
    """
    now, placed = database.now(), known.placed
    place_id = _id_of(database, placed.parent)
    depth = draft.depth if draft.parent_id else None
    work = fragments.storing_prepared(
        database, replace(draft, parent_id=draft.parent_id or place_id, depth=depth)
    )

    def store(db: Connection) -> tuple[str, bool]:
        said = curation.find_saying(db, draft.content, project_n=known.project_n, kind=draft.kind)
        if said is not None and (known.same is None or said != known.same.n):
            return fragment_store.get(db, said).id, False
        elder = edges.children(db, placed.parent) if placed.parent is not None else []
        id_ = work(db)
        n = items.resolve(db, id_).n
        if elder:
            edges.put(db, elder[-1], n, "temporal", now=now)
        if placed.parent is not None and TRUST[draft.origin] >= UNASKED_TRUST:
            fragment_store.reinforce(db, placed.parent, now=now)
        if placed.linked is not None:
            edges.put(db, n, placed.linked, "associative", now=now, weight=round(placed.weight, 4))
        if known.same is not None and TRUST[draft.origin] > known.same.fragment.trust:
            superseding.supersede(db, known.same.n, n, now=now)
            before = Before(successor=Successor(n))
            actions.record(db, "supersede", known.same.n, before, now=now)
        return id_, True

    id_, is_new = database.write(store, key=fragments.scoped("store", key))
    return id_, is_new


def _id_of(database: Database, n: int | None) -> str:
    if n is None:
        return ""
    with database.read() as db:
        return fragment_store.get(db, n).id
