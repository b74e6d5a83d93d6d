"""Lessons of episodes, found without a model: common approaches, failures with fixes, sequences."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import NamedTuple, get_args

from lore.records import (
    AntiPattern,
    Episode,
    EpisodeError,
    Outcome,
    Pattern,
    Skill,
    SkillError,
    StoredEpisode,
    Task,
)
from lore.tasks import command_steps
from lore.tasks.checkouts import relative_path
from lore.tasks.command_steps import CAUSES, Cause, Purpose
from lore.text import call_text, sentences, words

CLUSTER_FROM = 0.7
DUPLICATE_FROM = 0.9
"""Cosines of the specification: one cluster from the first on, one memory from the second on."""

_FIRST_CONFIDENCE, _GAIN, _MOST_CONFIDENCE = 0.5, 0.15, 0.95


def confidence_of(episodes: int) -> float:
    """Return the confidence in what several episodes show."""
    return min(_FIRST_CONFIDENCE + _GAIN * episodes, _MOST_CONFIDENCE)


@dataclass(frozen=True, slots=True)
class TaskUnit:
    """A task to learn from: one request of a session, or a whole episode with a single one."""

    episode_id: str
    goal: str
    outcome: Outcome
    files: tuple[str, ...]
    errors: tuple[EpisodeError, ...]
    steps: tuple[str, ...]
    """The steps of its commands that succeeded, in the order in which each was last done."""
    first_in_episode: bool = True


@dataclass(frozen=True, slots=True)
class Lesson:
    """A memory that episodes teach; `key` recognizes it when it is learned again."""

    key: str
    content: str
    summary: str
    payload: Pattern | AntiPattern | Skill
    episodes: tuple[str, ...]


def lesson_of(
    payload: Pattern | AntiPattern | Skill, episodes: Sequence[str], *, key: str = ""
) -> Lesson:
    """Return a lesson with the text that says what its payload says."""
    if isinstance(payload, Pattern):
        parts = [payload.pattern, payload.correct_approach]
        if payload.incorrect_approach:
            parts.append(f"Not: {payload.incorrect_approach}")
        content = " ".join(_sentence(text) for text in parts if text)
    elif isinstance(payload, AntiPattern):
        why = f" ({payload.why.rstrip('.')})" if payload.why else ""
        parts = [f"{payload.what_fails.rstrip('.')} fails{why}", payload.prevention]
        content = " ".join(_sentence(text) for text in parts if text)
    else:
        steps = "; ".join(f"{place}. {step}" for place, step in enumerate(payload.steps, 1))
        content = _sentence(f"{payload.name}: {steps}")
    own = key or " ".join(sorted(set(words.split(content))))
    if isinstance(payload, AntiPattern):
        summary = _warning_summary(payload)
    else:
        summary = sentences.summary(content)
    return Lesson(own, content, summary, payload, tuple(episodes))


def _warning_summary(warning: AntiPattern) -> str:
    """Return what fails and what works instead in a line: one is of no use without the other."""
    parts = (f"{warning.what_fails.rstrip('.')} fails", warning.prevention)
    return sentences.one_line(
        " ".join(map(_sentence, filter(None, parts))), sentences.SUMMARY_CHARS
    )


def _sentence(text: str) -> str:
    return text if text.rstrip().endswith((".", "!", "?")) else f"{text.rstrip()}."


def units_of(stored: StoredEpisode) -> list[TaskUnit]:
    """Return the tasks of an episode; steps of commands belong to the episode as a whole."""
    episode = stored.episode
    if episode.titled or not episode.goal:
        tasks: Sequence[Task] = ()
    else:
        tasks = episode.tasks if len(episode.tasks) > 1 else ()
    steps = tuple(command_steps.done_steps(targets(episode)))
    id_ = stored.fragment.id
    if not tasks:
        goal = "" if episode.titled else episode.goal
        return [TaskUnit(id_, goal, episode.outcome, episode.files_changed, episode.errors, steps)]
    return [
        TaskUnit(
            id_, task.goal, task.outcome, task.files_changed, task.errors, steps, not place
        )
        for place, task in enumerate(tasks)
    ]  # fmt: skip


def targets(episode: Episode) -> Iterator[str]:
    """Yield the commands of an episode that succeeded, in order."""
    for action in episode.actions:
        if action.action.lower() in RUN_TOOLS and action.result == "ok":
            yield action.target


RUN_TOOLS = ("bash", "shell", "exec_command", "run_shell_command", "local_shell", "execute_command")
"""The tools of agents that run a command."""

_URL = re.compile(r"https?://\S+")
_PLAN = re.compile(
    r"(?i)^(?:please )?(?:implement|execute|follow|carry out) (?:the|this) (?:following )?"
    r"plan\b[:\s]*"
)
_LABEL = re.compile(r"(?i)^(?:#+\s*)?(?:plan|fix|feat|feature|task|goal|issue|bug|todo)\s*:\s*")
_GOAL_CHARS = 100


def theme(goal: str) -> str:
    """Return what a goal is about, in a line, without how requests usually begin."""
    text = " ".join(_URL.sub("", goal).split())
    for pattern in (_PLAN, _LABEL, _LABEL):
        text = pattern.sub("", text).strip()
    return sentences.one_line(text, _GOAL_CHARS).strip()


_FEWEST_WORDS = 3


def is_specific(goal: str) -> bool:
    """Return whether a goal says enough to be compared: not 'go on', and no command of a client."""
    text = theme(goal)
    return len(_stems(text)) >= _FEWEST_WORDS and len(_own_stems(text)) > 1 and text[0] != "/"


def _stems(text: str) -> set[str]:
    return {words.stem(word) for word in words.split(text) if word not in words.STOP_WORDS}


def _own_stems(text: str) -> set[str]:
    """Return the words that say what a task is about."""
    return _stems(text) - _USUAL_STEMS


_USUAL_STEMS = frozenset(
    words.stem(word)
    for word in (
        "review changes branch fix merge conflicts issue issues pr pull request commit push tests"
        " code files please need check look investigate problem error errors comments plan"
        " implement update make parent origin main master following report continue work task"
        " failing fails broken ci build run running want can you address let know see"
    ).split()
)
"""Words of any request: what a task is about are the others."""


# Anti-patterns


class _Fix(NamedTuple):
    """A failure and what helped, and whether one case is proof enough.

    `key` is the same for the same failure, `prevention` may differ between two cases.
    """

    key: tuple[str, ...]
    what_fails: str
    why: str
    prevention: str
    is_certain: bool = False
    failing: str = ""


@dataclass(slots=True)
class _Failures:
    """The cases of one failure: the goals and episodes in which it was met, and its fixes."""

    goals: set[str] = field(default_factory=set)
    episodes: dict[str, None] = field(default_factory=dict)
    fixes: list[_Fix] = field(default_factory=list)


_MAX_COMMAND_CHARS = 130
_OWN_MISTAKE = re.compile(r"(?i)has not been read|string to replace|modified since|heredoc")


def find_failures(units: Sequence[TaskUnit]) -> list[Lesson]:
    """Return what fails and what works instead, by errors that were resolved.

    A failure of the code under work teaches nothing: only one of a command in its environment
    does. Its cause must be known, unless it was met in two tasks, and the same command must not
    succeed as often. Forks of a session repeat its goals and count once.
    """
    groups: dict[tuple[str, ...], _Failures] = defaultdict(_Failures)
    successes: Counter[str] = Counter()
    for unit in units:
        successes.update(set(unit.steps))
        for error in unit.errors:
            for fix in _fixes_of(error):
                group = groups[fix.key]
                group.goals.add(unit.goal)
                group.episodes[unit.episode_id] = None
                group.fixes.append(fix)
    lessons = []
    for key, group in groups.items():
        is_known = any(fix.is_certain for fix in group.fixes) or len(group.goals) > 1
        works = max(successes[fix.failing] for fix in group.fixes) if group.fixes else 0
        if is_known and works < len(group.goals):
            lessons.append(_failure_lesson(key, group))
    return lessons


def _failure_lesson(key: tuple[str, ...], group: _Failures) -> Lesson:
    counts = Counter(fix.prevention for fix in group.fixes)
    fix = max(
        group.fixes,
        key=lambda one: (counts[one.prevention], bool(one.why), -len(one.prevention)),
    )
    ids = tuple(group.episodes)
    why = f" ({fix.why})" if fix.why else ""
    payload = AntiPattern(
        what_fails=fix.what_fails,
        why=fix.why,
        prevention=fix.prevention,
        source=ids[0],
        confidence=confidence_of(len(group.goals)),
        source_episodes=ids,
    )
    content = f"{fix.what_fails} fails{why}. {fix.prevention}."
    return Lesson(" ".join(key), content, _warning_summary(payload), payload, ids)


_ACTION_KINDS = frozenset(get_args(call_text.ActionKind))
_REPORT_CHARS = 160


def _reported_fix(error: EpisodeError) -> _Fix | None:
    """Return what an agent itself reported with `after_task`: an error and what resolved it.

    An error that is derived from a session is named by the kind of its call.
    """
    if error.command or error.type in _ACTION_KINDS or not error.resolution.strip():
        return None
    what, why, fix = (
        sentences.one_line(text, _REPORT_CHARS).rstrip(". ")
        for text in (error.type, error.message, error.resolution)
    )
    key = ("reported", what.lower(), " ".join(sorted(_stems(why))))
    return _Fix(key, what, why, fix, is_certain=True) if what and why and fix else None


def _fixes_of(error: EpisodeError) -> Iterator[_Fix]:
    if reported := _reported_fix(error):
        yield reported
        return
    failing = command_steps.whole(error.command)
    working = command_steps.whole(error.retry)
    if not failing or not error.resolution or _OWN_MISTAKE.search(error.message):
        return
    cause = command_steps.cause_of(error.message)
    bare, then = command_steps.bare(failing), command_steps.bare(working)
    steps = command_steps.split_steps(bare)
    if not steps or len(failing) > _MAX_COMMAND_CHARS or len(working) > _MAX_COMMAND_CHARS:
        return
    why = CAUSES.get(cause, "")
    is_whole = failing == error.command and working == error.retry
    if working and command_steps.template(bare) == command_steps.template(then):
        directory = command_steps.directory_of(working)
        if cause == "place" and directory and directory != command_steps.directory_of(failing):
            yield _in_directory(steps, directory, why)
        elif is_whole and (step := _setup_step(error, steps)):
            is_known = cause == "dependency" and command_steps.is_setup(step)
            last = steps[-1]
            key = ("setup", command_steps.program_of(last), step)
            yield _Fix(key, f"`{last}`", why, f"Run `{step}` first", is_certain=is_known)
    elif working and _is_replacement(steps, command_steps.split_steps(then), cause):
        fix = _instead(bare, working, cause)
        is_known = cause != "place" or bool(command_steps.directory_of(working))
        yield fix._replace(why=why, is_certain=is_whole and is_known)


def _instead(bare: str, working: str, cause: Cause) -> _Fix:
    """Return the fix of a command that another replaces."""
    then, directory = command_steps.bare(working), command_steps.directory_of(working)
    failing, works = command_steps.template(bare), command_steps.template(then)
    first, _, rest = failing.partition(" ")
    if works == rest:
        what, key = f"`{first} {rest.split()[0]} …`", ("instead", *failing.split()[:2])
        return _Fix(key, what, "", f"Leave out `{first}`: `{then}` works", failing=failing)
    if cause == "command":
        key = ("instead", *failing.split()[:2])
    elif directory:
        key = ("instead", command_steps.purpose_of(failing), directory)
        works = f"cd {directory} && {works}"
    else:
        key = ("instead", failing)
    return _Fix(key, f"`{failing}`", "", f"Use `{works}`", failing=failing)


def _in_directory(steps: Sequence[str], directory: str, why: str) -> _Fix:
    programs = list(dict.fromkeys(command_steps.program_of(step) for step in steps))[:2]
    what = f"Running {command_steps.listed(programs)} outside `{directory}`"
    key = ("directory", programs[0], directory)
    return _Fix(key, what, why, f"Run `cd {directory}` first", is_certain=True)


def _setup_step(error: EpisodeError, failing: Sequence[str]) -> str:
    """Return the command between a failure and the success of the same command, if one helped."""
    for done in error.resolution.split("; "):
        tool, _, target = done.partition(" ")
        if tool.lower() not in RUN_TOOLS:
            return ""
        steps = command_steps.split_steps(target)
        if len(steps) == 1 and steps[0] not in failing and "…" not in target:
            return steps[0]
    return ""


_SUBSTITUTES = ("command", "place", "repository", "dependency", "access")


def _is_replacement(failing: Sequence[str], working: Sequence[str], cause: str) -> bool:
    """Return whether a command does what another was to do, and is not just a part of it."""
    if cause not in _SUBSTITUTES or not working or set(working) <= set(failing):
        return False
    purposes = {command_steps.purpose_of(step) for step in failing} - {""}
    then = {command_steps.purpose_of(step) for step in working} - {""}
    if purposes or then:
        return bool(purposes & then)
    if cause == "command":
        return failing[-1].split()[0] == working[-1].split()[0]
    return command_steps.program_of(failing[-1]) == command_steps.program_of(working[-1])


# Patterns


_MOST_FILES = 5
FEWEST_MEMBERS = 2


def find_pattern(cluster: Sequence[TaskUnit], roots: Sequence[str] = ()) -> Lesson | None:
    """Return the approach that similar tasks have in common; None if they share none.

    At least two of them succeeded, with different goals, and changed the same files.
    """
    worked = _independent([unit for unit in cluster if unit.outcome == "success"])
    if len(worked) < FEWEST_MEMBERS:
        return None
    counts = Counter(name for unit in worked for name in _files(unit, roots))
    least = max(FEWEST_MEMBERS, round(len(worked) * 0.4))
    files = [name for name, count in _ranked(counts) if count >= least][:_MOST_FILES]
    stems = Counter(stem for unit in worked for stem in _stems(theme(unit.goal)))
    common = {stem for stem, count in stems.items() if count >= least}
    is_wording = len(common) >= _FEWEST_WORDS and common <= _USUAL_STEMS
    if not files or is_wording:
        return None  # nothing was done alike, or only the requests are worded alike
    checks = _common_checks(worked, least)
    goals = list(dict.fromkeys(theme(unit.goal) for unit in worked))
    ids = tuple(dict.fromkeys(unit.episode_id for unit in worked))
    approach = f"Change {command_steps.listed(files)}"
    if checks:
        approach += f"; before it counts as done, run {command_steps.listed(checks)}"
    failed = [unit for unit in cluster if unit.outcome == "failure"]
    wrong = f"“{theme(failed[-1].goal)}” failed here" if failed else ""
    payload = Pattern(
        pattern=f"Tasks like “{goals[0]}” change {command_steps.listed(files)}",
        category=_area(files),
        conditions=tuple(goals[:_MOST_CONDITIONS]),
        correct_approach=approach,
        incorrect_approach=wrong,
        confidence=confidence_of(len(worked)),
        source_episodes=ids,
    )
    others = f" (also “{'”, “'.join(goals[1:3])}”)" if len(goals) > 1 else ""
    done = f" Before one counts as done, run {command_steps.listed(checks)}." if checks else ""
    content = f"{payload.pattern}{others}.{done}"
    summary = sentences.summary(payload.pattern)
    return Lesson(f"pattern {' '.join(sorted(files))}", content, summary, payload, ids)


_MOST_CONDITIONS = 5


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return counts, the highest first; equal ones by name, so that every run agrees."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _files(unit: TaskUnit, roots: Sequence[str]) -> list[str]:
    """Return the files that a task changed, without those that change with everything."""
    names = dict.fromkeys(relative_path(path, roots) for path in unit.files)
    return [name for name in names if not _EVERYWHERE.search(name)]


_EVERYWHERE = re.compile(
    r"(?i)(?:^|/)(?:changelog|readme|todo|state|notes?|history|roadmap|license|memory)"
    r"(?:[-_.]\w+)*$|(?:^|/)(?:package|composer)\.json$|[-.]lock(?:\.\w+)?$|(?:^|/)go\.(?:mod|sum)$"
    r"|/(?:tmp|temp|scratchpad|node_modules|dist|build)/|^(?:tmp|temp)/"
)


_TOGETHER, _TOGETHER_SHARE, _MOST_PARTNERS, _LIFT = 4, 0.8, 4, 2.0
"""Two files belong together if this many tasks changed both, this part of those that changed the
first, and this many times more often than the second changes at all."""


def find_cochanges(units: Iterable[TaskUnit], roots: Sequence[str] = ()) -> list[Lesson]:
    """Return which files changed together in several successful tasks with different goals."""
    worked = _independent(
        unit for unit in units if unit.outcome == "success" and 1 < len(unit.files) <= _MOST_TOUCHED
    )
    sets = {unit.episode_id + unit.goal: set(_files(unit, roots)) for unit in worked}
    counts = Counter(name for files in sets.values() for name in files)
    lessons: dict[frozenset[str], Lesson] = {}
    for name, count in _ranked(counts):
        if count < _TOGETHER:
            break
        if _TEST_FILE.search(name):
            continue  # a test follows what it tests
        having = [unit for unit in worked if name in sets[unit.episode_id + unit.goal]]
        beside = Counter(
            other for unit in having for other in sets[unit.episode_id + unit.goal]
            if other != name and not _is_own_test(other, name)
        )  # fmt: skip
        partners = [
            other for other, both in _ranked(beside)[:_MOST_PARTNERS]
            if both >= max(_TOGETHER, _TOGETHER_SHARE * count)
            and both / count >= _LIFT * counts[other] / len(sets)
        ]  # fmt: skip
        key = frozenset((name, *partners))
        if partners and not any(key <= known for known in lessons):
            lessons[key] = _cochange_lesson(name, partners, having, beside)
    return list(lessons.values())[:_MOST_COCHANGES]


_TEST_FILE = re.compile(r"(?i)(?:^|/)tests?/|(?:[._-]|/)(?:tests?|spec|e2e)[._/]|(?:^|/)test_")
_MOST_COCHANGES = 12
"""The files that change most come first: more would be noise in every briefing."""

_MOST_TOUCHED = 15
"""A task that changes more files than this is a sweep."""


def _is_own_test(one: str, other: str) -> bool:
    """Return whether one file is the test of another, which goes without saying."""
    a, b = (PurePosixPath(name).name.split(".")[0].removesuffix("_test") for name in (one, other))
    return a.removeprefix("test_") == b.removeprefix("test_")


def _cochange_lesson(
    name: str, partners: Sequence[str], units: Sequence[TaskUnit], beside: Counter[str]
) -> Lesson:
    both = min(beside[other] for other in partners)
    goals = [theme(unit.goal) for unit in units]
    ids = tuple(dict.fromkeys(unit.episode_id for unit in units))
    listed = command_steps.listed(list(partners))
    payload = Pattern(
        pattern=f"When `{name}` changes, {listed} usually change{'s' if len(partners) == 1 else ''}"
        " too",
        category=_area([name, *partners]),
        conditions=(f"A change of `{name}`", *goals[:2]),
        correct_approach=f"Change {listed} together with `{name}`, or say why not",
        confidence=min(confidence_of(both), both / len(units)),
        source_episodes=ids,
    )
    content = f"{payload.pattern} ({both} of {len(units)} tasks, such as “{goals[-1]}”)."
    summary = sentences.summary(payload.pattern)
    key = f"together {' '.join(sorted((name, *partners)))}"
    return Lesson(key, content, summary, payload, ids)


def _independent(units: Iterable[TaskUnit]) -> list[TaskUnit]:
    """Return one task for each goal: a fork or a repetition shows nothing new."""
    return list({theme(unit.goal): unit for unit in units}.values())


def _common_checks(units: Sequence[TaskUnit], least: int) -> list[str]:
    """Return the commands that tested, linted or built the work of several tasks."""
    purposes: tuple[Purpose, ...] = ("test", "lint", "build")
    checks = []
    for purpose in purposes:
        counts = Counter(
            step
            for unit in units
            for step in unit.steps
            if command_steps.purpose_of(step) == purpose and "<" not in step and "…" not in step
        )
        best = _ranked(counts)
        if best and best[0][1] >= least:
            checks.append(best[0][0])
    return checks


def _area(files: Sequence[str]) -> str:
    """Return the directory that most of the files are in."""
    parents = Counter(str(PurePosixPath(name).parent) for name in files)
    parent = _ranked(parents)[0][0]
    return "" if parent == "." else parent


# Skills


_MOST_SKILLS = 4
_MOST_STEPS = 8
_SAME_SKILL = 0.5
"""Two sequences that share this part of their own steps are one skill."""

_LEAST_SUPPORT = 0.05
"""A sequence that a smaller part of the successful tasks has is a coincidence."""

_SUPPORT_SHARE = 0.25
"""A sequence that ends in a commit is preferred if this part of the tasks ended so."""

_NAMES: Mapping[Purpose, str] = {
    "test": "test", "lint": "lint", "format": "format", "build": "build",
    "generate": "generate code", "install": "install dependencies", "migrate": "migrate",
    "deploy": "deploy", "release": "release", "commit": "commit", "push": "push",
    "pr": "open a pull request",
}  # fmt: skip


def find_skills(units: Iterable[TaskUnit], failures: Sequence[Lesson] = ()) -> list[Lesson]:
    """Return the sequences of commands that succeeded in several tasks, the most used first."""
    worked = _independent(
        unit for unit in units if unit.outcome == "success" and unit.first_in_episode
    )
    sequences = {unit.goal: _skill_steps(unit.steps) for unit in worked}
    listed = [steps for steps in sequences.values() if len(steps) > 1]
    common = {_common_sequence(a, b) for place, a in enumerate(listed) for b in listed[place + 1 :]}
    support = {
        steps: [unit for unit in worked if _contains(sequences[unit.goal], steps)]
        for steps in common
        if _is_skill(steps)
    }
    least = max(FEWEST_MEMBERS, round(_LEAST_SUPPORT * len(listed)))
    chosen = _choose_sequences({
        steps: len(having) for steps, having in support.items() if len(having) >= least
    })
    return [_skill_lesson(steps, support[steps], failures) for steps in chosen[:_MOST_SKILLS]]


def _choose_sequences(support: Mapping[tuple[str, ...], int]) -> list[tuple[str, ...]]:
    """Return the best sequences, those with other steps of their own only.

    The best has most steps of its own in most tasks; committing and pushing is added to it if a
    part of these tasks ended so.
    """
    chosen: list[tuple[str, ...]] = []
    ranked = sorted(
        support, key=lambda steps: (-support[steps] * len(_own_steps(steps)), len(steps), steps)
    )
    for steps in ranked:
        own = _own_steps(steps)
        if any(
            len(own & _own_steps(other)) >= _SAME_SKILL * min(len(own), len(_own_steps(other)))
            for other in chosen
        ):
            continue
        least = max(FEWEST_MEMBERS, round(_SUPPORT_SHARE * support[steps]))
        longer = [
            other for other in support if _own_steps(other) == own and support[other] >= least
        ]
        chosen.append(max(longer, key=lambda other: (len(other), support[other], other)))
    return chosen


def _skill_steps(steps: Sequence[str]) -> tuple[str, ...]:
    """Return what the steps with a purpose are, each where it was done last."""
    order: dict[str, None] = {}
    for step in steps:
        if command_steps.purpose_of(step):
            name = command_steps.identity_of(step)
            order.pop(name, None)
            order[name] = None
    return tuple(order)


def _usual_form(name: str, units: Sequence[TaskUnit]) -> str:
    """Return how tasks write a step most often, preferably without a path or a value."""
    forms = Counter(
        step for unit in units for step in unit.steps if command_steps.identity_of(step) == name
    )
    return max(forms, key=lambda form: (forms[form], "<" not in form, -len(form), form))


_LANDING: frozenset[Purpose] = frozenset(("commit", "push", "pr"))
_SEQUEL: frozenset[Purpose] = frozenset(("generate", "migrate", "deploy", "release"))
"""A single step of these kinds is worth knowing with what follows it."""


def _own_steps(steps: Sequence[str]) -> set[str]:
    """Return the steps without those of every project: add, commit, push."""
    return {step for step in steps if command_steps.purpose_of(step) not in _LANDING}


def _is_skill(steps: Sequence[str]) -> bool:
    """Return whether a sequence is more than what is done in every project."""
    own = {command_steps.purpose_of(step) for step in _own_steps(steps)}
    return len(own) > 1 or (len(steps) > 1 and not own.isdisjoint(_SEQUEL))


def _common_sequence(a: Sequence[str], b: Sequence[str]) -> tuple[str, ...]:
    """Return the longest sequence of steps that both have in this order."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            best = max(table[i][j + 1], table[i + 1][j])
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else best
    steps: list[str] = []
    i, j = len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            steps.append(a[i - 1])
            i, j = i - 1, j - 1
        elif table[i - 1][j] >= table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return tuple(reversed(steps))[:_MOST_STEPS]


