"""Find what newer statements replaced: the one judgement of what holds now.

Each sentence that a person or an assistant states is compared with the nearest statements of the
same project, older and newer ones, and each pair is judged once. What is certain is linked as
replaced, what is doubtful as `may_replace`. A less trusted origin replaces nothing for certain.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.digest.claims import add_turn, load_claims
from lore.digest.drafts import NearestSearch
from lore.digest.pair_judge import (
    CHANGES,
    Claim,
    ClaimJudge,
    Judgement,
    Pair,
    can_replace,
    is_readable,
    is_rule,
    is_worth_judging,
    names_former,
    reverses,
    specific_words,
)
from lore.embed import Embedder
from lore.errors import EmbedderError, StoreDamaged
from lore.index.vector_index import VectorFilter
from lore.records import (
    TRUST,
    UNASKED_TRUST,
    Decision,
    DoubtfulPair,
    StatedText,
)
from lore.store import fragments, items, messages, replacements, vectors
from lore.store.database import Connection, Database
from lore.store.replacements import MODEL_CERTAINTY, Relation, Replacement
from lore.text import entities, instructions, words

log = logging.getLogger("lore.digest.replacement")

BATCH = 4
"""Items of one transaction: half a second of work. A kill loses it, and they are judged again."""

NEAREST, MOST_PAIRS, MOST_PAIRS_OF_ITEM, MOST_PAIRS_OF_CLAIM = 24, 5, 10, 2
"""Items that are compared, pairs that are judged for a statement, and for all of an item: so many,
or so many for each of its statements."""

ITEM_FLOOR, FLOOR = 0.05, 0.1
"""Items, and statements, less similar than this are about different things. (Replaced ones of
`stale-open.jsonl` have 0.28 to 0.95, unrelated ones of the same project mostly less than 0.2.)"""

CERTAIN, DOUBTFUL, WORDLESS = 0.5, 0.07, 0.2
"""Probability from which a statement counts as replaced, from which a pair is doubtful, and from
which one is that has no telling word in common. (The model was trained with the pairs of real
sessions that these let through: see `benchmarks/fit_pair_head.py`. Each time that makes it surer of
what changes nothing, and less sure of the rest: doubt began at 0.15, then at 0.1.)"""

POSSIBLE = 0.05
"""Probability from which a chat is asked about a pair that is not doubtful: it knows what the model
does not, such as that ClickHouse takes the place of Redshift. (Some three pairs a session.)"""

LEAST_WORTH = 0.1
"""Probability that a replaced statement is worth remembering: 'Push succeeded.' is not. (Recorded
sessions of two projects had 207 links, nearly all wrong; this and `WORDLESS` leave 68 of them.)"""

SAME_SUBJECT, ALIKE, NEARLY_SAME = 0.45, 0.5, 0.65
"""Cosines from which two statements are about the same subject, from which a rule and a statement
with another value, and from which any two with different values are a doubtful pair, whatever the
model says."""

NEAR_BEST = 0.5
"""What replaces something replaces what it most likely does, and what is half as likely."""

LEAST_ALIKE = 0.5
"""Share of its probability that a pair keeps whose vectors have nothing in common: what changes
something in passing hardly resembles it."""

IMPOSSIBLE = 0.05
"""Probability below which another value alone makes no doubtful pair: tasks name other things."""

SURE_SAME = 0.9
"""Probability from which two statements say the same."""

SURE_CORRECTION = 0.97
"""Probability for two statements of one session: people state several things one after the other,
and seldom take back one a few minutes later. (All of these are chosen on `stale.jsonl` and
the two sets `stale-open`.)"""

TOGETHER_US = 86_400_000_000
"""Knowledge that is stored within a day of other knowledge mostly adds to it: only what would be
certain puts that in doubt."""

COMMON_LETTERS = 0.2
"""Share of the runs of four characters of the shorter statement that the other must have, if the
model cannot read them: for it, all sentences of another script are alike. (19 unrelated pairs of
Russian sessions had at most 0.16 but for one, changes of one thing 0.25 and more.)"""

_RUN_CHARS = 4

MOST_DOUBTFUL = 200
_SEVERAL = 100
"""Statements of an episode: it is never replaced as a whole."""

_CACHED_VECTORS = 2_000
_LOADED_ITEMS = 1_000
"""Items whose numbers are read at a time: each time the whole queue is sorted."""

Vector = NDArray[np.float32]
_Related = tuple[Pair, Judgement, Relation]


class ReplacementFinder:
    """Judges the items in the queue against what is stored, in the background."""

    def __init__(
        self, database: Database, embedder: Embedder, nearest: NearestSearch, judge: ClaimJudge
    ) -> None:
        self._database = database
        self.embedder = embedder
        self._nearest = nearest
        self._judge = judge
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._batch = BATCH
        self._later: set[int] = set()

    def judge_waiting(self, *, within_s: float | None = None) -> int:
        """Judge the items in the queue until none is left or the time is up; return how many.

        An item whose texts the embedder refuses comes last the next time.
        """
        started, done = time.monotonic(), 0
        waiting: list[int] = []
        while True:
            waiting = waiting or self._load_waiting()
            if not waiting:
                self._batch, self._later = BATCH, set()
                return done
            ns, waiting = waiting[: self._batch], waiting[self._batch :]
            try:
                links = self._judge_batch(ns)
            except EmbedderError:
                self._later |= set(ns) if len(ns) == 1 else set()
                self._batch = 1
                raise
            self._database.write(partial(replacements.record, judged_ns=ns, links=links))
            done += len(ns)
            if within_s is not None and time.monotonic() - started > within_s:
                return done

    def _load_waiting(self) -> list[int]:
        with self._database.read() as db:
            return replacements.waiting_items(db, limit=_LOADED_ITEMS, without=self._later)

    def _judge_batch(self, ns: Sequence[int]) -> list[Replacement]:
        """Return the links of some items; one that cannot be judged has none, and is logged."""
        try:
            with self._database.read() as db:
                return self._find_links(db, ns)
        except (LookupError, TypeError, ValueError, StoreDamaged) as error:
            if len(ns) == 1:
                log.warning("item not judged", extra={"error": type(error).__name__})
                return []
        return [link for n in ns for link in self._judge_batch([n])]

    def _find_links(self, db: Connection, ns: Sequence[int]) -> list[Replacement]:
        """Return the links from and to some items."""
        links: dict[tuple[int, str, int], Replacement] = {}
        pairs = {
            (pair.older.n, pair.older.text, pair.newer.n, pair.newer.text): pair
            for n in ns
            for pair in self._pairs(db, n)
        }
        judged = list(pairs.values())
        judgements = self._judge.judge(judged)
        for pair, judgement, relation in self._worth_linking(_relate(judged, judgements)):
            link = _link(pair, relation, certainty_of(pair, judgement))
            links[link.older_n, link.older_text, link.newer_n] = link
        for pair, judgement in zip(judged, judgements, strict=True):
            for link in _links_of_return(db, pair, judgement):
                links.setdefault((link.older_n, link.older_text, link.newer_n), link)
        for link in [one for one in links.values() if one.relation != "possible"]:
            for one in (*_links_of_echoes(db, link), *_links_of_successors(db, link)):
                key = one.older_n, one.older_text, one.newer_n
                links[key] = max(links.get(key, one), one, key=_clearness)
        direct = list(links.values())
        shown = [one for one in direct if one.relation != "possible"]
        derived = [one for made in _links_of_fragments(db, shown) for one in made]
        return [*direct, *derived, *self._links_of_new_fragments(db, ns)]

    def _worth_linking(self, related: Iterable[_Related]) -> Iterator[_Related]:
        """Yield what is related without statements of the moment, which nobody would look up."""
        linked = list(related)
        worth = self._judge.worth([pair.older for pair, _, _ in linked])
        for one, older_worth in zip(linked, worth, strict=True):
            older = one[0].older
            if older_worth >= LEAST_WORTH or older.is_kept or is_rule(older.text):
                yield one

    def _pairs(self, db: Connection, n: int) -> list[Pair]:
        """Return the pairs of an item's claims with the nearest ones, nearest first.

        A pair is judged once: with its newer item, or with the older one if that came late.
        """
        own = add_turn(db, n, self._by_item(db, [n]).get(n, ()))
        pairs: list[Pair] = []
        for late in (False, True):
            claims = [one for one in own if late or can_replace(one)]
            near = self._near_items(db, n, claims, late=late) if claims else []
            others = [one for stated in self._by_item(db, near).values() for one in stated]
            if others:
                rows = zip(claims, self._embed(claims), strict=True)
                pairs += [p for claim, row in rows for p in self._nearest_pairs(claim, row, others)]
        most = max(MOST_PAIRS_OF_ITEM, MOST_PAIRS_OF_CLAIM * len(own))
        return sorted(pairs, key=lambda pair: -pair.cosine)[:most]

    def _near_items(
        self, db: Connection, n: int, claims: Sequence[Claim], *, late: bool
    ) -> list[int]:
        """Return the nearest items of the project: older ones, or newer ones judged before.

        The vector of an item does not know the question that it answers, nor its turn's edits.
        """
        place = replacements.place_of(db, n)
        vectors_of = self._load_vectors(db, [n]).get(n)
        if vectors_of is None:
            return []
        where = VectorFilter(
            projects=(place.project_n or 0,),
            types=(items.type_number("message"), items.type_number("fragment")),
            since_us=place.at if late else None,
            until_us=None if late else place.at + 1,
        )
        if late and not replacements.has_newer(db, place):
            return []
        beside = [one for one in claims if one.was or one.subject != one.text]
        rows = [*vectors_of, *(self._embed(beside) if beside else ())]
        nearest: dict[int, None] = {}
        for vector in rows:
            ns, cosines = self._nearest(vector, NEAREST, where=where)
            near = zip(ns.tolist(), cosines.tolist(), strict=True)
            nearest |= dict.fromkeys(m for m, cosine in near if m != n and cosine >= ITEM_FLOOR)
        waiting = replacements.still_waiting(db, list(nearest)) if late else set()
        scopes = items.scopes_of(db, [n, *nearest])
        return [
            m
            for m in nearest
            if m not in waiting
            and scopes.get(m if late else n) in (None, scopes.get(n if late else m))
        ]

    def _nearest_pairs(
        self, claim: Claim, vector: Vector, others: Sequence[Claim]
    ) -> Iterator[Pair]:
        """Yield the pairs of a claim that are worth judging, nearest first."""
        telling = _telling_words(claim.text)
        chosen = [
            pair
            for other in others
            if other.statements == 1 or telling & _telling_words(other.text)
            if is_worth_judging(pair := _in_order(claim, other))
            if words.split(claim.stated) != words.split(other.stated)
            if not pair.newer.was or names_former(pair)
        ]
        if not chosen:
            return
        others = [pair.older if pair.newer is claim else pair.newer for pair in chosen]
        cosines = (self._embed(others) @ vector).tolist()
        near = [
            pair._replace(cosine=cosine)
            for pair, cosine in zip(chosen, cosines, strict=True)
            if cosine >= FLOOR
        ]
        yield from sorted(near, key=lambda pair: -pair.cosine)[:MOST_PAIRS]

    def _by_item(self, db: Connection, ns: Sequence[int]) -> dict[int, tuple[Claim, ...]]:
        """Return the claims of items; the vector of an item with one claim is that of the claim."""
        by_item = _load_sound_claims(db, ns)
        single = [n for n, claims in by_item.items() if len(claims) == 1 and not claims[0].asked]
        for n, rows in self._load_vectors(db, single).items():
            if len(rows) == 1:
                self._vectors.setdefault(by_item[n][0].subject, rows[0])
        return by_item

    def _load_vectors(self, db: Connection, ns: Sequence[int]) -> dict[int, Vector]:
        embedder_n = vectors.find_embedder(db, self.embedder.identity)
        numbers = np.array(ns, np.int64)
        return vectors.load_passages(db, embedder_n, numbers, self.embedder.dimension)

    def _embed(self, claims: Sequence[Claim]) -> Vector:
        """Return the vectors of claims, from the cache where they are known."""
        texts = [claim.subject for claim in claims]
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            rows = self.embedder.embed(missing)
            self._vectors |= dict(zip(missing, rows, strict=True))
        matrix = np.stack([self._vectors[text] for text in texts])
        while len(self._vectors) > _CACHED_VECTORS:
            self._vectors.popitem(last=False)
        return matrix

    def _links_of_new_fragments(self, db: Connection, ns: Sequence[int]) -> Iterator[Replacement]:
        """Yield the links of fragments' messages, for fragments that were just stored."""
        for n, fragment in fragments.by_number(db, ns).items():
            if fragment.kind == "episode":
                session_n = replacements.place_of(db, n).session_n
                links_there = replacements.links_of_session(db, session_n)
                yield from _links_of_episode(n, fragment.content, links_there)
                continue
            source_ns = items.numbers_of(db, fragment.source_messages).values()
            for links in replacements.links_of(db, sorted(source_ns)).values():
                for link in links:
                    if replacements.is_same_statement(link.older_text, fragment.content):
                        yield link._replace(
                            older_n=n,
                            older_text=fragment.content,
                            statements=1,
                            older_asked_n=None,
                        )


