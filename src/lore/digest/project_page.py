"""Share knowledge: the .lore.md file of a repository, and promotion beyond one project."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal

from lore import clock, config_files, local_files
from lore.digest import fragment_edits as storing
from lore.digest.fragment_edits import scope_key
from lore.errors import InvalidInput, NotFound
from lore.recall.known_topics import SYMPTOM, is_symptom, stands_for_itself
from lore.records import (
    UNASKED_TRUST,
    Draft,
    Fragment,
    FragmentKind,
    PromotionOffer,
    SharedChange,
    SharedEntry,
    SharedPage,
)
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor
from lore.store import (
    consolidation,
    fragments,
    hard_delete,
    history,
    items,
    project_rows,
    replacements,
    reversible_changes,
)
from lore.store.database import Connection, Database
from lore.store.fragments import NewFragment
from lore.store.history import Attribution, UndoSnapshot, Wording
from lore.store.project_rows import SharedRow
from lore.text import entities, hidden_text, sentences, shared_page, statements
from lore.text.regex import compile_lazy
from lore.text.shared_page import SECTIONS, Entry, Page, canonical

MIN_CONFIDENCE = 0.5
"""Less certain knowledge is not shared with colleagues."""

_REDACTION_MARK = "[secret:"

Verb = Literal["add", "change", "remove"]


MOST_ENTRIES, MOST_BYTES = 60, 12_000
"""What a colleague reads in a pull request; `whole` pages have everything."""

_FRESH_DAYS = 30
"""In so many days an entry loses half of what recency gives it."""

_WEIGHTS: dict[FragmentKind, float] = {"bug_fix": 0.6, "fact": 0.7, "insight": 0.7}
"""Decisions, rules and commands come before bugs that were mended and single facts."""

_STAYS, _TORN = 1.3, 0.3
"""Factors for what is on the page already, so that it changes little, and for what is torn."""


def plan_page(
    db: Connection, project: str, page: Page | None, *, whole: bool = False
) -> SharedPage:
    """Return the page of a project's knowledge; raise while the file has unread changes.

    It has the entries that matter most; with `whole` it has all.
    """
    project_n = project_rows.get_project(db, project)
    unread = _differences(db, project_n, page) if page else []
    page = page or Page(())
    if unread:
        raise _unread_changes_error(unread)
    rows = project_rows.shared_entries(db, project_n)
    names = {row.fragment_n: row.entry for row in rows}
    left_out = {row.fragment_n for row in rows if row.left_out}
    ns = project_rows.shareable_fragments(db, project_n, least_confidence=MIN_CONFIDENCE)
    ns = replacements.holding(db, ns)
    by_number = fragments.by_number(db, [n for n in ns if n not in left_out])
    texts = _page_texts(db, project_n, by_number)
    entries = {
        n: _entry(names.get(n, by_number[n].id), by_number[n], texts[n])
        for n in ns
        if n in by_number
    }
    entries = {
        n: entry
        for n, entry in entries.items()
        if _REDACTION_MARK not in entry.text and not statements.is_proposal(entry.text)
    }
    there = {entry.id: entry for entry in page.entries}
    total = len(entries)
    if not whole:
        entries = _most_useful(entries, by_number, there)
    entry_ids = {entry.id for entry in entries.values()}
    return SharedPage(
        text=shared_page.render(entries.values(), total=total),
        changes=(
            *(_change(there.get(entry.id), entry) for entry in entries.values()
              if there.get(entry.id) != entry),
            *(_change(entry, None) for entry in page.entries if entry.id not in entry_ids),
        ),
        entries=tuple(
            SharedEntry(e.id, by_number[n].id, _digest(e.text)) for n, e in entries.items()
        ),
        gone=tuple(row.entry for row in rows if row.entry not in entry_ids and not row.left_out),
        total=total,
    )  # fmt: skip


def _most_useful(
    entries: dict[int, Entry], by_number: dict[int, Fragment], there: Container[str]
) -> dict[int, Entry]:
    """Return the entries that fit on a page, in their order, the most useful being chosen."""
    latest = max((by_number[n].created_at for n in entries), default=None)

    def usefulness(n: int) -> tuple[bool, float]:
        fragment, entry = by_number[n], entries[n]
        assert latest is not None
        days = (latest - fragment.created_at).total_seconds() / 86_400
        is_torn = not stands_for_itself(entry.text.split("\n")[0].rstrip(":"))
        score = (
            fragment.importance
            * fragment.confidence
            * (SYMPTOM if is_symptom(fragment) else _WEIGHTS.get(fragment.kind, 1.0))
            * (0.4 + 0.6 * 0.5 ** (days / _FRESH_DAYS))
            * (_STAYS if entry.id in there else 1.0)
            * (_TORN if is_torn else 1.0)
        )
        # What a person wrote, on a page or by 'lore remember', is there first.
        return fragment.origin == "repo" or fragment.session_id is None, score

    chosen, size = set[int](), 0
    for n in sorted(entries, key=usefulness, reverse=True):
        size += len(entries[n].text.encode("utf-8", "replace")) + _ENTRY_MARKUP
        if len(chosen) == MOST_ENTRIES or size > MOST_BYTES:
            break
        chosen.add(n)
    return {n: entry for n, entry in entries.items() if n in chosen}


_ENTRY_MARKUP = 60
"""Bytes of an entry besides its text: its id in a comment, and the sign of the list."""

_HOME = compile_lazy(
    r"(?:/home/[^/\s`'\"]+|/Users/[^/\s`'\"]+|/root|[A-Z]:\\Users\\[^\\\s]+)(?=[/\\])"
)
"""A person's own folder in a path."""


