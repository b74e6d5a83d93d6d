from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lore.digest import remember
from lore.embed.embedder import NoEmbedder
from lore.errors import EmbedderError, InvalidInput
from lore.memory import Memory
from lore.records import Draft
from lore.redaction.redactor import Redactor
from tests.fakes import FakeEmbedder, FixedClock

RULE = "Deploys of the shop go through ops/deploy.sh on Thursdays"
NEAR = "Deploys of the shop go through ops/deploy.sh on cold Thursdays in winter, after lunch"
APART = "Deploys of the shop are announced in the channel on Thursdays"


@pytest.fixture
def memory(new_home: Path) -> Iterator[Memory]:
    """Return a fresh memory with a fake embedder."""
    with Memory.open(home=new_home, embedder=FakeEmbedder(), now=FixedClock()) as opened:
        yield opened


def test_similar_text_becomes_a_child_after_its_elder_sibling(memory: Memory):
    top = memory.remember(RULE)
    assert (top.outcome, top.parent, top.resembles) == ("stored", None, ())
    elder = memory.remember(NEAR)
    assert elder.parent
    assert elder.parent.id == top.id
    assert elder.title.depth == 1
    younger = memory.remember(
        "Deploys of the shop go through ops/deploy.sh on warm Thursdays in May, "
        "before breakfast, never near a holiday"
    )
    assert younger.parent
    assert younger.parent.id == top.id
    (reading,) = memory.read([elder.id])
    assert ("temporal", younger.id) in [(edge.kind, edge.target) for edge in reading.edges]


def test_related_text_is_linked_to_the_root(memory: Memory):
    top = memory.remember(RULE)
    apart = memory.remember(APART)
    assert apart.parent is None
    assert [title.id for title in apart.resembles] == [top.id]
    (reading,) = memory.read([apart.id])
    assert [(edge.kind, edge.target) for edge in reading.edges] == [("associative", top.id)]


def test_depth_zero_keeps_a_fragment_a_root(memory: Memory):
    top = memory.remember(RULE)
    kept = memory.remember(NEAR, depth=0)
    assert kept.parent is None
    assert [title.id for title in kept.resembles] == [top.id]


def test_depth_without_a_parent_is_ignored(memory: Memory):
    assert memory.remember(RULE, depth=2).title.depth == 0


def test_a_parent_decides_the_place(memory: Memory):
    top = memory.store("Lunch")
    assert memory.remember(RULE, parent_id=top, depth=1).title.depth == 1
    with pytest.raises(InvalidInput, match="depth 1, not 3"):
        memory.remember(APART, parent_id=top, depth=3)


def test_known_text_changes_nothing(memory: Memory):
    first = memory.remember(RULE)
    again = memory.remember(f"  {RULE}\n")
    assert (again.id, again.outcome) == (first.id, "known")
    assert memory.knowledge.log(first.id)[0].version == 1


def test_text_that_says_more_becomes_the_wording_and_can_be_undone(memory: Memory):
    said = f"{RULE}, once Bastian has looked at the logs of staging and nobody is on holiday"
    first = memory.remember(said)
    more = memory.remember(f"{said} at 14:00")
    assert (more.id, more.outcome) == (first.id, "updated")
    assert memory.read([first.id])[0].text == f"{said} at 14:00"
    memory.knowledge.undo(first.id)
    assert memory.read([first.id])[0].text == said


def test_text_with_another_value_is_stored_separately(memory: Memory):
    first = memory.remember("The port of the shop in staging is 3207")
    other = memory.remember("The port of the shop in staging is 4000")
    assert other.outcome == "stored"
    assert other.id != first.id


def test_text_of_another_kind_is_stored_separately(memory: Memory):
    first = memory.remember(RULE)
    assert memory.remember(RULE, kind="decision").id != first.id


def test_duplicates_are_sought_in_the_project_and_in_global_fragments(memory: Memory):
    mine = memory.remember(RULE, project="/code/mine")
    assert memory.remember(RULE, project="/code/other").outcome == "stored"
    everywhere = memory.remember(APART)
    assert memory.remember(APART, project="/code/mine").id == everywhere.id
    assert memory.remember(RULE, project="/code/mine").id == mine.id


def test_lower_trust_that_says_more_leaves_the_duplicate_unchanged(memory: Memory):
    said = memory.remember(RULE)
    kept = memory.remember(f"{RULE} at 14:00", origin="assistant")
    assert kept.outcome == "stored"
    assert kept.id != said.id
    assert memory.read([said.id])[0].text == RULE
    assert memory.remember(RULE, origin="web").outcome == "known"


def test_higher_trust_supersedes_a_duplicate_of_lower_trust(memory: Memory):
    low = memory.remember(RULE, origin="assistant")
    high = memory.remember(RULE)
    assert (high.outcome, high.parent) == ("stored", None)
    assert [hit.id for hit in memory.search("deploys shop")] == [high.id]
    assert memory.read([low.id])[0].fragment.superseded_by == high.id  # type: ignore[union-attr]
    assert memory.knowledge.undo() == ("supersede", low.id)


def test_an_untrusted_draft_does_not_reinforce_its_parent(memory: Memory):
    top = memory.remember(RULE)
    memory.remember(NEAR, origin="web")
    assert memory.knowledge.log(top.id)[0].access_count == 0


def test_the_same_key_stores_once(memory: Memory):
    first = memory.remember(RULE, key="k")
    assert memory.remember("Something else altogether", key="k").id == first.id
    assert memory.maintenance.stats().fragments == 1


def test_a_secret_is_redacted_before_it_is_compared_and_kept(memory: Memory):
    token = "ghp_" + "a1B2" * 9
    first = memory.remember(f"The token of the shop is {token}")
    assert token not in memory.read([first.id])[0].text
    assert memory.remember(f"The token of the shop is {token}").outcome == "known"


def test_without_an_embedder_the_same_words_are_known_all_the_same(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        first = memory.remember(RULE)
        assert memory.remember(RULE).id == first.id
        assert memory.remember(NEAR).parent is None


def test_failing_embedder_does_not_prevent_storing(tmp_path: Path):
    def refuse(_texts: Sequence[str]) -> None:
        msg = "out of order"
        raise EmbedderError(msg)

    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        memory.remember(RULE)
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(before=refuse)) as memory:
        assert memory.remember(NEAR).outcome == "stored"
        assert memory.remember(NEAR).outcome == "known"


def test_many_at_once_store_the_same_words_once(memory: Memory):
    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(lambda _: memory.remember(RULE), range(16)))
    assert len({one.id for one in kept}) == 1
    assert memory.maintenance.stats().fragments == 1


class CountingRedactor(Redactor):
    """Counts how often it sees each text."""

    def __init__(self) -> None:
        super().__init__(b"key")
        self.seen: list[str] = []

    def redact(self, text: str, *, name: str = "") -> str:
        self.seen.append(text)
        return super().redact(text, name=name)


def test_draft_is_redacted_once(memory: Memory):
    redactor = CountingRedactor()
    draft = Draft(RULE, payload={"command": "ops/deploy.sh"})
    remember.remember(
        memory.database, draft, memory.sources.embedder, memory.sources.nearest, redactor=redactor
    )
    assert redactor.seen.count(RULE) == redactor.seen.count("ops/deploy.sh") == 1
