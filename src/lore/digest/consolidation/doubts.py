"""Ask a chat about statements of which the newer may replace the older, and settle them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from lore import clock
from lore.digest import replacement
from lore.digest.claims import load_claims
from lore.digest.consolidation.phase import PhaseRun
from lore.digest.pair_judge import Claim
from lore.records import TRUST, DatedStatement, Origin, Verdict
from lore.store import consolidation, fragments, items, replacements, reversible_changes
from lore.store.database import Connection
from lore.store.replacements import Relation, Replacement
from lore.text import sentences

MARK = "doubts"
BATCH = 10
"""Pairs per request: as many as a chat model judges with care."""

MOST_PAIRS = 200
"""Pairs of a cycle; the others wait for the next one."""

CERTAINTY = 0.99
"""A chat outweighs the pair model, and a person (1.0) outweighs both."""

_SHOWN_CHARS = 100
_ORIGINS: dict[int, Origin] = {TRUST["user"]: "user", TRUST["assistant"]: "assistant"}


class _Doubt(NamedTuple):
    """A link with its number, and both statements as a chat reads them."""

    n: int
    link: Replacement
    older: DatedStatement
    newer: DatedStatement


def settle_doubts(run: PhaseRun) -> None:
    """Ask a chat once about each link that the pair model made or thought possible.

    Without a chat they stay as they are: shown with both dates, or not at all.
    """
    if not run.is_paid:
        return
    with run.database.read() as db:
        after = consolidation.get_progress(db, MARK)
        links = replacements.links_to_judge(db, after=after, limit=MOST_PAIRS + 1)
        doubts = list(_describe(db, links[:MOST_PAIRS]))
    run.count("pairs waiting", max(0, len(links) - MOST_PAIRS))
    if run.dry_run:
        run.count("to ask", len(doubts))
        return
    for batch in run.batches(doubts, BATCH):
        answer = run.context.summarizer.judge([(one.older, one.newer) for one in batch])
        verdicts = answer if len(answer) == len(batch) else [None] * len(batch)
        run.write(partial(_settle, doubts=batch, verdicts=verdicts, run=run))
    if links:
        last = links[:MOST_PAIRS][-1][0]
        run.write(lambda db, _cycle_n: consolidation.set_progress(db, MARK, last))


def _describe(db: Connection, links: Sequence[tuple[int, Replacement]]) -> Iterator[_Doubt]:
    """Yield the links between two claims; those of what repeats a claim follow its own."""
    ns = sorted({n for _, link in links for n in (link.older_n, link.newer_n)})
    claims = {n: stated[0] for n, stated in load_claims(db, ns).items() if stated}
    origins = {n: one.origin for n, one in fragments.by_number(db, ns).items()}
    for n, link in links:
        older, newer = claims.get(link.older_n), claims.get(link.newer_n)
        if older is not None and newer is not None:
            yield _Doubt(
                n,
                link,
                _statement(older, link.older_text, origins),
                _statement(newer, link.newer_text, origins),
            )


def _statement(claim: Claim, text: str, origins: dict[int, Origin]) -> DatedStatement:
    origin = origins.get(claim.n) or _ORIGINS.get(claim.trust, "assistant")
    return DatedStatement(text, clock.from_us(claim.at), origin, claim.trust)


def _settle(
    db: Connection,
    cycle_n: int,
    *,
    doubts: Sequence[_Doubt],
    verdicts: Sequence[Verdict | None],
    run: PhaseRun,
) -> None:
    """Apply verdicts, and remember how far the chat was asked."""
    recorder = consolidation.step_recorder(cycle_n)
    for doubt, verdict in zip(doubts, verdicts, strict=True):
        relation = _relation(doubt, verdict)
        if relation is None:
            run.count("pairs unjudged")
            continue
        run.count("pairs judged")
        for link in replacement.derive_links(db, doubt.link):
            settled = link._replace(relation=relation, certainty=CERTAINTY)
            inserts = relation in ("replaces", "partly")
            reversible_changes.record_settled(db, settled, recorder, inserts=inserts)
        if relation == "replaces":
            run.count("statements replaced")
            run.report_line(_report(db, doubt.link))
    consolidation.set_progress(db, MARK, doubts[-1].n)


def _report(db: Connection, link: Replacement) -> str:
    """Return a line of the report; it names the ids, so that forgetting removes it."""
    ids = items.ids_of(db, [link.older_n, link.newer_n])
    older, newer = (
        f"{ids.get(n, '')} {sentences.one_line(text, _SHOWN_CHARS)}"
        for n, text in ((link.older_n, link.older_text), (link.newer_n, link.newer_text))
    )
    return f"{newer} replaces {older}"


def _relation(doubt: _Doubt, verdict: Verdict | None) -> Relation | None:
    """Return the relation of a link after a verdict; None if it stays.

    What a less trusted origin says never replaces a person's word, whatever a chat thinks of it.
    """
    if verdict == "changes" and doubt.newer.trust >= doubt.older.trust:
        return "partly" if doubt.link.relation == "partly" else "replaces"
    if verdict in ("changes", "contradicts"):
        return "may_replace"
    return "dismissed" if verdict == "agrees" else None
