"""Turns of a SpecStory history: who says what in the Markdown, and which blocks are a tool's."""

from __future__ import annotations

import re
from typing import NamedTuple

_TURN = re.compile(
    r"_\*\*(?P<role>User|Agent|Assistant)(?P<side> - sidechain)?"
    r"(?: \((?P<about>[^\n]{1,200})\))?\*\*_\s*\Z"
)
"""The line that begins a message: a role, and in parentheses the model and the time."""

_TOOL = re.compile(r'<tool-use data-tool-type="[^"]{0,80}" data-tool-name="(?P<name>[^"]{0,200})">')
_TOOL_END = "</tool-use>"
_PLAIN_TOOL = re.compile(r"Tool use: \*\*(?P<name>[^*\n]{1,200})\*\*\s*\Z")
"""The line that begins a tool's block in histories of Cursor; older ones begin without it."""

_FOLD, _FOLD_END = "<details>", "</details>"
_THOUGHT, THOUGHT_END = "<think>", "</details></think>"
_SHELL = re.compile(r"```(?:bash|sh|zsh|shell|powershell)\s*\Z")
_TODO_LIST = "## Todo List"
_TODO = re.compile(r"- \[.\] ")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_CALLED = re.compile(r"(?m)^\*Called tool\*: (?P<server>[\w.-]{1,80}) - (?P<name>[\w.-]{1,120})")

SUMMARY = re.compile(r"\s*(?:<details>)?\s*<summary>([^\n]{0,2000})</summary>\n?")
"""What a tool's block begins with: what the call was."""

_NEVER_CLOSED = "Tool use: **apply_patch**"
"""Its fold has no end; all that it shows is one block of code, whose lines have signs."""

TERMINAL = "run_terminal_cmd"
"""The tool of a block of shell code that stands alone."""


class Piece(NamedTuple):
    """A text, with the name of the tool that it is about, or ''."""

    tool: str
    text: str


class Turn(NamedTuple):
    """One message; it is doubtful whose it is where a block before it has no certain end."""

    role: str
    about: str
    is_sidechain: bool
    is_doubtful: bool
    pieces: tuple[Piece, ...]

    @property
    def is_user(self) -> bool:
        """Return whether a person is named as the one who says it."""
        return self.role == "User"

    @property
    def spoken(self) -> str:
        """Return the text of all pieces."""
        return "\n".join(piece.text for piece in self.pieces).rstrip()


class History(NamedTuple):
    """What stands above the first turn, and the turns."""

    head: str
    turns: tuple[Turn, ...]


class _Unclosed(Exception):
    """A block that begins on a line has no end."""

    def __init__(self, line: int) -> None:
        self.line = line


def split_history(text: str) -> History:
    """Return the turns of a history.

    A line begins a turn only outside of what a tool answered and of code in an agent's words; a
    person's turn follows a rule or another turn of theirs, or is the first. So a file that a tool
    read cannot begin one. Where a block is never closed, that cannot be told: from there on turns
    are doubtful. So it is after a fence that is a whole message, and where code that begins in a
    thought holds the end of the thought and then a turn or a tool: either may be quoted.
    """
    lines = text.split("\n")
    try:
        return _Reader(lines, len(lines)).read()
    except _Unclosed as unclosed:
        return _Reader(lines, unclosed.line).read()


class _Open:
    """A turn that is being read: pieces of lines."""

    def __init__(self, start: re.Match[str] | None, *, is_doubtful: bool = False) -> None:
        self.start = start
        self.is_doubtful = is_doubtful
        self.is_in_thought = False
        self.pieces: list[tuple[str, list[str]]] = []

    @property
    def is_agent(self) -> bool:
        return self.start is not None and self.start["role"] != "User"

    def add(self, line: str) -> None:
        if not self.pieces or self.pieces[-1][0]:
            self.pieces.append(("", []))
        self.pieces[-1][1].append(line)

    def close(self) -> Turn:
        assert self.start
        pieces = tuple(Piece(tool, "\n".join(lines)) for tool, lines in self.pieces)
        words = "\n".join(piece.text for piece in pieces if not piece.tool)
        # the end of a block that did not begin here: what a tool printed ended it before
        is_doubtful = self.is_doubtful or (not self.is_agent and _TOOL_END in words)
        about, is_side = self.start["about"] or "", bool(self.start["side"])
        return Turn(self.start["role"], about, is_side, is_doubtful, pieces)