def _page_texts(
    db: Connection, project_n: int, by_number: Mapping[int, Fragment]
) -> dict[int, str]:
    """Return the texts of fragments for the page, by number.

    An overview repeats the entries below it, so its own text is taken. Paths are those of nobody.
    """
    own = consolidation.texts_before_overviews(db, list(by_number))
    names = project_rows.names_of_projects(db, [project_n])
    folders = sorted(filter(os.path.isabs, names), key=len, reverse=True)
    return {n: _without_home(own.get(n, one.content), folders) for n, one in by_number.items()}


def _without_home(text: str, folders: Sequence[str]) -> str:
    for folder in folders:
        if len(folder) > 1:
            text = text.replace(f"{folder}/", "").replace(folder, Path(folder).name)
    return _HOME.sub("~", text)


def _unread_changes_error(changes: Sequence[SharedChange]) -> InvalidInput:
    count = f"{len(changes)} change" + ("" if len(changes) == 1 else "s")
    hint = "'lore share --read' shows them and reads them in."
    if all(change.hidden for change in changes):
        hint = "Something is hidden there: take it off the page, or 'lore share --read --hidden'."
    return InvalidInput(f"The page has {count} not read into memory yet.", hint=hint)


def record_written_page(database: Database, page: SharedPage) -> None:
    """Record the entries of a page that was written."""

    def work(db: Connection) -> None:
        project_rows.remove_shared_entries(db, page.gone)
        project_rows.put_shared_entries(
            db,
            [
                SharedRow(e.entry, items.resolve(db, e.fragment_id).n, e.digest, left_out=False)
                for e in page.entries
            ],
        )

    database.write(work)


def exclude_fragments(database: Database, ids: Sequence[str]) -> None:
    """Exclude fragments from the page from now on."""

    def work(db: Connection) -> None:
        resolved = [items.resolve(db, id_, type="fragment") for id_ in ids]
        project_rows.put_shared_entries(
            db, [SharedRow(item.id, item.n, "", left_out=True) for item in resolved]
        )

    database.write(work)


def read_changes(db: Connection, project: str, page: Page) -> list[SharedChange]:
    """Return what people changed on a page since it was last written or read here."""
    try:
        project_n = project_rows.get_project(db, project)
    except NotFound:
        return [_change(None, entry) for entry in _deduplicate_entries(page.entries)]
    return _differences(db, project_n, page)


def _differences(db: Connection, project_n: int, page: Page) -> list[SharedChange]:
    rows = {row.entry: row for row in project_rows.shared_entries(db, project_n)}
    digests = {row.digest for row in rows.values()}
    changes: list[SharedChange] = []
    shown = partial(_shown_entry, db, project_n)
    forgotten = history.find_tombstones(db, [entry.id for entry in page.entries if entry.id])
    for entry in _deduplicate_entries(page.entries):
        if entry.id in forgotten:
            continue  # an older version of the page does not bring it back
        fragment = _current_fragment(db, rows, entry.id, project_n)
        if fragment is None:
            known_digests = (
                {rows[entry.id].digest} if entry.id in rows else set() if entry.id else digests
            )
            if _digest(entry.text) not in known_digests:
                changes.append(_change(None, entry))
        elif canonical(fragment.content) != entry.text and (
            entry.id not in rows or rows[entry.id].digest != _digest(entry.text)
        ):
            before = shown(entry.id, fragment)
            if before.text == entry.text:
                continue
            changes.append(replace(_change(before, entry), fragment_id=fragment.id))
    present = {entry.id or _digest(entry.text) for entry in page.entries}
    for row in rows.values():
        if not row.left_out and not present & {row.entry, row.digest}:
            fragment = fragments.get(db, row.fragment_n)
            if not fragments.is_deleted(db, row.fragment_n) and fragment.superseded_by is None:
                removal = _change(shown(row.entry, fragment), None)
                changes.append(replace(removal, fragment_id=fragment.id))
    return changes


