"""Knowledge by hand: store, change, link, undo, revoke and share fragments, resolve conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lore import clock
from lore.digest import fragment_edits, undo
from lore.errors import NotFound
from lore.memory import context
from lore.memory.context import MemoryPart, PageSize
from lore.recall import fragment_details, item_details
from lore.records import (
    Conflict,
    Decision,
    DoubtfulPair,
    Draft,
    Edge,
    EdgeKind,
    Fragment,
    FragmentEvent,
    FragmentKind,
    FragmentVersion,
    InstructionDecision,
    KnowledgeGraph,
    LearnedDay,
    LearnedEntry,
    LinkedFragment,
    Origin,
    Page,
    PromotionOffer,
    Reading,
    RelevanceCurve,
    RememberResult,
    Revocation,
    SharedChange,
    SharedPage,
    SourceMessage,
    StandingInstruction,
    Title,
    VersionChange,
)
from lore.store import fragments as fragment_store
from lore.store import items, learned_rows, pages
from lore.store import standing_instructions as instruction_store
from lore.store.database import Connection
from lore.store.learned_rows import LearnedKey
from lore.store.replacements import Relation
from lore.validation import Count, Whole, validate_methods


@validate_methods
class Knowledge(MemoryPart):
    """Store, change, link, undo, revoke and share fragments, and resolve conflicts."""

    def store(
        self,
        content: str,
        *,
        summary: str = "",
        kind: FragmentKind = "fact",
        parent_id: str = "",
        depth: Whole | None = None,
        importance: float = 0.5,
        confidence: float = 0.7,
        origin: Origin = "user",
        project: str = "",
        session: str = "",
        source_messages: Sequence[str] = (),
        payload: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> str:
        """Store a fragment and return its id; the same key again returns the same id."""
        draft = Draft(
            content, summary, kind, parent_id, depth, importance, confidence, origin, project,
            session, tuple(source_messages), payload or {},
        )  # fmt: skip
        return fragment_edits.store(self._database, draft, key=key, redactor=self._redactor)

    def remember(
        self,
        content: str,
        *,
        summary: str = "",
        kind: FragmentKind = "fact",
        parent_id: str = "",
        depth: Whole | None = None,
        importance: float = 0.5,
        origin: Origin = "user",
        project: str = "",
        session: str = "",
        payload: Mapping[str, Any] | None = None,
        corrects: str = "",
        key: str = "",
    ) -> RememberResult:
        """Store a fragment in the tree unless it is a duplicate, and report the outcome.

        Without a parent it is placed below the nearest root. A depth of 0 keeps it at the top;
        another depth is only a hint, which a parent overrides. `corrects` names, by id or in words,
        what no longer holds: it is superseded, unless a more trusted origin said it.
        """
        from lore.digest import remember

        draft = Draft(
            content, summary, kind, parent_id, depth, importance,
            origin=origin, project=project, session=session, payload=payload or {},
        )  # fmt: skip
        self._context.catch_up()
        sources = self._sources
        older = ""
        if corrects:
            older = remember.find_corrected_id(
                self._database, draft, self._redactor.redact(corrects), sources.embedder,
                sources.nearest,
            )  # fmt: skip
        placed = remember.remember(
            self._database, draft, sources.embedder, sources.nearest,
            key=key, redactor=self._redactor,
        )  # fmt: skip
        if placed.replaced:
            self._sources.drop_hidden([placed.replaced])
        self._context.catch_up()  # the vector is at hand
        superseded = bool(older) and older != placed.id and self._correct(older, placed.id, origin)
        with self._database.read() as db:
            result = item_details.remember_result(db, placed.id, placed.outcome, placed.similar)
            result = replace(result, redacted=self._redactor.redact(content) != content)
            if not older or older == placed.id:
                return result
            (title,) = item_details.titles(db, [items.resolve(db, older).n])
        if superseded:
            return replace(result, corrected=title)
        return replace(result, contradicts=title)

    def _correct(self, older: str, newer: str, origin: Origin) -> bool:
        from lore.digest import remember

        superseded = remember.correct(
            self._database, older, newer, origin=origin, redactor=self._redactor
        )
        if superseded:
            self._sources.drop_hidden([older])
        return superseded

    def store_all(self, drafts: Iterable[Draft]) -> list[str]:
        """Store many fragments in one transaction and return their ids in order."""
        return fragment_edits.store_all(self._database, drafts, redactor=self._redactor)

    def update(
        self,
        id: str,
        content: str,
        *,
        summary: str = "",
        reason: str = "",
        origin: Origin = "user",
        key: str = "",
    ) -> int:
        """Replace the text of a fragment and return its new version; former versions are stored."""
        return fragment_edits.update(
            self._database, id, content,
            summary=summary, reason=reason, origin=origin, key=key, redactor=self._redactor,
        )  # fmt: skip

    def delete(self, id: str, *, origin: Origin = "user", key: str = "") -> str:
        """Hide a fragment until `undo` restores it; return its full id."""
        deleted = fragment_edits.delete(self._database, id, origin=origin, key=key)
        self._sources.drop_hidden([deleted])
        return deleted

    def undo(self, id: str = "", *, key: str = "") -> tuple[str, str]:
        """Undo the last manual change, of all fragments or of one; return verb and id."""
        undone = undo.undo(self._database, id, key=key)
        self._sources.drop_hidden()
        return undone

    def redo(self, id: str = "", *, key: str = "") -> tuple[str, str]:
        """Redo what was last undone; return verb and id."""
        redone = undo.redo(self._database, id, key=key)
        self._sources.drop_hidden()
        return redone

    def next_undo(self, id: str = "", *, redo: bool = False) -> tuple[str, str] | None:
        """Return verb and id of the next change that `undo`, or `redo`, would act on."""
        with self._database.read() as db:
            return undo.find_next(db, id, redo=redo)

    def link(
        self, source: str, target: str, kind: EdgeKind, *,
        weight: float = 1.0, note: str = "", origin: Origin = "user", key: str = "",
    ) -> None:  # fmt: skip
        """Add an edge between two fragments in the name of `origin`."""
        fragment_edits.link(
            self._database, source, target, kind,
            weight=weight, note=note, origin=origin, key=key, redactor=self._redactor,
        )  # fmt: skip

    def supersede(self, old: str, new: str, *, origin: Origin = "user", key: str = "") -> None:
        """Supersede an older fragment by a newer one in the name of `origin`; both stay stored."""
        fragment_edits.supersede(self._database, old, new, origin=origin, key=key)
        self._sources.drop_hidden([old])

    def plan_share(self, project: str, file: Path, *, whole: bool = False) -> SharedPage:
        """Return the shared page of a project as `share` would write it.

        It has some 60 entries; with `whole` it has all.
        """
        from lore.digest import project_page

        page = project_page.read_page(file, self._redactor)
        with self._database.read() as db:
            name = self._redactor.redact(project)
            return project_page.plan_page(db, name, page, whole=whole)

    def share(self, page: SharedPage, file: Path) -> None:
        """Write the shared page of a project after a person has reviewed it."""
        from lore.digest import project_page

        project_page.write_page(file, page.text)
        project_page.record_written_page(self._database, page)

    def exclude_from_page(self, ids: Sequence[str]) -> None:
        """Exclude fragments from the shared page from now on."""
        from lore.digest import project_page

        project_page.exclude_fragments(self._database, ids)

    def read_shared(self, project: str, file: Path) -> list[SharedChange]:
        """Return what people changed on a project's page, without applying it."""
        from lore.digest import project_page

        page = project_page.read_page(file, self._redactor)
        if page is None:
            msg = f"There is no {file}."
            raise NotFound(msg, hint="'lore share' writes one.")
        with self._database.read() as db:
            return project_page.read_changes(db, self._redactor.redact(project), page)

    def apply_shared(self, project: str, changes: Sequence[SharedChange]) -> int:
        """Apply the changes on a project's page that a person has approved."""
        from lore.digest import project_page

        project = self._redactor.redact(project)
        applied = project_page.apply_changes(
            self._database, project, changes, redactor=self._redactor
        )
        self._sources.drop_hidden()
        return applied

    def revoke(
        self,
        *,
        session: str = "",
        origin: str = "",
        file: str = "",
        project: str = "",
        dry_run: bool = False,
    ) -> Revocation:
        """Hide what was derived from a session, an origin or a file; the messages stay."""
        from lore.digest import revocation
        from lore.digest.revocation import RevocationTarget

        suspect = RevocationTarget(*map(self._redactor.redact, (session, origin, file, project)))
        if dry_run:
            return revocation.preview_revocation(self._database, suspect)
        gone = revocation.revoke(self._database, suspect)
        self._sources.drop_hidden()
        return gone

    def conflicts(self, *, project: str = "") -> list[Conflict]:
        """Return pairs of contradicting fragments that wait for a person's decision."""
        from lore.digest.consolidation import contradict

        with self._database.read() as db:
            return contradict.open_conflicts(db, project_n=self._find_project_n(db, project))

    def doubtful_pairs(self, *, project: str = "") -> list[DoubtfulPair]:
        """Return pairs of statements of which the newer may replace the older, newest first."""
        from lore.digest import replacement

        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            return replacement.doubtful_pairs(db, project_n=project_n)

    def resolve(self, one: str, other: str, decision: Decision) -> Relation | None:
        """Resolve a conflict or a doubtful pair: keep the first, keep both, or dismiss it.

        Return the relation of a linked pair now; None for a conflict, which `undo` restores.
        """
        from lore.digest import replacement
        from lore.digest.consolidation import contradict

        now = self._database.now()

        def work(db: Connection) -> Relation | None:
            relation = replacement.settle_pair(db, one, other, decision)
            if not relation or contradict.is_conflict(db, one, other):
                contradict.apply_decision(db, one, other, decision, now)
            return relation

        relation = self._database.write(work)
        self._sources.drop_hidden()
        return relation

    def decide_instruction(
        self, id: str, decision: InstructionDecision, *, number: Whole | None = None
    ) -> list[StandingInstruction]:
        """Confirm or reject what may be a rule in an item, and return it as it is now.

        `number` selects one of several instructions of the item.
        """

        def decide(db: Connection) -> list[int]:
            item = items.resolve(db, id)
            ns = instruction_store.numbers_of_item(db, item.n)
            ns = [n for n in ns if number is None or n == number]
            if not ns:
                msg = f"{item.id} has no sentence that may be a rule."
                raise NotFound(msg, hint="'lore standing' lists them.")
            for n in ns:
                instruction_store.decide(db, n, decision)
            return ns

        from lore.recall import answer

        ns = self._database.write(decide)
        with self._database.read() as db:
            return answer.describe_instructions(db, instruction_store.load(db, ns))

    def offers(self) -> list[PromotionOffer]:
        """Return fragments that enough projects confirmed to be promoted to all projects."""
        from lore.digest import project_page

        with self._database.read() as db:
            return project_page.promotion_offers(db)

    def promote(self, id: str, *, key: str = "") -> str:
        """Promote a fragment of one project to all projects; return the id of the promoted one."""
        from lore.digest import project_page

        promoted = project_page.promote(self._database, id, key=key)
        self._sources.drop_hidden()
        return promoted

    def log(self, id: str) -> tuple[Fragment, list[FragmentVersion]]:
        """Return a fragment and its former versions, oldest first."""
        with self._database.read() as db:
            n = items.resolve(db, id, type="fragment").n
            return fragment_store.get(db, n), fragment_store.get_versions(db, n)

    def diff(self, id: str, version: Count | None = None) -> tuple[FragmentVersion, Fragment]:
        """Return a former version of a fragment, by default the last, and the current one."""
        current, former = self.log(id)
        chosen = [v for v in former if version is None or v.version == version]
        if not chosen:
            which = f"version {version}" if version is not None else "former version"
            msg = f"This fragment has no {which}."
            raise NotFound(msg)
        return chosen[-1], current

    def history(self, id: str) -> list[FragmentEvent]:
        """Return the events in the life of a fragment, oldest first."""
        with self._database.read() as db:
            return item_details.list_history(db, id)

    def fragment(self, id: str) -> Reading:
        """Return one fragment with its surroundings, without reinforcing it."""
        with self._database.read() as db:
            return item_details.read(db, items.resolve(db, id, type="fragment").id)

    def page_of_fragments(
        self, *, kind: str = "", origin: str = "", project: str = "",
        limit: PageSize = 50, cursor: str = "",
    ) -> Page[Fragment]:  # fmt: skip
        """Return a page of fragments that are not deleted, newest first."""
        after = context.decode_cursor(cursor, int)
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            ns = pages.fragments(
                db, after, kind=kind, origin=origin, project_n=project_n, limit=limit
            )
            by_n = fragment_store.by_number(db, ns)
        return context.page_of([((n,), by_n[n]) for n in ns], limit)

    def page_of_versions(
        self, id: str, *, limit: PageSize = 50, cursor: str = ""
    ) -> Page[VersionChange]:
        """Return a page of a fragment's versions with what each changed, newest first."""
        (before,) = context.decode_cursor(cursor, int) or (pages.BEFORE_NEWEST,)
        with self._database.read() as db:
            n = items.resolve(db, id, type="fragment").n
            versions = fragment_details.list_versions(db, n, before=before, limit=limit)
        return context.page_of([((one.version,), one) for one in versions], limit)

    def page_of_sources(
        self, id: str, *, limit: PageSize = 50, cursor: str = ""
    ) -> Page[SourceMessage]:
        """Return a page of the messages that a fragment was derived from, with what they say."""
        (after,) = context.decode_cursor(cursor, int) or (0,)
        with self._database.read() as db:
            fragment = fragment_store.get(db, items.resolve(db, id, type="fragment").n)
            rows = fragment_details.list_sources(db, fragment, after=after, limit=limit)
        return context.page_of(rows, limit)

    def page_of_links(
        self, id: str, *, limit: PageSize = 50, cursor: str = ""
    ) -> Page[LinkedFragment]:
        """Return a page of a fragment's edges, with the fragments that they lead to."""
        after = context.decode_cursor(cursor, int, int, str)
        with self._database.read() as db:
            n = items.resolve(db, id, type="fragment").n
            return context.page_of(fragment_details.list_links(db, n, after, limit=limit), limit)

    def relevance(self, id: str) -> RelevanceCurve:
        """Return the forgetting curve of a fragment, until some months from now."""
        with self._database.read() as db:
            return fragment_details.forgetting_curve(db, id, now=self._database.now())

    def graph(
        self, *, project: str = "", at: str = "", focus: str = "", limit: Count = 300
    ) -> KnowledgeGraph:
        """Return a picture of the graph: the strongest trees, or what is around a fragment.

        With `at`, it holds only what was known at that time.
        """
        from lore.recall import knowledge_graph, time_spans

        at_us = clock.to_us(time_spans.since(at, self._database.now())) if at else None
        with self._database.read() as db:
            return knowledge_graph.draw(
                db, project_n=self._find_project_n(db, project), at_us=at_us, focus=focus,
                limit=min(limit, knowledge_graph.MAX_NODES),
            )  # fmt: skip

    def page_of_learned(
        self, *, project: str = "", since: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[LearnedEntry]:
        """Return a page of what was learned, changed, replaced and deleted, newest first."""
        after = context.decode_cursor(cursor, int, int, str)
        with self._database.read() as db:
            keys = learned_rows.page_of_events(
                db, after, project_n=self._find_project_n(db, project),
                since_us=self._since_us(since), limit=limit,
            )  # fmt: skip
            by_n = fragment_store.by_number(db, sorted({key.n for key in keys}))
            successors = [by_n[key.n].superseded_by or "" for key in keys]
            numbers = items.numbers_of(db, [id_ for id_ in successors if id_])
            newer = fragment_store.by_number(db, list(numbers.values()))
        titles = {one.id: one.summary for one in newer.values()}
        return context.page_of([(key, _learned(key, by_n[key.n], titles)) for key in keys], limit)

    def learned_days(self, *, project: str = "", since: str = "") -> list[LearnedDay]:
        """Return how much was learned, changed, replaced, deleted and forgotten on each day."""
        with self._database.read() as db:
            days = learned_rows.count_by_day(
                db,
                project_n=self._find_project_n(db, project),
                since_us=self._since_us(since or _LEARNED_DAYS),
            )
        return [
            LearnedDay(clock.from_us(day * learned_rows.DAY_US).date(), **counts)
            for day, counts in sorted(days.items())
        ]

    def _since_us(self, since: str) -> int:
        from lore.recall import time_spans

        return clock.to_us(time_spans.since(since, self._database.now())) if since else 0

    def page_of_roots(
        self, *, project: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[Title]:
        """Return a page of roots by title, strongest first."""
        after = context.decode_cursor(cursor, float, int)
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            keys = pages.roots(db, after, project_n=project_n, limit=limit)
            titles = item_details.titles(db, [n for _, n in keys])
        return context.page_of(list(zip(keys, titles, strict=True)), limit)

    def page_of_edges(
        self, *, fragment: str = "", kind: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[Edge]:
        """Return a page of edges, of all fragments or of one."""
        after = context.decode_cursor(cursor, int, int, str)
        with self._database.read() as db:
            n = items.resolve(db, fragment, type="fragment").n if fragment else None
            rows = pages.edges(db, after, fragment_n=n, kind=kind, limit=limit)
        return context.page_of(rows, limit)

    def page_of_conflicts(
        self, *, project: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[Conflict]:
        """Return a page of contradicting fragments, newest first."""
        after = context.decode_cursor(cursor, int, int, int)
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            keys = pages.conflicts(db, after, project_n=project_n, limit=limit)
            by_n = fragment_store.by_number(db, sorted({n for _, *pair in keys for n in pair}))
        rows = [(key, Conflict(by_n[key[1]], by_n[key[2]])) for key in keys]
        return context.page_of(rows, limit)


_LEARNED_DAYS = "400 days ago"
"""As far back as days are counted if nothing else is said."""


def _learned(key: LearnedKey, fragment: Fragment, titles: Mapping[str, str]) -> LearnedEntry:
    by_id = (fragment.superseded_by or "") if key.verb == "replaced" else ""
    return LearnedEntry(
        clock.from_us(key.at), key.verb, fragment.id, fragment.summary, fragment.kind,
        fragment.origin, fragment.relevance, fragment.project_id, fragment.session_id,
        by_id, titles.get(by_id, ""),
    )  # fmt: skip
