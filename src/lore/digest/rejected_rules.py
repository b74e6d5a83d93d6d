"""Rejected rules: what says the same in other words is only suggested.

A rule that a person rejected stays rejected when it is said again. Reworded, in a file of
instructions or by another page, it would stand anew: the pair model recognizes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def suggest_reworded(database: Database, open_judge: Callable[[], PairJudge]) -> int:
    """Suggest the rules that reword a rejected one; return how many stood before."""
    with database.read() as db:
        standing, rejected = standing_instructions.rules_to_compare(db)
    if not rejected:
        return 0
    judge = open_judge()
    pairs = [
        (rule, other)
        for rule in standing
        for other in rejected
        if None in (rule.scope, other.scope) or rule.scope == other.scope
    ][:_MAX_PAIRS]
    reworded: set[int] = set()
    for start in range(0, len(pairs), _BATCH_PAIRS):
        reworded |= _find_reworded(judge, pairs[start : start + _BATCH_PAIRS])
    database.write(lambda db: standing_instructions.mark_compared(db, sorted(reworded)))
    return len(reworded)


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
