"""The prompts for chat models: versioned templates, with untrusted text between boundary lines.

The texts are in `lore/data/prompts`, each with what is the same in every request, and below
`--- user` with what is not.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources

from lore.records import Fragment, Hit, MessageText, Segment
from lore.text import words
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
CONDENSE = _load("condense", 1)
EXTRACT = _load("extract", 1)
OVERVIEW = _load("overview", 1)
REFLECT = _load("reflect", 1)
JUDGE = _load("judge", 1)
ASK = _load("ask", 1)
PROMPTS = (OBSERVE, CONDENSE, EXTRACT, OVERVIEW, REFLECT, JUDGE, ASK)


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
    fenced = f"<<<record {boundary}>>>\n{inside}\n<<<end of record {boundary}>>>"
    texts = {name: str(value) for name, value in values.items()}
    user = string.Template(prompt.template).substitute(texts, record=fenced)
    return RenderedPrompt(prompt.label, prompt.system, user)


def indent(text: str) -> str:
    """Return a text with every line indented, whatever its line separator."""
    return "\n".join(f"  {line}" for line in words.clean(text).splitlines())


_MAX_VOICE_CHARS = 60
_MAX_TITLE_CHARS = 200
_MAX_FRAGMENT_CHARS = 4_000
_MIN_FRAGMENT_CHARS = 200
_MAX_RECORD_CHARS = 60_000
"""Some 15,000 tokens, as a segment has; a root may have hundreds of children."""


def render_messages(segment: Segment) -> str:
    """Return the messages of a segment with their speakers and times."""
    items = [_render_message(one) for one in segment.messages]
    if segment.title:
        items.insert(0, f"Title:\n{indent(one_line(segment.title, _MAX_TITLE_CHARS))}")
    return "\n".join(items)


def _render_message(one: MessageText) -> str:
    voice = _voice_label(one.voice)
    head = f"[{one.ordinal}] {one.at:%Y-%m-%d %H:%M} {voice} (origin: {one.origin})"
    return f"{head}\n{indent(one.text)}"


def render_logs(logs: Sequence[str], former: str) -> str:
    """Return logs in order, the former one as number 0."""
    items = [f"[0] former log\n{indent(former)}"] if former.strip() else []
    items += [f"[{number}] log\n{indent(log)}" for number, log in enumerate(logs, 1)]
    return "\n".join(items)


def render_fragments(fragments: Sequence[Fragment], *, first: int = 0) -> str:
    """Return fragments with their numbers."""
    share = _MAX_RECORD_CHARS // max(1, len(fragments))
    most = min(max(share, _MIN_FRAGMENT_CHARS), _MAX_FRAGMENT_CHARS)
    items = [
        f"[{number}] {_fragment_header(one)}\n{_fragment_body(one, most)}"
        for number, one in enumerate(fragments, first)
    ]
    return "\n".join(items)


def render_pairs(pairs: Sequence[tuple[Fragment, Fragment]]) -> str:
    """Return pairs of fragments, the older one first."""
    return "\n".join(
        f"[{number}] older: {_fragment_header(older)}\n{_fragment_body(older)}\n"
        f"[{number}] newer: {_fragment_header(newer)}\n{_fragment_body(newer)}"
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
    return "\n".join(filter(None, (asked, indent(hit.text[:_MAX_FRAGMENT_CHARS]))))


def _fragment_header(one: Fragment) -> str:
    return f"{one.kind}, {one.created_at:%Y-%m-%d}, origin: {one.origin}"


def _fragment_body(one: Fragment, most: int = _MAX_FRAGMENT_CHARS) -> str:
    return indent(one.content[:most])


def _voice_label(voice: str) -> str:
    """Return a voice on one line and without brackets: some are names that a user chose."""
    return one_line(voice.translate(str.maketrans("[]()<>", "      ")), _MAX_VOICE_CHARS)
