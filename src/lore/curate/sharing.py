"""Sharing: a project's knowledge on a page for pull requests, and what people change there.

What comes back from the page has the origin `repo`. A person approves it first, and so it may
be put into a prompt unasked like what the assistant said, never more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from lore.curate import fragments as storing
from lore.errors import InvalidInput, NotFound
from lore.records import UNASKED_TRUST, Draft, Fragment, SharedChange, SharedEntry, SharedPage
from lore.redaction import UNKEPT
from lore.store import actions, fragments, items, sessions, shared
from lore.store.befores import Before, Whose, Words
from lore.store.db import Connection, Database
from lore.store.shared import Shared
from lore.text import entities, hidden, lines, shared_page
from lore.text.secrets import Redactor
from lore.text.shared_page import SECTIONS, Entry, Page, canonical

LEAST_CONFIDENCE = 0.5
"""What is less sure than even is nothing to tell colleagues."""

_MARK = "[secret:"

Verb = Literal["add", "change", "remove"]


def plan_writing(db: Connection, project: str, page: Page | None) -> SharedPage:
    """Return the page that a project's knowledge makes; refuse while it has unread changes."""
    project_n = sessions.get_project(db, project)
    unread = _differences(db, project_n, page) if page else []
    page = page or Page(())
    if unread:
        raise _unread(unread)
    known = shared.of_project(db, project_n)
    names = {row.fragment_n: row.entry for row in known}
    left_out = {row.fragment_n for row in known if row.left_out}
    ns = shared.shareable(db, project_n, least_confidence=LEAST_CONFIDENCE)
    found = fragments.by_number(db, [n for n in ns if n not in left_out])
    told = {n: _entry(names.get(n, found[n].id), found[n]) for n in ns if n in found}
    told = {n: entry for n, entry in told.items() if _MARK not in entry.text}
    there = {entry.id: entry for entry in page.entries}
    kept = {entry.id for entry in told.values()}
    return SharedPage(
        text=shared_page.render(told.values()),
        changes=(
            *(_change(there.get(entry.id), entry) for entry in told.values()
              if there.get(entry.id) != entry),
            *(_change(entry, None) for entry in page.entries if entry.id not in kept),
        ),
        entries=tuple(
            SharedEntry(e.id, found[n].id, _digest(e.text)) for n, e in told.items()
        ),
        gone=tuple(row.entry for row in known if row.entry not in kept and not row.left_out),
    )  # fmt: skip


def _unread(changes: Sequence[SharedChange]) -> InvalidInput:
    """Say that a page has changes that are not in memory, and what to do about them."""
    count = f"{len(changes)} change" + ("" if len(changes) == 1 else "s")
    hint = "'lore share --read' shows them and takes them in."
    if all(change.hidden for change in changes):
        hint = "Something is hidden there: take it off the page, or 'lore share --read --hidden'."
    return InvalidInput(f"The page has {count} that nobody has read here yet.", hint=hint)


def keep_written(database: Database, writing: SharedPage) -> None:
    """Remember what a page says that was written."""

    def work(db: Connection) -> None:
        shared.remove(db, writing.gone)
        shared.put(
            db,
            [
                Shared(e.entry, items.resolve(db, e.fragment_id).n, e.digest, left_out=False)
                for e in writing.entries
            ],
        )

    database.write(work)


def leave_out(database: Database, ids: Sequence[str]) -> None:
    """Keep fragments off the page from now on."""

    def work(db: Connection) -> None:
        found = [items.resolve(db, id_, type="fragment") for id_ in ids]
        shared.put(db, [Shared(item.id, item.n, "", left_out=True) for item in found])

    database.write(work)


def plan_reading(db: Connection, project: str, page: Page) -> list[SharedChange]:
    """Return what people changed on a page since it was last written or read here."""
    try:
        project_n = sessions.get_project(db, project)
    except NotFound:
        return [_change(None, entry) for entry in _once(page.entries)]
    return _differences(db, project_n, page)


