"""The memory that `latency` measures: where it lies, and how it is built."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import cast

import apsw

from corpus import NOW, TALK_MESSAGES, Corpus, Talk, WordVectors, ask
from lore.embed import Embedder
from lore.memory import Memory
from lore.records import FRAGMENT_KINDS, Draft, NewMessage, Part, Role
from lore.settings import Settings
from lore.store import vectors
from lore.store.database import Database
from real_texts import RealTexts

FRAGMENT_SHARE = 0.05
EMBED_BATCH, EMBED_LAST = 4_096, 2_000
TREE_EVERY, LINK_EVERY = 3, 20

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the memory of one size lies, and how much is asked of it."""

    root: Path
    size: int
    queries: int
    texts: Path | None = None
    """The folder of evaluation data whose texts fill the memory; made-up texts without one."""

    @property
    def home(self) -> Path:
        """Return the home folder of the memory."""
        return self.root / f"{'real' if self.texts else 'memory'}-{self.size}"

    def corpus(self) -> Corpus | RealTexts:
        """Return the source of the texts."""
        return RealTexts(self.texts) if self.texts else Corpus()

    @property
    def plain(self) -> Path:
        """Return the database of the keyword baseline."""
        return self.home / "plain.db"

    @property
    def questions(self) -> Path:
        """Return the file of the questions."""
        return self.home / "questions.json"

    @property
    def built(self) -> Path:
        """Return the file that says that the memory is whole."""
        return self.home / "built.json"

    def embedder(self) -> WordVectors:
        """Return the stand-in embedder, the same for all sizes."""
        return WordVectors(self.root / "word-vectors.npy")

    def load_questions(self, count: int) -> list[str]:
        """Return the first of the questions."""
        found: list[str] = json.loads(self.questions.read_text())[:count]
        return found


def open_memory(home: Path, embedder: Embedder) -> Memory:
    """Open a memory at the moment that its talks lead up to."""
    return Memory.open(config=Settings(home=home), embedder=embedder, now=lambda: NOW)


def messages_of(talk: Talk) -> list[NewMessage]:
    """Return the messages of a talk, a minute apart."""
    return [
        NewMessage(
            role=cast("Role", role),
            parts=(Part("text", text),),
            created_at=talk.started_at + timedelta(minutes=at),
        )
        for at, (role, text) in enumerate(zip(talk.roles, talk.texts, strict=True))
    ]


def build(place: Place) -> Figures:
    """Build a memory of one size through the product's own path, and the plain table."""
    place.home.mkdir(parents=True, exist_ok=True)
    place.plain.unlink(missing_ok=True)
    fragment_count = int(place.size * FRAGMENT_SHARE)
    corpus, embedder = place.corpus(), place.embedder()
    heard: list[str] = []
    figures: Figures = {}
    with open_memory(place.home, embedder) as memory, plain_table(place.plain) as keep:
        started = time.process_time()
        apart = 0.0
        raw_bytes = 0
        for talk in corpus.talks(place.size - fragment_count):
            memory.capture(
                talk.name,
                messages_of(talk),
                agent="benchmark",
                project=talk.project,
                title=talk.title,
                files=talk.files,
            )
            began = time.process_time()
            keep(talk.texts)
            raw_bytes += sum(len(text.encode()) for text in talk.texts)
            heard += talk.texts
            apart += time.process_time() - began
            _show("captured", len(heard), place.size - fragment_count)
        spent = time.process_time() - started - apart
        figures["build_messages_per_cpu_s"] = len(heard) / spent
        notes = list(corpus.notes(fragment_count))
        raw_bytes += sum(len(text.encode()) for text, _ in notes)
        keep([text for text, _ in notes])
        started = time.process_time()
        store_notes(memory, notes)
        figures["store_fragments_per_cpu_s"] = len(notes) / (time.process_time() - started)
        figures |= embed_all(memory, embedder)
    asked = corpus.questions() if isinstance(corpus, RealTexts) else make_questions(heard, 1_000)
    place.questions.write_text(json.dumps(asked))
    figures |= {"raw_bytes": raw_bytes, "items": len(heard) + len(notes)}
    place.built.write_text(json.dumps(figures))
    return figures


