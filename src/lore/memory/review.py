"""Review: one queue of what waits for a person's decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from lore.digest import corrections, fragment_edits, project_page, replacement, review
from lore.digest.consolidation import contradict
from lore.digest.corrections import KeptPair
from lore.digest.review import Entry, MergeFinder
from lore.errors import InvalidInput, NotFound
from lore.memory import context
from lore.memory.context import MemoryContext, MemoryPart, PageSize
from lore.memory.corrections import Corrections
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
        limit: PageSize = 50, cursor: str = "",
    ) -> Page[ReviewItem]:  # fmt: skip
        """Return a page of the queue: possible rules first, what will be pruned last."""
        after = context.decode_cursor(cursor, int, int, int)
        merges = self._merges.find() if kind in (None, "merge") else ()
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            lists = (
                (place, self._entries(db, one, project_n, merges))
                for place, one in enumerate(review.KINDS)
                if kind in (None, one)
            )
            return context.page_of(review.page_of(lists, after, limit), limit)

    def counts(self, *, project: str = "") -> ReviewCounts:
        """Return how many entries of each kind wait; counted again once something changed."""
        merges = self._merges.find()
        hour = self._database.now().replace(minute=0, second=0, microsecond=0)
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            state = (project_n, merges, hour, change_counters.read_counters(db))
            known, counted = self._counted
            if known != state or counted is None:
                counts = {
                    kind: sum(1 for _ in self._entries(db, kind, project_n, merges))
                    for kind in review.KINDS
                }
                counted = ReviewCounts(counts, review.MOST)
                self._counted = state, counted
        return counted

    def _entries(
        self,
        db: Connection,
        kind: ReviewKind,
        project_n: int | None,
        merges: tuple[tuple[int, int], ...],
    ) -> Iterable[Entry]:
        lists: dict[ReviewKind, Callable[[], Iterable[Entry]]] = {
            "instruction": lambda: review.list_instructions(db, project_n),
            "conflict": lambda: review.list_conflicts(db, project_n),
            "replacement": lambda: review.list_replacements(db, project_n),
            "shared": lambda: review.list_shared(db, project_n, self._redactor),
            "promotion": lambda: review.list_promotions(db, project_n),
            "untrusted": lambda: review.list_untrusted(db, project_n),
            "merge": lambda: review.list_merges(db, project_n, merges),
            "prune": lambda: review.list_prunable(db, project_n, now=self._database.now()),
        }
        return lists[kind]()

    def decide(self, id: str, decision: ReviewDecision) -> Correction:
        """Decide an entry of the queue as a person; the correction that is returned undoes it."""
        kind, *parts = id.split(":")
        if kind not in review.KINDS or len(parts) != _ID_PARTS.get(kind, 1) or not all(parts):
            msg = "This is not the id of an entry of the review queue."
            raise InvalidInput(msg, hint="Use 'id' of an entry unchanged.")
        review.check_option(decision, review.OPTIONS[kind], kind)
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
    def _corrections(self) -> Corrections:
        return Corrections(self._context)

    def _decide_instruction(self, decision: ReviewDecision, item: str, number: str) -> Correction:
        state = "confirmed" if decision == "approve" else "rejected"

        def work(db: Connection) -> None:
            ns = instruction_store.numbers_of_item(db, items.resolve(db, item).n)
            if not number.isdecimal() or int(number) not in ns:
                msg = "This sentence is no longer there."
                raise NotFound(msg)
            instruction_store.decide(db, int(number), state)  # type: ignore[arg-type]  # one of both

        _, action = self._corrections.record(work)
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

        _, action = self._corrections.record(work)
        return Correction(action, decision, first)

    def _decide_shared(self, decision: ReviewDecision, project: str, digest: str) -> Correction:
        with self._database.read() as db:
            found = project_rows.all_projects(db)[project_rows.get_project(db, project)]
            changes = review.read_shared_changes(db, found, self._redactor)
        chosen = [one for one in changes if review.shared_digest(one) == digest]
        if not chosen:
            msg = "The page was changed again since."
            raise NotFound(msg, hint="Load the queue again.")
        work = project_page.prepare_changes(
            self._database, found.path, chosen[:1], redactor=self._redactor
        )
        _, action = self._corrections.record(work)
        return Correction(action, decision, chosen[0].fragment_id)

    def _decide_promotion(self, decision: ReviewDecision, id: str) -> Correction:
        work = partial(project_page.promote_one, id_=id, now=self._database.now())
        promoted, action = self._corrections.record(work)
        return Correction(action, decision, id, promoted)

    def _decide_untrusted(self, decision: ReviewDecision, id: str) -> Correction:
        decide = self._corrections.approve if decision == "approve" else self._corrections.reject
        return decide(id)

    def _decide_merge(self, decision: ReviewDecision, survivor: str, victim: str) -> Correction:
        if decision == "approve":
            return self._corrections.supersede(victim, by=survivor)
        with self._database.read() as db:
            ns = [items.resolve(db, id_, type="fragment").n for id_ in (survivor, victim)]
        return self._keep(decision, victim, KeptPair(min(ns), max(ns), "merge"))

    def _decide_prune(self, decision: ReviewDecision, id: str) -> Correction:
        if decision == "delete":
            return self._corrections.delete(id)
        with self._database.read() as db:
            n = items.resolve(db, id, type="fragment").n
        return self._keep(decision, id, KeptPair(n, n, "prune"))

    def _keep(self, decision: ReviewDecision, id: str, kept: KeptPair) -> Correction:
        def work(db: Connection) -> None:
            fragment_edits.resolve_live(db, id)
            corrections.keep(db, [kept], now=self._database.now())

        _, action = self._corrections.record(work, kept=(kept,))
        return Correction(action, decision, id)
