"""Commit message: what an agent wrote of its change in a `git commit` command."""

from __future__ import annotations

import re

from lore.text.regex import compile_lazy

MAX_CHARS = 8_000
"""Characters of a command that are read."""

_COMMIT = compile_lazy(r"\bgit(?:\s+-[cC]\s+\S{1,200}|\s+--?[\w=./-]{1,80}){0,5}\s+commit\b")
_HERE_DOCUMENT = compile_lazy(r"<<-?[ \t]*(['\"]?)(\w{1,40})\1[ \t]*\n")
_OPTION = compile_lazy(
    r"(?<=\s)(?:-[a-z]{0,5}m|--message)[ =]*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')", re.DOTALL
)
_TRAILER = compile_lazy(r"^\s*(?:[A-Z][\w-]{2,40}-(?:[Bb]y|[Ii]d|[Uu]rl):|\W*Generated with\b)")
_TYPE = compile_lazy(r"^[a-z]{2,12}(?:\([^)\n]{1,60}\))?!?: (?=\S)")
_ITEM = compile_lazy(r"^\s*(?:[-*•]|\d{1,2}[.)])\s")


def parse_commit_message(command: str) -> str:
    """Return the message of a `git commit`, its lines joined to paragraphs; empty if none.

    Trailers, and the type in front of a conventional subject, are left out.
    """
    command = command[:MAX_CHARS]
    start = _COMMIT.search(command)
    if not start:
        return ""
    rest = command[start.end() :]
    written = _here_document(rest) or "\n\n".join(
        double.replace('\\"', '"').replace("\\`", "`").replace("\\$", "$") or single
        for double, single in _OPTION.findall(rest)
    )
    lines = [line.rstrip() for line in written.strip().splitlines() if not _TRAILER.match(line)]
    return _TYPE.sub("", "\n".join(_unwrap(lines)).strip())


def _here_document(text: str) -> str:
    """Return the text between `<<EOF` and `EOF`; without an end, its whole lines."""
    start = _HERE_DOCUMENT.search(text)
    if not start:
        return ""
    lines = text[start.end() :].split("\n")
    ends = [place for place, line in enumerate(lines) if line.strip() == start[2]]
    return "\n".join(lines[: ends[0]] if ends else lines[:-1])


def _unwrap(lines: list[str]) -> list[str]:
    """Return the lines with those joined that were broken at a width."""
    joined: list[str] = []
    for line in lines:
        continues = bool(joined) and bool(joined[-1]) and bool(line)
        if continues and not _ITEM.match(line):
            joined[-1] = f"{joined[-1]} {line.strip()}"
        else:
            joined.append(line)
    return joined
