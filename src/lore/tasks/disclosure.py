"""Progressive disclosure: an index of topics, a timeline, and details only where needed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from lore.digest.episodes import parse_episode
from lore.recall.question import Question, parse
from lore.recall.sources import Sources
from lore.records import (
    Episode,
    Fragment,
    IndexTopic,
    KeyDecision,
    LoadedContext,
    MemoryIndex,
    MemoryTimeline,
    Outcome,
    TaskBriefing,
    TimelineAction,
    TopicDetails,
    TopicMemory,
)
from lore.store import distillations, sessions
from lore.store.database import Connection
from lore.tasks.task_brief import entries_of
from lore.tasks.task_recall import (
    LEAST_SIMILARITY,
    content_words,
    is_alike,
    is_given_unasked,
    measure_similarity,
    searched_words,
    shorten_urls,
)
from lore.tasks.topics import Layout, Topic, find_topics, ten_words
from lore.text import tokens
from lore.text.goals import parse_request
from lore.text.hidden_text import QUOTE_PREFIX, one_line, strip_hidden
from lore.text.regex import compile_lazy
from lore.text.statements import is_proposal

TIMELINE_TOKENS = 500
"""From the specification: what a timeline costs at most."""

_MOST_ACTIONS, _MOST_DECISIONS, _MOST_OPEN = 10, 6, 3

_DECISION_TOKENS, _RATIONALE_TOKENS, _OPEN_TOKENS = 26, 18, 18

_FRESH_DAYS = 14
"""In so many days a topic loses half of what recency gives it in the index."""

_ANSWERED, _FEWEST_TERMS = 1.0, 3
"""The timeline answers a question of so many words if its entries have this share of them."""

_STATUS = compile_lazy(
    r"(?i)\b(?:what (?:did|have|had) (?:we|you|i) (?:do|done|decide|change)|what(?:'s| is) next"
    r"|where (?:did|were|are) we|last (?:time|session)|left off|still open|recap"
    r"|(?:current|present|what(?:'s| is) the) (?:status|state)"
    r" (?:of (?:the )?(?:work|project)|here|now))\b"
)
"""Questions about the course of the work, which the timeline answers."""

_SURE = 0.6
"""The mean of both similarities that counts as 1. Of the topics that are then nearer than 0.5 to a
task, two thirds have a file or command that the session used (160 tasks of two projects); of all,
half."""

_DECIDED = ("decision", "architecture", "preference")

_SHORT_ID = 13
"""The usual length of a shortened id."""


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The topics of a project at a time, from which all layers are made."""

    topics: tuple[Topic, ...]
    layout: Layout
    now: datetime
    session_ends: Mapping[str, datetime]
    """The last messages of the sessions that have an episode, by the ids of the sessions."""

    def date_of(self, memory: Fragment) -> datetime:
        """Return when a memory is from: an episode is as new as its session, which may go on."""
        if memory.metadata != distillations.SESSION_EPISODE:
            return memory.created_at
        return self.session_ends.get(memory.session_id or "", memory.created_at)

    @property
    def total_tokens(self) -> int:
        """Return the tokens of all memories: what a session without layers would load."""
        return sum(topic.tokens for topic in self.topics if not topic.is_composite)

    @property
    def total_memories(self) -> int:
        """Return the number of memories."""
        return sum(len(topic.members) for topic in self.topics if not topic.is_composite)


def view_memory(
    sources: Sources,
    db: Connection,
    *,
    project_n: int | None,
    now: datetime,
    layout: Layout | None = None,
    unasked: bool = False,
    without: Sequence[int] = (),
) -> MemoryView:
    """Return the topics of a project; `without` are sessions whose memories are left out."""
    layout = layout or Layout()
    topics = find_topics(
        sources, db, project_n=project_n, layout=layout, unasked=unasked, without=without
    )
    members = (one for topic in topics for one in topic.members)
    ids = {one.session_id for one in members if one.kind == "episode" and one.session_id}
    return MemoryView(tuple(topics), layout, now, sessions.last_messages(db, ids))


def without_limit(view: MemoryView) -> MemoryView:
    """Return a view whose index lists all topics."""
    return replace(view, layout=replace(view.layout, index_tokens=sys.maxsize, stale_before=""))


