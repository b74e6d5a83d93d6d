"""Collect prompts with their best candidates from memory, for `train_injection.py`.

    uv run python benchmarks/injection_table.py --data benchmarks/data --corpus SESSIONS --out TABLE

Fills a memory with each project's sessions and their digest, and small memories with one session or
a few turns of it, through the product's own capture. Each is asked its questions (right: what shows
their evidence), and questions that it cannot answer and prompts of other projects (nothing is
right). Then it is given pieces of work: such as need the evidence of a question, and near ones that
do not (`data/injection-tasks.jsonl.gz`). Real prompts of the sessions are asked before their
session is captured; whether what memory had then helps is for a reader to say
(`data/injection-labels.jsonl.gz`). Small memories of stored statements are asked and given work too
(`data/injection-facts.jsonl.gz`); those of one author count as a project.
"""

from __future__ import annotations

import argparse
import pickle
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore.embed import Embedder
from lore.evals.datasets import (
    UNANSWERABLE,
    Query,
    RetrievalTask,
    coding_task,
    open_scratch_memory,
    read_rows,
    units_of,
)
from lore.evals.vector_cache import open_cached_embedder
from lore.memory import Memory
from lore.recall import presentation
from lore.recall.hit_selection import Limits
from lore.recall.prompt_hits import MOST_PROMPT_HITS, describe_hits, rank_prompt
from lore.records import NewMessage, Part
from lore.text import goals

PROJECTS = (
    "polychrome",
    "cipherbox",
    "ctxeval",
    "agentv",
    "minsky",
    "ohmyposh",
    "nimbus",
    "entire",
)

ASKED, FOREIGN, SMALL, TINY = 220, 90, 6, 12
"""Questions and foreign prompts asked of a project's memory; small and tiny memories made of it."""

SPOKEN = ("user", "assistant", "summary")

WINDOWS = (2, 5, 12, 30)
"""Turns before and after its evidence that a tiny memory has."""

TASK, TASKS, LONGEST_PROMPT = "task", 60, 2_000
"""The kind of a real prompt, how many are asked in a project, and the characters of the longest."""

NEEDS, NEAR = "needs", "near"
"""The kinds of pieces of work that need what a memory knows, and of near ones that do not."""

ALONE = 4
"""Statements of each small memory that are also asked for in a memory of their own."""

ANY_TIME = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Row:
    """A prompt asked of a memory: features of its candidates, what each shows, what is right."""

    project: str
    memory: str
    kind: str
    prompt: str
    matrix: NDArray[np.float64]
    texts: list[str]
    ids: list[str]
    right: NDArray[np.bool_]
    possible: bool
    units: list[list[str]]


