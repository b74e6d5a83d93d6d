"""Injection: recorded sessions played again in time order, and what each prompt would be given.

What is given counts as right if it comes from a session that worked on the same files or the same
commit as the session at hand.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import mean

from lore import settings
from lore.context import choosing, wording
from lore.embed import open_embedder
from lore.errors import EvaluationError
from lore.evals.cached import CachedEmbedder
from lore.evals.recordings import Link, Recording, Turn, read_links, read_recordings
from lore.memory import Memory
from lore.records import Fit, NewMessage, Part
from lore.text import digests, tokens

Report = Callable[[int, int], None]

THRESHOLDS = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0)
"""Around the default, which is among them."""

SAMPLE_EVERY = 3
"""Prompts that are shown stand so far apart, so that they are not all of one session."""

PROJECT = "/code/recorded"
"""The sessions name no folder; all are of one repository."""


@dataclass(frozen=True, slots=True)
class Given:
    """One item that a prompt was given: how strong it was, and whether it is right."""

    strength: float
    linked: bool
    closely: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """What one prompt was given at one threshold."""

    half: int
    items: tuple[Given, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What some prompts were given: how many, how much, and how much of it is right."""

    prompts: int
    injected: int
    items: int
    tokens: float
    precision: float
    closely: float

    @classmethod
    def of(cls, answered: Sequence[Answered]) -> Figures:
        """Sum up what prompts were given."""
        items = [item for one in answered for item in one.items]
        costs = [one.tokens for one in answered if one.items]
        return cls(
            prompts=len(answered),
            injected=len(costs),
            items=len(items),
            tokens=mean(costs) if costs else 0.0,
            precision=mean(item.linked for item in items) if items else 0.0,
            closely=mean(item.closely for item in items) if items else 0.0,
        )

    def as_json(self) -> dict[str, float]:
        """Return the figures under the names that programs read."""
        return {
            "injected": self.injected,
            "share": round(self.injected / max(1, self.prompts), 4),
            "items": self.items,
            "tokens": round(self.tokens, 1),
            "precision": round(self.precision, 4),
            "closely": round(self.closely, 4),
        }


@dataclass(slots=True)
class Result:
    """The curve over thresholds, on all prompts and on two halves of the sessions."""

    threshold: float
    prompts: int = 0
    sessions: int = 0
    chance: tuple[float, float] = (0.0, 0.0)
    answered: dict[float, list[Answered]] = field(default_factory=lambda: defaultdict(list))
    samples: list[tuple[str, str]] = field(default_factory=list)
    notice: str = ""

    def figures(self, threshold: float, half: int | None = None) -> Figures:
        """Return the figures at a threshold, of all prompts or of one half."""
        found = self.answered[threshold]
        return Figures.of([one for one in found if half is None or one.half == half])

    def as_json(self) -> dict[str, object]:
        """Return the result under the names that programs read."""
        return {
            "threshold": self.threshold,
            "prompts": self.prompts,
            "sessions": self.sessions,
            "chance": {"linked": round(self.chance[0], 4), "closely": round(self.chance[1], 4)},
            "default": self.figures(self.threshold).as_json(),
            "curve": {
                f"{threshold:g}": {
                    "all": self.figures(threshold).as_json(),
                    "even": self.figures(threshold, 0).as_json(),
                    "odd": self.figures(threshold, 1).as_json(),
                }
                for threshold in sorted(self.answered)
            },
            **({"notice": self.notice} if self.notice else {}),
        }

    def as_table(self) -> str:
        """Return the curve as a table for people."""
        head = (
            f"{'threshold':<11}{'prompts':>8}{'share':>7}{'items':>7}{'tokens':>8}{'linked':>8}"
            f"{'closely':>9}{'even':>7}{'odd':>7}"
        )
        lines = [f"{self.prompts} prompts of {self.sessions} sessions", head, "-" * len(head)]
        for threshold in sorted(self.answered):
            found = self.figures(threshold)
            halves = [self.figures(threshold, half).precision for half in (0, 1)]
            mark = "*" if threshold == self.threshold else ""
            lines.append(
                f"{f'{threshold:g}{mark}':<11}{found.injected:>8}"
                f"{100 * found.injected / max(1, found.prompts):>6.1f}%{found.items:>7}"
                f"{found.tokens:>8.0f}{100 * found.precision:>8.1f}{100 * found.closely:>9.1f}"
                f"{100 * halves[0]:>7.1f}{100 * halves[1]:>7.1f}"
            )
        lines += [
            "linked: from a session with a file or commit in common; closely: with a commit or a"
            " file that few sessions have.",
            f"By chance, of any earlier session: {100 * self.chance[0]:.1f} and"
            f" {100 * self.chance[1]:.1f}. even, odd: linked, for half of the sessions each.",
        ]
        return "\n".join([*lines, self.notice] if self.notice else lines)


