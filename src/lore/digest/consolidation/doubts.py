"""Ask a chat about statements of which the newer may replace the older, and settle them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from lore import clock
from lore.digest import replacement
from lore.digest.claims import load_claims
from lore.digest.consolidation.phase import PhaseRun
from lore.llm.prompt_templates import MAX_FRAGMENT_CHARS
from lore.records import TRUST, UNASKED_TRUST, DatedStatement, Origin, Verdict
from lore.store import consolidation, fragments, items, replacements, reversible_changes
from lore.store.database import Connection
from lore.store.replacements import CHAT_CERTAINTY, Relation, Replacement
from lore.text import sentences

MARK = "doubts"
BATCH = 10
"""Pairs per request: as many as a chat model judges with care."""

MOST_PAIRS = 200
"""Pairs of a cycle; the others wait for the next one."""

_SHOWN_CHARS = 100
_ORIGINS: dict[int, Origin] = {TRUST["user"]: "user", TRUST["assistant"]: "assistant"}


class _Doubt(NamedTuple):
    """A link with its number, and both statements as a chat reads them."""

    n: int
    link: Replacement
    older: DatedStatement
    newer: DatedStatement

    @property
    def is_trusted(self) -> bool:
        """Return whether a person or an assistant said both."""
        return min(self.older.trust, self.newer.trust) >= UNASKED_TRUST


def settle_doubts(run: PhaseRun) -> None:
    """Ask a chat once about each link that the pair model made or thought possible.

    Without a chat they stay as they are: shown with both dates, or not at all. What a tool or a
    repository says may speak to the chat: such a pair has a request of its own, for the price of
    a whole batch.
    """
    if not run.is_paid:
        return
    left = MOST_PAIRS
    while left > 0:  # what is settled may add links of the fragments that tell it in other words
        with run.database.read() as db:
            after = consolidation.get_progress(db, MARK)
            links = replacements.links_to_judge(db, after=after, limit=left)
            doubts = list(_describe(db, links))
        if run.dry_run:
            run.count("to ask", len(doubts))
            return
        if not links:
            return
        unreadable = len(links) - len(doubts)
        left -= unreadable + _ask(run, doubts, last=links[-1][0], most=left)
    with run.database.read() as db:
        after = consolidation.get_progress(db, MARK)
        run.count("pairs waiting", replacements.count_to_judge(db, after=after))


def _ask(run: PhaseRun, doubts: Sequence[_Doubt], *, last: int, most: int) -> int:
    """Ask about the doubts of links up to the `last` one, up to a price in pairs; return it."""
    requests = list(_requests(doubts)) or [[]]
    price = 0
    for place, request in enumerate(requests, 1):
        run.advance(place - 1, len(requests))
        answer = run.context.summarizer.judge([(one.older, one.newer) for one in request])
        verdicts = answer if len(answer) == len(request) else [None] * len(request)
        mark = last if place == len(requests) else request[-1].n
        run.write(partial(_settle, doubts=request, verdicts=verdicts, mark=mark, run=run))
        price += len(request) if all(one.is_trusted for one in request) else BATCH
        if price >= most:
            break
    return price


def _requests(doubts: Sequence[_Doubt]) -> Iterator[list[_Doubt]]:
    """Yield doubts in order, those that a chat is asked about together."""
    for is_trusted, group in groupby(doubts, key=lambda one: one.is_trusted):
        some, size = list(group), BATCH if is_trusted else 1
        yield from (some[start : start + size] for start in range(0, len(some), size))


def _describe(db: Connection, links: Sequence[tuple[int, Replacement]]) -> Iterator[_Doubt]:
    """Yield the links between two claims, and of fragments that tell one in other words.

    Those of what repeats a claim follow its own. What cannot be shown as a whole is left out: what
    replaces its beginning may leave the rest as it is.
    """
    ns = sorted({n for _, link in links for n in (link.older_n, link.newer_n)})
    stated_by = load_claims(db, ns)
    claims = {n: stated[0] for n, stated in stated_by.items() if stated}
    by_number = fragments.by_number(db, ns)

    def describe(n: int, text: str) -> DatedStatement | None:
        claim, fragment = claims.get(n), by_number.get(n)
        texts = [one.text for one in stated_by.get(n, ())]
        texts += [fragment.content] if fragment else []
        whole = replacements.find_whole(text, texts)
        if whole is None or len(whole) > MAX_FRAGMENT_CHARS:
            return None
        if claim is not None:
            origin = fragment.origin if fragment else _ORIGINS.get(claim.trust, "assistant")
            return DatedStatement(whole, clock.from_us(claim.at), origin, claim.trust)
        if fragment is not None:
            return DatedStatement(whole, fragment.created_at, fragment.origin, fragment.trust)
        return None

    for n, link in links:
        is_paraphrase = link.relation == "possible" and link.older_n in by_number
        if link.newer_n not in claims or not (link.older_n in claims or is_paraphrase):
            continue
        older = describe(link.older_n, link.older_text)
        newer = describe(link.newer_n, link.newer_text)
        if older and newer:
            yield _Doubt(n, link, older, newer)


def _settle(
    db: Connection,
    cycle_n: int,
    *,
    doubts: Sequence[_Doubt],
    verdicts: Sequence[Verdict | None],
    mark: int,
    run: PhaseRun,
) -> None:
    """Apply verdicts, and mark the link up to which the chat was asked."""
    recorder = consolidation.step_recorder(cycle_n)
    for doubt, verdict in zip(doubts, verdicts, strict=True):
        relation = _relation(doubt, verdict)
        if relation is None:
            run.count("pairs unjudged")
            continue
        run.count("pairs judged")
        for link in replacement.derive_links(db, doubt.link):
            settled = link._replace(relation=relation, certainty=CHAT_CERTAINTY)
            inserts = relation in ("replaces", "partly")
            reversible_changes.record_settled(db, settled, recorder, inserts=inserts)
        if relation != "dismissed":
            paraphrases = replacement.find_paraphrases(db, doubt.link)
            run.count("paraphrases to judge", replacements.record(db, (), paraphrases))
        if relation == "replaces":
            run.count("statements replaced")
            if line := _report(db, doubt.link):
                run.report_line(line)
    consolidation.set_progress(db, MARK, mark)


def _report(db: Connection, link: Replacement) -> str:
    """Return a line of the report, or nothing if an item was forgotten meanwhile.

    It names the ids of all that it quotes, so that forgetting removes it.
    """
    ids = items.ids_of(db, sorted(link.item_ns))
    if ids.keys() != link.item_ns:
        return ""

    def describe(n: int, asked_n: int | None, text: str) -> str:
        asked = f" (answers {ids[asked_n]})" if asked_n is not None else ""
        return f"{ids[n]}{asked} {sentences.one_line(text, _SHOWN_CHARS)}"

    older = describe(link.older_n, link.older_asked_n, link.older_text)
    newer = describe(link.newer_n, link.newer_asked_n, link.newer_text)
    return f"{newer} replaces {older}"


def _relation(doubt: _Doubt, verdict: Verdict | None) -> Relation | None:
    """Return the relation of a link after a verdict; None if it stays.

    What a less trusted origin says never replaces a person's word, whatever a chat thinks of it.
    """
    is_change = verdict in ("changes", "changes_part")
    if is_change and doubt.newer.trust >= doubt.older.trust:
        return "partly" if verdict == "changes_part" else "replaces"
    if is_change or verdict == "contradicts":
        return "may_replace"
    return "dismissed" if verdict == "agrees" else None
