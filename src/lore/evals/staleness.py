"""Staleness evaluation: does a value that was replaced still show as current?

Every scenario gets a memory of its own: its sessions are captured in the order of the file with
their own dates, and digested as the daemon does it. Then the memory is read through each of the
`CHANNELS`. An *entry* is one hit, citation, item of a prompt or line of a page. `old` is shown as
current if an entry matches it, is not marked as replaced (in full, in part or perhaps), does not
match `new` as well (a text that reports the change), is no question, and no entry that matches
`new` and is not marked stands before it in the same channel. A statement counts as hidden if the
memory, asked for it in its own words, does not return it, or marks it; a mark that names another
sentence of the same message leaves it valid.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lore.embed import Embedder
from lore.errors import EvaluationError, NotFound
from lore.evals.datasets import open_scratch_memory
from lore.evals.vector_cache import open_cached_embedder
from lore.memory import Memory
from lore.records import Hit, NewMessage, Part, Role

Report = Callable[[int, int], None]
Channel = Literal["recall", "ask", "prompt", "start", "page"]

CHANNELS: tuple[Channel, ...] = ("recall", "ask", "prompt", "start", "page")
"""Recall, cited answer, prompt hook, start of a session, `.lore.md`."""

_MARKS = ("replaced on", "replaced in part on", "out of date", "no longer holds")
_SENTENCE_ENDS = re.compile(r"(?<=[.!?。？])\s+|\n")
_ITEM = re.compile(r"^\[[0-9a-f-]{8,36}\]", re.MULTILINE)
_FOLDER = "/code/"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_MANY_HITS, _MANY_TOKENS = 50, 100_000


class Entry(NamedTuple):
    """One shown text, and whether it is marked as replaced."""

    text: str
    is_marked: bool


@dataclass(frozen=True, slots=True)
class Scenario:
    """Sessions in the order of capture, what is asked, and patterns of what must be shown."""

    id: str
    kind: str
    project: str
    sessions: tuple[dict[str, Any], ...]
    question: str
    prompt: str
    old: re.Pattern[str]
    new: re.Pattern[str]
    valid: tuple[re.Pattern[str], ...]
    now: datetime


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one scenario showed: the entries with the old value by channel, and what was missed."""

    id: str
    kind: str
    stale: dict[Channel, str] = field(default_factory=dict)
    shows_new: frozenset[Channel] = frozenset()
    valid: int = 0
    hidden: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Return whether nothing stale is shown, the new value is found, and nothing is hidden."""
        return not self.stale and not self.hidden and "recall" in self.shows_new

    def as_json(self) -> dict[str, object]:
        """Return the outcome as JSON."""
        return {
            "id": self.id,
            "kind": self.kind,
            "passes": self.passes,
            "stale": dict(self.stale),
            "shows_new": [channel for channel in CHANNELS if channel in self.shows_new],
            "valid": self.valid,
            "hidden": list(self.hidden),
            "doubted": list(self.doubted),
        }


@dataclass(frozen=True, slots=True)
class Result:
    """The outcomes of all scenarios."""

    outcomes: tuple[Outcome, ...]
    notice: str = ""

    def totals(self) -> dict[str, int]:
        """Return the figures over all scenarios."""
        return {
            "scenarios": len(self.outcomes),
            "passed": sum(one.passes for one in self.outcomes),
            "old_shown_as_current": sum(bool(one.stale) for one in self.outcomes),
            **{f"old_in_{c}": sum(c in one.stale for one in self.outcomes) for c in CHANNELS},
            "new_in_recall": sum("recall" in one.shows_new for one in self.outcomes),
            "new_in_ask": sum("ask" in one.shows_new for one in self.outcomes),
            "new_in_prompt": sum("prompt" in one.shows_new for one in self.outcomes),
            "valid": sum(one.valid for one in self.outcomes),
            "valid_hidden": sum(len(one.hidden) for one in self.outcomes),
            "valid_doubted": sum(len(one.doubted) for one in self.outcomes),
        }

    def as_json(self) -> dict[str, object]:
        """Return the result as JSON."""
        shown: dict[str, object] = {
            "totals": self.totals(),
            "scenarios": [one.as_json() for one in self.outcomes],
        }
        return shown | ({"notice": self.notice} if self.notice else {})

    def as_table(self, *, totals_only: bool = False) -> str:
        """Return a line for each scenario, and the totals."""
        lines = [] if totals_only else [_line(one) for one in self.outcomes]
        figures = self.totals()
        hidden = 100 * figures["valid_hidden"] / max(1, figures["valid"])
        by_channel = ", ".join(f"{channel} {figures[f'old_in_{channel}']}" for channel in CHANNELS)
        lines += [
            f"scenarios passed whole    {figures['passed']} of {figures['scenarios']}",
            f"old shown as current      {figures['old_shown_as_current']} ({by_channel})",
            f"new shown                 recall {figures['new_in_recall']},"
            f" ask {figures['new_in_ask']}, prompt {figures['new_in_prompt']}",
            f"valid statements hidden   {figures['valid_hidden']} of {figures['valid']}"
            f" ({hidden:.1f} %), shown as perhaps replaced {figures['valid_doubted']}",
        ]
        return "\n".join([*lines, self.notice] if self.notice else lines)


def _line(one: Outcome) -> str:
    state = "pass" if one.passes else "FAIL"
    problems = [f"old in {channel}: {text}" for channel, text in one.stale.items()]
    problems += [f"hidden: {pattern}" for pattern in one.hidden]
    problems += [] if "recall" in one.shows_new else ["new not in recall"]
    return "\n".join([f"{state}  {one.id:<5} {one.kind}", *(f"      {text}" for text in problems)])


def run(data: Path, *, cache: Path | None = None, report: Report | None = None) -> Result:
    """Evaluate the scenarios of a file, or of all files `stale*` in a folder."""
    scenarios = [one for path in _files(data) for one in read_scenarios(path)]
    outcomes = []
    with open_cached_embedder(cache) as (embedder, notice):
        for place, scenario in enumerate(scenarios, 1):
            outcomes.append(run_scenario(scenario, embedder))
            if report:
                report(place, len(scenarios))
    return Result(tuple(outcomes), notice)


def _files(data: Path) -> list[Path]:
    if data.is_file():
        return [data]
    files = sorted([*data.glob("stale*.jsonl"), *data.glob("stale*.jsonl.gz")])
    if not files:
        msg = f"{data} is neither a file with scenarios nor a folder with files stale*.jsonl(.gz)."
        raise EvaluationError(msg)
    return files


def read_scenarios(path: Path) -> list[Scenario]:
    """Parse the scenarios of a file, compressed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as stream:
            return [_parse(json.loads(line)) for line in stream if line.strip()]
    except (OSError, EOFError, ValueError, KeyError, TypeError, re.error) as error:
        msg = f"{path.name} cannot be read: {error!r}"
        raise EvaluationError(msg) from error