def make_index(view: MemoryView, short: Mapping[str, str] | None = None) -> MemoryIndex:
    """Return layer 1: the topics that matter now, as many as the index has room for."""
    stale = datetime.fromisoformat(view.layout.stale_before) if view.layout.stale_before else None
    fresh = [t for t in view.topics if stale is None or t.last_accessed >= stale]
    latest = max(map(_used_at, fresh), default=view.now)
    order = sorted(fresh, key=lambda topic: _rank(topic, latest), reverse=True)
    return _fit_index(view, order, short)


def search_index(
    sources: Sources, view: MemoryView, query: str, short: Mapping[str, str] | None = None
) -> MemoryIndex:
    """Return layer 1 for a question: the topics that are nearest to it."""
    scored = score_topics(sources, view, query)
    order = [replace(topic, relevance=round(score, 2)) for topic, score in scored if score > 0.3]
    return _fit_index(view, order, short)


def _fit_index(
    view: MemoryView, order: Iterable[Topic], short: Mapping[str, str] | None
) -> MemoryIndex:
    shown: list[IndexTopic] = []
    counted = sum(not topic.is_composite for topic in view.topics)
    index = MemoryIndex((), counted, view.total_memories, view.total_tokens)
    for topic in order:
        longer = replace(index, topics=(*shown, _as_entry(topic)))
        if shown and tokens.count(format_index(longer, short)) > view.layout.index_tokens:
            break
        shown.append(_as_entry(topic))
        index = longer
    return replace(index, tokens=tokens.count(format_index(index, short)))


def format_index(index: MemoryIndex, short: Mapping[str, str] | None = None) -> str:
    """Return an index as text: one line of totals, one for each topic."""
    if not index.topics:
        return ""
    head = (
        f"Memory: {index.total_topics} topics, {index.total_memories} memories,"
        f" {round_tokens(index.total_tokens)} tokens. recall(query) reads what a question needs."
    )
    return "\n".join((head, *(format_topic(topic, short) for topic in index.topics)))


def format_topic(topic: IndexTopic, short: Mapping[str, str] | None = None) -> str:
    """Return a topic on one line: id, relevance, the date of the newest memory, tokens, title."""
    id_ = short[topic.id] if short and topic.id in short else topic.id[:_SHORT_ID]
    figures = f"{topic.relevance:.2f} {topic.latest_at:%m-%d} {topic.tokens}t"
    return f"{QUOTE_PREFIX}[{id_}] {figures} {one_line(topic.title, 24)}"


def round_tokens(count: int) -> str:
    """Return a number of tokens in short."""
    return str(count) if count < 1_000 else f"{count / 1_000:.0f}k"


def _as_entry(topic: Topic) -> IndexTopic:
    return IndexTopic(
        topic.id, topic.title, topic.relevance, topic.last_accessed, topic.latest_at,
        topic.tokens, len(topic.members),
    )  # fmt: skip


def _rank(topic: Topic, latest: datetime) -> float:
    """Return how much a topic matters: its relevance, and how near it is to the latest work.

    That is not today where sessions were imported, or nobody worked for long.
    """
    days = max(0.0, (latest - _used_at(topic)).total_seconds() / 86_400)
    return topic.relevance + float(0.5 ** (days / _FRESH_DAYS))


def _used_at(topic: Topic) -> datetime:
    return max(topic.latest_at, topic.last_accessed)


def score_topics(sources: Sources, view: MemoryView, query: str) -> list[tuple[Topic, float]]:
    """Return all topics with their similarity to a question, the nearest first.

    It is the mean of the topic's and of its nearest memory's: a topic of many words has some of
    any question.
    """
    question = parse(shorten_urls(query), view.now)
    vector = sources.embed_query(question.text)
    word_sets = {one.id: searched_words(one) for topic in view.topics for one in topic.members}
    cosines: dict[str, float] = {}
    for topic in view.topics:
        near = topic.rows @ vector if vector.any() else np.zeros(len(topic.members))
        cosines |= {one.id: float(value) for one, value in zip(topic.members, near, strict=True)}
    by_memory = measure_similarity(question, word_sets, cosines)
    whole = {
        place: frozenset().union(*(word_sets[one.id] for one in topic.members))
        for place, topic in enumerate(view.topics)
    }
    nearest = {
        place: max(cosines[one.id] for one in topic.members)
        for place, topic in enumerate(view.topics)
    }
    by_topic = measure_similarity(question, whole, nearest)
    best = [max(by_memory[one.id] for one in topic.members) for topic in view.topics]
    scored = [
        (topic, min(1.0, (by_topic[place] + best[place]) / 2 / _SURE))
        for place, topic in enumerate(view.topics)
    ]
    return sorted(scored, key=lambda pair: (pair[1], pair[0].is_composite), reverse=True)