def doubtful_pairs(db: Connection, *, project_n: int | None) -> list[DoubtfulPair]:
    """Return the pairs of statements that wait for a person, newest first, each once."""
    links = replacements.doubtful_links(db, project_n=project_n, limit=MOST_DOUBTFUL)
    ends = sorted({n for link in links for n in (link.older_n, link.newer_n)})
    ids = items.ids_of(db, ends)
    times = {n: claims[0].at for n, claims in load_claims(db, ends).items() if claims}
    asked = {(ids[link.older_n], link.newer_n) for link in links if link.older_n in times}
    paraphrases = {
        n: one
        for n, one in fragments.by_number(db, ends).items()
        if n not in times and one.kind != "episode" and not one.superseded_by
    }
    times |= {n: clock.to_us(one.created_at) for n, one in paraphrases.items()}

    def is_settled_with_its_message(link: Replacement) -> bool:
        sources = paraphrases[link.older_n].source_messages if link.older_n in paraphrases else ()
        return any((id_, link.newer_n) in asked for id_ in sources)

    return [
        DoubtfulPair(
            StatedText(ids[link.newer_n], link.newer_text, clock.from_us(link.at)),
            StatedText(ids[link.older_n], link.older_text, clock.from_us(times[link.older_n])),
            link.certainty,
        )
        for link in links
        if link.older_n in times and link.newer_n in ids and not is_settled_with_its_message(link)
    ]


