"""What a reader would keep of what extraction found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lore.embed import open_embedder
from lore.embed.embedder import Embedder
from lore.embed.pair_model import PairModel, open_pair_model
from lore.llm.offline.extractor import KEPT_THRESHOLD, extract
from lore.llm.offline.finding_judge import FindingJudge, Judgement, shipped_judge
from lore.llm.offline.statement_classifier import SpokenStatement, Turn, describe_message
from lore.records import Segment
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
        pytest.skip("all-MiniLM-L6-v2 is not installed")
    return opened


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PairModel:
    opened = open_pair_model(Settings(home=tmp_path_factory.mktemp("home")))
    if opened is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed")
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


class Refuses(FindingJudge):
    """Finds nothing worth keeping."""

    def judge(
        self, findings: Sequence[SpokenStatement], *_: object, **__: object
    ) -> list[Judgement | None]:
        return [Judgement(0.0, 0.0) for _ in findings]


def contents(*lines: tuple[str, str], judge: FindingJudge) -> list[str]:
    kept = extract(Segment("s", as_messages(lines)), embed=FakeEmbedder().embed, judge=judge)
    return [one.content for root in kept for one in (root, *root.children)]


def test_rules_and_commit_messages_are_kept_whatever_the_judge_says() -> None:
    commit = f"## {COMMIT_HEADING}: exports\n\n{FIX}"
    said = (("user", RULE), WORK, ("assistant", FIX))
    assert contents(*said, judge=Refuses()) == [RULE]
    assert contents(("user", "go on"), WORK, ("assistant", commit), judge=Refuses()) == [FIX]


def test_without_the_encoder_worth_decides() -> None:
    kept = extract(Segment("s", as_messages([("user", "go on"), WORK, ("assistant", CAUSE)])))
    assert [one.content for one in kept] == [CAUSE]
