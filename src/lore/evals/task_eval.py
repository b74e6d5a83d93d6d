"""Evaluation of task memory: replay real sessions, and see whether briefings were used.

Sessions are replayed in the order of their times. At each new task memory is asked before the
agent works; what it gives is compared with what followed in that task (see `task_use`), against
the latest sessions and plain recall, each with as many tokens.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Literal

from lore.errors import EvaluationError
from lore.evals import task_use
from lore.evals.datasets import Raw, open_scratch_memory, read_rows
from lore.evals.task_use import KINDS, Thing
from lore.evals.vector_cache import open_cached_embedder
from lore.memory import Memory
from lore.records import Message, NewMessage, Part, TuningCase
from lore.text import goals, tokens
from lore.text.message_features import is_spoken_part

Report = Callable[[int, int], None]

BUDGET_TOKENS = 600
"""What a briefing may cost."""

GOAL_RATIO = 1.5
COMMON_SHARE = 0.1
"""A name that more than a tenth of a project's tasks use is no decision, and an error that so many
have is none of the project: agents' tools have such."""

_FEWEST_CALLS = 2
"""A task with fewer tool calls uses too little to be judged."""

_DRAWS = 1_000
_RANKINGS = 2
"""Candidates are ranked twice, by words and by meaning; a briefing ranks once."""

PROJECT = "/code/recorded"
Voice = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class TaskStart:
    """A new task as memory sees it: the prompt, its session, and nothing that follows."""

    session: str
    prompt: str
    at: datetime


Arm = Callable[[Memory, TaskStart], Sequence[str]]
"""Returns the texts that a way of remembering gives to a task, best first."""


@dataclass(slots=True)
class RecordedTask:
    """A task of a recording: its start, what followed, and what the agent had in view."""

    start: TaskStart
    place: int
    things: set[Thing]
    in_view: set[Thing] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Given:
    """What one arm gave to one task: tokens, items, and which things were used."""

    session: str
    tokens: int
    items: int
    used_items: int
    used: frozenset[Thing]


@dataclass(slots=True)
class Result:
    """What each arm gave to each task of each project."""

    projects: dict[str, dict[str, list[Given]]] = field(default_factory=dict)
    samples: list[str] = field(default_factory=list)
    notice: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        sets = {name: _figures(arms) for name, arms in self.projects.items()}
        if len(sets) > 1:
            sets["all"] = _figures(self._together())
        return {"goal": GOAL_RATIO, "projects": sets} | (
            {"notice": self.notice} if self.notice else {}
        )

    def _together(self) -> dict[str, list[Given]]:
        arms: dict[str, list[Given]] = defaultdict(list)
        for of_project in self.projects.values():
            for name, answers_of_arm in of_project.items():
                arms[name] += answers_of_arm
        return arms

    def as_table(self) -> str:
        """Return the figures as a table."""
        head = (
            f"{'given before a task':<22}{'tasks':>7}{'tokens':>8}{'used':>7}{'per task':>10}"
            f"{'tasks %':>9}{'items %':>9}   file/command/fix/decision"
        )
        lines: list[str] = []
        for name, figures in self.as_json()["projects"].items():
            lines += [f"{name}", head, "-" * len(head)]
            for arm, row in figures["arms"].items():
                kinds = "/".join(str(row["by_kind"][kind]) for kind in KINDS)
                lines.append(
                    f"{arm:<22}{row['tasks']:>7}{row['tokens']:>8}{row['used']:>7}"
                    f"{row['used_per_task']:>10.3f}{100 * row['tasks_helped']:>9.1f}"
                    f"{100 * row['items_used']:>9.1f}   {kinds}"
                )
            for arm, ratio in figures["ratios"].items():
                low, high = ratio["interval"]
                reached = "reached" if ratio["ratio"] >= GOAL_RATIO else "missed"
                lines.append(
                    f"{ratio['ratio']:.2f} times {arm} (95 % {low:.2f} to {high:.2f});"
                    f" the goal of {GOAL_RATIO} is {reached}"
                )
            lines.append("")
        lines.append(
            "used: files, commands, errors and rare names of the task that the text names, and"
            " neither the prompt nor the session so far. All arms give as many tokens."
        )
        return "\n".join([*lines, self.notice] if self.notice else lines)