def settle_pair(db: Connection, one: str, other: str, decision: Decision) -> Relation | None:
    """Settle a linked pair as a person decides; return its relation now, or None without a link.

    To keep the newer statement means that it replaces the older; all else dismisses the pair. What
    repeats the older statement is settled with it: answers, fragments and episodes. Of fragments
    that tell it in other words, what is dismissed holds again, and what was in doubt is replaced.
    """
    right, wrong = (items.resolve(db, id_).n for id_ in (one, other))
    relation: Relation = "replaces" if decision == "keep" else "dismissed"
    if _settle_all(db, wrong, right, relation):
        return relation
    return "dismissed" if _settle_all(db, right, wrong, "dismissed") else None


def _settle_all(db: Connection, older_n: int, newer_n: int, relation: Relation) -> bool:
    """Settle the links of a pair, and those derived from the same statement."""
    together = {older_n}.union(
        *(
            group
            for group in _derived_items(db, replacements.links_to(db, newer_n))
            if older_n in group
        )
    )
    ids = items.ids_of(db, sorted(together)).values()
    linked = replacements.fragments_linked_to(db, newer_n, ids)
    together |= {n for n, now in linked if relation == "dismissed" or now == "may_replace"}
    settled = [replacements.settle(db, n, newer_n, relation) for n in sorted(together)]
    return any(settled)