def _contains(steps: Sequence[str], sought: Sequence[str]) -> bool:
    rest = iter(steps)
    return all(step in rest for step in sought)


def _skill_lesson(
    names_of_steps: Sequence[str], units: Sequence[TaskUnit], failures: Sequence[Lesson]
) -> Lesson:
    steps = [_usual_form(name, units) for name in names_of_steps]
    purposes = list(dict.fromkeys(command_steps.purpose_of(step) for step in steps))
    names = [_NAMES[purpose] for purpose in purposes if purpose]
    name = (
        ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
    ).capitalize()
    programs = {step.split()[0] for step in steps}
    errors = [
        SkillError(lesson.payload.what_fails, lesson.payload.prevention)
        for lesson in failures
        if isinstance(lesson.payload, AntiPattern)
        and any(f"`{program} " in lesson.payload.what_fails for program in programs)
    ]
    checks = [s for s in steps if command_steps.purpose_of(s) in ("test", "lint", "build")]
    ids = tuple(dict.fromkeys(unit.episode_id for unit in units))
    payload = Skill(
        name=name,
        steps=tuple(f"Run `{step}`" for step in steps),
        description=f"What {len(units)} tasks of this project ended with, such as “"
        f"{theme(units[-1].goal)}”",
        common_errors=tuple(errors[:5]),
        exit_criteria=tuple(f"`{check}` passes" for check in checks),
        source_episodes=ids,
    )
    numbered = "; ".join(f"{place}. `{step}`" for place, step in enumerate(steps, 1))
    content = f"{name}: {numbered}."
    return Lesson(
        f"skill {' '.join(sorted(names_of_steps))}",
        content,
        sentences.summary(content),
        payload,
        ids,
    )


