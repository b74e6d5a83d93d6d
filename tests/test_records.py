from __future__ import annotations

import dataclasses
import inspect
from datetime import UTC, datetime

import pytest

from lore import records
from lore.records import Answer, CurationResult, Hit, NewMessage, Part

NOON = datetime(2026, 5, 13, 12, tzinfo=UTC)
RECORDS = [found for _, found in inspect.getmembers(records, dataclasses.is_dataclass)]


def hit(id_: str) -> Hit:
    return Hit(id_, "message", "text", "title", 1.0, "why", NOON, 1)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_records_are_frozen_slotted_and_described(record):
    assert record.__dataclass_params__.frozen
    assert "__slots__" in vars(record)
    assert record.__doc__
    assert not record.__doc__.startswith(f"{record.__name__}(")


def test_a_record_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Part("text", "said").text = "changed"  # type: ignore[misc]


def test_messages_do_not_share_what_they_hold():
    one, other = (NewMessage("user", (), NOON) for _ in range(2))
    assert one == other
    assert one.usage is not other.usage


def test_every_origin_has_a_trust():
    assert set(records.TRUST) == set(records.ORIGINS)


def test_a_person_is_trusted_most_and_the_web_least():
    assert max(records.TRUST, key=records.TRUST.__getitem__) == "user"
    assert min(records.TRUST, key=records.TRUST.__getitem__) == "web"


def test_only_people_and_assistants_speak_unasked():
    trusted = {o for o, trust in records.TRUST.items() if trust >= records.UNASKED_TRUST}
    assert trusted == {"user", "assistant"}


def test_note_edges_are_edges_that_people_draw():
    drawn = set(records.EDGE_KINDS) - {"hierarchical", "associative", "temporal", "supersedes"}
    assert set(records.NOTE_EDGES) == drawn


def test_an_answer_is_its_hits_best_first():
    answer = Answer("why?", (hit("a"), hit("b")))
    assert [found.id for found in answer] == ["a", "b"]
    assert len(answer) == 2


def test_an_answer_without_hits_is_empty():
    assert list(Answer("why?", ())) == []
    assert not Answer("why?", ())


def test_what_exchanges_brought_adds_up_to_what_their_session_brought():
    first = CurationResult("s", exchanges=1, stored=("a",), merged=1)
    second = CurationResult(exchanges=1, stored=("b", "c"), merged=2, refused=1)
    assert first + second == CurationResult("s", 2, ("a", "b", "c"), merged=3, refused=1)
    assert CurationResult("s") + CurationResult("s") == CurationResult("s")
