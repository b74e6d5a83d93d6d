"""Injection replay: replay recorded sessions, and score what each real prompt would receive.

An injected item is relevant if it comes from a session that worked on the same files or commit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from statistics import mean

from lore import settings
from lore.context import prompt_text
from lore.errors import EvaluationError
from lore.evals.datasets import (
    RecordedTurn,
    Recording,
    SessionLinks,
    open_scratch_memory,
    read_links,
    read_recordings,
)
from lore.evals.vector_cache import open_cached_embedder
from lore.memory import Memory
from lore.records import NewMessage, Part, PromptCandidate
from lore.text import message_features, tokens

Report = Callable[[int, int], None]

THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Probabilities for the curve; the setting is added to them."""

SAMPLE_EVERY = 3
"""Show every third prompt, so that the samples are of several sessions."""

PROJECT = "/code/recorded"
"""The recordings have no folder; all are of one repository."""


@dataclass(frozen=True, slots=True)
class InjectedItem:
    """Whether one injected item is relevant."""

    linked: bool
    closely: bool


@dataclass(frozen=True, slots=True)
class InjectionResult:
    """The items of one prompt at one threshold."""

    half: int
    items: tuple[InjectedItem, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Number, size and precision of the injected items of some prompts."""

    prompts: int
    injected: int
    items: int
    tokens: float
    precision: float
    closely: float

    @classmethod
    def of(cls, answered: Sequence[InjectionResult]) -> Figures:
        """Summarize the results of prompts."""
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
        """Return the figures as JSON."""
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
    """The curve over thresholds, for all prompts and for two halves of the sessions."""

    threshold: float
    prompts: int = 0
    sessions: int = 0
    chance: tuple[float, float] = (0.0, 0.0)
    answered: dict[float, list[InjectionResult]] = field(default_factory=lambda: defaultdict(list))
    samples: list[tuple[str, str]] = field(default_factory=list)
    notice: str = ""

    def figures(self, threshold: float, half: int | None = None) -> Figures:
        """Return the figures at a threshold, of all prompts or one half."""
        results = self.answered[threshold]
        return Figures.of([one for one in results if half is None or one.half == half])

    def as_json(self) -> dict[str, object]:
        """Return the result as JSON."""
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
        """Return the curve as a table."""
        head = (
            f"{'threshold':<11}{'prompts':>8}{'share':>7}{'items':>7}{'tokens':>8}{'linked':>8}"
            f"{'closely':>9}{'even':>7}{'odd':>7}"
        )
        lines = [f"{self.prompts} prompts of {self.sessions} sessions", head, "-" * len(head)]
        for threshold in sorted(self.answered):
            figures = self.figures(threshold)
            halves = [self.figures(threshold, half).precision for half in (0, 1)]
            mark = "*" if threshold == self.threshold else ""
            lines.append(
                f"{f'{threshold:g}{mark}':<11}{figures.injected:>8}"
                f"{100 * figures.injected / max(1, figures.prompts):>6.1f}%{figures.items:>7}"
                f"{figures.tokens:>8.0f}{100 * figures.precision:>8.1f}"
                f"{100 * figures.closely:>9.1f}{100 * halves[0]:>7.1f}{100 * halves[1]:>7.1f}"
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
    report: Report | None = None,
) -> Result:
    """Replay the recorded sessions of a folder, and score what each prompt would receive."""
    recordings = read_recordings(data)
    loaded = settings.load().settings
    result = Result(loaded.inject_threshold)
    player = _Player(recordings, read_links(data, recordings), loaded.inject_budget_tokens, result)
    with (
        open_cached_embedder(cache) as (embedder, notice),
        open_scratch_memory(embedder, player.now) as memory,
    ):
        result.notice = notice
        player.play(memory, samples, report)
    return result


class _Player:
    """Replay sessions in parallel, in the order of their recorded times."""

    def __init__(
        self,
        recordings: Sequence[Recording],
        link: SessionLinks,
        budget_tokens: int,
        result: Result,
    ) -> None:
        self._turns = sorted(_unique_turns(recordings), key=lambda turn: (turn.at, turn.session))
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

    def play(self, memory: Memory, samples: int, report: Report | None) -> None:
        """Capture messages, and search memory before each prompt."""
        sessions: set[str] = set()
        for place, turn in enumerate(self._turns):
            self._at = turn.at
            if turn.role == "user":
                self._catch_up(memory, turn.session)
                fits = memory.prompts.find_candidates(
                    turn.text, session=turn.session, project=PROJECT
                )
                self._judge(turn, fits, _names(memory) if fits else {}, samples)
                self._result.prompts += 1
                sessions.add(turn.session)
            self._pending.setdefault(turn.session, []).append(
                NewMessage(turn.role, (Part("text", turn.text),), turn.at)
            )
            self._spoke[turn.session] = turn.at
            if report:
                report(place + 1, len(self._turns))
        self._result.sessions = len(sessions)

    def _catch_up(self, memory: Memory, session: str) -> None:
        """Do the work that the daemon would have done by now."""
        for name, new in self._pending.items():
            memory.capture(name, new, agent="recorded", project=PROJECT)
        self._pending.clear()
        quiet = timedelta(seconds=memory.settings.curate_idle_s)
        for name, at in list(self._spoke.items()):
            if name != session and self._at - at > quiet:
                memory.distill(name)
                memory.digest.curate(name)
                del self._spoke[name]
        memory.maintenance.embed_waiting()

    def _judge(
        self,
        turn: RecordedTurn,
        fits: Sequence[PromptCandidate],
        names: dict[str, str],
        samples: int,
    ) -> None:
        default = self._result.threshold
        for threshold in sorted({*THRESHOLDS, default}):
            had, had_words = self._given[threshold, turn.session]
            passing = prompt_text.select_fits(turn.text, fits, threshold)
            texts = {fit.hit.id: fit.hit.text for fit in passing}
            ids = prompt_text.select_unseen(texts, had, had_words)
            fresh = [fit for fit in passing if fit.hit.id in ids]
            short = {fit.hit.id: fit.hit.id[:13] for fit in fresh}
            worded = prompt_text.format_hits(
                [fit.hit for fit in fresh], short, budget_tokens=self._budget
            )
            shown = [fit for fit in fresh if fit.hit.id in worded.ids]
            had |= {*worded.ids}
            had_words |= {message_features.word_fingerprint(texts[id_]) for id_ in worded.ids}
            items = tuple(self._item(turn, fit, names) for fit in shown)
            half = self._half[turn.session]
            self._result.answered[threshold].append(
                InjectionResult(half, items, tokens.count(worded.text))
            )
            if items and threshold == default and len(self._result.samples) < samples:
                count = sum(bool(one.items) for one in self._result.answered[threshold])
                if count % SAMPLE_EVERY == 1:
                    self._result.samples.append((turn.text, worded.text))

    def _item(
        self, turn: RecordedTurn, fit: PromptCandidate, names: dict[str, str]
    ) -> InjectedItem:
        source = names.get(fit.hit.session_id, "")
        linked, closely = self._link.between(turn.session, source)
        return InjectedItem(linked, closely)


def _names(memory: Memory) -> dict[str, str]:
    return {session.id: session.external_id for session in memory.sessions(limit=10_000)}


def _unique_turns(recordings: Sequence[Recording]) -> Iterator[RecordedTurn]:
    """Yield all turns once: a forked session contains copies of earlier ones."""
    ordered = sorted(
        (turn for recording in recordings for turn in recording.turns), key=lambda turn: turn.at
    )
    counts: Counter[tuple[datetime, str, str]] = Counter()
    for turn in ordered:
        counts[turn.at, turn.role, turn.text] += 1
        if counts[turn.at, turn.role, turn.text] == 1:
            yield turn
    if not ordered:
        msg = "The recorded sessions say nothing."
        raise EvaluationError(msg)
