"""A made-up memory of any size: coding chat with the word statistics of real talk.

Words follow a Zipf-Mandelbrot law, sessions keep to topics, and all is drawn from fixed seeds,
so that two runs see the same texts. The stand-in embedder knows a text by its words.
"""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lore.text.words import STOP_WORDS

__all__ = ["DIMENSION", "NOW", "Corpus", "Talk", "WordVectors", "ask"]

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
"""The present of the made-up memory; its talks took place in the two years before."""

SEED = 20261115
VOCABULARY = 30_000
PROJECTS = 12
TALK_MESSAGES = 50
TOPIC_WORDS = 60
# Shares of running text: English chat has some 42 % function words; a fifth of the rest
# returns to what the session is about.
FUNCTION_SHARE, TOPIC_SHARE = 0.42, 0.20
# Zipf-Mandelbrot: the commonest content word is in a tenth of all messages, as in LoCoMo.
ZIPF_OFFSET, ZIPF_POWER = 20.0, 1.05
# Log-normal lengths with a mean of 25 words; some tool results and answers are far longer.
LENGTH_LOG_MEAN, LENGTH_LOG_DEVIATION, LONGEST = 2.9, 0.8, 400

FUNCTION_WORDS = (
    "the to and a of in it is that i for on this we with be you so not as if have but are can"
    " was do or at when from then there my what by will an which just how should all no would"
    " has they our does now only out up some into more them its about did before after because"
    " where why could also each other than too very again here same while these those any"
).split()
COMMON_WORDS = (
    "file test error function code run use add change build need look make fix check call read"
    " write line value user data server type class request response branch commit push merge"
    " deploy database query table column index cache key token session client project module"
    " import package version update install config setting default option flag path folder name"
    " string number list array object field method return result exception log output input"
    " message event handler thread process memory time date day week month year team meeting"
    " review plan release customer report issue ticket bug feature page button form style color"
    " layout image header footer link route endpoint service container image cluster node"
    " network port host address timeout retry limit rate queue job worker schedule backup"
    " migration schema record row search filter sort order group count total average speed"
    " slow fast good bad right wrong think know want try work start stop open close send get"
    " find keep move copy remove delete create load save show print parse format convert"
    " compare match replace split join wrap mock assert expect fail pass skip warn debug trace"
    " profile measure improve refactor rename document explain summary example reason idea"
    " question answer problem solution step part case state status level mode rule policy"
    " security permission role account password secret login email phone window screen device"
    " browser mobile coffee lunch weekend holiday trip family book music city train kitchen"
).split()
FIRST_NAMES = (
    "Anna Ben Clara David Elena Felix Greta Hugo Irene Jonas Katja Liam Mona Nils Olga Paul"
    " Rosa Simon Tara Umar Vera Walter Yara Zoe Marco Priya Kenji Aisha Diego Ingrid"
).split()
ONSETS = "b br c ch cl d dr f fl g gr h j k l m n p pl pr qu r s sh sl st t tr v w".split()
VOWELS = "a e i o u ai ea ee io oa ou".split()
CODAS = ["", "n", "r", "l", "s", "t", "m", "ck", "nd", "st", "rn"]
ENDINGS = ["", "", "", "s", "ed", "ing", "er", "ly", "tion", "ness"]
FOLDERS = ("src", "tests", "lib", "web", "api", "docs", "infra")
SUFFIXES = ("py", "ts", "go", "rs", "sql", "md", "yaml")
OPENINGS = (
    "what did we decide about", "how do we", "where is the", "why was the", "can you find",
    "which of the", "how did i fix the", "what was the", "who asked about the",
    "when did we change",
)  # fmt: skip
INSTRUCTIONS = ("From now on always", "Please never", "I prefer")
INSTRUCTION_SHARE = 0.003

DIMENSION = 384
WORD_ROWS, NOISE_ROWS = 16_384, 8_192
FUNCTION_WEIGHT, NOISE_WEIGHT = 0.15, 0.6
EMBED_BATCH = 1_024

Ids = NDArray[np.int64]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Talk:
    """One session: who said what, when, and where."""

    name: str
    project: str
    title: str
    files: tuple[str, ...]
    started_at: datetime
    roles: list[str]
    texts: list[str]


