"""Tools: which of them bring in the web, and which files they were given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from lore.capture.adapters import fields
from lore.records import Origin

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_WEB = frozenset(
    """web webfetch websearch webpage website fetch fetcher browser browse browsing http https url
    urls crawl crawler scrape scraper scraping playwright puppeteer selenium chrome chromium
    firecrawl tavily exa brave perplexity duckduckgo ddg serp serpapi serper searxng bing google
    wikipedia arxiv jina internet online""".split()
)
"""Words in the names of tools that fetch pages or search the web, MCP servers among them."""

_PATHS = ("file_path", "filePath", "notebook_path", "path", "filename", "file")
_PATH_CHARS = 1_000
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,1000})$", re.MULTILINE)


@lru_cache(maxsize=2_000)
def origin_of(name: str) -> Origin:
    """Return where the result of a tool comes from, by the tool's name."""
    head = name[:200]
    words = {word.lower() for word in _WORD.findall(head)} | set(re.split(r"\W|_", head.lower()))
    return "web" if words & _WEB else "tool"


def files(given: Any) -> Iterator[str]:
    """Return the files that a call names: fields for paths, and the heads of patches."""
    named = fields.table(given)
    for name in _PATHS:
        path = named.get(name)
        if isinstance(path, str) and 0 < len(path) <= _PATH_CHARS and "\n" not in path:
            yield path


def patched_files(patch: str) -> list[str]:
    """Return the files that a patch of Codex adds, updates or deletes."""
    return _PATCHED.findall(patch) if "*** " in patch else []
