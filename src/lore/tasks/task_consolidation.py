"""Consolidation of episodes: what similar tasks taught is stored as patterns and skills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from lore import clock
from lore.digest import episodes as episode_digest
from lore.embed import Embedder
from lore.errors import EmbedderError, InvalidInput, NotFound
from lore.records import (
    TRUST,
    AntiPattern,
    Fragment,
    FragmentKind,
    Origin,
    Pattern,
    StoredEpisode,
    TaskConsolidation,
)
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor
from lore.store import (
    consolidation,
    distillations,
    fragments,
    graph,
    items,
    project_rows,
    reversible_changes,
    sessions,
    task_memories,
)
from lore.store.consolidation import Step, StepRecorder, ignore_step
from lore.store.database import Connection, Database
from lore.store.fragments import NewFragment
from lore.store.graph import EdgeRow
from lore.store.task_memories import KEY, EpisodeRow
from lore.tasks import lessons
from lore.tasks.checkouts import find_roots
from lore.tasks.lessons import DUPLICATE_FROM, Lesson, TaskUnit
from lore.text import entities, words

MAX_EPISODES = 400
"""The latest episodes of a project that are compared: some years of one person's work."""

_ALL = 1_000_000

IMPORTANCE = 0.5
"""Above an episode, below what a person states."""

OWN_ORIGINS: tuple[Origin, ...] = ("user", "assistant", "tool")
"""Origins of episodes whose commands and goals come from this person's sessions.

An episode that cites the output of a tool has a tool's origin; a lesson repeats none of it."""

Vectors = Callable[[Sequence[str]], Any]
SameWork = Mapping[str, tuple[str, ...]]
"""Ids of the episodes of tasks by that of their session, if both are stored."""

Generalize = Callable[[Sequence[StoredEpisode]], "list[Lesson]"]
"""Asks a chat what several similar episodes teach."""


@dataclass(slots=True)
class ConsolidationContext:
    """What a consolidation needs: an embedder, a redactor, and a chat if one is configured."""

    embedder: Embedder
    redactor: Redactor = EPHEMERAL_REDACTOR
    generalize: Generalize | None = None
    recorder: StepRecorder = ignore_step
    most_requests: int = 5
    requests: int = field(default=0, init=False)


def consolidate(
    database: Database,
    context: ConsolidationContext,
    *,
    since: datetime | None = None,
    project_n: int | None = None,
) -> TaskConsolidation:
    """Learn from the episodes since a time, each compared with all others of its project."""
    with database.read() as db:
        recent = task_memories.episodes(db, since=since, scope=project_n, limit=MAX_EPISODES)
    result = TaskConsolidation()
    for scope in dict.fromkeys(row.scope for row in recent):
        new = {row.n for row in recent if row.scope == scope}
        result = _sum(result, _consolidate_scope(database, context, scope, new))
    return result


PROGRESS = "learn"
"""The mark up to which maintenance cycles have seen episodes."""


def consolidate_new(database: Database, context: ConsolidationContext) -> TaskConsolidation:
    """Learn from the episodes that are newer than the last maintenance cycle."""
    with database.read() as db:
        mark = consolidation.get_progress(db, PROGRESS)
        fresh = [row for row in task_memories.episodes(db, limit=_ALL) if row.n > mark]
    result = TaskConsolidation()
    for scope in dict.fromkeys(row.scope for row in fresh):
        new = {row.n for row in fresh if row.scope == scope}
        result = _sum(result, _consolidate_scope(database, context, scope, new))
    if fresh:
        last = max(row.n for row in fresh)
        database.write(lambda db: consolidation.set_progress(db, PROGRESS, last))
    return result


def find_episode(db: Connection, name: str) -> int | None:
    """Return the number of an episode, given its id or its session; None if it was deleted."""
    try:
        n: int | None = items.resolve(db, name, type="fragment").n
    except (NotFound, InvalidInput):
        n = distillations.find_episode(db, sessions.get_session_number(db, name))
    return None if n is None or fragments.is_deleted(db, n) else n


def consolidate_episode(
    database: Database, context: ConsolidationContext, episode_n: int
) -> TaskConsolidation:
    """Compare one new episode with its neighbours: the light consolidation after a task."""
    with database.read() as db:
        scope = items.scopes_of(db, [episode_n]).get(episode_n)
    no_chat = replace(context, generalize=None)
    return _consolidate_scope(
        database, no_chat, items.NO_PROJECT if scope is None else scope, {episode_n}
    )


