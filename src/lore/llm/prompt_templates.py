"""The prompts for chat models: versioned templates, with untrusted text between boundary lines.

The texts are in `lore/data/prompts`, each with what is the same in every request, and below
`--- user` with what is not.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import zip_longest

from lore.records import (
    DatedStatement,
    Fragment,
    Hit,
    JudgedPair,
    Log,
    LogLine,
    MessageText,
    Segment,
)
from lore.text import memory_tags, words
from lore.text.sentences import one_line

Boundary = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One versioned prompt; every change of its words increases the version."""

    name: str
    version: int
    system: str
    template: str = field(repr=False)

    @property
    def label(self) -> str:
        """Return the name with the version."""
        return f"{self.name}/{self.version}"


def _read(file: str) -> str:
    return (resources.files("lore") / "data" / "prompts" / f"{file}.txt").read_text("utf-8")


RECORD_NOTICE = _read("notice")
"""The part of every prompt about the record."""


def _load(name: str, version: int) -> Prompt:
    system, template = _read(f"{name}-{version}").split("--- user\n")
    return Prompt(name, version, system.replace("$notice\n", RECORD_NOTICE), template)


OBSERVE = _load("observe", 1)
CONDENSE = _load("condense", 2)
EXTRACT = _load("extract", 4)
OVERVIEW = _load("overview", 1)
REFLECT = _load("reflect", 1)
JUDGE = _load("judge", 3)
ASK = _load("ask", 2)
GENERALIZE = _load("generalize", 1)
CHECK = _load("check", 1)
PROMPTS = (OBSERVE, CONDENSE, EXTRACT, OVERVIEW, REFLECT, JUDGE, ASK, GENERALIZE, CHECK)


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt that is ready to be sent."""

    label: str
    system: str
    user: str


def new_boundary() -> str:
    """Return a random boundary that no author of a record could predict."""
    return secrets.token_hex(12)


def render(prompt: Prompt, record: str, *, boundary: str, **values: object) -> RenderedPrompt:
    """Fill a prompt; the record goes between the boundary lines and cannot leave them."""
    inside = words.clean(record)
    while boundary in inside:
        inside = inside.replace(boundary, "")
    fenced = f"{memory_tags.RECORD_FENCE}{boundary}>>>\n{inside}\n<<<end of record {boundary}>>>"
    texts = {name: str(value) for name, value in values.items()}
    user = string.Template(prompt.template).substitute(texts, record=fenced)
    return RenderedPrompt(prompt.label, prompt.system, user)


def indent(text: str) -> str:
    """Return a text with every line indented, whatever its line separator."""
    return "\n".join(f"  {line}" for line in words.clean(text).splitlines())


_MAX_VOICE_CHARS = 60
_MAX_TITLE_CHARS = 200
MAX_FRAGMENT_CHARS = 4_000
"""What a chat is shown of a fragment or a statement; of many fragments it is less."""

_MIN_FRAGMENT_CHARS = 200
_MAX_TOPIC_CHARS, _MAX_KNOWN_CHARS = 300, 600
_MAX_BESIDE_CHARS = 600
_MAX_LINE_SOURCES = 8
_MAX_OUTLINE_CHARS = 32_000
_MAX_CHECKED_CHARS = 45_000
"""All facts of a session that is checked: the rest of the record is for what was said in it."""

_OUTLINE_CHARS = ((4_000, 1_000), (2_000, 400), (1_000, 200), (600, 0))
"""How long the messages of a session may be in its outline, and those in the middle of a turn."""

MAX_BEFORE, MAX_AFTER = 2, 3
"""The messages around an exchange that are shown with it: a request and its answer, and a reply."""

_MAX_RECORD_CHARS = 60_000
"""Some 15,000 tokens, as a segment has; a root may have hundreds of children."""


def render_messages(segment: Segment) -> str:
    """Return the messages of a segment with their speakers and times."""
    items = [_render_message(one) for one in segment.messages]
    if segment.title:
        items.insert(0, f"Title:\n{indent(one_line(segment.title, _MAX_TITLE_CHARS))}")
    return "\n".join(items)


def render_exchange(exchange: Segment) -> str:
    """Return the messages of an exchange, with what helps to understand them around."""
    items: list[str] = []
    if exchange.project:
        branch = f" (branch {exchange.branch})" if exchange.branch else ""
        name = one_line(f"{exchange.project}{branch}", _MAX_TITLE_CHARS)
        items.append(f"Project:\n{indent(name)}")
    if exchange.topics:
        topics = (
            f"[{label}] {one_line(one.content, _MAX_TOPIC_CHARS)}"
            for label, one in _label("T", exchange.topics)
        )
        items.append("Topics:\n" + indent("\n".join(topics)))
    items += [
        f"[{label}] {_fragment_header(one)}\n{_fragment_body(one, _MAX_KNOWN_CHARS)}"
        for label, one in _label("K", exchange.known)
    ]
    items += [_render_beside("before", one) for one in exchange.earlier[-MAX_BEFORE:]]
    items.append(render_messages(exchange))
    items += [_render_beside("after", one) for one in select_after(exchange)]
    return "\n".join(items)


def label_whole(exchange: Segment) -> dict[str, Fragment]:
    """Return the fragments that stand around an exchange with all that they say, by their labels.

    A chat can refer to these alone: of what it does not see it cannot say that it is the same, nor
    say it again.
    """
    most = {"T": _MAX_TOPIC_CHARS, "K": _MAX_KNOWN_CHARS}
    labelled = (*_label("T", exchange.topics), *_label("K", exchange.known))
    return {label: one for label, one in labelled if len(one.content) <= most[label[0]]}


def _label(letter: str, some: Sequence[Fragment]) -> Iterator[tuple[str, Fragment]]:
    return ((f"{letter}{number}", one) for number, one in enumerate(some, 1))


def select_after(exchange: Segment) -> tuple[MessageText, ...]:
    """Return what people and assistants said right after an exchange."""
    spoken = [one for one in exchange.later if one.origin in ("user", "assistant")]
    return tuple(spoken[:MAX_AFTER])


def _render_beside(label: str, one: MessageText, most: int = _MAX_BESIDE_CHARS) -> str:
    text = one.text
    if len(text) > most:
        half = most // 2
        text = f"{text[:half]} … {text[-half:]}"
    return f"[{label}] {_message_header(one)}\n{indent(text)}"


def _render_message(one: MessageText) -> str:
    return f"[{one.ordinal}] {_message_header(one)}\n{indent(one.text)}"


def _message_header(one: MessageText) -> str:
    return f"{one.at:%Y-%m-%d %H:%M} {_voice_label(one.voice)} (origin: {one.origin})"


def render_logs(logs: Sequence[Log], former: Log) -> str:
    """Return logs in order, the former one as number 0, each line with its message numbers."""
    items = [f"[0] former log\n{_log_body(former)}"] if former.text.strip() else []
    items += [f"[{number}] log\n{_log_body(log)}" for number, log in enumerate(logs, 1)]
    return "\n".join(items)


def _log_body(log: Log) -> str:
    return indent("\n".join(_numbered_line(line) for line in log.lines))


def _numbered_line(line: LogLine) -> str:
    numbers = ",".join(map(str, line.sources[:_MAX_LINE_SOURCES]))
    return f"[{numbers}] {line.text}" if numbers else line.text


def render_fragments(
    fragments: Sequence[Fragment], *, first: int = 0, room: int = _MAX_RECORD_CHARS
) -> str:
    """Return fragments with their numbers, each with its share of the room."""
    share = room // max(1, len(fragments))
    most = min(max(share, _MIN_FRAGMENT_CHARS), MAX_FRAGMENT_CHARS)
    items = [
        f"[{number}] {_fragment_header(one)}\n{_fragment_body(one, most)}"
        for number, one in enumerate(fragments, first)
    ]
    return "\n".join(items)


def render_facts(facts: Sequence[Fragment], spoken: Sequence[MessageText]) -> str:
    """Return what was said in a session, as much of it as there is room for, and numbered facts.

    Requests and the last words before the next one come first. If there is no room for all of
    these, the latest are shown.
    """
    numbered = render_fragments(facts, first=1, room=_MAX_CHECKED_CHARS)
    room = max(0, min(_MAX_OUTLINE_CHARS, _MAX_RECORD_CHARS - len(numbered)))
    items: list[str] = []
    size = 0
    for most, most_between in _OUTLINE_CHARS:
        items = list(_render_outline(spoken, most, most_between))
        size = sum(map(len, items))
        if size <= room:
            break
    first = 0
    while size > room:
        size -= len(items[first])
        first += 1
    return "\n".join([*items[first:], numbered])


def _render_outline(spoken: Sequence[MessageText], most: int, most_between: int) -> Iterator[str]:
    """Yield messages, each with so many characters; what lies between gets others, or is left out.

    What lies between is what an assistant says before it goes on working.
    """
    for one, following in zip_longest(spoken, spoken[1:]):
        is_between = one.origin == "assistant" and following and following.origin == "assistant"
        chars = most_between if is_between else most
        if chars:
            yield _render_beside("said", one, chars)


def render_pairs(pairs: Sequence[JudgedPair]) -> str:
    """Return pairs of fragments or statements, the older one first."""
    return "\n".join(
        f"[{number}] older: {_fragment_header(older)}\n{_fragment_body(older)}\n"
        f"[{number}] newer: {_fragment_header(newer)}{_replaced(newer)}\n{_fragment_body(newer)}"
        for number, (older, newer) in enumerate(pairs, 1)
    )


def render_hits(hits: Sequence[Hit]) -> str:
    """Return hits with their numbers, authors, dates and what is known of their validity."""
    return "\n".join(
        f"[{number}] {_hit_header(hit)}\n{_hit_body(hit)}" for number, hit in enumerate(hits, 1)
    )


def _hit_header(hit: Hit) -> str:
    author = _voice_label(hit.role or hit.kind)
    state = ", OUT OF DATE" if hit.is_outdated else ""
    return f"{hit.created_at:%Y-%m-%d} {author} (origin: {hit.origin}{state})"


def _hit_body(hit: Hit) -> str:
    asked = indent(f"(asked: {one_line(hit.question, _MAX_TITLE_CHARS)})\n") if hit.question else ""
    return "\n".join(filter(None, (asked, indent(hit.text[:MAX_FRAGMENT_CHARS]))))


def _fragment_header(one: Fragment | DatedStatement) -> str:
    return f"{one.kind}, {one.created_at:%Y-%m-%d}, origin: {one.origin}"


def _fragment_body(one: Fragment | DatedStatement, most: int = MAX_FRAGMENT_CHARS) -> str:
    return indent(one.content[:most])


def _replaced(one: Fragment | DatedStatement) -> str:
    replaced = one_line(words.clean(str(one.payload.get("replaces", ""))), _MAX_TITLE_CHARS)
    return f", replaces: {replaced}" if replaced else ""


def _voice_label(voice: str) -> str:
    """Return a voice on one line and without brackets: some are names that a user chose."""
    return one_line(voice.translate(str.maketrans("[]()<>", "      ")), _MAX_VOICE_CHARS)