def _deduplicate_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries without duplicates that a git merge made."""
    by_name = {entry.id or entry.text: entry for entry in entries}
    return list(by_name.values())


def _current_fragment(
    db: Connection, rows: dict[str, SharedRow], id_: str, project_n: int
) -> Fragment | None:
    """Return the fragment of this project that an entry stands for, in its current version."""
    n = rows[id_].fragment_n if id_ in rows else _find_own_fragment(db, id_, project_n)
    if n is None:
        return None
    fragment = fragments.get(db, n)
    visited = {fragment.id}
    while fragment.superseded_by is not None and fragment.superseded_by not in visited:
        visited.add(fragment.superseded_by)
        newer = items.resolve(db, fragment.superseded_by, type="fragment")
        if newer.project_n != project_n:
            return None  # It applies to all projects now: one project's page does not change it.
        fragment = fragments.get(db, newer.n)
    return fragment


def _find_own_fragment(db: Connection, id_: str, project_n: int) -> int | None:
    if not id_ or not items.looks_like_id(id_):
        return None
    try:
        item = items.resolve(db, id_, type="fragment")
    except (NotFound, InvalidInput):
        return None
    return item.n if item.project_n == project_n else None


def apply_changes(
    database: Database,
    project: str,
    changes: Iterable[SharedChange],
    *,
    redactor: Redactor = EPHEMERAL_REDACTOR,
) -> int:
    """Apply the changes that a user approved, in one transaction; return how many."""
    return database.write(prepare_changes(database, project, changes, redactor=redactor))


def prepare_changes(
    database: Database,
    project: str,
    changes: Iterable[SharedChange],
    *,
    redactor: Redactor = EPHEMERAL_REDACTOR,
) -> Callable[[Connection], int]:
    """Return the work that applies the changes that a user approved: see `apply_changes`."""
    changes = list(changes)
    additions = {
        place: storing.prepare_store(
            database,
            Draft(change.after, kind=change.kind, origin="repo", project=project),
            redactor,
            approved=True,
        )
        for place, change in enumerate(changes)
        if change.verb == "add"
    }

    def work(db: Connection) -> int:
        for place, change in enumerate(changes):
            id_ = additions[place](db) if change.verb == "add" else change.fragment_id
            n = items.resolve(db, id_, type="fragment").n
            if change.verb == "remove":
                storing.hide_undoably(db, n, now=database.now())
                project_rows.remove_shared_entries(db, [change.entry])
                continue
            if change.verb == "change":
                _reword(db, n, change, database.now())
            row = SharedRow(change.entry or id_, n, _digest(change.after), left_out=False)
            project_rows.put_shared_entries(db, [row])
        return len(changes)

    return work


def _reword(db: Connection, n: int, change: SharedChange, now: datetime) -> None:
    old = fragments.get(db, n)
    wording = Wording(old.content, old.summary, Attribution(old.origin, old.trust, old.kind))
    history.record_action(db, "update", n, UndoSnapshot(wording=wording), now=now)
    fragments.set_attribution(db, n, "repo", min(old.trust, UNASKED_TRUST), change.kind)
    fragments.update(
        db,
        n,
        content=change.after,
        summary=sentences.summary(change.after),
        mentioned=entities.extract_mentions(change.after, title=""),
        now=now,
        reason="changed on the shared page",
    )


def _entry(id_: str, fragment: Fragment, text: str) -> Entry:
    kind = fragment.kind if fragment.kind in SECTIONS else "fact"
    return Entry(id_, kind, canonical(text))


def _shown_entry(db: Connection, project_n: int, id_: str, fragment: Fragment) -> Entry:
    """Return the entry of a fragment as a page has it."""
    n = items.resolve(db, fragment.id, type="fragment").n
    return _entry(id_, fragment, _page_texts(db, project_n, {n: fragment})[n])


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
        hidden=tuple(
            f"line {finding.line}: {finding.what}" for finding in hidden_text.find_hidden(text)
        ),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


MAX_PAGE_BYTES = 1_000_000
"""A page is written for people; a larger file is none."""


def read_page(path: Path, redactor: Redactor) -> Page | None:
    """Return the page in a file, without its secrets; None if there is no file."""
    if path.is_symlink():
        msg = f"{path} is a symbolic link; a page is read from a regular file only."
        raise InvalidInput(msg)
    try:
        size = path.stat().st_size
        raw = config_files.read_small_file(path, MAX_PAGE_BYTES) if size <= MAX_PAGE_BYTES else b""
    except FileNotFoundError:
        return None
    if size > MAX_PAGE_BYTES:
        msg = f"{path} has {size:,} bytes; a page has at most {MAX_PAGE_BYTES:,}."
        raise InvalidInput(msg)
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    if shared_page.has_conflict(text):
        msg = f"{path} has the marks of an unfinished merge."
        raise InvalidInput(msg, hint="Resolve the conflict first.")
    return shared_page.parse(redactor.redact(text))


class ForgottenEntries:
    """The entries of shared pages that go with what is forgotten.

    Create it before the forgetting, while the store still knows the entries of its fragments.
    """

    def __init__(self, db: Connection, item_ns: Sequence[int], text: str) -> None:
        projects = project_rows.all_projects(db)
        self._ids = set(items.ids_of(db, item_ns).values())
        self._ids |= project_rows.entries_of_fragments(db, item_ns)
        self._needle = hard_delete.normalize_text(text)
        self._pages = [
            Path(project.path, shared_page.FILE_NAME)
            for project in projects.values()
            if project.path.startswith("/") and not local_files.are_withheld()
        ]

    def find_pages(self) -> list[Path]:
        """Return the pages that have such entries."""
        return [path for path, before, after in self._changes() if before != after]

    def remove(self) -> None:
        """Remove the entries from their pages."""
        for path, before, after in self._changes():
            if before != after:
                write_page(path, after)

    def _changes(self) -> Iterator[tuple[Path, str, str]]:
        for path in self._pages:
            with suppress(OSError, UnicodeDecodeError):
                text = config_files.read_small_file(path, MAX_PAGE_BYTES).decode("utf-8")
                yield path, text, shared_page.remove_entries(text, self._is_forgotten)

    def _is_forgotten(self, entry: Entry) -> bool:
        if entry.id in self._ids:
            return True
        return bool(self._needle) and self._needle in hard_delete.normalize_text(entry.text)


def write_page(path: Path, text: str) -> None:
    """Write a page atomically."""
    if path.is_symlink():
        msg = f"{path} is a symbolic link; a page is written to a regular file only."
        raise InvalidInput(msg)
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        part.write_text(text, "utf-8", newline="\n")
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


MIN_PROJECTS, MIN_PROMOTION_CONFIDENCE = 3, 0.8
"""A fragment with this many confirming projects and this confidence is offered;