def _consolidate_scope(
    database: Database, context: ConsolidationContext, scope: int, new: set[int]
) -> TaskConsolidation:
    with database.read() as db:
        rows = task_memories.episodes(db, scope=scope, limit=MAX_EPISODES)
        stored = _load(db, rows)
        project = project_rows.all_projects(db).get(scope)
    trusted = [one for one in stored if one.fragment.origin in OWN_ORIGINS]
    same_work = find_same_work(trusted)
    units = units_of_work(trusted, same_work)
    embed = _embedder_of(context.embedder)
    roots = find_roots([unit.files for unit in units], project.path if project else "")
    learned = lessons.learn(units, embed, roots)
    new_ids = {one.fragment.id for one, row in zip(stored, rows, strict=True) if row.n in new}
    count = len(new_ids)
    new_ids |= {id_ for session in new_ids & same_work.keys() for id_ in same_work[session]}
    if context.generalize is not None:
        learned += _ask(context, trusted, units, embed, roots, new_ids)
    fresh = [lesson for lesson in learned if not new_ids.isdisjoint(lesson.episodes)]

    def work(db: Connection) -> TaskConsolidation:
        return _write(db, _Writer(context, scope, embed, database.now(), same_work), fresh)

    if not fresh:
        return TaskConsolidation(episodes=count)
    written = database.write(work)
    return replace(written, episodes=count, clusters=len(fresh))


def find_same_work(stored: Sequence[StoredEpisode]) -> SameWork:
    """Return by the id of a session's episode those of its tasks, which tell of the same work."""
    tasks: dict[str, list[str]] = {}
    for one in stored:
        if one.fragment.session_id and one.fragment.metadata.get("task"):
            tasks.setdefault(one.fragment.session_id, []).append(one.fragment.id)
    return {
        one.fragment.id: tuple(tasks[one.fragment.session_id])
        for one in stored
        if one.fragment.metadata == distillations.SESSION_EPISODE
        and one.fragment.session_id in tasks
    }


def units_of_work(stored: Sequence[StoredEpisode], same_work: SameWork) -> list[TaskUnit]:
    """Return the tasks to learn from; what two episodes tell of the same work is one of them."""
    by_id = {one.fragment.id: lessons.units_of(one) for one in stored}
    for session, tasks in same_work.items():
        rest: list[TaskUnit] = []
        for unit in by_id[session]:
            same = next((id_ for id_ in tasks if _is_same(unit, by_id[id_][0])), None)
            if same is None and len(tasks) == len(by_id[session]) == 1:
                same = tasks[0]
            if same is None:
                rest.append(replace(unit, first_in_episode=False))  # its tasks have the commands
            else:
                by_id[same][0] = _unite(by_id[same][0], unit)
        by_id[session] = rest
    return [unit for units in by_id.values() for unit in units]


def _is_same(one: TaskUnit, other: TaskUnit) -> bool:
    """Return whether two tasks of one session are the same: by goal, files or errors."""
    if lessons.theme(one.goal) == lessons.theme(other.goal):
        return True
    shared = set(one.files) & set(other.files)
    return bool(shared) or bool(set(one.errors) & set(other.errors))


def _unite(task: TaskUnit, part: TaskUnit) -> TaskUnit:
    """Return a task with what the episode of its session tells besides."""
    return replace(
        task,
        outcome=part.outcome if task.outcome == "unknown" else task.outcome,
        files=tuple(dict.fromkeys((*task.files, *part.files))),
        errors=tuple(dict.fromkeys((*task.errors, *part.errors))),
        steps=task.steps or part.steps,
    )


def _without_sessions(known: Sequence[str], new: Sequence[str], same_work: SameWork) -> list[str]:
    """Return sources with the tasks of a session in place of its episode."""
    sources = []
    for id_ in known:
        tasks = same_work.get(id_, (id_,))
        sources.append(next((task for task in tasks if task in new), tasks[0]))
    return list(dict.fromkeys(sources))


def _load(db: Connection, rows: Sequence[EpisodeRow]) -> list[StoredEpisode]:
    by_number = fragments.by_number(db, [row.n for row in rows])
    return [
        StoredEpisode(
            by_number[row.n],
            episode_digest.parse_episode(by_number[row.n].payload),
            clock.from_us(row.ended_us),
        )
        for row in rows
    ]