def nearest_memories(sources: Sources, view: MemoryView, query: str) -> list[tuple[str, int]]:
    """Return the memories nearest to a question, with their tokens, the nearest first."""
    question = parse(shorten_urls(query), view.now)
    vector = sources.embed_query(question.text)
    loose = [topic for topic in view.topics if not topic.is_composite]
    word_sets = {one.id: searched_words(one) for topic in loose for one in topic.members}
    cosines = {
        one.id: float(row @ vector) if vector.any() else 0.0
        for topic in loose
        for one, row in zip(topic.members, topic.rows, strict=True)
    }
    similar = measure_similarity(question, word_sets, cosines)
    sizes = {one.id: tokens.count(one.content) for topic in loose for one in topic.members}
    near = sorted((id_ for id_ in similar if similar[id_] >= LEAST_SIMILARITY),
                  key=lambda id_: similar[id_], reverse=True)  # fmt: skip
    return [(id_, sizes[id_]) for id_ in near]


def make_timeline(
    view: MemoryView, *, budget_tokens: int = TIMELINE_TOKENS, topics: Sequence[str] = ()
) -> MemoryTimeline:
    """Return layer 2: recent actions, key decisions and what is going on, newest first.

    With `topics`, only what concerns these.
    """
    chosen = [topic for topic in view.topics if not topics or topic.id in topics]
    placed = [(one, topic) for topic in chosen if not topic.is_composite for one in topic.members]
    placed.sort(key=lambda pair: view.date_of(pair[0]), reverse=True)
    episodes = [(one, topic) for one, topic in placed if one.kind == "episode"]
    actions = list(_recent_actions(view, episodes))[:_MOST_ACTIONS]
    decisions = list(_key_decisions(placed))[:_MOST_DECISIONS]
    open_tasks = list(_open_tasks(one for one, _ in episodes[:_MOST_OPEN]))
    timeline = MemoryTimeline(
        recent_actions=tuple(actions),
        key_decisions=tuple(decisions),
        current_focus=actions[0].action if actions else "",
        blocked_by=tuple(_blocked_by(episodes[0][0]))[:_MOST_OPEN] if episodes else (),
        next_up=tuple(dict.fromkeys(open_tasks))[:_MOST_OPEN],
    )
    return _fit_timeline(timeline, budget_tokens)


def _fit_timeline(timeline: MemoryTimeline, budget_tokens: int) -> MemoryTimeline:
    """Drop the oldest decisions and actions in turn until the rest fits."""
    while (size := tokens.count(format_timeline(timeline))) > budget_tokens:
        actions, decisions = timeline.recent_actions, timeline.key_decisions
        if len(decisions) * 2 > len(actions):
            timeline = replace(timeline, key_decisions=decisions[:-1])
        elif actions:
            timeline = replace(timeline, recent_actions=actions[:-1])
        else:
            break
    return replace(timeline, tokens=size)


def format_timeline(timeline: MemoryTimeline) -> str:
    """Return a timeline as text."""
    lines: list[str] = []
    if timeline.current_focus:
        lines.append(f"Focus: {one_line(timeline.current_focus, 24)}")
    lines += [f"Blocked by: {one_line(text, _OPEN_TOKENS)}" for text in timeline.blocked_by]
    lines += [f"Next: {one_line(text, _OPEN_TOKENS)}" for text in timeline.next_up]
    lines += ["Done lately:"] if timeline.recent_actions else []
    lines += [
        f"{QUOTE_PREFIX}{one.at:%m-%d} {one.action} ({one.outcome})"
        for one in timeline.recent_actions
    ]
    lines += ["Decided:"] if timeline.key_decisions else []
    for one in timeline.key_decisions:
        why = f" — {one.rationale}" if one.rationale else ""
        lines.append(f"{QUOTE_PREFIX}{one.at:%m-%d} {one.decision}{why}")
    return "\n".join(lines)


