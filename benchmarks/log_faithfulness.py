"""How many lines of offline logs alter a word of their source messages.

    uv run python benchmarks/log_faithfulness.py [FILE ...] [--every 1] [--show 20]

Reads sessions in the form of coding-sessions.jsonl.gz, writes their logs without a model, and
looks for every word of every line (names, paths, numbers, flags, tags, code) in its messages.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from episodes import SESSIONS, messages_of
from lore.digest import distillation, segments
from lore.evals.datasets import read_rows
from lore.llm.offline import log_writer
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.records import LogLine, Message, Segment
from lore.text import transcript_text

_LINK = re.compile(r"!?\[([^\]\n]+)\]\([^)\s]*\)")
_EMPHASIS = re.compile(r"(?<![\w*/])(\*{1,3})(?=[^\s*])([^*]+?)(?<=[^\s*])\1(?![\w*/])")
_ENCLOSED = re.compile(r"(?m)^([\W\d]*)<([a-zA-Z][\w:-]*)[^<>]*>([^<>\n]+)</\2>\s*$")
_OPENING, _CLOSING = "\"'“‘([{", "\"'”’)]}.,;:!?…"
_MARKS = f"{log_writer.OPTION_MARK}{log_writer.RETRACTED_MARK}"
_TICKED = re.compile(r"`[^`\n]+`")


def altered_words(line: str, source: str) -> list[str]:
    """Return the words of a log line that its source does not have to the byte.

    Quotes, brackets and stops around a word do not count, nor does Markdown emphasis.
    """
    known = _word_forms(source) | set(_MARKS.split())
    spoken = (word for word in line.split() if any(letter.isalnum() for letter in word))
    return [word for word in spoken if known.isdisjoint(_forms(word))]


def altered_code(line: str, source: str) -> list[str]:
    """Return the code in backticks that the source does not have; white space may differ."""
    plain = " ".join(source.split())
    parts = (part for part in line.split("; ") if part.count("`") % 2 == 0)
    codes = (code for part in parts for code in _TICKED.findall(part))
    return [code for code in codes if " ".join(code.split()) not in plain]


def _word_forms(source: str) -> frozenset[str]:
    plain = _LINK.sub(r"\1", source)
    bare = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", plain))
    texts = (source, plain, bare, _ENCLOSED.sub(r"\1 \3", bare))
    return frozenset(form for text in texts for word in text.split() for form in _forms(word))


def _forms(word: str) -> set[str]:
    """Return a word as it is, and without quotes, brackets, stops and backticks around it."""
    bare = word.lstrip(_OPENING).rstrip(_CLOSING)
    ticked = bare.strip("`")
    return {word, bare, ticked, ticked.lstrip(_OPENING).rstrip(_CLOSING)} - {""} or {word}


def logs_of(messages: Iterable[Message]) -> Iterator[tuple[Segment, tuple[LogLine, ...]]]:
    """Yield the segments of a session, each with the lines of its log."""
    rendered = transcript_text.render_messages(list(messages), transcript_text.FOR_LOG)
    limits = distillation.limits_for(OfflineSummarizer())
    for segment in segments.split_segments("s", rendered, about_tokens=limits.segment_tokens):
        log = log_writer.observe(segment, limit_tokens=limits.for_source(segment.tokens))
        yield segment, log.lines


def main() -> None:
    """Write the logs of all sessions, count the lines, and show the altered ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=[SESSIONS])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--show", type=int, default=20)
    chosen = parser.parse_args()
    if missing := [path for path in chosen.files if not path.exists()]:
        sys.exit(f"{missing[0]} is not here: nothing to measure.")
    for path in chosen.files:
        _measure(path, chosen.every, chosen.show)


def _measure(path: Path, every: int, show: int) -> None:
    lines = altered = tokens = source_tokens = 0
    for number, raw in enumerate(read_rows(path)):
        if number % every:
            continue
        messages, _ = messages_of(raw)
        for segment, log in logs_of(messages):
            source_tokens += segment.tokens
            texts = {one.ordinal: one for one in segment.messages}
            for line in (one for one in log if one.sources):
                source = texts[line.sources[0]]
                quoted = line.text.removeprefix(f"{source.voice}: ")
                wrong = altered_words(quoted, source.text) or altered_code(quoted, source.text)
                lines += 1
                tokens += len(line.text) // 4
                altered += bool(wrong)
                if wrong and altered <= show:
                    print(f"   {wrong[:5]}  in: {quoted[:160]}")
    share = 100 * tokens / max(1, source_tokens)
    wrong_share = 100 * altered / max(1, lines)
    print(f"{path.name}: {altered} of {lines} lines altered ({wrong_share:.2f} %),"
          f" logs {share:.1f} % of the tokens")  # fmt: skip


if __name__ == "__main__":
    main()