def run(
    data: Path,
    *,
    cache: Path | None = None,
    samples: int = 0,
    most_prompts: int = 1_000_000,
    report: Report | None = None,
) -> Result:
    """Play the recorded sessions of a folder again, and judge what each prompt would be given."""
    recordings = read_recordings(data)
    loaded = settings.load().settings
    opened = open_embedder(replace(loaded, embed_threads=0))
    embedder = CachedEmbedder(opened.embedder, cache or _default_cache())
    result = Result(loaded.inject_threshold, notice=opened.notice)
    player = _Player(recordings, read_links(data, recordings), loaded.inject_budget_tokens, result)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="lore-eval-") as scratch,
            Memory.open(home=scratch, embedder=embedder, now=player.now) as memory,
        ):
            player.play(memory, samples, most_prompts, report)
    finally:
        embedder.close()
    return result


def _default_cache() -> Path:
    return Path(tempfile.gettempdir()) / "lore-eval-cache"


class _Player:
    """Sessions that go on side by side, as they once did."""

    def __init__(
        self, recordings: Sequence[Recording], link: Link, budget_tokens: int, result: Result
    ) -> None:
        self._turns = sorted(_said_once(recordings), key=lambda turn: (turn.at, turn.session))
        self._link = link
        self._budget = budget_tokens
        self._result = result
        self._half = {recording.name: place % 2 for place, recording in enumerate(recordings)}
        self._at = self._turns[0].at
        self._pending: dict[str, list[NewMessage]] = {}
        self._spoke: dict[str, datetime] = {}
        self._given: dict[tuple[float, str], tuple[set[str], set[int]]] = defaultdict(
            lambda: (set(), set())
        )
        result.chance = link.chance([recording.name for recording in recordings])

    def now(self) -> datetime:
        """Return the time in the recording."""
        return self._at

    def play(self, memory: Memory, samples: int, most_prompts: int, report: Report | None) -> None:
        """Store what was said, and before each prompt ask what it would be given."""
        sessions: set[str] = set()
        for place, turn in enumerate(self._turns):
            self._at = turn.at
            if turn.role == "user":
                self._catch_up(memory, turn.session)
                fits = memory.find_fits(turn.text, session=turn.session, project=PROJECT)
                self._judge(turn, fits, _names(memory) if fits else {}, samples)
                self._result.prompts += 1
                sessions.add(turn.session)
            self._pending.setdefault(turn.session, []).append(
                NewMessage(turn.role, (Part("text", turn.text),), turn.at)
            )
            self._spoke[turn.session] = turn.at
            if report:
                report(place + 1, len(self._turns))
            if self._result.prompts >= most_prompts:
                break
        self._result.sessions = len(sessions)

    def _catch_up(self, memory: Memory, session: str) -> None:
        """Do what the daemon would have done by now."""
        for name, new in self._pending.items():
            memory.capture(name, new, agent="recorded", project=PROJECT)
        self._pending.clear()
        quiet = timedelta(seconds=memory.settings.curate_idle_s)
        for name, at in list(self._spoke.items()):
            if name != session and self._at - at > quiet:
                memory.distill(name)
                memory.curate(name)
                del self._spoke[name]
        memory.embed_waiting()

    def _judge(self, turn: Turn, fits: Sequence[Fit], names: dict[str, str], samples: int) -> None:
        default = self._result.threshold
        for threshold in sorted({*THRESHOLDS, default}):
            had, had_words = self._given[threshold, turn.session]
            passing = choosing.passing(turn.text, fits, threshold)
            texts = {fit.hit.id: fit.hit.text for fit in passing}
            ids = choosing.fresh(texts, had, had_words)
            fresh = [fit for fit in passing if fit.hit.id in ids]
            short = {fit.hit.id: fit.hit.id[:13] for fit in fresh}
            worded = wording.word_hits(
                [fit.hit for fit in fresh], short, budget_tokens=self._budget
            )
            shown = [fit for fit in fresh if fit.hit.id in worded.ids]
            had |= {*worded.ids}
            had_words |= {digests.of_words(texts[id_]) for id_ in worded.ids}
            items = tuple(self._item(turn, fit, names) for fit in shown)
            half = self._half[turn.session]
            self._result.answered[threshold].append(
                Answered(half, items, tokens.count(worded.text))
            )
            if items and threshold == default and len(self._result.samples) < samples:
                count = sum(bool(one.items) for one in self._result.answered[threshold])
                if count % SAMPLE_EVERY == 1:
                    self._result.samples.append((turn.text, worded.text))

    def _item(self, turn: Turn, fit: Fit, names: dict[str, str]) -> Given:
        source = names.get(fit.hit.session_id, "")
        linked, closely = self._link.between(turn.session, source)
        return Given(choosing.strength(fit), linked, closely)


def _names(memory: Memory) -> dict[str, str]:
    return {session.id: session.external_id for session in memory.sessions(limit=10_000)}


def _said_once(recordings: Sequence[Recording]) -> Iterator[Turn]:
    """Yield all turns; a forked session has a copy of those before it, which is no new talk."""
    ordered = sorted(
        (turn for recording in recordings for turn in recording.turns), key=lambda turn: turn.at
    )
    seen: Counter[tuple[datetime, str, str]] = Counter()
    for turn in ordered:
        seen[turn.at, turn.role, turn.text] += 1
        if seen[turn.at, turn.role, turn.text] == 1:
            yield turn
    if not ordered:
        msg = "The recorded sessions say nothing."
        raise EvaluationError(msg)
