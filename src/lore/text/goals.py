"""Goals: what a person asks an agent for, and where a session starts a new task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from lore.records import Message
from lore.text import memory_tags, sentences, words
from lore.text.message_features import is_spoken_part
from lore.text.regex import compile_lazy

GOAL_CHARS = 280
_READ_CHARS = 6_000
"""Characters read of a message; a request stands at its beginning."""

_FENCES = (*memory_tags.INJECTED_TAGS, "bash-input", "INSTRUCTIONS")
"""Tags around text that asks for nothing; a shell line is typed, but not for the agent."""

_COMMAND_NAME = compile_lazy(r"<command-name>\s*/?([\w:.-]{1,80})\s*</command-name>")
_COMMAND_ARGS = compile_lazy(r"<command-args>(.{0,2000}?)</command-args>", re.DOTALL)
_TYPED_COMMAND = compile_lazy(r"^\s*/([\w:-]{2,60})(?:\s+(.{0,2000}))?\s*$", re.DOTALL)
_TAG = compile_lazy(r"</?[\w-]{1,40}>")
_HOUSEKEEPING = frozenset(
    """add-dir agents bug clear color compact config context copy cost debug diff doctor effort exit
    export extra-usage fast feedback fork help hooks ide init-verifiers insights install-github-app
    login logout mcp memory mobile model new output-style passes permissions plugin plugins
    privacy-settings quit reload-plugins release-notes remote-env rename
    resume rewind sandbox settings skills stats status statusline tasks terminal-setup theme todos
    undo upgrade usage vim voice""".split()
)
"""Commands that configure the agent and ask for no work."""

_NO_REQUEST = compile_lazy(
    r"\s*(?:\[Request interrupted|\[Image|\[Pasted|Caveat: The messages below"
    r"|Operation stopped by hook"
    r"|Base directory for this skill|Stop hook feedback|# AGENTS\.md instructions"
    r"|Unknown (?:slash )?command"
    r"|Unknown skill|API Error|Warmup\s*$|\[Tool call|<turn_aborted>)",
    re.IGNORECASE,
)
_RESUMED = compile_lazy(
    r"\s*(?:This session is being continued from a previous|# Continuing from|<summary>)"
)
_INTENT = compile_lazy(
    r"(?:Primary Request and Intent|User's (?:original )?request|Goal"
    r"|Task Overview)\W{0,8}\s*(.{20,900})",
    re.DOTALL | re.IGNORECASE,
)
FILLER = frozenset(
    """a ah alright also and awesome back can carry cheers continue cool did do done don't evening
    fine for go going good great happy hello help hey hi hm hmm i i'm is it it's just keep later
    let's like lol looks made make me minor moment morning need nice no nope now of oh ok okay on
    one option please pls proceed ready resume right run same see so start still sure thank thanks
    that that's the then there this to try two up wait we well what's with works yeah yep yes you
    your""".split()
)
_DOING = compile_lazy(
    r"^(?:please\s+|can you\s+|could you\s+|let's\s+|lets\s+)?(?:add|analy[sz]e|build|bump|change"
    r"|check"
    r"|clean|commit|convert|create|debug|delete|deploy|describe|design|document|draft|explain"
    r"|extract"
    r"|find|fix|format|generate|implement|improve|install|investigate|merge|migrate|move"
    r"|optimi[sz]e"
    r"|port|push|rebase|refactor|release|remove|rename|replace|review|rewrite|simplify|split"
    r"|summari[sz]e"
    r"|test|trace|translate|update|upgrade|verify|write)\b",
    re.IGNORECASE,
)
_ASKING = compile_lazy(
    r"\?\s*$|\b(?:can|could|would|should|shall|will) (?:you|we|i)\b|\bplease\b|\blet's\b|\blets\b"
    r"|\bi(?:'d| would) like\b|\bi (?:want|need|think|wonder)\b|\bwe (?:need|should|want)\b"
    r"|\b(?:what|why|how|where|which) (?:is|are|do|does|did|would|should|can)\b|\bfix\b"
    r"|\bimplement\b",
    re.IGNORECASE,
)
_QUESTION = compile_lazy(
    r"\?\s*$|^\W*(?:(?:hi|hey|hello|so|and|ok|okay|please|also)\W+)*"
    r"(?:what|what's|why|how|where|which|who|whose|when|is|are|was|were|do|does|did|has|have)\b",
    re.IGNORECASE,
)
_OUTPUT = compile_lazy(
    r"""^\s*(?:=+\ |-{3,}|---\ |\+{3}\ |@@|\[[\w:.\- ]{1,40}\]|[\u276f$>%»]\ |at\ \S+\(|File\ "
        |\d+[→|:]
        |\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|(?:ERROR|WARN|INFO|DEBUG|FAIL|PASS|ok|panic)\b
        |Traceback|Error:
        |\S+\.\w{1,5}:\d+|[{}\[\]();]+\s*$|\w+Error:|[│├└┌╭╰●✓✗×⎿]|\S+\s*=\s*\S+\s*$|<\w+|[|])""",
    re.VERBOSE,
)
_WORD = compile_lazy(r"[^\W\d_][\w'’-]*")
_MARKUP = compile_lazy(r"(?:^|\n)\s*(?:#{1,6}|[*•-])\s+|\*\*|```\w*|`")
_FEWEST_WORDS = 3


class Request(NamedTuple):
    """The request of one message, or only a hint of one."""

    text: str
    real: bool
    command: bool = False


def find_goal(texts: Iterable[str], *, title: str = "") -> tuple[str, int]:
    """Return the first real request of a session, and the index of its text, or -1.

    A command that names a task counts together with the text after it. Without a request, the first
    hint of one or the title serves.
    """
    sign: tuple[str, int] | None = None
    command = ""
    for place, text in enumerate(texts):
        request = parse_request(text)
        if request is None:
            continue
        if request.command and not request.real:
            command = command or request.text
            sign = sign or (request.text, place)
        elif request.real:
            goal = f"{command}: {request.text}" if command else request.text
            return sentences.one_line(goal, GOAL_CHARS), place
        elif command:
            return sentences.one_line(f"{command}: {request.text}", GOAL_CHARS), place
        else:
            sign = sign or (request.text, place)
    if sign is None or (title and not command):
        return sentences.one_line(title, GOAL_CHARS), sign[1] if sign else -1
    return sentences.one_line(sign[0], GOAL_CHARS), sign[1]


def parse_request(text: str) -> Request | None:
    """Return the request of a message, if it has one."""
    head = text[:_READ_CHARS]
    if _NO_REQUEST.match(head):
        return None
    command = _command(head)
    if command is not None:
        return command if command.text else None
    if _RESUMED.match(head):
        intent = _INTENT.search(head)
        return Request(_plain(intent.group(1)), real=False) if intent else None
    words = _typed_prose(_unfenced(head))
    if not words:
        return None
    return Request(words, real=_is_real(words))


def is_repeated(text: str) -> bool:
    """Return whether a message only repeats an earlier conversation, or a program wrote it."""
    head = text[:_READ_CHARS]
    return bool(_RESUMED.match(head) or _NO_REQUEST.match(head))


def _unfenced(text: str) -> str:
    if "<" not in text:
        return text
    pieces = memory_tags.split_fences(text, _FENCES)
    return "\n".join(piece for is_fence, piece in pieces if not is_fence)


def is_request(text: str) -> bool:
    """Return whether a text asks for something."""
    return bool(_ASKING.search(text[:_READ_CHARS]) or _DOING.match(text[:400]))


def is_small_talk(texts: Iterable[str]) -> bool:
    """Return whether a message only greets, thanks and asks, without work or information."""
    return not any(_is_work(request) for request in map(parse_request, texts) if request)


def _is_work(request: Request) -> bool:
    if request.command:
        return True
    return request.real and bool(
        _DOING.match(request.text[:200]) or not _QUESTION.search(request.text)
    )


def _command(head: str) -> Request | None:
    """Return a slash command as a request; one that asks for no work is an empty one."""
    marked = _COMMAND_NAME.search(head)
    typed = _TYPED_COMMAND.match(head) if not marked else None
    if not marked and not typed:
        return None
    if marked:
        name = marked.group(1)
        args = _COMMAND_ARGS.search(head)
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


def _typed_prose(text: str) -> str:
    """Return the prose of a message; nothing if it is pasted output without a request."""
    lines = [line for line in _TAG.sub(" ", text).splitlines() if line.strip()]
    if len(lines) < 3:
        return _plain(" ".join(lines))
    prose = [line for line in lines if not _OUTPUT.match(line[:200])]
    has_request = any(_ASKING.search(line[:400]) or _DOING.match(line[:400]) for line in prose)
    if len(prose) * 2 < len(lines) and not has_request:
        return ""
    return _plain("\n".join(prose or lines))


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub(" ", text[: GOAL_CHARS * 6]).split())


def _is_real(text: str) -> bool:
    words = [word.lower().replace("’", "'") for word in _WORD.findall(text[:600])]
    telling = [word for word in words if word not in FILLER]
    if _DOING.match(text[:200]) and telling and len(words) >= 2:
        return len(telling) >= 2 or not _refers_back(words)
    return len(words) >= _FEWEST_WORDS and len(telling) >= 2


def _refers_back(words: list[str]) -> bool:
    """Return whether a text refers to earlier messages: 'commit this', 'fix it'."""
    return bool({"this", "it", "that", "them", "these", "those", "all", "both"} & set(words))


_TASK_READ_CHARS = 2_000
"""Characters of a message from which its subject is taken."""

_FEWEST_NEW = 2
_MOST_KNOWN = 0.34
"""Share of a request's content words that the previous task may contain:

chosen by eye on 30 real sessions, so that a request about the same subject seldom starts a new
task.
"""

_OPENING_CHARS = 200
_STEM_CHARS = 6
_EMPTY = FILLER | words.STOP_WORDS

_GOES_ON = compile_lazy(
    r"^\W*(?:(?:ok(?:ay)?|yes|yeah|yep|yup|no|nope|sure|right|great|good|cool|nice|perfect|thanks"
    r"|hmm*|hm|umm*|ah|oh|erm|ugh|huh|wait|actually|sorry)\b|(?:but|and|or|so|then|also|still|again"
    r"|instead|because|though|wouldn't|shouldn't|didn't|doesn't|isn't|aren't|why|it|its|it's|that"
    r"|that's|this|these|those|they|there|you|your|option|both|same|maybe|looks?|looking|yes,"
    r"|however|ideally|in theory|the (?:same|first|second|third|last|other|issue|problem|error"
    r"|test|tests))\b|(?:can|could|should|would) (?:we|you|i) (?:also|then|still|just|instead"
    r"|maybe)\b|(?:did|do|does|are|is|was|were|have|has|had) (?:you|we|it|this|that|there|these"
    r"|they)\b|(?:i|we) (?:still|just|also|do also|meant|mean|thought"
    r"|think|don't|didn't|haven't|would have|guess)\b|\d{1,2}[.,)]\s|re(?:try|do)\b"
    r"|let's (?:go|keep|try|do|drop|just|not)\b|go (?:for|with|ahead)\b)",
    re.IGNORECASE,
)
"""Openings of messages that answer, doubt or add to what came before."""

_POINTS_BACK = compile_lazy(
    r"\b(?:the same|as well|like (?:this|that)|(?:this|that|these|those|the|our|your|my) (?:change"
    r"|fix|test|commit|branch|approach|plan|code|issue|error|file|function|result|pr|finding"
    r"|comment|suggestion)s?|double[- ]check|again|too|above|you (?:just|wrote|said|did|made"
    r"|mentioned|added|changed)|we (?:just|did|have just))\b",
    re.IGNORECASE,
)
"""References to earlier work: they start no task."""

_PRONOUN = compile_lazy(
    r"\b(?:it|its|it's|that|this|them|those|these|here|also|we've|we're|\d{1,2})\b", re.IGNORECASE
)
_SHORT_WORDS = 14
"""A shorter request with a pronoun or a list number refers to earlier messages."""

_LANDS = compile_lazy(
    r"^\W*(?:please\s+|can you\s+|could you\s+|now\s+|then\s+|let's\s+|ok(?:ay)?,?\s+)*(?:commit"
    r"|push|merge|rebase|amend|open (?:a|the) pr|create (?:a|the|me a) (?:pr|pull request|commit)"
    r"|make (?:a|the) (?:pr|pull request|commit)|run (?:the )?(?:tests?|lint\w*))\b",
    re.IGNORECASE,
)
"""Words that finish the work: commit, merge, release."""

_TROUBLE = compile_lazy(
    r"\b(?:bugs?|broken|conflicts?|crash\w*|errors?|fail\w*|issues?|missing|problems?|severity"
    r"|wrong|doesn't|don't|isn't|can't|cannot|lacks?|should)\b",
    re.IGNORECASE,
)
"""A report of trouble is a request to fix it."""

_TURNS = compile_lazy(
    r"^\W*(?:(?:ok(?:ay)?|great|good|cool|nice|perfect|thanks|thank you|right|alright|yes|so)"
    r"\W+){0,2}(?:next(?:\s+(?:up|task|thing|one))?\s*[:,]|the next"
    r" (?:problem|thing|issue|bug|task|topic)\b|(?:now )?(?:a |an |one )?(?:different"
    r"|another|new|separate|unrelated|other)\s+(?:task|thing|question|topic|issue|bug|problem"
    r"|request)\b|on (?:a|another) (?:different |unrelated )?(?:note|topic)|unrelated(?:ly)?\b"
    r"|one more (?:thing|issue|task)|new task\b|moving on\b"
    r"|switching to\b)",
    re.IGNORECASE,
)
"""Words that change the subject, whatever else the message shares with the task."""


def split_tasks(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Split a session where a person starts a new task."""
    starts = [0]
    subject: _Subject | None = None
    for place, message in enumerate(messages):
        text = "\n".join(part.text for part in message.parts if is_spoken_part(part))
        if message.role == "user" and message.origin == "user":
            request = parse_request(text)
            if request is None:
                continue
            if subject is not None and subject.is_ended_by(request):
                starts.append(place)
                subject = None
            if subject is None and (request.real or request.command):
                subject = _Subject()
            if subject is not None:
                subject.add_request(request)
        elif message.role == "assistant" and subject is not None:
            subject.add_text(text)
    return [messages[start:end] for start, end in pairwise((*starts, len(messages)))]


class _Subject:
    """The subject of a task, as the set of its content words."""

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._requests: set[str] = set()
        self._only_commands = True

    def add_text(self, text: str) -> None:
        """Add a message of the task."""
        self._words.update(_content_words(text))

    def add_request(self, request: Request) -> None:
        """Add a request of the task."""
        self._requests.add(request.text)
        self._only_commands = self._only_commands and request.command and not request.real
        self.add_text(request.text)

    def is_ended_by(self, request: Request) -> bool:
        """Return whether a request starts another task."""
        text = request.text
        if self._only_commands or text in self._requests or _LANDS.match(text):
            return False
        if request.command or (request.real and _TURNS.match(text)):
            return True
        if not request.real or _continues(text):
            return False
        if not is_request(text) and not _TROUBLE.search(text):
            return False
        telling = _content_words(text)
        new = telling - self._words
        return len(new) >= _FEWEST_NEW and len(new) >= (1 - _MOST_KNOWN) * len(telling)


def _continues(text: str) -> bool:
    if _GOES_ON.match(text) or _POINTS_BACK.search(text[:_OPENING_CHARS]):
        return True
    return len(text.split()) < _SHORT_WORDS and bool(_PRONOUN.search(text))


def _content_words(text: str) -> set[str]:
    head = text[:_TASK_READ_CHARS]
    all_words = (
        words.split(head) if head.isascii() else words.search_terms(head, most=_TASK_READ_CHARS)
    )
    return {_stem(word) for word in all_words if len(word) > 2 and word not in _EMPTY}


def _stem(word: str) -> str:
    """Return the beginning of a word, so that 'tests' and 'testing' are equal."""
    return word[:_STEM_CHARS] if word.isascii() else word