def _figures(arms: Mapping[str, Sequence[Given]]) -> dict[str, Any]:
    first = next(iter(arms))
    rows = {}
    for name, answers_of_arm in arms.items():
        items = sum(one.items for one in answers_of_arm)
        kinds = Counter(thing.kind for one in answers_of_arm for thing in one.used)
        rows[name] = {
            "tasks": len(answers_of_arm),
            "tokens": sum(one.tokens for one in answers_of_arm),
            "used": sum(len(one.used) for one in answers_of_arm),
            "used_per_task": round(
                sum(len(one.used) for one in answers_of_arm) / max(1, len(answers_of_arm)), 4
            ),
            "tasks_helped": round(
                sum(bool(one.used) for one in answers_of_arm) / max(1, len(answers_of_arm)), 4
            ),
            "items_used": round(sum(one.used_items for one in answers_of_arm) / max(1, items), 4),
            "by_kind": {kind: kinds[kind] for kind in KINDS},
        }
    ratios = {
        name: _ratio(arms[first], answers_of_arm)
        for name, answers_of_arm in arms.items()
        if name != first
    }
    return {"arms": rows, "ratios": ratios}


def _ratio(ours: Sequence[Given], theirs: Sequence[Given]) -> dict[str, Any]:
    """Return how many times more is used, with an interval by drawing sessions."""
    by_session: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one, other in zip(ours, theirs, strict=True):
        by_session[one.session][0] += len(one.used)
        by_session[one.session][1] += len(other.used)
    pairs, random = list(by_session.values()), Random(7)  # noqa: S311 (no secret)
    draws = sorted(_quotient(random.choices(pairs, k=len(pairs))) for _ in range(_DRAWS))
    low, high = draws[int(0.025 * _DRAWS)], draws[int(0.975 * _DRAWS) - 1]
    return {"ratio": round(_quotient(pairs), 3), "interval": [round(low, 3), round(high, 3)]}


def _quotient(pairs: Sequence[Sequence[int]]) -> float:
    ours, theirs = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    return ours / theirs if theirs else float(ours or 1)


def before_task(memory: Memory, start: TaskStart) -> Sequence[str]:
    """Return the texts of Lore's briefing."""
    tasks: Any = memory.tasks
    briefing = tasks.start(start.prompt, session=start.session, project=PROJECT)
    entries = (
        *briefing.critical_avoid, *briefing.relevant_patterns, *briefing.avoid_these,
        *briefing.applicable_skills,
    )  # fmt: skip
    return list(dict.fromkeys(entry.text for entry in entries))


def recent_sessions(memory: Memory, start: TaskStart) -> Sequence[str]:
    """Return the latest sessions, newest first."""
    own = _session_ids(memory, start)
    stored = memory.sessions.episodes(project=PROJECT, limit=12)
    return [one.fragment.content for one in stored if one.fragment.session_id not in own]


def plain_recall(memory: Memory, start: TaskStart) -> Sequence[str]:
    """Return the hits of a plain recall of the prompt, outside of the session itself."""
    answer = memory.recall(
        start.prompt, project=PROJECT, limit=30, budget_tokens=6 * BUDGET_TOKENS, log=False
    )
    own = _session_ids(memory, start)
    return [hit.text for hit in answer.hits if hit.session_id not in own]


def _session_ids(memory: Memory, start: TaskStart) -> set[str]:
    return {one.id for one in memory.sessions(limit=50) if one.external_id == start.session}


ARMS: Mapping[str, Arm] = {
    "before_task": before_task,
    "recent sessions": recent_sessions,
    "plain recall": plain_recall,
}


def run(
    data: Path,
    *,
    sets: Sequence[str] = (),
    arms: Mapping[str, Arm] = ARMS,
    cache: Path | None = None,
    most_sessions: int = 0,
    samples: int = 0,
    report: Report | None = None,
) -> Result:
    """Replay the coding sessions of a folder, each file as a project of its own."""
    files = _find_files(data, sets)
    result = Result()
    with open_cached_embedder(cache) as (embedder, notice):
        result.notice = notice
        for file in files:
            name = file.name.removesuffix(".jsonl.gz")
            player = _Player(read_sessions(file, most_sessions), arms, samples, result.samples)
            with open_scratch_memory(embedder, player.now) as memory:
                result.projects[name] = player.play(memory, report)
    return result


def _find_files(data: Path, sets: Sequence[str]) -> list[Path]:
    files = sorted(data.glob("coding-sessions*.jsonl.gz"))
    if sets:
        files = [file for file in files if file.name.startswith(tuple(sets))]
    if not files:
        msg = f"There is no coding-sessions*.jsonl.gz in {data}."
        raise EvaluationError(msg, hint="--data names the folder; --sets narrows it.")
    return files


