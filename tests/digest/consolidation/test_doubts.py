"""A chat settles which statements a newer one replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from lore.digest.consolidation.cycle import run_cycle, undo_cycle
from lore.digest.consolidation.phase import CycleContext
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.memory import Memory
from lore.records import Draft, JudgedPair, NewMessage, Origin, Part, PhaseReport, Role, Verdict
from lore.store import consolidation, items, replacements, reversible_changes
from lore.store.database import Connection
from lore.store.replacements import CHAT_CERTAINTY, Relation, Replacement
from tests.fakes import NOON, FakeEmbedder

OLD = "the events sit in Redshift"
NEW = "the events table in ClickHouse is ordered by time"
PROJECT = "/code/ads"


class FakeChat(OfflineSummarizer):
    """Gives one verdict for every pair of statements."""

    identity = "fake:chat"

    def __init__(self, verdict: Verdict | None) -> None:
        super().__init__()
        self.verdict = verdict
        self.asked: list[tuple[str, str]] = []
        self.requests: list[set[str]] = []
        """The origins of each request."""

    def judge(self, pairs: Sequence[JudgedPair]) -> list[Verdict | None]:  # type: ignore[override]
        self.requests.append({one.origin for pair in pairs for one in pair})
        self.asked += [(older.content, newer.content) for older, newer in pairs]
        return [self.verdict] * len(pairs)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=FakeEmbedder()) as opened:
        yield opened


def link(
    memory: Memory,
    relation: Relation,
    certainty: float = 0.2,
    *,
    newer_role: Role = "user",
) -> None:
    """Store two messages of two sessions, and a link between them."""
    ns = []
    stated: list[tuple[Role, str]] = [("user", OLD), (newer_role, NEW)]
    for day, (role, text) in enumerate(stated):
        at = NOON + timedelta(days=day)
        said = NewMessage(role, (Part("text", text),), at, text)
        memory.capture(f"s{day}", [said], project=PROJECT)
        with memory.database.read() as db:
            (one,) = db.column("SELECT n FROM messages ORDER BY n DESC LIMIT 1")
        ns.append(one)
    made = Replacement(ns[0], OLD, ns[1], NEW, relation, certainty, 1)
    memory.database.write(lambda db: replacements.record(db, ns, [made]))


def contradict(memory: Memory, chat: OfflineSummarizer, *, dry_run: bool = False) -> PhaseReport:
    context = CycleContext(chat)
    report = run_cycle(memory.database, context, only=("contradict",), dry_run=dry_run)
    return report.phases[0]


def relations(memory: Memory) -> list[str]:
    with memory.database.read() as db:
        return db.column("SELECT relation FROM replacements ORDER BY n")


def shown(memory: Memory) -> list[str]:
    """Return the relations of the links that readers see."""
    with memory.database.read() as db:
        ns = db.column("SELECT n FROM items")
        return [one.relation for links in replacements.links_of(db, ns).values() for one in links]


@pytest.mark.parametrize("relation", ["possible", "may_replace", "replaces"])
@pytest.mark.parametrize(
    ("verdict", "settled"),
    [
        ("changes", "replaces"),
        ("changes_part", "partly"),
        ("contradicts", "may_replace"),
        ("agrees", "dismissed"),
    ],
)
def test_a_verdict_of_a_chat_settles_a_link(
    memory: Memory, relation: Relation, verdict: Verdict, settled: str
):
    link(memory, relation)
    chat = FakeChat(verdict)
    report = contradict(memory, chat)
    assert chat.asked == [(OLD, NEW)]
    assert relations(memory) == [settled]
    assert report.counts["pairs judged"] == 1


def test_what_is_only_possible_is_seen_by_no_reader(memory: Memory):
    link(memory, "possible")
    assert shown(memory) == []
    assert memory.knowledge.doubtful_pairs() == []
    contradict(memory, OfflineSummarizer())
    assert shown(memory) == []


def test_a_chat_is_asked_once_about_a_link(memory: Memory):
    link(memory, "possible")
    chat = FakeChat("contradicts")
    contradict(memory, chat)
    contradict(memory, chat)
    assert len(chat.asked) == 1


def test_what_a_chat_settled_is_not_asked_about(memory: Memory):
    link(memory, "replaces", certainty=CHAT_CERTAINTY)
    chat = FakeChat("agrees")
    contradict(memory, chat)
    assert chat.asked == []
    assert relations(memory) == ["replaces"]


def test_without_a_verdict_a_link_stays(memory: Memory):
    link(memory, "may_replace")
    assert contradict(memory, FakeChat(None)).counts["pairs unjudged"] == 1
    assert relations(memory) == ["may_replace"]


def test_an_assistant_never_replaces_the_word_of_a_person(memory: Memory):
    link(memory, "possible", newer_role="assistant")
    contradict(memory, FakeChat("changes"))
    assert relations(memory) == ["may_replace"]


def test_a_person_outweighs_a_chat(memory: Memory):
    link(memory, "replaces", certainty=1.0)
    chat = FakeChat("agrees")
    contradict(memory, chat)
    assert chat.asked == []
    assert shown(memory) == ["replaces"]


def test_a_dry_run_asks_nothing(memory: Memory):
    link(memory, "may_replace")
    chat = FakeChat("changes")
    assert contradict(memory, chat, dry_run=True).counts["to ask"] == 1
    assert chat.asked == []
    assert relations(memory) == ["may_replace"]


def test_undo_of_a_cycle_restores_the_links(memory: Memory):
    link(memory, "possible")
    contradict(memory, FakeChat("changes"))
    assert shown(memory) == ["replaces"]
    undo_cycle(memory.database)
    assert relations(memory) == ["possible"]


def test_what_was_made_of_a_replaced_statement_is_replaced_with_it(memory: Memory):
    link(memory, "possible")
    with memory.database.read() as db:
        sources = items.ids_of(db, db.column("SELECT n FROM items ORDER BY n LIMIT 1"))
    made = memory.store(OLD, project=PROJECT, source_messages=tuple(sources.values()))
    contradict(memory, FakeChat("changes"))
    with memory.database.read() as db:
        n = items.find_number(db, made)
        assert n is not None
        assert replacements.extents(db, [n])[n].relation == "replaces"
    undo_cycle(memory.database)
    assert relations(memory) == ["possible"]


def test_a_report_line_goes_with_the_message_that_it_quotes(memory: Memory):
    link(memory, "possible")
    report = contradict(memory, FakeChat("changes"))
    assert any(OLD in line for line in report.told)
    with memory.database.read() as db:
        (id_, *_) = items.ids_of(db, db.column("SELECT n FROM items ORDER BY n")).values()
    memory.maintenance.forget(id=id_)
    with memory.database.read() as db:
        (last, *_) = consolidation.recent_reports(db, limit=1)
    assert not any(OLD in line for one in last.phases for line in one.told)


def tell_in_other_words(memory: Memory, *texts: str, origin: Origin = "assistant") -> None:
    """Store fragments, as a chat writes them, of the message that has the older statement."""
    with memory.database.read() as db:
        (source,) = db.column("SELECT n FROM messages ORDER BY n LIMIT 1")
        source_id = items.ids_of(db, [source])[source]
    sources = (source_id,)
    drafts = [
        Draft(text, project=PROJECT, source_messages=sources, origin=origin) for text in texts
    ]
    memory.knowledge.store_all(drafts)


def test_fragments_that_tell_a_replaced_statement_are_judged_next(memory: Memory):
    link(memory, "possible")
    paraphrase = "Analytics of the ads project are stored in a Redshift cluster."
    tell_in_other_words(memory, paraphrase)
    chat = FakeChat("changes")
    report = contradict(memory, chat)
    assert chat.asked == [(OLD, NEW), (paraphrase, NEW)]
    assert relations(memory) == ["replaces", "replaces"]
    assert report.counts["paraphrases to judge"] == 1
    contradict(memory, chat)
    assert len(chat.asked) == 2


def test_only_fragments_that_hold_and_share_a_word_with_the_statement_are_asked_about(
    memory: Memory,
):
    link(memory, "possible")
    told = [f"The {name} Redshift cluster has the data of ads." for name in ("red", "blue", "old")]
    other = "Invoices are sent on the first day of each month."
    tell_in_other_words(memory, *told, other)

    def hide(db: Connection) -> None:
        ns: dict[str, int] = dict(db.rows("SELECT content, n FROM fragments"))
        reversible_changes.archive(db, ns[told[1]], now=NOON)
        reversible_changes.supersede(db, ns[told[2]], ns[other], now=NOON)

    memory.database.write(hide)
    chat = FakeChat("changes")
    contradict(memory, chat)
    assert chat.asked == [(OLD, NEW), (told[0], NEW)]


def test_a_fragment_is_judged_with_all_that_it_says(memory: Memory):
    link(memory, "possible")
    long = "Analytics are stored in a Redshift cluster. ".ljust(1_400, "x") + " Invoices, too."
    tell_in_other_words(memory, long)
    chat = FakeChat("changes")
    contradict(memory, chat)
    assert chat.asked == [(OLD, NEW), (long, NEW)]
    assert relations(memory) == ["replaces", "replaces"]


def test_a_fragment_that_no_chat_can_read_as_a_whole_is_replaced_by_none(memory: Memory):
    link(memory, "possible")
    tell_in_other_words(memory, "Analytics are stored in a Redshift cluster. ".ljust(4_100, "x"))
    chat = FakeChat("changes")
    contradict(memory, chat)
    assert chat.asked == [(OLD, NEW)]
    assert relations(memory) == ["replaces", "possible"]


def test_fragments_of_a_statement_that_holds_are_not_asked_about(memory: Memory):
    link(memory, "may_replace")
    tell_in_other_words(memory, "Analytics of the ads project are stored in a Redshift cluster.")
    chat = FakeChat("agrees")
    contradict(memory, chat)
    assert chat.asked == [(OLD, NEW)]


def test_pairs_of_a_cycle_are_limited_and_the_others_wait(memory: Memory):
    link(memory, "possible")
    told = [f"Redshift cluster number {place} stores a part of all ads." for place in range(205)]
    tell_in_other_words(memory, *told)
    chat = FakeChat("changes")
    report = contradict(memory, chat)
    assert len(chat.asked) == 200
    assert report.counts["pairs waiting"] == 6
    contradict(memory, chat)
    assert len(chat.asked) == 206


def test_what_a_repository_says_has_a_request_of_its_own(memory: Memory):
    link(memory, "possible")
    told = [f"Redshift cluster number {place} stores a part of all ads." for place in range(30)]
    tell_in_other_words(memory, *told[:2])
    tell_in_other_words(memory, *told[2:], origin="repo")
    chat = FakeChat("changes")
    report = contradict(memory, chat)
    alone = [origins for origins in chat.requests if "repo" in origins]
    assert len(chat.asked) == 3 + len(alone)
    assert len(alone) == 20
    assert report.counts["pairs waiting"] == 8
    contradict(memory, chat)
    assert len(chat.asked) == 31


def test_undo_of_a_cycle_restores_what_was_told_in_other_words(memory: Memory):
    link(memory, "possible")
    tell_in_other_words(memory, "Analytics of the ads project are stored in a Redshift cluster.")
    contradict(memory, FakeChat("changes"))
    assert shown(memory) == ["replaces", "replaces"]
    undo_cycle(memory.database)
    assert shown(memory) == []