from the specification.
"""


def promotion_offers(db: Connection) -> list[PromotionOffer]:
    """Return the fragments that may be promoted, those confirmed in most projects first."""
    confirmations = reversible_changes.widely_confirmed(
        db, projects=MIN_PROJECTS, confidence=MIN_PROMOTION_CONFIDENCE, trust=UNASKED_TRUST
    )
    rows = fragments.by_number(db, list(confirmations))
    return [PromotionOffer(rows[n], by_project) for n, by_project in confirmations.items()]


def promote(database: Database, id_: str, *, key: str = "") -> str:
    """Promote a fragment to all projects and return the id of the new one.

    The new fragment supersedes the old one; undo restores it. A user promotes, so an assistant's
    preference counts as the user's own from then on.
    """
    work = partial(promote_one, id_=id_, now=database.now())
    return database.write(work, key=scope_key("promote", key))


def promote_one(db: Connection, *, id_: str, now: datetime) -> str:
    """Promote a fragment in a transaction and return the id of the new one: see `promote`."""
    n = items.resolve(db, id_, type="fragment").n
    old = fragments.get(db, n)
    if items.scopes_of(db, [n])[n] is None:
        msg = f"Fragment '{id_}' applies to all projects already."
        raise InvalidInput(msg)
    if old.superseded_by is not None or fragments.is_deleted(db, n):
        msg = f"Fragment '{id_}' was deleted or superseded, so it cannot be promoted."
        raise InvalidInput(msg)
    new = NewFragment(
        id=clock.new_id(now),
        content=old.content,
        summary=old.summary,
        kind=old.kind,
        created_at=old.created_at,
        payload=old.payload,
        importance=old.importance,
        confidence=old.confidence,
        origin=old.origin,
        trust=old.trust,
        source_messages=old.source_messages,
        mentions=entities.fragment_mentions(old.content, old.summary),
        metadata={**old.metadata, "promoted_from": old.id},
    )
    newer = fragments.add(db, new, now=now)
    reversible_changes.supersede(db, n, newer, now=now)
    history.record_action(db, "store", newer, now=now)
    return new.id
