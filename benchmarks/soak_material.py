"""What agents of a soak say and what their models answer: a real session, step by step."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path

SESSION = Path(__file__).parents[2] / "shared" / "bench" / "long-session-cli-nightly.jsonl.gz"
"""A coding session of 353 K tokens; the benchmark is left out where it is missing."""

HEADER = "x-soak"
"""By this one a request tells the upstream what to answer."""

CALLED = re.compile(r"\[tool:(\w+)\] ")
THOUGHT = re.compile(r"^\[reasoning\] [^\n]*\n?")
MOST_CHARS = 6_000
"""Of one result: the longest of this session are read files of 40 KB, which nobody pays twice."""

PROMPT_EVERY = 9
"""So many answers later somebody types again: the real session has 38 prompts to 860 answers."""

PROMPTS = (
    "Go on with the next point.",
    "Does the upgrade command keep the channel that was used last?",
    "Run the tests again and tell me what fails.",
    "Why was the nightly tag chosen instead of a version suffix?",
    "We always pin the version of the release action. Keep it so.",
)


@dataclass(frozen=True)
class Step:
    """What is typed, if anything is; what is answered; and what is called and comes of it."""

    prompt: str
    words: str
    tool: str
    output: str


def load_steps(path: Path = SESSION) -> list[Step]:
    """Return the steps of the session, none where it is missing."""
    if not path.exists():
        return []
    with gzip.open(path) as stream:
        messages = json.loads(stream.readline())["messages"]
    steps: list[Step] = []
    prompt, since = "", 0
    for message in messages:
        text = message["content"]
        if message["role"] == "user":
            prompt = f"{prompt}\n{text}".strip()
            continue
        before, *called = CALLED.split(text, maxsplit=1)
        since = 0 if prompt else since + 1
        if since >= PROMPT_EVERY:
            prompt, since = PROMPTS[len(steps) % len(PROMPTS)], 0
        tool, output = called or ("", "")
        words = THOUGHT.sub("", before).strip() or "Let me look."
        steps.append(Step(prompt, words[:MOST_CHARS], tool, output[:MOST_CHARS]))
        prompt = ""
    return steps