def _embedder_of(embedder: Embedder) -> Vectors:
    """Return what embeds texts; without a model, vectors count words."""

    def count_words(texts: Sequence[str]) -> Any:
        rows = [{words.stem(word) for word in words.split(text)} for text in texts]
        names = {word: place for place, word in enumerate(sorted(set().union(*rows)))}
        matrix = np.zeros((len(texts), max(1, len(names))), np.float32)
        for place, row in enumerate(rows):
            matrix[place, [names[word] for word in row]] = 1.0
        return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)

    def embed(texts: Sequence[str]) -> Any:
        if not embedder.dimension or not texts:
            return count_words(texts)
        try:
            return np.asarray(embedder.embed(list(texts)), np.float32)
        except EmbedderError:
            return count_words(texts)

    return embed


def _ask(
    context: ConsolidationContext,
    stored: Sequence[StoredEpisode],
    units: Sequence[TaskUnit],
    embed: Vectors,
    roots: Sequence[str],
    new_ids: set[str],
) -> list[Lesson]:
    """Ask the chat about clusters with a new episode, within the limit of requests."""
    by_id = {one.fragment.id: one for one in stored}
    specific = [unit for unit in units if lessons.is_specific(unit.goal)]
    if not specific or context.generalize is None:
        return []
    vectors = embed([lessons.comparable_text(unit, roots) for unit in specific])
    learned: list[Lesson] = []
    for places in lessons.cluster(vectors):
        ids = list(dict.fromkeys(specific[place].episode_id for place in places))
        if len(ids) < lessons.FEWEST_MEMBERS or new_ids.isdisjoint(ids):
            continue
        if context.requests >= context.most_requests:
            break
        context.requests += 1
        learned += context.generalize([by_id[id_] for id_ in ids])
    return learned


# Storing


@dataclass(slots=True)
class _Writer:
    context: ConsolidationContext
    scope: int
    embed: Vectors
    now: datetime
    same_work: SameWork
    patterns: list[str] = field(default_factory=list)
    anti_patterns: list[str] = field(default_factory=list)
    skills: list[str] = field(default_factory=list)
    confirmed: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    links: int = 0

    def link(self, db: Connection, source: int, target: int, kind: Any) -> None:
        if source != target and graph.find_edge(db, source, target, kind) is None:
            edge = EdgeRow(source, target, kind, 1.0)
            reversible_changes.add_edge(db, edge, now=self.now, recorder=self.context.recorder)
            self.links += 1


def _write(db: Connection, writer: _Writer, learned: Sequence[Lesson]) -> TaskConsolidation:
    touched: list[int] = []
    for lesson in learned:
        n = _store(db, writer, lesson)
        touched += [n] if n is not None else []
    _merge_duplicates(db, writer)
    _relate(db, writer, touched)
    return TaskConsolidation(
        patterns=tuple(writer.patterns),
        anti_patterns=tuple(writer.anti_patterns),
        skills=tuple(writer.skills),
        confirmed=tuple(writer.confirmed),
        merged=tuple(writer.merged),
        links=writer.links,
    )


def kind_of(lesson: Lesson) -> FragmentKind:
    """Return the kind of fragment that a lesson is stored as."""
    if isinstance(lesson.payload, Pattern):
        return "pattern"
    return "anti_pattern" if isinstance(lesson.payload, AntiPattern) else "skill"


def _store(db: Connection, writer: _Writer, lesson: Lesson) -> int | None:
    """Store a lesson, or add its evidence to what says the same; None if a person deleted it."""
    lesson = _redacted(lesson, writer.context.redactor)
    n = task_memories.find_by_key(db, lesson.key, scope=writer.scope)
    if n is None:
        n = _find_similar(db, writer, lesson)
    if n is None:
        return _add(db, writer, lesson)
    if fragments.is_deleted(db, n):
        return None
    known = fragments.get(db, n)
    while known.superseded_by:
        n = items.find_number(db, known.superseded_by)
        if n is None or fragments.is_deleted(db, n):
            return None
        known = fragments.get(db, n)
    return _add_evidence(db, writer, n, known, lesson)


def _redacted(lesson: Lesson, redactor: Redactor) -> Lesson:
    return replace(
        lesson,
        content=redactor.redact(lesson.content),
        summary=redactor.redact(lesson.summary),
    )


