"""A forgotten question or request leaves no byte, though links quote it with its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from lore.digest.consolidation.cycle import run_cycle
from lore.digest.consolidation.phase import CycleContext
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.memory import Memory
from lore.records import JudgedPair, NewMessage, Part, PhaseReport, Role, Verdict
from lore.store import consolidation
from lore.store.database import Connection
from tests.fakes import NOON, FakeEmbedder, FixedClock
from tests.store.samples import empty_log
from tests.trust.test_forgetting import traces

SHOP = "/code/shop"
SUBJECT = "What does the orders database run on?"
Turn = tuple[Role, str]
QUESTION: tuple[Turn, ...] = (
    ("assistant", "Should the orders database of customer Zanzibar run on Postgres 16?"),
    ("user", "No longer Postgres 14 for the orders database."),
)
REQUEST: tuple[Turn, ...] = (
    ("user", "Move the orders database of customer Zanzibar to Postgres 16"),
    ("assistant", "It no longer runs on Postgres 14."),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of the memory."""
    return tmp_path / "home"


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    """A memory that knows what the database ran on before."""
    clock = FixedClock(NOON + timedelta(days=100))
    with Memory.open(home=home, embedder=FakeEmbedder(dimension=256), now=clock) as opened:
        say(opened, "before", 1, ("user", "The orders database runs on Postgres 14."))
        yield opened


def say(memory: Memory, session: str, day: int, *turns: Turn) -> list[str]:
    """Capture a session, embed and judge it; return the ids of its messages."""
    at = NOON + timedelta(days=day)
    new = [
        NewMessage(role, (Part("text", text),), at + timedelta(minutes=i))
        for i, (role, text) in enumerate(turns)
    ]
    ids = memory.capture(session, new, project=SHOP)
    memory.maintenance.embed_waiting()
    return ids


def link_texts(memory: Memory) -> str:
    """Return all texts of links."""
    with memory.database.read() as db:
        rows = db.rows("SELECT older_text, newer_text FROM replacements")
    return "\n".join(text for row in rows for text in row)


def assert_no_trace(memory: Memory, home: Path) -> None:
    memory.maintenance.embed_waiting()  # judges the answer again
    for hit in memory.recall(SUBJECT, project=SHOP).hits:
        assert "Zanzibar" not in f"{hit.text} {hit.note}"
    empty_log(memory.database)
    assert traces(home, b"zanzibar") == []


@pytest.mark.parametrize("turns", [QUESTION, REQUEST])
@pytest.mark.parametrize("way", ["id", "match"])
def test_a_forgotten_question_is_not_left_with_its_answer(
    memory: Memory, home: Path, turns: tuple[Turn, ...], way: str
) -> None:
    asked, answer = say(memory, "talk", 20, *turns)
    assert "Zanzibar" in link_texts(memory)
    memory.maintenance.backup()
    memory.forget(**{way: asked if way == "id" else "Zanzibar"})
    assert_no_trace(memory, home)
    assert [one.id for one in memory.sessions.messages("talk")] == [answer]


class Chat(OfflineSummarizer):
    """Finds every statement replaced; what `meanwhile` does happens before it answers."""

    identity = "fake:chat"

    def __init__(self, meanwhile: Callable[[], object] = list) -> None:
        super().__init__()
        self.meanwhile = meanwhile

    def judge(self, pairs: Sequence[JudgedPair]) -> list[Verdict | None]:  # type: ignore[override]
        """Return the same verdict for every pair."""
        self.meanwhile()
        return ["changes"] * len(pairs)


def settle(memory: Memory, chat: Chat) -> tuple[str, ...]:
    """Let a chat settle the links; return the lines of the report."""
    report = run_cycle(memory.database, CycleContext(chat), only=("contradict",))
    return report.phases[0].told


def test_a_question_that_is_forgotten_while_a_chat_judges_does_not_come_back(
    memory: Memory, home: Path
) -> None:
    asked, _ = say(memory, "talk", 20, *QUESTION)
    assert settle(memory, Chat(lambda: memory.forget(id=asked))) == ()
    assert_no_trace(memory, home)


def test_a_line_of_a_report_names_the_question_that_it_quotes(memory: Memory, home: Path) -> None:
    asked, _ = say(memory, "talk", 20, *QUESTION)
    (line,) = settle(memory, Chat())
    assert "Zanzibar" in line
    assert asked in line
    memory.database.write(lambda db: db.run("DELETE FROM replacements"))
    memory.forget(id=asked)
    assert_no_trace(memory, home)


def test_a_report_that_quotes_a_question_goes_with_it(memory: Memory, home: Path) -> None:
    asked, answer = say(memory, "talk", 20, *QUESTION)

    def write_report(db: Connection) -> None:
        line = f"{answer} {QUESTION[0][1]} replaces something"
        n = consolidation.begin_cycle(db, ["contradict"], now=NOON)
        phase = PhaseReport("contradict", "done", told=(line, "another line"))
        consolidation.save_phase(db, n, phase)

    memory.database.write(write_report)
    memory.forget(id=asked)
    assert_no_trace(memory, home)
    assert b"another line" in memory.database.path.read_bytes()