def _derived_items(db: Connection, links: Sequence[Replacement]) -> list[set[int]]:
    """Return the older item of each link with those that repeat or were made of its statement."""
    with_echoes = [[link, *_links_of_echoes(db, link)] for link in links]
    made = _links_of_fragments(db, [one for group in with_echoes for one in group])
    return [{one.older_n for link in group for one in (link, *next(made))} for group in with_echoes]


def _relate(pairs: Sequence[Pair], judgements: Sequence[Judgement]) -> Iterator[_Related]:
    """Yield the pairs that are linked, with their relation.

    What replaces something replaces the statement that it most likely does, of people and of
    assistants. Of two that it may replace, one that it has less in common with is doubtful: the
    other is about the same thing, this one perhaps about its neighbour.
    """
    best: dict[tuple[int, str, int], float] = {}
    for pair, judgement in zip(pairs, judgements, strict=True):
        side = _side(pair)
        best[side] = max(best.get(side, 0.0), certainty_of(pair, judgement))
    related = [
        (pair, judgement, relation)
        for pair, judgement in zip(pairs, judgements, strict=True)
        if (
            relation := relation_of(
                pair,
                judgement,
                is_best=certainty_of(pair, judgement) >= NEAR_BEST * best[_side(pair)],
            )
        )
    ]
    certain = [pair for pair, _, relation in related if relation == "replaces"]
    for pair, judgement, relation in related:
        rivals = (one for one in certain if _side(one) == _side(pair) and one is not pair)
        is_neighbour = any(
            one.cosine > pair.cosine and _shared_words(one) > _shared_words(pair) for one in rivals
        )
        yield pair, judgement, "may_replace" if is_neighbour else relation


