"""Task types: which kind of task a goal describes, and which memory each kind needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal, get_args

from lore.errors import InvalidInput
from lore.records import TASK_TYPES, TaskType
from lore.text import words
from lore.text.regex import compile_lazy

Collection = Literal["episodic", "semantic", "skills", "anti_patterns"]
COLLECTIONS: tuple[Collection, ...] = get_args(Collection)

_URL = compile_lazy(r"https?://\S+")
"""The words of an address are no words of the goal: a pull request is not an issue to fix."""

KEYWORD_SCORE, ACTION_SCORE, PHASE_SCORE = 2, 3, 4
"""A phase says most about a task, a word of its goal least."""

DEFAULT_TYPE: TaskType = "implementation"


@dataclass(frozen=True, slots=True)
class _Signals:
    """What speaks for a task type: words of a goal, names of actions, names of phases."""

    keywords: tuple[str, ...]
    actions: tuple[str, ...]
    phases: tuple[str, ...]


_SIGNALS: Mapping[TaskType, _Signals] = {
    "exploration": _Signals(
        keywords=(
            "explore", "understand", "research", "investigate", "analyze", "discover", "find",
            "what is", "how does", "architecture", "structure", "overview",
        ),
        actions=("read_file", "search", "list_files"),
        phases=("planning", "discovery", "research"),
    ),
    "implementation": _Signals(
        keywords=(
            "implement", "create", "build", "add", "write", "develop", "make", "construct",
            "new feature",
        ),
        actions=("write_file", "create_file", "edit_file"),
        phases=("development", "implementation", "coding"),
    ),
    "debugging": _Signals(
        keywords=(
            "fix", "debug", "error", "bug", "issue", "broken", "failing", "crash", "exception",
            "investigate error",
        ),
        actions=("run_test", "check_logs", "trace"),
        phases=("debugging", "troubleshooting", "fixing"),
    ),
    "review": _Signals(
        keywords=(
            "review", "check", "validate", "verify", "audit", "inspect", "quality", "standards",
            "lint",
        ),
        actions=("diff", "review_pr", "check_style"),
        phases=("review", "qa", "validation"),
    ),
    "refactoring": _Signals(
        keywords=(
            "refactor", "restructure", "reorganize", "clean up", "improve structure", "extract",
            "rename", "move",
        ),
        actions=("rename", "move_file", "extract_function"),
        phases=("refactoring", "cleanup", "optimization"),
    ),
}  # fmt: skip
"""In this order: the first of the types with the highest score wins."""

_TOOLS = {
    "read": "read_file",
    "view": "read_file",
    "grep": "search",
    "glob": "search",
    "ls": "list_files",
    "write": "write_file",
    "edit": "edit_file",
    "multiedit": "edit_file",
    "apply_patch": "edit_file",
}
"""Tools of agents by the name of the action that they do."""

Weights = Mapping[Collection, float]

TASK_WEIGHTS: Mapping[TaskType, Weights] = {
    "exploration": {"episodic": 0.6, "semantic": 0.3, "skills": 0.1, "anti_patterns": 0.0},
    "implementation": {"episodic": 0.15, "semantic": 0.5, "skills": 0.35, "anti_patterns": 0.0},
    "debugging": {"episodic": 0.4, "semantic": 0.2, "skills": 0.0, "anti_patterns": 0.4},
    "review": {"episodic": 0.3, "semantic": 0.5, "skills": 0.0, "anti_patterns": 0.2},
    "refactoring": {"episodic": 0.25, "semantic": 0.45, "skills": 0.3, "anti_patterns": 0.0},
}
PLAIN_WEIGHTS: Weights = {"episodic": 0.3, "semantic": 0.5, "skills": 0.2, "anti_patterns": 0.0}
"""The weights without a task type."""

_SIZES: Mapping[Collection, tuple[float, float]] = {
    "episodic": (5, 0.5),
    "semantic": (5, 0.5),
    "skills": (3, 0.3),
    "anti_patterns": (5, 0.4),
}
"""How many memories of a collection are compared, and the weight at which it is so many."""


def detect_task_type(goal: str, *, action: str = "", phase: str = "") -> TaskType:
    """Return the type of a task by the words of its goal, its action and its phase."""
    scores = score_task_types(goal, action=action, phase=phase)
    best = max(TASK_TYPES, key=lambda one: scores[one])
    return best if scores[best] else DEFAULT_TYPE


def score_task_types(goal: str, *, action: str = "", phase: str = "") -> dict[TaskType, int]:
    """Return how much speaks for each task type.

    Keywords are whole words in any inflection: a 'prefix' is not a 'fix', and 'remove' is not
    'move'. Actions and phases are identifiers, in which a part counts.
    """
    forms = [_forms(word) for word in words.split(_URL.sub(" ", goal))]
    action = action.strip().lower()
    action = _TOOLS.get(action, action)
    phase = phase.strip().lower()
    return {
        task_type: KEYWORD_SCORE * sum(_has(forms, keyword) for keyword in signals.keywords)
        + ACTION_SCORE * sum(name in action for name in signals.actions)
        + PHASE_SCORE * sum(name in phase for name in signals.phases)
        for task_type, signals in _SIGNALS.items()
    }


def weights_of(task_type: TaskType | None) -> Weights:
    """Return the weights of a task type, or those without one."""
    return TASK_WEIGHTS[task_type] if task_type else PLAIN_WEIGHTS


def collection_size(collection: Collection, weight: float) -> int:
    """Return how many memories of a collection with this weight are compared."""
    size, full = _SIZES[collection]
    return ceil(round(size * weight / full, 6))


def parse_task_type(name: str) -> TaskType | None:
    """Return the task type of this name; None for an empty name."""
    if not name:
        return None
    for one in TASK_TYPES:
        if one == name.strip().lower():
            return one
    msg = f"'{name[:60]}' is not a task type."
    raise InvalidInput(msg, hint=f"Task types: {', '.join(TASK_TYPES)}.")


def _has(forms: list[frozenset[str]], keyword: str) -> bool:
    wanted = [_form(word) for word in keyword.split()]
    return any(
        all(form in here for form, here in zip(wanted, forms[place:], strict=False))
        for place in range(len(forms) - len(wanted) + 1)
    )


def _forms(word: str) -> frozenset[str]:
    """Return the forms of a word that a keyword may have; a noun has that of its verb as well."""
    return frozenset((_form(word), *_verbs(word)))


def _verbs(word: str) -> Iterator[str]:
    for ending in ("ation", "ion"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            yield _form(word.removesuffix(ending))


def _form(word: str) -> str:
    """Return the stem of a word, with one last consonant, 'y' for 'i' and in one spelling."""
    stem = words.stem(word)
    if len(stem) > 2 and stem[-1] == stem[-2]:
        stem = stem[:-1]
    if stem.endswith("i"):
        stem = f"{stem[:-1]}y"
    return stem.replace("analys", "analyz").replace("organis", "organiz")
