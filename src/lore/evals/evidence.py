"""Evidence: whether what answers a question about a session is at hand when it has ended.

It is in the prompt if its message stands there as it was, or if one distillation there names every
specific (number, name in code, path, what is quoted) that both the answer and that message have
and the question has not, at least one, and half of the answer's words besides. It is recalled if
the answer to the question, with its usual budget, shows that message or a line of a log that was
made of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lore.evals.long_talks import Question, Talk
from lore.memory import Memory
from lore.records import Hit
from lore.records.dialogues import Distilled, Plan
from lore.text import words

_SPECIFIC = re.compile(
    r"[\w./:#@%+-]*\d[\w./:#@%+-]*|[\w-]*[/._][\w./-]+|\b[a-z]+[A-Z]\w+|'[^']{3,80}'"
)
_EDGES = ".,:;'\"()"

_LEAST_CHARS = 3
"""A bare digit tells nothing."""

_WORDS = 0.5


@dataclass(frozen=True, slots=True)
class Remembered:
    """A session in a memory: the ids of its messages, and its logs with when each was there."""

    ids: tuple[str, ...]
    logs: tuple[tuple[int, Distilled], ...]

    def known_at(self, entries: int) -> tuple[Distilled, ...]:
        """Return the logs that there are when a prompt of so many entries is made."""
        return tuple(log for since, log in self.logs if since <= entries)


def remember(memory: Memory, talk: Talk) -> Remembered:
    """Capture a session and distil it turn by turn, as would have been done while it went on."""
    ids: list[str] = []
    logs: list[tuple[int, Distilled]] = []
    for number in turn_ends(talk):
        ids += memory.capture(
            talk.name, talk.said[len(ids) : number], agent="replay", project=talk.project
        )
        memory.embed_waiting()
        made = memory.distill(talk.name)
        place = {id_: n for n, id_ in enumerate(ids)}
        since = talk.ends[number - 1]
        for reading in memory.read(made, reinforce=False):
            log = reading.distillation
            if log is not None:
                until = talk.ends[place[log.to_message]]
                logs.append((since, Distilled(log.id, log.text, log.tokens, until, log.generation)))
    memory.curate(talk.name)
    memory.embed_waiting()
    return Remembered(tuple(ids), tuple(logs))


def turn_ends(talk: Talk) -> list[int]:
    """Return before which messages a turn has ended, and the number of all of them."""
    spoken = [n for n, one in enumerate(talk.said) if one.role == "user" and n]
    return [*spoken, len(talk.said)]


def in_prompt(talk: Talk, question: Question, made: Plan) -> bool:
    """Tell whether a prompt holds what answers a question."""
    own = talk.entries_of(question.message)
    if made.start <= own.start:
        entries = [talk.entries[number] for number in own]
        hidden = {b.call_id for e in entries for b in e.blocks if b.kind == "result"}
        if not hidden & made.annotated:
            return True
    return any(_holds(one.text, question, talk) for one in made.prefix)


def _holds(told: str, question: Question, talk: Talk) -> bool:
    """Tell whether a distillation holds what answers a question."""
    from_message = specifics(said_in(talk, question.message)) - specifics(question.text)
    needed = {one for one in specifics(question.answer) & from_message if len(one) >= _LEAST_CHARS}
    answer = {words.stem(word) for word in words.terms(question.answer)}
    common = answer & {words.stem(word) for word in words.split(told)}
    return bool(needed) and needed <= specifics(told) and len(common) >= _WORDS * len(answer)


def said_in(talk: Talk, message: int) -> str:
    """Return the text of a message."""
    return "\n".join(part.text for part in talk.said[message].parts)


def specifics(text: str) -> frozenset[str]:
    """Return what a text names exactly, in small letters."""
    found = (match.group().strip(_EDGES).lower() for match in _SPECIFIC.finditer(text))
    return frozenset(one for one in found if one)


def recalled(memory: Memory, question: Question, ids: Mapping[int, str]) -> bool:
    """Tell whether recall, asked as an agent would ask, shows what answers a question."""
    answer = memory.recall(question.text, log=False)
    return any(_tells(hit, ids[question.message]) for hit in answer.hits)


def _tells(hit: Hit, id_: str) -> bool:
    if hit.type == "message":
        return hit.id == id_
    return hit.type == "distillation" and id_ in hit.sources
