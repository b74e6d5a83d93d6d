"""One cited answer to a question: quotations of the best hits, or the sentences of a chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lore.records import Answer, AskResult, Citation, CitedSentence, Hit
from lore.store import items, project_rows, sessions
from lore.store.database import Connection

MAX_QUOTED = 3
"""Passages that an answer quotes: more would be a list of hits, as `recall` returns."""

QUOTED_MARGIN = 1.5
"""How far below the best score of the learned ranking a hit also counts as an answer. Chosen by
hand."""

NOTHING = "Nothing in memory answers this."


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
    state = f" ({citation.note})" if citation.note else ""
    if citation.replaced_by is not None and citation.is_outdated:
        state = f" (out of date, replaced by [{citation.replaced_by}])"
    return f"“{citation.text.strip()}” [{citation.number}]{state}"


def _with_marks(sentence: CitedSentence, places: Sequence[int]) -> str:
    """Return a sentence that ends with the numbers of its citations."""
    marks = "".join(f"[{places.index(place) + 1}]" for place in sentence.places)
    return f"{sentence.text} {marks}"


def _cite(db: Connection, hits: Sequence[Hit]) -> list[Citation]:
    """Return the citations of hits, numbered from 1."""
    short_ids = items.short_ids(db, [hit.id for hit in hits])
    projects = project_rows.names_by_id(db)
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
            note=hit.note,
        )
        for number, hit in enumerate(hits, 1)
    ]
    numbers = {citation.id: citation.number for citation in citations}
    for place, hit in enumerate(hits):
        if hit.replaced is not None:
            number = numbers.get(hit.replaced.by_id)
            citations[place] = replace(citations[place], replaced_by=number)
    return citations


def _author(hit: Hit) -> str:
    """Return who said a passage; text of a tool, a file or a web page is marked as such."""
    author = hit.role or hit.origin
    is_own = hit.origin in ("user", "assistant") or hit.origin == author
    return author if is_own else f"{author} ({hit.origin})"