def _side(pair: Pair) -> tuple[int, str, int]:
    """Return the newer claim of a pair, and who said the older one."""
    return pair.newer.n, pair.newer.text, pair.older.trust


def _shared_words(pair: Pair) -> frozenset[str]:
    older, newer = (instructions.content_words(t) for t in (pair.older.text, pair.newer.whole))
    return older & newer


def _in_order(one: Claim, other: Claim) -> Pair:
    older, newer = sorted((one, other), key=lambda claim: (claim.at, claim.n))
    return Pair(older, newer)


def relation_of(pair: Pair, judgement: Judgement, *, is_best: bool = True) -> Relation | None:
    """Return the link between two claims: certain, for some cases, doubtful, possible, or none.

    What a less trusted origin says about a person's word is never certain, nor what is said about
    something that is less near than another statement.
    """
    if pair.newer.was:
        return "may_replace"
    if pair.newer.trust < UNASKED_TRUST or not is_best:
        return None
    if not (_is_readable(pair) or _has_common_letters(pair)):
        return None
    if _is_certain(pair, judgement):
        return "replaces" if judgement.verdict == "replaces" else "partly"
    # assistants report much; a person's word is put in doubt only by what is sure
    is_weak = pair.newer.trust < pair.older.trust and certainty_of(pair, judgement) < CERTAIN
    if not is_weak and _is_doubtful(pair, judgement):
        return "may_replace"
    return "possible" if _is_possible(pair, judgement) else None


def _is_certain(pair: Pair, judgement: Judgement) -> bool:
    if judgement.verdict not in CHANGES or pair.newer.trust < pair.older.trust:
        return False
    if not _is_readable(pair):
        return False
    if _is_one_session(pair):
        return judgement.certainty >= SURE_CORRECTION and pair.cosine >= ALIKE
    return judgement.certainty >= CERTAIN and pair.cosine >= SAME_SUBJECT


def _is_doubtful(pair: Pair, judgement: Judgement) -> bool:
    if _is_one_session(pair):
        return False
    if _is_stored_together(pair):
        is_change = judgement.verdict in CHANGES and certainty_of(pair, judgement) >= CERTAIN
        return is_change and pair.cosine >= SAME_SUBJECT
    least = DOUBTFUL if _shared_words(pair) else WORDLESS
    if judgement.verdict in CHANGES and certainty_of(pair, judgement) >= least:
        return _is_readable(pair) or pair.cosine >= ALIKE
    if not _is_of_people(pair) or pair.cosine < SAME_SUBJECT:
        return False
    is_same = judgement.verdict == "same" and judgement.certainty >= SURE_SAME
    if judgement.verdict in CHANGES and judgement.certainty < IMPOSSIBLE:
        return False
    older, newer = specific_words(pair.older.text), specific_words(pair.newer.text)
    is_alike = pair.cosine >= (ALIKE if is_rule(pair.older.text) else NEARLY_SAME)
    is_other = is_alike and entities.sets_conflict(older, newer)
    return reverses(pair) or (is_other and not is_same)