# Clusters


_NAMED = re.compile(r"`([^`]+)`")


def named(content: str) -> frozenset[str]:
    """Return the files and commands that a lesson names."""
    return frozenset(_NAMED.findall(content))


def cluster(vectors: Sequence[Sequence[float]], least: float = CLUSTER_FROM) -> list[list[int]]:
    """Return the places of similar vectors: each is at least this near to the mean of its group."""
    import numpy as np

    groups: list[list[int]] = []
    sums: list[np.ndarray] = []
    for place, raw in enumerate(vectors):
        vector = np.asarray(raw, np.float32)
        size = float(np.linalg.norm(vector))
        if not size:
            continue
        vector = vector / size
        nearness = [float(total @ vector / np.linalg.norm(total)) for total in sums]
        best = int(np.argmax(nearness)) if nearness else -1
        if best >= 0 and nearness[best] >= least:
            groups[best].append(place)
            sums[best] = sums[best] + vector
        else:
            groups.append([place])
            sums.append(vector)
    return groups


def comparable_text(unit: TaskUnit, roots: Sequence[str] = ()) -> str:
    """Return what a task is compared by: what it is about, and the files that it changed."""
    names = [PurePosixPath(name).name for name in _files(unit, roots)[:_MOST_FILES]]
    return f"{theme(unit.goal)}. {', '.join(names)}" if names else theme(unit.goal)


