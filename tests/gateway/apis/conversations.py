"""Generated and real conversations with tools, which every API format can express."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import strategies as st

BENCH = Path(__file__).parents[3].parent / "shared" / "bench"

LONGEST_RESULT = 3_000
"""Of a real session; what is longer says nothing more about the shape of a prompt."""


@dataclass(frozen=True)
class Use:
    """A call of a tool, and what came of it."""

    id: str
    tool: str
    given: dict[str, object]
    result: str
    failed: bool = False


@dataclass(frozen=True)
class Step:
    """An answer of the assistant: it may think, say something and call tools."""

    text: str = ""
    thought: str = ""
    uses: tuple[Use, ...] = ()
    aside: str = ""
    """What the client's program says behind the results."""


@dataclass(frozen=True)
class Turn:
    """A prompt and the answers to it."""

    prompt: str
    steps: tuple[Step, ...]
    aside: str = ""
    picture: bool = False


@dataclass(frozen=True)
class Talk:
    """A conversation."""

    turns: tuple[Turn, ...]

    def asked(self) -> list[Talk]:
        """Return the talk as it is at each request: it ends with a prompt or with results."""
        stages = []
        for at, turn in enumerate(self.turns):
            for step in range(len(turn.steps) + 1):
                if step and not turn.steps[step - 1].uses:
                    continue
                last = replace(turn, steps=turn.steps[:step])
                stages.append(Talk((*self.turns[:at], last)))
        return stages

    def used(self) -> list[Use]:
        """Return all calls, in order."""
        return [use for turn in self.turns for step in turn.steps for use in step.uses]


@dataclass(frozen=True)
class Form:
    """How a client writes a talk down; none of it changes what is said."""

    as_text: bool = False
    reverse_results: bool = False
    marked: bool = False
    reminds: bool = False
    thinks: bool = True


PLAIN = Form()

words = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=40).map(
    lambda one: f"say {one} end"
)


@st.composite
def talks(draw: st.DrawFn, *, thinking: bool = True) -> Talk:
    number = 0

    def use() -> Use:
        nonlocal number
        number += 1
        given = draw(st.dictionaries(st.sampled_from(["path", "old", "n"]), words, max_size=2))
        tool = draw(st.sampled_from(["Read", "Bash", "Edit"]))
        return Use(f"call_{number:04d}", tool, dict(given), draw(words), draw(st.booleans()))

    def step(*, last: bool) -> Step:
        thought = draw(words) if thinking and draw(st.booleans()) else ""
        uses: list[Use] = [] if last else [use() for _ in range(draw(st.integers(1, 3)))]
        has_aside: bool = bool(uses) and draw(st.booleans())
        said = draw(words) if last or draw(st.booleans()) else ""
        return Step(said, thought, tuple(uses), draw(words) if has_aside else "")

    def turn() -> Turn:
        steps = [step(last=False) for _ in range(draw(st.integers(0, 3)))]
        aside = draw(words) if draw(st.booleans()) else ""
        return Turn(draw(words), (*steps, step(last=True)), aside, draw(st.booleans()))

    return Talk(tuple(turn() for _ in range(draw(st.integers(1, 4)))))


forms = st.builds(Form, st.booleans(), st.booleans(), st.booleans(), st.booleans())


@cache
def real_talks() -> list[Talk]:
    """Read the real sessions that lie beside the project, or skip the test."""
    if not BENCH.exists():
        pytest.skip("the sessions in ../shared/bench are not there")
    talks = []
    with gzip.open(BENCH / "coding-sessions.jsonl.gz", "rt") as lines:
        for line in lines:
            said = [(role, text[:LONGEST_RESULT]) for role, text, _ in json.loads(line)["turns"]]
            talks.append(_talk(said))
    for path in sorted(BENCH.glob("long-session-*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            talks.extend(_talk(_long(json.loads(line)["messages"])) for line in lines)
    return [talk for talk in talks if talk.turns]


def _long(messages: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return a long session, which has the results of tools without the calls."""
    said: list[tuple[str, str]] = []
    for one in messages:
        text = one["content"]
        if text.startswith("[tool:"):
            tool, _, result = text.removeprefix("[tool:").partition("]")
            said += [("tool", tool), ("result", result[:LONGEST_RESULT])]
        elif text.startswith("[reasoning]"):
            said.append(("thought", text))
        else:
            said.append((one["role"], text))
    return said


def _talk(said: list[tuple[str, str]]) -> Talk:
    turns: list[Turn] = []
    steps: list[Step] = []
    open_uses: list[Use] = []
    number = 0
    for role, text in said:
        if not text.strip():
            continue
        if role in ("user", "summary"):
            _close(turns, steps)
            turns.append(Turn(text, ()))
            open_uses = []
        elif not turns:
            continue
        elif role == "thought":
            steps.append(Step(thought=text, text="Thinking."))
        elif role == "assistant":
            steps.append(Step(text=text))
        elif role == "tool":
            number += 1
            name, _, given = text.partition(" ")
            open_uses.append(Use(f"call_{number:05d}", name[:40], {"given": given}, ""))
        elif open_uses:
            use = replace(open_uses.pop(0), result=text)
            if steps and steps[-1].uses and open_uses:
                steps[-1] = replace(steps[-1], uses=(*steps[-1].uses, use))
            else:
                steps.append(Step(uses=(use,)))
    _close(turns, steps)
    return Talk(tuple(turns))


def _close(turns: list[Turn], steps: list[Step]) -> None:
    if turns:
        if not steps or steps[-1].uses:
            steps.append(Step(text="Done."))
        turns[-1] = replace(turns[-1], steps=tuple(steps))
    steps.clear()
