"""One cited answer to a question: quotations of the best hits, or the sentences of a chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lore.recall.features import EXCERPT_TOKENS
from lore.records import Answer, AskResult, Citation, CitedSentence, Fragment, Hit
from lore.store import fragments, items, project_rows, sessions
from lore.store.database import Connection
from lore.text import tokens

MAX_QUOTED = 3
"""Passages that an answer quotes: more would be a list of hits, as `recall` returns."""

QUOTED_MARGIN = 1.5
"""How far below the best score of the learned ranking a hit also counts as an answer. Chosen by
hand."""

NOTHING = "Nothing in memory answers this."


def add_successors(db: Connection, hits: Sequence[Hit]) -> list[Hit]:
    """Return hits with what replaced an outdated one before it, each passage once."""
    ordered: dict[str, Hit] = {}
    by_id = {hit.id: hit for hit in hits}
    for hit in hits:
        newer = _find_successor(db, hit)
        if newer is not None:
            known = by_id.get(newer.id) or _successor_hit(newer, hit)
            ordered.setdefault(newer.id, replace(known, score=max(known.score, hit.score)))
        ordered.setdefault(hit.id, hit)
    return list(ordered.values())


def _find_successor(db: Connection, hit: Hit) -> Fragment | None:
    if not hit.is_outdated:
        return None
    newer = fragments.find_successor(db, hit.id)
    if newer is None and hit.question_id:
        newer = fragments.find_successor(db, hit.question_id)
    if newer is not None and newer.project_id and newer.project_id != hit.project_id:
        return None
    return newer


def _successor_hit(newer: Fragment, older: Hit) -> Hit:
    text = tokens.clip(newer.content, EXCERPT_TOKENS)
    return Hit(
        newer.id, "fragment", text, newer.summary, older.score, f"replaces {older.id}",
        newer.created_at, tokens.count(text), kind=newer.kind, depth=newer.depth,
        session_id=newer.session_id or "", project_id=newer.project_id or "",
        origin=newer.origin, sources=newer.source_messages,
    )  # fmt: skip


def compose(
    db: Connection,
    answer: Answer,
    hits: Sequence[Hit],
    sentences: Sequence[CitedSentence] | None,
) -> AskResult:
    """Return the answer of a chat's sentences, or the quoted passages if it wrote none.

    An empty list of sentences says that the chat found no answer.
    """
    if not answer.relevant or not hits or sentences == []:
        nearest = _cite(db, hits[:1])
        return AskResult(answer.question, NOTHING, nearest=nearest[0] if nearest else None)
    if sentences is None:
        citations = _cite(db, select_quotable(hits))
        text = "\n".join(_quote(citation) for citation in citations)
    else:
        places = list(dict.fromkeys(place for one in sentences for place in one.places))
        citations = _cite(db, [hits[place] for place in places])
        text = " ".join(_with_marks(one, places) for one in sentences)
    return AskResult(answer.question, text, tuple(citations), answer.strength)


def select_quotable(hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hit and others that clearly answer too; what no longer holds comes last."""
    chosen: list[Hit] = []
    best = max((hit.score for hit in hits), default=0.0)
    for hit in hits:
        is_near = best - hit.score <= QUOTED_MARGIN
        if is_near and not any(_repeats(hit, other) for other in chosen):
            chosen.append(hit)
    return sorted(chosen[:MAX_QUOTED], key=lambda hit: hit.is_outdated)


def _repeats(hit: Hit, other: Hit) -> bool:
    """Return whether one of two passages contains the other, whatever its spaces and case."""
    one, two = (" ".join(each.text.casefold().split()).strip(" .…") for each in (hit, other))
    return one in two or two in one


def _quote(citation: Citation) -> str:
    state = ""
    if citation.replaced_by is not None:
        state = f" (out of date, replaced by [{citation.replaced_by}])"
    elif citation.is_outdated:
        state = " (out of date)"
    return f"“{citation.text.strip()}” [{citation.number}]{state}"


def _with_marks(sentence: CitedSentence, places: Sequence[int]) -> str:
    """Return a sentence that ends with the numbers of its citations."""
    marks = "".join(f"[{places.index(place) + 1}]" for place in sentence.places)
    return f"{sentence.text} {marks}"


def _cite(db: Connection, hits: Sequence[Hit]) -> list[Citation]:
    """Return the citations of hits, numbered from 1."""
    short_ids = items.short_ids(db, [hit.id for hit in hits])
    projects = {project.id: project.name for project in project_rows.all_projects(db).values()}
    titles = sessions.titles_by_id(db, {hit.session_id for hit in hits} - {""})
    citations = [
        Citation(
            number,
            hit.id,
            short_ids[hit.id],
            hit.text,
            _author(hit),
            hit.created_at,
            projects.get(hit.project_id, ""),
            titles.get(hit.session_id, ""),
            hit.session_id,
            hit.is_outdated,
        )
        for number, hit in enumerate(hits, 1)
    ]
    numbers = {citation.id: citation.number for citation in citations}
    for place, hit in enumerate(hits):
        newer = _find_successor(db, hit)
        if newer is not None:
            citations[place] = replace(citations[place], replaced_by=numbers.get(newer.id))
    return citations


def _author(hit: Hit) -> str:
    """Return who said a passage; text of a tool, a file or a web page is marked as such."""
    author = hit.role or hit.origin
    is_own = hit.origin in ("user", "assistant") or hit.origin == author
    return author if is_own else f"{author} ({hit.origin})"