def _recent_actions(
    view: MemoryView, episodes: Iterable[tuple[Fragment, Topic]]
) -> Iterator[TimelineAction]:
    """Yield what was done, one line for each task, the latest first."""
    seen: set[str] = set()
    for fragment, topic in episodes:
        for goal, outcome in reversed(list(_tasks_of(fragment))):
            action = ten_words(goal)
            if len(content_words(action)) < 2 or action in seen:
                continue
            seen.add(action)
            at = view.date_of(fragment)
            yield TimelineAction(at, action, outcome, fragment.id, topic.id)


def _tasks_of(fragment: Fragment) -> Iterator[tuple[str, Outcome]]:
    episode = parse_episode(fragment.payload)
    for task in episode.tasks or (episode,):
        request = parse_request(task.goal)
        if task.goal and (request is None or request.real):
            yield task.goal, task.outcome


def _key_decisions(placed: Iterable[tuple[Fragment, Topic]]) -> Iterator[KeyDecision]:
    """Yield decisions with their reasons: those of a person, then important ones, by date."""
    decided = [
        (one, topic)
        for one, topic in placed
        if one.kind in _DECIDED and is_given_unasked(one) and not is_proposal(one.content)
    ]
    strongest = sorted(decided, key=lambda pair: _weight(pair[0]), reverse=True)
    chosen = strongest[:_MOST_DECISIONS]
    for one, topic in sorted(chosen, key=lambda pair: pair[0].created_at, reverse=True):
        text = str(one.payload.get("decision") or one.content)
        reason = str(one.payload.get("rationale") or "")
        if reason and reason in text:
            text = text[: text.index(reason)]
        yield KeyDecision(
            one.created_at,
            one_line(_TRAILING.sub("", text), _DECISION_TOKENS),
            one.id,
            one_line(reason, _RATIONALE_TOKENS),
            topic.id,
        )


_TRAILING = compile_lazy(r"(?i)[\s,;:–—-]*\b(?:because|since|so that|as|due to)?\s*$")


def _weight(fragment: Fragment) -> float:
    by_person = 0.4 if fragment.origin == "user" else 0.0
    reasoned = 0.2 if fragment.payload.get("rationale") else 0.0
    return fragment.relevance + by_person + reasoned + (0.1 if fragment.kind == "decision" else 0.0)


def _blocked_by(fragment: Fragment) -> Iterator[str]:
    """Yield what stopped the last session: its reason if it failed, and errors without a fix."""
    episode = parse_episode(fragment.payload)
    if episode.outcome == "failure" and episode.reason:
        yield episode.reason
    if episode.outcome in ("failure", "partial"):
        yield from _open_errors(episode)


def _open_errors(episode: Episode) -> Iterator[str]:
    for error in episode.errors[-_MOST_OPEN:]:
        if not error.resolution and len(error.message.split()) > 2:
            yield error.message


def _open_tasks(episodes: Iterable[Fragment]) -> Iterator[str]:
    for fragment in episodes:
        for goal, outcome in reversed(list(_tasks_of(fragment))):
            if outcome in ("failure", "partial"):
                yield ten_words(goal)


def read_topic(topic: Topic, short: Mapping[str, str] | None = None) -> TopicDetails:
    """Return layer 3: the memories of a topic in full, without repetitions, the newest last."""
    word_sets: list[frozenset[str]] = []
    memories: list[Fragment] = []
    for one in topic.members:
        mine = content_words(one.content)
        if any(is_alike(mine, other) for other in word_sets):
            continue
        word_sets.append(mine)
        memories.append(one)
    memories.sort(key=lambda one: one.created_at)
    details = TopicDetails(
        _as_entry(topic), tuple(TopicMemory(one.id, one.kind, one.content) for one in memories)
    )
    return replace(details, tokens=tokens.count(format_details(details, short)))


def format_details(details: TopicDetails, short: Mapping[str, str] | None = None) -> str:
    """Return the memories of a topic as quotes."""
    lines = []
    for one in details.memories:
        name = short[one.id] if short and one.id in short else one.id[:_SHORT_ID]
        lines_of_one = strip_hidden(one.text).splitlines()
        quoted = "\n".join(f"{QUOTE_PREFIX}{line}" for line in lines_of_one if line.strip())
        lines.append(f"[{name}] {one.kind}\n{quoted}")
    return "\n".join(lines)