@contextmanager
def plain_table(path: Path) -> Iterator[Callable[[Sequence[str]], None]]:
    """Make a plain FTS5 table and give the function that adds texts to it."""
    plain = apsw.Connection(str(path))
    plain.execute("PRAGMA journal_mode = off").fetchall()
    plain.execute("PRAGMA synchronous = off").fetchall()
    plain.execute("CREATE VIRTUAL TABLE plain USING fts5(text, tokenize = 'porter unicode61')")

    def keep(texts: Sequence[str]) -> None:
        plain.executemany("INSERT INTO plain (text) VALUES (?)", ((text,) for text in texts))

    plain.execute("BEGIN")
    yield keep
    plain.execute("COMMIT")
    plain.close()


def store_notes(memory: Memory, notes: Sequence[tuple[str, str]]) -> None:
    """Store fragments, each third below an earlier one, and link a few."""
    chance = random.Random(len(notes))
    roots: list[str] = []
    stream = iter(notes)
    done = 0
    while chunk := list(islice(stream, 1_000)):
        drafts = []
        for at, (text, project) in enumerate(chunk):
            below = roots and at % TREE_EVERY == 0
            kind = FRAGMENT_KINDS[at % len(FRAGMENT_KINDS)]
            parent = chance.choice(roots) if below else ""
            drafts.append(Draft(text, kind=kind, parent_id=parent, project=project))
        ids = memory.knowledge.store_all(drafts)
        roots += [id_ for id_, draft in zip(ids, drafts, strict=True) if not draft.parent_id]
        for id_ in ids[::LINK_EVERY]:
            other = chance.choice(roots)
            if other != id_:
                memory.knowledge.link(id_, other, "associative")
        done += len(chunk)
        _show("stored", done, len(notes))


def embed_all(memory: Memory, embedder: WordVectors) -> Figures:
    """Give every item its vector; the last few by the product's own small transactions."""
    database = memory.database
    number = database.write(
        lambda db: vectors.ensure_embedder(db, embedder.identity, embedder.dimension)
    )
    with database.read() as db:
        total = vectors.count_pending(db)
    for done in range(0, max(0, total - EMBED_LAST), EMBED_BATCH):
        with database.read() as db:
            waiting = vectors.pending_items(db, limit=min(EMBED_BATCH, total - EMBED_LAST - done))
        keep_vectors(database, embedder, number, waiting)
        _show("embedded", done + len(waiting), total)
    with database.read() as db:
        started = time.process_time()
        fed = vectors.update_index(db, memory.sources.vector_index(), number, embedder.dimension)
        feeding = time.process_time() - started
    started = time.process_time() - embedder.spent_s
    small = memory.maintenance.embed_waiting(judge=False)
    spent = time.process_time() - embedder.spent_s - started
    _show("embedded", total, total)
    return {
        "index_vectors_per_cpu_s": fed / feeding if fed else 0.0,
        "keep_vectors_per_cpu_s": small / spent if small else 0.0,
    }


def keep_vectors(
    database: Database, embedder: WordVectors, number: int, waiting: Sequence[vectors.PendingItem]
) -> None:
    """Store the vectors of some items in one transaction."""
    ns, matrices = [item.n for item in waiting], [embedder.embed(item.texts) for item in waiting]
    database.write(lambda db: vectors.put(db, number, ns, matrices))


def make_questions(texts: Sequence[str], count: int) -> list[str]:
    """Return distinct questions about texts from all over a memory."""
    chance = random.Random(count)
    found: dict[str, None] = {}
    for _ in range(50 * count):
        if question := ask(chance.choice(texts), chance):
            found[question] = None
        if len(found) == count:
            break
    return list(found)


def _show(what: str, done: int, total: int) -> None:
    if done == total or done % 5_000 < TALK_MESSAGES:
        end = "\n" if done == total else ""
        print(f"\r{what} {done:,} of {total:,} ", end=end, file=sys.stderr, flush=True)
