"""What a reader would keep of what extraction found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lore.embed import open_embedder
from lore.embed.embedder import Embedder
from lore.embed.pair_model import PairModel, open_pair_model
from lore.llm.offline.extractor import KEPT_THRESHOLD, MAX_FACTS, extract
from lore.llm.offline.finding_judge import FindingJudge, Judgement, shipped_judge
from lore.llm.offline.statement_classifier import (
    Embed,
    SpokenStatement,
    Turn,
    describe_message,
)
from lore.records import Extract, Segment
from lore.settings import Settings
from lore.text.transcript_text import COMMIT_HEADING
from tests.fakes import FakeEmbedder
from tests.llm.offline.exchanges import WORK, as_messages

FIX = "`save()` now opens `report.csv` in binary mode, so the upload works on Windows again."
CAUSE = "The upload failed because `save()` in `report.py` opened the file in text mode."
RULE = "Always run the linter before you commit."


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    opened = open_embedder(Settings(home=tmp_path_factory.mktemp("home"))).embedder
    if not opened.dimension:
        pytest.skip("the weights are not installed")
    return opened


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PairModel:
    opened = open_pair_model(Settings(home=tmp_path_factory.mktemp("home")))
    if opened is None:
        pytest.skip("the weights are not installed")
    return opened


def spoken(text: str, *, is_user: bool = False) -> SpokenStatement:
    turns: tuple[Turn, ...] = ("assistant", "user") if is_user else ("user", "assistant")
    return SpokenStatement(text, is_user=is_user, around=describe_message(text, turns, 1))


@pytest.mark.parametrize(
    ("text", "is_user", "is_kept"),
    [
        (FIX, False, True),
        ("Invoices are numbered per year and start at 1000 each January.", True, True),
        ("Now let me update the imports.", False, False),
        ("I've created the file and all tests pass now.", False, False),
        ("The server is currently running on port 3000.", False, False),
        ("make it available for all items", True, False),
    ],
)
def test_progress_states_and_torn_requests_are_not_kept(
    embedder: Embedder, model: PairModel, text: str, *, is_user: bool, is_kept: bool
) -> None:
    findings = [spoken(text, is_user=is_user)]
    [judged] = shipped_judge().judge(findings, embedder.embed, at_work=True, read=model.statements)
    assert judged is not None
    assert (judged.chance >= KEPT_THRESHOLD) == is_kept
    assert 0 <= judged.importance <= 1


def test_what_is_likelier_kept_is_more_important(embedder: Embedder, model: PairModel) -> None:
    some = [spoken(FIX), spoken(f"{FIX} The cause was `open()` in text mode, see `report.py`.")]
    judged = shipped_judge().judge(some, embedder.embed, at_work=True, read=model.statements)
    pairs = sorted(one for one in judged if one is not None)
    assert [one.importance for one in pairs] == sorted(one.importance for one in pairs)
    assert len({one.importance for one in pairs}) == len(some)


def test_talk_and_what_has_no_vector_is_not_judged(embedder: Embedder) -> None:
    judge = shipped_judge()
    assert judge.judge([spoken(FIX)], embedder.embed, at_work=False) == [None]
    assert judge.judge([spoken(FIX)], None, at_work=True) == [None]
    assert judge.judge([], embedder.embed, at_work=True) == []


class Decides(FindingJudge):
    """Gives all findings one judgement, and remembers their texts."""

    def __init__(self, chance: float, importance: float = 0.0) -> None:
        super().__init__()
        self.judgement = Judgement(chance, importance)
        self.asked: list[str] = []

    def judge(
        self, findings: Sequence[SpokenStatement], embed: Embed | None, **_: object
    ) -> list[Judgement | None]:
        assert embed is not None
        self.asked += [one.text for one in findings]
        return [self.judgement for _ in findings]


def kept(*lines: tuple[str, str], judge: FindingJudge) -> list[Extract]:
    embed = FakeEmbedder(dimension=384).embed
    exchange = Segment("s", as_messages(lines))
    roots = extract(exchange, embed=embed, encoder=judge.encoder, judge=judge)
    return [one for root in roots for one in (root, *root.children)]


def contents(*lines: tuple[str, str], judge: FindingJudge) -> list[str]:
    return [one.content for one in kept(*lines, judge=judge)]


def test_the_judge_decides_what_is_kept_and_how_important_it_is() -> None:
    said = (("user", "go on"), WORK, ("assistant", CAUSE))
    assert contents(*said, judge=Decides(KEPT_THRESHOLD - 0.01)) == []
    low, high = (kept(*said, judge=Decides(0.9, grade))[0] for grade in (0.1, 0.9))
    assert high.importance - low.importance == pytest.approx(0.4)


def test_the_judge_reads_a_finding_with_what_completes_it() -> None:
    judge = Decides(0.9)
    kept(("user", "go on"), WORK, ("assistant", f"## Windows uploads\n\n- {FIX}"), judge=judge)
    assert judge.asked == [f"Windows uploads: {FIX}"]


def test_the_likeliest_come_first_if_there_are_too_many() -> None:
    lines = [("user", "go on"), WORK]
    lines += [("assistant", FIX.replace("save", f"save_{n}")) for n in range(2 * MAX_FACTS)]

    class Counts(Decides):
        def judge(
            self, findings: Sequence[SpokenStatement], embed: Embed | None, **_: object
        ) -> list[Judgement | None]:
            return [Judgement(0.5 + n / 100, 0.5) for n in range(len(findings))]

    texts = contents(*lines, judge=Counts(0.5))
    assert sorted(texts) == sorted(text for _, text in lines[-MAX_FACTS:])


@pytest.mark.parametrize(
    "said",
    [
        (("user", RULE), WORK),
        (("user", "We moved the queue from Redis to Postgres."), WORK),
        (("user", "go on"), WORK, ("assistant", f"## {COMMIT_HEADING}: exports\n\n{FIX}")),
    ],
)
def test_rules_changes_and_commit_messages_are_kept_whatever_the_judge_says(
    said: tuple[tuple[str, str], ...],
) -> None:
    assert len(contents(*said, judge=Decides(0.0))) == 1
    assert contents(("user", "go on"), WORK, ("assistant", FIX), judge=Decides(0.0)) == []


def test_a_head_that_does_not_stand_alone_takes_nothing_else_with_it() -> None:
    said = (
        "user",
        "I tried it, and this is what we do now. We switched from npm to pnpm in March.",
    )
    assert contents(said, WORK, judge=Decides(0.9)) == ["We switched from npm to pnpm in March."]


def test_without_the_encoder_worth_decides() -> None:
    exchange = Segment("s", as_messages([("user", "go on"), WORK, ("assistant", CAUSE)]))
    assert [one.content for one in extract(exchange)] == [CAUSE]