def main() -> None:
    """Collect the rows of all projects and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--also", type=Path, help="folder with more questions over the projects")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--projects", nargs="*", default=PROJECTS)
    parser.add_argument(
        "--chars", type=int, default=10**9, help="characters of a project's sessions at most"
    )
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "lore-eval-cache"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    foreign = _foreign_prompts(options.data, options.corpus)
    with open_cached_embedder(options.cache) as (embedder, _):
        for author, of_facts in _rows_of_facts(options.data, embedder).items():
            (options.out / f"{author}.pickle").write_bytes(pickle.dumps(of_facts))
    with open_cached_embedder(options.cache) as (embedder, _):
        for project in options.projects:
            rows: list[Row] = []
            for name, task, sessions in _memories(options, project):
                others = [prompt for other, prompt in foreign if other != project]
                chance = random.Random(f"{project} {name}")
                chosen = chance.sample(others, FOREIGN if name == "full" else 8)
                asked = [Query(prompt, "foreign", frozenset()) for prompt in chosen]
                with open_scratch_memory(embedder) as memory:
                    units = _fill(memory, task, sessions)
                    rows += _ask(memory, units, project, name, (*task.queries, *asked))
                print(f"{project} {name}: {len(units)} turns, {len(rows)} rows", flush=True)
            rows += _replay(_sessions(options, project), project, embedder)
            (options.out / f"{project}.pickle").write_bytes(pickle.dumps(rows))


def _fill(memory: Memory, task: RetrievalTask, sessions: Sequence[str]) -> dict[str, str]:
    """Fill a memory, and digest some of its sessions."""
    units = task.fill(memory)
    for session in sessions:
        memory.distill(session)
        memory.digest.curate(session)
    memory.maintenance.embed_waiting()
    return units


def _suffix(project: str) -> str:
    return "" if project == "entire" else f"-{project}"


def _foreign_prompts(data: Path, corpus: Path) -> list[tuple[str, str]]:
    """Return prompts with their projects: questions, real prompts, and questions of daily life."""
    chance = random.Random(7)
    prompts: list[tuple[str, str]] = []
    for project in PROJECTS:
        questions = [
            q["question"] for q in read_rows(data / f"coding-qa{_suffix(project)}.jsonl.gz")
        ]
        said = [
            text[:2_000]
            for raw in read_rows(corpus / f"coding-sessions{_suffix(project)}.jsonl.gz")
            for role, text, _ in raw["turns"]
            if role == "user" and 12 <= len(text) <= 1_200 and not text.startswith("<")
        ]
        chosen = [*chance.sample(questions, 60), *chance.sample(said, min(len(said), 90))]
        prompts += [(project, prompt) for prompt in chosen]
    daily = [
        q["question"] for raw in read_rows(data / "chats-lore.jsonl.gz") for q in raw["questions"]
    ]
    return prompts + [("chats", prompt) for prompt in chance.sample(daily, 150)]


def _sessions(options: argparse.Namespace, project: str) -> list[dict[str, Any]]:
    """Return the sessions of a project; those with most questions for their length, if limited."""
    sessions = list(read_rows(options.corpus / f"coding-sessions{_suffix(project)}.jsonl.gz"))
    questions = read_rows(options.data / f"coding-qa{_suffix(project)}.jsonl.gz")
    asked = Counter(question.get("session") for question in questions)
    size = {s["sid"]: sum(len(t) for role, t, _ in s["turns"] if role in SPOKEN) for s in sessions}
    chosen, total = set(), 0
    for one in sorted(sessions, key=lambda s: -asked[s["sid"]] / (1_000 + size[s["sid"]])):
        if total + size[one["sid"]] <= options.chars:
            chosen.add(one["sid"])
            total += size[one["sid"]]
    return [one for one in sessions if one["sid"] in chosen]


def _memories(
    options: argparse.Namespace, project: str
) -> Iterator[tuple[str, RetrievalTask, Sequence[str]]]:
    """Yield memories of a project: all of it, one session, some turns; the first two digested."""
    chance = random.Random(project)
    sessions = _sessions(options, project)
    by_sid = {s["sid"]: s for s in sessions}
    questions = list(read_rows(options.data / f"coding-qa{_suffix(project)}.jsonl.gz"))
    work = _pieces_of_work(options.data, questions)
    none = [q for q in questions if q["kind"] == UNANSWERABLE]
    some = [q for q in questions if q["kind"] != UNANSWERABLE]
    some = [q for q in some if q.get("session", "") in by_sid or q.get("evidence_all")]
    asked = chance.sample(some, min(len(some), ASKED)) + none[:60] + work
    other = options.also and options.also / f"coding-qa{_suffix(project)}.jsonl.gz"
    asked += read_rows(other) if other and other.exists() else ()
    yield "full", coding_task(project, sessions, asked), [s["sid"] for s in sessions]
    single = [q for q in some if q.get("session") in by_sid]
    for number, sid in enumerate(chance.sample(sorted({q["session"] for q in single}), SMALL)):
        own = [q for q in single if q["session"] == sid][:14]
        own += [q for q in work if q.get("session") == sid]
        apart = [q for q in single if not _is_in(q, {sid})]
        task = coding_task(project, [by_sid[sid]], own + _as_none(chance.sample(apart, 10)))
        yield f"small {number}", task, [sid]
    for number, question in enumerate(chance.sample(single, TINY)):
        size = WINDOWS[number % len(WINDOWS)]
        sid, place = question["session"], question["evidence"][0]
        turns = by_sid[sid]["turns"]
        blank = [
            [role, text if abs(at - place) <= size else "", time]
            for at, (role, text, time) in enumerate(turns)
        ]
        apart = _as_none(chance.sample([q for q in single if not _is_in(q, {sid})], 4))
        asked = [
            question,
            *(
                q
                for q in [*single, *work]
                if q["session"] == sid
                and q is not question
                and abs(q["evidence"][0] - place) <= size
            ),
        ]
        yield (
            f"tiny {number}",
            coding_task(project, [{**by_sid[sid], "turns": blank}], asked + apart),
            [],
        )


def _pieces_of_work(data: Path, questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return pieces of work in the form of questions: such as need an evidence, and near ones."""
    by_id = {question["id"]: question for question in questions}
    work = [row for row in read_rows(data / "injection-tasks.jsonl.gz") if row["id"] in by_id]
    return [
        {**by_id[row["id"]], "question": row[name], "kind": kind}
        for row in work
        for name, kind in (("task", NEEDS), ("near", NEAR))
        if row[name]
    ]


def _is_in(question: dict[str, Any], sids: set[str]) -> bool:
    places = [[question.get("session"), 0], *(question.get("also") or [])]
    return any(sid in sids for sid, _ in places)