class Corpus:
    """Talks and notes over one vocabulary."""

    def __init__(self) -> None:
        chance = random.Random(SEED)
        content = _content_words(chance)
        self._words = np.array([*content, *FUNCTION_WORDS], dtype=object)
        self._content = len(content)
        weights = 1.0 / (np.arange(self._content) + ZIPF_OFFSET) ** ZIPF_POWER
        self._steps = np.cumsum(weights / weights.sum())
        function = 1.0 / (np.arange(len(FUNCTION_WORDS)) + 3.0)
        self._function_steps = np.cumsum(function / function.sum())
        self._paths = [word for word in content if "/" in word]

    def talks(self, messages: int) -> Iterator[Talk]:
        """Make talks until they have so many messages."""
        start = NOW - timedelta(days=730)
        between = timedelta(days=729) / max(1, messages // TALK_MESSAGES)
        for number in range(-(-messages // TALK_MESSAGES)):
            dice = np.random.default_rng((SEED, 1, number))
            size = min(TALK_MESSAGES, messages - number * TALK_MESSAGES)
            topic = self._topic(dice)
            texts = self._texts(dice, topic, size)
            roles = _roles(dice, size)
            _instruct(dice, roles, texts)
            title = " ".join(self._words[topic[:5]].tolist()).capitalize()
            files = dice.choice(len(self._paths), 3)
            yield Talk(
                name=f"talk-{number}",
                project=f"/code/{'abcdefghijkl'[number % PROJECTS]}-service",
                title=title,
                files=tuple(self._paths[at] for at in files),
                started_at=start + number * between,
                roles=roles,
                texts=texts,
            )

    def notes(self, count: int) -> Iterator[tuple[str, str]]:
        """Make fragments: the content of each, and its project or ''."""
        for first in range(0, count, TALK_MESSAGES):
            dice = np.random.default_rng((SEED, 2, first))
            topic = self._topic(dice)
            for text in self._texts(dice, topic, min(TALK_MESSAGES, count - first)):
                chosen = int(dice.integers(2 * PROJECTS))
                where = "abcdefghijkl"[chosen] if chosen < PROJECTS else ""
                yield text, f"/code/{where}-service" if where else ""

    def _topic(self, dice: np.random.Generator) -> Ids:
        return np.searchsorted(self._steps, dice.random(TOPIC_WORDS) * 0.7 + 0.3)

    def _texts(self, dice: np.random.Generator, topic: Ids, count: int) -> list[str]:
        lengths = dice.lognormal(LENGTH_LOG_MEAN, LENGTH_LOG_DEVIATION, count)
        lengths = np.clip(lengths, 3, LONGEST).astype(np.int64)
        total = int(lengths.sum())
        sort, drawn = dice.random(total), dice.random(total)
        ids = np.searchsorted(self._steps, drawn)
        ids = np.where(
            sort < FUNCTION_SHARE + TOPIC_SHARE, topic[(drawn * TOPIC_WORDS).astype(int)], ids
        )
        function = self._content + np.searchsorted(self._function_steps, drawn)
        ids = np.where(sort < FUNCTION_SHARE, function, ids)
        running: list[str] = self._words[ids].tolist()
        ends = np.cumsum(lengths).tolist()
        texts, begin = [], 0
        for place, end in enumerate(ends):
            text = " ".join(running[begin:end])
            texts.append(f"{text[:1].upper()}{text[1:]}{'.?..'[place % 4]}")
            begin = end
        return texts


def _content_words(chance: random.Random) -> list[str]:
    """Return the vocabulary, commonest first: known words, then made-up ones and names."""
    words = dict.fromkeys(COMMON_WORDS)
    plain = list(words)
    while len(words) < VOCABULARY:
        syllables = chance.choice((1, 2, 2, 3))
        word = "".join(
            chance.choice(ONSETS) + chance.choice(VOWELS) + chance.choice(CODAS)
            for _ in range(syllables)
        )
        sort = chance.random()
        if sort < 0.70:
            word += chance.choice(ENDINGS)
        elif sort < 0.80:
            word = chance.choice(plain) + word.capitalize() + chance.choice(plain).capitalize()
        elif sort < 0.88:
            word = f"{chance.choice(plain)}_{word}"
        elif sort < 0.94:
            suffix = chance.choice(SUFFIXES)
            word = f"{chance.choice(FOLDERS)}/{chance.choice(plain)}/{word}.{suffix}"
        elif sort < 0.98:
            word = f"{chance.choice(FIRST_NAMES)} {word.capitalize()}"
        else:
            word = f"E{word.upper()}" if sort < 0.99 else str(chance.randrange(10_000))
        if word not in STOP_WORDS:
            words[word] = None
    return list(words)


def _roles(dice: np.random.Generator, size: int) -> list[str]:
    """Return who speaks: a person, the assistant, now and then a tool."""
    drawn = dice.random(size)
    return [
        "tool" if drawn[at] < 0.12 else "user" if at % 2 == 0 else "assistant" for at in range(size)
    ]


def _instruct(dice: np.random.Generator, roles: list[str], texts: list[str]) -> None:
    """Turn a few of a person's messages into standing instructions."""
    for at in np.flatnonzero(dice.random(len(texts)) < INSTRUCTION_SHARE).tolist():
        if roles[at] == "user":
            texts[at] = f"{INSTRUCTIONS[at % len(INSTRUCTIONS)]} {texts[at].lower()}"


def ask(text: str, chance: random.Random) -> str:
    """Return a question about a text, with 5 to 9 of its words, or '' if it says too little."""
    said = dict.fromkeys(text.rstrip(".?").split())
    telling = [word for word in said if word.lower() not in STOP_WORDS]
    if len(telling) < 5:
        return ""
    wanted = min(len(telling), chance.randint(5, 9))
    chosen = [telling[at] for at in sorted(chance.sample(range(len(telling)), wanted))]
    words = [chance.choice(OPENINGS).capitalize()]
    for word in chosen:
        words.append(word)
        if chance.random() < 0.4:
            words.append(chance.choice(FUNCTION_WORDS[:20]))
    return f"{' '.join(words)}?"


class WordVectors:
    """A stand-in embedder: a text is the normalised sum of its words, and a little noise."""

    name = "word-vectors"
    identity = "word-vectors/float32"
    dimension = DIMENSION

    def __init__(self, table: Path) -> None:
        """Map the table of word vectors from a file, which is made if it is not there."""
        if not table.exists():
            dice = np.random.default_rng(SEED)
            drawn = dice.standard_normal((WORD_ROWS + NOISE_ROWS, DIMENSION), np.float32)
            drawn[: len(FUNCTION_WORDS)] *= FUNCTION_WEIGHT
            drawn[WORD_ROWS:] *= NOISE_WEIGHT
            np.save(table, drawn)
        self._table: Matrix = np.load(table, mmap_mode="r")
        self._rows = {word: row for row, word in enumerate(FUNCTION_WORDS)}
        self.spent_s = 0.0

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Matrix:  # noqa: ARG002 - the protocol's parameter
        """Return one row of length 1 for each text, and count the CPU time it took."""
        started = time.process_time()
        found = np.empty((len(texts), DIMENSION), np.float32)
        for start in range(0, len(texts), EMBED_BATCH):
            part = texts[start : start + EMBED_BATCH]
            found[start : start + len(part)] = self._sums(part)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        self.spent_s += time.process_time() - started
        return found

    def close(self) -> None:
        """Do nothing: the table is mapped, not held."""

    def _sums(self, texts: Sequence[str]) -> Matrix:
        rows: list[int] = []
        starts = []
        for text in texts:
            starts.append(len(rows))
            rows += [self._row(word) for word in text.lower().rstrip(".?").split()]
            rows.append(WORD_ROWS + zlib.crc32(text.encode()) % NOISE_ROWS)
        sums: Matrix = np.add.reduceat(self._table[rows], starts, axis=0)
        return sums

    def _row(self, word: str) -> int:
        row = self._rows.get(word)
        if row is None:
            reserved = len(FUNCTION_WORDS)
            row = reserved + zlib.crc32(word.encode()) % (WORD_ROWS - reserved)
            self._rows[word] = row
        return row