def _find_similar(db: Connection, writer: _Writer, lesson: Lesson) -> int | None:
    """Return a lesson of the same kind that says the same in other words."""
    ns = task_memories.lessons_of_scope(db, writer.scope)
    alike = {
        n: one for n, one in fragments.by_number(db, ns).items() if one.kind == kind_of(lesson)
    }
    if not alike:
        return None
    vectors = writer.embed([lesson.content, *(one.content for one in alike.values())])
    cosines = vectors[1:] @ vectors[0]
    best = int(np.argmax(cosines))
    n = list(alike)[best]
    return n if _is_duplicate(lesson.content, alike[n].content, float(cosines[best])) else None


def _is_duplicate(one: str, other: str, cosine: float) -> bool:
    """Return whether two texts say the same: sentences of one form differ in what they name."""
    if cosine < DUPLICATE_FROM or not entities.values_agree(one, other):
        return False
    a, b = lessons.named(one), lessons.named(other)
    return a == b if a or b else True


def _add(db: Connection, writer: _Writer, lesson: Lesson) -> int:
    sources = items.numbers_of(db, lesson.episodes)
    home = items.find_home(db, sorted(sources.values()))
    kind = kind_of(lesson)
    confidence = getattr(lesson.payload, "confidence", lessons.confidence_of(len(lesson.episodes)))
    mentions = entities.extract_mentions(lesson.content, title=lesson.summary)
    new = NewFragment(
        id=clock.new_id(writer.now),
        content=lesson.content,
        summary=lesson.summary,
        kind=kind,
        created_at=_learned_at(db, list(sources.values()), writer.now),
        payload=payload_of(lesson),
        importance=IMPORTANCE,
        confidence=confidence,
        origin="assistant",
        trust=TRUST["assistant"],
        project_n=home.project_n,
        session_n=home.session_n,
        mentions=tuple(mentions),
        metadata={KEY: lesson.key},
    )
    n = fragments.add(db, new, now=writer.now)
    writer.context.recorder(db, Step("added", n))
    for source in sources.values():
        writer.link(db, n, source, "derived_from")
    {"pattern": writer.patterns, "anti_pattern": writer.anti_patterns}.get(
        kind, writer.skills
    ).append(new.id)
    return n


def _learned_at(db: Connection, sources: Sequence[int], now: datetime) -> datetime:
    """Return when the last of the episodes happened that show something."""
    return min(now, max(items.times_of(db, sources).values(), default=now))


