"""Standing instructions: sentences in which a person says how things shall be from now on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lore.text.later import compile_later
from lore.text.sentences import spans

_INSTRUCTION = compile_later(
    r"""^(?:(?:please|pls|also|and|but|so|ok(?:ay)?|hey|note)[,:]?\s+)*
        (?:always|never(?!\ mind)|from\ now\ on|going\ forward|in\ (?:the\ )?future|whenever
          |every\ time|each\ time|remember(?:\ that|\ to|(?=:))|keep\ in\ mind
          |make\ sure\ (?:that\ )?you|be\ sure\ to|do(?:n't|\ not)\ ever
          |stop\ \w+ing|avoid\ \w+ing|for\ (?:all|any|every)\ (?:future|my))\b
      | \b(?:you\ (?:should|must)\ (?:always|never)
          |i(?:\ (?:want|need|expect|would\ like)|'?d\ like)\ you\ to\ (?:always|never)
          |please\ (?:always|never|remember)|when(?:ever)?\ i\ ask|from\ now\ on
          |going\ forward,?\ (?:please|always|use|i\ want)|(?:as|is)\ a\ (?:standing\ )?rule
          |no\ matter\ what)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HABIT = compile_later(
    r"""\b(?:from\ here\ on(?:\ out)?|from\ this\ point\ (?:on|forward)|henceforth)\b
      | \b(?:can|could|will|would)\ you\ (?:please\ )?stop\ \w+ing\b
      | \bmake\ sure\ (?:that\ you\ |you\ |to\ )?(?:always|never)\b
      | (?<!\bi\ )(?<!\bwe\ )(?<!\bthey\ )(?<!\byou\ )\bdo(?:n't|\ not)\ ever\b
      | \bdo(?:n't|\ not)\ [^,;]{2,60}\ (?:unless|until)\ i\ (?:ask|say|tell|explicitly|request)
      | ^(?:please\ )?do(?:n't|\ not)\ [^,;]{2,60}\ without
            \ (?:asking|my\ (?:ok|consent|permission))
      | ^(?:please\ )?(?:use|write|run|answer|keep|put|do|add|call|name)\b[^?]*
            \ going\ forward[.!]?$
      | ^(?:please[,]?\ |ok(?:ay)?[,]?\ |and\ |also[,]?\ )*no\ more\ (?!than|or\ less|questions?
            |errors?|issues?|problems?|time|need|changes?|warnings?|failures?)\w+
            (?:\ (?!than|for\ now|today|left|needed)\w+){0,4}[.!]?$
      | \bin\ (?:this|our|my)\ (?:repo(?:sitory)?|project|code\ ?base|team|company|code),?
            \ (?:we|i)\ (?:always|never|only|do\ not|don't|use|prefer|write|name|avoid|keep)\b[^?]*$
      | \bwe\ (?:always|never)\ (?:use|write|commit|push|deploy|merge|name|log|squash)\b[^?]*$""",
    re.IGNORECASE | re.VERBOSE,
)
"""Ways of saying so that the two above do not know; each is narrow, for a wrong one stands long."""

_PREFERENCE = compile_later(
    r"""\bi(?:'d|\ would)?(?:\ (?:really|generally|usually|still|also|always|definitely|much
            |strongly|tend\ to))?\s+(?:prefer|rather|favou?r)\b
      | \bmy\ (?:personal\ )?preferences?\b
      | \bi\ (?:don't|do\ not|really\ don't)\ (?:like|want\ you)\b
      | \bi\ (?:like|love|hate|insist\ on|am\ used\ to)
            \ (?:to|it\ when|when|using|having|working)\b
      | \bi(?:'ve|\ have)?\ (?:chose|chosen|decided|opted|insisted)\ (?:to|on|for)\b
      | \bi\ (?:always|never|usually)\ (?:use|want|write|work|do|avoid|go)\b
      | \bmy\ insistence\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HINTS = (
    "always", "ever", "now on", "forward", "future", "time", "remember", "in mind", "sure",
    "stop", "avoid", "for all", "for any", "my", "i ask", "rule", "matter", "here on", "point",
    "henceforth", "unless", "until", "without", "more", "in this", "in our", "prefer", "rather",
    "favo", "like", "i do", "i really", "i want", "i love", "i hate", "insist", "used to", "chose",
    "decided", "opted", "usually",
)  # fmt: skip
"""Looked for first, which is quicker than all forms: few sentences have one of them."""

_QUOTED = compile_later(r"```.*?(?:```|\Z)|^[ \t]*>[^\n]*|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_QUESTION = compile_later(
    r"(?:do|does|did|should|shall|am|is|are|was|were|have|has|which|what|why|how|where|who)\b"
    r".*\?$",
    re.IGNORECASE | re.DOTALL,
)
"""What asks for a habit does not state one; 'could you always …?' is a request."""

_LISTED = compile_later(r"[-*•\s]*(?:\d{1,3}[.)]\s+)?")

_READ_CHARS = 4_000
_SHORTEST, _LONGEST = 8, 600


def standing(text: str) -> tuple[str, ...]:
    """Return the sentences of a person's message that are meant to last, word for word."""
    return tuple(said for said, masked in sentences(text) if lasts(masked))


def sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a person's message, word for word and with what is quoted masked."""
    head = text[:_READ_CHARS]
    masked = _QUOTED.sub(lambda found: "\x01" * len(found.group()), head.replace("’", "'"))
    for start, end in spans(masked, typed=True):
        listed = _LISTED.match(masked, start, end)
        begin = listed.end() if listed else start
        said = masked[begin:end].strip(" -*•\t\n")
        if _SHORTEST <= len(said.replace("\x01", "")) <= _LONGEST:
            yield head[begin:end].strip(" -*•\t\n"), said


def _hints(sentence: str) -> bool:
    """Tell whether a sentence has a word that each form of an instruction has one of."""
    lower = sentence.lower()
    return any(hint in lower for hint in _HINTS)


def lasts(sentence: str) -> bool:
    """Tell whether a sentence says how things shall be from now on."""
    if sentence.isascii() and not _hints(sentence):
        return False
    if _QUESTION.match(sentence):
        return False
    return any(form.search(sentence) for form in (_INSTRUCTION, _PREFERENCE, _HABIT))
