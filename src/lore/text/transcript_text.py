"""Transcript text: render messages for a summarizer, with long tool outputs in brief."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lore.records import Message, MessageText, Part, PartKind
from lore.text import call_text, message_features, sentences, tokens
from lore.text.commit_message import parse_commit_message
from lore.text.regex import compile_lazy

LONG_OUTPUT_CHARS = 4_000
"""Tool output that is longer than this is summarised or cut to its ends."""

ERROR_LINES, PATHS = 5, 8
"""Error lines, and paths, in the summary of a long output."""

COMMIT_HEADING = "Commit"
"""Stands above what an agent wrote of a change that it committed."""

_PATH = compile_lazy(r"(?<![\w/.~\-<])(?<!&lt;)(?<!u003[cC])[\w.~\-]*(?:/[\w.\-]+)+")
"""What may be a path; a slash behind '<' closes a tag."""

_EXTENSION = compile_lazy(r"\w\.[A-Za-z]\w{0,9}$|^\.[A-Za-z]")
_LETTER = compile_lazy(r"[^\W\d_]")

_CALL_CHARS = 400
_LINE_CHARS = 200
_LOOKED_AT_LINES = 5_000


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """Which parts of a message are rendered, and how tool calls and results are."""

    words: tuple[PartKind, ...]
    call: Callable[[Part], str]
    output: Callable[[Part, str], str]


def render_messages(
    messages: Sequence[Message], options: RenderOptions, *, most_tokens: int | None = None
) -> list[MessageText]:
    """Render messages for a summarizer; a message without content has no text.

    No message is longer than `most_tokens`, so that each fits into a segment.
    """
    tools: dict[str, str] = {}
    return [_render_message(message, options, tools, most_tokens) for message in messages]


def _render_message(
    message: Message, options: RenderOptions, tools: dict[str, str], most_tokens: int | None
) -> MessageText:
    lines = []
    for part in message.parts:
        if part.kind == "tool_call":
            tools[part.call_id] = part.name
            lines.append(options.call(part))
        elif part.kind == "tool_result":
            lines.append(options.output(part, part.name or tools.get(part.call_id, "")))
        elif part.kind in options.words:
            lines.append(part.text.strip())
    text = "\n".join(line for line in lines if line.strip())
    if most_tokens is not None:
        text = tokens.clip(text, most_tokens)
    return MessageText(
        id=message.id,
        ordinal=message.ordinal,
        at=message.created_at,
        voice=message.speaker or message.role,
        text=text,
        origin=message_features.lowest_origin(message.parts, message.origin),
        tokens=tokens.count(text),
    )


def _named_call(part: Part) -> str:
    call = call_text.read_call(part.name, part.text)
    return f"[{call.tool}] {sentences.one_line(call.command or call.target, _CALL_CHARS)}".rstrip()


def _told_call(part: Part) -> str:
    """Return a call in one line, and what the agent wrote of its change if it commits one."""
    call = call_text.format_call(part.name, part.text, brief=True)
    line = sentences.one_line(call, _CALL_CHARS)
    if "commit" not in call:
        return line
    command = call_text.command_line(call_text.input_fields(part.text)) or part.text
    subject, _, body = parse_commit_message(command).partition("\n")
    if not subject:
        return line
    heading = f"## {COMMIT_HEADING}: {subject}" if body else f"## {COMMIT_HEADING}"
    return f"{line}\n\n{heading}\n\n{body.strip() or subject}"


def _noted(part: Part, tool: str) -> str:
    text = part.text.strip()
    if len(text) > LONG_OUTPUT_CHARS:
        return summarize_output(text, tool, failed=part.failed)
    return f"[result] {text}" if text else ""


def _ends(part: Part, _tool: str) -> str:
    """Return the beginning and the end of a long output, where errors stand."""
    text = part.text
    if len(text) <= LONG_OUTPUT_CHARS:
        return text
    half = LONG_OUTPUT_CHARS // 2
    return f"{text[:half]}\n… {len(text) - LONG_OUTPUT_CHARS} characters …\n{text[-half:]}"


FOR_LOG = RenderOptions(message_features.SPOKEN_KINDS, _named_call, _noted)
"""A log says that a tool was called and how it went."""

FOR_KNOWLEDGE = RenderOptions(("text",), _told_call, _ends)
"""Knowledge is extracted from typed text and from real tool output."""


def summarize_output(text: str, tool: str, *, failed: bool = False) -> str:
    """Return a long output in brief: its tool, line count, errors and paths.

    Files, pages and matches of a search have no errors, unless the call itself failed.
    """
    lines = text.splitlines()
    wrong = _error_lines(text, lines, tool, failed=failed)
    paths = _first(_paths(text[:60_000]), PATHS)
    notes = [f"[result] {tool or 'tool'}: {len(lines)} lines"]
    if wrong:
        notes.append(
            "errors: " + " | ".join(sentences.one_line(line, _LINE_CHARS) for line in wrong)
        )
    if paths:
        notes.append(f"paths: {', '.join(paths)}")
    return "; ".join(notes)


def _paths(text: str) -> Iterator[str]:
    """Yield the paths in a text; closing tags, arities, dates and joined words are none."""
    for match in _PATH.finditer(text):
        path = match[0].rstrip(".:-")
        is_ticked = (
            "`"
            == text[max(0, match.start() - 1) : match.start()]
            == text[match.end() : match.end() + 1]
        )
        if is_path(path, is_ticked=is_ticked):
            yield path


def is_path(name: str, *, is_ticked: bool = False) -> bool:
    """Return whether a name with slashes is a path, by its form.

    Words that prose joins have one slash, no extension and no backticks: 'enable/setup'. A number
    after the only slash is the arity of a function: 'String.trim/1'.
    """
    last = name.rpartition("/")[2]
    if len(name) <= 2 or "/" not in name or not _LETTER.search(name):
        return False
    if name.startswith(("/", "./", "../", "~/")) or name.count("/") > 1:
        return True
    return not last.isdigit() and (is_ticked or _EXTENSION.search(last) is not None)


def _error_lines(text: str, lines: Sequence[str], tool: str, *, failed: bool) -> list[str]:
    failed = call_text.has_failed(text, failed=failed)
    if not failed and call_text.shows_text(tool):
        return []
    looked_at = (line.strip() for line in lines[:_LOOKED_AT_LINES])
    wrong = _first((line for line in looked_at if call_text.is_error_message(line)), ERROR_LINES)
    error = call_text.error_line(text) if failed and not wrong else ""
    return [error] if error else wrong


def _first(texts: Iterable[str], most: int) -> list[str]:
    unique: dict[str, None] = {}
    for text in texts:
        unique[text] = None
        if len(unique) == most:
            break
    return list(unique)
