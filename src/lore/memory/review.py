"""Review: one queue of what waits for a person's decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from lore.digest import change_ids, fragment_edits, project_page, replacement, review_queue
from lore.digest.change_ids import KeptPair
from lore.digest.consolidation import contradict
from lore.digest.review_queue import Entry, MergeFinder
from lore.errors import InvalidInput, NotFound
from lore.memory import context
from lore.memory.context import MemoryContext, MemoryPart, PageSize
from lore.memory.edits import Edits
from lore.records import (
    Correction,
    Decision,
    Page,
    ReviewCounts,
    ReviewDecision,
    ReviewItem,
    ReviewKind,
)
from lore.store import change_counters, items, project_rows
from lore.store import standing_instructions as instruction_store
from lore.store.database import Connection
from lore.validation import validate_methods

_ID_PARTS = {"instruction": 2, "conflict": 2, "replacement": 2, "shared": 2, "merge": 2}
"""Parts after the kind in the id of an entry; others have one."""


@validate_methods
class Review(MemoryPart):
    """One queue of what waits for a person's decision."""

    def __init__(self, context: MemoryContext) -> None:
        super().__init__(context)
        self._merges = MergeFinder(context.database)
        self._counted: tuple[object, ReviewCounts | None] = (None, None)

    def page_of_entries(
        self, *, kind: ReviewKind | None = None, project: str = "",
        limit: PageSize = 50, cursor: str = "", reads_folders: bool = True,
    ) -> Page[ReviewItem]:  # fmt: skip
        """Return a page of the queue: possible rules first, what will be pruned last.

        Shared pages in project folders are left out for a caller that may be on another machine.
        """
        after = context.decode_cursor(cursor, int, int, int)
        merges = self._merges.find() if kind in (None, "merge") else ()
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            lists = (
                (
                    place,
                    self._entries(
                        db, one, project_n, merges, reads_folders=reads_folders,
                        after=(after[1], after[2]) if after and after[0] == place else None,
                        limit=limit,
                    ),
                )
                for place, one in enumerate(review_queue.KINDS)
                if kind in (None, one)
            )  # fmt: skip
            return context.page_of(review_queue.page_of(lists, after, limit), limit)

    def counts(self, *, project: str = "", reads_folders: bool = True) -> ReviewCounts:
        """Return how many entries of each kind wait; counted again once something changed."""
        merges = self._merges.find()
        hour = self._database.now().replace(minute=0, second=0, microsecond=0)
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            state = (project_n, reads_folders, merges, hour, change_counters.read_counters(db))
            known, counted = self._counted
            if known != state or counted is None:
                count = partial(self._count, reads_folders=reads_folders)
                counts = {kind: count(db, kind, project_n, merges) for kind in review_queue.KINDS}
                counted = ReviewCounts(counts, review_queue.MOST)
                self._counted = state, counted
        return counted

    def _entries(
        self,
        db: Connection,
        kind: ReviewKind,
        project_n: int | None,
        merges: tuple[tuple[int, int], ...],
        *,
        reads_folders: bool,
        after: review_queue.Key | None = None,
        limit: int = review_queue.MOST,
    ) -> Iterable[Entry]:
        """Return entries of a kind; of long lists only as many as a page needs."""
        now = self._database.now()
        lists: dict[ReviewKind, Callable[[], Iterable[Entry]]] = {
            "instruction": lambda: review_queue.list_instructions(db, project_n),
            "conflict": lambda: review_queue.list_conflicts(db, project_n),
            "replacement": lambda: review_queue.list_replacements(db, project_n),
            "shared": lambda: (
                review_queue.list_shared(db, project_n, self._redactor) if reads_folders else ()
            ),
            "promotion": lambda: review_queue.list_promotions(db, project_n),
            "untrusted": lambda: review_queue.list_untrusted(
                db, review_queue.find_untrusted(db, project_n, after=after, limit=limit)
            ),
            "merge": lambda: review_queue.list_merges(db, project_n, merges),
            "prune": lambda: review_queue.list_prunable(
                db, review_queue.find_prunable(db, project_n, now=now, after=after, limit=limit)
            ),
        }
        return lists[kind]()

    def _count(
        self,
        db: Connection,
        kind: ReviewKind,
        project_n: int | None,
        merges: tuple[tuple[int, int], ...],
        *,
        reads_folders: bool,
    ) -> int:
        """Count the entries of a kind; of long lists without reading their texts."""
        if kind == "untrusted":
            return len(review_queue.find_untrusted(db, project_n))
        if kind == "prune":
            return len(review_queue.find_prunable(db, project_n, now=self._database.now()))
        return sum(
            1 for _ in self._entries(db, kind, project_n, merges, reads_folders=reads_folders)
        )

    def decide(self, id: str, decision: ReviewDecision) -> Correction:
        """Decide an entry of the queue as a person; the correction that is returned undoes it."""
        kind, *parts = id.split(":")
        if kind not in review_queue.KINDS or len(parts) != _ID_PARTS.get(kind, 1) or not all(parts):
            msg = "This is not the id of an entry of the review queue."
            raise InvalidInput(msg, hint="Use 'id' of an entry unchanged.")
        review_queue.check_option(decision, review_queue.OPTIONS[kind], kind)
        decides: dict[str, Callable[..., Correction]] = {
            "instruction": self._decide_instruction,
            "conflict": self._decide_pair,
            "replacement": self._decide_pair,
            "shared": self._decide_shared,
            "promotion": self._decide_promotion,
            "untrusted": self._decide_untrusted,
            "merge": self._decide_merge,
            "prune": self._decide_prune,
        }
        return decides[kind](decision, *parts)

    @property
    def _edits(self) -> Edits:
        return Edits(self._context)

    def _decide_instruction(self, decision: ReviewDecision, item: str, number: str) -> Correction:
        state = "confirmed" if decision == "approve" else "rejected"

        def work(db: Connection) -> None:
            ns = instruction_store.numbers_of_item(db, items.resolve(db, item).n)
            if not number.isdecimal() or int(number) not in ns:
                msg = "This sentence is no longer there."
                raise NotFound(msg)
            instruction_store.decide(db, int(number), state)  # type: ignore[arg-type]  # one of both

        _, action = self._edits.record(work)
        return Correction(action, decision, item)

    def _decide_pair(self, decision: ReviewDecision, newer: str, older: str) -> Correction:
        now = self._database.now()
        first, second = (older, newer) if decision == "keep_older" else (newer, older)
        settled: Decision = (
            "keep" if decision.startswith("keep") else ("both" if decision == "both" else "dismiss")
        )

        def work(db: Connection) -> None:
            is_settled = replacement.settle_pair(db, first, second, settled)
            if not is_settled or contradict.is_conflict(db, first, second):
                contradict.apply_decision(db, first, second, settled, now)

        _, action = self._edits.record(work)
        return Correction(action, decision, first)

    def _decide_shared(self, decision: ReviewDecision, project: str, digest: str) -> Correction:
        with self._database.read() as db:
            shared_project = project_rows.all_projects(db)[project_rows.get_project(db, project)]
            changes = review_queue.read_shared_changes(db, shared_project, self._redactor)
        chosen = [one for one in changes if review_queue.shared_digest(one) == digest]
        if not chosen:
            msg = "The page was changed again since."
            raise NotFound(msg, hint="Load the queue again.")
        work = project_page.prepare_changes(
            self._database, shared_project.path, chosen[:1], redactor=self._redactor
        )
        _, action = self._edits.record(work)
        return Correction(action, decision, chosen[0].fragment_id)

    def _decide_promotion(self, decision: ReviewDecision, id: str) -> Correction:
        work = partial(project_page.promote_one, id_=id, now=self._database.now())
        promoted, action = self._edits.record(work)
        return Correction(action, decision, id, promoted)

    def _decide_untrusted(self, decision: ReviewDecision, id: str) -> Correction:
        decide = self._edits.approve if decision == "approve" else self._edits.reject
        return decide(id)

    def _decide_merge(self, decision: ReviewDecision, survivor: str, victim: str) -> Correction:
        if decision == "approve":
            now = self._database.now()
            work = partial(change_ids.merge, survivor=survivor, victim=victim, now=now)
            _, action = self._edits.record(work)
            return Correction(action, "supersede", victim, survivor)
        with self._database.read() as db:
            ns = [items.resolve(db, id_, type="fragment").n for id_ in (survivor, victim)]
        return self._keep(decision, victim, KeptPair(min(ns), max(ns), "merge"))

    def _decide_prune(self, decision: ReviewDecision, id: str) -> Correction:
        if decision == "delete":
            return self._edits.delete(id)
        with self._database.read() as db:
            n = items.resolve(db, id, type="fragment").n
        return self._keep(decision, id, KeptPair(n, n, "prune"))

    def _keep(self, decision: ReviewDecision, id: str, exemption: KeptPair) -> Correction:
        def work(db: Connection) -> None:
            fragment_edits.resolve_live(db, id)
            change_ids.keep(db, [exemption], now=self._database.now())

        _, action = self._edits.record(work, exemptions=(exemption,))
        return Correction(action, decision, id)