def merged(lessons: Iterable[Lesson]) -> list[Lesson]:
    """Return lessons with different keys; the episodes of the same lesson are united."""
    by_key: dict[str, Lesson] = {}
    for lesson in lessons:
        known = by_key.get(lesson.key)
        by_key[lesson.key] = lesson if known is None else with_evidence(known, lesson.episodes)
    return list(by_key.values())


def with_evidence(lesson: Lesson, episodes: Iterable[str]) -> Lesson:
    """Return a lesson with more episodes and the confidence that they give."""
    ids = tuple(dict.fromkeys((*lesson.episodes, *episodes)))
    payload = replace(lesson.payload, source_episodes=ids)
    if isinstance(payload, Pattern | AntiPattern) and len(ids) > len(lesson.episodes):
        better = max(payload.confidence, confidence_of(len(ids)))
        payload = replace(payload, confidence=better)
    return replace(lesson, payload=payload, episodes=ids)


def learn(
    units: Sequence[TaskUnit],
    vectors: Callable[[Sequence[str]], Sequence[Sequence[float]]],
    roots: Sequence[str] = (),
) -> list[Lesson]:
    """Return what the tasks of one project teach; `vectors` embeds texts."""
    failures = find_failures(units)
    specific = [unit for unit in units if is_specific(unit.goal)]
    patterns: list[Lesson] = []
    if len(specific) >= FEWEST_MEMBERS:
        embedded = vectors([comparable_text(unit, roots) for unit in specific])
        for places in cluster(embedded):
            lesson = find_pattern([specific[place] for place in places], roots)
            patterns += [lesson] if lesson else []
    patterns += find_cochanges(specific, roots)
    return [*merged(patterns), *failures, *find_skills(units, failures)]