def _is_possible(pair: Pair, judgement: Judgement) -> bool:
    is_change = judgement.verdict in CHANGES and judgement.certainty >= POSSIBLE
    return is_change and not _is_one_session(pair)


def _is_stored_together(pair: Pair) -> bool:
    are_kept = pair.older.is_kept and pair.newer.is_kept
    return are_kept and pair.newer.at - pair.older.at < TOGETHER_US


def _is_of_people(pair: Pair) -> bool:
    return min(pair.older.trust, pair.newer.trust) >= TRUST["user"]


def certainty_of(pair: Pair, judgement: Judgement) -> float:
    """Return the probability of a judgement, less if the statements are not much alike."""
    return judgement.certainty * min(1.0, LEAST_ALIKE + pair.cosine)


def _is_readable(pair: Pair) -> bool:
    return is_readable(pair.older.text) and is_readable(pair.newer.text)


def _has_common_letters(pair: Pair) -> bool:
    older, newer = (_runs(text) for text in (pair.older.text, pair.newer.whole))
    return len(older & newer) >= COMMON_LETTERS * max(1, min(len(older), len(newer)))


def _runs(text: str) -> frozenset[str]:
    plain = " ".join(text.lower().split())
    return frozenset(plain[i : i + _RUN_CHARS] for i in range(len(plain) - _RUN_CHARS + 1))


def _is_one_session(pair: Pair) -> bool:
    return bool(pair.older.session) and pair.older.session == pair.newer.session


def _link(pair: Pair, relation: Relation, certainty: float) -> Replacement:
    older, newer = pair.older, pair.newer
    return Replacement(
        older.n, older.text, newer.n, newer.shown, relation,
        min(round(certainty, 4), MODEL_CERTAINTY), newer.at, older.statements, newer.shown_asked_n,
    )  # fmt: skip


def _clearness(link: Replacement) -> int:
    """Return how clear a relation is: what repeats a replaced statement is replaced with it."""
    return ("possible", "may_replace", "partly", "replaces").index(link.relation)


def derive_links(db: Connection, link: Replacement) -> list[Replacement]:
    """Return a link with those of the answers, fragments and episodes that repeat its statement."""
    repeated = [link, *_links_of_echoes(db, link)]
    return [*repeated, *(one for made in _links_of_fragments(db, repeated) for one in made)]


def find_paraphrases(db: Connection, link: Replacement) -> list[Replacement]:
    """Return possible links of the fragments that tell a replaced statement in other words.

    A chat wrote them, of the message that has the statement and perhaps of others; it has to say
    whether the newer statement replaces them, too. Those without a word of the statement are about
    something else that the message says, and what holds no longer needs no verdict.
    """
    older, newer = (replacements.place_of(db, n).id for n in (link.older_n, link.newer_n))
    derived = replacements.derived_fragments(db, [older, newer])
    telling = _telling_words(link.older_text)
    contents = {
        n: content
        for n, content in derived.get(older, {}).items()
        if n not in derived.get(newer, {})
        and telling & _telling_words(content)
        and not replacements.is_same_statement(link.older_text, content)
    }
    possible = link._replace(
        relation="possible", certainty=POSSIBLE, statements=1, older_asked_n=None
    )
    candidates = [
        possible._replace(older_n=n, older_text=contents[n])
        for n in fragments.current_of(db, contents)
    ]
    return [one for one in candidates if not replacements.find_pair(db, one)]


def _links_of_echoes(db: Connection, link: Replacement) -> Iterator[Replacement]:
    """Yield links for an assistant's answer that repeats a statement that was replaced."""
    for reply_n, claims in _reply_claims(db, link.older_n).items():
        for claim in claims:
            repeats = is_echo(claim.text, link.older_text, link.newer_text)
            if repeats and reply_n != link.newer_n:
                yield link._replace(
                    older_n=reply_n,
                    older_text=claim.text,
                    statements=claim.statements,
                    older_asked_n=None,
                )