def _as_none(questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**q, "kind": UNANSWERABLE} for q in questions]


def _rows_of_facts(data: Path, embedder: Embedder) -> dict[str, list[Row]]:
    """Return prompts to small memories, by author: stored, said in a session, and one alone."""
    by_author: dict[str, list[Row]] = {}
    memories = list(read_rows(data / "injection-facts.jsonl.gz"))
    for number, raw in enumerate(memories):
        chance = random.Random(raw["memory"])
        author, facts = f"facts-{raw['author']}", raw["facts"]
        rows = by_author.setdefault(author, [])
        others = [
            Query(fact["asks"][0], "foreign", frozenset())
            for fact in chance.choice(memories)["facts"]
            if not any(fact["text"] == own["text"] for own in facts)
        ]
        chosen = [[one] for one in chance.sample(facts, ALONE)]
        for stored in (facts, *chosen):
            near = [Query(text, NEAR, frozenset()) for text in raw["near"]]
            prompts = [*_fact_prompts(stored), *chance.sample(near, min(8, 2 * len(stored)))]
            name = "tiny" if len(stored) == 1 else "small"
            with open_scratch_memory(embedder) as memory:
                units = _keep_facts(memory, stored, said=number % 2 == 1)
                rows += _ask(memory, units, author, name, [*prompts, *others[: len(stored)]])
    return by_author


def _fact_prompts(facts: Sequence[dict[str, Any]]) -> Iterator[Query]:
    for fact in facts:
        gold = frozenset({fact["text"]})
        yield from (Query(text, "value", gold) for text in fact["asks"])
        yield Query(fact["needs"], NEEDS, gold)


def _keep_facts(memory: Memory, facts: Sequence[dict[str, Any]], *, said: bool) -> dict[str, str]:
    """Keep statements as knowledge, or as messages of a session; return them by the item's id."""
    if said:
        new = [
            NewMessage("user", (Part("text", one["text"]),), ANY_TIME - timedelta(minutes=place))
            for place, one in enumerate(reversed(facts))
        ]
        ids = memory.capture("said", list(reversed(new)), project="/code/small")
    else:
        ids = [memory.store(one["text"], kind=one["kind"], project="/code/small") for one in facts]
    memory.maintenance.embed_waiting()
    return {id_: one["text"] for id_, one in zip(ids, facts, strict=True)}


def _ask(
    memory: Memory, units: dict[str, str], project: str, name: str, queries: Sequence[Query]
) -> list[Row]:
    rows = []
    for query in queries:
        request = goals.parse_request(query.text)
        if request is None or not request.real:
            continue
        with memory.database.read() as db:
            best = rank_prompt(
                memory.sources, db, request.text, project_n=None, without=(), now=ANY_TIME
            )
            limits = Limits(MOST_PROMPT_HITS, 4_000, trusted_only=True)
            shown = presentation.present(db, best.question, best.ranked, best.places, limits=limits)
            hits = shown.hits
            matrix = describe_hits(db, best, hits)
        same = [units_of(hit, units) | {units[i] for i in hit.same if i in units} for hit in hits]
        rows.append(
            Row(
                project, name, query.category, query.text, matrix,
                [hit.text for hit in hits], [hit.id for hit in hits],
                np.array([bool(one & query.gold) for one in same], np.bool_),
                any(unit in query.gold for unit in units.values()),
                [sorted(one) for one in same],
            )
        )  # fmt: skip
    return rows


def _replay(sessions: list[dict[str, Any]], project: str, embedder: Embedder) -> list[Row]:
    """Ask the real prompts of each session, and then capture it."""
    chance = random.Random(project)
    rows: list[Row] = []
    units: dict[str, str] = {}
    most = max(1, -(-TASKS // len(sessions)))
    with open_scratch_memory(embedder) as memory:
        for raw in sorted(sessions, key=lambda one: str(one["created"])):
            places = [place for place, turn in enumerate(raw["turns"]) if _is_prompt(turn)]
            chosen = chance.sample(places, min(len(places), most)) if units else []
            for place in chosen:
                unit = f"{raw['sid']}:{place}"
                query = Query(raw["turns"][place][1], TASK, frozenset())
                rows += _ask(memory, units, project, unit, [query])
            task = coding_task(project, [raw], ())
            units |= _fill(memory, task, [raw["sid"]])
    print(f"{project}: {len(rows)} prompts", flush=True)
    return rows


def _is_prompt(turn: Sequence[str]) -> bool:
    request = goals.parse_request(turn[1]) if turn[0] == "user" else None
    return request is not None and request.real and len(turn[1]) < LONGEST_PROMPT


if __name__ == "__main__":
    main()
