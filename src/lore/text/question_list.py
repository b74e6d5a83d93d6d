"""Question lists: which numbered questions of an agent the lines of a person's message answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lore.text import statements
from lore.text.regex import compile_lazy

MAX_QUESTION_CHARS = 300
"""Of a longer question with its options only the label and the sentence that asks are taken."""

_NUMBERED = compile_lazy(
    r"^[ ]{0,3}(?:\#{1,6}[ ]+)?(?:\*\*)?(?:Q(?:uestion)? ?)?"
    r"(?P<number>\d{1,2})[.):][ ]*(?P<text>\S.*)$"
)
_END = compile_lazy(r"^(?:\#{1,6}[ ]|-{3,}\s*$|\*\*[^*]+\*\*:?\s*$)")
_READ_CHARS = 20_000


class Answer(NamedTuple):
    """A line of a person's message by its place, without its number, and what it answers."""

    place: int
    text: str
    question: str

    @property
    def whole(self) -> str:
        """Return the question with its answer."""
        return f"{self.question} {self.text}"


def find_answers(message: str, asked: str) -> list[Answer]:
    """Return the numbered lines of a message with the questions of the same numbers.

    `asked` is what the agent said before. Its last numbered list of which at least half asks
    something is the one that is answered, if it has a question for each number.
    """
    lines = _read_numbered(message[:_READ_CHARS])
    if not lines:
        return []
    for questions in reversed(_find_lists(asked[-_READ_CHARS:])):
        if all(number in questions for number, _, _ in lines):
            answered = [(place, text, questions[number]) for number, place, text in lines]
            return [Answer(*one) for one in answered if "?" in one[2]]
    return []


def leave_out(message: str, answers: Sequence[Answer]) -> str:
    """Return a message without the lines of some answers."""
    places = {one.place for one in answers}
    lines = enumerate(message.splitlines())
    return "\n".join(line for place, line in lines if place not in places)


def _read_numbered(text: str) -> list[tuple[int, int, str]]:
    """Return number, place and text of numbered lines; none unless the numbers increase."""
    matches = [(place, _NUMBERED.match(line)) for place, line in enumerate(text.splitlines())]
    lines = [(int(one["number"]), place, one["text"].strip()) for place, one in matches if one]
    numbers = [number for number, _, _ in lines]
    return lines if numbers == sorted(set(numbers)) else []


def _find_lists(text: str) -> list[dict[int, str]]:
    """Return the numbered lists of a text that ask something: the question of each number."""
    lists: list[dict[int, list[str]]] = []
    section: list[str] | None = None
    for line in text.splitlines():
        if match := _NUMBERED.match(line):
            number = int(match["number"])
            if not lists or number <= max(lists[-1]):
                lists.append({})
            section = lists[-1].setdefault(number, [])
            section.append(match["text"])
        elif section is not None and not _ends(section, line):
            section.append(line)
        else:
            section = None
    asking = [{n: _question_of(lines) for n, lines in one.items()} for one in lists]
    return [one for one in asking if 2 * sum("?" in each for each in one.values()) >= len(one)]


def _ends(section: list[str], line: str) -> bool:
    """Return whether a line ends a numbered item: a heading, or a paragraph after what it asks."""
    is_paragraph = bool(line.strip()) and not line.startswith((" ", "\t", "-", "*", "+"))
    has_asked = "?" in section[0] or sum(bool(one.strip()) for one in section) > 1
    return bool(_END.match(line)) or (is_paragraph and has_asked and not section[-1].strip())


def _question_of(lines: list[str]) -> str:
    """Return what a numbered item asks: all of it, or its label and first question."""
    split = statements.split_statements("\n".join(lines))
    texts = [one.text for one in split]
    question = next((one for one in texts if one.endswith("?")), "")
    label = texts[0].rstrip("?:") if texts and texts[0] != question else ""
    if split and split[0].heading:  # bold, on a line of its own
        label = split[0].heading.rstrip("?:*")
        texts = [f"{label}:", *texts]
    short = f"{label}: {question}" if label and question else question or label
    whole = " ".join(texts)
    return next((one for one in (whole, short, question) if len(one) <= MAX_QUESTION_CHARS), "")