def _parse(raw: dict[str, Any]) -> Scenario:
    last = max(_day(one["date"]) for one in raw["sessions"])
    return Scenario(
        id=raw["id"],
        kind=raw["kind"],
        project=raw["project"],
        sessions=tuple(raw["sessions"]),
        question=raw["question"],
        prompt=raw["prompt"],
        old=re.compile(raw["old"], re.IGNORECASE),
        new=re.compile(raw["new"], re.IGNORECASE),
        valid=tuple(re.compile(one, re.IGNORECASE) for one in raw.get("valid", ())),
        now=_day(raw["now"]) if "now" in raw else last + timedelta(days=1),
    )


def _day(date: str) -> datetime:
    return datetime.fromisoformat(date).replace(hour=9, tzinfo=UTC)


def run_scenario(scenario: Scenario, embedder: Embedder) -> Outcome:
    """Fill a memory with a scenario, and read it through every channel."""
    with open_scratch_memory(embedder, lambda: scenario.now) as memory:
        for place, session in enumerate(scenario.sessions):
            _capture(memory, f"{scenario.id}-{place}", session)
        memory.digest.consolidate()
        memory.maintenance.embed_waiting()
        shown = {channel: _CHANNELS[channel](memory, scenario) for channel in CHANNELS}
        states = {one.pattern: _state(memory, scenario, one) for one in scenario.valid}
    stale = {channel: find_stale(scenario, entries) for channel, entries in shown.items()}
    return Outcome(
        scenario.id,
        scenario.kind,
        {channel: entry.text for channel, entry in stale.items() if entry},
        frozenset(
            channel
            for channel, entries in shown.items()
            if any(scenario.new.search(one.text) and not one.is_marked for one in entries)
        ),
        len(scenario.valid),
        tuple(pattern for pattern, state in states.items() if state == "hidden"),
        tuple(pattern for pattern, state in states.items() if state == "doubted"),
    )


def find_stale(scenario: Scenario, entries: Sequence[Entry]) -> Entry | None:
    """Return the entry that shows the old value as current, if there is one."""
    for entry in entries:
        says_new = bool(scenario.new.search(entry.text))
        if not entry.is_marked and not says_new and _asserts(entry.text, scenario.old):
            return entry
        if says_new and not entry.is_marked:
            return None  # whatever follows stands behind the new value
    return None


