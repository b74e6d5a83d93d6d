"""Topics: the memories of a project in groups of one subject, each small enough to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import log

import numpy as np
from numpy.typing import NDArray

from lore.recall.sources import Sources
from lore.records import Fragment
from lore.store import fragments
from lore.store.database import Connection
from lore.store.fragments import FragmentFilter
from lore.tasks.task_recall import is_given_unasked, shorten_urls
from lore.text import sentences, tokens, words
from lore.text.regex import compile_lazy

Vectors = NDArray[np.float32]

TITLE_WORDS = 10
"""From the specification: a topic is named in about ten words."""

_MOST_FRAGMENTS = 4_000
"""The most relevant fragments of a project that are grouped: more would take seconds."""

_RELATED = 0.5
"""The least cosine of a memory to the mean of its topic."""

_SAME_SESSION = 0.12
"""Added to the cosine for memories of one session: a session is about one thing."""

_SMALL_TOKENS, _NEIGHBOUR = 200, 0.3
"""A topic of fewer tokens joins the nearest one with room, if that is at least this near."""

_LEAD = compile_lazy(r"^(?:Fix — )?[A-Z][\w ',/-]{2,60}:\s+(?=\S)")
"""A heading that extraction put before a sentence, as in 'Design concerns: …'."""

_MARKS = compile_lazy(r"[*`#>|]+|\s—\s|\s-\s")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the memories of a project are laid out; corrective actions change it.

    `composites` are topics put together from several, by title; `stale_before` hides topics that
    were not used since then from the index. `bypass_tokens` is the size of the memory when it was
    found not to be worth its tokens; 0 if it is.
    """

    topic_tokens: int = 2_000
    least_similarity: float = 0.5
    topics_read: int = 2
    index_tokens: int = 100
    scan_tokens: int = 40
    composites: tuple[tuple[str, tuple[str, ...]], ...] = ()
    stale_before: str = ""
    bypass_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Topic:
    """Memories of one subject; `id` is the strongest of them, `latest_at` is of the newest."""

    id: str
    title: str
    members: tuple[Fragment, ...]
    relevance: float
    last_accessed: datetime
    latest_at: datetime
    tokens: int
    rows: Vectors = field(repr=False, compare=False)
    """The vectors of the members."""
    is_composite: bool = False


@dataclass(slots=True)
class _Group:
    """A topic that is being put together."""

    members: list[tuple[Fragment, Vectors]]
    total: Vectors
    tokens: int

    @property
    def center(self) -> Vectors:
        return _unit(self.total)


def find_topics(
    sources: Sources,
    db: Connection,
    *,
    project_n: int | None,
    layout: Layout,
    unasked: bool = False,
    without: Sequence[int] = (),
) -> list[Topic]:
    """Return the topics of a project, the most relevant first."""
    visible = sorted(fragments.filter_visible(db, FragmentFilter(project_n=project_n)))
    if without:
        visible = list(fragments.kinds_of(db, visible, without=without))
    loaded = fragments.by_number(db, visible)
    chosen = sorted(loaded.items(), key=lambda pair: pair[1].relevance, reverse=True)
    chosen = [pair for pair in chosen if not unasked or is_given_unasked(pair[1])]
    chosen = sorted(chosen[:_MOST_FRAGMENTS], key=_grouping_order)
    if not chosen:
        return []
    ns = np.array([n for n, _ in chosen], np.int64)
    vectors = sources.load_vectors(ns) if sources.embedder.dimension else np.zeros((len(ns), 1))
    placed = [(one, vectors[place]) for place, (_, one) in enumerate(chosen)]
    groups = _group(placed, layout.topic_tokens)
    names = _count_names(one for _, one in chosen)
    topics = [_topic(group, names, len(chosen)) for group in groups]
    topics += _composites({one.id: (one, row) for one, row in placed}, layout)
    return sorted(topics, key=lambda topic: topic.relevance, reverse=True)


def _grouping_order(pair: tuple[int, Fragment]) -> tuple[bool, datetime, int]:
    """Order by time, and episodes last: each joins what was learned in its session.

    All episodes are worded alike, and would else be a topic of their own.
    """
    n, fragment = pair
    return fragment.kind == "episode", fragment.created_at, n


def _group(placed: Sequence[tuple[Fragment, Vectors]], most_tokens: int) -> list[_Group]:
    """Group memories in order of time: each joins the nearest topic with room, or begins one."""
    groups: list[_Group] = []
    latest: dict[str, int] = {}
    centers = np.zeros((0, placed[0][1].shape[0]), np.float32)
    for one, vector in placed:
        size = tokens.count(one.content)
        near = centers @ vector if len(groups) else np.zeros(0)
        if (own := latest.get(one.session_id or "")) is not None:
            is_sure = one.kind == "episode" or not vector.any()
            near[own] += 1.0 if is_sure else _SAME_SESSION
        order = np.argsort(-near, kind="stable")
        place = next(
            (
                int(p)
                for p in order
                if near[p] >= _RELATED and groups[p].tokens + size <= most_tokens
            ),
            -1,
        )
        if place < 0:
            place = len(groups)
            groups.append(_Group([], np.zeros_like(vector), 0))
            centers = np.vstack([centers, np.zeros_like(vector)])
        group = groups[place]
        group.members.append((one, vector))
        group.total = group.total + vector
        group.tokens += size
        centers[place] = group.center
        if one.session_id:
            latest[one.session_id] = place
    return _join_small(groups, most_tokens)


