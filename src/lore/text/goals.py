"""Goals: what a person asks an agent for, without greetings, commands and pasted output."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from lore.text import fences, lines, marks
from lore.text.later import compile_later

GOAL_CHARS = 280
_READ_CHARS = 6_000
"""A request stands at the beginning of a message."""

_FENCES = (*fences.PUT_IN, "bash-input", "INSTRUCTIONS")
"""What asks for nothing; a line for the shell is typed, but not for the agent."""

_COMMAND_NAME = compile_later(r"<command-name>\s*/?([\w:.-]{1,80})\s*</command-name>")
_COMMAND_ARGS = compile_later(r"<command-args>(.{0,2000}?)</command-args>", re.DOTALL)
_TYPED_COMMAND = compile_later(r"^\s*/([\w:-]{2,60})(?:\s+(.{0,2000}))?\s*$", re.DOTALL)
_TAG = compile_later(r"</?[\w-]{1,40}>")
_HOUSEKEEPING = frozenset(
    """add-dir agents bug clear color compact config context copy cost debug diff doctor effort exit
    export extra-usage fast feedback fork help hooks ide init-verifiers insights install-github-app
    login logout mcp memory mobile model new output-style passes permissions plugin plugins
    privacy-settings quit reload-plugins release-notes remote-env rename
    resume rewind sandbox settings skills stats status statusline tasks terminal-setup theme todos
    undo upgrade usage vim voice""".split()
)
"""Commands that set up the agent and ask for no work."""

_NO_REQUEST = compile_later(
    r"\s*(?:\[Request interrupted|\[Image|\[Pasted|Caveat: The messages below"
    r"|Operation stopped by hook"
    r"|Base directory for this skill|Stop hook feedback|# AGENTS\.md instructions"
    r"|Unknown (?:slash )?command"
    r"|Unknown skill|API Error|Warmup\s*$|\[Tool call|<turn_aborted>)",
    re.IGNORECASE,
)
_RESUMED = compile_later(
    r"\s*(?:This session is being continued from a previous|# Continuing from|<summary>)"
)
_INTENT = compile_later(
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
_DOING = compile_later(
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
_ASKING = compile_later(
    r"\?\s*$|\b(?:can|could|would|should|shall|will) (?:you|we|i)\b|\bplease\b|\blet's\b|\blets\b"
    r"|\bi(?:'d| would) like\b|\bi (?:want|need|think|wonder)\b|\bwe (?:need|should|want)\b"
    r"|\b(?:what|why|how|where|which) (?:is|are|do|does|did|would|should|can)\b|\bfix\b"
    r"|\bimplement\b",
    re.IGNORECASE,
)
_QUESTION = compile_later(
    r"\?\s*$|^\W*(?:(?:hi|hey|hello|so|and|ok|okay|please|also)\W+)*"
    r"(?:what|what's|why|how|where|which|who|whose|when|is|are|was|were|do|does|did|has|have)\b",
    re.IGNORECASE,
)
_OUTPUT = compile_later(
    r"""^\s*(?:=+\ |-{3,}|---\ |\+{3}\ |@@|\[[\w:.\- ]{1,40}\]|[\u276f$>%»]\ |at\ \S+\(|File\ "
        |\d+[→|:]
        |\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|(?:ERROR|WARN|INFO|DEBUG|FAIL|PASS|ok|panic)\b
        |Traceback|Error:
        |\S+\.\w{1,5}:\d+|[{}\[\]();]+\s*$|\w+Error:|[│├└┌╭╰●✓✗×⎿]|\S+\s*=\s*\S+\s*$|<\w+|[|])""",
    re.VERBOSE,
)
_WORD = compile_later(r"[^\W\d_][\w'’-]*")
_MARKUP = compile_later(r"(?:^|\n)\s*(?:#{1,6}|[*•-])\s+|\*\*|```\w*|`")
_FEWEST_WORDS = 3


class Request(NamedTuple):
    """What one message asks for: a real request, or only a sign of one."""

    text: str
    real: bool
    command: bool = False


def find_goal(said: Iterable[str], *, title: str = "") -> tuple[str, int]:
    """Return the first real request of a session, and which of the texts holds it; -1 for none.

    A command that names a task counts together with the words that follow it. Where there is no
    request, the first sign of one or the title has to do.
    """
    sign: tuple[str, int] | None = None
    named = ""
    for place, text in enumerate(said):
        request = request_of(text)
        if request is None:
            continue
        if request.command and not request.real:
            named = named or request.text
            sign = sign or (request.text, place)
        elif request.real:
            goal = f"{named}: {request.text}" if named else request.text
            return lines.one_line(goal, GOAL_CHARS), place
        elif named:
            return lines.one_line(f"{named}: {request.text}", GOAL_CHARS), place
        else:
            sign = sign or (request.text, place)
    if sign is None or (title and not named):
        return lines.one_line(title, GOAL_CHARS), sign[1] if sign else -1
    return lines.one_line(sign[0], GOAL_CHARS), sign[1]


def request_of(text: str) -> Request | None:
    """Return what a message asks for, if anything."""
    head = text[:_READ_CHARS]
    if _NO_REQUEST.match(head):
        return None
    command = _command(head)
    if command is not None:
        return command if command.text else None
    if _RESUMED.match(head):
        intent = _INTENT.search(head)
        return Request(_plain(intent.group(1)), real=False) if intent else None
    words = _words_of_a_person(_unfenced(head))
    if not words:
        return None
    return Request(words, real=_is_real(words))


def is_told_again(text: str) -> bool:
    """Tell whether a message only repeats an earlier talk, or was put there by a program."""
    head = text[:_READ_CHARS]
    return bool(_RESUMED.match(head) or _NO_REQUEST.match(head))


def _unfenced(text: str) -> str:
    if "<" not in text:
        return text
    pieces = marks.fences(text, _FENCES)
    return "\n".join(piece for is_fence, piece in pieces if not is_fence)


def asks(text: str) -> bool:
    """Tell whether words ask for something, rather than only tell something."""
    return bool(_ASKING.search(text[:_READ_CHARS]) or _DOING.match(text[:400]))


def is_small_talk(said: Iterable[str]) -> bool:
    """Tell whether a person only greets, thanks and asks, and wants no work and tells nothing."""
    return not any(_is_work(request) for request in map(request_of, said) if request)


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
        given = _COMMAND_ARGS.search(head)
        arguments = given.group(1) if given else ""
    else:
        assert typed
        name, arguments = typed.group(1), typed.group(2) or ""
    if name.rsplit(":", 1)[-1] in _HOUSEKEEPING:
        return Request("", real=False, command=True)
    arguments = _plain(arguments)
    if not arguments:
        return Request(f"/{name}", real=False, command=True)
    return Request(f"/{name} {arguments}", real=True, command=True)


def _words_of_a_person(text: str) -> str:
    """Return the prose of a message; nothing if it is pasted output without a request."""
    told = [line for line in _TAG.sub(" ", text).splitlines() if line.strip()]
    if len(told) < 3:
        return _plain(" ".join(told))
    prose = [line for line in told if not _OUTPUT.match(line[:200])]
    asked = any(_ASKING.search(line[:400]) or _DOING.match(line[:400]) for line in prose)
    if len(prose) * 2 < len(told) and not asked:
        return ""
    return _plain("\n".join(prose or told))


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub(" ", text[: GOAL_CHARS * 6]).split())


def _is_real(text: str) -> bool:
    words = [word.lower().replace("’", "'") for word in _WORD.findall(text[:600])]
    telling = [word for word in words if word not in FILLER]
    if _DOING.match(text[:200]) and telling and len(words) >= 2:
        return len(telling) >= 2 or not _vague(words)
    return len(words) >= _FEWEST_WORDS and len(telling) >= 2


def _vague(words: list[str]) -> bool:
    """Tell whether words point at what was said before: 'commit this', 'fix it'."""
    return bool({"this", "it", "that", "them", "these", "those", "all", "both"} & set(words))
