"""Goals: what a person asks an agent for, and where a session starts a new task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from lore.records import Message
from lore.text import call_text, memory_tags, sentences, words
from lore.text.message_features import is_spoken_part
from lore.text.regex import PatternFile

_re = PatternFile("goals")

GOAL_CHARS = 280
_READ_CHARS = 6_000
"""Characters read of a message; a request stands at its beginning."""

_FENCES = (*memory_tags.INJECTED_TAGS, "bash-input", "INSTRUCTIONS")
"""Tags around text that asks for nothing; a shell line is typed, but not for the agent."""

_HOUSEKEEPING = _re.words("housekeeping")

FILLER = _re.words("filler")
_FEWEST_WORDS = 3


class Request(NamedTuple):
    """The request of one message, or only a hint of one; its title is one goal."""

    text: str
    real: bool
    command: bool = False
    title: str = ""


def find_goal(texts: Iterable[str], *, title: str = "") -> tuple[str, int]:
    """Return the first real request of a session, and the index of its text, or -1.

    After a command that names a task, only another request is a goal of its own: an answer is none.
    Without a request, the first hint of one or the title serves.
    """
    sign: Request | None = None
    place_of_sign = -1
    for place, text in enumerate(texts):
        request = parse_request(text)
        if request is None:
            continue
        follows_command = sign is not None and sign.command
        if request.real and (not follows_command or request.command or is_request(request.text)):
            return sentences.one_line(request.title or request.text, GOAL_CHARS), place
        if sign is None:
            sign, place_of_sign = request, place
    if sign is None or (title and not sign.command):
        return sentences.one_line(title, GOAL_CHARS), place_of_sign
    return sentences.one_line(sign.text, GOAL_CHARS), place_of_sign


def parse_request(text: str) -> Request | None:
    """Return the request of a message, if it has one."""
    head = text[:_READ_CHARS]
    if _re.no_request.match(head):
        return None
    command = _command(head)
    if command is not None:
        return command if command.text else None
    if _re.resumed.match(head):
        intent = _re.intent.search(head)
        return Request(_plain(intent.group(1)), real=False) if intent else None
    lines = _typed_prose(_unfenced(head))
    words = _plain("\n".join(lines))
    if not words:
        return None
    return Request(words, real=_is_real(words), title=_title(lines))


def is_repeated(text: str) -> bool:
    """Return whether a message only repeats an earlier conversation, or a program wrote it."""
    head = text[:_READ_CHARS]
    return bool(_re.resumed.match(head) or _re.no_request.match(head))


def _unfenced(text: str) -> str:
    if "<" not in text:
        return text
    pieces = memory_tags.split_fences(text, _FENCES)
    return "\n".join(piece for is_fence, piece in pieces if not is_fence)


def is_request(text: str) -> bool:
    """Return whether a text asks for something."""
    return bool(_re.asking.search(text[:_READ_CHARS]) or _re.doing.match(text[:400]))


def asks_to_land(text: str) -> bool:
    """Return whether a text only asks to finish the work: commit, push, merge."""
    return _re.lands.match(text) is not None


def is_small_talk(texts: Iterable[str]) -> bool:
    """Return whether a message only greets, thanks and asks, without work or information."""
    return not any(_is_work(request) for request in map(parse_request, texts) if request)


def _is_work(request: Request) -> bool:
    if request.command:
        return True
    return request.real and bool(
        _re.doing.match(request.text[:200]) or not _re.question.search(request.text)
    )


def _command(head: str) -> Request | None:
    """Return a slash command as a request; one that asks for no work is an empty one."""
    marked = _re.command_name.search(head)
    typed = _re.typed_command.match(head) if not marked else None
    if not marked and not typed:
        return None
    if marked:
        name = marked.group(1)
        args = _re.command_args.search(head)
        arguments = args.group(1) if args else ""
    else:
        assert typed
        name, arguments = typed.group(1), typed.group(2) or ""
    if name.rsplit(":", 1)[-1] in _HOUSEKEEPING:
        return Request("", real=False, command=True)
    arguments = _plain(arguments)
    if not arguments:
        return Request(f"/{name}", real=False, command=True)
    return Request(f"/{name} {arguments}", real=True, command=True)


def _typed_prose(text: str) -> list[str]:
    """Return the lines of prose of a message; none if it is pasted output without a request."""
    lines = [line for line in _re.tag.sub(" ", text).splitlines() if line.strip()]
    if len(lines) < 3:
        return lines
    prose = [line for line in lines if not _re.output.match(line[:200])]
    if len(prose) * 2 < len(lines) and not any(map(_asks, prose)):
        return []
    return prose or lines


def _asks(line: str) -> bool:
    return bool(_re.asking.search(line[:400]) or _re.doing.match(line[:400]))


def _title(lines: Sequence[str]) -> str:
    """Return the first line with what it needs of the next ones; a later one if only that asks."""
    first = 0
    if lines and not _is_real(_plain(lines[0])):
        first = next((n for n, line in enumerate(lines) if _asks(_plain(line))), 0)
    title = ""
    for line in lines[first:]:
        following = _plain(line)
        goes_on = not title or title.endswith((":", ",")) or not _is_real(title)
        if not goes_on and not following[:1].islower():
            break
        title = f"{title} {following}".strip()
    return title


def _plain(text: str) -> str:
    return " ".join(_re.markup.sub(" ", text[: GOAL_CHARS * 6]).split())


def _is_real(text: str) -> bool:
    words = [word.lower().replace("’", "'") for word in _re.word.findall(text[:600])]
    telling = [word for word in words if word not in FILLER]
    if _re.doing.match(text[:200]) and telling and len(words) >= 2:
        return len(telling) >= 2 or not _refers_back(words)
    return len(words) >= _FEWEST_WORDS and len(telling) >= 2


def _refers_back(words: list[str]) -> bool:
    """Return whether a text refers to earlier messages: 'commit this', 'fix it'."""
    return bool({"this", "it", "that", "them", "these", "those", "all", "both"} & set(words))


_TASK_READ_CHARS = 2_000
"""Characters of a message from which its subject is taken."""

_FEWEST_NEW, _FEWEST_ORDERED = 8, 2
_MOST_KNOWN = 0.34
"""Share of a request's content words that the task before it, its requests and the last reply, may
contain, and the new words that it needs, fewer if it begins with an order. Chosen on real sessions.
"""

_LOOK_AHEAD = 400
"""Messages after a request whose files are compared with those before it."""

_LONG_WORDS = 12
"""A message with so many content words is a request, whatever its form."""

_OPENING_CHARS = 200
_STEM_CHARS = 6
_EMPTY = FILLER | words.STOP_WORDS


_SHORT_WORDS = 14
"""A shorter request with a pronoun or a list number refers to earlier messages."""


def split_tasks(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Split a session where a person starts a new task."""
    starts = [0]
    files = _TaskFiles(messages)
    subject: _Subject | None = None
    for place, message in enumerate(messages):
        text = "\n".join(part.text for part in message.parts if is_spoken_part(part))
        if message.role == "user" and message.origin == "user":
            request = parse_request(text)
            if request is None:
                continue
            if (
                subject is not None
                and subject.is_ended_by(request)
                and (request.command or not files.go_on(place))
            ):
                starts.append(place)
                files.start_task(place)
                subject = None
            if subject is None and (request.real or request.command):
                subject = _Subject()
            if subject is not None:
                subject.add_request(request)
        elif message.role == "assistant" and subject is not None:
            subject.set_reply(text)
    return [messages[start:end] for start, end in pairwise((*starts, len(messages)))]


