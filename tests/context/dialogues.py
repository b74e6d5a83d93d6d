"""Dialogues for tests: made by hand, made up by hypothesis, and recorded ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from hypothesis import strategies as st

from lore.context.layers import annotate_output
from lore.context.turns import turn_starts
from lore.records.gateway import Block, Dialogue, Distilled, Entry, Plan

SESSIONS = Path(__file__).parents[2].parent / "shared" / "bench" / "coding-sessions.jsonl.gz"
"""Recorded sessions beside the project; not there for everybody."""

LONG = SESSIONS.with_name("long-session-cli-nightly.jsonl.gz")

Item = tuple[str, ...]


def text(words: str, *, times: int = 1) -> Block:
    return Block("text", len(words) * times, words if times == 1 else words * times)


def call(id_: str, tool: str = "bash", chars: int = 40) -> Block:
    return Block("call", chars, call_id=id_, tool=tool)


def result(id_: str, chars: int = 40, *, failed: bool = False) -> Block:
    return Block("result", chars, "x" * min(chars, 200), call_id=id_, failed=failed)


def picture(id_: str) -> Block:
    """Return a result that shows something: it takes room and says nothing."""
    return Block("result", 6_000, call_id=id_)


def reasoning(chars: int = 60) -> Block:
    return Block("reasoning", chars)


def reminder() -> Block:
    words = "<system-reminder>be brief</system-reminder>"
    return Block("text", len(words), words)


def entry(voice: str, *blocks: Block) -> Entry:
    told = "|".join(f"{b.kind}{b.chars}{b.text[:80]}{b.call_id}{b.tool}" for b in blocks)
    key = blake2b(f"{voice}:{told}".encode(), digest_size=8).hexdigest()
    return Entry(voice, blocks, key)  # type: ignore[arg-type]


def dialogue(entries: Sequence[Entry], *, fixed_chars: int = 0, breakpoints: int = 0) -> Dialogue:
    return Dialogue("model", tuple(entries), fixed_chars, breakpoints)


def plain_turn(number: int, *, steps: int = 2, chars: int = 400) -> list[Entry]:
    """Return a turn with calls of tools, about `steps` times `chars` long."""
    found = [entry("user", text(f"question {number}"))]
    for step in range(steps):
        id_ = f"c{number}.{step}"
        found += [entry("assistant", reasoning(), call(id_)), entry("user", result(id_, chars))]
    return [*found, entry("assistant", text(f"answer {number}"))]


def plain_talk(turns: int, *, steps: int = 2, chars: int = 400) -> list[Entry]:
    return [one for n in range(turns) for one in plain_turn(n, steps=steps, chars=chars)]


def rendered(made: Dialogue, plan: Plan) -> list[Item]:
    """Return what a prompt consists of, in order, each piece by what its bytes depend on."""
    items: list[Item] = [("distillation", one.id, one.text) for one in plan.prefix]
    for one in made.entries[plan.start :]:
        shown = tuple(
            annotate_output(block)
            for block in one.blocks
            if block.kind == "result" and block.call_id in plan.annotated
        )
        items.append(("entry", one.key, *shown))
    return items


def condensed(
    entries: Sequence[Entry], *, until: int, each: int = 4, meta_after: int = 0, share: float = 0.1
) -> list[Distilled]:
    """Return distillations of all entries before a number, made at the end of each turn."""
    logs: list[Distilled] = []
    metas: list[Distilled] = []
    ends = [*(start for start in turn_starts(entries) if start < until), until]
    for first, end in zip([0, *ends], ends, strict=False):
        for begin in range(first, end, each):
            last = min(begin + each, end)
            size = max(1, int(sum(one.chars for one in entries[begin:last]) * share))
            logs.append(Distilled(f"log-{last}", f"told until {last}", size, last))
            if meta_after and len(logs) % meta_after == 0:
                told = sum(one.tokens for one in logs) // 2 + 1
                metas.append(Distilled(f"meta-{last}", f"all until {last}", told, last, 1))
    return [*logs, *metas]


def requests(entries: Sequence[Entry]) -> Iterator[int]:
    """Yield with how many entries each request of a session ends: before each answer."""
    for number, one in enumerate(entries):
        if number and one.voice == "assistant":
            yield number


_SIZES = st.sampled_from([5, 40, 200, 900, 1_500, 6_000, 20_000])
_WORDS = st.sampled_from(["continue", "why?", "go on", "merge it", "what else", "it fails again"])


@st.composite
def turns(draw: st.DrawFn, number: int) -> list[Entry]:
    """Return one turn in any of the forms in which clients send them."""
    said = [text(draw(_WORDS), times=draw(st.sampled_from([1, 1, 30])))]
    if draw(st.booleans()):
        said.append(reminder())
    found = [entry("user", *said)]
    if draw(st.integers(0, 5)) == 0:
        found.append(entry("user", text(draw(_WORDS))))
    if draw(st.integers(0, 4)) == 0:
        found.append(entry("system", text("the date has changed")))
    for step in range(draw(st.integers(0, 4))):
        found += draw(_step(f"{number}.{step}"))
    if draw(st.integers(0, 5)):
        found.append(entry("assistant", reasoning(draw(_SIZES)), text(f"answer {number}")))
    return found


@st.composite
def _step(draw: st.DrawFn, name: str) -> list[Entry]:
    """Return calls and their results, which come in any order and in one entry or several."""
    ids = [f"{name}.{n}" for n in range(draw(st.integers(1, 3)))]
    calls = [call(id_, chars=draw(_SIZES)) for id_ in ids]
    thought = [reasoning(draw(_SIZES))] if draw(st.booleans()) else []
    results = [
        picture(id_) if draw(st.integers(0, 7)) == 0 else result(id_, draw(_SIZES))
        for id_ in draw(st.permutations(ids))
    ]
    if draw(st.integers(0, 9)) == 0:
        results.pop()  # interrupted: a call that was never answered
    split = draw(st.integers(0, len(results)))
    groups = [group for group in (results[:split], results[split:]) if group]
    beside = [text("and hurry")] if draw(st.integers(0, 6)) == 0 else []
    answers = [entry("user", *group) for group in groups]
    if answers and beside:
        answers[-1] = entry("user", *answers[-1].blocks, *beside)
    return [entry("assistant", *thought, *calls), *answers]


@st.composite
def talks(draw: st.DrawFn, most_turns: int = 12) -> list[Entry]:
    count = draw(st.integers(1, most_turns))
    return [one for number in range(count) for one in draw(turns(number))]


def recorded_talks() -> Iterator[tuple[str, list[Entry]]]:
    """Yield recorded coding sessions: their tools in the order of their results."""
    with gzip.open(SESSIONS, "rt", encoding="utf-8") as stream:
        for line in stream:
            raw = json.loads(line)
            yield raw["sid"], _entries_of(raw["turns"])


def _entries_of(said: Sequence[Sequence[str]]) -> list[Entry]:
    """Return what a client would have sent: what is typed while a tool runs comes after it."""
    found: list[Entry] = []
    waiting: list[str] = []
    typed: list[Entry] = []
    for number, (role, words, _) in enumerate(said):
        if role == "result":
            id_ = waiting.pop(0) if waiting else ""
            found.append(entry("user", Block("result", len(words), words, id_)))
        elif role == "user" and words:
            typed.append(entry("user", Block("text", len(words), words)))
        if typed and (not waiting or role in {"assistant", "tool"}):
            found += typed
            typed, waiting = [], []
        if role == "tool":
            waiting.append(f"call-{number}")
            tool = words.partition(" ")[0]
            found.append(entry("assistant", Block("call", len(words), words, waiting[-1], tool)))
        elif role == "assistant" and words:
            found.append(entry("assistant", Block("text", len(words), words)))
    return [*found, *typed]
