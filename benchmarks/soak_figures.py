"""Figures of a soak: what the daemon holds minute by minute, and what became of all that was said.

Every message has a mark of its own, by which it is found in the store. A ledger is compared with
what the upstream wrote down, request by request where the provider reported it.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon import cpu_s
from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from lore.records import Spend
from lore.settings import load
from soak_agents import Book

MARK = re.compile(r"mark-a\d+s\d+n\d+\.(?:typed|said|called|gave|written)")
PRICES = {
    "claude-sonnet-4-5": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
    "gpt-5": {"input": 1.25, "output": 10, "cache_read": 0.125},
    "gpt-4.1": {"input": 2, "output": 8, "cache_read": 0.5},
}
"""Given to the daemon, so that both sides count with the same."""

STEADY = 0.003
"""Of its mean in a minute: what grows by less would take hours to be seen among the noise."""

FAULTS = LOST, TWICE, LEAKED = "lost", "stored twice", "stored though it should not be"

NAMES = ("input", "output", "cache_read", "cache_write")
Told = tuple[str, int, int, int, int]
"""A model and its tokens by these names."""


@dataclass(frozen=True)
class Row:
    """One minute."""

    minute: int
    rss_mb: float
    anon_mb: float
    threads: int
    fds: int
    sockets: int
    cpu_s: float
    db_mb: float
    wal_mb: float
    done: int
    added_ms: tuple[float, float]
    errors: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return it as a line of the table."""
        p50, p95 = self.added_ms
        return (
            f"{self.minute:3} | {self.rss_mb:6.1f} {self.anon_mb:6.1f} | {self.threads:3}"
            f" {self.fds:4} {self.sockets:4} | {self.cpu_s:5.1f} | {self.db_mb:6.1f}"
            f" {self.wal_mb:5.1f} | {self.done:5} | {p50:6.1f} {p95:7.1f} | {self.errors or ''}"
        )


HEAD = "min |  rss MB   anon | thr  fds sock | cpu s |  db MB   wal |  done |  added p50, p95 ms"


def look(pid: int, home: Path) -> dict[str, float]:
    """Return what a daemon holds at the moment."""
    said = Path(f"/proc/{pid}/status").read_text().splitlines()
    told = {line.split(":")[0]: line.split(":")[1].split() for line in said if ":" in line}
    open_files = []
    for one in Path(f"/proc/{pid}/fd").iterdir():
        try:
            open_files.append(str(one.readlink()))
        except FileNotFoundError:
            continue
    db = home / ".lore" / "memory.db"
    wal = db.with_name("memory.db-wal")
    return {
        "rss_mb": int(told["VmRSS"][0]) * 1024 / 1e6,
        "anon_mb": int(told["RssAnon"][0]) * 1024 / 1e6,
        "threads": int(told["Threads"][0]),
        "fds": len(open_files),
        "sockets": sum(one.startswith("socket:") for one in open_files),
        "cpu_s": cpu_s(pid),
        "db_mb": db.stat().st_size / 1e6 if db.exists() else 0.0,
        "wal_mb": wal.stat().st_size / 1e6 if wal.exists() else 0.0,
    }


def billed(log: Path) -> list[dict[str, Any]]:
    """Return what the upstream wrote down."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def added_ms(book: Book, rows: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Return how much later requests came to the upstream than they were sent: p50 and p95."""
    first: dict[str, float] = {}
    for row in rows:
        if row["came_s"] and row["mark"] in book.sent_s:
            first.setdefault(row["mark"], (row["came_s"] - book.sent_s[row["mark"]]) * 1000)
    took = sorted(first.values())
    if not took:
        return 0.0, 0.0
    return statistics.median(took), took[min(len(took) - 1, int(0.95 * len(took)))]


def slope(values: Sequence[float]) -> float:
    """Return by how much values grow from one to the next, along a straight line."""
    middle, mean = (len(values) - 1) / 2, statistics.fmean(values)
    spread = sum((place - middle) ** 2 for place in range(len(values)))
    return sum((place - middle) * (one - mean) for place, one in enumerate(values)) / (spread or 1)