def read_sessions(file: Path, most: int = 0) -> dict[str, list[Message]]:
    """Return the messages of the sessions in a file, oldest session first."""
    try:
        rows = sorted(read_rows(file), key=_first_time)
        seen: set[tuple[datetime, str, str]] = set()
        return {str(raw["sid"]): _messages(raw, seen) for raw in rows[: most or None]}
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        msg = f"{file.name} cannot be read: {error!r}"
        raise EvaluationError(msg) from error


def _first_time(raw: Raw) -> datetime:
    times = [_time(moment) for _, _, moment in raw["turns"] if moment]
    return min([_time(raw["created"]), *times[:1]])


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_INPUTS = {
    "Bash": "command", "PowerShell": "command", "Read": "file_path", "Edit": "file_path",
    "Write": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path",
    "Grep": "pattern", "Glob": "pattern",
}  # fmt: skip
"""Recordings keep the main argument of a call; the agent's own transcript has it by this name."""


def _messages(raw: Raw, seen: set[tuple[datetime, str, str]]) -> list[Message]:
    """Return the messages of a session without those that a forked session copied."""
    at = _time(raw["created"])
    messages: list[Message] = []
    for role, text, moment in raw["turns"]:
        at = max(at, _time(moment)) if moment else at
        if not text.strip() or (at, role, text) in seen:
            continue
        seen.add((at, role, text))
        kind: Voice = "user" if role == "user" else "tool" if role == "result" else "assistant"
        name, _, argument = text.partition(" ")
        if role == "tool":
            if name in _INPUTS:
                argument = json.dumps({_INPUTS[name]: argument})
            part = Part("tool_call", argument, name=name)
        else:
            part = Part("tool_result" if role == "result" else "text", text)
        n = len(messages)
        id_ = f"{raw['sid']} {n}"
        messages.append(Message(id_, str(raw["sid"]), n, kind, (part,), 0, at, kind))
    return messages


def find_tasks(messages: Sequence[Message]) -> Iterator[RecordedTask]:
    """Yield the tasks of a session that are worth judging."""
    earlier = ""
    for part in goals.split_tasks(messages):
        prompt = next((one for one in part if one.role == "user"), None)
        if prompt is None:
            continue
        text = "\n".join(piece.text for piece in prompt.parts if is_spoken_part(piece))
        place = prompt.ordinal
        following = [one for one in part if one.ordinal > place]
        calls = sum(piece.kind == "tool_call" for one in following for piece in one.parts)
        if calls >= _FEWEST_CALLS and goals.parse_request(text):
            things = task_use.find_things(following)
            before = messages[: place + 1]
            earlier = "\n".join(piece.text for one in before for piece in one.parts)
            start = TaskStart(prompt.session_id, text, prompt.created_at)
            yield RecordedTask(start, place, things, task_use.named(things, earlier))