def _links_of_successors(db: Connection, link: Replacement) -> Iterator[Replacement]:
    """Yield doubtful links between statements of two sessions that replaced the same one.

    One of the two must have replaced it for certain: of two doubts hardly ever a third follows.
    """
    for other in replacements.links_of(db, [link.older_n]).get(link.older_n, ()):
        earlier, later = sorted((link, other), key=lambda one: one.at)
        places = [replacements.place_of(db, one.newer_n) for one in (earlier, later)]
        is_same = other.older_text == replacements.statement_key(link.older_text)
        is_certain = not {"replaces", "partly"}.isdisjoint((link.relation, other.relation))
        if is_same and is_certain and places[0].session_n != places[1].session_n:
            yield later._replace(
                older_n=earlier.newer_n,
                older_text=earlier.newer_text,
                older_asked_n=earlier.newer_asked_n,
                relation="may_replace",
                certainty=min(earlier.certainty, later.certainty, MODEL_CERTAINTY),
                statements=1,
            )


def _links_of_return(db: Connection, pair: Pair, judgement: Judgement) -> Iterator[Replacement]:
    """Yield doubtful links from what replaced a statement to a newer one that says it again."""
    is_same = judgement.verdict == "same" and judgement.certainty >= SURE_SAME
    if not (is_same or (reverses(pair) and _shared_words(pair))):
        return
    for link in replacements.links_of(db, [pair.older.n]).get(pair.older.n, ()):
        is_between = pair.older.at < link.at < pair.newer.at and link.newer_n != pair.newer.n
        if is_between and link.older_text == replacements.statement_key(pair.older.text):
            yield Replacement(
                link.newer_n, link.newer_text, pair.newer.n, pair.newer.shown, "may_replace",
                min(link.certainty, MODEL_CERTAINTY), pair.newer.at,
                newer_asked_n=pair.newer.shown_asked_n, older_asked_n=link.newer_asked_n,
            )  # fmt: skip


def _links_of_fragments(
    db: Connection, links: Sequence[Replacement]
) -> Iterator[list[Replacement]]:
    """Yield for each link those of the fragments that were made of its replaced sentence."""
    places = [replacements.place_of(db, link.older_n) for link in links]
    derived = replacements.derived_fragments(db, [place.id for place in places])
    for link, place in zip(links, places, strict=True):
        made = [
            link._replace(older_n=n, older_text=content, statements=1, older_asked_n=None)
            for n, content in derived.get(place.id, {}).items()
            if replacements.is_same_statement(link.older_text, content)
        ]
        for n, content in replacements.episodes_of(db, place.session_n).items():
            made += _links_of_episode(n, content, [link])
        yield made


def _links_of_episode(n: int, content: str, links: Sequence[Replacement]) -> Iterator[Replacement]:
    """Yield links for an episode that quotes replaced sentences; the rest of it still holds."""
    plain = " ".join(words.split(content))
    for link in links:
        if " ".join(words.split(link.older_text)) in plain:
            yield link._replace(older_n=n, statements=_SEVERAL)


def _load_sound_claims(db: Connection, ns: Sequence[int]) -> dict[int, tuple[Claim, ...]]:
    """Return the claims of items; a damaged one has none, and the others keep theirs."""
    try:
        return load_claims(db, ns)
    except StoreDamaged as error:
        if len(ns) == 1:
            log.warning("damaged item not compared", extra={"error": type(error).__name__})
            return {}
    return {n: claims for one in ns for n, claims in _load_sound_claims(db, [one]).items()}


def _reply_claims(db: Connection, n: int) -> dict[int, tuple[Claim, ...]]:
    """Return the claims of the assistant's answers to a person's message."""
    message = messages.get_messages(db, [n]).get(n)
    if message is None or message.role != "user":
        return {}
    replies = messages.find_answers(db, message.id)
    return load_claims(db, list(items.numbers_of(db, [one.id for one in replies]).values()))


def is_echo(reply: str, older: str, newer: str) -> bool:
    """Return whether an answer repeats a word of a statement that its successor does not have."""
    own = _telling_words(older) - _telling_words(newer)
    return bool(own & _telling_words(reply))


def _telling_words(text: str) -> frozenset[str]:
    return frozenset(
        word for word in words.split(text) if word not in words.STOP_WORDS and len(word) > 1
    )
