"""Pasted text: find where a person's message has the words of others.

People hand over mails, reviews, pages and logs with a few words of their own. What such a text
demands is not what the person demands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from lore.text.memory_tags import Span, merge_spans
from lore.text.regex import PatternFile

_re = PatternFile("pasted_text")

Voice = Literal["own", "doubtful", "pasted"]

LONG_PARAGRAPH = 700
"""People type shorter paragraphs: of the messages with a rule in the eight projects that the rule
model was measured on, none has its rule in a longer one."""

_WORDS = r"(?:[^\n:\uff1a;.!?]|(?<=\w)[;.](?=\w))"
"""Words of one clause, also 'tl;dr' and 'README.md'."""

_INTRODUCTION = re.compile(
    rf"(?m)(?:^|(?<=[.!?;])[^\S\n]|(?<=[^\S\n][-–—])[^\S\n])({_WORDS}{{1,200}})(?::(?=\s|$)|\uff1a)"
)
_REQUEST = re.compile(rf"(?m)(?:^|(?<=[.!?;])[^\S\n])({_WORDS}{{3,200}})(?:[.!?]|$)")
_END_OF_LINE = re.compile(r"[ \t\r]*(?:\n|\Z)")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_HEADERS_WITHIN = 400
_SEARCHED_WORDS = 60
"""Words by which a sentence is found in a text that has line breaks and markup between them."""


_WORD = re.compile(r"[^\W_]+")

_LINES_OF_OUTPUT = 3
"""A paragraph of so many lines, half of which look like output, is output as a whole."""


class PastedText(NamedTuple):
    """Where a message has the words of others, for certain and in doubt."""

    certain: tuple[Span, ...]
    doubtful: tuple[Span, ...]
    quotations: tuple[Span, ...]

    def voice(self, start: int, end: int) -> Voice:
        """Return whose words a sentence is.

        Its end decides too: 'Translate: …' may be one sentence. A quotation at the end of a
        person's own sentence does not make it another's.
        """
        if _covers(self.quotations, start) or _covers(self.certain, start, end - 1):
            return "pasted"
        return "doubtful" if _covers(self.doubtful, start, end - 1) else "own"


def _covers(spans: Sequence[Span], *places: int) -> bool:
    return any(start <= place < end for start, end in spans for place in places)


def find_pasted(text: str, *, inline: bool = True) -> PastedText:
    """Return where a message has the words of others.

    Unless `inline`, what follows an introduction in its line is the person's: 'for the log: 48 °C'.
    """
    output = (match.span() for match in _re.output.finditer(text))
    certain = [*_mails(text), *output, *_blocks_of_output(text)]
    blocks = (match.span() for match in _re.block.finditer(text))
    doubtful = [*_long_paragraphs(text), *blocks, *_elements(text)]
    if heading := _re.heading.search(text):
        doubtful.append((heading.start(), len(text)))
    for start in _introduced(text):
        if not (inline or _ends_line(text, start)):
            continue
        end = _block_end(text, start)
        certain.append((start, end))
        doubtful.append((end, len(text)))
    doubtful += ((start, len(text)) for start in _requested(text))
    quotations = (match.span() for match in _re.quotation.finditer(text))
    merged = (tuple(merge_spans(spans)) for spans in (certain, doubtful, quotations))
    return PastedText(*merged)


def leave_out_pasted(text: str) -> str:
    """Return what of a text a person typed for certain."""
    pasted = find_pasted(text, inline=False)
    pieces, at = list[str](), 0
    for start, end in merge_spans([*pasted.certain, *pasted.doubtful]):
        pieces.append(text[at:start])
        at = end
    return "\n".join([*pieces, text[at:]])


def find_voices(text: str, sentences: Sequence[str]) -> list[Voice]:
    """Return whose words the sentences of a text are, which are given in their order.

    A sentence that cannot be found in the text has the voice of the one before it, but is not the
    person's own for certain.
    """
    pasted = find_pasted(text, inline=False)
    voices: list[Voice] = []
    voice: Voice = "own"
    at = 0
    for sentence in sentences:
        place = _find_sentence(text, sentence, at)
        if place:
            at = place[0]
            voice = pasted.voice(*place)
        elif voice == "own" and (pasted.certain or pasted.doubtful):
            voice = "doubtful"
        voices.append(voice)
    return voices


def _find_sentence(text: str, sentence: str, at: int) -> Span | None:
    """Return where a sentence stands in a text from a place on, with or without markup in it."""
    start = text.find(sentence, at)
    if start >= 0:
        return start, start + len(sentence)
    words = _WORD.findall(sentence)[:_SEARCHED_WORDS]
    if not words:
        return None
    match = re.compile(r"[\W_]{1,40}".join(map(re.escape, words))).search(text, at)
    return match.span() if match else None


def is_of_a_document(sentence: str) -> bool:
    """Return whether a sentence asks something of readers, or says what a text or another says."""
    forms = (_re.document_voice, _re.to_be_written, _re.told)
    return any(form.search(sentence) for form in forms)


def _introduced(text: str) -> Iterator[int]:
    """Yield where material begins that a few words before a colon hand over."""
    for introduction in _INTRODUCTION.finditer(text):
        words = introduction[1]
        if not _is_own_rule(words) and _hands_over(words):
            yield introduction.end()


def _hands_over(words: str) -> bool:
    if _re.handover.search(words) or _re.label.search(words) or _re.material.search(words):
        return True
    return bool(_re.reported.search(words)) and not _re.own_report.search(words)


def _requested(text: str) -> Iterator[int]:
    """Yield where material may begin that was announced without a colon, or in another language."""
    for introduction in _INTRODUCTION.finditer(text):
        words = introduction[1]
        if not _is_own_rule(words) and (_re.deictic.search(words) or _re.foreign.search(words)):
            yield introduction.end()
    for request in _REQUEST.finditer(text):
        words = request[1].strip()
        ends_line = _ends_line(text, request.end())
        is_request = _re.text_request.search(words) or (ends_line and _opens(words))
        if is_request and not _is_own_rule(words):
            yield request.end()
    for line in (*_re.header.finditer(text), *_re.speaker.finditer(text)):
        yield line.end()


def _ends_line(text: str, at: int) -> bool:
    return _END_OF_LINE.match(text, at) is not None


def _opens(line: str) -> bool:
    """Return whether a line on its own is about the text below it, or says who wrote that."""
    return bool(_re.points_on.search(line) or _re.said.search(line))


def _is_own_rule(words: str) -> bool:
    return bool(_re.lasting.search(words) or _re.condition.search(words))


def _block_end(text: str, start: int) -> int:
    """Return the end of the first block after a place; blank lines before it do not count."""
    while start < len(text) and text[start].isspace():
        start += 1
    blank = _BLANK_LINE.search(text, start)
    return blank.start() if blank else len(text)


def _mails(text: str) -> Iterator[Span]:
    """Yield forwarded mails, which reach to the end, and letters from greeting to signature."""
    headers = [match.start() for match in _re.header.finditer(text)]
    for first, second in pairwise(headers):
        if second - first <= _HEADERS_WITHIN:
            yield first, len(text)
            break
    if forwarded := _re.forwarded.search(text):
        yield forwarded.start(), len(text)
    greeting = _re.greeting.search(text)
    signature = _re.signature.search(text, greeting.end()) if greeting else None
    if greeting and signature:
        yield greeting.start(), signature.end()


def _long_paragraphs(text: str) -> Iterator[Span]:
    return ((start, end) for start, end in _paragraphs(text) if end - start > LONG_PARAGRAPH)


def _elements(text: str) -> Iterator[Span]:
    """Yield elements of markup that begin on a line of their own, with all that is in them."""
    end = 0
    unclosed: set[str] = set()
    for opening in _re.element.finditer(text):
        tag = opening[1]
        if opening.start() < end or tag in unclosed:
            continue
        closing = text.find(f"</{tag}>", opening.end())
        if closing < 0:
            unclosed.add(tag)
        else:
            end = closing + len(tag) + len("</>")
            yield opening.start(), end


def _blocks_of_output(text: str) -> Iterator[Span]:
    """Yield paragraphs of output: sentences in it are a program's, too."""
    for start, end in _paragraphs(text):
        lines = [line for line in text[start:end].split("\n") if line.strip()]
        if len(lines) < _LINES_OF_OUTPUT:
            continue
        printed = sum(bool(_re.output.match(one) or _re.output_like.match(one)) for one in lines)
        if 2 * printed >= len(lines):
            yield start, end


def _paragraphs(text: str) -> Iterator[Span]:
    start = 0
    for blank in (*_BLANK_LINE.finditer(text), None):
        yield start, blank.start() if blank else len(text)
        start = blank.end() if blank else start