class _Player:
    """Replays the sessions of a project together, in the order of their times."""

    def __init__(
        self,
        sessions: Mapping[str, list[Message]],
        arms: Mapping[str, Arm],
        samples: int,
        shown: list[str],
    ) -> None:
        self._arms = arms
        self._samples = samples
        self._shown = shown
        tasks = [task for messages in sessions.values() for task in find_tasks(messages)]
        rare = task_use.rare_only([task.things for task in tasks], COMMON_SHARE)
        for task, things in zip(tasks, rare, strict=True):
            task.things = things - task.in_view
        self._tasks = {(task.start.session, task.place): task for task in tasks}
        self._turns = sorted(
            (one for messages in sessions.values() for one in messages),
            key=lambda one: (one.created_at, one.session_id, one.ordinal),
        )
        if not self._turns:
            msg = "The recorded sessions say nothing."
            raise EvaluationError(msg)
        self._at = self._turns[0].created_at
        self._pending: dict[str, list[NewMessage]] = {}
        self._spoke: dict[str, datetime] = {}
        self._finished = 0

    def now(self) -> datetime:
        """Return the time in the recording."""
        return self._at

    def play(self, memory: Memory, report: Report | None) -> dict[str, list[Given]]:
        """Capture messages, and ask every arm before each task."""
        answers_of_arm: dict[str, list[Given]] = {name: [] for name in self._arms}
        for place, turn in enumerate(self._turns):
            self._at = turn.created_at
            task = self._tasks.get((turn.session_id, turn.ordinal))
            if task:
                self._catch_up(memory, turn.session_id)
            if task and self._finished:
                for name, one in self._ask(memory, task).items():
                    answers_of_arm[name].append(one)
            new = NewMessage(turn.role, turn.parts, turn.created_at)
            self._pending.setdefault(turn.session_id, []).append(new)
            self._spoke[turn.session_id] = turn.created_at
            if report:
                report(place + 1, len(self._turns))
        return answers_of_arm

    def _catch_up(self, memory: Memory, session: str) -> None:
        """Do the work that the daemon would have done by now."""
        for name, new in self._pending.items():
            memory.capture(name, new, agent="recorded", project=PROJECT)
        self._pending.clear()
        quiet = timedelta(seconds=memory.settings.curate_idle_s)
        ended = [name for name, at in self._spoke.items()
                 if name != session and self._at - at > quiet]  # fmt: skip
        for name in ended:
            memory.distill(name)
            memory.digest.curate(name)
            memory.sessions.episode(name)
            memory.maintenance.embed_waiting()
            learn = getattr(memory.tasks, "learn_from", None)
            if learn:
                learn(name)
            del self._spoke[name]
            self._finished += 1
        memory.maintenance.embed_waiting()

    def _ask(self, memory: Memory, task: RecordedTask) -> dict[str, Given]:
        """Ask all arms; each gives as many tokens as the first does."""
        answers: dict[str, Given] = {}
        texts: dict[str, list[str]] = {}
        budget = BUDGET_TOKENS
        for name, arm in self._arms.items():
            items = clip_items(arm(memory, task.start), budget)
            if not answers:
                budget = sum(map(tokens.count, items))
            used = [task_use.named(task.things, item) for item in items]
            answers[name] = Given(
                task.start.session, sum(map(tokens.count, items)), len(items),
                sum(map(bool, used)), frozenset().union(*used),
            )  # fmt: skip
            texts[name] = items
        if len(self._shown) < self._samples:
            self._shown.append(_format_sample(task, texts, answers))
        return answers


def clip_items(items: Sequence[str], budget: int) -> list[str]:
    """Return items up to a number of tokens; the last one is cut."""
    clipped: list[str] = []
    for item in items:
        left = budget - sum(map(tokens.count, clipped))
        if left <= 0:
            break
        text = item if tokens.count(item) <= left else tokens.clip(item, left)
        if text.strip():
            clipped.append(text)
    return clipped


def _format_sample(
    task: RecordedTask, texts: Mapping[str, Sequence[str]], answers: Mapping[str, Given]
) -> str:
    lines = [f"PROMPT: {task.start.prompt[:400]}"]
    lines.append(
        f"USED LATER: {', '.join(sorted(f'{t.kind} {t.name}' for t in task.things))[:800]}"
    )
    for name, items in texts.items():
        hits = ", ".join(sorted(thing.name for thing in answers[name].used))
        lines.append(f"{name.upper()} ({answers[name].tokens} tokens) named: {hits or '-'}")
        lines += [f"  | {line}" for item in items for line in item.splitlines()]
    return "\n".join(lines)


def collect_cases(
    data: Path,
    *,
    sets: Sequence[str] = (),
    cache: Path | None = None,
    most_sessions: int = 0,
    report: Report | None = None,
) -> list[TuningCase]:
    """Replay the sessions of a folder, and return each task with what could be given to it."""
    cases: list[TuningCase] = []
    with open_cached_embedder(cache) as (embedder, _):
        for file in _find_files(data, sets):
            player = _CaseCollector(read_sessions(file, most_sessions), {}, 0, [])
            with open_scratch_memory(embedder, player.now) as memory:
                player.play(memory, report)
            cases += player.cases
    return cases


class _CaseCollector(_Player):
    """Collects cases instead of asking."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.cases: list[TuningCase] = []

    def _ask(self, memory: Memory, task: RecordedTask) -> dict[str, Given]:
        goal, session = task.start.prompt, task.start.session
        started = time.perf_counter()
        memory.strategies.candidates(
            goal, lambda _id, _text: frozenset(), session=session, project=PROJECT
        )
        took_ms = (time.perf_counter() - started) * 1000 / _RANKINGS
        type_, candidates = memory.strategies.candidates(
            goal,
            lambda _id, text: frozenset(
                f"{thing.kind} {thing.name}" for thing in task_use.named(task.things, text)
            ),
            session=session,
            project=PROJECT,
        )
        self.cases.append(TuningCase(task.start.at, type_, candidates, took_ms, "recorded"))
        return {}
