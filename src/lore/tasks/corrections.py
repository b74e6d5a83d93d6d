"""Corrective actions: change how a project's memory is laid out, and measure what it brought."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

from lore.recall.sources import Sources
from lore.records import LoadedContext
from lore.tasks import disclosure
from lore.tasks.disclosure import MemoryView
from lore.tasks.token_economics import (
    CorrectiveAction,
    Finding,
    TokenCounts,
    check_thresholds,
    measure,
    sum_counts,
)
from lore.tasks.topics import Layout, ten_words

LARGEST_TOPIC, SMALLEST_TOPIC = 6_400, 400
STRICTEST_SIMILARITY = 0.8
FEWEST_INDEX_TOKENS, FEWEST_SCAN_TOKENS = 60, 20
STALE_DAYS = 60
MOST_COMPOSITES = 8

BYPASS_GROWTH = 4
"""A bypass ends when the memory has grown this many times: then more can be saved."""

ViewMaker = Callable[[Layout], MemoryView]


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrective action: why, what the metric was before and after, and whether it stays."""

    finding: Finding
    after: float | None
    layout: Layout
    is_kept: bool

    @property
    def summary(self) -> str:
        """Return the action and its effect in words."""
        after = "unknown" if self.after is None else f"{self.after:g}"
        verdict = "kept" if self.is_kept else "taken back: no better"
        finding = self.finding
        return f"{finding.action}: {finding.metric} {finding.value:g} → {after}, {verdict}"


def count_load(loaded: LoadedContext, baseline_tokens: int) -> TokenCounts:
    """Return what the load of a question cost."""
    return TokenCounts(
        retrievals=1,
        layer1_tokens=loaded.index_tokens,
        layer2_loads=int(loaded.timeline_tokens > 0),
        layer2_tokens_scanned=loaded.timeline_tokens,
        layer2_tokens_available=loaded.timeline_tokens_available,
        layer3_loads=len(loaded.details),
        layer3_tokens=loaded.details_tokens,
        most_task_loads=len(loaded.details),
        baseline_tokens=baseline_tokens,
    )


def replay(sources: Sources, view: MemoryView, queries: Sequence[str]) -> TokenCounts:
    """Return what a session with these questions costs: its index once, and each load."""
    index = disclosure.make_index(view)
    start = TokenCounts(
        layer1_loads=1, layer1_tokens=index.tokens, baseline_tokens=view.total_tokens
    )
    loads = [
        count_load(disclosure.load(sources, view, query), view.total_tokens) for query in queries
    ]
    return sum_counts([start, *loads])


def correct(
    sources: Sources,
    make_view: ViewMaker,
    layout: Layout,
    findings: Sequence[Finding],
    queries: Sequence[str],
) -> list[Correction]:
    """Carry out the action of each finding in turn; keep it if it helps and harms nothing else.

    The effect is measured by asking the questions of the session again. A bypass is measured by
    nothing: it is what is left when memory saves too little.
    """
    done: list[Correction] = []
    for finding in findings:
        changed = change_layout(sources, make_view(layout), finding.action, queries)
        if finding.action == "bypass":
            done.append(Correction(finding, None, changed, is_kept=True))
            layout = changed
            continue
        old = replay(sources, make_view(layout), queries)
        new = replay(sources, make_view(changed), queries)
        before, after = measure(finding.metric, old), measure(finding.metric, new)
        is_kept = changed != layout and _is_better(finding, before, after) and not _harms(old, new)
        done.append(
            Correction(
                replace(finding, value=round(finding.value if before is None else before, 3)),
                None if after is None else round(after, 3),
                changed,
                is_kept,
            )
        )
        layout = changed if is_kept else layout
    return done


def _harms(before: TokenCounts, after: TokenCounts) -> bool:
    """Return whether a change brings a metric beyond its threshold that was not beyond it."""
    beyond = {one.metric for one in check_thresholds("session_end", before)}
    return any(one.metric not in beyond for one in check_thresholds("session_end", after))


def _is_better(finding: Finding, before: float | None, after: float | None) -> bool:
    if after is None:
        return True  # nothing had to be read any more
    value = finding.value if before is None else before
    return after > value if value < finding.limit else after < value


def change_layout(
    sources: Sources, view: MemoryView, action: CorrectiveAction, queries: Sequence[str]
) -> Layout:
    """Return the layout after a corrective action."""
    layout = view.layout
    if action == "compress_layer3":
        size = min(LARGEST_TOPIC, layout.topic_tokens * 2)
        scan = max(FEWEST_SCAN_TOKENS, layout.scan_tokens // 2)
        return replace(layout, topic_tokens=size, scan_tokens=scan)
    if action == "review_topic_relevance":
        return replace(
            layout,
            least_similarity=min(STRICTEST_SIMILARITY, round(layout.least_similarity + 0.1, 2)),
            topic_tokens=max(SMALLEST_TOPIC, layout.topic_tokens // 2),
            topics_read=1,
        )
    if action == "create_specialized_index":
        return _add_composites(sources, view, queries)
    if action == "reorganize_topic_index":
        stale = view.now - timedelta(days=STALE_DAYS)
        return replace(
            layout,
            index_tokens=max(FEWEST_INDEX_TOKENS, layout.index_tokens * 3 // 4),
            stale_before=stale.isoformat(),
        )
    if action == "split_timeline":
        return replace(layout, scan_tokens=max(FEWEST_SCAN_TOKENS, layout.scan_tokens // 2))
    return replace(layout, bypass_tokens=max(1, view.total_tokens))


def _add_composites(sources: Sources, view: MemoryView, queries: Sequence[str]) -> Layout:
    """Add a topic for each question that had to read several, with what they say about it."""
    composites = dict(view.layout.composites)
    for query in queries:
        loaded = disclosure.load(sources, view, query)
        if len(loaded.details) < 2:
            continue
        ids: list[str] = []
        room = view.layout.topic_tokens
        for id_, size in disclosure.nearest_memories(sources, view, query):
            if size <= room:
                room -= size
                ids.append(id_)
        if ids:
            composites[ten_words(query)] = tuple(ids)
    latest = list(composites.items())[-MOST_COMPOSITES:]
    return replace(view.layout, composites=tuple(latest))


def is_bypassed(layout: Layout, total_tokens: int) -> bool:
    """Return whether memory is given only when asked: it saved too little, and is still small."""
    return 0 < total_tokens < layout.bypass_tokens * BYPASS_GROWTH


def layout_to_json(layout: Layout) -> dict[str, Any]:
    """Return a layout as plain values."""
    values = asdict(layout)
    values["composites"] = [[title, list(ids)] for title, ids in layout.composites]
    return values


def parse_layout(values: object) -> Layout:
    """Return the layout in plain values; fields that do not fit have their defaults."""
    if not isinstance(values, dict):
        return Layout()
    plain = Layout()
    known = {
        name: values[name]
        for name, default in asdict(plain).items()
        if name != "composites" and isinstance(values.get(name), type(default))
    }
    composites = tuple(
        (str(pair[0]), tuple(map(str, pair[1])))
        for pair in values.get("composites") or ()
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], list)
    )
    return replace(plain, **known, composites=composites)