def ids_in(
    record: TaskBriefing | MemoryIndex | MemoryTimeline | TopicDetails | LoadedContext,
) -> list[str]:
    """Return the ids of the memories that a layer or a briefing shows."""
    if isinstance(record, TaskBriefing):
        return [entry.id for entry in entries_of(record)]
    if isinstance(record, MemoryIndex):
        return [topic.id for topic in record.topics]
    if isinstance(record, MemoryTimeline):
        actions = [one.id for one in record.recent_actions]
        return [*actions, *(one.id for one in record.key_decisions)]
    if isinstance(record, TopicDetails):
        return [record.topic.id, *(one.id for one in record.memories)]
    ids = [*(topic.id for topic in record.topics), *ids_in(record.timeline)]
    for one in record.details:
        ids += ids_in(one)
    return list(dict.fromkeys(ids))


def format_layer(
    record: MemoryIndex | MemoryTimeline | TopicDetails | LoadedContext, short: Mapping[str, str]
) -> str:
    """Return a layer, or what was loaded for a question, as text with short ids."""
    if isinstance(record, MemoryIndex):
        return format_index(record, short)
    if isinstance(record, MemoryTimeline):
        return format_timeline(record)
    if isinstance(record, TopicDetails):
        return f"{format_topic(record.topic, short)}\n{format_details(record, short)}"
    parts = [format_timeline(record.timeline)]
    if record.details:
        parts += [format_layer(one, short) for one in record.details]
    else:
        parts += [format_topic(topic, short) for topic in record.topics]
    return "\n".join(filter(None, parts))


def load(
    sources: Sources, view: MemoryView, query: str, short: Mapping[str, str] | None = None
) -> LoadedContext:
    """Load what a question needs, layer by layer, and no more.

    Topics that are similar enough are looked up in the timeline; only if that does not answer, the
    nearest of them are read in full.
    """
    scored = score_topics(sources, view, query)
    near = [pair for pair in scored if pair[1] > view.layout.least_similarity]
    if _STATUS.search(query):
        return _load_status(view)
    if not near:
        return LoadedContext("none")
    nearest = _without_parts(topic for topic, _ in near)[: view.layout.topics_read]
    entries = tuple(
        replace(_as_entry(topic), relevance=round(score, 2))
        for topic, score in near
        if topic in nearest
    )
    index_tokens = tokens.count("\n".join(format_topic(entry, short) for entry in entries))
    available = make_timeline(view)
    scanned = make_timeline(
        view, budget_tokens=view.layout.scan_tokens, topics=[topic.id for topic in nearest]
    )
    loaded = LoadedContext(
        "timeline",
        entries,
        scanned,
        index_tokens=index_tokens,
        timeline_tokens=scanned.tokens,
        timeline_tokens_available=available.tokens,
    )
    if _answers(scanned, parse(shorten_urls(query), view.now)):
        return loaded
    details = tuple(read_topic(topic, short) for topic in nearest)
    return replace(  # the entries that did not answer are part of the details
        loaded, layer="details", timeline=MemoryTimeline(), timeline_tokens=0, details=details,
        details_tokens=sum(one.tokens for one in details),
    )  # fmt: skip


def _load_status(view: MemoryView) -> LoadedContext:
    """Answer a question about the course of the work by the whole timeline."""
    timeline = make_timeline(view)
    return LoadedContext(
        "timeline" if timeline.tokens else "none",
        timeline=timeline,
        timeline_tokens=timeline.tokens,
        timeline_tokens_available=timeline.tokens,
    )


def _without_parts(topics: Iterable[Topic]) -> list[Topic]:
    """Return topics without those whose memories a better one has already."""
    chosen: list[Topic] = []
    had: set[str] = set()
    for topic in topics:
        ids = {one.id for one in topic.members}
        if not chosen or len(ids - had) > len(ids) / 2:
            chosen.append(topic)
            had |= ids
    return chosen


def _answers(timeline: MemoryTimeline, question: Question) -> bool:
    """Return whether the entries of a timeline have nearly all rare words of a question."""
    shown = content_words(format_timeline(timeline))
    terms = content_words(" ".join(question.terms))
    return len(terms) >= _FEWEST_TERMS and len(terms & shown) >= _ANSWERED * len(terms)