def growth(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the growth in a minute over each half, the mean of each, and what that says."""
    half = len(rows) // 2
    found: dict[str, Any] = {}
    for name in ("rss_mb", "anon_mb", "threads", "fds", "sockets", "db_mb"):
        parts = [[float(getattr(row, name)) for row in part] for part in (rows[:half], rows[half:])]
        if all(parts):
            slopes, means = [slope(part) for part in parts], [statistics.fmean(p) for p in parts]
            steady = abs(slopes[1]) < STEADY * means[1]
            told = "steady" if steady else "levels off" if slopes[1] < slopes[0] / 2 else "grows"
            first, second = (
                f"{one:.1f} {by:+.2f}/min" for one, by in zip(means, slopes, strict=True)
            )
            found[name] = f"{told}: {first}, then {second}"
    return found


def stored_marks(home: Path) -> Counter[str]:
    """Return how often each mark stands in the store."""
    config = load({}, home=home / ".lore").settings
    found: Counter[str] = Counter()
    with Memory.open(config=config, embedder=NoEmbedder()) as memory:
        for session in memory.sessions(limit=10_000):
            for message in memory.sessions.messages(session.id):
                text = "\n".join(part.text for part in message.parts)
                found.update(set(MARK.findall(text)))
    return found


def check_store(book: Book, found: Counter[str]) -> dict[str, Any]:
    """Compare what was said with what is stored."""
    known = book.once | book.perhaps | book.never
    lost = sorted(mark for mark in book.once if not found[mark])
    twice = sorted(mark for mark, count in found.items() if count > 1)
    leaked = sorted(mark for mark in book.never if found[mark])
    return {
        "said": len(book.once),
        LOST: [len(lost), lost[:8]],
        TWICE: [len(twice), twice[:8]],
        LEAKED: [len(leaked), leaked[:8]],
        "unknown": len(set(found) - known),
        "broken off and kept": sum(found[mark] > 0 for mark in book.perhaps),
        "broken off": len(book.perhaps),
    }


def entries_of(home: Path) -> tuple[list[Spend], float]:
    """Return all entries of the ledger, and how much money is still set aside."""
    config = load({}, home=home / ".lore").settings
    entries: list[Spend] = []
    cursor = ""
    with Memory.open(config=config, embedder=NoEmbedder()) as memory:
        while True:
            page = memory.budget.page_of_spend(limit=200, cursor=cursor)
            entries += page.items
            if not page.next:
                return entries, memory.budget.day_budget().reserved_usd
            cursor = page.next


@dataclass
class Billed:
    """What the upstream billed for one request of a client, in one round or several."""

    model: str
    use: Counter[str] = field(default_factory=Counter)
    is_whole: bool = True

    @property
    def told(self) -> Told:
        """Return it as the ledger has it."""
        return self.model, *(self.use[name] for name in NAMES)  # type: ignore[return-value]  # four


def turns_of(rows: Sequence[dict[str, Any]], cut: Collection[str]) -> list[Billed]:
    """Return what was billed, by the requests of clients; those in `cut` they did not hear out."""
    turns: dict[str, Billed] = {}
    for row in rows:
        if row["output"]:
            turn = turns.setdefault(row["mark"], Billed(row["model"]))
            turn.is_whole = turn.is_whole and row["mark"] not in cut
            turn.use.update({name: row[name] for name in NAMES})
            turn.is_whole = turn.is_whole and row["outcome"] == "complete"
    return list(turns.values())


def check_ledger(home: Path, rows: Sequence[dict[str, Any]], book: Book) -> dict[str, Any]:
    """Compare the ledger with what the upstream billed.

    Of an answer that was broken off, either side may have seen the end of it.
    """
    entries, reserved_usd = entries_of(home)
    turns = turns_of(rows, book.cut)
    told = Counter(turn.told for turn in turns if turn.is_whole)
    cut = [turn.told for turn in turns if not turn.is_whole]
    exact = [one for one in entries if not one.usage.get("estimated")]
    guessed = [one for one in entries if one.usage.get("estimated")]
    kept = Counter(
        Billed(one.model, Counter(one.usage)).told
        for one in exact
        if any(one.usage.get(name) for name in NAMES)
    )
    missing, more = told - kept, kept - told - Counter(cut)
    return {
        "billed": told.total(),
        "billed usd": round(sum(usd_of(*one) * count for one, count in told.items()), 4),
        "entered exactly": (told & kept).total(),
        "entered usd": round(sum(one.usd for one in exact), 4),
        "billed, not entered": [missing.total(), list(missing)[:4]],
        "entered, not billed": [more.total(), list(more)[:4]],
        "broken off": len(cut),
        "broken off usd, at most": round(sum(usd_of(*one) for one in cut), 4),
        "estimated": len(guessed),
        "estimated usd": round(sum(one.usd for one in guessed), 4),
        "still reserved usd": round(reserved_usd, 4),
        "layers": dict(Counter(one.layer for one in entries)),
        "busts": sum(one.busts for one in entries),
        "refused by the upstream": [row["problem"] for row in rows if row["problem"]][:4],
    }


def usd_of(model: str, whole: int, output: int, read: int, written: int) -> float:
    """Return what a request costs."""
    price = PRICES[model]
    fresh = whole - read - written
    dear = fresh * price["input"] + output * price["output"] + read * price["cache_read"]
    return (dear + written * price.get("cache_write", price["input"])) / 1e6