class _TaskFiles:
    """The files of the current task; each message is parsed once."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._by_place: dict[int, frozenset[str]] = {}
        self._files: set[str] = set()
        self._end = 0

    def start_task(self, place: int) -> None:
        """Start a task at a message."""
        self._files, self._end = set(), place

    def go_on(self, place: int) -> bool:
        """Return whether the work after a request is on files of the work before it."""
        after: set[str] = set()
        for later in range(place + 1, min(place + 1 + _LOOK_AHEAD, len(self._messages))):
            message = self._messages[later]
            if message.role == "user" and message.origin == "user":
                break
            after |= self._files_at(later)
        if not after:
            return False
        for earlier in range(self._end, place):
            self._files |= self._files_at(earlier)
        self._end = place
        return not after.isdisjoint(self._files)

    def _files_at(self, place: int) -> frozenset[str]:
        if place not in self._by_place:
            calls = [
                call_text.read_call(part.name, part.text)
                for part in self._messages[place].parts
                if part.kind == "tool_call"
            ]
            files = (file for call in calls for file in call.changed or call.read)
            self._by_place[place] = frozenset(files)
        return self._by_place[place]


class _Subject:
    """The subject of a task, as the set of its content words."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._replied: set[str] = set()
        self._requests: set[str] = set()
        self._only_commands = True

    def set_reply(self, text: str) -> None:
        """Set the assistant's latest words; those before it are no longer the subject."""
        if text.strip():
            self._replied = _content_words(text)

    def add_request(self, request: Request) -> None:
        """Add a request of the task."""
        self._requests.add(request.text)
        self._only_commands = self._only_commands and request.command and not request.real
        self._asked |= _content_words(request.text)

    def is_ended_by(self, request: Request) -> bool:
        """Return whether a request starts another task."""
        text = request.text
        if self._only_commands or text in self._requests or asks_to_land(text):
            return False
        if request.command or (request.real and _re.turns.match(text)):
            return True
        if not request.real or _continues(text):
            return False
        telling = _content_words(text)
        if not is_request(text) and not _re.trouble.search(text) and len(telling) < _LONG_WORDS:
            return False
        new = telling - self._asked - self._replied
        is_order = _re.doing.match(text) or text.lower().startswith("please ")
        fewest = _FEWEST_ORDERED if is_order else _FEWEST_NEW
        return len(new) >= fewest and len(new) >= (1 - _MOST_KNOWN) * len(telling)


def _continues(text: str) -> bool:
    if _re.goes_on.match(text) or _re.points_back.search(text[:_OPENING_CHARS]):
        return True
    return len(text.split()) < _SHORT_WORDS and bool(_re.pronoun.search(text))


def _content_words(text: str) -> set[str]:
    head = text[:_TASK_READ_CHARS]
    all_words = (
        words.split(head) if head.isascii() else words.search_terms(head, most=_TASK_READ_CHARS)
    )
    return {_stem(word) for word in all_words if len(word) > 2 and word not in _EMPTY}


def _stem(word: str) -> str:
    """Return the beginning of a word, so that 'tests' and 'testing' are equal."""
    return word[:_STEM_CHARS] if word.isascii() else word