def _differences(db: Connection, project_n: int, page: Page) -> list[SharedChange]:
    rows = {row.entry: row for row in shared.of_project(db, project_n)}
    digests = {row.digest for row in rows.values()}
    changes: list[SharedChange] = []
    for entry in _once(page.entries):
        held = _held(db, rows, entry.id, project_n)
        if held is None:
            seen = {rows[entry.id].digest} if entry.id in rows else set() if entry.id else digests
            if _digest(entry.text) not in seen:
                changes.append(_change(None, entry))
        elif not _is_known(rows.get(entry.id), held, entry):
            before = _entry(entry.id, held)
            changes.append(replace(_change(before, entry), fragment_id=held.id))
    present = {entry.id or _digest(entry.text) for entry in page.entries}
    for row in rows.values():
        if not row.left_out and not present & {row.entry, row.digest}:
            held = fragments.get(db, row.fragment_n)
            if not fragments.is_deleted(db, row.fragment_n) and held.superseded_by is None:
                gone = _change(_entry(row.entry, held), None)
                changes.append(replace(gone, fragment_id=held.id))
    return changes


def _once(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries without those that a merge doubled."""
    by_name = {entry.id or entry.text: entry for entry in entries}
    return list(by_name.values())


def _held(db: Connection, rows: dict[str, Shared], id_: str, project_n: int) -> Fragment | None:
    """Return the fragment of this project that an entry stands for, in its present wording."""
    n = rows[id_].fragment_n if id_ in rows else _own(db, id_, project_n)
    if n is None:
        return None
    held = fragments.get(db, n)
    seen = {held.id}
    while held.superseded_by is not None and held.superseded_by not in seen:
        seen.add(held.superseded_by)
        newer = items.resolve(db, held.superseded_by, type="fragment")
        if newer.project_n != project_n:
            return None  # It holds in all projects now: one project's page does not change it.
        held = fragments.get(db, newer.n)
    return held


def _own(db: Connection, id_: str, project_n: int) -> int | None:
    if not id_ or not items.looks_like_id(id_):
        return None
    try:
        item = items.resolve(db, id_, type="fragment")
    except (NotFound, InvalidInput):
        return None
    return item.n if item.project_n == project_n else None


def _is_known(row: Shared | None, held: Fragment, entry: Entry) -> bool:
    if row is not None and row.digest == _digest(entry.text):
        return True
    return canonical(held.content) == entry.text


def take(
    database: Database,
    project: str,
    changes: Iterable[SharedChange],
    *,
    redactor: Redactor = UNKEPT,
) -> int:
    """Take changes in that a person approved, all together; return how many that were."""
    works = [(change, _draft_work(database, project, change, redactor)) for change in changes]

    def work(db: Connection) -> int:
        for change, add in works:
            if add is not None:
                n = items.resolve(db, add(db), type="fragment").n
                entry = change.entry or items.ids_of(db, [n])[n]
                shared.put(db, [Shared(entry, n, _digest(change.after), left_out=False)])
            elif change.verb == "change":
                _reword(database, db, change)
            else:
                n = items.resolve(db, change.fragment_id, type="fragment").n
                storing.hide(db, n, now=database.now())
                shared.remove(db, [change.entry])
        return len(works)

    return database.write(work)


def _draft_work(
    database: Database, project: str, change: SharedChange, redactor: Redactor
) -> storing.Storing | None:
    if change.verb != "add":
        return None
    draft = Draft(change.after, kind=change.kind, origin="repo", project=project)
    return storing.storing(database, draft, redactor, approved=True)


def _reword(database: Database, db: Connection, change: SharedChange) -> None:
    n = items.resolve(db, change.fragment_id, type="fragment").n
    old = fragments.get(db, n)
    now = database.now()
    said = Words(old.content, old.summary, Whose(old.origin, old.trust, old.kind))
    actions.record(db, "update", n, Before(words=said), now=now)
    fragments.attribute(db, n, "repo", min(old.trust, UNASKED_TRUST), change.kind)
    fragments.update(
        db,
        n,
        content=change.after,
        summary=lines.summary(change.after),
        mentioned=entities.extract(change.after, title=""),
        now=now,
        reason="changed on the shared page",
    )
    shared.put(db, [Shared(change.entry, n, _digest(change.after), left_out=False)])


def _entry(id_: str, fragment: Fragment) -> Entry:
    kind = fragment.kind if fragment.kind in SECTIONS else "fact"
    return Entry(id_, kind, canonical(fragment.content))


def _change(before: Entry | None, after: Entry | None) -> SharedChange:
    either = after or before
    assert either is not None
    verb: Verb = "add" if before is None else "remove" if after is None else "change"
    text = after.text if after else ""
    return SharedChange(
        verb=verb,
        entry=either.id,
        kind=either.kind,
        before=before.text if before else "",
        after=text,
        hidden=tuple(f"line {found.line}: {found.what}" for found in hidden.find_hidden(text)),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