def _join_small(groups: list[_Group], most_tokens: int) -> list[_Group]:
    """Let small groups join the nearest group with room."""
    large = [group for group in groups if group.tokens >= _SMALL_TOKENS]
    alone: list[_Group] = []
    for group in (group for group in groups if group.tokens < _SMALL_TOKENS):
        with_room = [one for one in large if one.tokens + group.tokens <= most_tokens]
        center = group.center
        nearest = max(with_room, key=lambda one: float(one.center @ center), default=None)
        if nearest is None or float(nearest.center @ center) < _NEIGHBOUR:
            alone.append(group)
            continue
        nearest.members += group.members
        nearest.total = nearest.total + group.total
        nearest.tokens += group.tokens
    return large + alone


def _topic(group: _Group, names: Counter[str], memories: int, title: str = "") -> Topic:
    placed = sorted(group.members, key=lambda pair: pair[0].relevance, reverse=True)
    members = [one for one, _ in placed]
    strongest = members[0]
    return Topic(
        id=strongest.id,
        title=title or name_topic(members, names, memories),
        members=tuple(members),
        relevance=round(strongest.relevance, 2),
        last_accessed=max(one.last_accessed or one.created_at for one in members),
        latest_at=max(one.created_at for one in members),
        tokens=group.tokens,
        rows=np.array([vector for _, vector in placed]),
        is_composite=bool(title),
    )


def _composites(placed: Mapping[str, tuple[Fragment, Vectors]], layout: Layout) -> Iterable[Topic]:
    for title, ids in layout.composites:
        members = [placed[id_] for id_ in ids if id_ in placed]
        if members:
            total = np.sum([vector for _, vector in members], axis=0)
            size = sum(tokens.count(one.content) for one, _ in members)
            yield _topic(_Group(members, total, size), Counter(), 0, title)


def name_topic(members: Sequence[Fragment], names: Counter[str], memories: int) -> str:
    """Return a topic in about ten of its own words: what it names, and a line of it.

    The line is the one with the most names of the topic among its first words; a request of a
    person is preferred, because people know their own words again.
    """
    own = _count_names(members)
    rarity = {name: own[name] * log((memories + 1) / names[name]) for name in own if names[name]}
    best = max(members, key=lambda one: _naming_score(one, rarity))
    line = ten_words(_told(best))
    lowered = line.lower()
    telling = sorted(rarity, key=lambda name: rarity[name], reverse=True)
    missing = [
        name
        for name in telling[:8]
        if _is_code(name)
        and own[name] >= max(2, _NAMED_SHARE * len(members))
        and name.lower() not in lowered
    ]
    return f"{', '.join(missing[:_NAMES_AHEAD])}: {line}" if missing else line


def ten_words(text: str) -> str:
    """Return the first words of a text, without headings, marks and what is in parentheses."""
    line = _ASIDE.sub("", _MARKS.sub(" ", sentences.one_line(shorten_urls(text), 400)))
    line = _OPENING.sub("", _LEAD.sub("", _BULLET.sub("", line.strip())))
    line_words = line.split()
    end = next(
        (n for n, word in enumerate(line_words[:TITLE_WORDS], 1) if n > 3 and word[-1] in ".;?!"),
        TITLE_WORDS,
    )
    cut = " ".join(line_words[:end]).rstrip(" ,;:.")
    return cut + "…" if len(line_words) > end == TITLE_WORDS else cut


_BULLET = compile_lazy(r"^(?:\d{1,2}[.)]\s+|[^\w\s\"'(\[/.~$@]+\s*)+")
"""The number or sign of a list before a line."""

_ASIDE = compile_lazy(r"\s*\([^)]*\)?")
_OPENING = compile_lazy(
    r"(?i)^(?:(?:please|can you|could you|i want you to|i want to|i'd like to|let's|we need to"
    r"|what changed|done|so|and|also|now|then|but|well|ok(?:ay)?)\b[\s,.:]*)+(?=\w+ \w+)"
)
"""How people begin a request: it says nothing about its subject."""

_NAMES_AHEAD = 2
_NAMED_SHARE = 0.25
"""A name that fewer of its memories have is not what a topic is about."""

_CODE = compile_lazy(r"\w[._/:-]\w|[a-z][A-Z]|[A-Z]{2}|_|\(\)")
_LONGEST_NAME = 24


def _is_code(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and " " not in name and bool(_CODE.search(name))


def _told(fragment: Fragment) -> str:
    goal = fragment.payload.get("goal") if fragment.kind == "episode" else ""
    return str(goal or fragment.summary or fragment.content)


def _naming_score(fragment: Fragment, rarity: Mapping[str, float]) -> float:
    line = ten_words(_told(fragment)).lower()
    line_words = [word for word in words.split(line) if word not in words.STOP_WORDS]
    if len(line_words) < _FEWEST_WORDS:
        return -1.0
    named = sum(value for name, value in rarity.items() if name.lower() in line)
    return named * (_OF_A_PERSON if fragment.kind == "episode" else 1.0)


_FEWEST_WORDS, _OF_A_PERSON = 4, 2.0


def _count_names(members: Iterable[Fragment]) -> Counter[str]:
    """Return in how many memories each name occurs: what extraction listed, and rare words."""
    counted: Counter[str] = Counter()
    for one in members:
        listed = one.payload.get("keywords")
        plain = {word for word in words.split(one.summary) if len(word) > 3}
        counted.update({word for word in plain if word not in words.STOP_WORDS})
        counted.update({str(name) for name in listed or () if len(str(name)) > 2})
    return counted


def _unit(vector: Vectors) -> Vectors:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
