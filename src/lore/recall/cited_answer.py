"""One cited answer to a question: quotations of the best hits, or the sentences of a chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lore.lazy_dataclass import dataclass
from lore.recall import quotations
from lore.recall.quotations import JudgedHit, PassageReader
from lore.records import Answer, AskResult, Citation, CitedSentence, Hit
from lore.records.kinds import Strength
from lore.store import items, messages, project_rows, sessions
from lore.store.database import Connection
from lore.text import goals, message_features, tokens, words

MAX_QUOTED = 3
"""Passages that an answer quotes: more would be a list of hits, as `recall` returns."""

QUOTED_MARGIN = 1.5
"""How far below the best score of the learned ranking a hit also counts as an answer, where no
model reads it. Chosen by hand."""

QUOTED_SHARE = 0.08
"""A further hit is quoted if its share is at least this part of the first's. Two are quoted then on
average, as many as by the margin of scores."""

NOTHING = "Nothing in memory answers this."

UNCLEAR = "Memory has no clear answer. Nearest:"
"""Begins a weak answer."""

UNCLEAR_TOKENS = 60
"""What a passage is cut to in a weak answer: enough to see whether to read on."""


@dataclass(frozen=True, slots=True)
class Material:
    """What an answer is made of: hits for a chat, best first, and those to quote without one."""

    hits: tuple[Hit, ...]
    quoted: tuple[Hit, ...]
    strength: Strength


def select_by_rank(answer: Answer, budget_tokens: int) -> Material:
    """Return the material of an answer in the order of the ranking."""
    quoted = tuple(select_quotable(answer.hits))
    return Material(_fit(answer.hits, budget_tokens), quoted, answer.strength)


def select_by_reading(
    db: Connection, reader: PassageReader, answer: Answer, budget_tokens: int
) -> Material:
    """Return the material of an answer in the order of a model that reads every hit."""
    judged = quotations.judge_hits(
        reader, answer.question, answer.hits, _find_repetitions(db, answer.hits)
    )
    chosen = select_likely(judged)
    if not chosen:
        return Material((), (), "none")
    strength = quotations.rate(chosen, answer.confidence) if answer.relevant else "none"
    quoted = _with_successors([one.hit for one in chosen], answer.hits)
    return Material(_fit([one.hit for one in judged], budget_tokens), quoted, strength)


def compose(
    db: Connection, question: str, material: Material, sentences: Sequence[CitedSentence] | None
) -> AskResult:
    """Return the answer of a chat's sentences, or the quoted passages if it wrote none.

    An empty list of sentences says that the chat found no answer.
    """
    if material.strength == "none" or not material.hits or sentences == []:
        nearest = _cite(db, material.hits[:1])
        return AskResult(question, NOTHING, nearest=nearest[0] if nearest else None)
    if sentences is None:
        quoted, lead = material.quoted, []
        if material.strength == "weak":
            quoted, lead = _cut(question, quoted), [UNCLEAR]
        citations = _cite(db, quoted)
        text = "\n".join([*lead, *(_quote(citation) for citation in citations)])
    else:
        places = list(dict.fromkeys(place for one in sentences for place in one.places))
        citations = _cite(db, [material.hits[place] for place in places])
        text = " ".join(_with_marks(one, places) for one in sentences)
    return AskResult(question, text, tuple(citations), material.strength)


def _cut(question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return hits with what is around the words of a question, in one line."""
    terms = [word for word in words.split(question) if word not in words.STOP_WORDS]
    lines = [" ".join(hit.text.split()) for hit in hits]
    cut = [tokens.clip_around(line, UNCLEAR_TOKENS, terms) for line in lines]
    return tuple(replace(hit, text=text) for hit, text in zip(hits, cut, strict=True))


def select_quotable(hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hit and others that clearly answer too; what no longer holds comes last."""
    chosen: list[Hit] = []
    best = max((hit.score for hit in hits), default=0.0)
    for hit in hits:
        is_near = best - hit.score <= QUOTED_MARGIN
        if is_near and not any(_repeats(hit, other) for other in chosen):
            chosen.append(hit)
    return sorted(chosen[:MAX_QUOTED], key=lambda hit: hit.is_outdated)


def select_likely(judged: Sequence[JudgedHit]) -> list[JudgedHit]:
    """Return the likeliest hit and others that answer nearly as likely; echoes only if alone."""
    chosen: list[JudgedHit] = []
    for one in judged:
        is_likely = not chosen or one.share >= QUOTED_SHARE * chosen[0].share
        is_proper = not one.is_echo or all(other.is_echo for other in chosen)
        if is_likely and is_proper and not any(_repeats(one.hit, other.hit) for other in chosen):
            chosen.append(one)
    return chosen[:MAX_QUOTED]


def _with_successors(chosen: Sequence[Hit], hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return hits after what replaced them, as far as that is at hand; what holds comes first."""
    by_id = {hit.id: hit for hit in hits}
    with_newer: dict[str, Hit] = {}
    for hit in chosen:
        newer = by_id.get(hit.replaced.by_id) if hit.replaced is not None else None
        for one in (newer, hit):
            if one is not None:
                with_newer.setdefault(one.id, one)
    return tuple(sorted(with_newer.values(), key=lambda hit: hit.is_outdated)[:MAX_QUOTED])


def _fit(hits: Sequence[Hit], budget_tokens: int) -> tuple[Hit, ...]:
    """Return the first hits that fit a token budget, at least one."""
    fitting: list[Hit] = []
    for hit in hits:
        budget_tokens -= hit.tokens
        if fitting and budget_tokens < 0:
            break
        fitting.append(hit)
    return tuple(fitting)


def _find_repetitions(db: Connection, hits: Sequence[Hit]) -> frozenset[str]:
    """Return the ids of the messages among hits that only repeat an earlier conversation."""
    ns = [n for hit in hits if hit.type == "message" and (n := items.find_number(db, hit.id))]
    return frozenset(
        message.id
        for message in messages.get_messages(db, ns).values()
        if goals.is_repeated(message_features.spoken_text(message.parts))
    )


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
    short_ids = items.listed_ids(db, [hit.id for hit in hits])
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
            type=hit.type,
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
    if hit.publisher:
        return f"{hit.origin}, {hit.publisher}"
    author = hit.role or hit.origin
    is_own = hit.origin in ("user", "assistant") or hit.origin == author
    return author if is_own else f"{author} ({hit.origin})"