def payload_of(lesson: Lesson) -> dict[str, Any]:
    """Return the payload of a lesson as plain values, without what is empty."""
    values = {name: _plain(value) for name, value in asdict(lesson.payload).items()}
    return {name: value for name, value in values.items() if value not in (None, "", [], 0)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _add_evidence(db: Connection, writer: _Writer, n: int, known: Fragment, lesson: Lesson) -> int:
    """Unite the sources, recalculate the confidence, and count one more use."""
    stored = [id_ for id_ in known.payload.get("source_episodes", ()) if isinstance(id_, str)]
    before = _without_sessions(stored, lesson.episodes, writer.same_work)
    added = [id_ for id_ in lesson.episodes if id_ not in before]
    if not added:
        return n
    united = lessons.with_evidence(lesson, before)
    is_derived = known.origin != "user" and known.metadata.get(KEY) == lesson.key
    own = payload_of(united) if is_derived else {}
    payload = known.payload | own | {"source_episodes": list(united.episodes)}
    payload["usage_count"] = int(known.payload.get("usage_count") or 0) + 1
    confidence = getattr(united.payload, "confidence", lessons.confidence_of(len(united.episodes)))
    confidence = max(confidence, known.confidence) if not is_derived else confidence
    if "confidence" in payload:
        payload["confidence"] = confidence
    reversible_changes.set_payload(
        db, n, payload, confidence=confidence, now=writer.now, recorder=writer.context.recorder
    )
    if is_derived and known.content != lesson.content and known.version == _written_versions(db, n):
        fragments.update(
            db, n, content=lesson.content, summary=lesson.summary,
            mentioned=entities.extract_mentions(lesson.content, title=lesson.summary),
            now=writer.now, reason="more evidence",
        )  # fmt: skip
    else:
        fragments.reinforce(db, n, now=writer.now)
    for source in items.numbers_of(db, added).values():
        writer.link(db, n, source, "derived_from")
        writer.link(db, source, n, "example_of")
    writer.confirmed.append(known.id)
    return n


def _written_versions(db: Connection, n: int) -> int:
    """Return the version up to which only consolidation wrote the text."""
    version = 1
    for former in fragments.get_versions(db, n):
        if former.reason != "more evidence":
            return version
        version = former.version + 1
    return version


def _merge_duplicates(db: Connection, writer: _Writer) -> None:
    """Merge lessons that say the same: the highest confidence survives with all sources."""
    ns = task_memories.lessons_of_scope(db, writer.scope)
    by_number = fragments.by_number(db, ns)
    apart = consolidation.judgements_of(db, ns, "merge")
    for kind in task_memories.LESSON_KINDS:
        group = [n for n, one in by_number.items() if one.kind == kind]
        if len(group) < lessons.FEWEST_MEMBERS:
            continue
        vectors = writer.embed([by_number[n].content for n in group])
        cosines = vectors @ vectors.T
        order = sorted(range(len(group)), key=lambda place: _rank(by_number[group[place]]))
        gone: set[int] = set()
        for place, first in enumerate(order):
            for second in order[place + 1 :]:
                stays, goes = group[first], group[second]
                is_apart = (min(stays, goes), max(stays, goes)) in apart
                one, other = by_number[stays], by_number[goes]
                if {stays, goes} & gone or is_apart or one.trust < other.trust:
                    continue
                if _is_duplicate(one.content, other.content, float(cosines[first, second])):
                    _merge(db, writer, stays, goes)
                    gone.add(goes)


def _rank(fragment: Fragment) -> tuple[float, int, str]:
    sources = fragment.payload.get("source_episodes")
    count = len(sources) if isinstance(sources, list) else 0
    return (-fragment.confidence, -count, fragment.id)


def _merge(db: Connection, writer: _Writer, stays: int, goes: int) -> None:
    one, other = fragments.get(db, stays), fragments.get(db, goes)
    sources = [
        id_
        for payload in (one.payload, other.payload)
        for id_ in payload.get("source_episodes", ())
        if isinstance(id_, str)
    ]
    used = sum(int(payload.get("usage_count") or 0) for payload in (one.payload, other.payload))
    payload = one.payload | {"source_episodes": list(dict.fromkeys(sources)), "usage_count": used}
    recorder = writer.context.recorder
    reversible_changes.set_payload(
        db, stays, payload, confidence=one.confidence, now=writer.now, recorder=recorder
    )
    reversible_changes.supersede(db, goes, stays, now=writer.now, recorder=recorder)
    writer.merged.append(other.id)


def _relate(db: Connection, writer: _Writer, touched: Sequence[int]) -> None:
    """Link lessons that were learned together, that add detail, or that contradict each other."""
    everything = fragments.by_number(db, task_memories.lessons_of_scope(db, writer.scope))
    for n in touched:
        if n not in everything:
            continue
        for other, fragment in everything.items():
            if kind := _relation(everything[n], fragment):
                writer.link(db, n, other, kind)


def _relation(one: Fragment, other: Fragment) -> str:
    if one.id == other.id:
        return ""
    mine, theirs = lessons.named(one.content), lessons.named(other.content)
    if {one.kind, other.kind} == {"anti_pattern", "skill"}:
        warning, skill = (one, other) if one.kind == "anti_pattern" else (other, one)
        fails = lessons.named(str(warning.payload.get("what_fails", "")))
        if fails & lessons.named(skill.content):
            return "contradicts" if one.kind == "anti_pattern" else ""
        programs = {name.split(" ")[0] for name in fails}
        is_about = any(step.split(" ")[0] in programs for step in lessons.named(skill.content))
        return "related_to" if one.kind == "anti_pattern" and is_about else ""
    if one.kind == other.kind == "pattern" and theirs and mine > theirs:
        return "elaborates"
    return (
        "related_to" if len(mine & theirs) >= lessons.FEWEST_MEMBERS and one.id < other.id else ""
    )


def _sum(one: TaskConsolidation, other: TaskConsolidation) -> TaskConsolidation:
    names = ("episodes", "clusters", "patterns", "anti_patterns", "skills", "confirmed", "merged",
             "links")  # fmt: skip
    return TaskConsolidation(**{name: getattr(one, name) + getattr(other, name) for name in names})
