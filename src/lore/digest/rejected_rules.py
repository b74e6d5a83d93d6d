"""Rejected rules: what says the same in other words is only suggested.

A rule that a person rejected stays rejected when it is said again. Reworded, in a file of
instructions or by another page, it would stand anew: the pair model recognizes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from lore.digest.pair_judge import Claim, Pair, PairJudge
from lore.records import TRUST
from lore.store import standing_instructions
from lore.store.database import Database
from lore.store.standing_instructions import ComparedRule

_CERTAIN = 0.5
"""Both orders are judged. Of nine reworded rules one order at least says 'same' with this
certainty; of nine others three do, which are then only suggested."""

_MAX_PAIRS = 2_000
_BATCH_PAIRS = 64


def suggest_reworded(
    database: Database, open_judge: Callable[[], PairJudge], *, max_pairs: int = _MAX_PAIRS
) -> int:
    """Suggest the rules that reword a rejected one; return how many stood before.

    A call compares some of the pairs; the next one continues behind them.
    """
    with database.read() as db:
        standing, rejected = standing_instructions.rules_to_compare(db)
        compared = standing_instructions.last_compared(db)
    if not rejected:
        return 0
    judge = open_judge()
    waiting = _pairs(standing, rejected, after=compared)
    pairs = list(islice(waiting, max_pairs))
    is_last = next(waiting, None) is None
    reworded: set[int] = set()
    for start in range(0, len(pairs), _BATCH_PAIRS):
        reworded |= _find_reworded(judge, pairs[start : start + _BATCH_PAIRS])
    last = None if is_last else (pairs[-1][0].n, pairs[-1][1].n)
    database.write(lambda db: standing_instructions.mark_compared(db, sorted(reworded), last=last))
    return len(reworded)


def _pairs(
    standing: Sequence[ComparedRule],
    rejected: Sequence[ComparedRule],
    after: tuple[int, int] | None,
) -> Iterator[tuple[ComparedRule, ComparedRule]]:
    """Yield the pairs of one project, newest rules first, behind the one that was compared last."""
    for rule in standing:
        for other in rejected:
            if after is not None and (rule.n, other.n) >= after:
                continue
            if None in (rule.scope, other.scope) or rule.scope == other.scope:
                yield rule, other


def _find_reworded(
    judge: PairJudge, pairs: Sequence[tuple[ComparedRule, ComparedRule]]
) -> set[int]:
    both_orders = [
        Pair(_claim(older), _claim(newer))
        for rule, other in pairs
        for older, newer in ((rule, other), (other, rule))
    ]
    judgements = judge.judge(both_orders)
    return {
        rule.n
        for place, (rule, _) in enumerate(pairs)
        for one in judgements[2 * place : 2 * place + 2]
        if one.verdict == "same" and one.certainty >= _CERTAIN
    }


def _claim(rule: ComparedRule) -> Claim:
    return Claim(rule.n, rule.text, "", TRUST["user"], rule.n)