class _Reader:
    """Reads lines; blocks of code count up to the line from which on it is doubtful."""

    def __init__(self, lines: list[str], doubtful_from: int) -> None:
        self._lines = lines
        self._doubtful_from = doubtful_from
        self._turns: list[_Open] = [_Open(None)]
        self._fences: list[str] = []
        self._opened_at = 0
        self._holds_thought_end = False

    def read(self) -> History:
        i = 0
        while i < len(self._lines):
            i = self._read_line(i) + 1
        if self._fences:
            raise _Unclosed(self._opened_at)
        head, *turns = self._turns
        text = "\n".join(line for _, lines in head.pieces for line in lines)
        return History(text, tuple(turn.close() for turn in turns))

    def _read_line(self, i: int) -> int:
        """Read a line, or the block that begins with it, and return the last line of it."""
        line, turn = self._lines[i], self._turns[-1]
        if self._fences:
            if self._holds_thought_end and (_TURN.match(line) or _TOOL.match(line)):
                raise _Unclosed(self._opened_at)
            self._follow_code(i)
            turn.add(line)
            return i
        start = _TURN.match(line)
        if start and (start["role"] != "User" or self._may_begin(i)):
            self._turns.append(_Open(start, is_doubtful=i >= self._doubtful_from))
            return i
        if turn.start is not None and (tool := _TOOL.match(line)):
            end = self._find_tool_end(i)
            turn.pieces.append((tool["name"], [line[tool.end() :], *self._lines[i + 1 : end]]))
            return end
        if turn.is_agent and self._begins_plain_tool(i):
            end = self._find_plain_tool_end(i)
            name, block = _read_plain_tool(self._lines[i:end])
            turn.pieces.append((name, block))
            return end
        if turn.is_agent:
            self._follow_code(i)
        turn.add(line)
        return i

    def _follow_code(self, i: int) -> None:
        """Follow code and thoughts in an agent's words; in code no thought begins or ends."""
        if i >= self._doubtful_from:
            return
        line, turn = self._lines[i], self._turns[-1]
        was_open, is_end = bool(self._fences), line.rstrip().endswith(THOUGHT_END)
        follow_fence(self._fences, line)
        if was_open:
            self._holds_thought_end |= turn.is_in_thought and is_end
            return
        turn.is_in_thought = not is_end and (turn.is_in_thought or line.startswith(_THOUGHT))
        if self._fences:
            if self._is_message(i):
                raise _Unclosed(i)
            self._opened_at, self._holds_thought_end = i, False

    def _is_message(self, i: int) -> bool:
        """Return whether a fence seems to be a whole message; Copilot leaves such beside edits."""
        if self._lines[i].strip(" `~"):
            return False
        above = filter(str.strip, reversed(self._lines[max(0, i - 4) : i]))
        below = (line for line in self._lines[i + 1 : i + 8] if line.strip() not in ("", "---"))
        return all(_TURN.match(next(lines, "")) for lines in (above, below))

    def _may_begin(self, i: int) -> bool:
        """Return whether a person's turn may begin on a line."""
        last = self._turns[-1]
        return last.start is None or not last.is_agent or self._follows_rule(i)

    def _follows_rule(self, i: int) -> bool:
        above = (line.strip() for line in reversed(self._lines[max(0, i - 4) : i]))
        return next(filter(None, above), "") == "---"

    def _find_tool_end(self, start: int) -> int:
        """Return the line that ends a tool's block; none within a block of code does."""
        fences: list[str] = []
        is_doubtful = start >= self._doubtful_from
        for i in range(start + 1, len(self._lines)):
            if not fences and self._lines[i].rstrip().endswith(_TOOL_END):
                return i
            if not is_doubtful:
                follow_fence(fences, self._lines[i])
        if is_doubtful:
            return len(self._lines)
        raise _Unclosed(start)

    def _begins_plain_tool(self, i: int) -> bool:
        """Return whether a block without tags begins: a tool, its output, an edit or a list."""
        line = self._lines[i]
        if line.startswith(_FOLD) or _PLAIN_TOOL.match(line):
            return True
        is_tool = _SHELL.match(line)
        if line.rstrip() == _TODO_LIST:
            is_tool = _TODO.match(next(filter(None, self._lines[i + 1 : i + 4]), ""))
        return bool(is_tool) and self._follows_rule(i)

    def _find_plain_tool_end(self, start: int) -> int:
        """Return the line that ends a block: the rule below it, or the end of what is folded."""
        fences: list[str] = []
        depth = 0
        is_folded = self._lines[start].startswith(_FOLD)
        folds = self._lines[start].rstrip() != _NEVER_CLOSED
        is_doubtful = start >= self._doubtful_from
        for i in range(start, len(self._lines)):
            line = self._lines[i]
            is_rule = line.rstrip() == "---"
            if is_doubtful and is_rule:
                return i
            was_code = bool(fences)
            if not is_doubtful and not line[:1].isspace():
                follow_fence(fences, line)
            if was_code:
                continue
            if folds:
                depth += line.lstrip().startswith(_FOLD) - line.rstrip().endswith(_FOLD_END)
            if depth <= 0 and (is_folded or is_rule):
                return i
        if is_doubtful:
            return len(self._lines)
        raise _Unclosed(start)


def follow_fence(fences: list[str], line: str) -> None:
    """Open or close a block of code; one with a language may stand within another."""
    code = _FENCE.match(line)
    if code is None or "`" in line[code.end() :]:
        return
    is_bare = not line.strip(" `~")
    if not fences or not is_bare:
        fences.append(code[1])
    elif code[1].startswith(fences[-1]):
        fences.pop()


def _read_plain_tool(lines: list[str]) -> tuple[str, list[str]]:
    """Return the name of a tool and what stands of its use below that.

    Without a name it is that of the called tool, or the first two words of the summary.
    """
    named = _PLAIN_TOOL.match(lines[0])
    block = lines[1:] if named else lines
    body = "\n".join(block)
    if called := _CALLED.search(body):
        return f"mcp__{called['server']}__{called['name']}", block
    if named:
        return named["name"].strip(), block
    if _SHELL.match(lines[0]):
        return TERMINAL, block
    summary = SUMMARY.match(body)
    words = (summary[1] if summary else "todo list").replace(":", " ").lower().split()
    return "_".join(words[:2]) or "tool", block
