"""Remedies: what is known about an error that a tool has just met, and what fixed it before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from lore.recall.prompt_hits import find_prompt_hits
from lore.recall.question import parse
from lore.recall.sources import Sources
from lore.records import Fragment, Hit, Remedies, Remedy
from lore.store import fragments, keywords
from lore.store.database import Connection
from lore.store.fragments import FragmentFilter
from lore.store.keywords import SearchScope
from lore.text import words
from lore.text.regex import compile_lazy

_OWN_MISTAKE = compile_lazy(
    r"(?i)string to replace (?:was )?not found|(?:file|path) does not exist|has not been read yet"
    r"|modified since (?:it was )?read|matches of the string to replace"
)
"""Mistakes of an agent in the use of its tools: they have no fix worth remembering."""

_NO_FIX = compile_lazy(
    r"(?:Grep|Glob|Read|LS)\b"
    r"|\w+ (?:\w+=\S+ |cd \S+ && |rtk |sudo )*(?:"
    r"git (?:status|diff|log|show|branch|add|commit|checkout|push|fetch)\b"
    r"|(?:ls|cat|sed -n|head|tail|e?grep|rg|find|echo|pwd|which|wc|jq|ssh|sleep|curl)\b"
    r"|gh (?:pr|run|issue) (?:view|checks|list|diff)\b)"
    r"|(?!.*\bfix)\w+ .*\b(?:tests?|lint|typecheck|tsc|vet|jest|vitest|pytest|build)\b"
)
"""Steps that look at something or check it, and change nothing."""

ALIKE = 0.7
"""Two errors that share this much of their words are the same, with another name or number in
it."""

COVERED = 0.6
"""A fragment about an error has this share of its words."""

FEWEST_WORDS = 3
"""Fewer words, as in 'exit status 1', identify no error."""

MOST_HITS, MOST_REMEDIES = 2, 2
_LOOKED_AT = 60
_ABOUT_ERRORS = ("bug_fix", "anti_pattern")
_OWN = ("user", "assistant", "tool")
"""Origins of an episode whose actions were taken here; one that quotes an error has a tool's."""


def find_remedies(
    sources: Sources,
    db: Connection,
    met: str,
    *,
    project_n: int | None,
    without: Sequence[int],
    now: datetime,
    threshold: float,
) -> Remedies:
    """Return what is known about an error, and what fixed it before.

    The error's text is untrusted tool output: it is compared and never returned. What the assistant
    said and did about it is returned.
    """
    if len(_error_words(met)) < FEWEST_WORDS or _OWN_MISTAKE.search(met):
        return Remedies()
    hits = _find_hits(
        sources, met, project_n=project_n, without=without, now=now, threshold=threshold
    )
    done = _find_resolutions(db, met, project_n=project_n, without=without, now=now)
    return Remedies(tuple(hits), tuple(done))


def _find_hits(
    sources: Sources,
    met: str,
    *,
    project_n: int | None,
    without: Sequence[int],
    now: datetime,
    threshold: float,
) -> list[Hit]:
    """Return fragments that are about the error, and what else answers it with this probability.

    A person's message that only reports the error again fixes nothing.
    """
    fits = find_prompt_hits(sources, met, project_n=project_n, without=without, now=now)
    about = [f for f in fits if f.hit.kind in _ABOUT_ERRORS and f.covered >= COVERED]
    likely = [f for f in fits if f.probability >= threshold and sources.embedder.dimension]
    others = [f for f in likely if f.hit.role != "user" and f.hit.kind != "episode"]
    hits = {f.hit.id: f.hit for f in (*about, *others)}
    return list(hits.values())[:MOST_HITS]


def _find_resolutions(
    db: Connection, met: str, *, project_n: int | None, without: Sequence[int], now: datetime
) -> list[Remedy]:
    """Return what was done about a similar error, the latest first, without duplicates."""
    matches = keywords.search(
        db,
        "fragment_words",
        parse(met, now).match(),
        limit=_LOOKED_AT,
        weights=(1.0, 1.0, 1.0),
        within=SearchScope(project_n, excluded_sessions=without),
    )
    ns = [n for n, _ in matches]
    shown = fragments.filter_visible(db, FragmentFilter(kind="episode", project_n=project_n), ns)
    episodes = fragments.by_number(db, sorted(shown)).values()
    remedies: dict[str, Remedy] = {}
    for episode in sorted(episodes, key=lambda one: one.created_at, reverse=True):
        resolution = next(_resolutions_of(episode, met), "")
        if resolution:
            remedies.setdefault(resolution, Remedy(episode.id, episode.created_at, resolution))
    return list(remedies.values())[:MOST_REMEDIES]


def _resolutions_of(episode: Fragment, met: str) -> Iterator[str]:
    errors = episode.payload.get("errors")
    if episode.origin not in _OWN or not isinstance(errors, list):
        return
    for error in errors:
        if isinstance(error, dict) and _is_same_error(str(error.get("message", "")), met):
            resolution = error.get("resolution")
            if isinstance(resolution, str) and is_fix(resolution):
                yield resolution


def is_fix(resolution: str) -> bool:
    """Return whether something was changed, and not only looked at, checked or tried again."""
    steps = [step for step in resolution.split("; ") if not _NO_FIX.match(step)]
    return bool(resolution) and resolution != "tried again" and bool(steps)


def _is_same_error(one: str, other: str) -> bool:
    a, b = _error_words(one), _error_words(other)
    return bool(a and b) and len(a & b) >= ALIKE * len(a | b)


def _error_words(text: str) -> frozenset[str]:
    return frozenset(word for word in words.split(text) if not word.isdigit())