def _asserts(text: str, pattern: re.Pattern[str]) -> bool:
    """Return whether a text matches outside of questions."""
    if not pattern.search(text):
        return False
    asked = [one for one in _SENTENCE_ENDS.split(text) if one.rstrip().endswith(("?", "？"))]
    return not any(pattern.search(one) for one in asked)


def _capture(memory: Memory, name: str, session: dict[str, Any]) -> None:
    """Capture one session, and do the work that the daemon does when it is idle."""
    at = _day(session["date"])
    messages = list(_messages(session["turns"], at))
    memory.capture(name, messages, agent="claude-code", project=_FOLDER + session["project"])
    memory.maintenance.embed_waiting()
    memory.distill(name)
    memory.digest.curate(name)
    memory.sessions.episode(name)
    memory.maintenance.embed_waiting()


def _messages(turns: Sequence[Sequence[str]], at: datetime) -> Iterator[NewMessage]:
    call = ""
    for place, (role, text) in enumerate(turns):
        when = at + timedelta(minutes=place)
        if role == "tool":
            call = f"call-{place}"
            tool, _, call_input = text.partition(" ")
            part = Part("tool_call", call_input, name=tool.rstrip(":"), call_id=call)
            yield NewMessage("assistant", (part,), when)
        elif role == "result":
            yield NewMessage("tool", (Part("tool_result", text, call_id=call),), when)
        else:
            yield NewMessage(_ROLES[role], (Part("text", text),), when)


def _recalled(memory: Memory, scenario: Scenario) -> list[Entry]:
    answer = memory.recall(scenario.question, project=_FOLDER + scenario.project)
    return [_entry(hit) for hit in (*answer.hits, *answer.standing)]


def _entry(hit: Hit) -> Entry:
    return Entry(hit.text, hit.is_outdated)


def _asked(memory: Memory, scenario: Scenario) -> list[Entry]:
    result = memory.search.ask(scenario.question, project=_FOLDER + scenario.project)
    return [Entry(one.text, one.is_outdated) for one in result.citations]


def _prompted(memory: Memory, scenario: Scenario) -> list[Entry]:
    folder = _FOLDER + scenario.project
    return _items(memory.prompts.for_prompt(scenario.prompt, session="new", project=folder).text)


def _started(memory: Memory, scenario: Scenario) -> list[Entry]:
    return _items(memory.prompts.begin_session("new", project=_FOLDER + scenario.project).text)


def _items(text: str) -> list[Entry]:
    """Return the items of a text for a prompt."""
    starts = [match.start() for match in _ITEM.finditer(text)]
    pieces = (text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=False))
    return [Entry(piece.strip(), any(mark in piece.lower() for mark in _MARKS)) for piece in pieces]


def _page(memory: Memory, scenario: Scenario) -> list[Entry]:
    try:
        page = memory.knowledge.plan_share(_FOLDER + scenario.project, Path("absent/.lore.md"))
    except NotFound:
        return []
    return [Entry(line, is_marked=False) for line in page.text.splitlines() if line.strip()]


_CHANNELS: dict[Channel, Callable[[Memory, Scenario], list[Entry]]] = {
    "recall": _recalled,
    "ask": _asked,
    "prompt": _prompted,
    "start": _started,
    "page": _page,
}


def _state(
    memory: Memory, scenario: Scenario, valid: re.Pattern[str]
) -> Literal["shown", "doubted", "hidden"]:
    """Return how the first turn that matches is shown when the memory is asked for its words."""
    turn = next(
        (
            text
            for session in scenario.sessions
            if session["project"] == scenario.project
            for role, text in session["turns"]
            if role in ("user", "assistant") and valid.search(text)
        ),
        None,
    )
    if turn is None:
        msg = f"No turn of scenario {scenario.id} matches {valid.pattern!r}."
        raise EvaluationError(msg)
    answer = memory.recall(
        turn,
        project=_FOLDER + scenario.project,
        limit=_MANY_HITS,
        budget_tokens=_MANY_TOKENS,
        log=False,
    )
    hits = [
        hit
        for hit in (*answer.hits, *answer.standing)
        if valid.search(f"{hit.question} {hit.text}")
    ]
    hits = [hit for hit in hits if not hit.is_outdated or _marks_other(hit, valid)]
    if not hits:
        return "hidden"
    doubted = hits[0].replaced is not None and not _marks_other(hits[0], valid)
    return "doubted" if doubted else "shown"


def _marks_other(hit: Hit, valid: re.Pattern[str]) -> bool:
    """Return whether the mark of a hit names a sentence that is not the one looked for."""
    what = hit.replaced.what if hit.replaced else ""
    return bool(what) and not valid.search(what)
